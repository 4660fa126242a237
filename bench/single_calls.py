"""How long do single calls of w2v.gensim and w2v.fasttext take, compared with gensim and fastText?

    python bench/single_calls.py [--words 2000] [--dimensions 100] [--repeats 21] [--json FILE]

Calls of the peer and of w2v alternate, on the same vectors: each time a call runs in a loop of about 10 milliseconds.
The goal is at most 1.5 times the time of the peer. fastText's calls are left out where fastText is not installed.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    alternate,
    benchmark_parser,
    report_results,
    round_ratios,
    scattered_words,
    summarise,
    time_call,
)

from w2v.data import make

GOAL = 1.5
SECONDS = 0.01  # of a loop of calls
Calls = dict[str, Callable[[Any], object]]


def unknown_word(vectors: Any) -> None:
    try:
        vectors["unknown"]
    except KeyError:
        return
    raise AssertionError("the word is known")


def gensim_calls(words: list[str]) -> Calls:
    """Return the calls of gensim's KeyedVectors to measure."""
    a, b, c, d = words[:4]
    return {
        "kv[word]": lambda kv: kv[a],
        "kv[words]": lambda kv: kv[[a, b, c]],
        "word in kv": lambda kv: a in kv,
        "unknown word": unknown_word,
        "get_vector(norm=True)": lambda kv: kv.get_vector(a, norm=True),
        "get_mean_vector": lambda kv: kv.get_mean_vector([a, b, c]),
        "similarity": lambda kv: kv.similarity(a, b),
        "n_similarity": lambda kv: kv.n_similarity([a, b], [c, d]),
        "doesnt_match": lambda kv: kv.doesnt_match([a, b, c]),
        "distances": lambda kv: kv.distances(a),
        "most_similar": lambda kv: kv.most_similar(a),
        "most_similar, analogy": lambda kv: kv.most_similar([a, b], [c]),
        "most_similar_cosmul": lambda kv: kv.most_similar_cosmul([a, b], [c]),
    }


SUBWORD_CALLS: Calls = {
    "FastText, unknown word": lambda model: model.wv["kingdomish"],
    "FastText, get_sentence_vector": lambda model: model.wv.get_sentence_vector(["king", "kingdomish"]),
}
FASTTEXT_CALLS: Calls = {
    "get_word_vector": lambda model: model.get_word_vector("king"),
    "get_word_vector, unknown": lambda model: model.get_word_vector("kingdomish"),
    "get_sentence_vector": lambda model: model.get_sentence_vector("the king of the world"),
    "get_nearest_neighbors": lambda model: model.get_nearest_neighbors("king"),
    "get_word_id": lambda model: model.get_word_id("king"),
}


def microseconds(call: Callable[[Any], object], target: Any) -> float:
    """Return the time of a call, in microseconds, from a loop of calls."""
    single = min(time_call(partial(call, target)) for _ in range(3))
    count = max(1, round(SECONDS / single))

    def loop() -> None:
        for _ in range(count):
            call(target)

    return 1e6 * time_call(loop) / count


def measure(calls: Calls, pair: Sequence[Any], repeats: int) -> dict[str, dict[str, list[float]]]:
    """Return the microseconds of each call of the peer, "theirs", and of w2v, "ours", on a pair of objects of both."""
    theirs, ours = pair
    return {
        name: alternate(
            {"theirs": partial(microseconds, call, theirs), "ours": partial(microseconds, call, ours)}, repeats
        )
        for name, call in calls.items()
    }


def keyed_vectors(implementation: str, words: list[str], matrix: Any) -> Any:
    vectors = importlib.import_module(f"{implementation}.models").KeyedVectors(matrix.shape[1])
    vectors.add_vectors(words, matrix)
    return vectors


def facebook_models(folder: Path, dimensions: int) -> tuple[list[Any], list[Any]]:
    """Return a model of n-grams, loaded by gensim and w2v.gensim, and by fastText, if it is installed, and w2v."""
    text, path = folder / "text.txt", str(folder / "model.bin")
    text.write_text("".join(make.corpus(60_000, seed=1)))
    ours = importlib.import_module("w2v.fasttext")
    ours.train_unsupervised(text, dim=dimensions, bucket=20_000, epoch=1, minCount=2).save_model(path)
    loaders = [
        importlib.import_module(f"{name}.models.fasttext").load_facebook_model for name in ("gensim", "w2v.gensim")
    ]
    try:
        theirs = importlib.import_module("fasttext")
    except ImportError:
        return [load(path) for load in loaders], []
    theirs.FastText.eprint = lambda line: None  # the warning of load_model
    return [load(path) for load in loaders], [theirs.load_model(path), ours.load_model(path)]


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=21)
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--dimensions", type=int, default=100)
    options = parser.parse_args()
    words = scattered_words(options.words)
    matrix = np.random.default_rng(1).standard_normal((options.words, options.dimensions), np.float32)
    pair = [keyed_vectors(name, words, matrix) for name in ("gensim", "w2v.gensim")]
    found = measure(gensim_calls(words), pair, options.repeats)
    with tempfile.TemporaryDirectory() as folder:
        of_gensim, of_fasttext = facebook_models(Path(folder), options.dimensions)
        found |= measure(SUBWORD_CALLS, of_gensim, options.repeats)
        if of_fasttext:
            found |= measure(FASTTEXT_CALLS, of_fasttext, options.repeats)
    report_results(
        options,
        "Single calls of the interfaces of gensim and fastText",
        f"{options.words:,} words, {options.dimensions} dimensions. Microseconds of a call.",
        microseconds_of_the_peer={name: summarise(times["theirs"]) for name, times in found.items()},
        microseconds_of_w2v={name: summarise(times["ours"]) for name, times in found.items()},
        ratio={name: summarise(round_ratios(times["ours"], times["theirs"]), GOAL) for name, times in found.items()},
    )


if __name__ == "__main__":
    main()
