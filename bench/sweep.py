"""Which kind of vectors, how many epochs, which settings, on texts of which size? "Out of the box" in README.md.

    python bench/sweep.py TEXT --questions FILE --pairs FILE … --json FILE [--megabytes 2 8 30]
                          [--settings '' epochs=20 'model=cbow sample=1e-3' …] [--vectors input combined …]
                          [--seeds 1 2 3] [--workers 1]

Each of --settings is trained on each beginning of the text, otherwise with the defaults, and the kinds of vectors are
made of the same model. Runs are added to the JSON file; one that is there already is not made again.
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
from w2v.losses.registry import Settings
from w2v.settings import WordVectors


def settings_of(words: str) -> dict[str, Any]:
    """Settings from name=value, separated by spaces."""
    found: dict[str, Any] = {}
    for name, value in (word.split("=", 1) for word in words.split()):
        try:
            found |= tomllib.loads(f"{name} = {value}")
        except tomllib.TOMLDecodeError:  # a word
            found[name] = value
    return found


def trained(
    text: Path, settings: Settings, kinds: list[WordVectors], questions: Path, pairs: list[Path]
) -> dict[str, Any]:
    """The epochs of a training, and the scores of each kind of vectors, by "kind: score"."""
    model = w2v.train(text, settings=settings)
    found: dict[str, Any] = {"epochs": model.settings.epochs}
    for kind in kinds:
        figures = scores(model.with_vectors(kind).wv, questions, pairs)
        found |= {f"{kind}: {name}": value for name, value in figures.items()}
    return found


def sweep_markdown(document: dict[str, Any]) -> str:
    """A row for each text and settings, a column for each kind: total / pairs … / rare neighbours, means over seeds."""
    columns: dict[str, list[str]] = {}
    for name in document["runs"][0]["figures"]:
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
    judged = " / ".join(name.partition(": ")[2] for name in next(iter(columns.values())))
    notes = f"Cells: {judged}, in percent or correlations × 100, mean over the seeds ± half of their range."
    return runs_markdown(document, "Out of the box", ["text", "settings", "epochs", "seeds", *columns], rows, notes)


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
        whole = {options.corpus.stem: options.corpus}
        texts = write_prefixes(options.corpus, options.megabytes, Path(folder)) if options.megabytes else whole
        for (text, path), words, seed in itertools.product(texts.items(), options.settings, options.seeds):
            settings = Settings(**{"seed": seed, "workers": options.workers, **settings_of(words)})
            key = {"text": text, "settings": words or "the defaults", "seed": seed}
            key |= {"vectors": " ".join(options.vectors)}
            runs.run_once(key, partial(trained, path, settings, options.vectors, options.questions, options.pairs))
    print(sweep_markdown(runs.document))


if __name__ == "__main__":
    main()
