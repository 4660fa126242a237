"""Alignment of vectors by orthogonal Procrustes: planted rotations are found, and the fit is reported as defined."""

from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._formats.header import ModelHeader
from w2v._vectors.align import Translation, align, read_anchors, read_pairs


def random_vectors(words: int, size: int = 10, seed: int = 1, **more: object) -> w2v.KeyedVectors:
    vectors = np.random.default_rng(seed).normal(size=(words, size)) + 0.3
    return w2v.KeyedVectors([f"w{row}" for row in range(words)], vectors, **more)  # type: ignore[arg-type]


def rotated(vectors: w2v.KeyedVectors, seed: int = 2) -> w2v.KeyedVectors:
    """Return the vectors, rotated and three times as long, in another order."""
    random, (rows, size) = np.random.default_rng(seed), vectors.vectors.shape
    order = random.permutation(rows)
    rotation = np.linalg.qr(random.normal(size=(size, size)))[0]
    return w2v.KeyedVectors([vectors.index_to_key[row] for row in order], 3 * vectors.vectors[order] @ rotation)


def unit(matrix: np.ndarray) -> np.ndarray:
    result: np.ndarray = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return result


@pytest.mark.parametrize("to", ["first", "previous"])
@pytest.mark.parametrize("centre", [False, True])
def test_a_rotated_copy_is_recovered(to: str, centre: bool) -> None:
    one = random_vectors(300)
    found = align([one, rotated(one), rotated(one, 3)], to=to, centre=centre)  # type: ignore[arg-type]
    for other in found.vectors[1:]:
        np.testing.assert_allclose(other[one.index_to_key], found.vectors[0].vectors, atol=1e-5)
    assert [(fit.anchors, fit.held_out) for fit in found.fits] == [(300, 30), (300, 30)]
    for fit in found.fits:
        assert (fit.cosine, fit.held_out_cosine) == pytest.approx((1, 1), abs=1e-5)
    if not centre:
        np.testing.assert_allclose(found.vectors[0].vectors, unit(one.vectors), atol=1e-6)


def test_words_of_one_model_only_are_rotated_too() -> None:
    one = random_vectors(100)
    copy = rotated(one)
    other = w2v.KeyedVectors([f"new {word}" if word == "w7" else word for word in copy.index_to_key], copy.vectors)
    found = align([one, other])
    assert found.fits[0].anchors == 99
    np.testing.assert_allclose(found.vectors[1]["new w7"], found.vectors[0]["w7"], atol=1e-5)


def test_centred_vectors_have_a_mean_of_almost_zero() -> None:
    one = random_vectors(300)
    first = align([one, rotated(one)], centre=True).vectors[0].vectors
    expected = unit(unit(one.vectors) - unit(one.vectors).mean(axis=0))
    np.testing.assert_allclose(first, expected, atol=1e-6)


def test_only_the_anchors_determine_the_rotation() -> None:
    one = random_vectors(300)
    copy = rotated(one)
    matrix = copy.vectors.copy()
    changed = [copy.key_to_index[f"w{row}"] for row in range(100, 300)]
    matrix[changed] = np.random.default_rng(4).normal(size=(200, 10))
    other = w2v.KeyedVectors(copy.index_to_key, matrix)
    anchors = [f"w{row}" for row in range(100)]
    found = align([one, other], anchors=[*anchors, *anchors, "unknown"], centre=False)
    assert found.fits[0].anchors == 100
    np.testing.assert_allclose(found.vectors[1][anchors], found.vectors[0][anchors], atol=1e-5)
    all_words = align([one, other], centre=False)
    assert np.abs(all_words.vectors[1][anchors] - all_words.vectors[0][anchors]).max() > 0.01


def test_the_fit_on_held_out_anchors_ignores_what_the_rotation_overfits() -> None:
    """Of two unrelated models, any rotation brings the anchors nearer, but not the held-out ones."""
    one, other = random_vectors(60, 30), random_vectors(60, 30, seed=2)
    centred = [w2v.KeyedVectors(each.index_to_key, each.vectors - 0.3) for each in (one, other)]
    fit = align(centred).fits[0]
    assert fit.held_out_cosine is not None
    assert fit.cosine > 0.5
    assert abs(fit.held_out_cosine) < 0.3
    assert align(centred, seed=2).fits[0] != fit == align(centred, seed=1).fits[0]


def test_fewer_anchors_than_dimensions_give_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    one = random_vectors(100)
    two = rotated(one)
    align([one, two], anchors=one.index_to_key[:10])
    assert caplog.messages == []
    align([one, two], anchors=one.index_to_key[:9])
    assert "9 anchors cannot determine a rotation of 10 dimensions: " in caplog.messages[0]


