"""Read columns of Parquet and Arrow files in batches of rows.

pyarrow reads the files, and checks them. w2v only sets its limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError, import_optional, one_line
from w2v._system.files import SIGNATURE_BYTES
from w2v._text.columns import columnar_kind, find_column, table_error

READ_AHEAD = 1 << 20  # bytes of each Parquet column that pyarrow buffers
ARROW_START = b"ARROW1"  # the first bytes of Arrow files, not of Arrow streams
# The longest string and the longest list that the metadata of a Parquet file may have.
THRIFT_LIMITS = {"thrift_string_size_limit": 32 << 20, "thrift_container_size_limit": 1 << 18}
DAMAGE = (ValueError, LookupError, OverflowError, RuntimeError, MemoryError)  # what pyarrow raises for damaged files


def open_table(where: str, file: IO[bytes]) -> tuple[Any, ColumnarFile]:
    """Open a Parquet or Arrow file, and return pyarrow and the file.

    Raises:
        W2VError: If the file is damaged, or if pyarrow is not installed.
    """
    need = f"{where}: Parquet and Arrow files need one more package"
    pyarrow = import_optional(need, "parquet", "pyarrow", "pyarrow.compute", "pyarrow.parquet")
    file.seek(0)
    kind = Parquet if columnar_kind(file.read(SIGNATURE_BYTES)) == "Parquet" else Arrow
    return pyarrow, kind(where, file, pyarrow)


def check_columns(where: str, table: ColumnarFile, columns: Sequence[str]) -> list[str]:
    """Return the names of columns that are given by name or number.

    Raises:
        W2VError: If no column is given, or if the table does not have each of the columns once.
    """
    if not columns:
        raise table_error(where, table.kind, table.names)
    names = [table.names[find_column(where, table.names, column)] for column in columns]
    for name in names:
        if table.names.count(name) > 1:
            raise W2VError(f"{where} has {table.names.count(name)} columns {name[:100]!r}: rename the others")
    return names


class ColumnarFile:
    """The columns of a Parquet or Arrow file. All methods raise W2VError if the file is damaged.

    Messages start with `where`.

    Attributes:
        kind: The name of the format.
        schema: The schema, a pyarrow object.
        names: The names of the columns.
        rows: The number of rows.
    """

    kind = ""
    schema: Any
    rows: int

    def __init__(self, where: str, file: IO[bytes], pyarrow: Any) -> None:
        self._where, self._file, self._pyarrow = where, file, pyarrow
        with self._translate_errors():
            self._open()
            self.names: list[str] = self.schema.names

    def batches(self, columns: Sequence[str], step: int) -> Iterator[Any]:
        """Yield batches of at most `step` rows with these columns. The schema must contain each column once."""
        with self._translate_errors():
            yield from self._batches(columns, step)

    def values_per_row(self, column: str) -> float:
        """Return the mean number of values in a row of a column; 1 if it is unknown."""
        return 1

    def _open(self) -> None:
        raise NotImplementedError

    def _batches(self, columns: Sequence[str], step: int) -> Iterator[Any]:
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

    def _open(self) -> None:
        self._table = self._open_table()
        self._metadata = self._table.metadata
        self.schema, self.rows = self._table.schema_arrow, self._metadata.num_rows
        columns = self._table.schema
        self._columns = [columns.column(number) for number in range(len(columns))]

    def _open_table(self, **options: Any) -> Any:
        return self._pyarrow.parquet.ParquetFile(
            self._file, pre_buffer=False, buffer_size=READ_AHEAD, **THRIFT_LIMITS, **options
        )

    def values_per_row(self, column: str) -> float:
        number = [each.path.split(".")[0] for each in self._columns].index(column)
        groups = map(self._metadata.row_group, range(self._metadata.num_row_groups))
        values: int = sum(group.column(number).num_values for group in groups)
        return max(1.0, values / max(1, self.rows))

    def _batches(self, columns: Sequence[str], step: int) -> Iterator[Any]:
        # The strings in lists are read as numbers of different strings: it is faster, and takes less memory.
        repeated = [
            column.path
            for column in self._columns
            if column.path.split(".")[0] in columns
            and column.max_repetition_level
            and column.physical_type == "BYTE_ARRAY"
        ]
        table = self._open_table(read_dictionary=repeated, metadata=self._metadata) if repeated else self._table
        for group in range(self._metadata.num_row_groups):  # one by one, since pyarrow would read all of them ahead
            yield from table.iter_batches(step, [group], columns, use_threads=False)


class Arrow(ColumnarFile):
    """The columns of an Arrow file, or of an Arrow stream in a file."""

    kind = "Arrow"

    def _open(self) -> None:
        self._file.seek(0)
        ipc = self._pyarrow.ipc
        self._reader = ipc.open_file if self._file.read(len(ARROW_START)) == ARROW_START else ipc.open_stream
        self.schema = self._record_batches(None)[0]
        self.rows = sum(map(len, self._record_batches([0])[1]))  # a footer does not say how many rows there are

    def _record_batches(self, columns: list[int] | None) -> tuple[Any, Iterator[Any]]:
        """Return the schema, and the batches with only these columns: pyarrow does not decompress the others."""
        self._file.seek(0)
        reader = self._reader(self._file, options=self._pyarrow.ipc.IpcReadOptions(included_fields=columns))
        if self._reader is self._pyarrow.ipc.open_stream:
            return reader.schema, iter(reader)
        return reader.schema, map(reader.get_batch, range(reader.num_record_batches))

    def _batches(self, columns: Sequence[str], step: int) -> Iterator[Any]:
        for batch in self._record_batches([self.names.index(name) for name in columns])[1]:
            batch.validate(full=True)  # damage in an unvalidated batch can crash the process
            batch = batch.select(columns)
            for start in range(0, len(batch), step):
                yield batch.slice(start, step)


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
