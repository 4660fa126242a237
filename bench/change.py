"""How many planted changes does w2v change find, and how many words does it call changed without any change?

    python bench/change.py TEXT --json FILE [--megabytes 20] [--seeds 1 2 3] [--methods METHOD …]
    python bench/change.py --table FILE
    python bench/change.py TEXT --baselines [--megabytes 10]
    python bench/change.py TEXT --centring [--megabytes 10]

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

--baselines plants nothing, and compares the first two parts with several baselines: the two other parts; random halves
of the first two parts, dealt by blocks and by lines of 50 words; and the first part trained twice. It shows the median
distances of words and the share of words with p of at most 0.05.

--centring aligns models of the first two parts by 90 % of the common words, with and without centring, and searches for
the others among all common words: precision@1 and precision@5 are the shares whose nearest word, or one of the five
nearest, in the other model is the word itself.
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
from common import StoredRuns, markdown_table, read_results, runs_markdown, runs_parser, table_of_means

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
    """Return the words of four random parts of a text. Each part has about this many megabytes."""
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


def deal(units: list[list[str]], seed: int) -> list[list[str]]:
    """Return the words of two random halves of some units, such as lines."""
    half_of = np.random.default_rng(seed).integers(2, size=len(units)).tolist()
    return [[word for unit, own in zip(units, half_of, strict=True) if own == half for word in unit] for half in (0, 1)]


def cut(words: list[str], size: int) -> list[list[str]]:
    return [words[start : start + size] for start in range(0, len(words), size)]


def print_baselines(text: Path, megabytes: float) -> None:
    """Print how several baselines judge the words of two texts where nothing has changed."""
    parts = split(text, megabytes, seed=1)
    both = parts["first"] + parts["second"]
    for label, size in (("documents", BLOCK_WORDS), ("lines", LINE_WORDS)):
        parts |= {f"{label} {number}": half for number, half in enumerate(deal(cut(both, size), seed=2))}
    with tempfile.TemporaryDirectory() as folder:
        texts = {name: Path(folder) / f"{name}.txt" for name in (*parts, "again")}
        for name, words in (parts | {"again": parts["first"]}).items():
            write(words, texts[name])
        models = METHODS["Procrustes"](texts, 1)
    pairs = {
        "two other parts": ("half 1", "half 2"),
        "halves, by blocks of 1,000 words": ("documents 0", "documents 1"),
        "halves, by lines of 50 words": ("lines 0", "lines 1"),
        "two seeds": ("first", "again"),
    }
    rows = []
    for label, pair in pairs.items():
        baseline = [models[name] for name in pair]
        noise = w2v.change(*baseline, topn=EVERYTHING).words
        found = w2v.change(models["first"], models["second"], baseline=baseline, topn=EVERYTHING)
        cells = [f"{np.median([getattr(word, measure).value for word in noise]):.3f}" for measure in get_args(Measure)]
        for measure in get_args(Measure):
            low = [getattr(word, measure).p <= found.level for word in found.words]
            cells.append(f"{np.mean(low):.1%}")
        rows.append([label, *cells, str(found.significant)])
    columns = [f"{name} {measure}" for name in ("median", "p ≤ 0.05,") for measure in get_args(Measure)]
    print(markdown_table(["baseline", *columns, "significant, cosine"], rows))


def print_centring(text: Path, megabytes: float) -> None:
    """Print how many held-out words are found after alignment, with and without centring."""
    parts = split(text, megabytes, seed=1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        texts = {name: Path(folder) / f"{name}.txt" for name in ("first", "second")}
        for name, path in texts.items():
            write(parts[name], path)
        for method, centre in product(("Procrustes", "Procrustes, input rows"), (True, False)):
            models = METHODS[method](texts, 1)
            label = "input rows" if "input" in method else "combined rows"
            precisions = np.mean([held_out_precision(models, centre, seed) for seed in range(5)], axis=0)
            rows.append([label, "yes" if centre else "no", *(f"{each:.1%}" for each in precisions)])
    columns = [f"{band} times, precision@{k}" for band in ("10 to 29", "30 to 99", "≥ 100") for k in (1, 5)]
    print(markdown_table(["vectors", "centred", *columns], rows))


def held_out_precision(models: Mapping[str, w2v.KeyedVectors], centre: bool, seed: int) -> list[float]:
    """Return precision@1 and precision@5 of held-out words, by the smaller of their counts."""
    first, second = models.values()
    common = [word for word in first if word in second.key_to_index]
    rows = [[model.key_to_index[word] for word in common] for model in (first, second)]
    counts = np.array([np.asarray(each.counts)[own] for each, own in zip((first, second), rows, strict=True)]).min(
        axis=0
    )
    order = np.random.default_rng(seed).permutation(len(common))
    test, train = order[: len(order) // 10], order[len(order) // 10 :]
    aligned = w2v.align([first, second], anchors=[common[row] for row in train.tolist()], centre=centre).vectors
    targets, queries = (model.vectors[each] for model, each in zip(aligned, rows, strict=True))
    found = []
    for low, high in ((10, 30), (30, 100), (100, EVERYTHING)):
        words = test[(counts[test] >= low) & (counts[test] < high)]
        cosines = queries[words] @ targets.T
        ranks = (cosines > cosines[np.arange(len(words)), words][:, None]).sum(axis=1)
        found += [float(np.mean(ranks < number)) for number in (1, 5)]
    return found


def change_markdown(document: dict[str, Any]) -> str:
    """Return a table with a row for each size, method and measure, and a column for each measurement."""
    notes = "Means over the seeds ± half of their range. 50 words are planted."
    return runs_markdown(document, "Words that changed", *table_of_means(document["runs"], GROUP), notes)


def main() -> None:
    parser = runs_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--megabytes", type=float, nargs="+", default=[20], metavar="N")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="METHOD")
    parser.add_argument("--baselines", action="store_true")
    parser.add_argument("--centring", action="store_true")
    options = parser.parse_args()
    for chosen, work in ((options.baselines, print_baselines), (options.centring, print_centring)):
        if chosen:
            work(options.corpus, options.megabytes[0])
            return
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
