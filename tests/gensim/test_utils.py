"""gensim.utils, compared with gensim's own functions."""

from pathlib import Path

import pytest

from tests.helpers import import_gensim
from w2v.gensim import utils
from w2v.gensim.sentences import LineSentence

theirs = import_gensim("gensim.utils")
TEXTS = [
    "Hello, World! 42 times",
    "Größe _x_ a I\u0301 café naïve",
    "don't  e-mail\tx1y2z",
    "",
    "ß" * 16 + " 東京 tower",
]


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_match_gensim(text: str) -> None:
    for arguments in ((False, 1, 3), (False, 3, 5), (True, 2, 9), (True, 2, 16), ()):
        for given in (text, text.encode()):
            assert utils.simple_preprocess(given, *arguments) == theirs.simple_preprocess(given, *arguments)
    for options in ({}, {"lowercase": True}, {"to_lower": True}, {"lower": True}, {"deacc": True}):
        assert list(utils.tokenize(text, **options)) == list(theirs.tokenize(text, **options))


def test_simple_preprocess_drops_accents_digits_and_short_words() -> None:
    assert utils.simple_preprocess("The Größe of 3 _cats_, a b", deacc=True) == ["the", "große", "of"]


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
    counter.save(tmp_path / "counter", ignore=["number", "absent"])
    assert Counter.load(tmp_path / "counter").number is None
    assert counter.number == 3
    counter.lifecycle_events = None
    counter.add_lifecycle_event("counted", log_level=0)
    assert counter.lifecycle_events is None
    utils.pickle({1: (2,)}, tmp_path / "object")
    assert utils.unpickle(tmp_path / "object") == {1: (2,)}


@pytest.mark.parametrize("min_reduce", [1, 2, 3])
def test_rare_words_are_dropped_as_by_gensim(min_reduce: int) -> None:
    asked: list[tuple[object, int, float]] = []

    def rule(word: str, count: int, min_count: int) -> int:
        asked.append((word, count, min_count))
        return {"kept": utils.RULE_KEEP, "dropped": utils.RULE_DISCARD}.get(word, utils.RULE_DEFAULT)

    counts = {"one": 1, "two": 2, "three": 3, "kept": 1, "dropped": 9}
    for trim_rule in (None, rule):
        found, expected = counts.copy(), counts.copy()
        cases = ((utils, found), (theirs, expected))
        sums = [module.prune_vocab(vocab, min_reduce, trim_rule) for module, vocab in cases]
        assert found == expected
        assert sums == [sum(counts.values()) - sum(found.values())] * 2
    assert asked[:5] == asked[5:]


@pytest.mark.parametrize("encoding", ["utf8", "latin1"])
def test_conversions_of_text_match_gensim(encoding: str) -> None:
    text = "Größe café"
    for name in ("any2unicode", "any2utf8", "to_unicode", "to_utf8"):
        for value in (text, text.encode(encoding)):
            ours, expected = (getattr(module, name)(value, encoding=encoding) for module in (utils, theirs))
            assert ours == expected, name
    for errors in ("ignore", "replace"):
        assert utils.to_unicode(b"caf\xe9", errors=errors) == theirs.to_unicode(b"caf\xe9", errors=errors)
    with pytest.raises(UnicodeDecodeError):
        utils.to_unicode(b"caf\xe9")


def test_an_event_is_logged_unless_its_level_is_0(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    counter = Counter()
    for level in (20, 10, 0):
        counter.add_lifecycle_event("counted", log_level=level, by=level)
    assert [record.levelname for record in caplog.records] == ["INFO", "DEBUG"]
    assert [event["by"] for event in counter.lifecycle_events or []] == [20, 10, 0]
    assert {"datetime", "gensim", "python", "platform", "event", "by"} == set((counter.lifecycle_events or [{}])[0])


def test_unfinished_pickles_leave_the_old_file(tmp_path: Path) -> None:
    utils.pickle([1], tmp_path / "object")
    with pytest.raises((AttributeError, TypeError, utils.pickles.PicklingError)):
        utils.pickle(lambda: None, tmp_path / "object")
    assert utils.unpickle(tmp_path / "object") == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["object"]


@pytest.mark.parametrize("extension", ["gz", "bz2", "xz", "zst"])
def test_files_are_compressed_as_their_extension_says(tmp_path: Path, extension: str) -> None:
    sentences, pickled = tmp_path / f"sentences.txt.{extension}", tmp_path / f"object.{extension}"
    utils.save_as_line_sentence([["a", "b"], ["c"]] * 100, sentences)
    utils.pickle(["a"] * 1000, pickled)
    assert list(LineSentence(sentences)) == [["a", "b"], ["c"]] * 100
    assert utils.unpickle(pickled) == ["a"] * 1000
    assert sentences.stat().st_size < 200
    assert pickled.stat().st_size < 200
