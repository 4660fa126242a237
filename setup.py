"""Build the compiled modules. pyproject.toml has all other settings of the package.

Set W2V_BUILD to checked, sanitize or thread for builds that detect errors at run time; `make sanitize` uses them.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup

VARIANT = os.environ.get("W2V_BUILD", "")
BUILD = Path("build", VARIANT or "release", "c")  # keeps the generated C code out of the source folders
SHARED = "_shared"
# These flags use the baseline instruction set. step.c also compiles faster versions and chooses one at import.
FLAGS = ["-O3", "-fno-math-errno", "-ffp-contract=fast", "-Wno-unused-function", "-Wno-unreachable-code"]
SANITIZERS = {
    "": [],
    "checked": [],  # Cython checks every array index
    # Python's own flags contain -fwrapv, which would hide signed overflows.
    "sanitize": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-wrapv"],
    "thread": ["-fsanitize=thread"],
}[VARIANT]
if VARIANT:
    FLAGS += ["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZERS]
else:
    FLAGS.append("-g0")
PLATFORM = sysconfig.get_platform()  # of the wheel: tests/wheels/build.py sets it, to compile for other systems
STRIP = [] if VARIANT else ["-Wl,-x" if PLATFORM.startswith("macosx") else "-s"]

# A wheel works with Python 3.11 and all later versions, because it uses the limited API. Free-threaded Pythons do not
# support this API. A build in place works only with the Python that runs this file.
LIMITED = "bdist_wheel" in sys.argv and not sysconfig.get_config_var("Py_GIL_DISABLED")

COMPILER = os.environ.get("CC") or sysconfig.get_config_var("CC") or ""
if COMPILER and {"bdist_wheel", "build_ext", "editable_wheel"} & {*sys.argv} and not shutil.which(COMPILER.split()[0]):
    sys.exit(f"w2v needs a C compiler: {COMPILER.split()[0]} is not installed; on Debian and Ubuntu: apt install gcc")


def extension(name: str, *sources: str, depends: Sequence[str] = ()) -> Extension:
    """Return an extension module w2v.`name`, built from its .pyx file and `sources`. All paths are relative to w2v/."""
    return Extension(
        f"w2v.{name}",
        [f"w2v/{path}" for path in (name.replace(".", "/") + ".pyx", *sources)],
        depends=[f"w2v/{path}" for path in depends],
        include_dirs=["w2v/_kernel", "w2v/_text"],
        extra_compile_args=FLAGS,
        extra_link_args=[*SANITIZERS, *STRIP],
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if LIMITED else [],
        py_limited_api=LIMITED,
    )


def shared_extension() -> Extension:
    """Return the module of Cython's utility code. All modules share it, which halves the time of the build."""
    source = BUILD / Cython.__version__ / "_shared.c"
    if not source.exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "cython", "--generate-shared", str(source)], check=True)
    shared = extension(SHARED)
    shared.sources = [str(source)]
    return shared


modules = cythonize(
    [
        # The slowest to compile is first, because modules are compiled in parallel.
        extension(
            "_kernels", "_kernel/step.c", depends=["_kernel/step.h", "_kernel/step_body.h", "_text/hash_table.h"]
        ),
        extension("_text._text", depends=["_text/_text.h", "_text/hash_table.h"]),
        extension("_text._phrases", depends=["_text/_phrases.h", "_text/_text.h", "_text/hash_table.h"]),
        extension("_text._subwords", depends=["_text/_subwords.h", "_text/_text.h"]),
        extension("_text._normalise", depends=["_text/_normalise.h", "_text/_text.h"]),
        extension("_formats._formats", depends=["_text/_text.h"]),
        extension("_vectors._search"),
        *([] if PLATFORM.startswith("win") else [extension("_system._bus_error")]),
        extension("_losses._tree"),
        extension("_graph._edges"),
        extension("_graph._walks", depends=["_text/_text.h"]),
    ],
    build_dir=str(BUILD),
    shared_utility_qualified_name=f"w2v.{SHARED}",
    compiler_directives={
        "language_level": 3,
        "boundscheck": VARIANT == "checked",
        "initializedcheck": VARIANT == "checked",
        "wraparound": False,  # no code here uses negative indices
        "cdivision": True,
        "auto_pickle": False,
        "autotestdict": False,
    },
)
setup(
    options={
        "build_ext": {"parallel": os.cpu_count()},
        **({"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED else {}),
    },
    ext_modules=[*modules, shared_extension()],
)
