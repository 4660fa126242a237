"""Which settings, kind of vectors and number of epochs are best for a text of a given size?

    python bench/sweep.py TEXT --questions FILE --pairs FILE … --json FILE [--megabytes 2 8 30]
                          [--settings '' epochs=20 'model=cbow sample=1e-3' …] [--vectors input combined …]
                          [--seeds 1 2 3] [--workers 1]

The program makes the tables of "How the defaults were chosen" in README.md. It trains with each of --settings,
otherwise with the defaults, on each of the first --megabytes of the text, and makes all kinds of vectors from the same
model. Runs are added to the JSON file; a run that is there already is not repeated.
"""

from __future__ import annotations

import itertools
import tempfile
import tomllib
from functools import partial
from pathlib import Path
from typing import Any, get_args

from common import format_mean, group_runs, open_runs, runs_markdown, runs_parser, write_prefixes
from quality import scores

import w2v
from w2v._losses.registry import Settings
from w2v._settings import WordVectors


def parse_settings(words: str) -> dict[str, Any]:
    """Parse settings of the form name=value, separated by spaces."""
    settings: dict[str, Any] = {}
    for name, value in (word.split("=", 1) for word in words.split()):
        try:
            settings |= tomllib.loads(f"{name} = {value}")
        except tomllib.TOMLDecodeError:  # text without quotes
            settings[name] = value
    return settings


def train_and_score(
    text: Path, settings: Settings, kinds: list[WordVectors], questions: Path, pairs: list[Path]
) -> dict[str, Any]:
    """Train; return the number of epochs, and the scores of each kind of vectors under "kind: score"."""
    model = w2v.train(text, settings=settings, views="words")
    measurements: dict[str, Any] = {"epochs": model.settings.epochs}
    for kind in kinds:
        values = scores(model.with_vectors(kind).wv, questions, pairs)
        measurements |= {f"{kind}: {name}": value for name, value in values.items()}
    return measurements


def sweep_markdown(document: dict[str, Any]) -> str:
    """Return a table with a row for each text and settings, and a column of scores for each kind of vectors."""
    columns: dict[str, list[str]] = {}
    for name in document["runs"][0]["measurements"]:
        kind, _, score = name.partition(": ")
        if score not in ("", "semantic", "syntactic"):
            columns.setdefault(kind, []).append(name)
    rows = []
    for (text, settings), runs in group_runs(document["runs"], ("text", "settings")).items():
        cells = [
            " / ".join(format_mean([run[name] for run in runs if run[name] is not None]) for name in names)
            for names in columns.values()
        ]
        rows.append([text, settings, str(runs[0]["epochs"]), str(len(runs)), *cells])
    score_names = " / ".join(name.partition(": ")[2] for name in next(iter(columns.values())))
    notes = f"Cells: {score_names}, in percent or correlations × 100, mean over the seeds ± half of their range."
    header = ["text", "settings", "epochs", "seeds", *columns]
    return runs_markdown(document, "How the defaults were chosen", header, rows, notes)


def main() -> None:
    parser = runs_parser(__doc__)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[], metavar="N")
    parser.add_argument("--settings", nargs="+", default=[""], metavar="NAME=VALUE")
    parser.add_argument("--vectors", nargs="+", choices=get_args(WordVectors), default=["input", "combined"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    runs = open_runs(parser, options, sweep_markdown)
    with tempfile.TemporaryDirectory() as folder:
        texts = {options.corpus.stem: options.corpus}
        if options.megabytes:
            texts = write_prefixes(options.corpus, options.megabytes, Path(folder))
        for (text, path), words, seed in itertools.product(texts.items(), options.settings, options.seeds):
            settings = Settings(**{"seed": seed, "workers": options.workers, **parse_settings(words)})
            conditions = {"text": text, "settings": words or "the defaults", "seed": seed}
            conditions |= {"vectors": " ".join(options.vectors)}
            work = partial(train_and_score, path, settings, options.vectors, options.questions, options.pairs)
            runs.run_once(conditions, work)
    print(sweep_markdown(runs.document))


if __name__ == "__main__":
    main()
