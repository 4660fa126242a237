"""How fast is the Numba kernel, compared with the Cython kernel?

    python bench/kernels.py TEXT [--share 0.05] [--repeats 7] [--json FILE]

Training alone, skip-gram with negative sampling, 300 and 100 dimensions, one thread, processor time, alternating.
Compilation is not timed. Both train the same up to rounding: the losses are compared.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from common import Spread, alternate, arguments, clock_of, finish, prepared, quotients, seconds, spread

from w2v.losses.registry import Settings
from w2v.text.idstore import IdStore
from w2v.text.vocabulary import Vocabulary
from w2v.training.run import Run
from w2v.training.start import Start

SIZES = 300, 100
GOAL = 1 / 3


def training(settings: Settings, vocabulary: Vocabulary, store: IdStore, losses: list[float]) -> float:
    run = Run(settings, Start(vocabulary), store)
    taken = seconds(lambda: run.train(None), clock_of(1))
    losses.append(float(run.state.mean_losses[-1] or 0))
    return taken


def main() -> None:
    options = arguments(__doc__, 7, corpus=True).parse_args()
    base = Settings(window=5, workers=1, epochs=1, sample=1e-4, ns_exponent=0.75)
    speeds: dict[str, Spread] = {}
    ratios: dict[str, Spread] = {}
    with prepared(options.corpus, options.share, base) as text:
        for size in SIZES:
            losses: list[float] = []
            work = {
                kernel: partial(
                    training, replace(base, vector_size=size, kernel=kernel), text.vocabulary, text.store, losses
                )
                for kernel in ("cython", "numba")
            }
            work["numba"]()
            found = alternate(work, options.repeats)
            np.testing.assert_allclose(losses, losses[0], rtol=1e-5)
            for kernel, taken in found.items():
                speeds[f"{kernel}, {size}"] = spread(text.store.tokens / each for each in taken)
            ratios[f"numba / cython, {size}"] = spread(quotients(found["cython"], found["numba"]), GOAL)
    finish(
        options,
        "The Numba kernel",
        "Skip-gram, negative sampling, one thread. Goal: at least a third.",
        raw_words_a_second=speeds,
        ratios=ratios,
    )


if __name__ == "__main__":
    main()
