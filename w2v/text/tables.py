"""Read columns of Parquet and Arrow files in batches of rows.

Before pyarrow reads a file, declared_sizes.py checks the sizes that the file declares.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import W2VError, import_optional, one_line
from w2v.text import declared_sizes

READ_AHEAD = 1 << 20  # bytes of each Parquet column that pyarrow buffers
STRING_BYTES = 24 << 20  # limit for one batch of strings that are stored once but referenced by many rows
# Errors that declared_sizes.py and pyarrow raise for damaged metadata.
DAMAGE = (ValueError, LookupError, OverflowError, RuntimeError, MemoryError, struct.error)


def open_table(where: str, file: IO[bytes]) -> tuple[Any, ColumnarFile]:
    """Open a Parquet or Arrow file, and return pyarrow and the file.

    Raises:
        W2VError: If the file is damaged, or if pyarrow is not installed.
    """
    need = f"{where}: Parquet and Arrow files need one more package"
    pyarrow = import_optional(need, "parquet", "pyarrow", "pyarrow.compute", "pyarrow.parquet")
    file.seek(0)
    start = file.read(len(declared_sizes.MAGIC))
    is_stream = start.startswith(declared_sizes.CONTINUATION)
    kind = ArrowStream if is_stream else Arrow if start == declared_sizes.MAGIC else Parquet
    file.seek(0)
    return pyarrow, kind(where, file, os.fstat(file.fileno()).st_size, pyarrow)


class ColumnarFile:
    """The columns of a Parquet or Arrow file of `size` bytes. All methods raise W2VError if the file is damaged.

    Messages start with `where`.

    Attributes:
        kind: The name of the format.
        schema: The schema, a pyarrow object.
        names: The names of the columns.
        rows: The number of rows.
    """

    kind = ""
    schema: Any
    names: list[str]
    rows: int

    def __init__(self, where: str, file: IO[bytes], size: int, pyarrow: Any) -> None:
        self._where, self._file, self._size, self._pyarrow = where, file, size, pyarrow
        with self._translate_errors():
            self._open(declared_sizes.Budget(where, size))
            self.names = self.schema.names
            if self.rows < 0:
                raise ValueError(f"it declares {self.rows:,} rows")

    def batches(self, columns: Sequence[str], step: int) -> Iterator[Any]:
        """Yield batches of at most `step` rows with these columns. The schema must contain each column once."""
        with self._translate_errors():
            budget = declared_sizes.Budget(self._where, self._size)
            for batch in self._batches(columns, step, budget):
                for column in batch.columns:
                    _check_views(self._pyarrow, column, budget)
                yield batch

    def values_per_row(self, column: str) -> float:
        """Return the mean number of values in a row of a column; 1 if it is unknown."""
        return 1

    def _open(self, budget: declared_sizes.Budget) -> None:
        raise NotImplementedError

    def _batches(self, columns: Sequence[str], step: int, budget: declared_sizes.Budget) -> Iterator[Any]:
        raise NotImplementedError

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn the errors that damaged files cause into W2VError."""
        try:
            yield
        except (self._pyarrow.ArrowException, OSError, *DAMAGE) as error:
            if isinstance(error, W2VError) or (isinstance(error, OSError) and error.errno):  # not from pyarrow
                raise
            raise W2VError(f"{self._where}: damaged: {one_line(error)}") from error


