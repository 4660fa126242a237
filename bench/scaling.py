"""How much faster are two threads than one, and more than two?

    python bench/scaling.py TEXT [--sizes 300 100] [--share 0.25] [--repeats 5] [--json FILE]

Skip-gram with negative sampling, training alone, with 1, 2, 4, … threads up to the number of processors,
alternating. Goal: 1.85 for two threads.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from common import Spread, alternate, arguments, finish, prepared, quotients, spread, training_seconds
from peers import BASE

from w2v.system.threads import processors


def main() -> None:
    parser = arguments(__doc__, 5, corpus=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 100])
    options = parser.parse_args()
    counts = sorted({1, processors(), *(2**k for k in range(processors().bit_length()))})
    speeds: dict[str, Spread] = {}
    ratios: dict[str, Spread] = {}
    with prepared(options.corpus, options.share, BASE) as text:
        for size in options.sizes:
            settings = {workers: replace(BASE, vector_size=size, workers=workers) for workers in counts}
            work = {
                str(workers): partial(training_seconds, each, text.vocabulary, text.store)
                for workers, each in settings.items()
            }
            found = alternate(work, options.repeats)
            for workers, times in found.items():
                label = f"size {size}, {workers} thread{'s' * (workers != '1')}"
                speeds[label] = spread(text.store.tokens / taken for taken in times)
                if workers != "1":
                    goal = 1.85 if workers == "2" else None
                    ratios[label] = spread(quotients(found["1"], times), goal)
    finish(options, "Threads", "Training alone.", raw_words_a_second=speeds, times_one_thread=ratios)


if __name__ == "__main__":
    main()
