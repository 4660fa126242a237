"""Score vectors on test sets of words that are recognised by their content: BATS, categories, outliers and WEAT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from w2v._detect import decode_line, read_lines
from w2v._errors import W2VError, pluralise
from w2v._evaluation.analogies import best_answers
from w2v._evaluation.probe import fit_logistic
from w2v._evaluation.scores import ItemScores, Statistic, means, resampled
from w2v._evaluation.word_index import WordIndex
from w2v._losses.loss import Array
from w2v._system.files import PathLike
from w2v._vectors.cosines import unit
from w2v._vectors.keyed import KeyedVectors

MAX_CLUSTERED = 10_000  # words; clustering needs the square of this number of distances
SHUFFLES = 100  # of categories, to compute the purity by chance
PERMUTATIONS = 9999  # of the target words of WEAT, unless there are fewer
SEED = 1
HEADERS = ("category", "class", "group", "label", "type")  # of the column of categories
LAYOUTS = (
    "a word and its category in each line; words, an empty line and outliers; a JSON object of two lists of target "
    "words and two of attributes (WEAT); or a folder of files with a word, a tab and its answers, divided by / (BATS)"
)


class Measured(NamedTuple):
    """The results of one model on a test set, by one measure; see Evaluation.add."""

    measure: str
    items: ItemScores
    statistic: Statistic = means
    chance: float | None = None


class _Words:
    """The first words of some vectors."""

    def __init__(self, vectors: KeyedVectors, restrict_vocab: int) -> None:
        self.size = min(restrict_vocab, len(vectors))
        self.index = WordIndex(vectors, self.size, case_insensitive=True)
        self._vectors = vectors

    def units(self, rows: Any) -> Array:
        """Return the unit vectors of some rows, float32 (n, D)."""
        return unit(np.asarray(self._vectors.vectors[rows], np.float32))

    def known(self, words: list[str]) -> NDArray[np.int64]:
        """Return the rows of the known ones of some words."""
        rows = np.array([self.index.row(word) for word in words], np.int64)
        return rows[rows >= 0]


def score_word_set(path: PathLike, models: Sequence[KeyedVectors], restrict_vocab: int) -> list[tuple[Measured, ...]]:
    """Score models on a test set in a file or a folder, by each measure of its kind.

    Raises:
        W2VError: If it cannot be read, or has none of the LAYOUTS.
    """
    is_folder = Path(path).is_dir()
    files = sorted(Path(path).rglob("*.txt")) if is_folder else [Path(path)]
    kinds, contents = zip(*map(_read, files), strict=True) if files else ((), ())
    measures = _MEASURES.get((is_folder, *sorted({*kinds})))
    if measures is None:
        found = f"files of the kinds {', '.join(sorted({*kinds}))}" if files else "no .txt files"
        raise W2VError(f"{path}: a folder with {found}, not a test set of words. The layouts are: {LAYOUTS}")
    if measures is _purity:
        contents = (_categories(path, *contents),)
    searched = [_Words(model, restrict_vocab if measures is _bats else len(model)) for model in models]
    return [*zip(*(measures(contents, words) for words in searched), strict=True)]


def _read(path: Path) -> tuple[str, Any]:
    """Return the kind of a file ("pairs", "outliers" or "WEAT"), and its content.

    The content is a list of pairs of words, a pair of lists of words, or four lists of words.
    """
    texts = [decode_line(path, number, line).strip() for number, line in read_lines(path, "a test set of words")]
    text = "\n".join(texts).strip()
    if text.startswith("{"):
        try:
            sets = msgspec.json.decode(text, type=dict[str, list[str]])
        except msgspec.MsgspecError as error:
            raise W2VError(f"{path}: not a JSON object of lists of words: {error}") from None
        if len(sets) != 4:
            raise W2VError(f"{path}: {len(sets)} lists of words: WEAT needs 4, two of targets and two of attributes")
        return "WEAT", [*sets.values()]
    parts = [part.split("\n") for part in text.split("\n\n")]
    if len(parts) == 2 and not any("\t" in word for part in parts for word in part):
        return "outliers", parts
    pairs = dict[tuple[str, str], None]()  # an ordered set
    for number, line in enumerate(texts, 1):
        fields = [*filter(None, map(str.strip, line.split("\t" if "\t" in line else "," if "," in line else None)))]
        if len(fields) == 2:
            pairs[fields[0], fields[1]] = None
        elif line or not text:
            raise W2VError(f"{path}, line {number}: not a test set of words. The layouts are: {LAYOUTS}")
    return "pairs", [*pairs]


def _categories(path: PathLike, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return words and their categories without a header line.

    Raises:
        W2VError: The categories cannot tell vectors from chance.
    """
    categories = [category for _, category in pairs]
    if categories[0].lower() in HEADERS and categories.count(categories[0]) == 1:
        pairs, categories = pairs[1:], categories[1:]
    if not 1 < len({*categories}) < len(pairs):
        found = f"{pluralise(len(pairs), 'word')} with a category, {len({*categories}):,} different"
        raise W2VError(f"{path}: {found}: purity needs 2 categories or more, and more words than categories")
    return pairs


