"""Changed words are found among noise."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._evaluation.change import change
from w2v._formats.header import ModelHeader
from w2v._vectors.cosines import cosine

WORDS, SIZE = 1500, 20
BASE = np.random.default_rng(1).normal(size=(WORDS, SIZE))
COUNTS = (200_000 / np.arange(1, WORDS + 1)).astype(int)  # from 133 upwards
SWAPPED = [f"w{row}" for row in range(200, 230)]


def noisy_model(seed: int, swap: bool = False, **more: Any) -> w2v.KeyedVectors:
    """Return a rotation of BASE with noise that is larger for rare words. With `swap`, SWAPPED words are exchanged."""
    random = np.random.default_rng(seed)
    base = BASE.copy()
    if swap:
        base[200:230] = BASE[229:199:-1]
    noise = random.normal(size=BASE.shape) * 12 / np.sqrt(COUNTS)[:, None]
    rotation = np.linalg.qr(random.normal(size=(SIZE, SIZE)))[0]
    counts = random.poisson(COUNTS) + 1
    return w2v.KeyedVectors([f"w{row}" for row in range(WORDS)], (base + noise) @ rotation, counts, **more)


@pytest.mark.parametrize("measure", ["cosine", "neighbourhood"])
def test_swapped_words_come_first(measure: Any) -> None:
    found = change(noisy_model(1), noisy_model(2, swap=True), measure=measure, topn=40)
    assert {*SWAPPED} <= {word.word for word in found.words[:33]}
    assert found.compared == WORDS


def test_rare_words_do_not_fill_the_list() -> None:
    """Their distances are the largest, but not compared with words of similar frequency."""
    first, second = noisy_model(1), noisy_model(2)
    found = change(first, second, topn=WORDS)
    rows = np.array([int(word.word[1:]) for word in found.words])
    by_distance = rows[np.argsort([-word.cosine.value for word in found.words])]
    assert np.median(by_distance[:100]) > 0.8 * WORDS
    assert 0.25 * WORDS < np.median(rows[:100]) < 0.75 * WORDS


def test_distances_match_the_definition() -> None:
    first = noisy_model(1)
    second = w2v.KeyedVectors(first.index_to_key, noisy_model(1, swap=True).vectors, first.counts)
    found = change(first, second, words=["w205", "w7"])
    aligned = w2v.align([first, second])
    assert found.fit == aligned.fits[0]
    assert [word.word for word in found.words] == ["w205", "w7"]
    one, two = aligned.vectors
    for word in found.words:
        assert word.cosine.value == pytest.approx(1 - float(one[word.word] @ two[word.word]), abs=1e-6)
        near = [[other for other, _ in each.most_similar(word.word, topn=25)] for each in (one, two)]
        assert [each[:10] for each in near] == [[other for other, _ in side] for side in (word.first, word.second)]
        union = sorted({*near[0], *near[1]})
        sides = [each[union] @ each[word.word] for each in (one, two)]
        expected = 1 - sides[0] @ sides[1] / np.linalg.norm(sides[0]) / np.linalg.norm(sides[1])
        assert word.neighbourhood.value == pytest.approx(float(expected), abs=1e-5)
        assert word.first[0][1] == pytest.approx(one.similarity(word.word, word.first[0][0]), abs=1e-6)
        assert word.counts == [first.counts[int(word.word[1:])]] * 2  # type: ignore[index]
    assert found.words[0].cosine.value > 0.5


def test_models_in_one_coordinate_system_are_not_aligned_again() -> None:
    header = ModelHeader(coordinates="0123")
    first, second = noisy_model(1, header=header), noisy_model(2, header=header)
    found = change(first, second, words=["w0"])
    assert found.fit is None
    assert found.words[0].cosine.value == pytest.approx(1 - cosine(first["w0"], second["w0"]))
    assert found.words[0].cosine.value > 0.3  # rotations of their own
    other = noisy_model(2, header=ModelHeader(coordinates="4567"))
    assert change(first, other, words=["w0"]).words[0].cosine.value < 0.01
    aligned = w2v.align([first, second]).vectors
    assert change(*aligned, words=["w0"]).fit is None


def test_words_are_compared_within_the_limits(caplog: pytest.LogCaptureFixture) -> None:
    first, second = noisy_model(1), noisy_model(2)
    assert change(first, second, restrict_vocab=100).compared == 100
    frequent = int((np.minimum(first.counts, second.counts) >= 1000).sum())  # type: ignore[type-var]
    found = change(first, second, min_count=1000, topn=1)
    assert found.compared == frequent < WORDS
    assert all(int(word[1:]) < frequent + 5 for word, _ in found.words[0].first)
    with pytest.raises(w2v.W2VError, match=r"'w1400' \(\d+ and \d+ times\) is rarer than the limits, min_count 1000,"):
        change(first, second, words=["w1400"], min_count=1000)
    with pytest.raises(w2v.W2VError, match=r"the models share 0 words, 1000000 times or more in each text: at least 2"):
        change(first, second, min_count=1_000_000)
    with pytest.raises(w2v.UnknownWordError, match="not in the vocabulary of the first model: 'new'"):
        change(first, second, words=["new"])
    assert [each.word for each in change(first, second, words=["w1", "new", "w2"]).words] == ["w1", "w2"]
    assert "not in the vocabulary of the first model: 'new'" in caplog.text
    with pytest.raises(w2v.W2VError, match="a list of words is needed, not the string 'w1'"):
        change(first, second, words="w1")


def test_without_counts_a_warning_says_that_rare_words_are_not_left_out(caplog: pytest.LogCaptureFixture) -> None:
    first, second = noisy_model(1), noisy_model(2)
    bare = w2v.KeyedVectors(second.index_to_key, second.vectors)
    change(first, bare, restrict_vocab=100)
    change(first, second)
    assert caplog.messages == []
    assert change(first, bare).compared == WORDS
    assert "a model has no counts of its words, so rare words are not left out" in caplog.messages[0]


def test_without_counts_the_ranks_give_the_frequencies() -> None:
    first, second = noisy_model(1), noisy_model(2)
    bare = [w2v.KeyedVectors(each.index_to_key, each.vectors) for each in (first, second)]
    found = change(*bare, topn=WORDS)
    expected = change(first, second, topn=WORDS)
    assert (found.compared, found.words[0].counts) == (WORDS, None)
    z = {word.word: word.cosine.z for word in found.words}
    both = np.array([(z[word.word], word.cosine.z) for word in expected.words])
    assert np.corrcoef(both.T)[0, 1] > 0.99
    with pytest.raises(w2v.SettingsError, match="min_count has no effect: a model has no counts"):
        change(*bare, min_count=5)


def test_equal_models_have_no_distance() -> None:
    first = noisy_model(1)
    for word in change(first, first, topn=WORDS).words:
        assert 0 <= word.cosine.value < 1e-5
        assert word.neighbourhood.value >= 0
        assert np.isfinite([word.cosine.z, word.neighbourhood.z]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "angle"}, 'measure is \'angle\': it must be "cosine" or "neighbourhood"'),
        ({"topn": 0}, "topn 0: it must be a whole number, 1 or more"),
        ({"min_count": 0}, "min_count 0: it must be a whole number, 1 or more"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.SettingsError, match=message):
        change(noisy_model(1), noisy_model(2), **options)


def test_command_shows_distances_and_neighbours(tmp_path: Path) -> None:
    one, two = paths = [tmp_path / f"{name}.safetensors" for name in ("one", "two")]
    for seed, path in enumerate(paths, 1):
        noisy_model(seed, swap=seed == 2).save(path)
    shown = run("change", one, two, "--topn", 40).stdout
    assert shown.startswith("1,500 words of both models compared\naligned by 1,500 words: mean cosine 0.")
    assert shown.endswith("z compares with all words of similar frequency in these models\n")
    found = run_json("change", one, two, "--topn", 40)
    assert {word["word"] for word in found["words"][:30]} == {*SWAPPED}
    assert found["models"] == [str(one), str(two)]
    first = found["words"][0]
    near = " ".join(word for word, _ in first["second"])
    assert f"\nnearest to {first['word']}\n" in shown
    assert f"  {two}  {near}\n" in shown
    assert f"{first['word']}  " in shown
    shown = run("change", one, two, "--word", "w205", "--word", "w7", "--measure", "neighbourhood").stdout
    lines = shown.splitlines()
    start = lines.index("nearest to w205")
    found = run_json("change", one, two, "--word", "w205")["words"][0]
    (other, cosine), (another, second) = found["first"][0], found["second"][0]
    assert lines[start + 2].split() == [other, f"{cosine:.3f}", another, f"{second:.3f}"]
    assert "topn has no effect with --word" in run("change", one, two, "--word", "w7", "--topn", 3, code=2).stderr


def test_keys_that_are_numbers_can_be_compared(tmp_path: Path) -> None:
    paths = [tmp_path / "one.safetensors", tmp_path / "two.safetensors"]
    for seed, path in enumerate(paths, 1):
        model = noisy_model(seed)
        w2v.KeyedVectors([*range(WORDS)], model.vectors, model.counts).save(path)  # type: ignore[list-item]
    found = run_json("change", *paths, "--word", 7)["words"][0]
    assert found["word"] == 7
    assert run("change", *paths, "--topn", 2).stdout.count("\nnearest to ") == 2
    error = run("change", *paths, "--word", 1400, "--min-count", 1000, code=1).stderr
    assert "'1400' (" in error
    assert "is rarer than the limits" in error
