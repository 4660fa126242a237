"""The compiled modules. Everything else about the package stands in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

# The baseline instruction set: faster ones are compiled beside it inside the step and chosen at import.
FLAGS = ["-O3", "-fno-math-errno", "-ffp-contract=fast", "-Wno-unused-function", "-Wno-unreachable-code"]


def extension(name: str, *sources: str, depends: list[str]) -> Extension:
    return Extension(f"w2v.{name}", [f"w2v/{name}.pyx", *sources], depends=depends, extra_compile_args=FLAGS)


setup(
    ext_modules=cythonize(
        [
            extension("_text", depends=[]),
            extension("_formats", depends=[]),
            extension("_kernels", depends=[]),
        ],
        language_level=3,
    )
)
