"""Read, train, observe, stop, load and predict with several threads.

The build that finds data races runs this (see variants.py). Four threads train every model and loss while this one
reads their progress; one run is stopped. The matrices are small, because the sanitizer is slow for addresses that
several threads write on purpose.
"""

import itertools
import sys
import tempfile
from pathlib import Path

import networkx
import numpy as np

import w2v
from tests.faults.variants import assert_modules_of_variant
from w2v._graph.graph import Graph
from w2v._graph.walks import WalkOptions, walk_blocks
from w2v._kernel.plan import INSTRUCTION_SETS
from w2v._kernels import LOSS_KINDS, step_for
from w2v._system.threads import map_in_order
from w2v._text._text import PADDING
from w2v._text.corpus import Corpus
from w2v._text.idstore import ReadingOptions, read_corpus

WORKERS = 4
RUNS = [(loss, False) for loss in LOSS_KINDS] + [(loss, True) for loss in ("ns", "nce", "sampled", "hs")]


class Stop(Exception):
    """Raised to stop a run during training."""


def stop_training(progress: w2v.Progress) -> None:
    if progress.phase == "train" and progress.done:
        raise Stop


def main() -> None:
    assert_modules_of_variant()
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        lines = (" ".join(f"w{word}" for word in random.zipf(1.3, 20) % 5000) for _ in range(5_000))
        path.write_text("\n".join(lines))
        with read_corpus(Corpus(path), workers=WORKERS) as store, read_corpus(Corpus(path), workers=1) as slow:
            assert np.array_equal(store.ids, slow.ids)
        read_corpus(Corpus(path), ReadingOptions(max_types=100), workers=WORKERS).close()
        for model, (loss, deterministic) in itertools.product(("skipgram", "cbow"), RUNS):
            trained = w2v.train(
                path, model=model, loss=loss, deterministic=deterministic, workers=WORKERS, vector_size=8, max_vocab=64,
                epochs=2, progress=lambda _: None,
            )  # fmt: skip
            assert trained.metrics["tokens_trained"] == 2 * trained.metrics["tokens"]
            order = "deterministic" if deterministic else ""
            print(model, loss, order, f"{trained.metrics['tokens_trained']:,} tokens", flush=True)
        try:
            w2v.train(path, workers=WORKERS, max_vocab=64, vector_size=8, epochs=1000, progress=stop_training)
        except Stop:
            print("stopped", flush=True)
        for name in ("m.bin", "m.txt", "m.safetensors"):
            trained.save(Path(folder, name))
            assert len(w2v.load(Path(folder, name))) == len(trained.vocabulary)
        texts = path.read_text().splitlines()[:500]
        block = "\n".join([*texts, ""]).encode() + PADDING
        for size in (4, 16):  # with 2 labels, threads share the sums of rows, or also their products
            options = {"pooling": "mean", "classifier": "embedded", "subwords": "2-3", "epochs": 1, "buckets": 1000}
            classifier = w2v.train_classifier(texts, [1, 2] * 250, vector_size=size, workers=WORKERS, **options)
            found = [each.probabilities for each in map_in_order(classifier.predict_lines, [block] * 8, WORKERS)]
            assert np.array_equal(found, found[:1] * 8)
        print("labels", flush=True)
    edges = [(int(a), int(b)) for a, b in random.integers(0, 2000, (20_000, 2))]
    graph = Graph.of(networkx.Graph(edges), weighted=True, directed=False)
    options = WalkOptions(p=0.5, q=2)
    for one, other in zip(walk_blocks(graph, options, workers=WORKERS), walk_blocks(graph, options), strict=True):
        assert np.array_equal(one, other)
    print("walks", flush=True)
    print("instruction sets here:", *filter(step_for, INSTRUCTION_SETS))


if __name__ == "__main__":
    sys.exit(main())
