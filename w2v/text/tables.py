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
    kind = Arrow if file.read(len(declared_sizes.MAGIC)) == declared_sizes.MAGIC else Parquet
    file.seek(0)
    return pyarrow, kind(where, file, os.fstat(file.fileno()).st_size, pyarrow)


class ColumnarFile:
    """The columns of a Parquet or Arrow file of `size` bytes. All methods raise W2VError if the file is damaged.

    Messages start with `where`.

    Attributes:
        schema: The schema, a pyarrow object.
        names: The names of the columns.
        rows: The number of rows.
    """

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
            yield from self._batches(columns, step, declared_sizes.Budget(self._where, self._size))

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
        except W2VError:
            raise
        except OSError as error:
            if error.errno:  # the error comes from the system, not from pyarrow
                raise
            raise W2VError(f"{self._where}: damaged: {one_line(error)}") from error
        except (self._pyarrow.ArrowException, *DAMAGE) as error:
            raise W2VError(f"{self._where}: damaged: {one_line(error)}") from error


class Parquet(ColumnarFile):
    """The columns of a Parquet file."""

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

    def _open(self, budget: declared_sizes.Budget) -> None:
        self.rows = declared_sizes.check_batches(self._file, self._size, budget, ())  # no column is read yet
        self.schema = self._pyarrow.ipc.open_file(self._file).schema

    def _batches(self, columns: Sequence[str], step: int, budget: declared_sizes.Budget) -> Iterator[Any]:
        declared_sizes.check_batches(self._file, self._size, budget, self._buffers(columns))
        options = self._pyarrow.ipc.IpcReadOptions(included_fields=[self.names.index(name) for name in columns])
        table = self._pyarrow.ipc.open_file(self._file, options=options)
        for number in range(table.num_record_batches):
            batch = table.get_batch(number)
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
