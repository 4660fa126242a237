"""Tables of Parquet and Arrow: columns of words, of counts if they are known, and of vectors as lists of fixed size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError, one_line, optional
from w2v.formats.bfloat16 import blocks
from w2v.formats.vector_file import Array, VectorFile, check_content, checked
from w2v.formats.word_lists import Gathered
from w2v.progress import Meter, Report
from w2v.system import memory
from w2v.system.files import PARQUET, Errors, PathLike, atomic_write, errors_named
from w2v.text.decompress import max_unpacked

WORD, COUNT, VECTOR = "word", "count", "vector"
BEGINNING = PARQUET + rb"|ARROW1\0\0"
BUFFER_BYTES = 1 << 20  # of Parquet, for each column
ROWS_AT_ONCE, VALUES_AT_ONCE = 1 << 16, 1 << 20  # written or read


def _pyarrow(path: PathLike) -> Any:
    need = f"{path}: Parquet and Arrow need one more package"
    return optional(need, "parquet", "pyarrow", "pyarrow.compute", "pyarrow.parquet")


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a table, atomically: Parquet, or Arrow if the name ends in .arrow."""
    check_content(path, content)
    pa = _pyarrow(path)
    rows, size = content.vectors.shape
    counted = [] if content.counts is None else [(COUNT, pa.int64())]
    schema = pa.schema([(WORD, pa.string()), *counted, (VECTOR, pa.list_(pa.float32(), size))])
    meter = Meter(progress, "save")
    with atomic_write(path, replace) as file, _writer(path, pa)(file, schema) as out:
        for start, block in blocks(content.vectors, _step(size)):
            end = start + len(block)
            columns = [pa.array(content.words[start:end], pa.string())]
            columns += [] if content.counts is None else [pa.array(content.counts[start:end])]
            out.write_batch(pa.record_batch([*columns, _lists(pa, block)], schema=schema))
            meter(end, rows)


def write_vectors(path: PathLike, size: int, blocks: Iterable[Array], replace: bool) -> None:
    """Write a table of one column, of the rows of all blocks (n, size), as `write` does."""
    pa = _pyarrow(path)
    schema = pa.schema([(VECTOR, pa.list_(pa.float32(), size))])
    with atomic_write(path, replace) as file, _writer(path, pa)(file, schema) as out:
        for block in blocks:
            out.write_batch(pa.record_batch([_lists(pa, block)], schema=schema))


def _writer(path: PathLike, pa: Any) -> Any:
    is_arrow = Path(path).name.lower().endswith(".arrow")
    return pa.ipc.new_file if is_arrow else partial(pa.parquet.ParquetWriter, use_dictionary=False)


def _lists(pa: Any, rows: Array) -> Any:
    values = np.ascontiguousarray(rows, np.float32).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), rows.shape[1])


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the columns "word" and "vector", and "count" if there is one."""
    pa = _pyarrow(path)
    try:
        with errors_named(path), Path(path).open("rb") as file:
            return checked(path, _read(path, pa, file, limit, Meter(progress, "load")), errors)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise W2VError(f"{path}: damaged: {one_line(error)}") from error


def _read(path: PathLike, pa: Any, file: Any, limit: int | None, meter: Meter) -> VectorFile:
    schema, rows, batches = _opened(pa, file)
    names = schema.names
    if names.count(WORD) != 1 or names.count(VECTOR) != 1:
        raise W2VError(f"{path}: its columns are {one_line(', '.join(names))}: expected {WORD} and {VECTOR}")
    kind = schema.field(VECTOR).type
    are_lists = pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not are_lists or not pa.types.is_floating(kind.value_type):
        raise W2VError(f"{path}: its vectors are {one_line(kind)}: expected lists of floats")
    first = next((batch.column(VECTOR)[0].as_py() for batch in batches([VECTOR], 1) if len(batch)), None)
    size = len(first or ())
    if not size:
        raise W2VError(f"{path}: its first row has no vector")
    if rows * size > max_unpacked(Path(path).stat().st_size):
        raise W2VError(f"{path}: damaged: it says {rows:,} rows of {size:,} values")
    rows = rows if limit is None else min(rows, limit)
    vectors: NDArray[np.float32] = memory.empty((rows, size))
    known = COUNT in names and pa.types.is_integer(schema.field(COUNT).type)
    counts = np.empty(rows, np.int64) if known else None
    words = Gathered(rows)
    for batch in batches([WORD, *[COUNT] * known, VECTOR], _step(size)):
        batch = batch.slice(0, rows - len(words))
        part = slice(len(words), len(words) + len(batch))
        column = batch.column(VECTOR)
        values = column.flatten()
        lengths = pa.compute.list_value_length(column)
        if (
            values.null_count
            or batch.column(WORD).null_count
            or {*pa.compute.min_max(lengths).as_py().values()} - {size, None}
            or lengths.null_count
        ):
            raise W2VError(f"{path}: after row {len(words):,}, a word is missing or a vector has not {size} values")
        vectors[part] = _numbers(values).reshape(-1, size)
        if counts is not None:
            column = batch.column(COUNT).cast(pa.int64())
            counts[part] = _numbers(column.fill_null(0) if column.null_count else column)
        for word in batch.column(WORD).cast(pa.string()).to_pylist():
            words.add(word.encode())
        meter(len(words), rows)
        if len(words) == rows:
            break
    return VectorFile(words.words, vectors, counts)


def _numbers(column: Any) -> NDArray[Any]:
    """The values of a column without nulls. Its own to_numpy would import pandas, which takes 40 MB."""
    values: NDArray[Any] = np.frombuffer(column.buffers()[1] or b"", column.type.to_pandas_dtype())
    return values[column.offset : column.offset + len(column)]


def _step(size: int) -> int:
    """How many rows with vectors of this size are written or read at once."""
    return max(1, min(ROWS_AT_ONCE, VALUES_AT_ONCE // size))


def _opened(pa: Any, file: Any) -> tuple[Any, int, Any]:
    """The schema, the number of rows, and a function of columns and rows at once that yields batches."""
    if file.peek(8).startswith(b"PAR1"):
        table = pa.parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER_BYTES)

        def batches(names: list[str], step: int) -> Iterator[Any]:
            for group in range(table.num_row_groups):  # one by one: several would be read ahead
                yield from table.iter_batches(step, [group], names, use_threads=False)

        return table.schema_arrow, table.metadata.num_rows, batches
    table = pa.ipc.open_file(file)
    rows = sum(table.get_batch(number).num_rows for number in range(table.num_record_batches))

    def parts(names: list[str], step: int) -> Iterator[Any]:
        for number in range(table.num_record_batches):
            batch = table.get_batch(number)
            batch.validate(full=True)  # whatever is wrong in one that is not validated ends the process
            batch = batch.select(names)
            for start in range(0, len(batch), step):
                yield batch.slice(start, step)

    return table.schema, rows, parts