def _purity(contents: Sequence[list[tuple[str, str]]], words: _Words) -> Iterator[Measured]:
    """Cluster words, and return for each whether its category is the most frequent one of its cluster.

    The mean is the purity (Zhao & Karypis 2001). Unit vectors are clustered by Ward's method (1963), into as many
    clusters as there are categories. The purity by chance is the mean purity if categories are shuffled.
    """
    from scipy.cluster import hierarchy  # slow to import

    (pairs,) = contents
    rows = np.array([words.index.row(word) for word, _ in pairs])
    known = np.flatnonzero(rows >= 0)
    if len(known) > MAX_CLUSTERED:
        raise W2VError(f"{len(known):,} words with categories: at most {MAX_CLUSTERED:,} can be clustered")
    categories = np.unique([category for _, category in pairs], return_inverse=True)[1][known]
    clusters, size = np.zeros(len(known), int), len(np.unique(categories))
    if len(known) > 1:
        tree = hierarchy.linkage(words.units(rows[known]), "ward")
        clusters = hierarchy.fcluster(tree, size, "maxclust")

    def agrees(categories: NDArray[np.int64]) -> Array:
        table = np.zeros((size + 1, categories.max(initial=0) + 1), int)
        np.add.at(table, (clusters, categories), 1)
        return np.asarray(table.argmax(axis=1)[clusters] == categories, float)

    shuffled = np.random.default_rng(SEED).permuted(np.tile(categories, (SHUFFLES, 1)), axis=1)
    chance = float(np.mean([agrees(each).mean() for each in shuffled])) if len(known) else None
    yield Measured("purity", ItemScores(known, agrees(categories), len(pairs)), chance=chance)


def _outliers(contents: Sequence[list[list[str]]], words: _Words) -> Iterator[Measured]:
    """Return for each outlier whether it is the least similar of a group of words, and its place.

    Words are ordered by the mean cosine to the others, which is the order of the compactness score of
    Camacho-Collados & Navigli 2016, "Find the word that does not belong". The place is their outlier position
    percentage: the share of words that are more similar to the others than the outlier, 0 to 1.
    """
    found, places, sizes = list[int](), list[float](), list[int]()
    outliers = [(group, word) for group, outsiders in contents for word in outsiders]
    for number, (group, word) in enumerate(outliers):
        rows, outlier = words.known(group), words.index.row(word)
        if len(rows) > 1 and outlier >= 0:
            vectors = words.units([*rows, outlier])
            sums = (vectors @ vectors.T).sum(axis=1)
            above = np.count_nonzero(sums[:-1] > sums[-1]) + np.count_nonzero(sums[:-1] == sums[-1]) / 2
            found.append(number)
            places.append(above / len(rows))
            sizes.append(len(rows) + 1)
    items, place = np.array(found, int), np.array(places)
    chance = float(np.mean(1 / np.array(sizes))) if sizes else None
    yield Measured("outliers found", ItemScores(items, (place == 1).astype(float), len(outliers)), chance=chance)
    yield Measured("outlier position", ItemScores(items, place, len(outliers)), chance=0.5)


def _weat(contents: Sequence[list[list[str]]], words: _Words) -> Iterator[Measured]:
    """Return the association of each target word: its mean cosine with the first attributes minus that with the second.

    The effect size is the difference between the means of the two sets of targets, divided by the standard deviation of
    all (Caliskan, Bryson & Narayanan 2017). The p-value is one-sided: the share of divisions of the targets into two
    sets of these sizes with a difference at least as large.
    """
    (sets,) = contents
    targets = np.array([words.index.row(word) for each in sets[:2] for word in each], int)
    attributes = [words.known(each) for each in sets[2:]]
    items = np.flatnonzero(targets >= 0)
    strata = (items >= len(sets[0])).astype(int)
    if np.bincount(strata, minlength=2).min() < 2 or not all(map(len, attributes)):
        items = strata = np.zeros(0, int)
    first, second = (words.units(each).sum(axis=0) / max(1, len(each)) for each in attributes)
    values = words.units(targets[items]) @ (first - second)
    scores = ItemScores(items, values.astype(float), len(targets), strata=strata)
    yield Measured("WEAT effect size", scores, resampled(_effect_size), 0.0)
    yield Measured("WEAT p-value", scores, _permutation_p)


