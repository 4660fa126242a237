"""Text in other encodings than UTF-8: reading, caching, resuming and encoding it, and error messages with advice."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

import w2v
from tests.helpers import QUICK, SMALL, read_text, run
from w2v._errors import SettingsError, W2VError
from w2v._text.corpus import Corpus
from w2v._text.encodings import encoding_name, to_utf_8

KOREAN = "서울은 대한민국의 수도이다 그리고 한강을 끼고 있는 도시이다\n"
FRENCH = "l'été dernier était déjà très chaud\n"
TEXTS = {
    "latin-1": FRENCH,
    "cp1252": "“œuvre” coûte 5 €\n",
    "cp949": KOREAN,
    "utf-16": KOREAN,
    "utf-16-le": FRENCH,
    "shift_jis": "東京 は 日本 の 首都\n",
    "gb18030": "那 是 最 美好 的 时代\n",
    "koi8-r": "Москва столица\n",
}


def pieces_of(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@given(st.sampled_from([*TEXTS.items()]), st.integers(1, 9))
def test_pieces_of_any_size_are_converted(text: tuple[str, str], size: int) -> None:
    encoding, content = text
    pieces = pieces_of(content.encode(encoding), size)
    assert b"".join(to_utf_8("file", pieces, encoding, "strict")).decode() == content


@pytest.mark.parametrize(
    ("data", "encoding", "position", "bad"),
    [
        (b"ab\xe9 c", "ascii", 2, rb"b'\\xe9"),
        ("가나".encode("cp949") + b"\xff\xff c", "cp949", 4, rb"b'\\xff"),
        ("あ".encode("shift_jis") + b"\x82", "shift_jis", 2, rb"b'\\x82'"),
        (b"\xff\xfea\0\0\xd8b\0", "utf-16", 4, rb"b'\\x00\\xd8"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 99])
def test_bytes_outside_the_encoding_are_refused(
    data: bytes, encoding: str, position: int, bad: bytes, size: int
) -> None:
    message = (
        rf"^file: byte {position}, in {bad.decode()}.* is not {encoding}: give another --encoding, or add --errors"
    )
    with pytest.raises(W2VError, match=message):
        list(to_utf_8("file", pieces_of(data, size), encoding, "strict"))
    for errors in ("replace", "ignore"):
        found = b"".join(to_utf_8("file", pieces_of(data, size), encoding, errors)).decode()  # type: ignore[arg-type]
        assert ("\ufffd" in found) == (errors == "replace")


@pytest.mark.parametrize("name", ["nosuch", "", "hex", "zlib", "rot13", "x\0y", "undefined"])
def test_unknown_encodings_are_refused(name: str) -> None:
    with pytest.raises(
        SettingsError, match=r"^encoding .*(not known to Python: give one such as latin-1|must be a name)"
    ):
        w2v.train(["a b"], encoding=name)
    assert encoding_name("Latin 1") == encoding_name("latin-1") == "iso8859-1"


@pytest.mark.parametrize("encoding", TEXTS)
def test_files_are_read_in_their_encoding(encoding: str, tmp_path: Path) -> None:
    words = sorted(set(TEXTS[encoding].split()))
    files = {"text": TEXTS[encoding].encode(encoding), "table.csv": ("n,t\n1," + TEXTS[encoding]).encode(encoding)}
    files["text.gz"] = gzip.compress(files["text"])
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        column = "t" if name == "table.csv" else None
        with read_text(Corpus(tmp_path / name), encoding=encoding, column=column) as store:
            assert sorted(store.types.tolist()[2:]) == words
        with read_text(Corpus(tmp_path / name), encoding=encoding, column=column, cache=tmp_path / "c") as store:
            assert sorted(store.types.tolist()[2:]) == words
    if not encoding.startswith("utf-16"):
        with pytest.raises(
            W2VError, match=r"is not UTF-8; if it is in another encoding, such as latin-1 or cp949, add"
        ):
            read_text(Corpus(tmp_path / "text"))


def test_utf_16_is_recognised(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        (tmp_path / "text").write_bytes(FRENCH.replace("é", "e").encode(encoding))
        with pytest.raises(W2VError, match=r"text is UTF-16 or UTF-32: add --encoding utf-16 or utf-32 \(encoding="):
            read_text(Corpus(tmp_path / "text"))


def test_an_encoding_for_lists_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^encoding cp949: only files have one: leave it out for texts, lists and"):
        w2v.train([["a", "b"]] * 9, encoding="cp949", **SMALL)


@pytest.mark.parametrize("columns", [{"column": "a"}, {"item": "a", "session": "b"}])
def test_an_encoding_for_parquet_and_arrow_is_refused(tmp_path: Path, columns: dict[str, str]) -> None:
    table = pa.table({"a": ["x y"], "b": ["z"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.arrow")
    for name, kind in (("t.parquet", "Parquet"), ("t.arrow", "Arrow")):
        message = rf"{name}: {kind} is always UTF-8: leave out --encoding \(encoding=\)"
        with pytest.raises(SettingsError, match=message):
            read_text(Corpus(tmp_path / name), encoding="latin-1", **columns)
        read_text(Corpus(tmp_path / name), encoding="utf-8", **columns).close()


def test_every_command_accepts_an_encoding(tmp_path: Path) -> None:
    text, utf_8, model, states = (tmp_path / name for name in ("text", "utf_8", "m.safetensors", "states"))
    text.write_bytes((50 * KOREAN).encode("cp949"))
    utf_8.write_text(50 * KOREAN, "utf-8")
    training = [*QUICK, "--sample", 0]
    run("train", text, "--encoding", "cp949", "-o", model, *training, "--checkpoint", states)
    run("train", utf_8, "-o", tmp_path / "other.safetensors", *training)
    first, second = w2v.load(model), w2v.load(tmp_path / "other.safetensors")
    assert first.index_to_key == second.index_to_key
    run("train", text, "--resume", states, "-o", model, "--force")
    for source, more in ((text, ["--encoding", "cp949"]), (utf_8, [])):
        run("encode", model, source, *more, "-o", tmp_path / f"{source.name}.npy")
        run("vocab", source, *more, "-o", tmp_path / f"{source.name}.vocab")
        run("phrases", source, *more, "-o", tmp_path / f"{source.name}.joined")
        run("perplexity", model, source, *more)
    np.testing.assert_array_equal(np.load(tmp_path / "text.npy"), np.load(tmp_path / "utf_8.npy"))
    for name in ("vocab", "joined"):
        assert (tmp_path / f"text.{name}").read_bytes() == (tmp_path / f"utf_8.{name}").read_bytes()
    assert "--encoding" in run("encode", model, text, "-o", tmp_path / "o.npy", code=1).stderr
    assert "not known to Python" in run("train", text, "--encoding", "korean2", code=2).stderr


def test_malformed_utf_16_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("café crème\n".encode("latin-1"))
    error = run("train", tmp_path / "text", "--encoding", "utf-16", "-o", tmp_path / "m.bin", code=1).stderr
    assert "it is not utf-16" in error
    assert "give another --encoding" in error
    assert "--errors" not in error  # would not help
