"""Power cuts: what is left on a file system of its own if the machine stops while w2v trains.

A file holds an ext4 file system, to which w2v writes. At a random moment the run is stopped and the file copied: the
copy has what the system had written to the disk until then, and not what was still in memory. Mounted, it must hold the
whole model or none, and its newest checkpoint must lead to the same bits. Root alone can mount files.
"""

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.injection import content
from w2v.data import make

MEGABYTES = 24
W2V = [sys.executable, "-W", "ignore", "-m", "w2v", "train"]
OPTIONS = ["--workers", "1", "--epochs", "12", "--vector-size", "16", "--checkpoint-every", "1chunks", "--quiet"]


def main() -> None:
    """Prints the verdicts after each of so many cuts, as JSON."""
    amount, generator, verdicts = int(sys.argv[1]), random.Random(1), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, image, cut = folder / "text", folder / "image", folder / "cut"
        text.write_text("".join(make.corpus(100_000, seed=1)), "utf-8")
        image.write_bytes(bytes(MEGABYTES << 20))
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        started = time.monotonic()
        subprocess.run([*W2V, text, "-o", folder / "whole.safetensors", *OPTIONS, "--checkpoint", name], check=True)
        longest, whole = 2 * (time.monotonic() - started), content(folder / "whole.safetensors")
        for _ in range(amount):
            with mounted(image, folder / "live") as live:
                states, model = live / "states", live / "model.safetensors"
                command = [*W2V, text, "-o", model, "--force", *OPTIONS, "--checkpoint", states]
                with subprocess.Popen(command, stderr=subprocess.DEVNULL) as run:
                    time.sleep(longest * generator.random())
                    run.send_signal(signal.SIGSTOP)
                    seen = len(checkpoints(states))
                    shutil.copyfile(image, cut)
                    run.kill()
                shutil.rmtree(states, ignore_errors=True)
                model.unlink(missing_ok=True)
            with mounted(cut, folder / "after") as after:
                verdicts[verdict(after, text, whole, seen)] += 1
            print(json.dumps(verdicts), flush=True)


def checkpoints(states: Path) -> list[Path]:
    return sorted(states.glob("checkpoint-*.safetensors"))


def verdict(after: Path, text: Path, whole: object, seen: int) -> str:
    """What is left after a cut, when `seen` checkpoints had been seen. Raises AssertionError if something is lost."""
    model = after / "model.safetensors"
    if model.exists():
        assert content(model) == whole, "the model is not whole"
        return "the model is there"
    if not checkpoints(after / "states"):
        assert seen < 2, f"of {seen} checkpoints none is left"
        return "no checkpoint yet: begun again"
    resume = [*W2V, text, "--resume", after / "states", "-o", model, "--quiet"]
    done = subprocess.run(resume, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert content(model) == whole, "the resumed run ended with other bits"
    return "resumed to the same bits"


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


if __name__ == "__main__":
    main()
