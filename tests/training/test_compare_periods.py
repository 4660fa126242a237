"""Words that two periods use differently are found by permutations of documents, and no others."""

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import w2v
from tests.helpers import run, run_json
from w2v._training import compare_periods as module
from w2v._training.compare_periods import compare_periods

TOPICS, SIZE = 4, 12
RANDOM = np.random.default_rng(1)
WORDS = [f"w{topic}{letter}" for topic in range(TOPICS) for letter in "abcdefghijklmnopqrst"]
CENTRES = np.repeat(RANDOM.normal(size=(TOPICS, SIZE)), 20, axis=0)
MODEL = w2v.KeyedVectors(WORDS, CENTRES + RANDOM.normal(size=CENTRES.shape) / 3)


def documents(count: int, seed: int, swapped: bool = False) -> list[str]:
    """Return documents of 60 words of one topic. With `swapped`, w0a and w1a are exchanged."""
    random = np.random.default_rng(seed)
    texts = []
    for _ in range(count):
        topic = random.integers(TOPICS)
        own = random.choice(WORDS[20 * topic : 20 * topic + 20], 45)
        words = random.permutation([*own, *random.choice(WORDS, 15)]).tolist()
        swaps = {"w0a": "w1a", "w1a": "w0a"} if swapped else {}
        texts.append(" ".join(swaps.get(word, word) for word in words))
    return texts


def test_swapped_words_are_found_and_no_others() -> None:
    found = compare_periods(documents(90, 1), documents(80, 2, swapped=True), model=MODEL, topn=99, min_count=20)
    assert {found.words[0].word, found.words[1].word} == {"w0a", "w1a"}
    assert (found.significant, found.documents, found.compared) == (2, [90, 80], len(WORDS))
    first = found.words[0]
    assert first.cosine > 0.3 > first.by_chance
    assert first.z > 5
    assert first.p == first.lowest_p == 1 / 20_001
    assert {near[0][0][:2] for near in (first.first, first.second)} == {"w0", "w1"}
    assert found.words[0].adjusted_p <= 0.05 < found.words[2].adjusted_p
    p = [word.p for word in found.words]
    assert [word.adjusted_p for word in found.words] == pytest.approx(stats.false_discovery_control(p))
    assert (found.possible, found.least) == (len(WORDS), math.ceil(len(WORDS) / 20_001 / 0.05))


@pytest.mark.parametrize("size", [80, 200])
def test_words_are_found_with_as_many_words_as_dimensions(size: int) -> None:
    """Least squares without a ridge fits these words exactly, and their differences are lost."""
    topics = np.repeat(np.random.default_rng(2).normal(size=(TOPICS, size)), 20, axis=0)
    model = w2v.KeyedVectors(WORDS, topics + np.random.default_rng(3).normal(size=topics.shape) / 3)
    found = compare_periods(documents(90, 1), documents(80, 2, swapped=True), model=model, topn=2, min_count=20)
    assert {word.word for word in found.words} == {"w0a", "w1a"}
    assert found.significant == 2


@pytest.mark.slow
def test_p_is_not_too_low_if_nothing_has_changed() -> None:
    """All words of a document have its topic, so that tests of single occurrences would find too much."""
    p = [
        word.p
        for seed in range(10)
        for word in compare_periods(
            documents(30, 2 * seed), documents(30, 2 * seed + 1), model=MODEL, topn=99, min_count=10
        ).words
    ]
    assert len(p) > 700
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.025)
    assert np.mean(np.array(p) <= 0.5) == pytest.approx(0.5, abs=0.07)