class Parquet(ColumnarFile):
    """The columns of a Parquet file."""

    kind = "Parquet"

    def _open(self, budget: declared_sizes.Budget) -> None:
        self._groups = declared_sizes.check_footer(self._file, self._size, budget)
        self._table = self._pyarrow.parquet.ParquetFile(self._file, pre_buffer=False, buffer_size=READ_AHEAD)
        self.schema, self.rows = self._table.schema_arrow, self._table.metadata.num_rows

    def values_per_row(self, column: str) -> float:
        names = [self._table.schema.column(number).path.split(".")[0] for number in range(len(self._table.schema))]
        values = sum(chunks[names.index(column)].values for chunks in self._groups if len(chunks) == len(names))
        return max(1.0, values / max(1, self.rows))

    def _batches(self, columns: Sequence[str], step: int, budget: declared_sizes.Budget) -> Iterator[Any]:
        schema_columns = [self._table.schema.column(number) for number in range(len(self._table.schema))]
        if any(len(chunks) != len(schema_columns) for chunks in self._groups):
            raise ValueError("its row groups have other columns than its schema")
        wanted = [column.path.split(".")[0] in columns for column in schema_columns]
        # The strings in lists are read as numbers of different strings. Otherwise, a list could repeat a long string.
        repeated = [
            column.path
            for column, is_wanted in zip(schema_columns, wanted, strict=True)
            if is_wanted and column.max_repetition_level and column.physical_type == "BYTE_ARRAY"
        ]
        table = self._table
        if repeated:
            parquet = self._pyarrow.parquet
            table = parquet.ParquetFile(
                self._file, pre_buffer=False, buffer_size=READ_AHEAD, read_dictionary=repeated, metadata=table.metadata
            )
        for group, chunks in enumerate(self._groups):  # one by one, since pyarrow would read all of them ahead
            longest = 0  # upper limit for the bytes of a string that many rows reference
            for column, chunk, is_wanted in zip(schema_columns, chunks, wanted, strict=True):
                if is_wanted:
                    referenced = declared_sizes.check_pages(
                        self._file, chunk, budget, has_unique_strings=column.path in repeated
                    )
                    is_string = column.max_repetition_level == 0 and column.physical_type.endswith("BYTE_ARRAY")
                    longest = max(longest, referenced) if is_string else longest
            rows = max(1, min(step, STRING_BYTES // longest)) if longest else step
            yield from table.iter_batches(rows, [group], columns, use_threads=False)


class Arrow(ColumnarFile):
    """The columns of an Arrow file."""

    kind = "Arrow"
    _check = staticmethod(declared_sizes.check_batches)

    def _open(self, budget: declared_sizes.Budget) -> None:
        self.rows = self._check(self._file, self._size, budget, ())  # no column is read yet
        self.schema = self._reader().schema

    def _reader(self, **options: Any) -> Any:
        """Return pyarrow's reader."""
        return self._pyarrow.ipc.open_file(self._file, **options)

    def _record_batches(self, reader: Any) -> Iterator[Any]:
        return (reader.get_batch(number) for number in range(reader.num_record_batches))

    def _batches(self, columns: Sequence[str], step: int, budget: declared_sizes.Budget) -> Iterator[Any]:
        self._check(self._file, self._size, budget, self._buffers(columns))
        options = self._pyarrow.ipc.IpcReadOptions(included_fields=[self.names.index(name) for name in columns])
        for batch in self._record_batches(self._reader(options=options)):
            batch.validate(full=True)  # damage in an unvalidated batch can crash the process
            batch = batch.select(columns)
            for start in range(0, len(batch), step):
                yield batch.slice(start, step)

    def _buffers(self, columns: Sequence[str]) -> set[int] | None:
        """Return the numbers of the buffers that hold these columns; None if that is unknown for some type."""
        buffers: set[int] = set()
        end = 0
        for field in self.schema:
            count = _buffer_count(self._pyarrow, field.type)
            if count is None:
                return None
            if field.name in columns:
                buffers.update(range(end, end + count))
            end += count
        return buffers


class ArrowStream(Arrow):
    """The columns of an Arrow stream in a file."""

    _check = staticmethod(declared_sizes.check_stream)

    def _reader(self, **options: Any) -> Any:
        self._file.seek(0)
        return self._pyarrow.ipc.open_stream(self._file, **options)

    def _record_batches(self, reader: Any) -> Iterator[Any]:
        return iter(reader)


def _buffer_count(pyarrow: Any, kind: Any) -> int | None:
    """Return the number of buffers that a column of this type has in each batch of an Arrow file; None if unknown."""
    types = pyarrow.types
    if isinstance(kind, pyarrow.BaseExtensionType):
        return _buffer_count(pyarrow, kind.storage_type)
    if types.is_primitive(kind) or types.is_fixed_size_binary(kind) or types.is_decimal(kind):
        return 2  # the bits that say which values are missing, and the values
    if types.is_dictionary(kind):
        return 2  # the same for the indices; the dictionary is stored elsewhere
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return 3  # also the offsets
    if types.is_struct(kind):
        own, inner = 1, [kind.field(number).type for number in range(kind.num_fields)]
    elif types.is_fixed_size_list(kind):
        own, inner = 1, [kind.value_type]
    elif types.is_list(kind) or types.is_large_list(kind):
        own, inner = 2, [kind.value_type]
    else:  # in views and unions, for instance, the number differs between batches or versions
        return None
    counts = [_buffer_count(pyarrow, each) for each in inner]
    return None if None in counts else own + sum(count or 0 for count in counts)


def is_list(pyarrow: Any, kind: Any) -> bool:
    """Return True for pyarrow's type of a list, or of a view of one."""
    types = pyarrow.types
    tests = types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view
    return any(test(kind) for test in tests)


def is_text(pyarrow: Any, kind: Any) -> bool:
    """Return True for pyarrow's types of strings, stored as such, as views, or in a dictionary."""
    types = pyarrow.types
    if types.is_string_view(kind):
        return True
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_views(pyarrow: Any, array: Any, budget: declared_sizes.Budget) -> None:
    """Subtract what views refer to from the budget, because many of them can refer to the same lists or strings."""
    types, kind = pyarrow.types, array.type
    if "view" not in str(kind):
        return
    array.validate(full=True)  # the validation of a list does not include the views in it
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        lengths = pyarrow.compute.list_value_length(array)
        budget.take_content(declared_sizes.VALUE_BYTES * (pyarrow.compute.sum(lengths).as_py() or 0))
    if is_list(pyarrow, kind):
        _check_views(pyarrow, array.flatten(), budget)
    elif types.is_string_view(kind):
        budget.take_content(int(_views(array)[:, 0].sum(dtype=np.int64)))


def _views(array: Any) -> NDArray[np.int32]:
    """Return the views of strings that are not null, int32 (n, 4). A view begins with the length of its string."""
    views = np.frombuffer(array.buffers()[1] or b"", np.int32, 4 * len(array), 16 * array.offset)
    return views.reshape(-1, 4)[validity(array)]


def viewed_strings(pyarrow: Any, array: Any) -> Any:
    """Return the strings that views refer to, without nulls. pyarrow would also follow the views of nulls."""
    views = _views(array)
    buffers = [None, pyarrow.py_buffer(views), *array.buffers()[2:]]
    return pyarrow.Array.from_buffers(array.type, len(views), buffers).cast(pyarrow.large_string())


def as_numpy(column: Any) -> NDArray[Any]:
    """Return a column without nulls as an array. The column's own to_numpy would import pandas, which takes 40 MB."""
    dtype = np.dtype(column.type.to_pandas_dtype())
    return np.frombuffer(column.buffers()[1] or b"", dtype, len(column), column.offset * dtype.itemsize)


def validity(column: Any) -> NDArray[np.bool_]:
    """Return which elements of a column are not null, bool (n,)."""
    if not column.null_count:
        return np.ones(len(column), bool)
    flags = column.is_valid()
    bits = np.unpackbits(np.frombuffer(flags.buffers()[1], np.uint8), bitorder="little")
    return bits[flags.offset : flags.offset + len(flags)].astype(bool)
