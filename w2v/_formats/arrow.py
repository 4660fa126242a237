"""Parquet and Arrow tables: columns of words, counts (if known) and vectors, stored as lists of a fixed size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from w2v._errors import W2VError, import_optional, one_line, translate_errors
from w2v._formats.base import Format, has_signature
from w2v._formats.bfloat16 import float32_blocks
from w2v._formats.header import ModelHeader
from w2v._formats.vector_file import Array, VectorFile, as_floats
from w2v._formats.word_lists import WordBuilder
from w2v._progress import Meter, Report
from w2v._system import memory
from w2v._system.files import ARROW, PARQUET, PathLike, atomic_write, open_regular, translate_os_errors
from w2v._text.tables import as_numpy, open_table

WORD, COUNT, VECTOR = "word", "count", "vector"
BATCH_ROWS, BATCH_VALUES = 1 << 16, 1 << 20  # limits for one batch: rows, and values of vectors


class Table(Protocol):
    """A table of one or several files; see ColumnarFile."""

    @property
    def schema(self) -> Any: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def rows(self) -> int: ...
    def batches(self, columns: Sequence[str], step: int) -> Iterator[Any]: ...


def import_pyarrow(path: PathLike, need: str = "Parquet and Arrow need one more package") -> Any:
    """Return pyarrow. Raise W2VError if it is missing: the path, what it is needed for, and how to install it."""
    return import_optional(f"{path}: {need}", "parquet", "pyarrow", "pyarrow.compute", "pyarrow.parquet")


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a table atomically, as Arrow if the name ends in .arrow, otherwise as Parquet.

    Raises:
        W2VError: If pyarrow is missing, if the file cannot be written, or if `read` would refuse the content.
    """
    pa = import_pyarrow(path)
    size = content.vectors.shape[1]
    count_fields = [] if content.counts is None else [(COUNT, pa.int64())]
    words: Sequence[Any] = content.words
    if content.header.key_type == "int":
        words = content.words.to_ints()
    word_type = type_of_keys(pa, words, ".safetensors")
    schema = pa.schema([(WORD, word_type), *count_fields, (VECTOR, pa.list_(pa.float32(), size))])
    with atomic_write(path, replace) as file, open_writer(path, pa, file, schema) as out:
        for start, block in float32_blocks(content.vectors, rows_per_batch(size), Meter(progress, "save")):
            end = start + len(block)
            columns = [pa.array(words[start:end], word_type)]
            columns += [] if content.counts is None else [pa.array(content.counts[start:end])]
            out.write_batch(pa.record_batch([*columns, _as_lists(pa, block)], schema=schema))


def type_of_keys(pa: Any, keys: Sequence[Any], instead: str) -> Any:
    """Return the type of a column of keys: text, or integers if the keys are numbers.

    Raises:
        W2VError: If no type holds all numbers. The message names the extension `instead`.
    """
    if not keys or isinstance(keys[0], str):
        return pa.string()
    if max(keys) < 1 << 63:
        return pa.int64()
    if min(keys) < 0:
        raise W2VError(f"the keys {min(keys)} and {max(keys)} do not fit one type of integers: use {instead}")
    return pa.uint64()


def write_vectors(path: PathLike, size: int, blocks: Iterable[Array], replace: bool) -> None:
    """Write a table with a vector column only, atomically, in the format that `write` would choose.

    Args:
        path: The file to write.
        size: The number of values in a vector.
        blocks: The rows, as arrays of shape (n, size).
        replace: Whether an existing file is replaced.

    Raises:
        W2VError: If pyarrow is missing or the file cannot be written.
    """
    pa = import_pyarrow(path)
    schema = pa.schema([(VECTOR, pa.list_(pa.float32(), size))])
    with atomic_write(path, replace) as file, open_writer(path, pa, file, schema) as out:
        for block in blocks:
            out.write_batch(pa.record_batch([_as_lists(pa, block)], schema=schema))


def open_writer(path: PathLike, pa: Any, file: BinaryIO, schema: Any) -> Any:
    """Return a writer of tables, which is a context manager: of Arrow if the name ends in .arrow, or of Parquet."""
    if Path(path).name.lower().endswith(".arrow"):
        return pa.ipc.new_file(file, schema)
    return pa.parquet.ParquetWriter(file, schema, use_dictionary=False)