def test_a_chain_reaches_the_first_model_through_the_one_before() -> None:
    one = random_vectors(100)
    two = rotated(one)
    renamed = w2v.KeyedVectors([f"v{row}" for row in range(100)], rotated(two).vectors)
    both = w2v.KeyedVectors([*two.index_to_key, *renamed.index_to_key], np.vstack([two.vectors, renamed.vectors]))
    with pytest.raises(w2v.W2VError, match=r"model 3 and model 1 share none of the words"):
        align([one, both, rotated(renamed)])
    found = align([one, both, rotated(renamed)], to="previous", centre=False)
    assert found.fits[1].cosine == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(found.vectors[2]["v7"], found.vectors[1]["v7"], atol=1e-5)


def two_languages(noise: float) -> tuple[w2v.KeyedVectors, w2v.KeyedVectors, list[tuple[str, str]]]:
    """Return vectors of w0 to w299 and, rotated and with noise, of v0 to v299, and their dictionary."""
    one = random_vectors(300)
    matrix = one.vectors + noise * np.random.default_rng(5).normal(size=one.vectors.shape)
    other = rotated(w2v.KeyedVectors([f"v{row}" for row in range(300)], matrix))
    return one, other, [(f"w{row}", f"v{row}") for row in range(300)]


def test_a_dictionary_aligns_two_languages() -> None:
    one, other, dictionary = two_languages(noise=0)
    found = align([one, other], dictionary=dictionary[:100])
    assert found.vectors[1].index_to_key == other.index_to_key
    for row in range(300):
        np.testing.assert_allclose(found.vectors[1][f"v{row}"], found.vectors[0][f"w{row}"], atol=1e-5)
    assert found.fits[0].translation == Translation(10, 300, [1, 1], [1, 1])


def test_a_dictionary_in_the_other_order_is_refused() -> None:
    one, other, dictionary = two_languages(noise=0)
    swapped = [*((word, other) for other, word in dictionary[:100]), ("w101", "v101")]
    with pytest.raises(w2v.W2VError, match=r"101 pairs in .*, 1 with .*, 100 in the other order: swap the models"):
        align([one, other], dictionary=swapped)
    assert align([one, other], dictionary=[*dictionary, ("w1", "unknown")]).fits[0].pairs == 301


@pytest.mark.parametrize("restrict_vocab", [300, 120])
def test_precision_of_translations_matches_the_definition(restrict_vocab: int) -> None:
    one, other, dictionary = two_languages(noise=0.8)
    dictionary = [*dictionary, ("w1", "v2"), ("w1", "v2"), ("w2", "v9"), ("w3", "unknown"), ("unknown", "v4")]
    found = align([one, other], dictionary=dictionary, centre=False, restrict_vocab=restrict_vocab).fits[0]
    assert (found.anchors, found.translation is None) == (302, False)
    words = np.random.default_rng(1).permutation(300)[:30].tolist()
    translations = {row: {v for w, v in dictionary if w == f"w{row}"} for row in words}
    first, second = unit(one.vectors), unit(other.vectors)
    train = [(w, v) for w, v in dict.fromkeys(dictionary) if w in one and v in other and int(w[1:]) not in words]
    rows = [one.key_to_index[w] for w, _ in train], [other.key_to_index[v] for _, v in train]
    left, _, right = np.linalg.svd(second[rows[1]].T @ first[rows[0]])
    cosines = first @ (second @ left @ right)[:restrict_vocab].T
    density = np.sort(cosines[:restrict_vocab], axis=0)[-10:].mean(axis=0)
    known = [row for row in words if translations[row] & {*other.index_to_key[:restrict_vocab]}]
    for scores, shares in ((cosines, found.translation.nearest), (2 * cosines - density, found.translation.csls)):
        best = {row: [other.index_to_key[at] for at in np.argsort(-scores[row])] for row in known}
        hits = [[bool({*best[row][:number]} & translations[row]) for row in known] for number in (1, 5)]
        assert shares == pytest.approx(np.mean(hits, axis=1))
        assert 0 < shares[0] < shares[1] < 1
    assert (found.translation.words, found.translation.candidates) == (len(known), restrict_vocab)


def test_headers_name_the_common_coordinate_system() -> None:
    one = random_vectors(50, header=ModelHeader(settings={"loss": "ns"}, metrics={"phrases": {"delimiter": "_"}}))
    first = align([one, rotated(one)])
    names = {each.header.coordinates for each in first.vectors}
    assert len(names) == 1
    assert names != {""}
    assert names == {each.header.coordinates for each in align([one, rotated(one, 3)]).vectors}
    assert names.isdisjoint(each.header.coordinates for each in align([one, rotated(one)], centre=False).vectors)
    assert first.vectors[0].header.phrase_delimiter == "_"
    assert first.vectors[0].header.settings is None


