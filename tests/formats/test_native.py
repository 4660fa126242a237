"""The native format: the safetensors package reads and writes it, too, and damaged files are refused in one line."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.helpers import assert_refused, assert_same_content, make_content
from w2v._formats.header import ModelHeader
from w2v._formats.native import read_native, write_native
from w2v._formats.registry import read, write
from w2v._vectors.encode import encode
from w2v._vectors.keyed import load


def test_counts_tensors_and_header_are_read_back(tmp_path: Path) -> None:
    outputs = np.arange(12, dtype=np.float32).reshape(3, 4)
    counts = np.array([1 << 40, 4, 3, 2, 1])
    path = tmp_path / "v.safetensors"
    write(path, replace(make_content(5, 4), counts=counts, tensors={"outputs": outputs}, header=ModelHeader({"a": 1})))
    for mmap in (False, True):
        back = read(path, mmap)
        np.testing.assert_array_equal(back.counts, counts)
        np.testing.assert_array_equal(back.tensors["outputs"], outputs)
        assert list(back.tensors) == ["outputs"]
        assert back.header == ModelHeader({"a": 1})
        assert back.vectors.flags.writeable is not mmap


def test_the_safetensors_package_reads_written_files(tmp_path: Path) -> None:
    tensors = {
        "bytes": np.arange(3, dtype=np.uint8),
        "longs": np.arange(5),
        "none": np.empty((0, 3), np.float32),
        "half": np.ones((2, 2), np.float16),
        "flags": np.array([True, False, True]),
        "scalar": np.array(2.5),
    }
    path = tmp_path / "v.safetensors"
    write_native(path, tensors, {"note": "é"})
    theirs = load_file(path)
    for mmap in (False, True):
        ours, metadata = read_native(path, mmap)
        assert metadata == {"format": "w2v", "version": "1", "note": "é"}
        for name, array in tensors.items():
            np.testing.assert_array_equal(ours[name], array)
            np.testing.assert_array_equal(theirs[name], array)
            assert ours[name].dtype == array.dtype
            assert ours[name].flags.aligned


def test_files_of_the_safetensors_package_are_read(tmp_path: Path) -> None:
    written, path = make_content(5, 4), tmp_path / "v.safetensors"
    tensors = {"vectors": written.vectors, "words": written.words.blob, "word_offsets": written.words.offsets}
    save_file(tensors, path, {"format": "w2v", "version": "1"})
    for mmap in (False, True):
        assert_same_content(read(path, mmap), written)


def test_a_compressed_native_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "v.safetensors", make_content(5, 4))
    packed = gzip.compress((tmp_path / "v.safetensors").read_bytes())
    assert_refused(tmp_path / "v.gz", "a compressed .safetensors file: unpack it first", packed)


METADATA = {"__metadata__": {"format": "w2v", "version": "1"}}


def native_bytes(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def arrays(data: bytes, *arrays: tuple[object, object, object]) -> bytes:
    """Return a file of arrays named a, b, …, each described by (type, shape, offsets)."""
    fields = [dict(zip(("dtype", "shape", "data_offsets"), each, strict=True)) for each in arrays]
    return native_bytes(METADATA | dict(zip("ab", fields, strict=False)), data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (native_bytes({}, length=1 << 31), "truncated: a header of 2147483648 bytes"),
        (native_bytes(b"{" + b" " * (2 << 20) + b"}"), "at most"),
        (native_bytes(b"{nonsense"), "header is damaged"),
        (native_bytes(b"{" + b'"a":' + b"[" * 100_000), "header is damaged"),
        (native_bytes(b"[1, 2]"), "not a vector file"),
        (native_bytes({"__metadata__": {"format": 3}}), "header is damaged"),
        (native_bytes({}), "not a w2v model"),
        (native_bytes({"__metadata__": {"format": "pt"}}), "not a w2v model"),
        *(
            (native_bytes({"__metadata__": {"format": "w2v", "version": version}}), "this w2v reads version 1: upgrade")
            for version in ("9" * 5000, "²", "١", "", "-1", "1 ", "2")
        ),
        (native_bytes({"__metadata__": {"format": "w2v"}}), "version"),
        (native_bytes(METADATA), "the array 'vectors' is missing"),
        (native_bytes(METADATA, b"more"), "after its end"),
        (native_bytes({**METADATA, "a": 5}), "header is damaged"),
        (native_bytes({**METADATA, "a": {"dtype": "F32", "shape": [1]}}), "header is damaged"),
        (arrays(b"", ("F8_E8M0", [1], [0, 1])), "type 'F8_E8M0'"),
        (arrays(b"", ("BF16", [1], [0, 4])), "fill"),
        (arrays(b"12", ("BF16", [2], [0, 4])), "truncated"),
        (arrays(b"", ("F32", [-1], [0, 4])), "not a non-negative integer"),
        (arrays(b"", ("F32", [True], [0, 4])), "not a non-negative integer"),
        (arrays(b"1234", ("F32", [2], [0, 4])), "fill"),
        (arrays(b"12345678", ("U8", [4], [4, 8])), "begins"),
        (arrays(b"1234", ("U8", [8], [0, 8])), "truncated"),
        (arrays(b"", ("U8", [0] + [1 << 61] * 3, [0, 0])), "impossible shape"),
        (arrays(b"", ("F64", [1 << 40], [0, 1 << 43])), "truncated"),
        (arrays(b"123456", ("U8", [4], [0, 4]), ("U8", [4], [2, 6])), "begins at byte 2"),
    ],
)
def test_damaged_headers_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    assert_refused(tmp_path / "v.safetensors", message, data)


GOOD = {
    "vectors": np.ones((2, 2), np.float32),
    "words": np.frombuffer(b"ab", np.uint8),
    "word_offsets": np.array([0, 1, 2]),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vectors": np.ones((2, 2))}, "are inconsistent"),
        ({"vectors": np.ones(4, np.float32)}, "are inconsistent"),
        ({"vectors": np.ones((0, 2), np.float32), "word_offsets": np.array([2])}, "are inconsistent"),
        ({"vectors": np.array([[1, 2], [3, np.inf]], np.float32)}, "'b'"),
        ({"words": np.frombuffer(b"aa", np.uint8)}, "twice"),
        ({"words": np.frombuffer(b"a\xff", np.uint8)}, "UTF-8"),
        ({"word_offsets": np.array([0, 1, 3])}, "the word offsets are damaged: they must rise"),
        ({"word_offsets": np.array([1, 1, 2])}, "the word offsets are damaged: they must rise"),
        ({"word_offsets": np.array([0, 5, 2])}, "the word offsets are damaged: they must rise"),
        ({"word_offsets": np.array([0, 1 << 40, 2])}, "the word offsets are damaged: they must rise"),
        ({"word_offsets": np.array([0, -(1 << 40), 2])}, "the word offsets are damaged: they must rise"),
        ({"counts": np.array([1])}, "are inconsistent"),
        ({"counts": np.array([1 << 62, 1 << 62])}, "the counts add up to more than 9223372036854775807"),
        ({"outputs": np.array([[1, 2], [np.inf, 4]], np.float32)}, "row 2 of outputs holds NaN or infinite values"),
        ({"inputs": np.array([[1, np.nan]], np.float16)}, "row 1 of inputs holds NaN or infinite values"),
        ({"parameter.bias": np.array([1, -np.inf], np.float32)}, "row 1 of parameter.bias holds NaN or infinite"),
        ({"outputs": np.ones((2, 2), np.int8), "outputs_scales": np.full(2, np.inf, np.float32)}, "row 1 of outputs"),
    ],
)
def test_arrays_that_do_not_match_are_refused(tmp_path: Path, change: dict[str, np.ndarray], message: str) -> None:
    path = tmp_path / "v.safetensors"
    write_native(path, {**GOOD, **change}, {})
    for mmap in (False, True):
        # In a mapped file, only the word offsets are checked when it is opened.
        if not mmap or "offsets" in message or message == "UTF-8":
            assert_refused(path, message, mmap=mmap)
    write_native(tmp_path / "good.safetensors", GOOD, {})
    assert list(read(tmp_path / "good.safetensors").words) == ["a", "b"]


def test_changes_of_mapped_word_offsets_after_the_check_have_no_effect(tmp_path: Path) -> None:
    path = tmp_path / "v.safetensors"
    write_native(path, GOOD, {})
    mapped, content = load(path, mmap=True), path.read_bytes()
    with path.open("r+b") as file:  # in place, so that the mapping sees the change
        file.write(content.replace(np.array([0, 1, 2]).tobytes(), np.array([0, 1 << 40, 2]).tobytes()))
    assert mapped.index_to_key == ["a", "b"]
    np.testing.assert_array_equal(encode(mapped, ["a b"], weights="mean"), np.ones((1, 2), np.float32))
