"""Train w2v on real text, and compare its scores with those expected for this amount of text.

    python bench/demo.py [TEXT] [--questions FILE] [--pairs FILE …] [--shared FOLDER] [-o FILE]

Without TEXT, --questions or --pairs, the program looks for a corpus, questions and pairs in ../shared. It expects the
scores of the defaults on about as many words from the start of English Wikipedia, from the table of docs/small-text.md.
"""

from __future__ import annotations

import argparse
import math
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from common import BENCH
from text_size import QUEEN, scores

from w2v._training.model import Model

CORPORA = ("corpora/wiki100.txt.xz", "corpora/wikiraw20.txt.xz")
QUESTIONS, PAIRS = "eval/questions-words.txt", ("eval/EN-WS-353-ALL.txt", "eval/EN-SIMLEX-999.txt")
NO_TEXT = "name a text of some megabytes: make demo-real CORPUS=text.txt"

TEXT_OPTIONS = ["--lower", "--tokenize", "words", "--strip-markup"]


def table_rows() -> list[dict[str, str]]:
    """Return the rows of the table in docs/small-text.md, each as a mapping from column to cell."""
    lines = (BENCH.parent / "docs/small-text.md").read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    header = next(row for row in cells if row[-1] == QUEEN)
    return [dict(zip(header, row, strict=True)) for row in cells if row[0].endswith(" MB")]


def expected_scores(words: int) -> dict[str, str]:
    """Return the row of the table that was measured on a number of words nearest to `words`."""
    return min(table_rows(), key=lambda row: abs(math.log(int(row["words"].replace(",", "")) / words)))


def w2v(*command: str | Path) -> None:
    """Print and run a w2v command; exit if it fails."""
    arguments = [str(argument) for argument in command]
    print(f"\nw2v {shlex.join(arguments)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "w2v", *arguments], check=False).returncode
    if code:
        sys.exit(code)


def first_existing(folder: Path, names: Iterable[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).exists()), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?", metavar="TEXT")
    parser.add_argument("--questions", type=Path, metavar="FILE")
    parser.add_argument("--pairs", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--shared", type=Path, default=BENCH.parent.parent / "shared", metavar="FOLDER")
    parser.add_argument("-o", "--output", type=Path, default=Path("real.safetensors"), metavar="FILE")
    options = parser.parse_args()
    corpus = options.corpus or first_existing(options.shared, CORPORA)
    if not corpus:
        sys.exit(NO_TEXT)
    questions = options.questions or first_existing(options.shared, [QUESTIONS])
    pairs = options.pairs or [path for name in PAIRS if (path := options.shared / name).exists()]
    w2v("train", corpus, *TEXT_OPTIONS, "-o", options.output, "--force")
    w2v("query", options.output, "king", "-", "man", "+", "woman", "--topn", "5")
    w2v("query", options.output, "france", "--topn", "5", "--restrict-vocab", "10000")
    model = Model.load(options.output)
    row = expected_scores(model.metrics["tokens"])
    print(f"\n{'':18}{'reached':>9}  expected for {row['text']} of Wikipedia")
    for name, value in scores(model.wv, questions, pairs).items():
        reached = "none" if value is None else f"{value:,}" if name == QUEEN else f"{value:.1f}"
        print(f"{name:18}{reached:>9}  {row.get(name, '')}")


if __name__ == "__main__":
    main()
