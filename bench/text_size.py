"""How much text does king - man + woman need?

    python bench/text_size.py TEXT --questions FILE --pairs FILE … --json FILE [--picture FILE.svg]

The program trains with the defaults on the first megabytes of a text, for several sizes, and on all of it. For each
size, "words" is the number of words of the text that are in the vocabulary, and "known" the share of the questions of
known words. The program measures the accuracy on these and on the bundled questions, the correlations with the pairs
of known words, and the rank of queen among the words nearest to king - man + woman: 1 is the nearest. Runs are added to
the JSON file; a run that is there already is not repeated.
"""

from __future__ import annotations

import itertools
import math
import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from common import (
    format_mean,
    group_runs,
    new_figure,
    open_runs,
    runs_markdown,
    runs_parser,
    save_figure,
    write_prefixes,
)

import w2v
from w2v._losses.registry import Settings

MEGABYTES, SEEDS, WORKERS = (1, 2, 5, 10, 20, 50), (1, 2, 3), 2
QUEEN = "rank of queen"
COLORS = ("#1f6f8b", "#c05746", "#7a9e3a")


def measure(text: Path, settings: Settings, questions: Path, pairs: list[Path]) -> dict[str, Any]:
    """Train with these settings; return the numbers of words, views and epochs, and the scores of the vectors."""
    model = w2v.train(text, settings=settings)
    views = len(model.views)
    run = {"words": model.metrics["tokens"], "views": views, "epochs": model.settings.epochs}
    return run | scores(model.wv, questions, pairs)


def scores(vectors: w2v.KeyedVectors, questions: Path | None, pairs: list[Path]) -> dict[str, float | None]:
    """Return percentages, correlations × 100 and the rank of queen, by column; None if the words are unknown."""
    values: dict[str, float | None] = {}
    if questions:
        analogy = w2v.analogies(vectors, questions)
        values |= {"known": analogy.answered / analogy.questions, "questions-words": analogy.accuracy}
    values["bundled questions"] = w2v.analogies(vectors).accuracy
    values |= {path.stem: w2v.word_pairs(vectors, path).known_spearman for path in pairs}
    values = {name: None if value is None else round(100 * value, 3) for name, value in values.items()}
    return values | {QUEEN: rank_of_queen(vectors)}


def rank_of_queen(vectors: w2v.KeyedVectors) -> int | None:
    """Return the rank of queen among the words nearest to king - man + woman; None if one of the four is unknown."""
    if not all(word in vectors for word in ("king", "man", "woman", "queen")):
        return None
    nearest = vectors.most_similar(["king", "woman"], ["man"], topn=len(vectors))
    return 1 + [word for word, _ in nearest].index("queen")


def size_markdown(document: dict[str, Any]) -> str:
    first_columns = ("words", "views", "epochs", "known")
    columns = [name for name in document["runs"][0]["measurements"] if name not in (*first_columns, QUEEN)]
    rows = []
    for (megabytes,), runs in group_runs(document["runs"], ("megabytes",)).items():
        queens = ", ".join(f"{run[QUEEN]:,}" for run in runs if run[QUEEN] is not None)
        cells = [format_mean([run[name] for run in runs if run[name] is not None]) for name in columns]
        first = runs[0]
        seed_independent = [f"{first['words']:,}", *(str(first[name]) for name in ("views", "epochs"))]
        rows.append([f"{megabytes:g} MB", *seed_independent, f"{first['known']:.1f}", *cells, queens])
    notes = "Per cent and correlations × 100, mean over the seeds ± half of their range; the rank of queen by seed."
    header = ["text", *first_columns, *columns, QUEEN]
    return runs_markdown(document, "Size of the text", header, rows, notes)


def draw(document: dict[str, Any], picture: Path) -> None:
    """Draw accuracy and correlations by the size of the text, and the rank of queen, the median of the seeds."""
    figure, (left, right) = new_figure(1, 2, figsize=(9, 3.6), width_ratios=[3, 2])
    names = ["questions-words", *(name for name in document["runs"][0]["measurements"] if name.startswith("EN-"))]
    groups = group_runs(document["runs"], ("megabytes",))
    sizes = sorted(size for (size,) in groups)

    def averages(name: str, average: Any) -> list[float]:
        """Return the average over the seeds for each size; nan if no run has a value."""
        known = [[run[name] for run in groups[size,] if run[name] is not None] for size in sizes]
        return [average(values) if values else math.nan for values in known]

    for name, color in zip(names, COLORS, strict=False):
        left.plot(sizes, averages(name, statistics.mean), color=color, marker=".", label=name)
    right.plot(sizes, averages(QUEEN, statistics.median), color=COLORS[0], marker=".")
    left.set_ylabel("per cent; correlation × 100")
    right.set_ylabel(f"{QUEEN} near king − man + woman")
    right.set_yscale("log")
    right.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    right.invert_yaxis()
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("megabytes of text")
    left.legend(frameon=False, fontsize=7)
    save_figure(figure, picture)


def main() -> None:
    parser = runs_parser(__doc__)
    parser.add_argument("--picture", type=Path, metavar="FILE")
    options = parser.parse_args()
    runs = open_runs(parser, options, size_markdown)
    full_size = options.corpus.stat().st_size / 1e6
    sizes = [*(size for size in MEGABYTES if size < full_size), full_size]
    with tempfile.TemporaryDirectory() as folder:
        texts = write_prefixes(options.corpus, sizes, Path(folder)).values()
        for (size, text), seed in itertools.product(zip(sizes, texts, strict=True), SEEDS):
            settings = Settings(seed=seed, workers=WORKERS)
            conditions = {"megabytes": size, "seed": seed}
            runs.run_once(conditions, partial(measure, text, settings, options.questions, options.pairs))
    print(size_markdown(runs.document))
    if options.picture:
        draw(runs.document, options.picture)


if __name__ == "__main__":
    main()
