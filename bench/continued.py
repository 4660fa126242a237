"""What a continued model forgets: the share of held-out words of the first text and of the second that it predicts.

    python bench/continued.py TEXT
    python bench/continued.py --clicks

A model of one part of a text is continued on another part, with several learning rates and numbers of epochs. With
--clicks, a recommender of generated sessions is continued on a tenth as many sessions of a later day, in which other
items of each cluster are popular, and the table has the share of sessions whose last item is among twenty
recommendations.
"""

import argparse
import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import w2v

SEEDS, NEW_RUN_ALPHA = (1, 2, 3), 0.05
CLUSTERS, ITEMS, MAIN_SHARE = 100, 30, 0.8  # of sessions; the first cluster of a session has most of its items
HELD_OUT = 100_000  # words at the end of each part
RUNS: tuple[dict[str, Any], ...] = (
    {},
    *({"alpha": alpha, "epochs": epochs} for alpha in (0.005, 0.01, 0.02, 0.05) for epochs in ("auto", 2)),
)


def write_part(path: Path, words: list[str]) -> str:
    """Write words to a file, 1,000 on each line, and return its path."""
    path.write_text(
        "\n".join(map(" ".join, (words[start : start + 1000] for start in range(0, len(words), 1000)))) + "\n"
    )
    return str(path)


def sessions_of_day(random: np.random.Generator, sessions: int, drift: int) -> list[list[int]]:
    """Return sessions of 3 to 12 items of two clusters each; `drift` shifts which items of a cluster are popular."""
    popularity = 1 / np.arange(1, ITEMS + 1) ** 0.8
    popularity /= popularity.sum()
    found = []
    for _ in range(sessions):
        clusters, size = random.integers(CLUSTERS, size=2), random.integers(3, 13)
        chosen = clusters[(random.random(size) >= MAIN_SHARE).astype(int)]
        items = (random.choice(ITEMS, size, p=popularity) + drift) % ITEMS
        found.append((chosen * ITEMS + items).tolist())
    return found


def hit_rate(model: w2v.Model, sessions: list[list[int]]) -> float:
    """Return the share of sessions whose last item is among the twenty that are recommended for the others."""
    lists = w2v.recommend(model, [session[:-1] for session in sessions], topn=20)
    hits = [session[-1] in dict(items) for session, items in zip(sessions, lists, strict=True)]
    return sum(hits) / len(hits)


def compare_clicks(workers: int) -> None:
    """Continue recommenders with several seeds, and print the mean hit rates on both days."""
    names = ["the first model", "defaults", "epochs 2", f"alpha {NEW_RUN_ALPHA}"]
    rates = np.zeros((len(SEEDS), len(names), 2))
    for row, seed in enumerate(SEEDS):
        random = np.random.default_rng(seed)
        days = [sessions_of_day(random, size, drift) for size, drift in ((12_000, 0), (1200, 7), (1500, 0), (1500, 7))]
        model = w2v.train(days[0], preset="items", workers=workers, seed=seed)
        options: tuple[dict[str, Any], ...] = ({}, {"epochs": 2}, {"alpha": NEW_RUN_ALPHA})
        more: dict[str, Any] = {"continue_from": model, "vocab": "union", "workers": workers, "seed": seed}
        models = [model, *(w2v.train(days[1], **more, **each) for each in options)]
        rates[row] = [[hit_rate(each, day) for day in days[2:]] for each in models]
    print("| settings | first day | later day |\n|---|---:|---:|")
    for name, (first, later) in zip(names, 100 * rates.mean(axis=0), strict=True):
        print(f"| {name} | {first:.1f} | {later:.1f} |")


def main() -> None:
    """Train, continue with each setting, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?")
    parser.add_argument("--clicks", action="store_true")
    parser.add_argument("--first", type=int, default=1_000_000, help="words of the first text")
    parser.add_argument("--second", type=int, default=100_000, help="words of the second text")
    parser.add_argument("--model", default="skipgram")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if given.clicks:
        compare_clicks(given.workers)
        return
    with Path(given.corpus).open() as file:
        words = file.read(8 * (given.first + given.second + 2 * HELD_OUT)).split()
    bounds = list(itertools.accumulate((0, given.first, HELD_OUT, given.second, HELD_OUT)))
    parts = [words[start:end] for start, end in itertools.pairwise(bounds)]
    with tempfile.TemporaryDirectory() as folder:
        first, old, second, new = (write_part(Path(folder, f"{n}.txt"), part) for n, part in enumerate(parts))
        model = w2v.train(first, model=given.model, views="words", workers=given.workers)
        runs = [w2v.train(second, continue_from=model, vocab="union", workers=given.workers, **run) for run in RUNS]
        print("| settings | first text | second text | questions |\n|---|---:|---:|---:|")
        names = ["the first model", *(", ".join(f"{k} {v}" for k, v in run.items()) or "defaults" for run in RUNS)]
        results = [w2v.evaluate(model, *runs, held_out=text) for text in (old, new)]
        columns = [results[0][-1], results[1][-1], results[0][0]]
        for row, name in enumerate(names):
            print(f"| {name} | " + " | ".join(f"{100 * (each.scores[row].value or 0):.1f}" for each in columns) + " |")


if __name__ == "__main__":
    main()
