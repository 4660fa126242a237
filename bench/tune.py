"""Is `w2v tune` better than the defaults on questions and pairs that it has not seen?

    python bench/tune.py --corpora TEXT … --questions FILE --pairs FILE … --json FILE [--time 10m] [--megabytes 2 8]

The program assigns alternate lines of each section to two halves. `w2v tune` chooses settings with the first half, or
with held-out text; the second half scores all models. --megabytes trains on these first megabytes of the first corpus.
Runs are added to the JSON file; a run that is there already is not repeated.
"""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from common import W2V, open_runs, runs_markdown, runs_parser, w2v_command, write_prefixes
from quality import measure

from w2v._losses.registry import Settings


def write_halves(path: Path, folder: Path) -> tuple[Path, Path]:
    """Write two files, each with every second line and all section names; return their paths."""
    parts: tuple[list[str], list[str]] = ([], [])
    position = 0
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.startswith(":"):
            position = 0
            for part in parts:
                part.append(line)
        else:
            parts[position % 2].append(line)
            position += 1
    files = folder / f"{path.stem}-1.txt", folder / f"{path.stem}-2.txt"
    for file, part in zip(files, parts, strict=True):
        file.write_text("".join(part), "utf-8")
    return files


def tune_markdown(document: dict[str, Any]) -> str:
    columns = list(document["runs"][0]["measurements"])
    score_columns = [name for name in columns if name == "total" or name.endswith("-2")]
    rows = []
    for run in document["runs"]:
        measurements = run["measurements"]
        score = statistics.mean(measurements[name] for name in score_columns)
        cells = [f"{value:.1f}" for value in (score, *(measurements[name] for name in columns))]
        rows.append([run["corpus"], run["settings"], *cells])
    notes = "Accuracies in percent, Spearman's correlations × 100, on the second half; the score is their mean."
    return runs_markdown(document, "Tuning", ["corpus", "settings", "score", *columns], rows, notes)


def main() -> None:
    parser = runs_parser(__doc__, corpora=True)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[], metavar="N")
    parser.add_argument("--time", default="10m")
    options = parser.parse_args()
    runs = open_runs(parser, options, tune_markdown)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model.safetensors"
        questions, other_questions = write_halves(options.questions, folder)
        pairs, other_pairs = zip(*(write_halves(path, folder) for path in options.pairs), strict=True)
        first, *others = options.corpus
        texts = write_prefixes(first, options.megabytes, folder) if options.megabytes else {first.stem: first}
        texts |= {corpus.stem: corpus for corpus in others}
        for corpus, text in texts.items():
            tune = [*W2V, "tune", str(text), "-o", str(model), "--force", "--json", "--time", options.time]
            scored_by = ["--questions", str(questions), *(word for path in pairs for word in ("--pairs", str(path)))]
            for settings, command in {
                "defaults": w2v_command(Settings(), text, model),
                "tuned by questions and pairs": tune + scored_by,
                "tuned by held-out text": tune,
            }.items():
                work = partial(measure, command, model, other_questions, list(other_pairs))
                runs.run_once({"corpus": corpus, "settings": settings}, work)
    print(tune_markdown(runs.document))


if __name__ == "__main__":
    main()
