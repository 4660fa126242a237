"""How fast is w2v.gensim's Word2Vec, compared with the w2v command?

    python bench/drop_in.py TEXT [--share 1] [--repeats 3] [--json FILE]

Three kinds of process alternate: `w2v train`; Word2Vec(LineSentence(TEXT)); and Word2Vec of an object with a Python
generator of token lists as __iter__. Each reads TEXT, trains with gensim's default settings (CBOW, negative sampling,
100 dimensions, five epochs) with two threads, and saves. "generator only" iterates twice over the generator, as
Word2Vec does to count and to train. The goal for LineSentence is at most 1.3 times the time of `w2v train`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from common import (
    alternate,
    benchmark_parser,
    report_results,
    round_ratios,
    split_lines,
    summarise,
    time_call,
    w2v_command,
    wall_seconds,
)

from w2v._losses.registry import Settings
from w2v.gensim.models.word2vec import LineSentence, Word2Vec

SETTINGS = Settings(
    model="cbow", window=5, ns_exponent=0.75, sample=1e-3, alpha=0.025, min_alpha=1e-4, epochs=5, workers=2,
    vectors="input",
)  # fmt: skip
GOALS = {"w2v.gensim, LineSentence": 1.3}


class Sentences:
    """The lines of a file as lists of words, read by a Python generator."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __iter__(self) -> Iterator[list[str]]:
        with Path(self.path).open(encoding="utf-8") as lines:
            for line in lines:
                yield line.split()


def train(kind: str, text: str, output: str) -> None:
    """Train with the classes of w2v.gensim, in this process."""
    sentences = LineSentence(text) if kind == "LineSentence" else Sentences(text)
    Word2Vec(sentences, workers=2).wv.save_word2vec_format(output, binary=True)


def iterate_twice(text: str) -> None:
    """Read all sentences twice, as Word2Vec does."""
    for _ in range(2):
        sum(1 for _ in Sentences(text))


def main() -> None:
    if sys.argv[1:2] == ["train"]:
        train(*sys.argv[2:])
        return
    options = benchmark_parser(__doc__, repeats=3, corpus=True).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text, output = Path(folder) / "text.txt", Path(folder) / "vectors.bin"
        split_lines(options.corpus, text, options.share)
        work: dict[str, Callable[[], float]] = {
            "w2v train": partial(wall_seconds, w2v_command(SETTINGS, text, output)),
            **{
                f"w2v.gensim, {kind}": partial(wall_seconds, [sys.executable, __file__, "train", kind, text, output])
                for kind in ("LineSentence", "generator")
            },
            "generator only": lambda: time_call(lambda: iterate_twice(str(text))),
        }
        results = alternate(work, options.repeats)
        report_results(
            options,
            "Code written for gensim",
            f"{text.stat().st_size / 1e6:.0f} MB. Wall-clock seconds of whole processes, imports included.",
            seconds={name: summarise(times) for name, times in results.items()},
            ratio_to_w2v_train={
                name: summarise(round_ratios(times, results["w2v train"]), GOALS.get(name))
                for name, times in results.items()
                if name.startswith("w2v.gensim")
            },
        )


if __name__ == "__main__":
    main()
