"""How much memory does training take?

    python bench/memory.py TEXT [--storage bf16] [--repeats 1] [--json FILE]

The program watches a whole process of `w2v train`, with 300 dimensions and one epoch, in /proc. The goal limits the
process's own (anonymous) memory: two matrices, the vocabulary and 64 MB. The system also counts pages of mapped files,
such as the ids, as resident while nothing else needs the memory; the peak including these pages is shown too.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import get_args

from common import benchmark_parser, report_results, summarise, w2v_command, watch_memory
from peers import BASE

import w2v
from w2v._settings import Storage

MEGABYTE = 1e6
ROW_BYTES = {"float32": 304 * 4, "bf16": 320 * 2}  # of 300 dimensions, padded


def main() -> None:
    parser = benchmark_parser(__doc__, 1)
    parser.add_argument("corpus", type=Path, metavar="TEXT")
    parser.add_argument("--storage", choices=get_args(Storage), default="float32")
    options = parser.parse_args()
    settings = replace(BASE, storage=options.storage)
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "model.bin"
        for _ in range(options.repeats):
            result, peaks = watch_memory(w2v_command(settings, options.corpus, output))
            runs.append((peaks, int(result["peak_memory_bytes"])))
        words = w2v.load(output).index_to_key
    matrices = 2 * len(words) * ROW_BYTES[options.storage]
    vocabulary = sum(sys.getsizeof(word) + 8 + 8 for word in words)  # with a reference and a count
    limit = matrices + vocabulary + 64 * MEGABYTE
    megabytes = {
        "own memory": summarise(peaks["RssAnon"] / MEGABYTE for peaks, _ in runs),
        "mapped files": summarise(peaks["RssFile"] / MEGABYTE for peaks, _ in runs),
        "total": summarise(peak / MEGABYTE for _, peak in runs),
        "two matrices": summarise([matrices / MEGABYTE]),
        "vocabulary": summarise([vocabulary / MEGABYTE]),
    }
    shares = {
        "own memory / goal": summarise((peaks["RssAnon"] / limit for peaks, _ in runs), 1),
        "total / goal": summarise(peak / limit for _, peak in runs),
    }
    report_results(options, "Peak memory", "Whole process. Goal: at most 1.", megabytes=megabytes, shares=shares)


if __name__ == "__main__":
    main()
