"""The sentence readers, compared with gensim's own."""

import bz2
from pathlib import Path

import pytest

from tests.helpers import import_gensim
from w2v.gensim import sentences
from w2v.gensim.sentences import BrownCorpus, LineSentence, Text8Corpus

theirs = import_gensim("gensim.models.word2vec")
LINES = [[f"w{number * place % 11}" for place in range(1 + number % 9)] for number in range(60)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in LINES))
    return path


def test_readers_match_gensim(file: Path) -> None:
    compressed = file.with_name("compressed.bz2")
    compressed.write_bytes(bz2.compress(file.read_bytes() + b"\n\ncaf\xc3\xa9 last"))
    for name, path in [("LineSentence", file), ("LineSentence", compressed), ("PathLineSentences", file.parent)]:
        for options in ({}, {"max_sentence_length": 5}, {"limit": 3}):
            ours = getattr(sentences, name)(path, **options)
            assert list(ours) == list(getattr(theirs, name)(str(path), **options)), (name, options)
            assert list(ours) == list(ours)
    with file.open("rb") as opened:
        assert list(LineSentence(opened)) == LINES
        again = LineSentence(opened, limit=3)
        assert list(again) == list(again) == LINES[:3]  # from the start of the file
    file.write_text(file.read_text().replace("\n", " "))
    assert list(Text8Corpus(file, 100)) == list(theirs.Text8Corpus(str(file), 100))


class Piece(bytes):
    def __radd__(self, other: bytes) -> bytes:
        raise AssertionError("the unfinished line is copied for each piece")


def test_long_lines_are_joined_without_repeated_copies(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [b"a b", b"c d", b"e\nf", b"g"]
    monkeypatch.setattr(sentences, "_pieces", lambda _: map(Piece, pieces))
    assert list(LineSentence(file)) == [["a", "bc", "de"], ["fg"]]


def test_line_sentence_refuses_a_list() -> None:
    with pytest.raises(TypeError, match="LineSentence takes"):
        list(LineSentence(["a line"]))  # type: ignore[arg-type]


def test_brown_corpus_matches_gensim(tmp_path: Path) -> None:
    (tmp_path / "ca01").write_text("The/at Jury/nn-tl said/vbd ,/, 1/2/cd\n\n./.\nTerm-end/nn plain\n")
    assert list(BrownCorpus(tmp_path)) == list(theirs.BrownCorpus(str(tmp_path)))
    assert next(iter(BrownCorpus(tmp_path))) == ["the/at", "jury/nn", "said/vb"]


def test_sentences_with_a_limit_are_not_read_as_whole_files(file: Path) -> None:
    assert sentences.files_of(LineSentence(file), None) == [file]
    assert sentences.files_of(LineSentence(file, limit=3), None) is None
    for reader in (LineSentence, Text8Corpus):
        for length, files in ((5, None), (9_999, None), (10_000, [file]), (20_000, [file])):
            assert sentences.files_of(reader(file, max_sentence_length=length), None) == files
    assert sentences.files_of(sentences.PathLineSentences(file.parent), None) == [file]
    assert sentences.files_of(sentences.PathLineSentences(file), None) == [file]
    assert sentences.files_of(sentences.PathLineSentences(file.parent, limit=1), None) is None
    assert sentences.files_of(None, file) == [file]
    assert sentences.files_of(None, file.with_name("missing")) is None
    assert sentences.files_of([["a", "b"]], None) is None
    with file.open("rb") as opened:
        assert sentences.files_of(LineSentence(opened), None) is None
