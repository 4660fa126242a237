"""Plots of the path of a word through several models."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v.plotting.projection import project
from w2v.plotting.word_path import word_path


def models() -> dict[str, w2v.KeyedVectors]:
    """Return rotated models of three periods. The word "m" moves from the words a0 to a9 to the words b0 to b9."""
    random = np.random.default_rng(1)
    size = 12
    groups = np.repeat(np.eye(size)[:6], 10, axis=0) + 0.1 * random.normal(size=(60, size))
    words = [f"{group}{number}" for group in "abcdef" for number in range(10)]
    found = {}
    for period, share in (("old", 0.0), ("middle", 0.5), ("new", 1.0)):
        matrix = np.vstack([groups, (1 - share) * np.eye(size)[0] + share * np.eye(size)[1]])
        rotation = np.linalg.qr(random.normal(size=(size, size)))[0]
        found[period] = w2v.KeyedVectors([*words, "m"], matrix @ rotation)
    return found


def test_the_path_leads_from_the_old_neighbours_to_the_new_ones() -> None:
    picture = word_path(models(), "m")
    axes = picture.axes[0]
    assert axes.get_title() == "m"
    labels = [text.get_text() for text in axes.texts if text.get_text()]
    assert labels[:3] == ["m (old)", "m (middle)", "m (new)"]
    assert {*labels[3:]} < {f"{group}{number}" for group in "ab" for number in range(10)}
    assert (picture.words, picture.labels) == (len(labels), len(labels))
    points = axes.collections[0].get_offsets()
    centres = {
        group: np.mean([point for point, label in zip(points, labels, strict=True) if label[0] == group], axis=0)
        for group in "ab"
    }
    to_a, to_b = (np.linalg.norm(points[:3] - centres[group], axis=1) for group in "ab")
    assert to_a[0] < to_a[1] < to_a[2]
    assert to_b[0] > to_b[1] > to_b[2]
    arrows = [(*text.xyann, *text.xy) for text in axes.texts if not text.get_text()]
    np.testing.assert_allclose(arrows, [[*points[0], *points[1]], [*points[1], *points[2]]])


def test_other_words_are_at_the_mean_of_their_vectors() -> None:
    aligned = dict(zip(models(), w2v.align([*models().values()]).vectors, strict=True))
    picture = word_path(aligned, "m")
    axes = picture.axes[0]
    labels = [text.get_text() for text in axes.texts if text.get_text()]
    rows = [each["m"] for each in aligned.values()]
    rows += [np.mean([each[word] for each in aligned.values()], axis=0) for word in labels[3:]]
    matrix = np.array(rows)
    expected = project(matrix / np.linalg.norm(matrix, axis=1, keepdims=True))
    np.testing.assert_allclose(axes.collections[0].get_offsets(), expected, atol=1e-5)


def test_keys_may_be_numbers() -> None:
    numbers = {name: w2v.KeyedVectors(range(61), each.vectors) for name, each in models().items()}
    axes = word_path(numbers, "60").axes[0]
    labels = [text.get_text() for text in axes.texts if text.get_text()]
    assert labels[:3] == ["60 (old)", "60 (middle)", "60 (new)"]
    assert {*labels[3:]} < {str(number) for number in range(20)}
    assert axes.get_title() == "60"


def test_wrong_input_is_refused_in_one_line() -> None:
    slices = models()
    with pytest.raises(w2v.SettingsError, match="1 model for the path of a word: give at least two"):
        word_path({"old": slices["old"]}, "m")
    with pytest.raises(w2v.UnknownWordError, match="not in the vocabulary of old: 'x'"):
        word_path(slices, "x")
    fewer = w2v.KeyedVectors(["a0"], slices["new"]["a0"][None])
    with pytest.raises(w2v.UnknownWordError, match="not in the vocabulary of newest: 'm'"):
        word_path({**slices, "newest": fewer}, "m")
    with pytest.raises(w2v.SettingsError, match="seed -1"):
        word_path(slices, "m", seed=-1)


def test_command_draws_a_path(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.safetensors" for name in models()]
    for file, vectors in zip(files, models().values(), strict=True):
        vectors.save(file)
    found = run_json("plot", "--slices", *files, "--word", "m", "-o", tmp_path / "m.svg")
    assert found == {"output": str(tmp_path / "m.svg"), "words": found["words"], "labels": found["words"]}
    assert (tmp_path / "m.svg").read_text().startswith("<?xml")
    out = ("-o", tmp_path / "other.svg")
    assert "--slices needs one --word, which is missing" in run("plot", "--slices", *files, *out, code=2).stderr
    error = run("plot", "--slices", *files, "--word", "m", "--word", "a0", *out, code=2).stderr
    assert "--slices needs one --word, which is given 2 times: give it once" in error
    assert "--word has no effect without --slices" in run("plot", files[0], "--word", "m", *out, code=2).stderr
    assert "topn has no effect with --slices" in run("plot", "--slices", *files, "--topn", 3, *out, code=2).stderr
    assert "is named twice" in run("plot", "--slices", files[0], files[0], "--word", "m", *out, code=2).stderr
    assert not (tmp_path / "other.svg").exists()
