"""The losses side by side: the table of Mikolov et al. 2013, with the other losses, and with perplexity.

    python bench/losses.py TEXT --questions FILE --json FILE [--only hs nce-5 …] [--samples 0 1e-5] [--seeds 1 2 3]
                           [--share 0.02] [--max-vocab 3000]

Skip-gram, 300 dimensions, window 5, 3 epochs, two threads, input rows, each loss with its default alpha. The last
hundredth of the text is held out for perplexity, per context word. Time is what the processors gave to the process that
trained, so that neighbours count little. The paper trained on a thousand million words of news. Runs are added to the
JSON file; one that is there already is not made again. --share takes the first part of the text and --max-vocab its
most frequent words, few enough for the full softmax.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from common import (
    W2V,
    grouped,
    mean_and_half,
    open_runs,
    processor_seconds,
    run,
    runs_markdown,
    runs_parser,
    w2v_command,
)

from w2v.losses.registry import Settings

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
    "hs, clustered": {"loss": "hs", "tree": "clustered"},  # by the vectors of a run with ns-5
    "class": {"loss": "class"},
    "softmax": {"loss": "softmax"},
}
MAIN = ["ns-5", "ns-15", "hs", "nce-5"]
PAPER = {  # minutes, syntactic, semantic, total: Mikolov et al. 2013b (arXiv:1310.4546), table 1
    ("ns-5", 0.0): (38, 63, 54, 59),
    ("ns-15", 0.0): (97, 63, 58, 61),
    ("hs", 0.0): (41, 53, 40, 47),
    ("nce-5", 0.0): (38, 60, 45, 53),
    ("ns-5", 1e-5): (14, 61, 58, 60),
    ("ns-15", 1e-5): (36, 61, 61, 61),
    ("hs", 1e-5): (21, 52, 59, 55),
}
COLUMNS = ("processor seconds", "syntactic", "semantic", "total", "perplexity")
PAPER_COLUMNS = ["paper: minutes", "paper: syntactic", "paper: semantic", "paper: total"]
WHOLE: dict[str, Any] = {"share": 1.0, "max_vocab": None}  # of the text, and of its words


def measure(command: list[str], model: Path, questions: Path, held_out: Path) -> dict[str, float | None]:
    """The metrics of a run: processor seconds, accuracies in percent, perplexity."""
    _, seconds = processor_seconds(lambda: run(command))
    analogy = json.loads(run([*W2V, "analogy", model, questions, "--top", "30000", "--json"])[0])
    perplexity = json.loads(run([*W2V, "perplexity", model, held_out, "--json"])[0])
    shares = {"syntactic": analogy["syntactic"], "semantic": analogy["semantic"], "total": analogy["accuracy"]}
    return {
        "processor seconds": round(seconds, 1),
        **{name: round(100 * (value or 0), 2) for name, value in shares.items()},
        "perplexity": round(perplexity["perplexity_as_trained"], 1),
        "unigram_perplexity": round(perplexity["unigram_perplexity"], 1),
    }


def hold_out(source: Path, share: float, train: Path, held_out: Path) -> None:
    """Split the first part of a text at a space before its last hundredth."""
    text = source.read_bytes()
    text = text[: int(len(text) * share)]
    cut = text.index(b" ", len(text) * 99 // 100)
    train.write_bytes(text[:cut] + b"\n")
    held_out.write_bytes(text[cut + 1 :])


def losses_markdown(document: Mapping[str, Any]) -> str:
    groups = grouped(document["runs"], ("loss", "sample"))
    whole = document["part"] == WHOLE  # as the paper's metrics are
    rows = []
    for sample, name in itertools.product(sorted({key[1] for key in groups}), LOSSES):
        runs = groups.get((name, sample), [])
        if runs:
            paper = [str(value) for value in PAPER.get((name, sample), ("",) * 4)]
            cells = [mean_and_half([each[column] for each in runs]) for column in COLUMNS]
            rows.append([name, f"{sample:g}", str(len(runs)), *cells, *(paper if whole else [])])
    header = ["loss", "sample", "seeds", *COLUMNS, *(PAPER_COLUMNS if whole else [])]
    unigram = document["runs"][0]["figures"]["unigram_perplexity"]
    notes = [
        f"Mean over the seeds ± half of their range. The unigram model's perplexity is {unigram:,.0f}.",
        "A model trained with subsampling underestimates frequent words, so its perplexity is high. The time to train",
        "the vectors for a clustered tree is not counted.",
    ]
    if whole:
        notes.append(
            "Paper: Mikolov et al. 2013, Distributed Representations of Words and Phrases, table 1 (arXiv:1310.4546)."
        )
    return runs_markdown(document, "Losses", header, rows, *notes)


def main() -> None:
    parser = runs_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(LOSSES), default=MAIN)
    parser.add_argument("--samples", type=float, nargs="+", default=[0.0, 1e-5])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--share", type=float, default=WHOLE["share"])
    parser.add_argument("--max-vocab", type=int)
    options = parser.parse_args()
    runs = open_runs(parser, options, losses_markdown)
    part = {"share": options.share, "max_vocab": options.max_vocab}
    if runs.document.setdefault("part", part) != part:
        parser.error(f"{options.json} holds runs on another part of the text: name another file")
    base = replace(BASE, max_vocab=options.max_vocab)
    with tempfile.TemporaryDirectory() as folder:
        text, held_out, model = (Path(folder) / name for name in ("train.txt", "held-out.txt", "model.safetensors"))
        vectors = Path(folder) / "clusters.safetensors"
        hold_out(options.corpus, options.share, text, held_out)
        for seed, sample, name in itertools.product(options.seeds, options.samples, options.only):
            changed = LOSSES[name]
            if changed.get("tree") == "clustered":
                changed = {**changed, "tree_vectors": str(vectors)}
                if not vectors.exists():
                    run(w2v_command(replace(base, vector_size=100), text, vectors))
            command = w2v_command(replace(base, sample=sample, seed=seed, **changed), text, model)
            key = {"loss": name, "sample": sample, "seed": seed}
            runs.make(key, partial(measure, command, model, options.questions, held_out))
    print(losses_markdown(runs.document))


if __name__ == "__main__":
    main()
