"""How good, and how fast, are vectors of documents, compared with gensim's Doc2Vec?

    python bench/documents.py [--sets R8 mr] [--repeats 3] [--json FILE]

Each program trains vectors of the training texts of each set, and infers vectors of its test texts. A logistic
regression on the training vectors, scaled to length 1, predicts the labels of the test texts. "finds itself" is the
share of 300 training texts whose inferred vector is nearest to their own trained vector. Times are processor seconds of
all threads, from texts in memory to a model, and of inferring the test texts. The first rows have equal settings
(EQUAL, RATES) and two threads. Then come w2v's defaults, means of word vectors (encode), and the classifier, which
learns from the labels.
The sets are in ../shared/labels.
"""

from __future__ import annotations

import lzma
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
from common import BENCH, benchmark_parser, report_results, summarise
from gensim.models.doc2vec import Doc2Vec, TaggedDocument
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import w2v
from w2v._settings import Documents

Matrix = NDArray[np.float32]
Run = dict[str, float]

KINDS: tuple[Documents, ...] = ("dbow", "dm", "dbow+words")
EQUAL: dict[str, Any] = {"vector_size": 100, "epochs": 20, "window": 5, "min_count": 2, "sample": 1e-4, "workers": 2}
RATES: dict[str, Any] = {"alpha": 0.025, "min_alpha": 0.0001, "ns_exponent": 0.75}
FOUND = 300  # training texts to find
SILENT: dict[str, Any] = {"progress": lambda _: None}


def read(name: str, part: str) -> tuple[list[str], list[str]]:
    """Return the labels and the texts of a set in fastText's lines."""
    content = lzma.decompress((BENCH.parent.parent / f"shared/labels/{name}.{part}.xz").read_bytes()).decode()
    labels, texts = zip(*(f"{line} ".split(" ", 1) for line in content.splitlines()), strict=True)
    return list(labels), list(texts)


def unit(vectors: Matrix) -> Matrix:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Matrix = vectors / np.maximum(lengths, 1e-12)
    return scaled


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a function and its processor seconds, of all threads."""
    start = time.process_time()
    return function(), time.process_time() - start


def score(vectors: Matrix, infer: Callable[[list[str]], Matrix], name: str, with_itself: bool = True) -> Run:
    """Score the vectors of the training texts of a set and a function that infers vectors."""
    (labels, texts), (test_labels, test_texts) = read(name, "train"), read(name, "test")
    inferred, seconds = timed(lambda: infer(test_texts))
    model = LogisticRegression(C=10, max_iter=1000).fit(unit(vectors), labels)
    found = {"accuracy": 100 * float(model.score(unit(inferred), test_labels)), "infer": seconds}
    if with_itself:
        chosen = np.random.default_rng(0).permutation(len(texts))[:FOUND]
        nearest = (unit(infer([texts[row] for row in chosen])) @ unit(vectors).T).argmax(axis=1)
        found["finds itself"] = 100 * float(np.mean(nearest == chosen))
    return found


def train_ours(kind: Documents, settings: dict[str, Any], name: str, seed: int) -> Run:
    texts = read(name, "train")[1]
    model, seconds = timed(lambda: w2v.train(texts, documents=kind, seed=seed, **SILENT, **settings))
    return {"train": seconds} | score(model.documents.vectors, model.infer, name)


def train_gensim(kind: str, name: str, seed: int) -> Run:
    texts = [TaggedDocument(text.split(), [number]) for number, text in enumerate(read(name, "train")[1])]
    settings = {"dm": int(kind == "dm"), "dbow_words": int(kind == "dbow+words"), "seed": seed}
    model, seconds = timed(lambda: Doc2Vec(texts, **settings, **EQUAL, **RATES))
    infer = lambda new: np.array([model.infer_vector(text.split()) for text in new])  # noqa: E731
    return {"train": seconds} | score(model.dv.vectors, infer, name)


def encode(name: str, seed: int) -> Run:
    texts = read(name, "train")[1]
    model, seconds = timed(lambda: w2v.train(texts, seed=seed, min_count=2, workers=2, **SILENT))
    infer = partial(w2v.encode, model)
    return {"train": seconds} | score(infer(texts), infer, name, with_itself=False)


def classify(name: str, seed: int) -> Run:
    (labels, texts), (test_labels, test_texts) = read(name, "train"), read(name, "test")
    model, seconds = timed(lambda: w2v.train_classifier(texts, labels, seed=seed, workers=2, **SILENT))
    predictions, infer = timed(lambda: model.predict(test_texts))
    right = [bool(own) and own[0][0] == label for own, label in zip(predictions, test_labels, strict=True)]
    return {"train": seconds, "accuracy": 100 * mean(right), "infer": infer}


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=3)
    parser.add_argument("--sets", nargs="+", default=["R8", "mr"])
    options = parser.parse_args()
    programs: dict[str, Callable[[str, int], Run]] = {}
    for kind in KINDS:
        programs[f"w2v {kind}, equal settings"] = partial(train_ours, kind, EQUAL | RATES)
        programs[f"gensim {kind}, equal settings"] = partial(train_gensim, kind)
    programs |= {f"w2v {kind}, its defaults": partial(train_ours, kind, {"workers": 2}) for kind in KINDS}
    programs |= {"w2v encode": encode, "w2v classify": classify}
    found: dict[str, dict[str, list[Run]]] = {name: {program: [] for program in programs} for name in options.sets}
    for seed in range(1, options.repeats + 1):
        for name in options.sets:
            for program, run in programs.items():
                found[name][program].append(run(name, seed))
                print(name, program, found[name][program][-1], file=sys.stderr)
    tables = {
        f"{name}, {key}": {
            program: summarise([run[key] for run in measured])
            for program, measured in runs.items()
            if key in measured[0]
        }
        for name, runs in found.items()
        for key in ("accuracy", "finds itself", "train", "infer")
    }
    report_results(options, "Vectors of documents", "Accuracies in %, times in processor seconds.", **tables)


if __name__ == "__main__":
    main()
