"""The compiled modules. Everything else about the package stands in pyproject.toml.

W2V_BUILD=checked, sanitize or thread makes builds that look for mistakes; `make sanitize` uses them.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

VARIANT = os.environ.get("W2V_BUILD", "")
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


def extension(name: str, *sources: str, depends: Sequence[str] = ()) -> Extension:
    return Extension(
        f"w2v.{name}",
        [f"w2v/{name}.pyx", *sources],
        depends=list(depends),
        include_dirs=["w2v"],
        extra_compile_args=FLAGS,
        extra_link_args=SANITIZERS,
    )


setup(
    ext_modules=cythonize(
        [
            extension("_text", depends=["w2v/_text.h"]),
            extension("_formats", depends=["w2v/_text.h"]),
            extension("_search"),
            extension("_outputs"),
            extension("_kernels", "w2v/_step.c", depends=["w2v/_step.h", "w2v/_step_body.h"]),
        ],
        build_dir=str(Path("build", VARIANT, "c")) if VARIANT else None,
        compiler_directives={
            "language_level": 3,
            "boundscheck": VARIANT == "checked",
            "initializedcheck": VARIANT == "checked",
            "wraparound": False,  # a negative index is a mistake, not one from the end
            "cdivision": True,
        },
    )
)
