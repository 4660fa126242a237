"""Read columns of Parquet and Arrow files in batches of rows.

Before pyarrow reads a file, declared_sizes.py checks the sizes that the file declares.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from w2v.errors import W2VError, one_line
from w2v.text import declared_sizes

READ_AHEAD = 1 << 20  # bytes of each Parquet column that pyarrow buffers
STRING_BYTES = 24 << 20  # limit for one batch of strings that are stored once but referenced by many rows
# Errors that declared_sizes.py and pyarrow raise for damaged metadata.
DAMAGE = (ValueError, LookupError, OverflowError, RuntimeError, MemoryError, struct.error)


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

    def _batches(self, columns: Sequence[str], step: int, budget: declared_sizes.Budget) -> Iterator[Any]:
        schema_columns = [self._table.schema.column(number) for number in range(len(self._table.schema))]
        if any(len(chunks) != len(schema_columns) for chunks in self._groups):
            raise ValueError("its row groups have other columns than its schema")
        for group, chunks in enumerate(self._groups):  # one by one, since pyarrow would read all of them ahead
            longest = 0  # upper limit for the bytes of a string that many rows reference
            for column, chunk in zip(schema_columns, chunks, strict=True):
                if column.path.split(".")[0] in columns:
                    referenced = declared_sizes.check_pages(self._file, chunk, budget)
                    is_string = column.max_repetition_level == 0 and column.physical_type.endswith("BYTE_ARRAY")
                    longest = max(longest, referenced) if is_string else longest
            rows = max(1, min(step, STRING_BYTES // longest)) if longest else step
            yield from self._table.iter_batches(rows, [group], columns, use_threads=False)


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
