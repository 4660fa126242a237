"""The compiled modules. Everything else about the package stands in pyproject.toml."""

from collections.abc import Sequence

from Cython.Build import cythonize
from setuptools import Extension, setup

# The baseline instruction set: faster ones are compiled beside it inside the step and chosen at import.
FLAGS = ["-O3", "-fno-math-errno", "-ffp-contract=fast", "-Wno-unused-function", "-Wno-unreachable-code"]


def extension(name: str, *sources: str, depends: Sequence[str] = ()) -> Extension:
    return Extension(f"w2v.{name}", [f"w2v/{name}.pyx", *sources], depends=list(depends), extra_compile_args=FLAGS)


setup(
    ext_modules=cythonize(
        [
            extension("_text", depends=["w2v/_text.h"]),
            extension("_formats"),
            extension("_search"),
            extension("_outputs"),
            extension("_kernels", "w2v/_step.c", depends=["w2v/_step.h", "w2v/_step_body.h"]),
        ],
        language_level=3,
    )
)
