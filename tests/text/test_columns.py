"""Reading the text in a column of JSON lines, CSV and Parquet."""

import csv
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tests.helpers import read_text, run
from w2v._detect import kind_of
from w2v._errors import SettingsError, W2VError, install_command
from w2v._system.files import SIGNATURE_BYTES
from w2v._text import columns, corpus
from w2v._text._text import PADDING
from w2v._text.columns import refuse_table
from w2v._text.corpus import Corpus

TEXTS = st.lists(st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\r")), min_size=1, max_size=20)


@given(TEXTS, st.integers(1, 50), st.booleans(), st.booleans(), st.sampled_from(",\t;"))
def test_all_table_formats_give_the_same_text(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[str | None],
    size: int,
    strip: bool,
    escaped: bool,
    delimiter: str,
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    rows = (json.dumps({"id": 1, "t": value}, ensure_ascii=escaped) + "\n" for value in values)
    (folder / "a").write_bytes("".join(rows).encode())
    with (folder / "b").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([["n", "t"], *(["1", value or ""] for value in values)])
    parquet.write_table(pyarrow.table({"t": pyarrow.array(values, pyarrow.string())}), folder / "c", row_group_size=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BLOCK_BYTES", size)
        texts = [read(folder / name, column="t", strip_markup=strip) for name in "abc"]
    assert texts[0] == texts[1] == texts[2]
    if not strip:
        assert texts[0] == "".join(f"{value or ''}\n" for value in values).encode()


def read(path: Path, **reading: Any) -> bytes:
    return b"".join(block.text.removesuffix(PADDING) for block in Corpus(path).blocks(**reading))


def words(path: Path, **reading: Any) -> list[bytes]:
    return read(path, **reading).split()


def test_rows_that_end_with_carriage_returns_are_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"id,text\r1,a b\r2,c\r" * 1000)
    assert list(Corpus(tmp_path / "t.csv").cells(["text"]))[:2] == [
        (f"{tmp_path / 't.csv'}, row 1", ["a b"]),
        (f"{tmp_path / 't.csv'}, row 2", ["c"]),
    ]
    with pytest.raises(W2VError, match="looks like CSV with the columns id, text"):
        read_text(Corpus(tmp_path / "t.csv"), column=None)


def test_missing_texts_are_skipped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"t": "a b"}\n{"t": null}\n{"n": 1}\n{"t": ""}\n')
    (tmp_path / "b.csv").write_text('n,t\n1,a b\n1,\n1,""\n1," "\n')
    parquet.write_table(pyarrow.table({"t": ["a b", None, None, ""]}), tmp_path / "c.parquet")
    for name in ("a.jsonl", "b.csv", "c.parquet"):
        vocabulary = tmp_path / f"{name}.words"
        stderr = run("vocab", tmp_path / name, "--column", "t", "--min-count", 1, "-o", vocabulary).stderr
        assert "skipped 2 missing texts (None, NaN, or an empty field of CSV)\n" in stderr
        assert vocabulary.read_text() == "</s> 1\na 1\nb 1\n"


def test_tables_are_read_from_standard_input(tmp_path: Path) -> None:
    vocabulary = tmp_path / "words"
    run("vocab", "-", "--column", "t", "--min-count", 1, "-o", vocabulary, stdin=b'\xef\xbb\xbfid,t\n1,"a, ""b"""\n')
    assert vocabulary.read_text() == '</s> 1\na, 1\n"b" 1\n'
    run("vocab", "-", "--column", "t", "-o", tmp_path / "no", stdin=b"PAR1\x15", code=1)


def test_progress_in_parquet_follows_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 1000)
    path = tmp_path / "file"
    parquet.write_table(pyarrow.table({"t": 5000 * ["one two three"]}), path)
    done = [block.bytes_done for block in Corpus([path, path]).blocks("t")]
    assert done == sorted(done)
    assert len(set(done)) > 50
    assert done[-1] == 2 * path.stat().st_size


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"t": "a"}, 5]', "line 1: not a JSON object"),
        (b'[{"t": "a"},\n{"t": "b"}\n', "line 3: not JSON: Expecting value"),
        (b'{"t": "a"}\n{"t" "b"}\n', "line 2: not JSON: "),
        (b'{"t": "a"}\n5\n', "line 2: not a JSON object"),
        (b'\n \n{"t": "a"}\n5\n', "line 4: not a JSON object"),
        (b'{"t": {"a": 1}}\n', "line 1: column 't' holds {\"a\": 1}, neither text nor a list"),
        (b'{"text": "a"}\n{"id": 1}\n', "has no column 't'; its columns are text, id"),
        (b'"i\n\x1bd",text\n1,a\n', "has no column 't'; its columns are i\\n\\x1bd, text"),
        (b"id,text\n1,a\n", "has no column 't'; its columns are id, text"),
        (b"id,t\n1,a\n2,b,c\n", "line 3: 3 columns, and 2 in the first row"),
        (b"\n\nid,t\n1,a\n2,b,c\n", "line 5: 3 columns, and 2 in the first row"),
        (b'id,t\n1,"a\n', "line 2: not CSV: "),
        (b"\xff\xfei\0d\0", "is UTF-16 or UTF-32"),
        (b"", "has no column 't'; its columns are none"),
        (b"PAR1\x15 and no more", "damaged: Parquet magic bytes not found in footer"),
        (gzip.compress(b"PAR1\x15"), "a compressed Parquet file: unpack it first"),
        (b"t\na\n\xe9b\n", ", column t: byte 2, in b'\\\\xe9b', is not UTF-8"),
        (b'{"t": "\\ud800"}', ", column t: byte 0, in b'\\\\xed\\\\xa0\\\\x80', is not UTF-8"),
    ],
    ids=range(18),
)
def test_malformed_tables_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(W2VError) as error:
        read_text(Corpus(path), column="t")
    assert str(error.value).startswith(f"{path}")
    assert message.replace("\\\\", "\\") in str(error.value)


