"""Pickles as data: what ordinary ones hold; hostile ones are refused in one line, without a call, in little memory."""

import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import memory_below
from w2v.errors import W2VError
from w2v.formats import pickles
from w2v.formats.pickles import Made, Name, Pairs

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.tuples(inner, inner, inner, inner),
    max_leaves=8,
)


class Evil:
    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.made = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.made


def refused(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(W2VError, match=r"^[^\n]{1,500}$") as caught:
        pickles.read(path)
    return str(caught.value)


@given(value=plain, protocol=st.integers(2, 5), smaller=st.booleans())
def test_values(tmp_path_factory: pytest.TempPathFactory, value: Any, protocol: int, smaller: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "value"
    content = pickle.dumps(value, protocol)
    path.write_bytes(pickletools.optimize(content) if smaller else content)
    assert pickles.read(path) == value


def test_objects_are_names_and_values(tmp_path: Path) -> None:
    found = W2VError("said")
    found.row = 3  # type: ignore[attr-defined]
    (tmp_path / "p").write_bytes(pickle.dumps({"a": {1: [found]}, "b": Path}, 2).replace(b"w2v.errors", b"no.such.one"))
    with pytest.raises(W2VError, match=r"a call of no\.such\.one\.W2VError"):
        pickles.read(tmp_path / "p")
    read = pickles.read
    (tmp_path / "p").write_bytes(b"\x80\x02}(U\1acone\nClass\n)\x81}U\1bK\3sbU\1ccother\nfunction\nu.")
    pairs = read(tmp_path / "p")
    assert type(pairs) is Pairs
    assert isinstance(pairs[1], Made)
    assert (pairs[1].name, pairs[1].attributes()) == ("one.Class", {"b": 3})
    assert (pairs[2], type(pairs[3]), pairs[3]) == (b"c", Name, "other.function")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_code_is_not_run(tmp_path: Path, protocol: int) -> None:
    there = tmp_path / "there"
    for evil in (Evil(Path.touch, there), Evil(exec, f"open({str(there)!r}, 'w')"), Evil(getattr, there, "touch")):
        said = refused(tmp_path / "p", pickle.dumps([evil], protocol))
        assert "refused: its pickle holds " in said or "damaged" in said
    assert not there.exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x80\x02cos\nsystem\nU\4true\x85R.", "a call of os.system"),
        (b"\x80\x02U\2os\x85R.", "no whole pickle"),
        (b"\x80\x02U\2osU\4true\x85R.", "a call of what is no function"),
        (b"(S'true'\nios\nsystem\n.", "the opcode STRING at byte 1"),
        (b"\x80\x02(cos\nsystem\nU\4trueo.", "the opcode OBJ"),
        (b"\x80\x02U\1aQ.", "the opcode BINPERSID"),
        (b"\x80\x02\x82\1.", "the opcode EXT1"),
        (b"\x80\x05\x97.", "the opcode NEXT_BUFFER"),
        (b"\x80\x02]r\xff\xff\xff\x7f.", "a value remembered as number 2147483647 after 0"),
        (b"\x80\x02h\1.", "no whole pickle"),
        (b"\x80\x04\x8d" + b"\xff" * 7 + b"\x7f" + b"a.", "no whole pickle"),
        (b"\x80\x04\x8e" + b"\xff" * 8 + b"a.", "no whole pickle"),
        (b"\x80\x02\x8b\xff\xff\xff\x7fa.", "no whole pickle"),
        (b"\x80\x02I" + b"9" * 5000 + b"\n.", "no whole pickle"),
        (b"\x80\x02}U\1as.", "no whole pickle"),
        (b"\x80\x02](U\1au.", "no whole pickle"),
        (b"\x80\x02(]a.", "no whole pickle"),
        (b"\x80\x02U\1a}b.", "the state of no object"),
        (b"\x80\x02U\1a)\x81.", "an object of no class"),
        (b"\x80\x02c_codecs\nencode\nU\1aU\3rot\x86R.", "bytes that are not coded as latin1"),
        (b"\x80\x02c_codecs\nencode\nX\1\0\0\0aX\3\0\0\0rot\x86R.", "bytes that are not coded as latin1"),
        (b"\x80\x02c_codecs\nencode\nNX\6\0\0\0latin1\x86R.", "bytes that are not coded as latin1"),
        (b"\x80\x02\x8b\x88\x13\0\0" + b"\x7f" * 5000 + b".", "a number of 39,999 bits"),
        (b"\x80\x02K\1K\2.", "no whole pickle"),
        (b"\x80\x02.", "no whole pickle"),
        (b"\x80\x02]", "no whole pickle"),
        (b"\x80\x02cx" + b"y" * 9000 + b"\nz\n)R.", "a call of xy"),
    ],
)
def test_hostile_opcodes(tmp_path: Path, data: bytes, message: str) -> None:
    assert message in refused(tmp_path / "p", data)


@pytest.mark.parametrize("opcode", [b"]", b"(", b"}", b"]q\0", b"N", b"K\0\x85", b"h\0", b"M\xff\xff", b"\x8c\1a"])
def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opcode: bytes) -> None:
    monkeypatch.setattr(pickles, "SLACK", 1 << 20)
    data = b"\x80\x04]\x94" + opcode * (200_000 // len(opcode)) + b"."
    with memory_below(2 * pickles.GROWTH * len(data) + (2 << 20)):
        refused(tmp_path / "p", data)


def test_text_counts_each_time_that_it_occurs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "SLACK", 1 << 20)
    (tmp_path / "p").write_bytes(b"\x80\x04]X\x10\x27\0\0" + b"a" * 10_000 + b"q\0a" + b"h\0a" * 19 + b".")
    assert pickles.read(tmp_path / "p") == ["a" * 10_000] * 20
    for opcode in (b"X", b"T", b"B"):
        data = b"\x80\x04]" + opcode + b"\x10\x27\0\0" + b"a" * 10_000 + b"q\0a" + b"h\0a" * 10_000 + b"."
        assert "objects of more than 16 times its size" in refused(tmp_path / "p", data)


def test_deep_values_come_to_no_harm(tmp_path: Path) -> None:
    refused(tmp_path / "p", b"\x80\x02]" + b"]" * 200_000 + b"a" * 200_000)
    (tmp_path / "p").write_bytes(b"\x80\x02]" + b"]" * 200_000 + b"a" * 200_000 + b".")
    assert len(pickles.read(tmp_path / "p")) == 1


@given(content=st.binary(max_size=60))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(b"\x80\x04" + content)
    try:
        pickles.read(path)
    except W2VError as error:
        assert "\n" not in str(error)  # noqa: PT017 - some are pickles
