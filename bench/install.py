"""Measure how long it takes to install the wheel and to get a first answer: python bench/install.py.

The wheel in dist/ is installed twice, each time into an empty environment. The first time fills pip's cache with the
dependencies; the second time is measured, including the first `w2v query`. Measure on an idle machine.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "tests" / "formats" / "samples" / "plain.bin"


def install_and_query(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    options: list[str | Path] = [
        "--quiet",
        "--disable-pip-version-check",
        "--prefer-binary",
        "--find-links",
        ROOT / "dist",
    ]
    subprocess.run([folder / "bin" / "pip", "install", *options, "w2v"], check=True)
    subprocess.run([folder / "bin" / "w2v", "query", MODEL, "the"], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    for name in ("first", "second"):
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic()
            install_and_query(Path(folder, "environment"))
            print(f"{name} time: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