TABLES = {
    "a": (b"id,text\n1,one two\n2,three\n", "CSV with the columns id, text;"),
    "b": (b',text,label\r\n0,"It, was\nlate",1\r\n', "CSV with the columns , text, label;"),
    "c": ("nombre;texto útil\n1;a,b\n2;c\n".encode(), "CSV with the columns nombre, texto útil;"),
    "d": (b"id\ttext\n1\tOne, two.\n2\tThree.\n", "CSV with the columns id, text;"),
    "e.csv": (b"id,text\n" + b"1," + 70_000 * b"a " + b"\n2,b\n3,c", "CSV with the columns id, text;"),
    "f.CSV.gz": (gzip.compress(b"text\nOne, two\n"), "CSV with the columns text;"),
    "g.tsv": (b"0\tOne, two.\n", "CSV with the columns 0, One, two.;"),
    "h": (b'{"id": 1, "text": "One, two."}\n', "JSON with the columns id, text;"),
    "i": (b'\n {"text":' + 70_000 * b" " + b'""}', "JSON with the columns text;"),
    "j": (b'{\n  "text": "a"\n}\n', "JSON with the columns text;"),
    "k": (b'[{"text": "a"}]', "JSON with the columns text;"),
    "l": (b'{"text": "' + 2_000_000 * b" " + b'"}', "JSON with the columns text, …;"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_not_read_as_text(tmp_path: Path, name: str) -> None:
    content, message = TABLES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(W2VError) as error:
        read_text(Corpus(path), column=None)
    assert str(error.value).startswith(f"{path} looks like {message}")
    assert str(error.value).endswith(
        '; add --column NAME (column="NAME"), or --column none (column="none") if it is plain text'
    )
    text = gzip.decompress(content) if name.endswith("gz") else content
    assert words(path, column="none") == text.split()


PROSE = st.lists(
    st.tuples(
        st.from_regex(r"""["'(]?[\wé大]{1,8}[.,;:!?)"']*""", fullmatch=True) | st.sampled_from(",;:"),
        st.sampled_from([" ", "  ", "\n", " \n", "\r\n", "\n\n"]),
    )
)


@given(PROSE)
def test_prose_is_not_mistaken_for_a_table(pairs: list[tuple[str, str]]) -> None:
    for text in ("".join(map("".join, pairs)), "\n".join(word for word, _ in pairs)):
        refuse_table("text", text.encode())
        assert kind_of(text.encode(), min_lines=10) == ""


@pytest.mark.parametrize(
    "text",
    [
        b"yes,no\nno,yes\n",  # two columns need three rows
        b"id,text,label\n",
        b"id,text,text\n1,a,b\n2,c,d\n",
        b"id,text,label\n1,a\n2,c,d\n",
        b"id,,label\n1,a,b\n2,c,d\n",
        b"id,text.,label\n1,a,b\n2,c,d\n",
        b"1,text,label\n1,a,b\n2,c,d\n",
    ],
)
def test_lines_with_commas_are_text_unless_they_form_a_table(text: bytes) -> None:
    refuse_table("text", text)
    with pytest.raises(W2VError, match="looks like CSV"):
        refuse_table("text.csv", text)
    for table in (b"yes,no\nno,yes\nno,no\n", b"id,text,label\n1,a,b\n"):
        with pytest.raises(W2VError, match="looks like CSV"):
            refuse_table("text", table)


def test_text_files_are_not_mistaken_for_tables(sample: Path) -> None:
    for file in (sample, *(Path(__file__).parents[2] / "docs").glob("*.md")):
        refuse_table(file.name, file.read_bytes())
        assert kind_of(file.read_bytes(), min_lines=10) == ""


def test_parquet_columns_without_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    parquet.write_table(pyarrow.table({"t": [1, 2], "u": pyarrow.array(["a", None]).dictionary_encode()}), path)
    for column, message in {
        "t": "column 't' holds int64, neither text nor lists; if each row is an item of a session, add --item and --s",
        "x": "has no column 'x'; its columns are t, u",
        None: r"file looks like Parquet with the columns t, u; add --column NAME \(column=",
        "none": "a Parquet table, not text: name the column that holds the text with --column",
    }.items():
        with pytest.raises(W2VError, match=message):
            read_text(Corpus(path), column=column)
    assert words(path, column="u") == [b"a"]


def test_parquet_without_pyarrow_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    parquet.write_table(pyarrow.table({"t": ["a"]}), path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(W2VError, match=re.escape(install_command("parquet"))):
        read_text(Corpus(path), column="t")


def test_rows_beyond_the_size_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text(f"id,t\n1,{300_000 * 'a'}\n")
    assert words(path, column="t") == [300_000 * b"a"]
    monkeypatch.setattr(columns, "MAX_ROW_BYTES", 200_000)
    with pytest.raises(W2VError, match="line 2: not CSV: field larger than field limit"):
        words(path, column="t")
    path.write_text(f'{{"t": "{3_000_000 * "a"}"}}')
    with pytest.raises(W2VError, match="a row of more than"):
        words(path, column="t")


def test_a_column_of_a_list_is_refused() -> None:
    with pytest.raises(SettingsError, match="lists have no columns"):
        read_text(Corpus([["a"]]), column="t")


def test_long_column_names_are_shortened_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"id,t\n1,a\n", json.dumps({"w" * 10_000: [["a"]]}).encode()):
        path.write_bytes(content)
        with pytest.raises(W2VError) as error:
            read_text(Corpus(path), column="w" * 10_000)
        assert len(str(error.value)) < 600


def test_markup_in_a_column_is_removed_once(tmp_path: Path) -> None:
    """Each row is a document of its own."""
    path = tmp_path / "file"
    path.write_text('{"t": "a &amp;lt; <b>b</b>"}\n{"t": "c <!-- d"}\n{"t": "e --> f"}\n')
    assert read(path, column="t", strip_markup=True) == b"a &lt; b\nc \ne --> f\n"
    path.write_bytes(b"a &amp;lt; <b>b</b>\n")
    assert read(path, strip_markup=True) == b"a &lt; b\n"
    assert read(path) == b"a &amp;lt; <b>b</b>\n"


def test_an_incomplete_last_line_does_not_hide_a_table() -> None:
    row = b"1," + b"one " * (SIGNATURE_BYTES // 40) + b",2\n"  # only the first twenty rows are inspected
    for last in (b"1", b"1,one"):
        head = b"id,text,label\n" + row * 9 + last
        head = b"\n" * (SIGNATURE_BYTES - len(head)) + head
        with pytest.raises(W2VError, match="file looks like CSV with the columns id, text, label"):
            refuse_table("file", head)
        refuse_table("file", head[1:])  # a shorter head is the whole file, so its last row lacks columns