def test_counts_and_words_are_kept(tmp_path: Path) -> None:
    one = w2v.KeyedVectors(["a", "b", "c"], np.eye(3), [5, 4, 3])
    other = w2v.KeyedVectors(["c", "b", "a"], np.eye(3))
    found = align([one, other]).vectors
    assert found[0].counts is not None
    assert found[0].counts.tolist() == [5, 4, 3]
    assert (found[1].index_to_key, found[1].counts) == (["c", "b", "a"], None)
    found[0].save(tmp_path / "a.safetensors")
    assert w2v.load(tmp_path / "a.safetensors").header == found[0].header


def test_zero_vectors_stay_zero() -> None:
    one = w2v.KeyedVectors(["a", "b", "c"], [[1, 0], [0, 0], [0, 2]])
    for centre in (False, True):
        found = align([one, one], centre=centre)
        assert not found.vectors[1]["b"].any()
        assert found.fits[0].held_out_cosine is None


NINE = random_vectors(9)


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ([NINE], {}, "1 model to align: give at least two"),
        ([NINE] * 2, {"to": "last"}, 'to is \'last\': it must be "first" or "previous"'),
        ([NINE] * 2, {"seed": -1}, "seed -1: it must be a whole number, 0 or more"),
        ([NINE] * 2, {"anchors": ["a", "b"]}, "model 1 share none of the anchors, such as 'a': check"),
        ([NINE] * 2, {"anchors": ["w1"], "dictionary": []}, "anchors have no effect with a dictionary"),
        ([NINE] * 2, {"anchors": []}, "anchors is empty: leave it out"),
        ([NINE] * 2, {"dictionary": iter(())}, "dictionary is empty: leave it out"),
        ([NINE] * 3, {"dictionary": [("w1", "w1")]}, "a dictionary has words of two models, not of 3: align"),
        ([NINE] * 2, {"dictionary": [("w1", "v1")]}, "1 pair in the dictionary, none with the first word"),
        ([NINE] * 2, {"dictionary": {"w1": "w2"}}, "dictionary has 'w1': give pairs, such as"),
        ([NINE] * 2, {"dictionary": [("w1", "w2", "w3")]}, "dictionary has .'w1', 'w2', 'w3'.: give pairs"),
        ([NINE] * 2, {"anchors": "w1"}, "a list of words is needed, not the string 'w1'"),
        ([NINE] * 2, {"restrict_vocab": 0}, "restrict_vocab 0: it must be a whole number, 1 or more"),
        ([NINE, random_vectors(9, 5)], {}, "vectors of 10, 5 values: models to align need vectors of the same size"),
        ([NINE, w2v.KeyedVectors(["w1"], [[np.nan] * 10])], {}, "vectors to align contain NaN or infinite values"),
        ([NINE, "model.bin"], {}, "'model.bin' is not a model: give one, such as"),
    ],
)
def test_wrong_input_is_refused_in_one_line(models: list[object], options: dict[str, object], message: str) -> None:
    with pytest.raises(w2v.W2VError, match=message):
        align(models, **options)  # type: ignore[arg-type]


def save_two(folder: Path) -> tuple[Path, Path]:
    one = random_vectors(300)
    one.save(folder / "one.txt.gz")
    rotated(one).save(folder / "two.safetensors")
    return folder / "one.txt.gz", folder / "two.safetensors"


def test_command_writes_aligned_models_and_reports_the_fit(tmp_path: Path) -> None:
    one, two = save_two(tmp_path)
    shown = run("align", one, two, "-o", tmp_path / "out").stdout
    assert f"\n{two} to {one}      300        1.000        30              1.000\n" in shown
    found = run_json("align", one, two, two, "-o", tmp_path / "out", "--force", "--to", "previous")
    assert [Path(path).name for path in found["outputs"]] == ["one.safetensors", "two.safetensors", "two-3.safetensors"]
    assert [fit["anchors"] for fit in found["fits"]] == [300, 300]
    found = run_json("align", one, two, "-o", tmp_path / "out", "--force", "--seed", 2)
    outputs = [tmp_path / "out" / "one.safetensors", tmp_path / "out" / "two.safetensors"]
    assert found["outputs"] == list(map(str, outputs))
    first, second = map(w2v.load, outputs)
    assert first.header.coordinates == second.header.coordinates == found["coordinates"]
    np.testing.assert_allclose(second[first.index_to_key], first.vectors, atol=1e-5)
    error = run("align", one, two, "-o", tmp_path / "out", code=1).stderr
    assert "one.safetensors exists: name another file or folder with -o, or add --force to replace it" in error
    assert f"{one} is a file: name a folder with -o" in run("align", one, two, "-o", one, code=2).stderr


