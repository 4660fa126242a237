"""Folders that Spark's ml.feature.Word2VecModel saves and loads.

`metadata` has the class and parameters of the model as JSON, and `data` has Parquet tables of words and vectors. w2v
also reads folders of the older mllib.feature.Word2VecModel: their tables have the same columns.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from w2v._errors import W2VError, one_line, translate_errors
from w2v._formats import arrow
from w2v._formats.base import Format
from w2v._formats.bfloat16 import float32_blocks
from w2v._formats.vector_file import VectorFile
from w2v._progress import Meter, Report
from w2v._system import schema
from w2v._system.files import PathLike, atomic_folder, atomic_write, open_regular, sync_folder, translate_os_errors
from w2v._text.tables import Parquet

NEED = "folders of Spark need one more package"
METADATA, DATA, SUCCESS = "metadata", "data", "_SUCCESS"
CLASS = "org.apache.spark.ml.feature.Word2VecModel"
CLASSES = (CLASS, "org.apache.spark.mllib.feature.Word2VecModel")
VERSION = "2.4.0"  # the first version of Spark that writes and reads this format
PART_BYTES = 64 << 20  # size of a part file, as Spark's default
WORD_BYTES = 15  # the size of a word that Spark expects


# -- writing --------------------------------------------------------------------------------


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a folder atomically. An existing folder is never replaced.

    Raises:
        W2VError: If pyarrow is missing, or if the folder cannot be written or exists.
    """
    pa = arrow.import_pyarrow(path, NEED)
    metadata = {
        "class": CLASS,
        "timestamp": time.time_ns() // 1_000_000,
        "sparkVersion": VERSION,
        "uid": f"Word2Vec_{uuid.uuid4().hex[-12:]}",
        "paramMap": {"vectorSize": content.vectors.shape[1]},
        "defaultParamMap": {},
    }
    with atomic_folder(path) as folder:
        for name in (METADATA, DATA):
            (folder / name).mkdir()
        _write_tables(folder / DATA, pa, content, Meter(progress, "save"))
        with atomic_write(folder / METADATA / "part-00000") as file:
            file.write(json.dumps(metadata).encode() + b"\n")
        for name in (METADATA, DATA):
            with atomic_write(folder / name / SUCCESS):
                pass
        sync_folder(folder)


def _write_tables(folder: Path, pa: Any, content: VectorFile, meter: Meter) -> None:
    """Write part files of at most about PART_BYTES: Spark reads each of them as a whole."""
    rows, size = content.vectors.shape
    lists = pa.list_(pa.field("element", pa.float32(), nullable=False))
    schema = pa.schema([(arrow.WORD, pa.string()), (arrow.VECTOR, lists)])
    rows_per_part = max(1, PART_BYTES // (4 * size + WORD_BYTES))
    for number, first in enumerate(range(0, rows, rows_per_part)):
        part = content.vectors[first : first + rows_per_part]
        with (
            atomic_write(folder / f"part-{number:05}.parquet") as file,
            pa.parquet.ParquetWriter(file, schema, use_dictionary=False) as out,
        ):
            for start, block in float32_blocks(part, arrow.rows_per_batch(size)):
                begin, end = first + start, first + start + len(block)
                offsets = np.arange(len(block) + 1, dtype=np.int32) * size
                values = pa.array(np.ascontiguousarray(block, np.float32).reshape(-1))
                columns = [
                    pa.array(content.words[begin:end], pa.string()),
                    pa.ListArray.from_arrays(pa.array(offsets), values, type=lists),
                ]
                out.write_batch(pa.record_batch(columns, schema=schema))
                meter(end, rows)


# -- reading --------------------------------------------------------------------------------


class _Metadata(msgspec.Struct):
    class_: str = msgspec.field(name="class")


def matches(path: PathLike, head: bytes) -> bool:
    """Return True if a path is a folder of a model or pipeline of Spark."""
    return bool(_part_files(Path(path) / METADATA))


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the words and vectors of a folder, in the order of its part files; see Format.read.

    Raises:
        W2VError: If pyarrow is missing, if the folder is damaged, or if it has a model of another kind.
    """
    pa = arrow.import_pyarrow(path, NEED)
    _check_class(Path(path))
    paths = _part_files(Path(path) / DATA)
    if not paths:
        raise W2VError(f"{path}: damaged: its folder {DATA} has no part files")
    with translate_errors(f"{path}: damaged", pa.ArrowException, UnicodeDecodeError), translate_os_errors(path):
        parts = _PartFiles(path, paths, pa)
        return arrow.read_table(path, pa, parts, limit, Meter(progress, "load"))


def _part_files(folder: Path) -> list[Path]:
    """Return the files in a folder that Spark reads, in their order. It ignores names that begin with "_" or "."."""
    return sorted(folder.glob("[!_.]*"))


def _check_class(path: Path) -> None:
    """Raise W2VError if the folder does not have a Word2VecModel."""
    found = schema.read(_Metadata, _part_files(path / METADATA)[0]).class_
    if found in CLASSES:
        return
    stages = [each for each in _part_files(path / "stages") if "Word2Vec" in each.name]
    hint = f": give the folder of its stage, {stages[0]}" if stages else ""
    raise W2VError(f"{path}: it has a {one_line(found)}, not a Word2VecModel{hint}")


class _PartFiles:
    """The rows of several Parquet files with the same columns, one file after the other. One file is open at a time.

    Attributes:
        schema, names: The schema and the column names of the first file.
        rows: The number of rows of all files.
    """

    def __init__(self, path: PathLike, paths: Sequence[Path], pyarrow: Any) -> None:
        self._paths, self._pyarrow = paths, pyarrow
        self.rows = 0
        for part in paths:
            with self._open(part) as table:
                if part == paths[0]:
                    self.schema, self.names = table.schema, table.names
                elif not table.schema.equals(self.schema):
                    raise W2VError(f"{path}: damaged: {part.name} has other columns than {paths[0].name}")
                self.rows += table.rows

    @contextmanager
    def _open(self, path: Path) -> Iterator[Parquet]:
        with translate_os_errors(path), open_regular(path) as file:
            yield Parquet(str(path), file, self._pyarrow)

    def batches(self, columns: Sequence[str], step: int) -> Iterator[Any]:
        for path in self._paths:
            with self._open(path) as table:
                yield from table.batches(columns, step)


FORMAT = Format("spark", (".spark",), 10, matches, read, write, folder=True)
