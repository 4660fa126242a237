"""Is `w2v tune` better than the defaults on questions and pairs that it has not seen?

    python bench/tune.py --corpora TEXT … --questions FILE --pairs FILE … --json FILE [--time 10m] [--megabytes 2 8]

Questions and pairs are halved: every second line of a section. Settings are judged by the first half, or by held-out
text, and all models are measured on the other half. Of the first corpus, with --megabytes, only its beginnings are
used. Runs are added to the JSON file; one that is there already is not made again.

    python bench/tune.py --agreement --corpora TEXT --questions FILE --pairs FILE … [--time 10m]

tries settings for this time, and prints how the scores on held-out text correlate with those on questions and pairs.
"""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import W2V, beginnings, command_line, machine, open_runs, runs_markdown, runs_parser, table, w2v_command
from quality import measure, scores
from scipy.stats import spearmanr

from w2v.losses.registry import Settings
from w2v.text.corpus import Corpus
from w2v.text.idstore import read_corpus
from w2v.text.vocabulary import Vocabulary
from w2v.training.model import Model
from w2v.training.tune import CHOICES, Tuner, Watch, seconds_of
from w2v.vectors.held_out import HeldOut


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


def agreement(text: Path, questions: Path, pairs: list[Path], seconds: float) -> str:
    """Spearman's correlations, over the trainings of a search, of the score on held-out text with the others."""
    found: list[list[float]] = []
    with read_corpus(Corpus(text)) as store:
        vocabulary = Vocabulary.from_store(store)
        share, held_out = HeldOut.at_end(store, vocabulary)

        def judge(model: Model) -> float:
            others = scores(model.wv, questions, pairs)
            found.append([held_out.score(model.wv.vectors), *(others[name] or 0 for name in columns)])
            return found[-1][0]

        columns = ["total", *(path.stem for path in pairs)]
        watch = Watch(seconds)
        Tuner(store, vocabulary, share, {}, CHOICES, judge, watch, lambda *_: None, False).search()
    first, *others = np.array(found).T
    rows = [[name, f"{spearmanr(first, each).statistic:.2f}"] for name, each in zip(columns, others, strict=True)]
    rows.append(["mean", f"{spearmanr(first, np.mean(others, axis=0)).statistic:.2f}"])
    heading = f"## Held-out text and other scores, {len(found)} trainings"
    return "\n".join([heading, "", f"`{command_line()}`", "", table(["score", "correlation"], rows), machine()])


def tune_markdown(document: dict[str, Any]) -> str:
    columns = list(document["runs"][0]["figures"])
    judged = [name for name in columns if name == "total" or name.endswith("-2")]
    rows = []
    for run in document["runs"]:
        figures = run["figures"]
        cells = [f"{figures[name]:.1f}" for name in columns]
        rows.append(
            [run["corpus"], run["settings"], f"{statistics.mean(figures[each] for each in judged):.1f}", *cells]
        )
    notes = "Accuracies in percent, Spearman's correlations × 100, on the second half; the score is their mean."
    return runs_markdown(document, "Tuning", ["corpus", "settings", "score", *columns], rows, notes)


def main() -> None:
    parser = runs_parser(__doc__, corpora=True)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[], metavar="N")
    parser.add_argument("--time", default="10m")
    parser.add_argument("--agreement", action="store_true")
    options = parser.parse_args()
    if options.agreement:
        print(agreement(options.corpus[0], options.questions, options.pairs, seconds_of(options.time)))
        return
    runs = open_runs(parser, options, tune_markdown)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model.safetensors"
        questions, other_questions = halves(options.questions, folder)
        pairs, other_pairs = zip(*(halves(path, folder) for path in options.pairs), strict=True)
        first, *others = options.corpus
        texts = beginnings(first, options.megabytes, folder) if options.megabytes else {first.stem: first}
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
                runs.make({"corpus": corpus, "settings": settings}, work)
    print(tune_markdown(runs.document))


if __name__ == "__main__":
    main()