def _effect_size(weights: NDArray[np.int64], items: ItemScores) -> Array:
    is_second, total = items.strata, weights.sum(axis=1)
    assert is_second is not None
    with np.errstate(invalid="ignore", divide="ignore"):
        first = (weights * (1 - is_second)) @ items.values / (weights @ (1 - is_second))
        second = (weights * is_second) @ items.values / (weights @ is_second)
        variance = (weights @ items.values**2 - (weights @ items.values) ** 2 / total) / (total - 1)
        effect: Array = (first - second) / np.sqrt(np.maximum(variance, 0))
    return effect


def _permutation_p(models: Any, seed: int) -> Array:
    """Return the p-value of each model, without resamples; see Statistic."""
    from scipy.stats import permutation_test  # slow to import

    values = [(each.values[each.strata == 0], each.values[each.strata == 1]) for each in models]
    options: dict[str, Any] = {"n_resamples": PERMUTATIONS, "alternative": "greater", "random_state": seed}

    def difference(first: Array, second: Array, axis: int) -> Any:
        return first.mean(axis=axis) - second.mean(axis=axis)

    p_values = [
        permutation_test(both, difference, vectorized=True, **options).pvalue if min(map(len, both)) > 1 else np.nan
        for both in values
    ]
    return np.array(p_values)[:, None]


def _bats(contents: Sequence[list[tuple[str, str]]], words: _Words) -> Iterator[Measured]:
    """Answer the analogies of relations, each a list of n pairs of a word and its right answers, by three methods.

    "3CosAdd" asks n (n - 1) questions: a is to b as c is to what? "3CosAvg" adds the mean of b - a over all other pairs
    to c. "LRCos" multiplies the cosine with c by the probability that a word belongs to the answers, from a logistic
    regression on the other pairs: their answers, against their first words and as many random words. Gladkova, Drozd &
    Matsuoka 2016; Drozd, Gladkova & Matsuoka 2016, "Word embeddings, analogies, and machine learning".
    """
    from scipy.special import expit  # slow to import

    units = words.units(slice(words.size))
    names, random = ("3CosAdd", "3CosAvg", "LRCos"), np.random.default_rng(SEED)
    results: dict[str, list[Array]] = {name: [np.empty((0, 3))] for name in names}  # item, stratum, value
    for number, pairs in enumerate(contents):
        firsts = np.array([words.index.row(word) for word, _ in pairs])
        answers = [words.known(text.split("/")) for _, text in pairs]
        known = np.array([row for row, each in enumerate(answers) if len(each) and firsts[row] >= 0], int)
        if len(known) < 3:
            continue
        a, right = units[firsts[known]], [answers[row] for row in known]
        rows = np.array([each[0] for each in right])
        offsets = units[rows] - a
        others = (offsets.sum(axis=0) - offsets) / (len(known) - 1)
        noise = units[random.integers(len(units), size=len(known))]
        inputs, target = np.concatenate([units[rows], a, noise]), np.repeat([1.0, 0, 0], len(known))[:, None]
        cosines = units @ a.T  # (V, n)
        weights = [fit_logistic(*(np.delete(each, row, axis=0) for each in (inputs, target))) for row in range(len(a))]
        fitted = np.concatenate(weights, axis=1)
        likely = expit(units @ fitted[:-1] + fitted[-1])
        given, asked_for = np.argwhere(~np.eye(len(known), dtype=bool)).T  # numbers of pairs, n (n - 1) each
        questions = np.column_stack([firsts[known][given], rows[given], firsts[known][asked_for]])
        best = best_answers(units, questions.astype(np.int32), words.index.next_variant, "add")
        asked = {"3CosAdd": (best, asked_for, known[given] * len(pairs) + known[asked_for])}
        for name, scores in (("3CosAvg", units @ (a + others).T), ("LRCos", likely * cosines)):
            scores[words.index.first_variant[:, None] == firsts[known]] = -np.inf  # also in other cases
            asked[name] = scores.argmax(axis=0), np.arange(len(known)), known
        for name, (found, place, item) in asked.items():
            is_right = [words.index.first_variant[row] in right[at] for row, at in zip(found, place, strict=True)]
            results[name].append(np.column_stack([item + (number << 32), np.full(len(item), number), is_right]))
    totals = [sum(len(pairs) * (len(pairs) - 1) for pairs in contents), *[sum(map(len, contents))] * 2]
    for (name, parts), total in zip(results.items(), totals, strict=True):
        item, stratum, value = np.concatenate(parts).T
        yield Measured(name, ItemScores(item.astype(int), value, total, strata=stratum.astype(int)))


# By whether the test set is a folder, and the kind of its files: a function that yields the results of a model.
_MEASURES: dict[tuple[object, ...], Callable[[Any, _Words], Iterator[Measured]]] = {
    (False, "pairs"): _purity,
    (True, "pairs"): _bats,
    (False, "outliers"): _outliers,
    (True, "outliers"): _outliers,
    (False, "WEAT"): _weat,
}
