"""How fast does w2v count the words of a text and write their ids, compared with `wc -w`?

    python bench/reader.py TEXT [--repeats 15] [--json FILE]

TEXT is an uncompressed file; use 50 MB or more for steady results. One thread, two threads and `wc -w` alternate. `wc`
is a whole process; w2v is a call that ends when all ids are in a file. Goals: one thread reaches 0.7 times the speed of
`wc -w`, two threads 1.7 times the speed of one, and one thread with --lower 1/1.3 of its speed without.
"""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from common import alternate, benchmark_parser, report_results, round_ratios, summarise, time_call

from w2v._text.corpus import Corpus
from w2v._text.idstore import ReadingOptions, read_corpus

HEAD = 1 << 20  # bytes


def validate(path: Path) -> int:
    """Check that one and two threads give the right ids; return the number of words."""
    text = np.fromfile(path, np.uint8)
    space = np.concatenate([[True], (text == 32) | (text - np.uint8(9) <= 4)])  # 9 to 13 are tab to carriage return
    head = text[:HEAD].tobytes().split()[:-1]
    with read_corpus(Corpus(path), workers=1) as one, read_corpus(Corpus(path), workers=2) as two:
        assert one.tokens == np.count_nonzero(space[:-1] & ~space[1:]), "the number of tokens is wrong"
        words = one.ids[one.ids > 0][: len(head)].astype(np.int64)
        assert one.words(words) == [word.decode() for word in head], "the words are wrong"
        assert np.array_equal(np.bincount(one.ids), one.counts), "the counts do not match the ids"
        assert np.array_equal(one.ids, two.ids), "the ids depend on the number of threads"
        return one.tokens


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=15)
    parser.add_argument("text", type=Path)
    options = parser.parse_args()
    path: Path = options.text
    tokens, size = validate(path), path.stat().st_size

    def read(workers: int, **reading: Any) -> float:
        return time_call(lambda: read_corpus(Corpus(path), ReadingOptions(**reading), workers=workers).close())

    times = alternate(
        {
            "wc -w": lambda: time_call(lambda: subprocess.run(["wc", "-w", path], check=True, capture_output=True)),
            "one thread": lambda: read(1),
            "two threads": lambda: read(2),
            "one thread, --lower": lambda: read(1, lower=True),
            "one thread, --tokenize words": lambda: read(1, tokenize="words"),
            "two threads, --tokenize words": lambda: read(2, tokenize="words"),
        },
        options.repeats,
    )
    report_results(
        options,
        "Reading text",
        f"{size / 1e6:.0f} MB, {tokens:,} words.",
        megabytes_a_second={
            name: summarise(size / 1e6 / duration for duration in values) for name, values in times.items()
        },
        ratio={
            "one thread / wc -w": summarise(round_ratios(times["wc -w"], times["one thread"]), goal=0.7),
            "two threads / one": summarise(round_ratios(times["one thread"], times["two threads"]), goal=1.7),
            "one thread, --lower / without": summarise(
                round_ratios(times["one thread"], times["one thread, --lower"]), goal=1 / 1.3
            ),
            "one thread, --tokenize words / without": summarise(
                round_ratios(times["one thread"], times["one thread, --tokenize words"])
            ),
        },
    )


if __name__ == "__main__":
    main()
