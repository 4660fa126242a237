"""How good are the vectors of each model, over several seeds, compared with unshared negatives and with gensim?

    python bench/quality.py TEXT --questions FILE --pairs FILE … --json FILE [--only sg-ns …] [--tools w2v …]
                            [--seeds 1 2 3] [--alpha A] [--epochs 5] [--cbow-gradient corrected|faithful]
    python bench/quality.py --table FILE

300 dimensions, window 5, negative 5, sample 1e-4, min_count 5, two threads. Every run is a process of its own, so
time and memory are those of the whole process. The tools: `w2v`; `bf16`, w2v with `--storage bf16`; `per-pair`, w2v
with one step per context word, as in word2vec.c (not for CBOW, which takes one step per window anyway); `gensim`,
from the text in lines of 1000 words, with the same alpha. Runs are added to the JSON file; one that is in it already
is not repeated.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    grouped,
    mean_and_half,
    open_runs,
    processor_seconds,
    run,
    runs_markdown,
    runs_parser,
    split_lines,
    w2v_command,
)
from peers import BASE, MODES, gensim_command

from w2v.evaluation.evaluate import evaluate
from w2v.losses.registry import Settings
from w2v.text.vocabulary import Vocabulary
from w2v.vectors.benchmarks import analogies, word_pairs
from w2v.vectors.keyed import KeyedVectors, load

CONFIGURATIONS = {
    "sg-ns": BASE,
    "sg-hs": replace(BASE, loss="hs"),
    "cbow-ns": replace(BASE, model="cbow"),
    "cbow-hs": replace(BASE, model="cbow", loss="hs"),
}
TOOLS = ("w2v", "bf16", "per-pair", "gensim")
GROUP = ("configuration", "tool", "alpha", "epochs", "gradient")  # what runs over several seeds have in common


def scores(vectors: KeyedVectors, questions: Path, pairs: list[Path]) -> dict[str, float | None]:
    """Accuracies in percent and Spearman's correlations × 100; with counts, rare words among neighbours in percent."""
    analogy = analogies(vectors, questions)
    found = {"semantic": analogy.semantic, "syntactic": analogy.syntactic, "total": analogy.accuracy}
    found |= {path.stem: word_pairs(vectors, path).spearman for path in pairs}
    if vectors.counts is not None:
        found |= {one.measure: one.scores[0].value for one in evaluate(vectors) if one.measure == "rare neighbours"}
    return {name: None if value is None else round(100 * value, 3) for name, value in found.items()}


def measure(
    command: list[str], model: Path, questions: Path, pairs: list[Path], counts: Vocabulary | None = None
) -> dict[str, float | None]:
    """The scores of the model that a command makes, its seconds and megabytes; `counts` are those of its words."""
    (printed, wall), processors = processor_seconds(lambda: run(command))
    vectors = load(model)
    if counts:
        known = dict(zip(counts.words, counts.counts.tolist(), strict=True))
        vectors.counts = np.array([known.get(word, 0) for word in vectors.index_to_key])
    times = {"seconds": round(wall, 2), "processor seconds": round(processors, 2)}
    peak = {"peak MB": round(json.loads(printed)["peak_memory_bytes"] / 1e6, 1)} if printed.startswith("{") else {}
    return scores(vectors, questions, pairs) | times | peak


def quality_markdown(document: dict[str, Any]) -> str:
    """A row for each configuration and tool: mean over the seeds ± half of the range."""
    groups = grouped(document["runs"], GROUP)
    columns = list(dict.fromkeys(name for runs in groups.values() for metrics in runs for name in metrics))
    rows = []
    for group, runs in sorted(groups.items(), key=lambda each: (list(CONFIGURATIONS).index(each[0][0]), each[0][1:])):
        cells = [mean_and_half([each[name] for each in runs if each.get(name) is not None]) for name in columns]
        rows.append([*map(str, group), str(len(runs)), *cells])
    notes = "Accuracies in percent, Spearman's correlations × 100: mean over the seeds ± half of their range."
    return runs_markdown(document, "Quality", [*GROUP, "seeds", *columns], rows, notes)


def main() -> None:
    parser = runs_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(CONFIGURATIONS), default=list(CONFIGURATIONS))
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=["w2v", "per-pair"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--alpha", type=float, help="[that of w2v for the model and loss]")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--cbow-gradient", choices=["corrected", "faithful"], default="faithful")
    options = parser.parse_args()
    runs = open_runs(parser, options, quality_markdown)
    if runs.document.setdefault("corpus", options.corpus.name) != options.corpus.name:
        parser.error(f"{options.json} holds runs on {runs.document['corpus']}: name another file")
    with tempfile.TemporaryDirectory() as name:
        model, lines = Path(name) / "model.bin", Path(name) / "lines.txt"
        for only, tool, seed in itertools.product(options.only, options.tools, options.seeds):
            settings: Settings = replace(
                CONFIGURATIONS[only],
                per_pair=tool == "per-pair",
                storage="bf16" if tool == "bf16" else "float32",
                alpha=options.alpha,
                epochs=options.epochs,
                seed=seed,
                cbow_gradient=options.cbow_gradient,
            )
            gradient = "" if tool == "gensim" or settings.model != "cbow" else settings.cbow_gradient
            key = {"configuration": only, "tool": tool, "alpha": settings.start_alpha, "epochs": settings.epochs}
            key |= {"gradient": gradient, "seed": seed}
            if tool == "per-pair" and settings.model == "cbow":
                continue
            if tool == "gensim" and not lines.exists():
                split_lines(options.corpus, lines)
            commands = {"gensim": gensim_command(settings, MODES[1], lines, model)}
            command = commands.get(tool, w2v_command(settings, options.corpus, model))
            runs.make(key, partial(measure, command, model, options.questions, options.pairs))
    print(quality_markdown(runs.document))


if __name__ == "__main__":
    main()
