"""How good are the vectors of two models side by side, compared with one model of as many dimensions?

    python bench/views.py TEXT --questions FILE --pairs FILE … --json FILE [--megabytes 2 8 20] [--vector-size 100]
                          [--mixtures words words+subwords …] [--seeds 1 2 3] [--held-out]
    python bench/views.py --table FILE

A view is one model of a text, trained with one thread; VIEWS lists the settings. A mixture is one or more views that
share the dimensions equally and are concatenated by `w2v.combine`; words+subwords*0.8 gives the second view the weight
0.8. "Processor seconds" is the time to train the views; each view reads the text itself. "Mean" is the mean of total
and the correlations.

--held-out leaves a third of the rated words, the rarest in the text, out of the vocabulary, and trains with `--views
words+subwords`. "both views" are the vectors of this model. "zeros" are the same vectors, with zeros in the view of
words for each word left out. "subwords" is only the view of subwords. The correlations are over the pairs with at least
one word left out, and over all pairs.

Runs are added to the JSON file; a run that is there already is not repeated.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from common import open_runs, runs_markdown, runs_parser, split_lines, table_of_means, write_prefixes
from numpy.typing import NDArray
from quality import scores
from scipy import stats

import w2v
from w2v._vectors.cosines import unit

VIEWS: dict[str, dict[str, Any]] = {
    "words": {"views": "words"},
    "words15": {"views": "words", "window": 15},
    "subwords": {"views": "words", "window": 15, "subwords": "3-6"},
    "subwords8": {"views": "words", "subwords": "3-6"},
    "subwords3-5": {"views": "words", "window": 15, "subwords": "3-5"},
    "skipgram": {"views": "words", "model": "skipgram", "subwords": "3-6"},
    "both": {"views": "words+subwords"},
}
WAYS = ("subwords", "zeros", "both views")  # what --held-out compares
GROUP = ("text", "dimensions", "mixture")  # the runs that agree in these differ only in their seeds

Train = Callable[..., tuple[w2v.KeyedVectors, float]]


def trainer(text: Path, seed: int, vocabulary: w2v.Vocabulary | None = None) -> Train:
    """Return a function that trains a view of some dimensions once, and returns its vectors and processor seconds."""

    @cache
    def train(view: str, size: int) -> tuple[w2v.KeyedVectors, float]:
        changed = {"vector_size": size, "seed": seed, "workers": 1}
        start = time.process_time()
        model = w2v.train(text, vocabulary=vocabulary, **VIEWS[view] | changed)
        vectors = model.wv
        return vectors, time.process_time() - start

    return train


def measure(mixture: str, size: int, train: Train, questions: Path, pairs: list[Path]) -> dict[str, Any]:
    """Return the scores of a mixture of views, and the processor seconds of training them."""
    parts = [part.partition("*") for part in mixture.split("+")]
    trained = [train(view, size // len(parts)) for view, _, _ in parts]
    vectors = trained[0][0]
    if len(parts) > 1:
        vectors = w2v.combine([view for view, _ in trained], [float(weight or 1) for _, _, weight in parts])
    without_counts = w2v.KeyedVectors(vectors.index_to_key, vectors.vectors)  # counts would add a slow measure
    found = scores(without_counts, questions, pairs)
    mean = statistics.mean(value or 0 for name, value in found.items() if name not in ("semantic", "syntactic"))
    return found | {"mean": round(mean, 3), "processor seconds": round(sum(seconds for _, seconds in trained), 2)}


def read_pairs(path: Path) -> list[tuple[str, str, float]]:
    """Return the rated pairs of a file with two words and a rating in each line."""
    lines = (line.lower().split() for line in path.read_text("utf-8").splitlines())
    return [(first, second, float(rating)) for first, second, rating in lines]


def words_to_hold_out(vectors: w2v.KeyedVectors, pairs: list[Path]) -> set[str]:
    """Return the rarest third of the rated words that are in the vocabulary."""
    rated = {word for path in pairs for first, second, _ in read_pairs(path) for word in (first, second)}
    known = [word for word in vectors if word in rated]  # the most frequent first
    return set(known[-(len(known) // 3) :])


def measure_held_out(way: str, size: int, train: Train, held_out: set[str], pairs: list[Path]) -> dict[str, Any]:
    """Return the correlations with the vectors of held-out words made in one of WAYS."""
    vectors, _ = train("both", size)
    offset = vectors.header.ngram_offset

    def vector(word: str) -> NDArray[np.float32]:
        both = vectors[word].copy()
        if way == "zeros" and word in held_out:
            both[:offset] = 0
        return unit(both[offset:] if way == "subwords" else both)

    found: dict[str, Any] = {}
    for path in pairs:
        rated = read_pairs(path)
        known = [pair for pair in rated if all(vectors.is_known(word) or word in held_out for word in pair[:2])]
        cosines = np.array([vector(first) @ vector(second) for first, second, _ in known])
        ratings = np.array([rating for _, _, rating in known])
        unknown = np.array([not held_out.isdisjoint(pair[:2]) for pair in known])
        for label, chosen in (("held out", unknown), ("all", np.full(len(known), True))):
            correlation = stats.spearmanr(cosines[chosen], ratings[chosen]).statistic
            found[f"{path.stem}, {label}"] = round(100 * float(correlation), 3)
    return found


def views_markdown(document: dict[str, Any]) -> str:
    """Return a table with a row for each text, size and mixture, and a column for each measurement."""
    notes = "Accuracies in percent and Spearman's correlations × 100: mean over the seeds ± half of their range."
    return runs_markdown(document, "Two views in one vector", *table_of_means(document["runs"], GROUP), notes)


def main() -> None:
    parser = runs_parser(__doc__)
    parser.add_argument("--mixtures", nargs="+", default=["words", "words+subwords"], metavar="VIEW[+VIEW[*WEIGHT]]")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--megabytes", type=float, nargs="+", default=[], metavar="N")
    parser.add_argument("--vector-size", type=int, default=100)
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    if unknown := {part.split("*")[0] for each in options.mixtures for part in each.split("+")} - {*VIEWS}:
        parser.error(f"unknown views: {', '.join(sorted(unknown))}: choose from {', '.join(VIEWS)}")
    runs = open_runs(parser, options, views_markdown)
    size = options.vector_size
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.megabytes:
            texts = write_prefixes(options.corpus, options.megabytes, folder)
        else:
            texts = {options.corpus.stem: folder / "all.txt"}
            split_lines(options.corpus, folder / "all.txt")
        for (label, path), seed in itertools.product(texts.items(), options.seeds):
            train = trainer(path, seed)
            work: dict[str, Callable[[], dict[str, Any]]] = {}
            if options.held_out:
                vectors = train("words", size // 2)[0]
                assert vectors.counts is not None
                held_out = words_to_hold_out(vectors, options.pairs)
                kept = [row for row, word in enumerate(vectors.index_to_key) if word not in held_out]
                vocabulary = w2v.Vocabulary([vectors.index_to_key[row] for row in kept], vectors.counts[kept])
                train = trainer(path, seed, vocabulary)
                for way in WAYS:
                    work[f"held out: {way}"] = partial(measure_held_out, way, size, train, held_out, options.pairs)
            else:
                for mixture in options.mixtures:
                    work[mixture] = partial(measure, mixture, size, train, options.questions, options.pairs)
            for mixture, task in work.items():
                conditions = {**dict(zip(GROUP, (label, size, mixture), strict=True)), "seed": seed}
                runs.run_once(conditions, task)
    print(views_markdown(runs.document))


if __name__ == "__main__":
    main()
