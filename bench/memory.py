"""How much memory does training take?

    python bench/memory.py TEXT [--storage bf16] [--repeats 1] [--json FILE]

A whole process of `w2v train`, 300 dimensions, one epoch, watched while it runs. The goal is about its own memory
(anonymous): two matrices, the vocabulary and 64 MB. The system also counts pages of mapped files, such as the
ids, as resident while nothing else needs the memory; the peak including them is shown too. It needs /proc.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import get_args

from common import arguments, finish, spread, w2v_command, watched
from peers import BASE

import w2v
from w2v.settings import Storage

MEGABYTE = 1e6
PADDED = {"float32": 304 * 4, "bf16": 320 * 2}  # bytes of a row of 300


def main() -> None:
    parser = arguments(__doc__, 1)
    parser.add_argument("corpus", type=Path, metavar="TEXT")
    parser.add_argument("--storage", choices=get_args(Storage), default="float32")
    options = parser.parse_args()
    settings = replace(BASE, storage=options.storage)
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "model.bin"
        for _ in range(options.repeats):
            printed, most = watched(w2v_command(settings, options.corpus, output))
            runs.append((most, int(printed["peak_memory_bytes"])))
        words = w2v.load(output).index_to_key
    matrices = 2 * len(words) * PADDED[options.storage]
    vocabulary = sum(sys.getsizeof(word) + 8 + 8 for word in words)  # and a reference and a count for each
    limit = matrices + vocabulary + 64 * MEGABYTE
    peaks = {
        "own memory": spread(most["RssAnon"] / MEGABYTE for most, _ in runs),
        "mapped files": spread(most["RssFile"] / MEGABYTE for most, _ in runs),
        "total": spread(own / MEGABYTE for _, own in runs),
        "two matrices": spread([matrices / MEGABYTE]),
        "vocabulary": spread([vocabulary / MEGABYTE]),
    }
    shares = {
        "own memory / goal": spread((most["RssAnon"] / limit for most, _ in runs), 1),
        "total / goal": spread(own / limit for _, own in runs),
    }
    finish(options, "Peak memory", "Whole process. Goal: at most 1.", megabytes=peaks, shares=shares)


if __name__ == "__main__":
    main()
