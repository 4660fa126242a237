"""How fast are items recommended for sessions, compared with gensim's most_similar in a loop?

    python bench/recommend.py [--items 100000] [--dimensions 100] [--sessions 2000] [--repeats 5] [--json FILE]

The vectors are random, and a session has ten random items. gensim answers the first 200 sessions only, and its times
are extrapolated to all of them. First the program checks that both recommend the same items.
"""

import tempfile
import time
from collections.abc import Callable

import numpy as np
from common import alternate, benchmark_parser, report_results, round_ratios, summarise, time_call
from gensim.models import KeyedVectors

import w2v

LENGTH, TOPN = 10, 10
LOOP = 200  # sessions that gensim answers


def processor_seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=5)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=100)
    parser.add_argument("--sessions", type=int, default=2000)
    options = parser.parse_args()
    random = np.random.default_rng(1)
    names = [f"item {row}" for row in range(options.items)]
    matrix = random.standard_normal((options.items, options.dimensions), np.float32)
    chosen = random.integers(options.items, size=(options.sessions, LENGTH)).tolist()
    sessions = [[names[row] for row in rows] for rows in chosen]
    theirs = KeyedVectors(options.dimensions)
    theirs.add_vectors(names, matrix)
    with tempfile.TemporaryDirectory() as folder:
        w2v.KeyedVectors(names, matrix).save(f"{folder}/items.safetensors")
        ours = w2v.load(f"{folder}/items.safetensors")
    loop = min(LOOP, options.sessions)

    def recommend() -> list[list[str]]:
        return [[item for item, _ in found] for found in w2v.recommend(ours, sessions, TOPN)]

    def call_in_a_loop() -> list[list[str]]:
        return [[item for item, _ in theirs.most_similar(session, topn=TOPN)] for session in sessions[:loop]]

    same = sum(a == b for a, b in zip(recommend(), call_in_a_loop(), strict=False))
    assert same >= 0.99 * loop, f"only {same} of {loop} sessions get the same items"  # rounding may swap two items
    factor = options.sessions / loop
    found: dict[str, dict[str, list[float]]] = {}
    for name, measure in (("seconds", time_call), ("processor seconds", processor_seconds)):
        found[name] = alternate(
            {
                "w2v": lambda measure=measure: measure(recommend),  # type: ignore[misc]
                "gensim": lambda measure=measure: factor * measure(call_in_a_loop),  # type: ignore[misc]
            },
            options.repeats,
        )
    report_results(
        options,
        "Recommending",
        f"{options.sessions:,} sessions of {LENGTH} items; {options.items:,} items, {options.dimensions} dimensions; "
        f"{same} of {loop} sessions get the same {TOPN} items.",
        **{name: {tool: summarise(values) for tool, values in times.items()} for name, times in found.items()},
        ratio={
            f"{name}, gensim / w2v": summarise(round_ratios(times["gensim"], times["w2v"]), goal=20)
            for name, times in found.items()
        },
    )


if __name__ == "__main__":
    main()
