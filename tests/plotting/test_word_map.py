"""Word maps: labels that do not overlap, colours of groups, models of any size."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._plotting.figure import Picture, colour_of
from w2v._plotting.word_map import read_sections, word_map
from w2v._plotting.words import cluster_words, k_means, nearest_cluster


def random_vectors(words: int, size: int = 20, counts: bool = True) -> w2v.KeyedVectors:
    random = np.random.default_rng(7)
    names = ["".join(random.choice([*"abcdefghij"], 3 + row % 8)) + str(row) for row in range(words)]
    zipf_counts = 10_000 // np.arange(1, words + 1) + 1
    return w2v.KeyedVectors(names, random.normal(size=(words, size)), zipf_counts if counts else None)


@pytest.fixture
def without_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the labels, which take most of the time."""
    monkeypatch.setattr("w2v._plotting.word_map.place_labels", lambda *_, **__: None)


def legend(picture: Picture) -> list[str]:
    return [text.get_text() for text in picture.legends[0].get_texts()]


def count_overlaps(picture: Picture) -> int:
    """Return the number of pairs of labels that overlap in the drawn picture."""
    picture.draw_without_rendering()
    boxes = [text.get_window_extent() for text in picture.axes[0].texts if text.get_text()]
    return sum(first.overlaps(second) for first, second in itertools.combinations(boxes, 2))


@pytest.mark.slow
def test_labels_do_not_overlap() -> None:
    picture = word_map(random_vectors(260), topn=260)
    texts = picture.axes[0].texts
    assert (picture.words, picture.labels) == (260, len(texts))
    assert len(texts) >= 200
    assert count_overlaps(picture) == 0
    texts[1].set_position(texts[0].get_position())
    assert count_overlaps(picture) > 0


def test_labels_are_close_to_their_points() -> None:
    vectors = random_vectors(30)
    picture = word_map(vectors, title="thirty")
    picture.draw_without_rendering()
    axes = picture.axes[0]
    assert axes.get_title() == "thirty"
    points = axes.transData.transform(axes.collections[0].get_offsets())
    for text in axes.texts:
        box = text.get_window_extent()
        point = points[vectors.key_to_index[text.get_text()]]
        nearest = np.clip(point, [box.x0, box.y0], [box.x1, box.y1])
        assert 0 < np.linalg.norm(nearest - point) < 0.12 * axes.bbox.width


@pytest.mark.parametrize(
    ("words", "size", "equal", "groups"),
    [
        *((1, 3, False, groups) for groups in ("clusters", "frequency", "sections")),
        (2, 3, False, "clusters"),
        (3, 1, False, "frequency"),
        (9, 1, False, "clusters"),
        *((9, 3, True, groups) for groups in ("clusters", "frequency")),
    ],
)
def test_models_of_any_size_have_finite_points(words: int, size: int, equal: bool, groups: str, tmp_path: Path) -> None:
    vectors = random_vectors(words, size)
    if equal:
        vectors.vectors, vectors.counts = np.full((words, size), 0.1, np.float32), np.full(words, 5)
    picture = word_map(vectors, groups=groups)  # type: ignore[arg-type]
    assert np.isfinite(picture.axes[0].collections[0].get_offsets()).all()
    picture.save(tmp_path / "map.svg")


def test_frequent_words_have_larger_points_and_sections_have_colours() -> None:
    for counts in (True, False):
        vectors = random_vectors(12, counts=counts)
        names = vectors.index_to_key
        picture = word_map(vectors, {"_odd": names[11::-2], "$even$": names[::2]})
        markers = picture.axes[0].collections[0]
        assert (np.diff(markers.get_sizes()) < 0).all()
        assert [tuple(row[:3]) for row in markers.get_facecolors()] == 6 * [colour_of(1), colour_of(0)]
        assert legend(picture) == ["_odd", "$even$"]