def test_distances_match_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FITTED", 10**9)
    one, two = documents(30, 1), documents(30, 2, swapped=True)
    shares = np.array([sum(text.split().count(word) for text in one + two) for word in WORDS]) / 3600
    contexts = MODEL.vectors * np.minimum(1, np.sqrt(1e-4 / shares) + 1e-4 / shares)[:, None]

    def sums(texts: list[str], wanted: str) -> Any:
        total, number = np.zeros(SIZE), 0
        for words in map(str.split, texts):
            for at in (at for at, word in enumerate(words) if word == wanted):
                near = words[max(0, at - 5) : at] + words[at + 1 : at + 6]
                total, number = total + sum(contexts[WORDS.index(word)] for word in near), number + 1
        return total / number

    means, own = np.array([sums(one + two, word) for word in WORDS]), MODEL.vectors
    means *= np.linalg.norm(own) / np.linalg.norm(means)
    ridge = module.RIDGE * np.eye(SIZE) * np.square(means).sum(axis=1).mean()
    matrix = np.linalg.lstsq(np.vstack([means, np.sqrt(ridge)]), np.vstack([own, np.sqrt(ridge)]), rcond=None)[0]
    found = compare_periods(one, two, model=MODEL, words=["w3c", "w0a"], min_count=1, min_documents=1).words
    assert [word.word for word in found] == ["w3c", "w0a"]
    for word in found:
        first, second = (sums(texts, word.word) @ matrix for texts in (one, two))
        expected = 1 - first @ second / np.linalg.norm(first) / np.linalg.norm(second)
        assert word.cosine == pytest.approx(expected, abs=1e-4)
        assert word.counts == [sum(text.split().count(word.word) for text in texts) for texts in (one, two)]
        assert word.documents == [sum(word.word in text.split() for text in texts) for texts in (one, two)]


def test_each_file_of_a_folder_is_a_document_and_lines_end_contexts(tmp_path: Path) -> None:
    folders = [tmp_path / "early", tmp_path / "late"]
    periods = documents(12, 1), documents(14, 2)
    for folder, texts in zip(folders, periods, strict=True):
        folder.mkdir()
        for number, text in enumerate(texts):
            (folder / f"{number:02}.txt").write_text(text + "\n")
    options: dict[str, Any] = {"model": MODEL, "min_count": 5, "min_documents": 2, "topn": 3}
    found = compare_periods(*folders, **options)
    assert found.documents == [12, 14]
    assert found == compare_periods(*periods, **options)
    for file in folders[0].iterdir():
        file.write_text(file.read_text().replace(" ", "\n"))  # no word has a context
    assert compare_periods(*folders, **options).documents == [12, 14]
    assert [word.cosine for word in compare_periods(*folders, **options).words] == [1, 1, 1]


def test_too_few_documents_are_said_and_words_can_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    one, two = documents(3, 1), documents(3, 2)
    options: dict[str, Any] = {"model": MODEL, "min_count": 1}
    with pytest.raises(
        w2v.W2VError, match=r"3 and 3 documents share 0 words that occur at least 1 times, in at least 5 docu"
    ):
        compare_periods(one, two, **options)
    found = compare_periods(one, two, **options, min_documents=2, topn=10**6)
    assert (found.possible, found.least, found.significant) == (0, 0, 0)
    assert {word.lowest_p for word in found.words} == {1 / 3}
    assert "no p can be below 0.33, which is too high for any of 4 words" in caplog.text
    assert min(min(word.documents) for word in found.words) == 2
    excluded = [word.word for word in found.words[:2]]
    others = compare_periods(one, two, **options, min_documents=2, topn=10**6, exclude=[*excluded, "unknown"])
    assert others.compared == found.compared - 2
    assert "the model lacks 1 of 3 words to exclude" in caplog.text
    with pytest.raises(w2v.W2VError, match=f"'{excluded[0]}' is not compared: it is excluded, unknown, or occurs less"):
        compare_periods(one, two, **options, min_documents=2, exclude=excluded, words=excluded)


