"""Plots of analogies as arrows."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.path import Path as MplPath

import w2v
from tests.helpers import run_json
from w2v.plotting.analogies import analogy_map
from w2v.plotting.figure import COLOURS
from w2v.plotting.projection import project
from w2v.plotting.word_map import word_map


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


def test_only_the_directions_of_vectors_count(vectors: w2v.KeyedVectors, questions: Path) -> None:
    points = analogy_map(vectors, None, questions).axes[0].collections[0].get_offsets()
    vectors.vectors = vectors.vectors * np.arange(1, 10, dtype=np.float32)[:, None]
    scaled = analogy_map(vectors, None, questions).axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(scaled, points, atol=1e-5)


@pytest.mark.parametrize("mirror", [(1, 1), (-1, 1), (1, -1), (-1, -1)], ids=str)
def test_labels_leave_the_arrows_free(
    mirror: tuple[int, int], vectors: w2v.KeyedVectors, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every orientation, because rounding alone decides between some places of a label."""
    monkeypatch.setattr("w2v.plotting.analogies.project", lambda rows: project(rows) * np.float32(mirror))
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


def test_a_picture_with_arrows_is_larger_than_a_map_of_as_many_words(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("analogies", "word_map"):  # without labels, which take most of the time
        monkeypatch.setattr(f"w2v.plotting.{module}.place_labels", lambda *_, **__: None)
    vectors = w2v.load(model)
    arrows = analogy_map(vectors)
    assert len(arrows.axes[0].collections[0].get_offsets()) == 40  # 20 pairs
    assert arrows.get_figwidth() > 1.2 * word_map(vectors, topn=40).get_figwidth()


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
