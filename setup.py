"""The compiled modules. Everything else about the package stands in pyproject.toml.

W2V_BUILD=checked, sanitize or thread makes builds that look for mistakes; `make sanitize` uses them.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup

VARIANT = os.environ.get("W2V_BUILD", "")
BUILD = Path("build", VARIANT or "release", "c")  # never beside the sources
SHARED = "_shared"
# The baseline instruction set: faster ones are compiled beside it inside the step and chosen at import.
FLAGS = ["-O3", "-fno-math-errno", "-ffp-contract=fast", "-Wno-unused-function", "-Wno-unreachable-code"]
SANITIZERS = {
    "": [],
    "checked": [],  # every index of every array is checked
    "sanitize": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-wrapv"],
    "thread": ["-fsanitize=thread"],
}[VARIANT]
if VARIANT:
    FLAGS += ["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZERS]
else:
    FLAGS.append("-g0")
STRIP = [] if VARIANT else ["-Wl,-x" if sys.platform == "darwin" else "-s"]

# A wheel serves Python 3.11 and all later ones by the limited API, which free-threaded Pythons do not have. A build in
# place serves the Python that runs this.
LIMITED = "bdist_wheel" in sys.argv and not sysconfig.get_config_var("Py_GIL_DISABLED")


def extension(name: str, *sources: str, depends: Sequence[str] = ()) -> Extension:
    """`name` is dotted, below w2v; the paths are below w2v/ too."""
    return Extension(
        f"w2v.{name}",
        [f"w2v/{path}" for path in (name.replace(".", "/") + ".pyx", *sources)],
        depends=[f"w2v/{path}" for path in depends],
        include_dirs=["w2v/kernel", "w2v/text"],
        extra_compile_args=FLAGS,
        extra_link_args=[*SANITIZERS, *STRIP],
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if LIMITED else [],
        py_limited_api=LIMITED,
    )


def shared() -> Extension:
    """The module of Cython's own code that all others share, so that it is compiled once: half of the time."""
    source = BUILD / Cython.__version__ / "_shared.c"
    if not source.exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "cython", "--generate-shared", str(source)], check=True)
    made = extension(SHARED)
    made.sources = [str(source)]
    return made


modules = cythonize(
    [
        extension(
            "_kernels", "kernel/step.c", depends=["kernel/step.h", "kernel/step_body.h", "text/hash_table.h"]
        ),  # the longest first
        extension("text._text", depends=["text/_text.h", "text/hash_table.h"]),
        extension("text._phrases", depends=["text/_phrases.h", "text/_text.h", "text/hash_table.h"]),
        extension("text._subwords"),
        extension("text._normalise", depends=["text/_normalise.h", "text/_text.h"]),
        extension("formats._formats", depends=["text/_text.h"]),
        extension("vectors._search"),
        extension("system._signals"),
        extension("losses._trees"),
    ],
    build_dir=str(BUILD),
    shared_utility_qualified_name=f"w2v.{SHARED}",
    compiler_directives={
        "language_level": 3,
        "boundscheck": VARIANT == "checked",
        "initializedcheck": VARIANT == "checked",
        "wraparound": False,  # a negative index is a mistake, not one from the end
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
    ext_modules=[*modules, shared()],
)
