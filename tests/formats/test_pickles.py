"""Pickles are read as plain data, without any call; damaged ones are refused in one line and in little memory."""

import pickle
import pickletools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import assert_memory_grows, memory_of
from w2v._errors import W2VError
from w2v._formats import pickles
from w2v._formats.pickles import PickledObject
from w2v._progress import Progress

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner) | st.tuples(inner, inner, inner, inner) | st.dictionaries(st.text(), inner)
    ),
    max_leaves=8,
)


class Evil:
    """An object that calls a function when Python's own unpickler reads it."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


def read_error(path: Path, data: bytes) -> str:
    """Return the error message for a pickle that is refused."""
    path.write_bytes(data)
    with pytest.raises(W2VError, match=r"^[^\n]{1,500}$") as caught:
        pickles.read(path)
    return str(caught.value)


@given(value=plain, protocol=st.integers(2, 5), is_optimized=st.booleans())
def test_plain_values_are_read_as_pickle_reads_them(
    tmp_path_factory: pytest.TempPathFactory, value: Any, protocol: int, is_optimized: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "value"
    content = pickle.dumps(value, protocol)
    path.write_bytes(pickletools.optimize(content) if is_optimized else content)
    assert pickles.read(path) == value


def test_objects_become_their_class_names_and_attributes(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"\x80\x02}(U\1acone\nClass\n)\x81}U\1bK\3sbU\1ccother\nfunction\nu.")
    instance, function = pickles.read(tmp_path / "p").values()
    assert isinstance(instance, PickledObject)
    assert (instance.name, instance.attributes()) == ("one.Class", {"b": 3})
    assert (issubclass(function, PickledObject), function.name) == (True, "other.function")


@pytest.mark.parametrize("kind", [set, frozenset])
def test_sets_become_lists(tmp_path: Path, kind: Any) -> None:
    (tmp_path / "p").write_bytes(pickle.dumps([kind(), kind("a")], 4))
    assert pickles.read(tmp_path / "p") == [[], ["a"]]


def test_calls_are_described_even_if_their_module_does_not_exist(tmp_path: Path) -> None:
    nested = {"a": {1: [W2VError("said")]}, "b": Path}
    (tmp_path / "p").write_bytes(pickle.dumps(nested, 2).replace(b"cw2v\nW2VError", b"cno.such.one\nW2VError"))
    called = pickles.read(tmp_path / "p")["a"][1][0]
    assert (called.name, called.arguments) == ("no.such.one.W2VError", ("said",))


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_code_in_a_pickle_is_not_run(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "created"
    for evil in (Evil(Path.touch, target), Evil(exec, f"open({str(target)!r}, 'w')"), Evil(getattr, target, "touch")):
        (tmp_path / "p").write_bytes(pickle.dumps([evil], protocol))
        with suppress(W2VError):  # the results of calls cannot be called
            (called,) = pickles.read(tmp_path / "p")
            assert isinstance(called, PickledObject)
    assert not target.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02U\2os\x85R.",  # a call of a text
        b"\x80\x02U\2osU\4true\x85R.",
        b"\x80\x02U\1a)\x81.",
        b"\x80\x02U\1a}U\1bK\1sb.",  # the state of a text
        b"\x80\x02cone\nClass\n}b.",  # the state of a class
        b"\x80\x02U\1aQ.",  # an object by its number in another store, in a registry and in a buffer
        b"\x80\x02\x82\1.",
        b"\x80\x05\x97.",
        b"\x80\x02]r\xff\xff\xff\x7f.",  # a value remembered under a number that is far too large
        b"\x80\x04\x8d" + b"\xff" * 7 + b"\x7f" + b"a.",  # impossible lengths
        b"\x80\x04\x8e" + b"\xff" * 8 + b"a.",
        b"\x80\x05\x96" + b"\xff" * 5 + b"\0\0\0a.",
        b"\x80\x02\x8b\xff\xff\xff\x7fa.",
        b"\x80\x02I" + b"9" * 5000 + b"\n.",
        b"\x80\x02}(U\1aU\1bU\1cu.",  # a key without a value
        b"\x80\x02c_codecs\nencode\nX\1\0\0\0aX\3\0\0\0rot\x86R.",  # bytes in another encoding
        b"\x80\x02(]a.",
        b"\x80\x02.",
        b"\x80\x02]",
    ],
)
def test_damaged_pickles_are_refused(tmp_path: Path, data: bytes) -> None:
    assert "damaged: not a complete pickle: " in read_error(tmp_path / "p", data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "opcode", [b"]", b"\x8f", b"c\n\n", b"(", b"}", b"]q\0", b"N", b"K\0\x85", b"h\0", b"M\xff\xff", b"\x8c\1a"]
)
def test_memory_of_many_opcodes_is_bounded(tmp_path: Path, opcode: bytes) -> None:
    found = []
    for size in 100_000, 400_000:
        data = b"\x80\x04]\x94" + opcode * (size // len(opcode)) + b"."
        found.append((size, memory_of(lambda data=data: read_error(tmp_path / "p", data))))
    assert_memory_grows(*found, 100)


def test_deeply_nested_values_do_not_crash(tmp_path: Path) -> None:
    deep = b"\x80\x02]" + b"]" * 50_000 + b"a" * 50_000
    read_error(tmp_path / "p", deep)
    (tmp_path / "p").write_bytes(deep + b".")
    assert len(pickles.read(tmp_path / "p")) == 1


@given(content=st.binary(max_size=60))
def test_random_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(b"\x80\x04" + content)
    with suppress(W2VError):  # some of the bytes are valid pickles
        pickles.read(path)


def test_progress_is_reported_as_items_are_added(tmp_path: Path) -> None:
    content = pickle.dumps([*range(2500)], 2)  # in three parts
    (tmp_path / "p").write_bytes(content)
    reports: list[Progress] = []
    pickles.read(tmp_path / "p", reports.append)
    done = [report.done for report in reports]
    assert done == sorted(done)
    assert len(done) == 3
    assert 0 < done[-1] < reports[-1].total == len(content)
