"""Arrows between words: analogies, and the path of a word through several models."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.path import Path as MplPath

import w2v
from tests.helpers import run, run_json
from w2v._plotting.arrows import analogy_map, word_path
from w2v._plotting.figure import COLOURS
from w2v._plotting.projection import project


@pytest.fixture
def vectors() -> w2v.KeyedVectors:
    """Return vectors of four pairs with the same offset, and of a word without a pair."""
    base = np.array([[3, 0, 1], [3, 1, 1], [3, 2, 1], [3, 3, 1]])
    words = ["a1", "b1", "c1", "d1", "a2", "b2", "c2", "d2", "e"]
    return w2v.KeyedVectors(words, np.vstack([base, base + np.array([0, 0, 3]), np.ones((1, 3))]))


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.txt"
    path.write_text(": unknown\nx y z w\n: pairs\na1 a2 b1 b2\na1 a2 c1 c2\nD1 d2 x y\n: $x$\na1 a2 c1 c2\n", "utf-8")
    return path


def test_each_pair_is_an_arrow(vectors: w2v.KeyedVectors, questions: Path) -> None:
    picture = analogy_map(vectors, None, questions)
    axes = picture.axes[0]
    assert axes.get_title() == "pairs"
    assert sorted(text.get_text() for text in axes.texts if text.get_text()) == sorted([*vectors][:8])
    arrows = [text for text in axes.texts if not text.get_text()]
    points = dict(zip([*vectors][:8], axes.collections[0].get_offsets().tolist(), strict=True))
    drawn = sorted([*text.xyann, *text.xy] for text in arrows)
    np.testing.assert_allclose(drawn, sorted([*points[f"{one}1"], *points[f"{one}2"]] for one in "abcd"))
    assert (picture.words, picture.labels) == (8, 8)
    colours = axes.collections[0].get_facecolors()
    assert [tuple(colour) for colour in colours] == 4 * [to_rgba(COLOURS[0])] + 4 * [to_rgba(COLOURS[3])]


@pytest.mark.parametrize("mirror", [(1, 1), (-1, 1), (1, -1), (-1, -1)], ids=str)
def test_labels_leave_the_arrows_free(
    mirror: tuple[int, int], vectors: w2v.KeyedVectors, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every orientation, because rounding alone decides between some places of a label."""
    monkeypatch.setattr("w2v._plotting.arrows.project", lambda rows: project(rows) * np.float32(mirror))
    picture = analogy_map(vectors, None, questions)
    picture.draw_without_rendering()
    axes = picture.axes[0]
    arrows = [text for text in axes.texts if not text.get_text()]
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    for arrow in arrows:
        line = MplPath(axes.transData.transform([arrow.xyann, arrow.xy]))
        assert not any(line.intersects_bbox(box, filled=False) for box in boxes)


def test_title_replaces_the_name_of_the_section(vectors: w2v.KeyedVectors, questions: Path) -> None:
    assert analogy_map(vectors, "$x$", questions).axes[0].get_title() == "$x$"
    assert analogy_map(vectors, "$x$", questions, title="mine").axes[0].get_title() == "mine"


def test_a_word_that_begins_and_ends_arrows_has_one_point(vectors: w2v.KeyedVectors, tmp_path: Path) -> None:
    (tmp_path / "questions").write_text(": chain\na1 b1 b1 c1\n", "utf-8")
    axes = analogy_map(vectors, None, tmp_path / "questions").axes[0]
    assert [text.get_text() for text in axes.texts if text.get_text()] == ["a1", "b1", "c1"]
    starts = [to_rgba(COLOURS[0])] * 2
    assert [tuple(colour) for colour in axes.collections[0].get_facecolors()] == [*starts, to_rgba(COLOURS[3])]


def test_both_ends_of_every_arrow_have_labels_even_without_space(tmp_path: Path) -> None:
    pairs = [(f"first{number}", f"second{number}") for number in range(60)]
    vectors = w2v.KeyedVectors([word for pair in pairs for word in pair], 60 * [[1.0, 0.0], [0.0, 1.0]])
    (tmp_path / "questions").write_text("".join(f"{a} {b} {a} {b}\n" for a, b in pairs))
    picture = analogy_map(vectors, None, tmp_path / "questions", topn=60)
    assert (picture.words, picture.labels) == (120, 120)
    assert picture.axes[0].get_xticks().size == picture.axes[0].get_yticks().size == 0


def test_section_and_topn_select_pairs(vectors: w2v.KeyedVectors, questions: Path) -> None:
    assert analogy_map(vectors, "$x$", questions).words == 4
    assert analogy_map(vectors, "pairs", questions, topn=1).words == 2
    for section, file, message in (
        ("unknown", questions, "no pair of unknown is in the vocabulary"),
        ("z", questions, r"'z' is not a section of the questions: choose from unknown, pairs, \$x\$"),
        (None, None, "no pair of the questions is in the vocabulary"),
    ):
        with pytest.raises(w2v.W2VError, match=message):
            analogy_map(vectors, section, file)
    with pytest.raises(w2v.SettingsError, match=r"^topn 0: it must be a whole number, 1 or more$"):
        analogy_map(vectors, topn=0)


def test_command_draws_reproducible_pictures(model: Path, tmp_path: Path) -> None:
    found = run_json("plot", model, "--analogies", "-o", tmp_path / "a.svg")
    assert found["words"] == 40
    assert found["labels"] > 35
    again = run_json("plot", model, "--analogies", "country-capital", "-o", tmp_path / "b.svg")
    assert (again["words"], again["labels"]) == (found["words"], found["labels"])
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert run_json("plot", model, "--analogies", "man-woman", "--topn", 5, "-o", tmp_path / "c.png")["words"] == 10


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
