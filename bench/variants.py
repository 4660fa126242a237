"""How much speed does a setting cost or gain?

    python bench/variants.py TEXT threads|deterministic|storage|kernel|subwords
        [--share 0.25] [--repeats 5] [--json FILE]

threads         1, 2, 4, … threads up to the number of processors, skip-gram; goal for two: 1.85
deterministic   `--deterministic` with a thread per processor, for each model and loss; goal: 0.7
storage         `--storage bf16`, two threads, for each model and loss
kernel          the Numba kernel, which is compiled beforehand, with one thread; goal: a third
subwords        `--subwords 3-6`, one thread, for windows of 5 and 15 and 50 and 100 dimensions

The values of the setting alternate; only training is timed. The first value is the base of the ratios. The clock of
runs with one thread is processor time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, get_args

from common import (
    Summary,
    alternate,
    benchmark_parser,
    clock_for,
    prepared,
    report_results,
    round_ratios,
    summarise,
    training_seconds,
)
from peers import BASE, CONFIGURATIONS

from w2v._losses.registry import Settings
from w2v._settings import Storage
from w2v._system.threads import processors

SKIPGRAMS = {name: CONFIGURATIONS[name] for name in ("sg-ns-300", "sg-ns-100")}
SUBWORDS = {
    "cbow-50": replace(BASE, model="cbow", vector_size=50),
    "cbow-50, window 15": replace(BASE, model="cbow", vector_size=50, window=15),
    "cbow-100": replace(BASE, model="cbow", vector_size=100),
    "cbow-100, window 15": replace(BASE, model="cbow", vector_size=100, window=15),
    "sg-100": replace(BASE, vector_size=100),
}
THREADS = sorted({1, processors(), *(2**k for k in range(processors().bit_length()))})

# The configurations, the values of the setting by name, and goals.
Variants = tuple[Mapping[str, Settings], Mapping[str, dict[str, Any]], Mapping[str, float]]
VARIANTS: dict[str, Variants] = {
    "threads": (SKIPGRAMS, {f"threads {count}": {"workers": count} for count in THREADS}, {"threads 2": 1.85}),
    "deterministic": (
        CONFIGURATIONS,
        {"free": {"workers": processors()}, "deterministic": {"workers": processors(), "deterministic": True}},
        {"deterministic": 0.7},
    ),
    "storage": (CONFIGURATIONS, {storage: {"storage": storage} for storage in get_args(Storage)}, {}),
    "kernel": (SKIPGRAMS, {name: {"kernel": name, "workers": 1} for name in ("cython", "numba")}, {"numba": 1 / 3}),
    "subwords": (SUBWORDS, {"words": {"workers": 1}, "subwords": {"subwords": "3-6", "workers": 1}}, {}),
}


def main() -> None:
    parser = benchmark_parser(__doc__, 5, corpus=True)
    parser.add_argument("setting", choices=VARIANTS)
    options = parser.parse_args()
    configurations, variants, goals = VARIANTS[options.setting]
    first = next(iter(variants))
    clock = clock_for(max(replace(BASE, **changed).threads for changed in variants.values()))
    speeds: dict[str, Summary] = {}
    ratios: dict[str, Summary] = {}
    with prepared(options.corpus, options.share, BASE) as text:
        for configuration, settings in configurations.items():
            work = {
                name: partial(training_seconds, replace(settings, **changed), text.vocabulary, text.store, clock)
                for name, changed in variants.items()
            }
            if options.setting == "kernel":
                work["numba"]()  # compiles the kernel
            results = alternate(work, options.repeats)
            for name, times in results.items():
                speeds[f"{configuration}, {name}"] = summarise(text.store.tokens / duration for duration in times)
                if name != first:
                    label = f"{configuration}, {name} / {first}"
                    ratios[label] = summarise(round_ratios(results[first], times), goals.get(name))
    report_results(
        options, f"Variants: {options.setting}", "Only training is timed.", raw_words_a_second=speeds, ratios=ratios
    )


if __name__ == "__main__":
    main()
