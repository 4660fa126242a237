"""gensim.utils, compared with gensim's own functions."""

from pathlib import Path

import pytest
from gensim import utils as theirs

from w2v.gensim import utils

TEXTS = [
    "Hello, World! 42 times",
    "Größe _x_ a I\u0301 café naïve",
    "don't  e-mail\tx1y2z",
    "",
    "ß" * 16 + " 東京 tower",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("deacc", [False, True])
def test_tokens_match_gensim(text: str, deacc: bool) -> None:
    assert utils.simple_preprocess(text, deacc, max_len=9) == theirs.simple_preprocess(text, deacc, max_len=9)
    assert utils.simple_preprocess(text.encode()) == theirs.simple_preprocess(text.encode())
    assert list(utils.tokenize(text, deacc=deacc)) == list(theirs.tokenize(text, deacc=deacc))


def test_simple_preprocess_drops_accents_digits_and_short_words() -> None:
    assert utils.simple_preprocess("The Größe of 3 _cats_, a b", deacc=True) == ["the", "große", "of"]


def test_corpus_wrappers_match_gensim() -> None:
    for kind, number in [("RepeatCorpus", 5), ("RepeatCorpusNTimes", 2), ("ClippedCorpus", 1), ("ClippedCorpus", None)]:
        ours = getattr(utils, kind)([["a"], ["b"]], number)
        assert list(ours) == list(ours) == list(getattr(theirs, kind)([["a"], ["b"]], number))
    assert len(utils.ClippedCorpus([1, 2], 1)) == 1
    assert len(utils.ClippedCorpus([1, 2])) == 2


class Counter(utils.SaveLoad):
    number = 0


def test_user_defined_objects_are_pickled(tmp_path: Path) -> None:
    counter = Counter()
    counter.number = 3
    counter.add_lifecycle_event("counted", by=3)
    counter.save(tmp_path / "counter")
    loaded = Counter.load(tmp_path / "counter")
    assert loaded.number == 3
    assert [event["event"] for event in loaded.lifecycle_events] == ["counted", "saving"]
    counter.lifecycle_events = None
    counter.add_lifecycle_event("counted", log_level=0)
    assert counter.lifecycle_events is None
    utils.pickle({1: (2,)}, tmp_path / "object")
    assert utils.unpickle(tmp_path / "object") == {1: (2,)}


def test_text_is_converted_between_encodings(tmp_path: Path) -> None:
    assert utils.any2unicode("café".encode("latin1"), "latin1") == "café"
    assert utils.any2utf8("café".encode("latin1"), encoding="latin1") == utils.to_utf8("café") == b"caf\xc3\xa9"
    utils.save_as_line_sentence([["a", "b"], ["é"]], str(tmp_path / "text"))
    assert (tmp_path / "text").read_text("utf-8") == "a b\né\n"
