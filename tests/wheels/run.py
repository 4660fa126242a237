"""Test the wheels in dist/ as users install them: make wheels-test.

    python tests/wheels/run.py [--part] [PYTHON ...]

Each Python, by default each in PATH, gets a new environment with the wheel that pip chooses for it, and runs the tests
in a folder without w2v's sources. With --part, it runs only the tests of the kernel, the native format and training.
Python 3.11, the oldest supported version, also tests the oldest supported versions of packages. With all packages,
stubtest compares the stubs with the compiled modules.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "wheels-test"
OLDEST = 11  # the minor version of the oldest supported Python
NEWEST_LOCK, OLDEST_LOCK = ROOT / "requirements.lock", ROOT / "tests" / "wheels" / "oldest.lock"
PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", "-n", "auto", "--maxprocesses", "8", "--dist", "worksteal"]
NEED_SOURCES = [  # the tests that read w2v's sources
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
# The packages that PART imports.
PART_PACKAGES = ["pytest", "pytest-xdist", "hypothesis", "safetensors", "matplotlib", "textalloc", "ml_dtypes"]


def audit(wheels: list[Path]) -> None:
    """Check the files of dist/ with the packaging tools; fail if one objects."""
    tool = [sys.executable, "-m"]
    subprocess.run([*tool, "twine", "check", "--strict", *(ROOT / "dist").iterdir()], check=True)
    subprocess.run([*tool, "check_wheel_contents", *wheels], check=True)
    for wheel in wheels:
        if "linux" in wheel.name:
            subprocess.run([*tool, "auditwheel", "show", wheel], check=True)
        if "abi3" in wheel.name:
            subprocess.run([*tool, "abi3audit", "--strict", wheel], check=True)


def create_environment(python: str, name: str) -> str:
    """Create an environment that has only the wheel for this Python; return the path of its Python."""
    folder = BUILD / name
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    environment_python = str(folder / "bin" / "python")
    install(environment_python, "--only-binary=w2v", "--no-index", f"--find-links={ROOT / 'dist'}", "--no-deps", "w2v")
    return environment_python


def minor_version(python: str) -> int | None:
    """Return the minor version of a Python, or None if it does not run, as some commands of pyenv do not."""
    done = subprocess.run([python, "-c", "import sys; print(sys.version_info.minor)"], capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else None


def install(python: str, *arguments: str | Path) -> None:
    """Install packages for this Python."""
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *arguments], check=True)


def copy_tests(folder: Path) -> None:
    """Create a folder with the tests, but without w2v's sources."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("tests", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", action="store_true")
    parser.add_argument("python", nargs="*")
    options = parser.parse_args()
    pythons_in_path = [path for minor in range(OLDEST, 20) if (path := shutil.which(f"python3.{minor}"))]
    os.environ.pop("PYTHONPATH", None)  # it could lead to the sources
    shutil.rmtree(BUILD, ignore_errors=True)
    copy_tests(BUILD / "project")
    audit(sorted((ROOT / "dist").glob("*.whl")))
    failed = []
    versions = [(minor, python) for python in options.python or pythons_in_path if (minor := minor_version(python))]
    if len(versions) < len(options.python):
        sys.exit(f"these Pythons do not all run: {' '.join(options.python)}")
    for number, (minor, python) in enumerate(versions):
        for lock in [NEWEST_LOCK, OLDEST_LOCK][: 1 + (minor == OLDEST and not options.part)]:
            name = f"{python}{' with the oldest versions' * (lock == OLDEST_LOCK)}"
            print(name, flush=True)
            environment_python = create_environment(python, f"{number}-{lock.stem}")
            packages = ["w2v", *PART_PACKAGES] if options.part else ["w2v[dev]"]
            install(environment_python, "--constraint", lock, "--build-constraint", NEWEST_LOCK, *packages)
            tests = PART if options.part else ["tests", *NEED_SOURCES]
            checks = [[*PYTEST, *tests], ["-m", "mypy.stubtest", *STUBS]]
            for check in checks[: 1 + (not options.part)]:
                if subprocess.run([environment_python, *check], cwd=BUILD / "project").returncode:
                    failed.append(f"{name}: {check[1]}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
