"""How many planted changes does w2v change find, and how many words does it call changed without any change?

    python bench/change.py TEXT --json FILE [--megabytes 20] [--seeds 1 2 3] [--methods METHOD …]
    python bench/change.py --table FILE

The first 4 N megabytes of the text are cut into blocks of 1,000 words, and each block is assigned at random to one of
four parts: two slices and the two halves of a baseline. In the second slice, 25 pairs of words with at least 100
occurrences and similar counts are exchanged. So 50 words have changed, and all others have not. METHODS lists how the
models are trained. A compass is trained on the first slice, the second with the exchanged words, and both halves. The
columns are

- planted of 60: how many of the 50 words are among the 60 words with the highest z of the measure;
- by distance: the same with the distance itself;
- significant, false: the number of words with an adjusted p of at most 0.05, and how many of them are not planted;
- null p<0.05: the share of words with p of at most 0.05, in percent, if nothing is planted;
- null significant: the number of words with an adjusted p of at most 0.05 if nothing is planted.

Runs are added to the JSON file; a run that is there already is not repeated.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
from common import StoredRuns, read_results, runs_markdown, runs_parser, table_of_means

import w2v
from w2v.evaluation.change import Change, Measure

BLOCK_WORDS = 1000
LINE_WORDS = 50
PARTS = ("first", "second", "half 1", "half 2")
PAIRS = 25
MIN_COUNT = 100  # of a planted word, in both slices
LISTED = 60
EVERYTHING = 1 << 30
GROUP = ("megabytes", "method", "measure")  # the runs that agree in these differ only in their seeds

Texts = Mapping[str, Path]
Train = Callable[[Texts, int], dict[str, w2v.KeyedVectors]]


def train_separately(texts: Texts, seed: int, **settings: Any) -> dict[str, w2v.KeyedVectors]:
    """Train a model of each text. `w2v.change` aligns them by Procrustes."""
    return {
        name: w2v.train(path, seed=len(texts) * seed + number, **settings).wv
        for number, (name, path) in enumerate(texts.items())
    }


def train_slices(texts: Texts, seed: int, **settings: Any) -> dict[str, w2v.KeyedVectors]:
    """Train a compass of all texts but "second", and a model of each text against its output rows."""
    with tempfile.TemporaryDirectory() as folder:
        others = {name: path for name, path in texts.items() if name != "second"}
        result = w2v.slices(others, folder, seed=seed, **settings)
        models = {name: w2v.load(each.path) for name, each in result.slices.items()}
        second = w2v.train(texts["second"], init=result.compass, freeze="outputs", seed=seed, epochs="auto")
    return models | {"second": second.wv}


METHODS: dict[str, Train] = {
    "compass": train_slices,
    "compass, skip-gram": partial(train_slices, model="skipgram"),
    "Procrustes": partial(train_separately, views="words"),
    "Procrustes, input rows": partial(train_separately, views="words", vectors="input"),
    "Procrustes, skip-gram": partial(train_separately, views="words", model="skipgram"),
    "Procrustes, two views": partial(train_separately, views="words+subwords"),
}


def split(text: Path, megabytes: float, seed: int) -> dict[str, list[str]]:
    """Return the words of four random parts of a text, each of about so many megabytes."""
    with text.open(encoding="utf-8") as file:
        words = file.read(int(4e6 * megabytes)).split()
    blocks = [words[start : start + BLOCK_WORDS] for start in range(0, len(words), BLOCK_WORDS)]
    part_of = np.random.default_rng(seed).permutation(np.arange(len(blocks)) % len(PARTS)).tolist()
    parts: dict[str, list[str]] = {name: [] for name in PARTS}
    for block, part in zip(blocks, part_of, strict=True):
        parts[PARTS[part]] += block
    return parts


def choose_swaps(first: list[str], second: list[str], seed: int) -> dict[str, str]:
    """Return the words to exchange, each with the word that takes its place."""
    counts = Counter(first) & Counter(second)  # the smaller count
    frequent = [word for word, count in counts.most_common() if count >= MIN_COUNT]
    chosen = np.random.default_rng(seed).permutation(len(frequent) // 2)[:PAIRS]
    pairs = [(frequent[2 * at], frequent[2 * at + 1]) for at in chosen.tolist()]
    return dict(pairs) | {other: word for word, other in pairs}


def write(words: list[str], path: Path) -> None:
    lines = (" ".join(words[start : start + LINE_WORDS]) for start in range(0, len(words), LINE_WORDS))
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def compare(models: Mapping[str, w2v.KeyedVectors], first: str, second: str, measure: Measure) -> Change:
    baseline = [models["half 1"], models["half 2"]]
    return w2v.change(models[first], models[second], baseline=baseline, measure=measure, topn=EVERYTHING)


def found_of(result: Change, measure: Measure, planted: set[str]) -> dict[str, float]:
    """Return how many planted words are found."""
    by_distance = sorted(result.words, key=lambda word: -getattr(word, measure).value)
    significant = [word.word for word in result.words if getattr(word, measure).adjusted_p <= result.level]
    return {
        "planted of 60": len(planted & {word.word for word in result.words[:LISTED]}),
        "by distance": len(planted & {word.word for word in by_distance[:LISTED]}),
        "significant": len(significant),
        "false": len({*significant} - planted),
    }


def null_of(result: Change, measure: Measure) -> dict[str, float]:
    """Return how many words seem to have changed without any change."""
    share = np.mean([getattr(word, measure).p <= result.level for word in result.words])
    return {"null p<0.05": round(100 * float(share), 2), "null significant": result.significant or 0}


def run(text: Path, megabytes: float, seed: int, methods: list[str], runs: StoredRuns) -> None:
    parts = split(text, megabytes, seed)
    swaps = choose_swaps(parts["first"], parts["second"], seed)
    parts["planted"] = [swaps.get(word, word) for word in parts["second"]]
    with tempfile.TemporaryDirectory() as folder:
        texts = {name: Path(folder) / f"{name}.txt" for name in parts}
        for name, words in parts.items():
            write(words, texts[name])
        for method in methods:
            models: dict[str, w2v.KeyedVectors] = {}

            def measured(measure: Measure, method: str = method, models: dict[str, Any] = models) -> dict[str, float]:
                models |= models or METHODS[method](texts, seed)
                planted = compare(models, "first", "planted", measure)
                null = compare(models, "first", "second", measure)
                return found_of(planted, measure, {*swaps}) | null_of(null, measure)

            for measure in get_args(Measure):
                conditions = {**dict(zip(GROUP, (megabytes, method, measure), strict=True)), "seed": seed}
                runs.run_once(conditions, partial(measured, measure))


def change_markdown(document: dict[str, Any]) -> str:
    """Return a table with a row for each size, method and measure, and a column for each measurement."""
    notes = "Means over the seeds ± half of their range. 50 words are planted."
    return runs_markdown(document, "Words that changed", *table_of_means(document["runs"], GROUP), notes)


def main() -> None:
    parser = runs_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--megabytes", type=float, nargs="+", default=[20], metavar="N")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="METHOD")
    options = parser.parse_args()
    if options.table:
        print(change_markdown(read_results(options.table)))
        return
    if not (options.corpus and options.json):
        parser.error("name a text and --json, or --table")
    runs = StoredRuns(options.json)
    for megabytes, seed in product(options.megabytes, options.seeds):
        run(options.corpus, megabytes, seed, options.methods, runs)
    print(change_markdown(runs.document))


if __name__ == "__main__":
    main()
