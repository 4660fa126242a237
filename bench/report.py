"""Show the results of the other programs as Markdown tables, and draw a picture of them.

    python bench/report.py FILE.json FILE.json … [--picture bench/speed.svg] > tables.md

Each FILE.json is what --json of another program wrote. The picture needs the files of train.py, step.py and limit.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from common import benchmark_markdown, new_figure, read_results, save_figure
from quality import quality_markdown

OURS, THEIRS = "#1f6f8b", ("#9a9a9a", "#c4c4c4", "#7a6f5d", "#b8a88a", "#d9cfb8")


def draw(documents: list[dict[str, Any]], picture: Path) -> None:
    """Draw words per second by configuration, for w2v and peers, and the fractions of the measured limits."""
    speeds: dict[str, dict[str, float]] = {}
    fractions: dict[str, float] = {}
    for document in documents:
        for label, row in document.get("raw_words_a_second", {}).items():
            configuration, _, tool = label.rpartition(", ")
            if document["title"] == "Training":
                speeds.setdefault(configuration, {})[tool] = row["median"] / 1e6
        for label, row in document.get("fraction_of_the_peak", {}).items():
            fractions[f"step, {label}"] = row["median"]
        for label, row in document.get("bound_by_training", {}).items():
            fractions[f"training, {label}"] = row["median"]
    figure, (left, right) = new_figure(1, 2, figsize=(11, 4), width_ratios=[3, 2])
    tools = list(dict.fromkeys(tool for row in speeds.values() for tool in row))
    for number, tool in enumerate(tools):
        positions = [k + (number - (len(tools) - 1) / 2) * 0.8 / len(tools) for k in range(len(speeds))]
        color = OURS if tool == "w2v" else THEIRS[number - 1]
        bars = left.bar(
            positions, [row.get(tool, 0) for row in speeds.values()], 0.75 / len(tools), color=color, label=tool
        )
        left.bar_label(bars, fmt="%.2g", fontsize=7)
    left.set_xticks(range(len(speeds)), list(speeds))
    left.set_ylabel("million words of text a second, two threads")
    left.legend(frameon=False, loc="upper center")
    bars = right.barh(list(fractions), list(fractions.values()), color=OURS)
    right.bar_label(bars, fmt="%.2f", fontsize=8, padding=2)
    right.invert_yaxis()
    right.set_xlim(0, 1.1)
    right.set_xlabel("fraction of the measured limit, one thread")
    save_figure(figure, picture)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    documents = [{"title": path.stem, **read_results(path)} for path in options.files]
    for document in documents:
        print(
            quality_markdown(document) if isinstance(document.get("runs"), list) else benchmark_markdown(document),
            end="\n\n",
        )
    if options.picture:
        draw(documents, options.picture)


if __name__ == "__main__":
    main()
