"""Scores on test sets of words, compared with scikit-learn, SciPy and plain loops."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.cluster import contingency_matrix

import w2v
from tests.helpers import run, run_json
from w2v._evaluation import word_sets
from w2v._evaluation.scores import Evaluation
from w2v._vectors.keyed import KeyedVectors

GROUPS = [[f"{letter}{number}" for number in range(8)] for letter in "xyz"]


def vectors(noise: float = 1.5) -> KeyedVectors:
    """Return vectors of three groups of words, and of their plurals, which differ by the same offset."""
    random = np.random.default_rng(1)
    rows = np.repeat(3 * np.eye(3, 12), 8, axis=0) + noise * random.normal(size=(24, 12)) / 2
    plurals = rows + 2 * np.eye(12)[5] + noise * random.normal(size=(24, 12)) / 4
    words = [word for group in GROUPS for word in group]
    return KeyedVectors([*words, *(f"{word}s" for word in words)], np.vstack([rows, plurals]))


def unit_rows() -> dict[str, np.ndarray]:
    found = vectors()
    return {word: found[word] / np.linalg.norm(found[word]) for word in found.index_to_key}


def results(path: Path, *models: KeyedVectors) -> Evaluation:
    """Return the scores on a test set only."""
    return Evaluation(one for one in w2v.evaluate(*models or [vectors()], test=path) if one.name == path.name)


@pytest.mark.parametrize("mark", ["\t", ",", " "])
def test_purity_is_that_of_a_contingency_table(mark: str, tmp_path: Path) -> None:
    pairs = [(word, group[0][0]) for group in GROUPS for word in group]
    path = tmp_path / "categories"
    path.write_text(
        "".join(f"{word}{mark}{category}{mark * (mark != ' ')}\n" for word, category in [*pairs, *pairs[:4]])
    )
    (found,) = results(path)
    from scipy.cluster import hierarchy

    tree = hierarchy.linkage(np.stack([unit_rows()[word] for word, _ in pairs]), "ward")
    table = contingency_matrix([category for _, category in pairs], hierarchy.fcluster(tree, 3, "maxclust"))
    assert found.measure == "purity"
    assert found.scores[0].value == pytest.approx(table.max(axis=0).sum() / 24)
    assert (found.scores[0].items, found.scores[0].total) == (24, 24)
    assert 1 / 3 < (found.chance or 0) < 0.6
    few = w2v.evaluate(vectors(), test=path, restrict_vocab=2)[-1].scores[0]  # only analogies search fewer words
    assert few == found.scores[0]
    path.write_text(f"word{mark}Category\n" + path.read_text())
    assert results(path)[0].scores == [found.scores[0]]
    path.write_text("a\tb\nunheard\tc\nunseen\tc\n")
    assert results(path)[0].scores[0].value is None


def test_outliers_are_the_least_compact_words(tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    for number, (group, others) in enumerate([(GROUPS[0], GROUPS[1]), (GROUPS[2], GROUPS[0])]):
        (tmp_path / "sets" / f"{number}.txt").write_text("\n".join([*group, "unheard", "", *others, "unheard"]) + "\n")
    rows, found, positions = unit_rows(), [], []
    for group, others in [(GROUPS[0], GROUPS[1]), (GROUPS[2], GROUPS[0])]:
        for outlier in others:
            words = [*group, outlier]
            compactness = {}  # of the words without one: the mean similarity of all pairs
            for left_out in words:
                kept = [word for word in words if word != left_out]
                compactness[left_out] = np.mean([rows[a] @ rows[b] for a, b in itertools.permutations(kept, 2)])
            positions.append(sorted(compactness, key=lambda word: compactness[word]).index(outlier) / len(group))
            found.append(positions[-1] == 1)
    accuracy, position = results(tmp_path / "sets")
    assert 0 < np.mean(found) < 1
    assert accuracy.scores[0].value == pytest.approx(np.mean(found))
    assert position.scores[0].value == pytest.approx(np.mean(positions))
    assert (accuracy.scores[0].items, accuracy.scores[0].total) == (16, 18)
    assert (accuracy.chance, position.chance) == (pytest.approx(1 / 9), 0.5)


def test_weat_has_the_published_effect_size_and_the_exact_p_value(tmp_path: Path) -> None:
    sets = [GROUPS[0][:4], GROUPS[1][:4], GROUPS[0][4:], GROUPS[2]]
    (tmp_path / "weat.json").write_text(json.dumps(dict(zip("XYAB", [[*sets[0], "unheard"], *sets[1:]], strict=True))))
    rows = unit_rows()

    def association(word: str) -> float:
        means = [np.mean([rows[word] @ rows[each] for each in attributes]) for attributes in sets[2:]]
        return float(means[0] - means[1])

    values = [association(word) for word in [*sets[0], *sets[1]]]
    difference = np.mean(values[:4]) - np.mean(values[4:])
    effect, p_value = results(tmp_path / "weat.json")
    assert effect.scores[0].value == pytest.approx(difference / np.std(values, ddof=1))
    assert (effect.scores[0].items, effect.scores[0].total) == (8, 9)
    assert effect.scores[0].low <= effect.scores[0].value <= effect.scores[0].high  # type: ignore[operator]
    found = vectors()
    other = KeyedVectors(found.index_to_key[2:], found.vectors[2:])  # without two of the targets, other rows
    effects, p_values = results(tmp_path / "weat.json", found, other)
    assert (effects.scores[1].items, effects.scores[1].difference, effects.scores[1].p) == (6, 0, 1)
    assert p_values.scores[1].p is None  # the p-values are not compared
    few = KeyedVectors(found.index_to_key[3:], found.vectors[3:])
    assert [each.scores[0].value for each in results(tmp_path / "weat.json", few)] == [None, None]
    divisions = [np.array(chosen) for chosen in itertools.combinations(range(8), 4)]
    extreme = [2 * np.sum(np.array(values)[chosen]) - np.sum(values) >= 4 * difference - 1e-6 for chosen in divisions]
    assert p_value.scores[0].value == pytest.approx(np.mean(extreme))


@pytest.fixture
def relations(tmp_path: Path) -> Path:
    folder = tmp_path / "relations"
    (folder / "plurals").mkdir(parents=True)
    for number, group in enumerate(GROUPS):
        lines = [f"{word}\t{word}s/unheard\n" for word in group[: 8 - number]]
        (folder / "plurals" / f"{number}.txt").write_text("".join([*lines, "unheard\tother\n"]))
    return folder


def test_methods_of_analogies_are_the_published_ones(relations: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    negatives = np.random.default_rng(word_sets.SEED)
    rows, expected = unit_rows(), dict[str, list[bool]]()
    names = [*rows]

    def answer(scores: dict[str, float], right: str, *excluded: str) -> bool:
        return max((word for word in names if word not in excluded), key=lambda word: scores[word]) == right

    for number, group in enumerate(GROUPS):
        group = group[: 8 - number]
        noise = np.stack([rows[names[row]] for row in negatives.integers(len(names), size=len(group))])
        for asked in group:
            others = [word for word in group if word != asked]
            for given in others:
                target = rows[f"{given}s"] - rows[given] + rows[asked]
                scores = {word: float(rows[word] @ target) for word in names}
                expected.setdefault("3CosAdd", []).append(answer(scores, f"{asked}s", asked, given, f"{given}s"))
            target = rows[asked] + np.mean([rows[f"{word}s"] - rows[word] for word in others], axis=0)
            scores = {word: float(rows[word] @ target) for word in names}
            expected.setdefault("3CosAvg", []).append(answer(scores, f"{asked}s", asked))
            examples = np.vstack([*(rows[f"{word}s"] for word in others), *(rows[word] for word in group), noise])
            is_answer = np.arange(len(examples)) < len(others)
            fitted = LogisticRegression(tol=1e-6, max_iter=1000).fit(examples, is_answer)
            likely = fitted.predict_proba(np.stack([*rows.values()]))[:, 1]
            scores = {word: float(rows[word] @ rows[asked]) * p for word, p in zip(names, likely, strict=True)}
            expected.setdefault("LRCos", []).append(answer(scores, f"{asked}s", asked))
    for one in results(relations):
        assert one.scores[0].value == pytest.approx(np.mean(expected[one.measure])), one.measure
        assert 0 < np.mean(expected[one.measure]) < 1
    totals = {one.measure: (one.scores[0].items, one.scores[0].total) for one in results(relations)}
    assert totals == {"3CosAdd": (128, 170), "3CosAvg": (21, 24), "LRCos": (21, 24)}


def test_models_without_the_words_have_no_score(relations: Path) -> None:
    other = KeyedVectors(["a", "b"], np.eye(2))
    for one in results(relations, vectors(), other):
        assert one.scores[0].value is not None
        assert (one.scores[1].value, one.scores[1].items) == (None, 0)
    note = "model 1 knows none or too few of the words: it has no score for relations"
    assert note in str(w2v.evaluate(other, test=relations))


def test_the_command_takes_several_sets(relations: Path, tmp_path: Path) -> None:
    vectors().save(tmp_path / "m.txt")
    (tmp_path / "o.txt").write_text("x0\nx1\n\ny1\n")
    found = run_json("evaluate", tmp_path / "m.txt", "--test", relations, "--test", tmp_path / "o.txt")["results"]
    assert [one["name"] for one in found[4:]] == ["relations"] * 3 + ["o.txt"] * 2
    assert "outliers found (chance 0.333)" in run("evaluate", tmp_path / "m.txt", "--test", tmp_path / "o.txt").stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("word\n", "set, line 1: not a test set of words. The layouts are: a word and its category"),
        ("", "set, line 1: not a test set of words"),
        ("a\tb\nword\n", "set, line 2: not a test set of words"),
        ("x0 x1 y0 y1\nz0 z1\n", "set, line 1: not a test set of words"),
        ("x0\ta\nx1\ta\n", "set: 2 words with a category, 1 different: purity needs 2 categories"),
        ("word,category\nx0,a\nx1,b\n", "set: 2 words with a category, 2 different: .* more words than categories"),
        ('{"a": ["b"]}', "1 lists of words: WEAT needs 4"),
        ('{"a": {"b": []}, "c": [], "d": [], "e": []}', "not a JSON object of lists of words: Expected `array`"),
        (": capitals\na b c d\n", "set: analogy questions, not a test set of words"),
    ],
)
def test_other_files_are_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "set").write_text(content)
    with pytest.raises(w2v.W2VError, match=message):
        w2v.evaluate(vectors(), test=tmp_path / "set")


def test_folders_of_other_files_are_refused(relations: Path, tmp_path: Path) -> None:
    (relations / "o.txt").write_text("x0\nx1\n\ny1\n")
    (tmp_path / "empty").mkdir()
    for path, message in (
        (relations, "files of the kinds outliers, pairs, not"),
        (tmp_path / "empty", "no .txt files"),
    ):
        with pytest.raises(w2v.W2VError, match=message):
            w2v.evaluate(vectors(), test=path)
