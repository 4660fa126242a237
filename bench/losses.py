"""Compare the losses: the table of Mikolov et al. 2013, extended by other losses and by perplexity.

    python bench/losses.py TEXT --questions FILE --json FILE [--only hs nce-5 …] [--samples 0 1e-5] [--seeds 1 2 3]

Skip-gram, 300 dimensions, window 5, 3 epochs, two threads, input rows, each loss with its default alpha. The last
hundredth of the text is held out for perplexity, per context word. Times are processor seconds of the training process,
which other processes hardly affect. The paper trained on a billion words of news. Runs are added to the JSON
file; a run that is there already is not repeated. `w2v compare-losses` compares all losses on a smaller text.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from common import (
    format_mean,
    group_runs,
    open_runs,
    processor_seconds,
    run_command,
    runs_markdown,
    runs_parser,
    w2v_command,
)
from quality import scores

import w2v
from w2v._losses.registry import Settings

BASE = Settings(model="skipgram", vector_size=300, window=5, ns_exponent=0.75, epochs=3, workers=2, vectors="input")
LOSSES: dict[str, dict[str, Any]] = {
    "ns-5": {"loss": "ns"},
    "ns-15": {"loss": "ns", "negative": 15},
    "hs": {"loss": "hs"},
    "nce-5": {"loss": "nce"},
    "nce-15": {"loss": "nce", "negative": 15},
    "sampled-5": {"loss": "sampled"},
    "sampled-15": {"loss": "sampled", "negative": 15},
    "hs, balanced": {"loss": "hs", "tree": "balanced"},
    "hs, clustered": {"loss": "hs", "tree": "clustered"},  # its tree is built from the vectors of a run with ns-5
    "class": {"loss": "class"},
}
DEFAULT_LOSSES = ["ns-5", "ns-15", "hs", "nce-5"]
# Accuracy on all questions, by sample: Mikolov et al. 2013b (arXiv:1310.4546), table 1.
PAPER = {0.0: {"ns-5": 59, "ns-15": 61, "hs": 47, "nce-5": 53}, 1e-5: {"ns-5": 60, "ns-15": 61, "hs": 55}}
COLUMNS = ("processor seconds", "syntactic", "semantic", "total", "perplexity", "unigram perplexity")
GROUP = ("loss", "sample")


def measure(command: list[str], path: Path, questions: Path, held_out: Path) -> dict[str, float | None]:
    """Run a training command; return its processor seconds, accuracies in percent, and perplexity."""
    _, seconds = processor_seconds(lambda: run_command(command))
    model = w2v.Model.load(path)
    result = w2v.perplexity(model, held_out)
    return scores(model.wv, questions, []) | {
        "processor seconds": round(seconds, 1),
        "perplexity": round(result.perplexity_as_trained, 1),
        "unigram perplexity": round(result.unigram_perplexity, 1),
    }


def hold_out(source: Path, train: Path, held_out: Path) -> None:
    """Split a text at a space before its last hundredth."""
    text = source.read_bytes()
    cut = text.index(b" ", len(text) * 99 // 100)
    train.write_bytes(text[:cut] + b"\n")
    held_out.write_bytes(text[cut + 1 :])


def losses_markdown(document: Mapping[str, Any]) -> str:
    rows = []
    for (name, sample), runs in group_runs(document["runs"], GROUP).items():
        cells = [format_mean([run[column] for run in runs]) for column in COLUMNS]
        paper = PAPER.get(sample, {}).get(name, "")
        rows.append([name, f"{sample:g}", str(len(runs)), *cells, str(paper)])
    notes = [
        "Mean over the seeds ± half of their range. A model trained with subsampling underestimates frequent words, so",
        "its perplexity is high. The time to train the vectors for a clustered tree is not counted. The column paper",
        "has the accuracy on all questions in table 1 of Mikolov et al. 2013, Distributed Representations of Words and",
        "Phrases (arXiv:1310.4546).",
    ]
    return runs_markdown(document, "Losses", [*GROUP, "seeds", *COLUMNS, "paper"], rows, *notes)


def main() -> None:
    parser = runs_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(LOSSES), default=DEFAULT_LOSSES)
    parser.add_argument("--samples", type=float, nargs="+", default=[0.0, 1e-5])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    runs = open_runs(parser, options, losses_markdown)
    with tempfile.TemporaryDirectory() as folder:
        text, held_out, model = (Path(folder) / name for name in ("train.txt", "held-out.txt", "model.safetensors"))
        vectors = Path(folder) / "clusters.safetensors"
        hold_out(options.corpus, text, held_out)
        for seed, sample, name in itertools.product(options.seeds, options.samples, options.only):
            overrides = LOSSES[name]
            if overrides.get("tree") == "clustered":
                overrides = {**overrides, "tree_vectors": str(vectors)}
                if not vectors.exists():
                    run_command(w2v_command(replace(BASE, vector_size=100), text, vectors))
            command = w2v_command(replace(BASE, sample=sample, seed=seed, **overrides), text, model)
            conditions = dict(zip(GROUP, (name, sample), strict=True))
            runs.run_once({**conditions, "seed": seed}, partial(measure, command, model, options.questions, held_out))
    print(losses_markdown(runs.document))


if __name__ == "__main__":
    main()