def rows_per_batch(size: int) -> int:
    return max(1, min(BATCH_ROWS, BATCH_VALUES // size))


def _as_lists(pa: Any, rows: Array) -> Any:
    values = np.ascontiguousarray(rows, np.float32).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), rows.shape[1])


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the columns "word" and "vector" and, if the table has it, "count"; see Format.read.

    Words may be text, or integers, which stay numbers.
    """
    pa = import_pyarrow(path)
    with (
        translate_errors(f"{path}: damaged", pa.ArrowException, UnicodeDecodeError),
        translate_os_errors(path),
        open_regular(path) as file,
    ):
        return read_table(path, pa, open_table(str(path), file)[1], limit, Meter(progress, "load"))


def read_table(path: PathLike, pa: Any, table: Table, limit: int | None, meter: Meter) -> VectorFile:
    """Read the first `limit` rows of a table.

    Raises:
        W2VError: If the table lacks words or vectors, or if they are not words and vectors of equal lengths.
    """
    names, rows = table.names, table.rows
    if names.count(WORD) != 1 or names.count(VECTOR) != 1:
        raise W2VError(f"{path}: its columns are {one_line(', '.join(names))}: expected {WORD} and {VECTOR}")
    if names.count(COUNT) > 1:
        raise W2VError(f"{path}: it has {names.count(COUNT)} columns named {COUNT}")
    kind = table.schema.field(VECTOR).type
    are_lists = pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not are_lists or not pa.types.is_floating(kind.value_type):
        raise W2VError(f"{path}: its vectors are {one_line(kind)}: expected lists of floats")
    first = next((batch.column(VECTOR)[0].as_py() for batch in table.batches([VECTOR], 1) if len(batch)), None)
    size = len(first or ())
    if not size:
        raise W2VError(f"{path}: its first row has no vector")
    rows = rows if limit is None else min(rows, limit)
    has_counts = COUNT in names and pa.types.is_integer(table.schema.field(COUNT).type)
    counts = np.empty(rows, np.int64) if has_counts else None
    words = WordBuilder(rows)
    # Words and vectors are read in two passes: long words need small batches, which would be slow for vectors.
    for start, batch in _first_rows(path, table, [WORD, *[COUNT] * has_counts], BATCH_ROWS, rows):
        if batch.column(WORD).null_count:
            raise W2VError(f"{path}: a word is missing after row {start:,}")
        for word in _encode_words(path, pa, batch.column(WORD)):
            words.add(word)
        if counts is not None:
            column = batch.column(COUNT).cast(pa.int64())
            counts[start : start + len(batch)] = as_numpy(column.fill_null(0) if column.null_count else column)
    vectors = memory.empty((rows, size), np.float64 if pa.types.is_float64(kind.value_type) else np.float32)
    for start, batch in _first_rows(path, table, [VECTOR], rows_per_batch(size), rows):
        column, end = batch.column(VECTOR), start + len(batch)
        values, lengths = column.flatten(), pa.compute.list_value_length(column)
        have_equal_length = {*pa.compute.min_max(lengths).as_py().values()} <= {size, None}
        if values.null_count or lengths.null_count or not have_equal_length:
            raise W2VError(f"{path}: a vector after row {start:,} does not have {size} values")
        vectors[start:end] = as_numpy(values).reshape(-1, size)
        meter(end, rows)
    header = ModelHeader(key_type="int" if pa.types.is_integer(table.schema.field(WORD).type) else "str")
    return VectorFile(words.words, as_floats(vectors, path, words.words), counts, header=header)


def _first_rows(path: PathLike, table: Table, columns: list[str], step: int, rows: int) -> Iterator[tuple[int, Any]]:
    """Yield batches with the first `rows` rows of some columns, each with the number of rows before it."""
    done = 0
    for batch in table.batches(columns, step):
        if done == rows:
            return
        batch = batch.slice(0, rows - done)
        yield done, batch
        done += len(batch)
    if done < rows:
        raise W2VError(f"{path}: damaged: it declares {rows:,} rows, but has {done:,}")


def _encode_words(path: PathLike, pa: Any, column: Any) -> Iterable[bytes]:
    """Return the words of a column without nulls in UTF-8."""
    types = pa.types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_integer(kind):
        return (str(number).encode() for number in column.to_pylist())
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind):
        column = column.cast(pa.large_binary())  # saves decoding the words, and encoding them again
    words = [word.encode() if isinstance(word, str) else word for word in column.to_pylist()]
    if not all(isinstance(word, bytes) for word in words):
        raise W2VError(f"{path}: its words are {one_line(kind)}: expected strings")
    return words


FORMAT = Format(
    "arrow",
    (".parquet", ".arrow"),
    4,
    has_signature(PARQUET + b"|" + ARROW),
    read,
    write,
    stores=("counts", "key_type"),
)
