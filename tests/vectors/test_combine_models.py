"""Combined vectors of several models match the definition; wrong input is one clear line."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._formats.header import ModelHeader
from w2v._formats.storage import CompactMatrix
from w2v._system import memory
from w2v._text.normalise import TextOptions
from w2v._text.subwords import Subwords
from w2v._vectors import combine_models

FIRST = {"a": [3, 4], "b": [0, 2], "c": [1, 0], "zero": [0, 0]}
SECOND = {"d": [1, 0, 0], "c": [0, 5, 0], "a": [2, 2, 1], "zero": [0, 1, 0]}


def vectors(rows: dict[str, list[int]], counts: list[int] | None = None, **more: Any) -> w2v.KeyedVectors:
    return w2v.KeyedVectors(list(rows), np.array(list(rows.values()), np.float32), counts, **more)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combine_models, "ROWS_AT_ONCE", 2)


def test_parts_are_unit_vectors_times_weights() -> None:
    found = w2v.combine([vectors(FIRST), vectors(SECOND)], [2, 0.5])
    assert found.index_to_key == ["a", "c", "zero"]  # the order of the first model
    assert found.counts is None
    expected = [[1.2, 1.6, 1 / 3, 1 / 3, 1 / 6], [2, 0, 0, 0.5, 0], [0, 0, 0, 0.5, 0]]
    np.testing.assert_allclose(found.vectors, expected, rtol=1e-6)
    assert found.vectors.dtype == np.float32
    equal = w2v.combine([vectors(FIRST), vectors(SECOND)])
    one, other = vectors(FIRST).similarity("a", "c"), vectors(SECOND).similarity("a", "c")
    assert equal.similarity("a", "c") == pytest.approx((one + other) / 2)


def test_only_words_of_all_models_are_taken() -> None:
    found = w2v.combine([vectors(FIRST), vectors(SECOND), vectors({"c": [2], "d": [1], "b": [3]})])
    assert found.index_to_key == ["c"]


def test_union_has_zeros_in_the_part_of_a_model_without_the_word() -> None:
    found = w2v.combine([vectors(FIRST), vectors(SECOND)], words="union")
    assert found.index_to_key == ["a", "b", "c", "zero", "d"]
    np.testing.assert_array_equal(found["b"], [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(found["d"], [0, 0, 1, 0, 0])


def test_counts_come_from_the_first_model_that_has_the_word() -> None:
    first, second = vectors(FIRST, [7, 6, 5, 5]), vectors(SECOND, [9, 8, 2, 1])
    found = w2v.combine([first, second], words="union")
    assert found.counts is not None
    assert found.counts.tolist() == [9, 7, 6, 5, 5]
    assert found.index_to_key == ["d", "a", "b", "c", "zero"]  # equal counts keep the order of the models
    only_second = w2v.combine([vectors(FIRST), second])
    assert only_second.index_to_key == ["c", "a", "zero"]
    assert only_second.counts is not None
    assert only_second.counts.tolist() == [8, 2, 1]
    some = w2v.combine([vectors(FIRST), second], words="union")  # b has no count
    assert some.counts is None
    assert some.index_to_key[0] == "a"


def test_models_and_compact_matrices_are_combined() -> None:
    rows: Any = CompactMatrix(np.array([[3, 4], [0, 2]], np.float16))
    compact = w2v.KeyedVectors(["a", "b"], rows)
    found = w2v.combine([SimpleNamespace(wv=vectors(FIRST)), compact, vectors(SECOND)])
    np.testing.assert_allclose(found["a"], [0.6, 0.8, 0.6, 0.8, 2 / 3, 2 / 3, 1 / 3], rtol=1e-3)


def test_common_text_options_are_kept() -> None:
    lower, other = (ModelHeader(text=TextOptions(lower=value)) for value in (True, False))
    kept = w2v.combine([vectors(FIRST, header=lower), vectors(SECOND, header=lower)])
    assert kept.words_in("A c") == ["a", "c"]
    differing = w2v.combine([vectors(FIRST, header=lower), vectors(SECOND, header=other)])
    assert differing.words_in("A c") == ["A", "c"]


def test_ngrams_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    ngrams = {"ngrams": np.ones((1, 2), np.float32), "ngram_buckets": np.zeros(1, np.int32)}
    subwords = vectors(FIRST, tensors=ngrams, header=ModelHeader(subwords=Subwords(1, 2, 1)))
    assert "unknown" in subwords
    found = w2v.combine([subwords, vectors(SECOND)])
    assert "unknown" not in found
    assert "unknown words do not have a vector" in caplog.text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": [1]}, "1 weight for 2 models: give one for each"),
        ({"weights": [-1, 1]}, "weight 1 is -1: weights are numbers from 0.001 to 1,000"),
        ({"weights": [1, float("nan")]}, "weight 2 is nan: weights are numbers from"),
        ({"weights": [1, 0.00099]}, "weight 2 is 0.00099: weights are numbers from"),
        ({"weights": [1000.1, 1]}, "weight 1 is 1000.1: weights are numbers from"),
        ({"weights": ["a", 1]}, "weight 1 is 'a': weights are numbers from"),
        ({"words": "all"}, 'words is \'all\': it must be "intersection" or "union"'),
    ],
)
def test_wrong_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.SettingsError, match=message):
        w2v.combine([vectors(FIRST), vectors(SECOND)], **given)


def test_weights_at_the_limits_are_accepted() -> None:
    found = w2v.combine([vectors(FIRST), vectors(SECOND)], [0.001, 1000])
    lengths = [np.linalg.norm(found["a"][part]) for part in (slice(2), slice(2, 5))]
    assert lengths == pytest.approx([0.001, 1000])


def test_wrong_models_are_refused() -> None:
    with pytest.raises(w2v.SettingsError, match="1 model to combine: give at least two"):
        w2v.combine([vectors(FIRST)])
    with pytest.raises(w2v.W2VError, match="no word is in all models"):
        w2v.combine([vectors(FIRST), vectors({"x": [1]})])
    paths: Any = ["a.bin", "b.bin"]
    with pytest.raises(w2v.W2VError, match=r"'a\.bin' is not a model"):
        w2v.combine(paths)
    with pytest.raises(w2v.W2VError, match="the word 'a' appears twice"):
        w2v.combine([vectors(FIRST), w2v.KeyedVectors(["a", "a"], np.ones((2, 2)))])


def test_memory_is_estimated_before_it_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 10)
    monkeypatch.setattr(memory, "zeros", lambda *_: pytest.fail("memory was allocated"))
    with pytest.raises(w2v.W2VError, match=r"combining 3 words needs about .* make the models smaller first"):
        w2v.combine([vectors(FIRST), vectors(SECOND)])


def test_command_writes_the_combination(tmp_path: Path) -> None:
    first, second, output = (tmp_path / f"{name}.safetensors" for name in ("first", "second", "both"))
    vectors(FIRST, [4, 3, 2, 1]).save(first)
    vectors(SECOND).save(second)
    found = run_json("combine", first, second, "-o", output, "--weights", "1,0.5", "--words", "union")
    assert (found["vocabulary_size"], found["vector_size"]) == (5, 5)
    expected = w2v.combine([w2v.load(first), w2v.load(second)], [1, 0.5], "union")
    np.testing.assert_array_equal(w2v.load(output).vectors, expected.vectors)
    assert "is named twice: choose another file" in run("combine", first, second, "-o", first, "--force", code=2).stderr
    bad = run("combine", first, second, "-o", output, "--force", "--weights", "1;2", code=2).stderr
    assert "'1;2': numbers separated by commas are needed, such as 1,0.8" in bad
    assert "1 model to combine" in run("combine", first, "-o", tmp_path / "new.bin", code=2).stderr
    assert not (tmp_path / "new.bin").exists()
