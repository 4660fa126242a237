"""Which settings are best for each model and loss? The defaults in Settings are from this table.

    python bench/defaults.py --corpora TEXT … --questions FILE --pairs FILE … --json FILE [--only skipgram-ns …]

Everything but what a row names is the default of `w2v train`, except for window 5, sample 1e-3, 5 epochs, input rows
and two threads.
`class` and `softmax` are slow: they see the first 5 and 3 MB of each text, softmax with its 2000 most frequent words.
The score is the mean of the accuracy on the questions (top 30,000) and the correlations with the pairs, × 100, over all
corpora. Runs are added to the JSON file; one that is there already is not made again.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from common import grouped, mean_and_half, open_runs, runs_markdown, runs_parser, split_lines, w2v_command
from quality import measure

from w2v.losses.registry import LOSSES as ALL_LOSSES
from w2v.losses.registry import Settings
from w2v.settings import ModelName

BASE = Settings(window=5, workers=2, epochs=5, vectors="input", sample=1e-3, ns_exponent=0.75)
LOSSES = [name for name, kind in ALL_LOSSES.items() if "cython" in kind.kernels]
MEGABYTES = {"class": 5, "softmax": 3}
MAX_WORDS = 2000
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "fixed windows": {"shrink_windows": False},
    "min_alpha = alpha / 10": {"min_alpha": 0.1},  # times alpha
    "corrected": {"cbow_gradient": "corrected"},
}
GROUP = ("model", "loss", "alpha", "variant")


def score(runs: list[dict[str, Any]], columns: Sequence[str]) -> float:
    """The mean over the runs of the mean of accuracy and correlations."""
    return statistics.mean(statistics.mean(run[name] or 0.0 for name in columns) for run in runs)


def defaults_markdown(document: Mapping[str, Any]) -> str:
    judged = ("total", *document["pairs"])
    corpora = list(dict.fromkeys(run["corpus"] for run in document["runs"]))
    rows: list[list[str]] = []
    by_group = {corpus: grouped((r for r in document["runs"] if r["corpus"] == corpus), GROUP) for corpus in corpora}
    groups = grouped(document["runs"], GROUP)
    for model, loss in itertools.product(get_args(ModelName), LOSSES):
        complete = {key: runs for key, runs in groups.items() if key[:2] == (model, loss) and len(runs) == len(corpora)}
        best = max(complete, key=lambda key: score(complete[key], judged), default=None)
        for key in sorted(complete, key=lambda key: (key[3] != "", key[3], key[2])):
            metrics = [by_group[corpus][key][0] for corpus in corpora]
            cells = [mean_and_half([run[name] or 0.0]) for run in metrics for name in judged]
            mark = "**" * (key == best)
            rows.append([*map(str, key), *cells, f"{mark}{score(complete[key], judged):.1f}{mark}"])
    columns = [f"{corpus}: {name}" for corpus in corpora for name in ("questions", *judged[1:])]
    notes = "Accuracies in percent, Spearman's correlations × 100; the best score of each model and loss is bold."
    return runs_markdown(document, "Defaults", [*GROUP, *columns, "score"], rows, notes)


def main() -> None:
    pairs = [f"{model}-{loss}" for model, loss in itertools.product(get_args(ModelName), LOSSES)]
    parser = runs_parser(__doc__, corpora=True)
    parser.add_argument("--only", nargs="+", choices=pairs, default=pairs)
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.0125, 0.025, 0.05, 0.1])
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=[""])
    options = parser.parse_args()
    runs = open_runs(parser, options, defaults_markdown)
    runs.document["pairs"] = [path.stem for path in options.pairs]
    with tempfile.TemporaryDirectory() as folder:
        model, part = Path(folder) / "model.bin", Path(folder) / "part.txt"
        for only, corpus in itertools.product(options.only, options.corpus):
            name, loss = only.split("-")
            text = corpus
            if loss in MEGABYTES:
                split_lines(corpus, part, MEGABYTES[loss] * 1e6 / corpus.stat().st_size)
                text = part
            for alpha, variant in itertools.product(options.alphas, options.variants):
                settings = replace(BASE, model=name, loss=loss, alpha=alpha)
                settings = replace(settings, max_vocab=MAX_WORDS if loss == "softmax" else None)
                changed = VARIANTS[variant]
                if "min_alpha" in changed:
                    changed = {"min_alpha": changed["min_alpha"] * alpha}
                settings = replace(settings, **changed)
                command = w2v_command(settings, text, model)
                key = {"model": name, "loss": loss, "alpha": alpha, "variant": variant, "corpus": corpus.stem}
                runs.make(key, partial(measure, command, model, options.questions, options.pairs))
    print(defaults_markdown(runs.document))


if __name__ == "__main__":
    main()
