"""Tests the wheels in dist/ as users get them: make wheels-test.

    python tests/wheels/run.py [--part] [PYTHON ...]

Each Python, by default all in PATH, gets a new environment with the wheel that pip chooses for it, and runs the tests
in a folder without w2v's sources. With --part, or if an optional package has no wheel for this Python, these are the
tests of the compiled step, formats and training. The oldest Python also runs them with the oldest versions of packages.
With all packages, stubtest compares the stubs with the compiled modules.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORK = ROOT / "build" / "wheels-test"
PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", "-n", "auto", "--maxprocesses", "8", "--dist", "worksteal"]
ABOUT_SOURCES = [
    "--ignore=tests/test_architecture.py",
    "--deselect=tests/test_faults.py::test_functions_with_intended_races_exist",
]
PART = [
    "tests/test_kernels.py",
    "tests/kernel/test_loop.py",
    "tests/formats/test_native.py",
    "tests/training/test_train.py",
]
STUBS = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in ROOT.glob("w2v/**/*.pyi")]
# That these tests import.
PACKAGES = ["pytest", "pytest-xdist", "hypothesis", "safetensors", "matplotlib", "textalloc", "ml_dtypes"]


def audit(wheels: list[Path]) -> None:
    tool = [sys.executable, "-m"]
    subprocess.run([*tool, "twine", "check", "--strict", *(ROOT / "dist").iterdir()], check=True)
    subprocess.run([*tool, "check_wheel_contents", *wheels], check=True)
    for wheel in wheels:
        subprocess.run([*tool, "auditwheel", "show", wheel], check=True)
        if "abi3" in wheel.name:
            subprocess.run([*tool, "abi3audit", "--strict", wheel], check=True)


def environment(python: str, name: str) -> str:
    """The Python of a new environment with the wheel that fits it, and nothing else."""
    folder = WORK / name
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    made = str(folder / "bin" / "python")
    install(made, "--no-index", "--find-links", str(ROOT / "dist"), "--no-deps", "w2v")
    return made


def install(python: str, *arguments: str, check: bool = True) -> bool:
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--only-binary", ":all:"]
    return subprocess.run([*pip, *arguments], check=check).returncode == 0


def oldest() -> Path:
    """A file of constraints: the oldest versions that pyproject.toml allows of what users install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    ours = re.findall(r"\w+", extras["all"][0].removeprefix("w2v"))
    lines = [line for lines in [project["dependencies"], *(extras[name] for name in ours)] for line in lines]
    file = WORK / "oldest.txt"
    file.write_text("\n".join(line.replace(">=", "==") for line in lines))
    return file


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", action="store_true")
    parser.add_argument("python", nargs="*")
    options = parser.parse_args()
    found = [path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))]
    os.environ.pop("PYTHONPATH", None)  # it could name sources
    shutil.rmtree(WORK, ignore_errors=True)
    for name in ("tests", "docs"):
        shutil.copytree(ROOT / name, WORK / "apart" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, WORK / "apart")
    audit(sorted((ROOT / "dist").glob("*.whl")))
    failed = []
    pythons = sorted(options.python or found, key=lambda python: int(python.rpartition(".")[2]))
    for number, python in enumerate(pythons):
        for constraints in [[], ["--constraint", str(oldest())]][: 1 + (number == 0 and not options.part)]:
            name = f"{python}{' with the oldest versions' * bool(constraints)}"
            print(name, flush=True)
            made = environment(python, f"{number}{'-oldest' * bool(constraints)}")
            whole = not options.part and install(made, *constraints, "w2v[dev]", check=False)
            if not whole:
                print(f"{name}: part of the tests, without optional packages", flush=True)
                install(made, *constraints, "w2v", *PACKAGES)
            tests = ["tests", *ABOUT_SOURCES] if whole else PART
            checks = [[*PYTEST, *tests], ["-m", "mypy.stubtest", *STUBS]]
            for check in checks[: 1 + whole]:
                if subprocess.run([made, *check], cwd=WORK / "apart").returncode:
                    failed.append(f"{name}: {check[1]}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
