"""Folders of Spark's Word2VecModel. tests/compat/spark.py tests them with Spark itself, which needs Java."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import w2v
from tests.helpers import assert_refused, run
from w2v._formats import registry, spark

WORDS = ["the", "köln", "a b", ""]
VECTORS = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
CLASS = "org.apache.spark.ml.feature.Word2VecModel"


def write_model(folder: Path, parts: list[Any], metadata: str | None = None) -> None:
    """Write a folder as Spark does, with hidden checksums."""
    for name in ("metadata", "data"):
        (folder / name).mkdir(parents=True)
        (folder / name / "_SUCCESS").touch()
        (folder / name / ".part-00000.crc").write_bytes(b"crc\0")
    text = json.dumps({"class": CLASS, "uid": "w"}) if metadata is None else metadata
    (folder / "metadata" / "part-00000-c0ff-c000.txt").write_text(f"{text}\n")
    for number, part in enumerate(parts):
        parquet.write_table(part, folder / "data" / f"part-{number:05}-c0ff-c000.snappy.parquet", compression="snappy")


def rows(start: int = 0, stop: int = 4) -> Any:
    lists = pa.array(VECTORS[start:stop].tolist(), pa.list_(pa.float32()))
    return pa.table({"word": pa.array(WORDS[start:stop], pa.string()), "vector": lists})


def test_folders_of_several_part_files_are_read_in_their_order(tmp_path: Path) -> None:
    write_model(tmp_path / "m", [rows(0, 1), rows(1, 1), rows(1, 4)])
    found = w2v.load(tmp_path / "m")
    assert found.index_to_key == WORDS
    np.testing.assert_array_equal(found.vectors, VECTORS)
    assert w2v.load(tmp_path / "m", limit=2).index_to_key == WORDS[:2]
    run("convert", tmp_path / "m", tmp_path / "m.safetensors", "--quiet")
    assert w2v.load(tmp_path / "m.safetensors").index_to_key == WORDS


def test_written_folders_have_the_columns_and_metadata_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "PART_BYTES", 60)  # two words of 3 values
    w2v.KeyedVectors(WORDS, VECTORS).save(tmp_path / "m.spark")
    folder = tmp_path / "m.spark"
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    parts = ["data/part-00000.parquet", "data/part-00001.parquet"]
    assert files == ["data/_SUCCESS", *parts, "metadata/_SUCCESS", "metadata/part-00000"]
    for number, name in enumerate(parts):
        part = parquet.read_table(folder / name)
        vector = pa.list_(pa.field("element", pa.float32(), nullable=False))
        assert part.schema == pa.schema([("word", pa.string()), ("vector", vector)])
        assert part.to_pydict() == {
            "word": WORDS[2 * number : 2 * number + 2],
            "vector": VECTORS[2 * number : 2 * number + 2].tolist(),
        }
    metadata = json.loads((folder / "metadata" / "part-00000").read_text())
    assert metadata["class"] == CLASS
    assert metadata["paramMap"] == {"vectorSize": 3}
    assert metadata.keys() == {"class", "timestamp", "sparkVersion", "uid", "paramMap", "defaultParamMap"}
    np.testing.assert_array_equal(w2v.load(folder).vectors, VECTORS)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("{", r"part-00000-c0ff-c000\.txt: damaged: "),
        ("[]", r"part-00000-c0ff-c000\.txt: damaged: "),
        ("{}", r"part-00000-c0ff-c000\.txt: damaged: .*class"),
        ('{"class": 3}', r"part-00000-c0ff-c000\.txt: damaged: "),
        ('{"class": "org.apache.spark.ml.clustering.LDAModel"}', r"m: it has a org.*LDAModel, not a Word2VecModel$"),
    ],
)
def test_folders_of_other_models_are_refused(tmp_path: Path, metadata: str, message: str) -> None:
    write_model(tmp_path / "m", [rows()], metadata)
    assert_refused(tmp_path / "m", message)


def test_the_stage_of_a_pipeline_is_named(tmp_path: Path) -> None:
    write_model(tmp_path / "m", [], '{"class": "org.apache.spark.ml.PipelineModel"}')
    stage = tmp_path / "m" / "stages" / "1_Word2Vec_c0ff"
    write_model(stage, [rows()])
    assert_refused(
        tmp_path / "m", f"PipelineModel, not a Word2VecModel: give the folder of its stage, {re.escape(str(stage))}$"
    )
    assert w2v.load(stage).index_to_key == WORDS


def cut(folder: Path) -> None:
    path = sorted((folder / "data").glob("part-*"))[1]
    path.write_bytes(path.read_bytes()[:-9])


def replace_part(part: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        parquet.write_table(part, sorted((folder / "data").glob("part-*"))[1])

    return change


def add_folder(folder: Path) -> None:
    (folder / "data" / "part-00002").mkdir()


def remove_data(folder: Path) -> None:
    shutil.rmtree(folder / "data")


OLD = pa.table({"wordIndex": [1], "wordVectors": [[1.0]]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cut, r"part-00001-c0ff-c000\.snappy\.parquet: damaged: "),
        (replace_part(rows(0, 1)), "m: the word 'the' appears twice, in rows 1 and 3"),
        (replace_part(OLD), r"m: damaged: part-00001-\S+ has other columns than part-00000-\S+$"),
        (add_folder, "part-00002: it is a folder"),
        (remove_data, "m: damaged: its folder data has no part files"),
    ],
)  # fmt: skip
def test_damaged_folders_are_refused(tmp_path: Path, change: Callable[[Path], None], message: str) -> None:
    write_model(tmp_path / "m", [rows(0, 2), rows(2, 4)])
    change(tmp_path / "m")
    assert_refused(tmp_path / "m", message)


def test_a_folder_of_other_things_is_not_taken_for_a_model(tmp_path: Path) -> None:
    (tmp_path / "m" / "metadata").mkdir(parents=True)
    (tmp_path / "m" / "metadata" / "_SUCCESS").touch()
    with pytest.raises(w2v.W2VError, match="it is a folder"):
        registry.detect_format(tmp_path / "m")
