"""Power cuts: check what a file system holds after the machine stopped while w2v trained.

w2v writes to an ext4 file system inside an image file. At a random moment the run is stopped and the image copied. The
copy has what the system had written to the disk until then, but not what was still in memory. After mounting the copy,
it must hold the complete model or none, and its newest checkpoint must lead to the same bits. Only root can mount
images.
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

from tests.faults.injection import comparable_content
from w2v.data import make

MEGABYTES = 24
W2V = [sys.executable, "-W", "ignore", "-m", "w2v", "train"]
OPTIONS = ["--workers", "1", "--epochs", "12", "--vector-size", "16", "--checkpoint-every", "1chunks", "--quiet"]


def main() -> None:
    """Cut the power as often as the argument says; print the number of each result as JSON after each cut."""
    amount, generator, results = int(sys.argv[1]), random.Random(1), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, image, image_copy = folder / "text", folder / "image", folder / "image-copy"
        text.write_text("".join(make.corpus(100_000, seed=1)), "utf-8")
        image.write_bytes(bytes(MEGABYTES << 20))
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        started = time.monotonic()
        subprocess.run([*W2V, text, "-o", folder / "expected.safetensors", *OPTIONS, "--checkpoint", name], check=True)
        longest = 2 * (time.monotonic() - started)
        expected = comparable_content(folder / "expected.safetensors")
        for _ in range(amount):
            with mounted(image, folder / "live") as live:
                checkpoints, model = live / "checkpoints", live / "model.safetensors"
                command = [*W2V, text, "-o", model, "--force", *OPTIONS, "--checkpoint", checkpoints]
                with subprocess.Popen(command, stderr=subprocess.DEVNULL) as run:
                    time.sleep(longest * generator.random())
                    run.send_signal(signal.SIGSTOP)
                    written = len(checkpoint_files(checkpoints))
                    shutil.copyfile(image, image_copy)
                    run.kill()
                shutil.rmtree(checkpoints, ignore_errors=True)
                model.unlink(missing_ok=True)
            with mounted(image_copy, folder / "after") as after:
                results[check_recovery(after, text, expected, written)] += 1
            print(json.dumps(results), flush=True)


def checkpoint_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*.safetensors"))


def check_recovery(after: Path, text: Path, expected: object, written: int) -> str:
    """Return what is left after a cut; raise AssertionError if something is lost.

    `written` is the number of checkpoints at the moment of the cut.
    """
    model = after / "model.safetensors"
    if model.exists():
        assert comparable_content(model) == expected, "the model is damaged"
        return "finished"
    if not checkpoint_files(after / "checkpoints"):
        # The newest checkpoint may not have reached the disk yet.
        assert written < 2, f"none of {written} checkpoints is left"
        return "no checkpoint yet"
    resume = [*W2V, text, "--resume", after / "checkpoints", "-o", model, "--quiet"]
    done = subprocess.run(resume, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert comparable_content(model) == expected, "the resumed run ended with other bits"
    return "resumed to the same bits"


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[Path]:
    """Mount an image on a folder inside the `with` block."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


if __name__ == "__main__":
    main()
