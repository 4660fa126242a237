"""Files with a word and its code on each line."""

from pathlib import Path

import pytest

from w2v.errors import W2VError
from w2v.formats.codes import MAX_CODE_LENGTH, read_codes


def test_codes_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "codes").write_text(f"\ufeffthe 0\r\n\n  köln\t10 \nlong {'1' * MAX_CODE_LENGTH}", "utf-8")
    found = [(place.split(", ")[-1], word, code) for place, word, code in read_codes(tmp_path / "codes")]
    assert found == [("line 1", "the", "0"), ("line 3", "köln", "10"), ("line 4", "long", "1" * 1024)]
    (tmp_path / "codes").write_text("\n")
    assert list(read_codes(tmp_path / "codes")) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"the 0\nof\n", "line 2: not a word and its code of at most 1024 zeros and ones$"),
        (b"the 0 1\n", "line 1: not a word and its code"),
        (b"the 02\n", "line 1: not a word and its code"),
        (b"the " + b"0" * 1025, "line 1: not a word and its code"),
        (b"the 0\ncaf\xe9 1\n", r"line 2: b'caf\\xe9' is not UTF-8$"),
        ("the 0\nof 1\n".encode("utf-16"), "codes is UTF-16"),
    ],
)
def test_faults(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "codes").write_bytes(data)
    with pytest.raises(W2VError, match=f"codes(, | ).*{message}" if "codes" not in message else message):
        list(read_codes(tmp_path / "codes"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(W2VError, match=r"cannot read .*codes: No such file"):
        list(read_codes(tmp_path / "codes"))
