"""Do losses of the literature do what their papers say?

    python bench/objectives.py TEXT --questions FILE --pairs FILE [--share 0.01] [--held-out 0.002] [--epochs 3]
                               [--size 96] [--max-vocab 10000] [--models cbow] [--alphas 0.05 …]
                               [--only softmax dsoftmax mos charcnn] --json FILE

The full softmax, differentiated softmax with about as many parameters, a mixture of softmaxes, and output vectors from
characters, on the first --share of a text with the --max-vocab most frequent words of it, without subsampling, by one
thread; each with its default alpha or with --alphas. Seconds are processor time of training. Perplexity is of the text
that follows, for all words and for the rarer half of the vocabulary; rank is of 2000
contexts and words. Runs are added to the JSON file; one that is in it already is not repeated.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Runs, runs_markdown

import w2v
from w2v.evaluation.perplexity import Text
from w2v.evaluation.rank import rank
from w2v.losses.registry import Settings
from w2v.text.corpus import Corpus
from w2v.text.idstore import read_corpus
from w2v.training.model import Model

KEYS = ["model", "objective", "alpha"]
FIGURES = ["parameters", "of outputs", "seconds", "perplexity", "rarer half", "analogies", "pairs", "rank"]


def slices(corpus: Path, share: float, held_out: float, folder: Path) -> tuple[Path, Path]:
    """The first part of a text, and what follows it, in lines of 1000 words."""
    size, paths = corpus.stat().st_size, []
    with corpus.open("rb") as text:
        for name, part in ("train", share), ("held-out", held_out):
            words = text.read(round(part * size)).split()
            path = folder / f"{name}.txt"
            path.write_bytes(b"\n".join(b" ".join(words[at : at + 1000]) for at in range(0, len(words), 1000)))
            paths.append(path)
    return paths[0], paths[1]


def rare_perplexity(model: Model, path: Path) -> float:
    """Perplexity of a CBOW model over the words in the rarer half of the vocabulary."""
    with read_corpus(Corpus(path)) as store:
        text = Text(store, model, Path(tempfile.gettempdir()))
    contexts = text.contexts(np.arange(len(text)))
    positions = np.flatnonzero((text.words >= len(model.vocabulary) // 2) & (contexts > 0))
    means = np.zeros((len(positions), model.inputs.shape[1]), np.float32)
    for inside, others in text.beside(positions, *text.sides):
        means += model.inputs[others] * inside[:, None]
    means /= contexts[positions, None]
    total = 0.0
    for part in np.array_split(np.arange(len(positions)), -(-len(positions) // 512)):
        logs = model.log_probabilities_of(means[part], np.arange(len(part)), text.words[positions[part]])
        total -= float(logs.sum(dtype=np.float64))
    return float(np.exp(total / len(positions)))


def equal_blocks(size: int, words: int) -> tuple[str, int]:
    """Blocks of lengths 4 : 2 : 1 for a tenth, three tenths and six tenths of the words, and their sum.

    Inputs of that sum and outputs together have about as many values as two matrices of `size`.
    """
    unit = round(2 * size / (7 + 4 * 0.1 + 2 * 0.3 + 0.6))
    return f"{4 * unit}:{words // 10},{2 * unit}:{3 * words // 10},{unit}", 7 * unit


def trained(text: Path, settings: dict[str, Any]) -> tuple[Model, float]:
    """A model, and the processor seconds of training, without allocation."""
    started = 0.0

    def report(progress: w2v.Progress) -> None:
        nonlocal started
        if progress.phase == "train" and not started:
            started = time.process_time()

    model = w2v.train(text, progress=report, **settings)
    return model, time.process_time() - started


def measure(text: Path, held_out: Path, questions: Path, pairs: Path, settings: dict[str, Any]) -> dict[str, Any]:
    model, seconds = trained(text, settings)
    outputs = sum(array.size for array in model.learnt.values())
    metrics = [
        model.inputs.size + outputs,
        outputs,
        seconds,
        w2v.perplexity(model, held_out).perplexity_as_trained,
        rare_perplexity(model, held_out),
        100 * (w2v.analogies(model.wv, questions).accuracy or 0.0),
        100 * (w2v.word_pairs(model.wv, pairs).spearman or 0.0),
        rank(model).rank,
    ]
    return dict(zip(FIGURES, metrics, strict=True))


def shown(value: float) -> str:
    return f"{value:,.0f}" if isinstance(value, int) or value >= 100 else f"{value:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, metavar="TEXT")
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--held-out", type=float, default=0.002)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--max-vocab", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--mixtures", type=int, default=4)
    parser.add_argument("--models", nargs="+", default=["cbow"])
    parser.add_argument("--alphas", nargs="+", type=float, default=[None])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--json", type=Path, metavar="FILE", required=True)
    options = parser.parse_args()
    runs = Runs(options.json)
    with tempfile.TemporaryDirectory() as name:
        text, held_out = slices(options.corpus, options.share, options.held_out, Path(name))
        blocks, sum_of_lengths = equal_blocks(options.size, options.max_vocab)
        chosen: dict[str, dict[str, Any]] = {
            "softmax": {},
            "dsoftmax": {"blocks": blocks, "vector_size": sum_of_lengths},
            "mos": {"mixtures": options.mixtures},
            "charcnn": {"negative": 20, "ns_exponent": 0.75},
        }
        base = {"vector_size": options.size, "epochs": options.epochs, "max_vocab": options.max_vocab}
        base |= {"window": 5, "sample": 0, "min_count": 1, "workers": 1}
        for model, loss, alpha in itertools.product(options.models, options.only or chosen, options.alphas):
            alpha = alpha or Settings(model=model, loss=loss).start_alpha
            settings = base | {"model": model, "loss": loss, "alpha": alpha} | chosen[loss]
            key = {"model": model, "objective": loss, "alpha": alpha}
            runs.make(key, partial(measure, text, held_out, options.questions, options.pairs, settings))
    cells = [
        [*(str(run[name]) for name in KEYS), *(shown(run["figures"][name]) for name in FIGURES)]
        for run in sorted(runs.document["runs"], key=lambda run: [str(run[name]) for name in KEYS])
    ]
    print(runs_markdown(runs.document, "Objectives", [*KEYS, *FIGURES], cells))


if __name__ == "__main__":
    main()
