"""What is said about texts that are small or not prepared, and about others not."""

import warnings
from contextlib import suppress
from pathlib import Path

import pytest

import w2v
from tests.helpers import QUICK, SMALL, Stop, read_text, run
from w2v.data import make
from w2v.gensim.models import Word2Vec
from w2v.text import advice
from w2v.text.corpus import Corpus

PLAIN = "it was the best of times , it was the worst of times . new_york #one @two <s>\n"
RAW = 'It was the best of times, it was the worst of times. "Was it?" she said.\n'
CHINESE = "那是最美好的时代那是最糟糕的时代那是智慧的年头那是愚昧的年头。\n"


def lines(text: str, path: Path, epochs: int | str = "auto") -> list[str]:
    path.write_text(text, "utf-8")
    with read_text(Corpus(path)) as store, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        advice.warn_of(store, epochs)
    assert all(each.category is w2v.TextWarning for each in caught)
    return [str(each.message) for each in caught]


def test_little_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "text"
    expected = "the text has 18 words, which are few to learn word vectors from: add more text"
    assert lines(PLAIN, text) == lines(PLAIN, text, epochs=20) == [expected]
    assert lines(PLAIN, text, epochs=5) == [f"{expected}; more epochs than 5 would also help"]
    monkeypatch.setattr(advice, "LITTLE", 18)
    assert lines(PLAIN, text) == []


def test_words_that_are_not_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "LITTLE", 0)
    (line,) = lines(RAW, tmp_path / "text")
    assert line.startswith("31% of the words begin or end with punctuation, 12% have capital letters: ")
    assert lines(PLAIN + RAW.lower() + 20 * PLAIN, tmp_path / "text") == []
    assert len(lines(RAW + 100 * PLAIN, tmp_path / "text")) == 0
    assert line.endswith('; add --lower (lower=True) and --tokenize words (tokenize="words")')
    (line,) = lines(3 * PLAIN.title(), tmp_path / "text")
    assert line.endswith("; add --lower (lower=True)")


def test_text_without_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "LITTLE", 0)
    (line,) = lines(CHINESE, tmp_path / "text")
    assert line.startswith("words have 31 characters on average, so the text has hardly any spaces")
    assert lines(" ".join(CHINESE.removesuffix("。\n")) + "\n", tmp_path / "text") == []


def test_a_text_without_spaces_is_refused_for_that(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(CHINESE, "utf-8")
    refused = run("train", text, "-o", tmp_path / "m.bin", code=1).stderr
    assert refused.startswith(
        "w2v: no word occurs 5 times: words have 31 characters on average, so the text has hardly"
    )


def test_the_sample_is_not_criticised(sample: Path, tmp_path: Path) -> None:
    assert lines(sample.read_text("utf-8"), tmp_path / "text") == []
    assert len(lines("".join(make.corpus(1_000, seed=1)), tmp_path / "text")) == 1


def test_two_spellings_of_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "LITTLE", 0)
    composed, decomposed = "caf\u00e9 ol\u00e9\n", "cafe\u0301\n"
    (line,) = lines(3000 * composed + decomposed, tmp_path / "text")
    assert line == (
        "'café' has two spellings, which are two words (Unicode NFC and NFD): add --normalize nfc (normalize=\"nfc\")"
    )
    (line,) = lines(decomposed, tmp_path / "text")
    assert line.startswith("'café' is decomposed, and in queries usually composed (")
    assert lines(composed + 2000 * PLAIN + decomposed.replace("c", "d"), tmp_path / "text") == []
    with read_text(Corpus(tmp_path / "text"), normalize="nfc") as store:
        assert "dafé" in store.types


def test_python_is_warned_at_the_line_that_calls(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(1000 * RAW)

    def stop(*_: object) -> None:
        raise Stop

    calls = {
        "train": lambda: w2v.train(text, **SMALL),
        "tune": lambda: w2v.tune(text, time="9s", finished=stop, **SMALL),
        "gensim": lambda: Word2Vec(corpus_file=str(text), **SMALL),
    }
    for name, call in calls.items():
        with pytest.warns(w2v.TextWarning) as caught, suppress(Stop):
            call()
        assert {each.filename for each in caught} == {__file__}, name
        assert len(caught) == 2


def test_a_model_of_gensim_is_warned_of_once() -> None:
    text = [["a", "b", "c"]] * 9
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Word2Vec(text, min_count=1, vector_size=2, epochs=1, hs=1, sg=1)
        model.train(text, total_examples=9, epochs=2)
    assert [str(each.message) for each in caught] == [
        "the text has 27 words, which are few to learn word vectors from: add more text"
    ]


def test_the_command_says_it_once_and_not_with_quiet(tmp_path: Path) -> None:
    text, states = tmp_path / "text", tmp_path / "states"
    text.write_text(100 * RAW)
    shown = run("train", text, "-o", tmp_path / "m.bin", *QUICK, "--checkpoint", states)
    assert [line.split(":")[0] for line in shown.stderr.splitlines()] == 2 * ["w2v"]
    assert run("train", text, "-o", tmp_path / "n.bin", *QUICK, "--quiet").output == ""
    assert run("train", text, "--resume", states, "-o", tmp_path / "m.bin", "--force").stderr == ""
