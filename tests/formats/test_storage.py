"""Vectors of smaller types lose little precision, and queries on a mapped file never convert the whole matrix."""

from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pytest

import w2v
from tests.helpers import assert_refused, run, run_json
from w2v._formats import native, registry
from w2v._formats.header import ModelHeader
from w2v._formats.storage import DTYPES, CompactMatrix, FileStorage, SparseMatrix, join_rows, to_storage
from w2v._formats.vector_file import VectorFile
from w2v._text.subwords import Subwords
from w2v._text.words import Words
from w2v._vectors.encode import encode
from w2v.gensim import models as w2v_gensim

# The largest error of each type, relative to the largest value of a row.
ERRORS = {"float32": 0, "bf16": 2**-8, "f16": 2**-11, "int8": 1 / 254}
WORDS = [f"word{row}" for row in range(900)]


def new_content() -> VectorFile:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(900, 100)).astype(np.float32)  # more values than fit in a block
    vectors[7] = 0
    ngrams = {"ngrams": rng.normal(size=(40, 100)).astype(np.float32), "ngram_buckets": np.arange(40, dtype=np.int32)}
    header = ModelHeader(subwords=Subwords(3, 4, 40))
    return VectorFile(Words.of(WORDS), vectors, np.arange(900, 0, -1), ngrams | {"outputs": vectors}, header)