def test_command_reads_anchors_and_dictionaries(tmp_path: Path) -> None:
    one, two = save_two(tmp_path)
    anchors, dictionary = tmp_path / "anchors.txt", tmp_path / "dictionary.txt"
    anchors.write_text("w1\nw2\tand a note\n\nw3\n")
    dictionary.write_text("w1 w1\nw2\tw2\n\n" + "".join(f"w{row} w{row}\n" for row in range(3, 100)))
    assert read_anchors(anchors) == ["w1", "w2", "w3"]
    assert read_pairs(dictionary)[:2] == [("w1", "w1"), ("w2", "w2")]
    found = run_json("align", one, two, "-o", tmp_path / "a", "--words", anchors)["fits"][0]
    assert (found["anchors"], found["held_out"], found["translation"]) == (3, 0, None)
    options = ("--dictionary", dictionary, "--restrict-vocab", 250)
    found = run_json("align", one, two, "-o", tmp_path / "b", *options)["fits"][0]
    assert (found["anchors"], found["held_out"], found["translation"]["candidates"]) == (99, 9, 250)
    shown = run("align", one, two, "-o", tmp_path / "c", *options).stdout
    assert "\nCSLS     100.0% (67.6% to 100.0%)  100.0% (67.6% to 100.0%)\ntranslations of" in shown
    assert "99 of the 99 pairs have both words in the models\n" in shown
    shown = run("align", one, two, "-o", tmp_path / "e", "--dictionary", dictionary, "--restrict-vocab", 1).stdout
    assert "no held-out word has a translation among the most frequent words: raise --restrict-vocab" in shown
    few = tmp_path / "few.txt"
    few.write_text("w1 w1\nw2 w2\n")
    shown = run("align", one, two, "-o", tmp_path / "f", "--dictionary", few).stdout
    assert "too few pairs to hold some out and translate them: give at least 10" in shown
    for option in ("--words", anchors), ("--to", "first"):
        error = run("align", one, two, "-o", tmp_path / "d", "--dictionary", dictionary, *option, code=2).stderr
        assert f"{option[0]} has no effect with --dictionary" in error
    error = run("align", one, two, "-o", tmp_path / "d", "--restrict-vocab", 7, code=2).stderr
    assert "--restrict-vocab has no effect with no --dictionary" in error


def test_anchors_and_dictionaries_name_numbers_as_text(tmp_path: Path) -> None:
    one = random_vectors(50)
    numbers = w2v.KeyedVectors(range(50), one.vectors)
    numbers.save(tmp_path / "one.safetensors")
    w2v.KeyedVectors(range(100, 150), one.vectors).save(tmp_path / "two.safetensors")
    assert align([numbers, numbers], anchors=["3", "7", "word"]).fits[0].anchors == 2
    assert align([numbers, numbers], anchors=[3, "3"]).fits[0].anchors == 1  # type: ignore[list-item]
    (tmp_path / "dictionary.txt").write_text("".join(f"{row} {row + 100}\n" for row in range(60)))
    models = (tmp_path / "one.safetensors", tmp_path / "two.safetensors")
    found = run_json("align", *models, "-o", tmp_path / "out", "--dictionary", tmp_path / "dictionary.txt")
    assert found["fits"][0]["anchors"] == 50
    assert found["fits"][0]["cosine"] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--dictionary", b"a b\na b c\n", "file, line 2: 'a b c' is not a pair of two words"),
        ("--dictionary", b"a\tb\ta\tb", "file, line 1: "),
        ("--dictionary", b"\n", "file: no pairs: write a word and its translation on each line"),
        ("--dictionary", b"a \xff\n", r"file, line 1: b'a \xff\n' is not UTF-8"),
        ("--words", b"\n \n", "file: no words: write one on each line"),
        ("--words", b"\xff\n", r"file, line 1: b'\xff\n' is not UTF-8"),
    ],
)
def test_damaged_word_lists_are_refused_in_one_line(tmp_path: Path, option: str, text: bytes, message: str) -> None:
    one, two = save_two(tmp_path)
    (tmp_path / "file").write_bytes(text)
    assert message in run("align", one, two, "-o", tmp_path / "out", option, tmp_path / "file", code=1).stderr
    assert not (tmp_path / "out").exists()
