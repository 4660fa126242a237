"""Measure how long it takes to install the wheel and to get a first answer: python bench/install.py.

The wheel in dist/ is installed twice, each time into an empty environment. The first time fills pip's cache with the
dependencies; the second time counts. The steps are timed one by one: creating the environment, installing the wheel,
and the first `w2v query`. Measure on an idle machine; on a busy one, compare only the processor time.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "tests" / "formats" / "samples" / "plain.bin"


def children_time() -> float:
    """Return the processor time of the commands that have ended, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def install_and_query(folder: Path) -> dict[str, tuple[float, float]]:
    """Install the wheel into a new environment and query a model; return seconds and processor time of each step."""
    install: list[str | Path] = [
        folder / "bin" / "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--prefer-binary",
    ]
    steps: dict[str, list[str | Path]] = {
        "environment": [sys.executable, "-m", "venv", folder],
        "installation": [*install, "--find-links", ROOT / "dist", "w2v"],
        "first answer": [folder / "bin" / "w2v", "query", MODEL, "the"],
    }
    seconds = {}
    for step, command in steps.items():
        start, children = time.monotonic(), children_time()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds[step] = time.monotonic() - start, children_time() - children
    return seconds


def main() -> None:
    for name in ("first", "second"):
        with tempfile.TemporaryDirectory() as folder:
            steps = install_and_query(Path(folder, "environment"))
        print(f"{name} time, with the processor time in parentheses:")
        for step, (seconds, processor_time) in steps.items():
            print(f"    {step}: {seconds:.1f} s ({processor_time:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
