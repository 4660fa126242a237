"""How many planted changes does w2v find, and how many words does it call changed without any change?

    python bench/change.py TEXT --json FILE [--megabytes 4] [--seeds 1 2 3] [--methods METHOD …] [--separator TEXT]
    python bench/change.py --table FILE
    python bench/change.py TEXT --centring [--megabytes 10]

The first 2 N megabytes of the text are cut into documents at each --separator, or every 1,000 words, and each document
is assigned at random to one of two periods. In the second period, 25 pairs of words with at least 100 occurrences and
similar counts are exchanged. So 50 words have changed, and all others have not. METHODS lists how the words are
compared: by w2v.compare_periods, or by w2v.change between two models, with the measure cosine or neighbourhood. The
columns are

- planted of 60: how many of the 50 words are among the first 60;
- by distance: the same in the order of the distance itself;
- significant, false: the number of words with an adjusted p of at most 0.05, and how many of them are not planted;
- null p<0.05: the share of words with p of at most 0.05, in percent, if nothing is planted;
- null significant: the number of words with an adjusted p of at most 0.05 if nothing is planted;
- seconds: the processor time of the comparison of planted words, with the training.

Runs are added to the JSON file; a run that is there already is not repeated.

--centring aligns models of both periods by 90 % of the common words, with and without centring, and searches for
the others among all common words: precision@1 and precision@5 are the shares whose nearest word, or one of the five
nearest, in the other model is the word itself.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
from common import StoredRuns, markdown_table, read_results, runs_markdown, runs_parser, table_of_means

import w2v
from w2v._evaluation.change import Measure

BLOCK_WORDS = 1000
LINE_WORDS = 50
PARTS = ("first", "second")
PAIRS = 25
MIN_COUNT = 100  # of a planted word, in both slices
LISTED = 60
LEVEL = 0.05
EVERYTHING = 1 << 30
DOCUMENTS = "documents"  # w2v.compare_periods
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
    """Train a compass of all texts, and a model of each text against its output rows."""
    with tempfile.TemporaryDirectory() as folder:
        result = w2v.slices(texts, folder, seed=seed, **settings)
        return {name: w2v.load(each.path) for name, each in result.slices.items()}


METHODS: dict[str, Train] = {
    "compass": train_slices,
    "compass, skip-gram": partial(train_slices, model="skipgram"),
    "Procrustes": partial(train_separately, views="words"),
    "Procrustes, input rows": partial(train_separately, views="words", vectors="input"),
    "Procrustes, skip-gram": partial(train_separately, views="words", model="skipgram"),
    "Procrustes, two views": partial(train_separately, views="words+subwords"),
}


def split(text: Path, megabytes: float, separator: str | None, seed: int) -> dict[str, list[list[str]]]:
    """Return the documents of two random halves of a text, as lists of words. Each has about this many megabytes."""
    with text.open(encoding="utf-8") as file:
        content = file.read(int(2e6 * megabytes))
    documents = [each.split() for each in content.split(separator)] if separator else cut(content.split(), BLOCK_WORDS)
    documents = list(filter(None, documents))
    order = np.random.default_rng(seed).permutation(len(documents)).tolist()
    return {name: [documents[at] for at in order[part::2]] for part, name in enumerate(PARTS)}


def choose_swaps(parts: Mapping[str, list[list[str]]], seed: int) -> dict[str, str]:
    """Return the words to exchange, each with the word that takes its place."""
    first, second = (Counter(word for document in parts[name] for word in document) for name in PARTS)
    counts = first & second  # the smaller count
    frequent = [word for word, count in counts.most_common() if count >= MIN_COUNT]
    chosen = np.random.default_rng(seed).permutation(len(frequent) // 2)[:PAIRS]
    pairs = [(frequent[2 * at], frequent[2 * at + 1]) for at in chosen.tolist()]
    return dict(pairs) | {other: word for word, other in pairs}


def write(words: list[str], path: Path) -> None:
    path.write_text("".join(f"{' '.join(line)}\n" for line in cut(words, LINE_WORDS)), "utf-8")


def cut(words: list[str], size: int) -> list[list[str]]:
    return [words[start : start + size] for start in range(0, len(words), size)]


def compare(parts: Mapping[str, list[list[str]]], method: str, measure: Measure, seed: int) -> list[Any]:
    """Return the words of two periods, those that changed most first."""
    if method == DOCUMENTS:
        periods = [[" ".join(words) for words in parts[name]] for name in PARTS]
        return w2v.compare_periods(*periods, topn=EVERYTHING, seed=seed).words
    with tempfile.TemporaryDirectory() as folder:
        texts = {name: Path(folder) / f"{name}.txt" for name in PARTS}
        for name, path in texts.items():
            write([word for document in parts[name] for word in document], path)
        models = METHODS[method](texts, seed)
    return w2v.change(*models.values(), measure=measure, topn=EVERYTHING).words


def run(parts: dict[str, list[list[str]]], method: str, measure: Measure, seed: int) -> dict[str, float]:
    """Return how many planted words are found, and how many words seem to have changed without any change."""
    swaps = choose_swaps(parts, seed)
    planted = [[swaps.get(word, word) for word in document] for document in parts["second"]]
    started = time.process_time()
    words = compare({**parts, "second": planted}, method, measure, seed)
    seconds = time.process_time() - started
    by_distance = sorted(words, key=lambda word: -_distance(word, measure))
    found: dict[str, float] = {
        "planted of 60": len({*swaps} & {word.word for word in words[:LISTED]}),
        "by distance": len({*swaps} & {word.word for word in by_distance[:LISTED]}),
        "seconds": round(seconds),
    }
    if method == DOCUMENTS:
        null = compare(parts, method, measure, seed)
        significant = {word.word for word in words if word.adjusted_p <= LEVEL}
        found |= {"significant": len(significant), "false": len(significant - {*swaps})}
        found |= {"null p<0.05": round(100 * float(np.mean([word.p <= LEVEL for word in null])), 2)}
        found |= {"null significant": sum(word.adjusted_p <= LEVEL for word in null)}
        print("missed:", *sorted({*swaps} - significant))
    return found


def _distance(word: Any, measure: Measure) -> float:
    distance = getattr(word, measure)
    return float(getattr(distance, "value", distance))


def print_centring(text: Path, megabytes: float) -> None:
    """Print how many held-out words are found after alignment, with and without centring."""
    parts = split(text, megabytes, None, seed=1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        texts = {name: Path(folder) / f"{name}.txt" for name in ("first", "second")}
        for name, path in texts.items():
            write([word for document in parts[name] for word in document], path)
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
    parser.add_argument("--megabytes", type=float, nargs="+", default=[4], metavar="N")
    parser.add_argument(
        "--methods", nargs="+", default=[DOCUMENTS, *METHODS], choices=[DOCUMENTS, *METHODS], metavar="METHOD"
    )
    parser.add_argument("--separator")
    parser.add_argument("--centring", action="store_true")
    options = parser.parse_args()
    if options.centring:
        print_centring(options.corpus, options.megabytes[0])
        return
    if options.table:
        print(change_markdown(read_results(options.table)))
        return
    if not (options.corpus and options.json):
        parser.error("name a text and --json, or --table")
    runs = StoredRuns(options.json)
    for megabytes, seed, method in product(options.megabytes, options.seeds, options.methods):
        parts = split(options.corpus, megabytes, options.separator, seed)
        for measure in ("cosine",) if method == DOCUMENTS else get_args(Measure):
            conditions = {**dict(zip(GROUP, (megabytes, method, measure), strict=True)), "seed": seed}
            runs.run_once(conditions, partial(run, parts, method, measure, seed))
    print(change_markdown(runs.document))


if __name__ == "__main__":
    main()