@pytest.mark.parametrize(("words", "skip", "first"), [(400, None, 100), (250, None, 50), (30, None, 0), (400, 7, 7)])
def test_the_most_frequent_words_are_skipped(
    words: int, skip: int | None, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr("w2v._plotting.word_map.place_labels", lambda _, points, words, *__, **___: drawn.extend(words))
    vectors = random_vectors(words)
    word_map(vectors, skip=skip)
    assert sorted(drawn) == sorted(vectors.index_to_key[first : first + 200])


def test_few_words_have_a_small_picture_of_one_colour_with_equal_scales() -> None:
    vectors = random_vectors(200)
    few, many = word_map(vectors, topn=6), word_map(vectors)
    assert few.get_figwidth() < many.get_figwidth() / 1.5
    assert len(np.unique(few.axes[0].collections[0].get_facecolors(), axis=0)) == 1
    assert (len(few.legends), len(many.legends)) == (0, 1)
    for picture in (few, many):
        axes = picture.axes[0]
        right, up = np.diff(axes.transData.transform([[0, 0], [1, 1]]), axis=0)[0]
        assert right == pytest.approx(up)
        assert axes.get_xticks().size == axes.get_yticks().size == 0


@pytest.mark.usefixtures("without_labels")
def test_number_of_clusters_overrides_sections() -> None:
    vectors = random_vectors(40)
    sections = {f"section {word}": [word] for word in vectors}
    assert len(legend(word_map(vectors, sections, clusters=3))) == 3
    assert len(legend(word_map(vectors, sections, groups="clusters", clusters=3))) == 3
    assert len(legend(word_map(vectors, sections, groups="clusters"))) == 8
    assert legend(word_map(vectors, sections))[-1] == "and 10 more"


def test_k_means_finds_clusters() -> None:
    random = np.random.default_rng(3)
    truth = random.permutation(np.repeat(np.arange(4), 25))
    rows = (10 * np.eye(4, 6)[truth] + random.normal(size=(100, 6))).astype(np.float32)
    found = k_means(rows, 4, seed=1)
    assert len(set(zip(truth.tolist(), found.tolist(), strict=True))) == 4
    assert list(dict.fromkeys(found.tolist())) == [0, 1, 2, 3]
    assert (k_means(rows[:1].repeat(5, axis=0), 4, seed=1) == 0).all()
    assert k_means(rows[:3], 8, seed=1).tolist() == [0, 1, 2]
    one, again, other = (k_means(rows[:, 4:], 8, seed).tolist() for seed in (1, 1, 2))
    assert one == again != other


def test_words_are_read_from_a_file_by_section(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("one two\n: animals\ncat\ndog cat\n\n: none\n: animals\ncow\n", "utf-8")
    assert read_sections(path) == {"": ["one", "two"], "animals": ["cat", "dog", "cat", "cow"]}
    path.write_text(": a\none\n:\n : two\n:b\nthree\n", "utf-8")  # a colon without a name, or after a space, is a word
    assert read_sections(path) == {"a": ["one", ":", ":", "two"], "b": ["three"]}
    path.write_text(": only\n: names\n", "utf-8")
    with pytest.raises(w2v.W2VError, match="no words: separate them by spaces"):
        read_sections(path)
    path.write_bytes(b"ok\n\xff\n")
    with pytest.raises(w2v.W2VError, match=r"line 2: b'\\xff\\n' is not UTF-8"):
        read_sections(path)


def test_a_model_and_its_vectors_have_the_same_map(model: Path, tmp_path: Path) -> None:
    trained = w2v.Model.load(model)
    for number, source in enumerate((trained, trained.wv)):
        word_map(source, topn=9).save(tmp_path / f"{number}.svg")
    assert (tmp_path / "0.svg").read_bytes() == (tmp_path / "1.svg").read_bytes()


def test_invalid_words_and_options_are_refused() -> None:
    vectors = random_vectors(5)
    with pytest.raises(w2v.UnknownWordError, match="'nothing'"):
        word_map(vectors, "nothing")
    with pytest.raises(w2v.W2VError, match="a list of words is needed, not the string 'w1 w2'"):
        word_map(vectors, {"some": "w1 w2"})
    with pytest.raises(w2v.W2VError, match="no words to draw"):
        word_map(vectors, [])
    with pytest.raises(w2v.W2VError, match="no words to draw"):
        word_map(vectors, skip=5)
    for wrong in (
        *({"groups": "none"}, {"topn": 0}, {"skip": -1}, {"seed": -1}, {"clusters": 0}),
        *({"groups": groups, "clusters": 3} for groups in ("sections", "frequency")),
    ):
        with pytest.raises(w2v.SettingsError, match=next(iter(wrong))):
            word_map(vectors, **wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_command_draws_reproducible_maps(model: Path, tmp_path: Path) -> None:
    picture, words = tmp_path / "map.svg", tmp_path / "words.txt"
    arguments = ["plot", model, "--topn", 40, "--seed", 3, "-o"]
    found = run_json(*arguments, picture)
    assert found == {"output": str(picture), "words": 40, "labels": 40}
    assert "40" in run(*arguments, tmp_path / "again.svg").stdout
    assert picture.read_bytes() == (tmp_path / "again.svg").read_bytes()
    run(*arguments, picture, "--force", "--groups", "frequency", "--quiet")
    assert picture.read_bytes() != (tmp_path / "again.svg").read_bytes()
    assert run_json("plot", model, "france", "paris", "-o", tmp_path / "few.pdf")["words"] == 2
    words.write_text(": places\nfrance paris\n: others\nking nosuchword\n", "utf-8")
    result = run("plot", model, "--words", words, "-o", tmp_path / "groups.png", "--json")
    assert json.loads(result.stdout)["words"] == 3
    assert result.stderr == f"w2v: {words}: 1 word not in the vocabulary: nosuchword\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["frence", "-o", "x.png"], 1, "did you mean"),
        (["king", "--skip", "5", "-o", "x.png"], 2, "--skip has no effect with WORDS"),
        (["king", "--topn", "5", "-o", "x.png"], 2, "--topn has no effect with WORDS"),
        (["--groups", "sections", "--clusters", "3", "-o", "x.png"], 2, "--clusters has no effect with --groups"),
        (["--questions", "q.txt", "-o", "x.png"], 2, "--questions has no effect without --analogies"),
        (["-o", "x.png", "--method", "tsne", "--analogies"], 2, "--method has no effect with --analogies"),
        (["-o", "x.png", "--analogies", "nothing"], 1, "'nothing' is not a section of the questions: choose from"),
    ],
)
def test_error_for_contradictory_options_is_one_line(
    arguments: list[str], code: int, message: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in run("plot", model, *arguments, code=code).stderr
    assert list(tmp_path.iterdir()) == []


def test_a_word_of_two_sections_has_the_colour_of_the_first() -> None:
    vectors = random_vectors(6)
    first, *others = vectors.index_to_key
    markers = word_map(vectors, {"one": [first], "two": [first, *others]}).axes[0].collections[0]
    assert [tuple(row[:3]) for row in markers.get_facecolors()] == [colour_of(0), *5 * [colour_of(1)]]


def test_labels_of_frequent_words_come_first_and_the_others_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """All words have the same point, so that only a few labels find space."""
    vectors = w2v.KeyedVectors([f"word{row}" for row in range(60)], np.ones((60, 3)))
    picture = word_map(vectors, vectors.index_to_key[::-1])
    labels = [text.get_text() for text in picture.axes[0].texts if text.get_text()]
    assert picture.words == 60
    assert 1 < picture.labels == len(labels) < 60
    assert labels[0] == "word0"
    assert {*labels} == {*vectors.first_words(len(labels))}
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("without_labels")
def test_areas_of_points_grow_with_the_logarithm_of_the_counts() -> None:
    vectors = w2v.KeyedVectors(["a", "b", "c", "d", "e"], np.eye(5), [1000, 100, 10, 1, 0])
    sizes = word_map(vectors).axes[0].collections[0].get_sizes()
    np.testing.assert_allclose(np.diff(sizes)[:3], np.diff(sizes)[0], rtol=1e-5)
    assert sizes[3] == sizes[4]  # a count of 0 has no logarithm, and counts as 1
    assert sizes[0] > 5 * sizes[3] > 0
    vectors.counts = np.full(5, 7)
    assert np.ptp(word_map(vectors).axes[0].collections[0].get_sizes()) == 0


def test_only_the_directions_of_vectors_count() -> None:
    vectors = random_vectors(8)
    first = word_map(vectors, clusters=2).axes[0].collections[0]
    vectors.vectors = vectors.vectors * np.arange(1, 9, dtype=np.float32)[:, None]
    scaled = word_map(vectors, clusters=2).axes[0].collections[0]
    np.testing.assert_allclose(scaled.get_offsets(), first.get_offsets(), atol=1e-5)
    np.testing.assert_array_equal(scaled.get_facecolors(), first.get_facecolors())


@pytest.mark.parametrize(("counts", "label"), [(True, "occurrences"), (False, "1 / rank by frequency")])
def test_colours_by_frequency_have_a_scale(counts: bool, label: str) -> None:
    vectors = random_vectors(4, counts=counts)
    picture = word_map(vectors, groups="frequency")
    axes, scale = picture.axes
    values = vectors.counts if counts else [1, 1 / 2, 1 / 3, 1 / 4]
    np.testing.assert_allclose(axes.collections[0].get_array(), values)
    assert scale.get_ylabel() == label
    assert scale.get_yscale() == "log"
    assert not picture.legends
    lightness = axes.collections[0].to_rgba(axes.collections[0].get_array())[:, :3].sum(axis=1)
    assert (np.diff(lightness) > 0).all()  # frequent words are dark


@pytest.mark.usefixtures("without_labels")
def test_options_reach_the_projection_and_the_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def project(matrix: np.ndarray, *arguments: object) -> np.ndarray:
        calls.append(arguments)
        return matrix[:, :2]

    monkeypatch.setattr("w2v._plotting.word_map.project", project)
    vectors, report = random_vectors(40), [].append
    titles, colours = [], []
    for method, seed in (("pca", 1), ("tsne", 2), ("umap", 2)):
        axes = word_map(vectors, method=method, seed=seed, progress=report).axes[0]  # type: ignore[arg-type]
        titles.append(axes.get_title())
        colours.append(axes.collections[0].get_facecolors())
    assert calls == [("pca", 1, report), ("tsne", 2, report), ("umap", 2, report)]
    assert titles == ["two principal components", "t-SNE", "UMAP"]
    assert (colours[0] != colours[1]).any()
    np.testing.assert_array_equal(colours[1], colours[2])
    word_map(vectors)
    assert calls[-1] == ("pca", 1, None)


@pytest.mark.usefixtures("without_labels")
@pytest.mark.parametrize(("words", "clusters"), [(9, 0), (10, 2), (39, 7), (40, 8), (60, 8)])
def test_there_are_at_most_eight_clusters_of_five_words_each(words: int, clusters: int) -> None:
    picture = word_map(w2v.KeyedVectors([f"w{row}" for row in range(words)], np.eye(words)))
    assert len(legend(picture) if picture.legends else []) == clusters


@pytest.mark.usefixtures("without_labels")
def test_one_section_is_drawn_in_clusters_unless_sections_are_asked_for() -> None:
    vectors = random_vectors(10)
    sections = {"all": vectors.index_to_key}
    assert len(legend(word_map(vectors, sections))) == 2
    assert not word_map(vectors, sections, groups="sections").legends


def test_a_word_that_is_given_twice_or_alone_is_drawn_once() -> None:
    vectors = random_vectors(5)
    first, second, *_ = vectors
    assert word_map(vectors, [second, first, second]).words == 2
    assert word_map(vectors, first).words == 1


def test_clusters_are_named_after_the_three_words_nearest_to_their_centre() -> None:
    angles = np.radians([0, 40, 10, 20, 90, 95])  # the centre of the first four is near 17.5
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    numbers, names = cluster_words(list("abcdef"), rows, 2, seed=1)
    assert numbers.tolist() == [0, 0, 0, 0, 1, 1]
    assert names == ["d, c, a", "e, f"]


def test_other_words_belong_to_the_cluster_with_the_nearest_mean() -> None:
    members = np.array([[0, 0], [9, 0], [2, 0], [11, 0], [30, 0]], np.float32)
    rows = np.array([[5, 0], [6, 0], [19, 0], [21, 0]], np.float32)
    assert nearest_cluster(rows, members, np.array([0, 1, 0, 1, 2])).tolist() == [0, 1, 1, 2]


def test_keys_that_are_numbers_are_drawn() -> None:
    vectors = w2v.KeyedVectors([30, 7, 12], np.eye(3), [9, 8, 7])  # type: ignore[arg-type]
    assert word_map(vectors).words == 3
    assert word_map(vectors, ["7", "12"]).words == 2
    with pytest.raises(w2v.UnknownWordError, match="8"):
        word_map(vectors, ["7", "8"])