def convert_some_rows(matrix: CompactMatrix, dtype: object = None, copy: object = None) -> np.ndarray:
    """Replace CompactMatrix.__array__ to check that no query converts all rows to float32."""
    assert len(matrix) < 900
    return matrix[np.arange(len(matrix))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    native.write(tmp_path / "m.safetensors", new_content())
    return tmp_path / "m.safetensors"


@pytest.mark.parametrize("storage", get_args(FileStorage))
def test_each_type_is_small_and_answers_queries_in_place(
    path: Path, storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, original = path.with_name("small.safetensors"), new_content()
    result = run_json("convert", path, small, "--storage", storage, "--check")
    assert result["lost"] == ["output layer"]
    assert result["check"]["shared"] == 900
    rows, rest = 900 + 40, 40_000  # rows of words and n-grams, and bytes of words, counts, scales and header
    assert small.stat().st_size < DTYPES[storage]().itemsize * rows * 100 + rest
    found = registry.read(small)
    for name, before, after in (
        ("vectors", original.vectors, found.vectors),
        ("ngrams", original.tensors["ngrams"], found.tensors["ngrams"]),
    ):
        largest = np.abs(before).max(axis=1, keepdims=True)
        assert np.all(np.abs(np.asarray(after, np.float32) - before) <= 1.001 * ERRORS[storage] * largest), name
    vectors = w2v.load(small)
    assert type(vectors.vectors) is np.ndarray
    with monkeypatch.context() as patch:
        patch.setattr(CompactMatrix, "__array__", convert_some_rows)
        mapped = w2v.load(small, mmap=True)
        answers = [
            [
                each.most_similar("word3", topn=5),
                each.most_similar_cosmul(["word1", "word2"], ["word9"]),
                each.most_similar_batch(["word1", "word7"], restrict_vocab=50),
                each.similarity("word3", "word7"),
                each["unseen"].tolist(),
                encode(each, ["word3 word5 unseen"]).tolist(),
                each.norms.tolist(),
            ]
            for each in (vectors, mapped)
        ]
    assert str(answers[0]) == str(answers[1]) or storage != "float32"
    np.testing.assert_allclose(answers[0][-1], answers[1][-1], rtol=1e-6)
    assert [word for word, _ in answers[0][0]] == [word for word, _ in answers[1][0]]
    np.testing.assert_array_equal(np.asarray(mapped.vectors), vectors.vectors)


def test_converted_files_keep_small_types_where_the_format_can(path: Path) -> None:
    small, few, text = (path.with_name(name) for name in ("small.safetensors", "few.safetensors", "few.txt"))
    run("convert", path, small, "--storage", "int8")
    run("convert", small, few, "--max-vocab", "10")
    run("convert", few, text)
    found = registry.read(few)
    assert isinstance(found.vectors, CompactMatrix)
    np.testing.assert_array_equal(registry.read(text).vectors, np.asarray(registry.read(small).vectors)[:10])
    loaded = w2v_gensim.KeyedVectors.load(str(small))
    np.testing.assert_array_equal(loaded["word3"], w2v.load(small)["word3"])
    run("convert", path, path.with_name("m.npy"), "--storage", "f16")
    assert np.load(path.with_name("m.npy")).dtype == np.float16
    np.testing.assert_array_equal(
        registry.read(path.with_name("m.npy")).vectors, new_content().vectors.astype(np.float16)
    )


def test_types_and_scales_that_do_not_fit_are_refused(path: Path) -> None:
    problem = run("convert", path, path.with_name("m.npy"), "--storage", "int8", code=2).stderr
    assert "m.npy: this format cannot store int8: use .safetensors" in problem
    for storage, number, other in (("f16", 1e5, "bf16"), ("bf16", 3.4e38, "float32")):
        with pytest.raises(w2v.SettingsError, match=rf"storage {storage}: .* is too large for it: choose {other}"):
            to_storage(np.array([[number]], np.float32), storage)
    run("convert", path, path.with_name("small.safetensors"), "--storage", "int8")
    tensors, metadata = native.read_native(path.with_name("small.safetensors"))
    for scales, message in (
        (tensors["vectors_scales"][1:], "the array 'vectors_scales' does not fit"),
        (np.full(900, np.nan, np.float32), "row 1 .'word0'. holds NaN"),
        (None, "its arrays are inconsistent"),
    ):
        damaged = {**tensors, "vectors_scales": scales}
        native.write_native(path, {name: each for name, each in damaged.items() if each is not None}, metadata)
        assert_refused(path, message)


def test_slices_of_compact_matrices_are_views_that_convert_their_own_rows() -> None:
    for scales in (None, np.arange(1, 7, dtype=np.float32)):
        matrix = CompactMatrix(np.arange(12, dtype=np.int8).reshape(6, 2), scales)
        expected = np.arange(12).reshape(6, 2) * (1 if scales is None else scales[:, None])
        part = matrix[1:5:2]
        assert isinstance(part, CompactMatrix)
        assert np.shares_memory(part.rows, matrix.rows)
        assert (len(part), part.shape, part.size) == (2, (2, 2), 4)
        np.testing.assert_array_equal(np.asarray(part), expected[1:5:2])
        np.testing.assert_array_equal(matrix[[4, 0]], expected[[4, 0]])
        np.testing.assert_array_equal(matrix[3], expected[3])
        np.testing.assert_array_equal(np.asarray(matrix.take(np.array([4, 0]), 0)), expected[[4, 0]])
        assert np.asarray(matrix).dtype == matrix[3].dtype == np.float32
        assert np.asarray(matrix, np.float64).dtype == np.float64


def test_sparse_matrices_are_stored_as_their_values(tmp_path: Path) -> None:
    dense = np.where(np.arange(12).reshape(4, 3) % 5, 0, np.arange(12).reshape(4, 3)).astype(np.float32)
    dense[0, 1] = 7
    path, sparse = tmp_path / "m.safetensors", SparseMatrix.of(dense)
    native.write(path, VectorFile(Words.of(["a", "b", "c", "d"]), cast(Any, sparse), np.array([4, 3, 2, 1])))
    for found in (registry.read(path).vectors, registry.read(path, mmap=True).vectors):
        assert isinstance(found, SparseMatrix)
        for matrix in (found, join_rows(cast(Any, [found[:1], found[1:3], found[3:]]))):
            np.testing.assert_array_equal(np.asarray(matrix), dense)
        np.testing.assert_array_equal(found[np.array([2, 0])], dense[[2, 0]])
        np.testing.assert_array_equal(np.asarray(found.take(np.array([3]), 0)), dense[[3]])
        np.testing.assert_array_equal(found[1], dense[1])
        for part in (slice(None, None, 2), slice(3, 1), slice(None, None, -1), slice(1, 9)):
            np.testing.assert_array_equal(np.asarray(found[part]), dense[part])
    assert w2v.load(path)["a"].tolist() == [0, 7, 0]
    run("convert", path, path.with_suffix(".txt"))
    np.testing.assert_array_equal(registry.read(path.with_suffix(".txt")).vectors, dense)


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("columns", np.array([1, 3, 1], np.int32)),  # there are 3 columns
        ("columns", np.array([1, -1, 1], np.int32)),
        ("columns", np.array([0, 1, 2], np.int64)),
        ("starts", np.array([0, 2, 1, 3])),
        ("starts", np.array([0, 1, 2, 9])),
        ("starts", np.array([0, 2**63 - 1, -(2**63), 3])),  # differences of these wrap around
        ("starts", np.array([0, 1, 2, 3], np.int32)),
        ("width", np.array([3, 3])),
        ("width", np.array([-3])),
        ("values", np.zeros(2, np.float32)),
        ("values", np.zeros(3, np.float64)),
        ("values", None),
    ],
)
def test_sparse_matrices_that_do_not_fit_are_refused(part: str, wrong: Any, tmp_path: Path) -> None:
    path, sparse = tmp_path / "m.safetensors", SparseMatrix.of(np.eye(3, dtype=np.float32))
    native.write(path, VectorFile(Words.of(["a", "b", "c"]), cast(Any, sparse), None))
    tensors, metadata = native.read_native(path)
    tensors |= {f"vectors_{part}": wrong}
    native.write_native(path, {name: array for name, array in tensors.items() if array is not None}, metadata)
    with pytest.raises(w2v.W2VError, match=r"m.safetensors: damaged: .*\w"):
        w2v.load(path)
