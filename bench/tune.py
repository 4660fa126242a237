"""Is `w2v tune` better than the defaults on questions and pairs that it has not seen?

    python bench/tune.py --corpora TEXT … --questions FILE --pairs FILE … --json FILE [--time 10m] [--megabytes 2 8]

Questions and pairs are halved: every second line of a section. Settings are judged by the first half, or by held-out
text, and all models are measured on the other half. Of the first corpus, with --megabytes, only its beginnings are
used. Runs are added to the JSON file; one that is there already is not made again.
"""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from common import W2V, open_runs, runs_markdown, runs_parser, w2v_command, write_prefixes
from quality import measure

from w2v.losses.registry import Settings


def halves(path: Path, folder: Path) -> tuple[Path, Path]:
    """Two files, each with every second line and all section names."""
    parts: tuple[list[str], list[str]] = ([], [])
    place = 0
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.startswith(":"):
            place = 0
            for part in parts:
                part.append(line)
        else:
            parts[place % 2].append(line)
            place += 1
    files = folder / f"{path.stem}-1.txt", folder / f"{path.stem}-2.txt"
    for file, part in zip(files, parts, strict=True):
        file.write_text("".join(part), "utf-8")
    return files


def tune_markdown(document: dict[str, Any]) -> str:
    columns = list(document["runs"][0]["figures"])
    judged = [name for name in columns if name == "total" or name.endswith("-2")]
    rows = []
    for run in document["runs"]:
        figures = run["figures"]
        score = statistics.mean(figures[name] for name in judged)
        cells = [f"{one:.1f}" for one in (score, *(figures[name] for name in columns))]
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
        questions, other_questions = halves(options.questions, folder)
        pairs, other_pairs = zip(*(halves(path, folder) for path in options.pairs), strict=True)
        first, *others = options.corpus
        texts = write_prefixes(first, options.megabytes, folder) if options.megabytes else {first.stem: first}
        texts |= {corpus.stem: corpus for corpus in others}
        for corpus, text in texts.items():
            tune = [*W2V, "tune", str(text), "-o", str(model), "--force", "--json", "--time", options.time]
            judges = ["--questions", str(questions), *(word for path in pairs for word in ("--pairs", str(path)))]
            for settings, command in {
                "defaults": w2v_command(Settings(), text, model),
                "tuned by questions and pairs": tune + judges,
                "tuned by held-out text": tune,
            }.items():
                work = partial(measure, command, model, other_questions, list(other_pairs))
                runs.run_once({"corpus": corpus, "settings": settings}, work)
    print(tune_markdown(runs.document))


if __name__ == "__main__":
    main()
