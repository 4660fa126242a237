"""Does this version train the same bits as another? Run it before and after a change that must not change results.

    python bench/same_bits.py OTHER [--python OTHER/.venv/bin/python] [--words 30000]     or: make same-bits OTHER=...

OTHER is a checkout of another version, with its extensions built. Both versions run the same commands on the bundled
corpus: every loss with skip-gram and CBOW, subwords, two views, frozen vectors, bfloat16, early stopping, several
deterministic threads, continued and resumed runs, graphs, and ranks if mpiexec is installed. The matrices and the
text of the vectors must have the same bytes. Files that differ only in their headers are listed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from common import BENCH

from w2v._losses.registry import LOSSES

PROGRAM = "import sys; sys.path.insert(0, {root!r}); from w2v.__main__ import main; main()"
TRAIN = "train text.txt --quiet --workers 1 --vector-size 24 --epochs 2 -o {}.safetensors"
# A run whose last checkpoint is set aside, so that it resumes from the one before.
STOPPED = "--deterministic --workers 2 --checkpoint {0} --checkpoint-every 7chunks"
CASES = {
    **{f"{loss}-{model}": f"--loss {loss} --model {model}" for loss in LOSSES for model in ("skipgram", "cbow")},
    **{f"subwords-{model}": f"--subwords 3-5 --buckets 3000 --model {model}" for model in ("skipgram", "cbow")},
    "subwords-hs": "--subwords 2-3 --buckets 500 --loss hs --model skipgram",
    "per-pair": "--model skipgram --per-pair",
    "corrected": "--model cbow --cbow-gradient corrected --fixed-windows",
    "all": "--window all --model skipgram",
    "sides": "--window 3,0",
    "numba": "--kernel numba --model skipgram",
    "bf16": "--storage bf16",
    "deterministic": "--deterministic --workers 3",
    "stop-early": "--stop-early 1 --epochs 12",
    "views": "--views words+subwords",
    "views-skipgram": "--views words+subwords --model skipgram --window 4 --subwords 2-4",
    "views-hs": "--views words+subwords --loss hs --vector-size 25",
    "views-stop-early": "--views words+subwords --stop-early 1 --epochs 12",
    "views-bf16": "--views words+subwords --storage bf16 --deterministic --workers 2",
    "phrases": "--phrases",
    "resumed": STOPPED.format("a"),
    "resumed-views": STOPPED.format("b") + " --views words+subwords",
}
# Commands that need the models of CASES.
CONTINUED = {
    "continued": "more.txt --continue ns-cbow.safetensors",
    "continued-union": "more.txt --continue ns-cbow.safetensors --vocab union --epochs 1",
    "continued-hs": "more.txt --continue hs-skipgram.safetensors --alpha 0.02",
    "continued-subwords": "more.txt --continue subwords-cbow.safetensors --vocab union",
    "continued-views": "more.txt --continue views.safetensors --vocab union",
    "continued-views-old": "more.txt --continue views-skipgram.safetensors --epochs 1",
    "init": "more.txt --init ns-cbow.safetensors --vector-size 24",
    "freeze": "more.txt --init subwords-cbow.safetensors --freeze --vector-size 24",
    "freeze-outputs": "more.txt --init ns-skipgram.safetensors --freeze outputs",
}


class Version:
    """A version of w2v, with a folder that its commands run in."""

    def __init__(self, python: str, root: Path, folder: Path, text: Path) -> None:
        self._command = [python, "-c", PROGRAM.format(root=str(root.resolve()))]
        self.folder = folder
        folder.mkdir()
        lines = text.read_text("utf-8").splitlines(keepends=True)
        (folder / "text.txt").write_text("".join(lines[: len(lines) * 2 // 3]), "utf-8")
        (folder / "more.txt").write_text("".join(lines[len(lines) // 3 :]), "utf-8")
        edges = (f"n{i % 97} n{i * 31 % 101}\n" for i in range(3000))
        (folder / "edges.txt").write_text("".join(edges), "utf-8")

    def run(self, name: str, command: str, prefix: list[str] | None = None) -> None:
        """Run `w2v` with the arguments in `command`. The program ends if the command fails."""
        environment = os.environ | {"PYTHONWARNINGS": "ignore"}
        arguments = [*(prefix or []), *self._command, *command.split()]
        done = subprocess.run(arguments, cwd=self.folder, capture_output=True, text=True, env=environment)
        if done.returncode:
            sys.exit(f"{name}: w2v {command}: exit status {done.returncode}: {done.stderr.strip()[-500:]}")

    def run_all(self) -> Iterator[str]:
        """Run every command, and return the names of the models."""
        for name, options in CASES.items():
            self.run(name, f"{TRAIN.format(name)} {options}")
            yield name
        for name, checkpoints in ("resumed", "a"), ("resumed-views", "b"):
            for path in sorted((self.folder / checkpoints).rglob("checkpoint-0*.safetensors")):
                if len(list(path.parent.glob("checkpoint-0*.safetensors"))) > 1:
                    path.with_suffix(".last").unlink(missing_ok=True)
                    newest = max(path.parent.glob("checkpoint-0*.safetensors"))
                    newest.rename(newest.with_suffix(".last"))  # resume from the checkpoint before the last one
            self.run(name, f"train text.txt --quiet --resume {checkpoints} -o {name}-again.safetensors")
            yield f"{name}-again"
        for name, options in CONTINUED.items():
            self.run(name, f"train --quiet --workers 1 -o {name}.safetensors {options}")
            yield name
        self.run("graph", "train --graph edges.txt --quiet --workers 1 -p 0.5 -q 2 -o graph.safetensors")
        yield "graph"
        self.run("slices", "slices text.txt more.txt --quiet --workers 1 --vector-size 16 --epochs 1 -o slices")
        if shutil.which("mpiexec"):
            prefix = ["mpiexec", "-n", "2"]
            self.run("ranks", TRAIN.format("ranks"), prefix)
            self.run("ranks-views", f"{TRAIN.format('ranks-views')} --views words+subwords", prefix)
            yield from ("ranks", "ranks-views")
        self.run("text", "convert ns-cbow.safetensors text.vec --quiet")


def differences(new: Path, old: Path) -> list[str]:
    """Return the names of the tensors of two files that differ, or of the whole files if they are not tensors."""
    if new.suffix != ".safetensors":
        return [] if new.read_bytes() == old.read_bytes() else ["its bytes"]
    ours, theirs = _tensors(new), _tensors(old)
    return [name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]


def _tensors(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """Return the dtype, the shape and the bytes of each tensor of a .safetensors file, by name."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    return {
        name: (each["dtype"], each["shape"], content[slice(*(start + at for at in each["data_offsets"]))])
        for name, each in header.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("--python", help="Python of the other version [OTHER/.venv/bin/python]")
    parser.add_argument("--words", default=30_000, type=int, help="size of the corpus [%(default)s]")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        text = Path(folder, "corpus.txt")
        make = [sys.executable, "-m", "w2v.data.make", "corpus", "--tokens", str(options.words), "-o", str(text)]
        subprocess.run(make, check=True, cwd=BENCH.parent)
        python = options.python or str(options.other / ".venv/bin/python")
        new = Version(sys.executable, BENCH.parent, Path(folder, "new"), text)
        old = Version(python, options.other, Path(folder, "old"), text)
        for _ in zip(new.run_all(), old.run_all(), strict=True):
            pass
        paths = [path.relative_to(new.folder) for path in sorted(new.folder.rglob("*")) if path.is_file()]
        models = [path for path in paths if path.suffix in (".safetensors", ".vec", ".txt") and "0" not in path.stem]
        found = {path: differences(new.folder / path, old.folder / path) for path in models}
        headers = [str(path) for path in models if (new.folder / path).read_bytes() != (old.folder / path).read_bytes()]
    for path, names in found.items():
        if names:
            print(f"{path} differs in {', '.join(names)}")
    print(f"{len(models)} files; {sum(map(bool, found.values()))} with other bits")
    if headers:
        print(f"{len(headers)} files have other headers: {', '.join(headers)}")
    sys.exit(any(found.values()))


if __name__ == "__main__":
    main()