def test_lowest_p_depends_on_the_documents_of_the_word() -> None:
    """Only the first of two pairs of exchanged words is in more than five documents of each period."""
    filler = " w2c w3d w2e w3f"
    early = [f"w0c w0a w0d w1c w1a w1d{filler}"] * 60
    late = [f"w0c w1a w0d w1c w0a w1d{filler}"] * 60
    rare = "w0e w0b w0f w1e w1b w1f", "w0e w1b w0f w1e w0b w1f"
    early[:5], late[:5] = (
        [text + " " + more for text in texts[:5]] for texts, more in zip((early, late), rare, strict=True)
    )
    found = compare_periods(early, late, model=MODEL, min_count=5, topn=99)
    words = {word.word: word for word in found.words}
    assert (words["w0b"].p, words["w0b"].lowest_p) == (1 / 126, 1 / 126)  # all deals: 10! / 5! / 5!, in pairs
    assert (words["w0a"].p, words["w0a"].lowest_p) == (1 / 20_001, 1 / 20_001)
    assert all(word.p >= word.lowest_p for word in found.words)
    lowest = [word.lowest_p for word in found.words]
    assert found.possible == np.sum(stats.false_discovery_control(lowest) <= 0.05)
    assert found.least == 1


def test_all_deals_are_dealt_once_except_the_observed_one() -> None:
    periods = object.__new__(module._Periods)
    periods._random = np.random.default_rng(1)
    deals = Counter(tuple(np.flatnonzero(deal)) for some in periods._deals(11, 5) for deal in some)
    assert len(deals) == math.comb(11, 5) - 1
    assert {*deals.values()} == {1}
    assert {*map(len, deals)} == {5}
    assert (0, 1, 2, 3, 4) not in deals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_documents": 0}, "min_documents 0: it must be a whole number, 1 or more"),
        ({"lower": True}, "lower has no effect with model, which has its own settings"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.SettingsError, match=message):
        compare_periods(documents(2, 1), documents(2, 2), model=MODEL, **options)


def test_a_text_in_both_periods_or_read_only_once_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "train", lambda *_, **__: pytest.fail("it trains"))
    one, two = documents(9, 1), documents(9, 2)
    (tmp_path / "period").mkdir()
    file = tmp_path / "period" / "early.txt"
    file.write_text("\n".join(one))
    for other in (file, tmp_path / "period", tmp_path / "period" / ".." / "period" / "early.txt"):
        with pytest.raises(w2v.SettingsError, match=r"early.txt is in both periods: give each document to one period"):
            compare_periods(file, other)
    for texts, name in ((iter(two), "the text"), (Path("-"), "standard input")):
        with pytest.raises(w2v.SettingsError, match=f"^{name}: it can be read only once, but it is trained and then"):
            compare_periods(file, texts)
    options: dict[str, Any] = {"model": MODEL, "min_count": 1, "min_documents": 1}
    assert compare_periods(iter(one), iter(two), **options) == compare_periods(one, two, **options)


def test_command_trains_and_shows_what_the_documents_allow(tmp_path: Path) -> None:
    paths = [tmp_path / "early.txt", tmp_path / "late.txt"]
    for seed, path in enumerate(paths):
        path.write_text("\n".join(documents(30, seed, swapped=seed == 1)).upper())
    MODEL.save(tmp_path / "model.safetensors")
    (tmp_path / "names").write_text("W2A\nw2b\n")
    found = run_json(
        "compare-periods", *paths, "--lower", "--min-count", 5, "--exclude", tmp_path / "names", "--topn", 99
    )
    assert (found["documents"], found["periods"]) == ([30, 30], list(map(str, paths)))
    assert {"w2a", "w2b"}.isdisjoint(word["word"] for word in found["words"])
    shown = run("compare-periods", *paths, "--lower", "--min-count", 5, "--word", "w0a", "--word", "w1a").stdout
    assert shown.startswith("30 and 30 documents; 80 words of both compared\n")
    assert "\nnearest to w0a\n" in shown
    assert re.search("\n[78][0-9] words could count as changed with so many documents, if at least [1-9]", shown)
    with_model = ("compare-periods", *paths, "--min-count", 5, "--model", tmp_path / "model.safetensors")
    assert "lower has no effect with --model" in run(*with_model, "--lower", code=2).stderr
