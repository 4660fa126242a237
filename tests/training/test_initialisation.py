"""Initialisation of a run from a model that is continued, or from vectors."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import MODELS, assert_same, run, train_and_stop
from w2v._formats import bfloat16
from w2v._formats.header import ModelHeader
from w2v._text.normalise import TextOptions

SMALL: dict[str, Any] = {"vector_size": 16, "epochs": 1, "workers": 1}
NEW_TEXT = [["the", "king", "of", "a", "unheard", "kingdoms"], ["unheard", "queens", "rule", "in", "the", "land"]] * 20


@pytest.fixture(scope="module")
def base_model(sample: Path) -> w2v.Model:
    return w2v.train(sample, **SMALL)


def rows_of(model: w2v.Model, words: list[str]) -> list[int]:
    """Return the row of each word in a model."""
    rows = {word: row for row, word in enumerate(model.vocabulary.words)}
    return [rows[word] for word in words]


@pytest.mark.parametrize("options", MODELS, ids=str)
def test_vocab_old_keeps_rows_counts_and_tree(sample: Path, options: dict[str, Any]) -> None:
    model = w2v.train(sample, max_vocab=300, **SMALL | options)
    again = w2v.train(sample, continue_from=model, epochs=2)
    assert again.vocabulary.words == model.vocabulary.words
    np.testing.assert_array_equal(again.vocabulary.counts, model.vocabulary.counts)
    alpha = min(0.01, model.settings.start_alpha)
    assert again.settings.as_dict() == model.settings.as_dict() | {
        "epochs": 2, "alpha": alpha, "min_alpha": alpha * 1e-4
    }  # fmt: skip
    for name, tensor in model.views["words"].loss.tensors.items():
        np.testing.assert_array_equal(again.views["words"].loss.tensors[name], tensor)
    assert again.metrics["loss"][0] < model.metrics["loss"][0]  # the learnt matrices are still there
    nearly_unchanged = w2v.train(NEW_TEXT, continue_from=model, alpha=1e-6, sample=0)
    np.testing.assert_allclose(nearly_unchanged.views["words"].inputs, model.views["words"].inputs, atol=1e-3)
    np.testing.assert_allclose(nearly_unchanged.views["words"].outputs, model.views["words"].outputs, atol=1e-3)


def test_high_alpha_for_a_smaller_text_gets_a_warning(
    base_model: w2v.Model, sample: Path, caplog: pytest.LogCaptureFixture
) -> None:
    again = w2v.train(NEW_TEXT, continue_from=base_model, min_alpha=0.005)
    assert (again.settings.alpha, again.settings.min_alpha) == (0.01, 0.005)
    w2v.train(sample, continue_from=base_model, alpha=0.02, epochs=1)
    assert not any("it forgets" in line for line in caplog.messages)
    w2v.train(NEW_TEXT, continue_from=base_model, alpha=0.02)
    assert "words: with alpha 0.02 it forgets them; leave out alpha" in caplog.text
    assert w2v.train(NEW_TEXT, continue_from=again).settings.alpha == 0.01


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled", "softmax"])
def test_vocab_union_adds_words_and_counts(sample: Path, loss: str) -> None:
    model = w2v.train(sample, loss=loss, max_vocab=1000, **SMALL)
    nearly_unchanged = w2v.train(NEW_TEXT, continue_from=model, vocab="union", alpha=1e-6, max_vocab=None, sample=0)
    old, new = model.vocabulary, nearly_unchanged.vocabulary
    added = {word for line in NEW_TEXT for word in line} - set(old.words)
    assert added >= {"unheard", "kingdoms"}
    assert set(new.words) == set(old.words) | added
    counts = dict(zip(new.words, new.counts.tolist(), strict=True))
    assert counts["unheard"] == 40
    assert counts["the"] == old.counts[old.words.index("the")] + 40
    rows = rows_of(nearly_unchanged, old.words)
    np.testing.assert_allclose(nearly_unchanged.views["words"].inputs[rows], model.views["words"].inputs, atol=1e-3)
    np.testing.assert_allclose(nearly_unchanged.views["words"].outputs[rows], model.views["words"].outputs, atol=1e-3)
    rows = rows_of(nearly_unchanged, sorted(added))
    np.testing.assert_allclose(nearly_unchanged.views["words"].outputs[rows], 0, atol=1e-3)
    assert 0.01 < np.abs(nearly_unchanged.views["words"].inputs[rows]).max() <= 0.5 / 16 + 1e-3
    new_loss = w2v.train(NEW_TEXT, vocabulary=new, sample=0, loss=loss, **SMALL).views["words"].loss
    arrays = ["alias_table", "offsets"]
    for name in {"ns": ["alias_table"], "nce": arrays, "sampled": arrays, "softmax": []}[loss]:
        # These arrays depend on the counts of both texts.
        np.testing.assert_array_equal(nearly_unchanged.views["words"].loss.data[name], new_loss.data[name])


def test_vocab_union_learns_new_words(sample: Path) -> None:
    text = sample.read_text("utf-8")
    model = w2v.train((line.split() for line in text.replace("france", "the").splitlines()), alpha=0.1, vector_size=50)
    assert "france" not in model.wv
    united = w2v.train(sample, continue_from=model, vocab="union")
    near = [word for word, _ in united.wv.most_similar("france", topn=10)]
    expected = w2v.train(sample, alpha=0.1, vector_size=50, epochs=10)
    assert set(near) & {word for word, _ in expected.wv.most_similar("france", topn=10)}


def test_vocab_union_respects_max_vocab_and_min_count(base_model: w2v.Model) -> None:
    size = len(base_model.vocabulary)
    assert len(w2v.train(NEW_TEXT, continue_from=base_model, vocab="union", max_vocab=size + 1).vocabulary) == size + 1
    assert len(w2v.train(NEW_TEXT, continue_from=base_model, vocab="union", max_vocab=5, sample=0).vocabulary) == size
    assert len(w2v.train(NEW_TEXT, continue_from=base_model, vocab="union", min_count=100, sample=0).vocabulary) == size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vector_size": 20}, "vector_size 20: the continued model has 16"),
        ({"vocab": "new"}, "vocab 'new': choose from old, union"),
        ({"settings": w2v.Settings()}, "continue_from has its own settings"),
        ({"min_count": 1}, "min_count 1: vocab old keeps the model's words: leave it out, or choose union"),
        ({"max_vocab": 9}, "max_vocab 9: vocab old"),
        ({"size": 16}, "unknown setting 'size'"),
    ],
)
def test_fixed_settings_cannot_change(base_model: w2v.Model, options: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.SettingsError, match=message):
        w2v.train(NEW_TEXT, continue_from=base_model, **options)


def test_workers_are_not_taken_from_a_file(tmp_path: Path, base_model: w2v.Model) -> None:
    base_model.save(tmp_path / "base_model.safetensors")
    assert w2v.train(NEW_TEXT, continue_from=tmp_path / "base_model.safetensors").settings.workers is None
    # On one processor, one worker is also the default, which settings.workers leaves out.
    assert w2v.train(NEW_TEXT, continue_from=base_model).settings.threads == 1


def test_min_count_of_a_config_file_is_ignored_for_vocab_old(tmp_path: Path, base_model: w2v.Model) -> None:
    config, text, saved = tmp_path / "run.toml", tmp_path / "more.txt", tmp_path / "base_model.safetensors"
    config.write_text("min_count = 1\nepochs = 1\n")
    text.write_text("".join(" ".join(line) + "\n" for line in NEW_TEXT), "utf-8")
    base_model.save(saved)
    run("train", text, "--continue", saved, "--config", config, "-o", tmp_path / "more.bin")
    stderr = run("train", text, "--continue", saved, "--min-count", 1, "-o", tmp_path / "no.bin", code=2).stderr
    assert "min_count 1: vocab old keeps the model's words" in stderr


@pytest.mark.parametrize(
    ("option", "value", "needed"),
    [("vocab", "union", "continue"), ("checkpoint_every", "1h", "checkpoint"), ("freeze", "inputs", "init")],
)
def test_options_without_the_option_they_need_are_refused(
    tmp_path: Path, option: str, value: str | bool, needed: str
) -> None:
    with pytest.raises(w2v.SettingsError, match=f"{option} has no effect without {needed}"):
        w2v.train(NEW_TEXT, **{option: value})
    flag = f"--{option.replace('_', '-')}"
    given = [flag] if value is True else [flag, value]
    stderr = run("train", __file__, "-o", tmp_path / "m.bin", *given, code=2).stderr
    assert f"{flag} has no effect without --{needed}" in stderr


def test_command_continues_a_model(sample: Path, tmp_path: Path, base_model: w2v.Model) -> None:
    more, saved = tmp_path / "more.txt", tmp_path / "base_model.safetensors"
    more.write_text("".join(" ".join(line) + "\n" for line in NEW_TEXT), "utf-8")
    base_model.save(saved)
    options = ["--continue", saved, "--vocab", "union", "--iter", 2, "--alpha", 0.02, "--workers", 1]
    run("train", more, "-o", tmp_path / "more.safetensors", *options)
    expected = w2v.train(NEW_TEXT, continue_from=saved, vocab="union", epochs=2, alpha=0.02, workers=1)
    found = w2v.Model.load(tmp_path / "more.safetensors")
    assert_same(found, expected)
    assert found.settings.as_dict() == replace(expected.settings, workers=None).as_dict()
    assert found.settings.min_alpha == pytest.approx(0.02 / 10_000)
    output = ["-o", tmp_path / "no.bin"]
    stderr = run("train", more, *options, "--read-vocab", more, *output, code=2).stderr
    assert "has no effect with --continue" in stderr
    assert "vector_size 9: the continued model" in run("train", more, *options, "--size", 9, *output, code=2).stderr
    assert "is named twice" in run("train", more, *options, "-o", saved, "--force", code=2).stderr
    base_model.wv.save(tmp_path / "vectors.bin")
    stderr = run("train", more, "--continue", tmp_path / "vectors.bin", *output, code=1).stderr
    assert "only words and vectors" in stderr
    assert "to start from the vectors of this file, give it as --init (init=)" in stderr


def test_continued_run_can_be_resumed(base_model: w2v.Model, sample: Path, tmp_path: Path) -> None:
    uninterrupted = w2v.train(sample, continue_from=base_model, epochs=3)
    train_and_stop(tmp_path, sample, continue_from=base_model)
    assert_same(w2v.resume(tmp_path, sample), uninterrupted)


def test_model_with_nan_is_refused(base_model: w2v.Model) -> None:
    view = base_model.views["words"]
    inputs = view.inputs.copy()
    inputs[0, 0] = np.nan
    broken = w2v.Model({"words": replace(view, inputs=inputs)})
    with pytest.raises(w2v.W2VError, match="NaN or infinite values"):
        w2v.train(NEW_TEXT, continue_from=broken)


# -- from vectors -----------------------------------------------------------------------------


@pytest.fixture
def vectors() -> w2v.KeyedVectors:
    words = ["the", "unheard", "king", "queen"]
    return w2v.KeyedVectors(words, np.random.default_rng(1).standard_normal((4, 6)))


@pytest.mark.parametrize("extension", ["bin", "txt.gz", "safetensors", "npy"])
def test_matching_words_start_with_the_vectors_of_a_file(
    sample: Path, tmp_path: Path, vectors: w2v.KeyedVectors, extension: str
) -> None:
    vectors.save(tmp_path / f"v.{extension}")
    options: dict[str, Any] = {"alpha": 1e-9, "epochs": 1, "workers": 1, "vectors": "input"}
    trained = w2v.train(sample, init=tmp_path / f"v.{extension}", **options)
    new = w2v.train(sample, vector_size=6, **options)
    assert trained.words == new.words
    known = [word for word in vectors.index_to_key if word in trained.wv]
    assert len(known) == 3
    np.testing.assert_allclose(trained.wv[known], vectors[known], atol=1e-5)
    others = [word for word in trained.words if word not in known]
    np.testing.assert_allclose(trained.wv[others], new.wv[others], atol=1e-5)
    assert np.abs(trained.views["words"].outputs).max() < 1e-3


def test_command_reports_how_many_words_match(sample: Path, tmp_path: Path, vectors: w2v.KeyedVectors) -> None:
    vectors.header = ModelHeader(text=TextOptions(lower=True))
    vectors.save(tmp_path / "v.safetensors")
    found = run("train", sample, "--init", tmp_path / "v.safetensors", "-o", tmp_path / "m.safetensors", "--epochs", 1)
    assert "3 of " in found.stderr
    assert " words start with their vectors in init; the other words get new vectors" in found.stderr
    model = w2v.Model.load(tmp_path / "m.safetensors")
    assert (model.settings.vector_size, model.text.lower) == (6, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vector-size", 7], "vector_size 7: the vectors of init have 6 values; leave it out"),
        (["--subwords", "3-6"], "init has vectors only for words, and not for their subwords"),
        (["--continue", "{model}"], "--init has no effect with --continue"),
        (["--init", "{text}"], "a text, not a model"),
        (
            ["--freeze", "--vectors", "combined"],
            "vectors combined: with freeze, the word vectors must be the input rows: choose vectors input",
        ),
        (["--freeze", "--storage", "bf16"], "storage bf16: it would round the vectors that freeze keeps: choose"),
    ],
)
def test_command_refuses_vectors_that_contradict_the_options(
    sample: Path, model: Path, tmp_path: Path, vectors: w2v.KeyedVectors, options: list[Any], message: str
) -> None:
    vectors.save(tmp_path / "v.bin")
    given = [str(option).format(model=model, text=sample) for option in options]
    code = 1 if "a text" in message else 2
    command = ["train", sample, "--init", tmp_path / "v.bin", "-o", tmp_path / "m.bin", *given]
    assert message in run(*command, code=code).stderr


def test_unusable_vectors_are_refused(sample: Path, vectors: w2v.KeyedVectors, base_model: w2v.Model) -> None:
    with pytest.raises(w2v.SettingsError, match="init has no effect with continue_from: the run starts from the words"):
        w2v.train(sample, init=vectors, continue_from=base_model)
    with pytest.raises(w2v.W2VError, match="init has no vector for any word of this text"):
        w2v.train(sample, init=w2v.KeyedVectors(["unheard"], np.ones((1, 4))))
    vectors.vectors = np.where(np.arange(len(vectors))[:, None] == 2, np.nan, vectors.vectors)
    with pytest.raises(w2v.W2VError, match="the vectors of init have NaN or infinite values"):
        w2v.train(sample, init=vectors)


@pytest.mark.parametrize(
    "options",
    [{}, {"model": "skipgram", "loss": "hs"}, {"kernel": "numba"}, {"storage": "bf16"}, {"workers": 2}],
    ids=str,
)
def test_frozen_words_keep_their_vectors(
    sample: Path, tmp_path: Path, vectors: w2v.KeyedVectors, options: dict[str, Any]
) -> None:
    text = tmp_path / "text"
    text.write_text(sample.read_text("utf-8")[:100_000], "utf-8")
    if options.get("storage") == "bf16":  # only rounded vectors can be stored unchanged
        vectors.vectors = vectors.vectors.astype(bfloat16.bfloat16())  # type: ignore[assignment]
    options = {
        "init": vectors,
        "freeze": "inputs",
        "vector_size": 6,
        "min_count": 20,
        "epochs": 3,
        "workers": 1,
    } | options
    trained = w2v.train(text, **options)
    known = [word for word in vectors.index_to_key if word in trained.wv]
    rows = trained.views["words"].inputs[[trained.wv.key_to_index[word] for word in known]]
    np.testing.assert_array_equal(rows.astype(np.float32), vectors[known])
    np.testing.assert_array_equal(trained.wv[known], rows.astype(np.float32))
    others = [word for word in trained.words if word not in known]
    nearly_unchanged = w2v.train(text, **options | {"epochs": 1, "alpha": 1e-9})
    assert np.all(np.any(trained.wv[others] != nearly_unchanged.wv[others], axis=1))
    train_and_stop(tmp_path, text, **options)
    resumed = w2v.resume(tmp_path, text)
    if options["workers"] == 1:
        assert_same(resumed, trained)
    np.testing.assert_array_equal(resumed.wv[known], trained.wv[known])


@pytest.fixture(scope="module")
def compass(sample: Path) -> w2v.Model:
    return w2v.train(sample, vectors="input", **SMALL)


@pytest.fixture
def slice_text(sample: Path, tmp_path: Path) -> Path:
    path = tmp_path / "slice.txt"
    path.write_text(sample.read_text("utf-8")[:400_000], "utf-8")
    return path


def rows_in(model: w2v.Model, part: w2v.Model) -> list[int]:
    """Return the row in `model` of each word of `part`."""
    return rows_of(model, part.vocabulary.words)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of_compass", "options"),
    [
        ({}, {}),
        ({"model": "skipgram"}, {}),
        ({"loss": "nce"}, {}),
        ({"loss": "sampled"}, {"workers": 2}),
        ({"loss": "softmax", "max_vocab": 300}, {}),
        ({"storage": "bf16"}, {"workers": 3, "deterministic": True}),
        ({"subwords": "3-4", "model": "skipgram"}, {}),
        ({}, {"kernel": "numba"}),
    ],
    ids=str,
)
def test_frozen_output_rows_keep_their_bits(
    sample: Path, slice_text: Path, tmp_path: Path, of_compass: dict[str, Any], options: dict[str, Any]
) -> None:
    compass = w2v.train(sample, **SMALL | {"views": "words", "vectors": "input"} | of_compass)
    options = {"init": compass, "freeze": "outputs", "epochs": 3, "workers": 1} | options
    trained = w2v.train(slice_text, **options)
    rows = rows_in(compass, trained)
    np.testing.assert_array_equal(trained.views["words"].outputs, compass.views["words"].outputs[rows])
    assert trained.views["words"].inputs.dtype == compass.views["words"].inputs.dtype
    assert (trained.views["words"].inputs != compass.views["words"].inputs[rows]).any(axis=1).all()
    np.testing.assert_array_equal(trained.wv.vectors, trained.views["words"].inputs.astype(np.float32))
    folder = tmp_path / "states"
    train_and_stop(folder, slice_text, **options)
    resumed = w2v.resume(folder, slice_text)
    assert trained.coordinates == resumed.coordinates
    np.testing.assert_array_equal(resumed.views["words"].outputs, trained.views["words"].outputs)
    if options["workers"] == 1 or options.get("deterministic"):
        assert_same(resumed, trained)


def test_slice_has_the_words_of_the_model_that_occur_often_enough(compass: w2v.Model, slice_text: Path) -> None:
    text = slice_text.read_text("utf-8") + " ".join(["unheard"] * 50)
    slice_text.write_text(text, "utf-8")
    trained = w2v.train(slice_text, init=compass, freeze="outputs", min_count=7)
    words, counts = np.unique(text.split(), return_counts=True)
    expected = {word: count for word, count in zip(words.tolist(), counts.tolist(), strict=True) if count >= 7}
    del expected["unheard"]  # the model does not know it
    assert dict(zip(trained.words, trained.vocabulary.counts.tolist(), strict=True)) == {
        word: count for word, count in expected.items() if word in compass.wv
    }
    assert len(trained.words) < len(compass.words)
    assert np.all(np.diff(trained.vocabulary.counts) <= 0)
    assert w2v.train(slice_text, init=compass, freeze="outputs", max_vocab=9).words == trained.words[:9]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vectors": "combined"}, "vectors combined: with freeze, the word vectors must be the input rows"),
        ({"vector_size": 20}, "vector_size 20: the continued model has 16"),
        ({"loss": "nce"}, "loss nce: the continued model has ns"),
        ({"storage": "bf16"}, "storage bf16: it would round the output rows that freeze keeps: choose float32"),
        ({"freeze": "both"}, "freeze 'both': choose from inputs, outputs"),
        ({"preset": "items"}, "preset has no effect with freeze: the run starts from the words"),
    ],
)
def test_options_that_contradict_frozen_outputs_are_refused(
    compass: w2v.Model, slice_text: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(w2v.SettingsError, match=message):
        w2v.train(slice_text, **{"init": compass, "freeze": "outputs"} | options)


def test_models_with_the_same_frozen_outputs_share_coordinates(
    tmp_path: Path, sample: Path, slice_text: Path, compass: w2v.Model
) -> None:
    one, other = (w2v.train(text, init=compass, freeze="outputs", epochs=1) for text in (sample, slice_text))
    assert one.coordinates == other.coordinates != ""
    one.save(tmp_path / "one.safetensors")
    assert w2v.Model.load(tmp_path / "one.safetensors").coordinates == one.coordinates
    assert w2v.load(tmp_path / "one.safetensors").header.coordinates == one.coordinates
    again = w2v.train(slice_text, init=one, freeze="outputs", epochs=1)  # with the words and coordinates of a slice
    assert again.coordinates == one.coordinates
    assert one.with_vectors("combined").coordinates == ""
    assert w2v.train(slice_text, continue_from=one, epochs=1).coordinates == ""  # its output rows were trained
    another = w2v.train(sample, vectors="input", **SMALL | {"seed": 2})
    assert w2v.train(slice_text, init=another, freeze="outputs", epochs=1).coordinates not in ("", one.coordinates)


def test_output_rows_of_two_views_are_frozen(tmp_path: Path, sample: Path, slice_text: Path) -> None:
    compass = w2v.train(sample, **SMALL | {"views": "words+subwords", "vectors": "input"})
    compass.save(tmp_path / "compass.safetensors")
    w2v.train(slice_text, init=tmp_path / "compass.safetensors", freeze="outputs").save(tmp_path / "slice.safetensors")
    trained = w2v.Model.load(tmp_path / "slice.safetensors")
    for name, view in trained.views.items():
        whole = compass.views[name]
        np.testing.assert_array_equal(view.outputs, whole.outputs[rows_in(whole, view)])
    assert trained.wv.header.coordinates == trained.views["words"].coordinates != ""


@pytest.mark.parametrize(("loss", "what"), [("hs", "nodes of a tree"), ("class", "classes")])
def test_output_rows_that_do_not_belong_to_words_are_neither_frozen_nor_added(
    sample: Path, loss: str, what: str
) -> None:
    model = w2v.train(sample, loss=loss, vectors="input", **SMALL)
    of_option: dict[str, dict[str, Any]] = {
        "freeze outputs": {"init": model, "freeze": "outputs"},
        "vocab union": {"continue_from": model, "vocab": "union"},
    }
    for option, given in of_option.items():
        with pytest.raises(w2v.SettingsError, match=rf"{option}: with loss {loss}, its output rows belong to {what}"):
            w2v.train(NEW_TEXT, **given)


def test_frozen_outputs_need_a_model_and_known_words(tmp_path: Path, compass: w2v.Model) -> None:
    compass.save(tmp_path / "vectors.bin")
    compass.save(tmp_path / "compass.safetensors")
    (tmp_path / "text").write_text("unheard of\n" * 9, "utf-8")
    with pytest.raises(w2v.W2VError, match="it has only words and vectors: train with -o"):
        w2v.train(tmp_path / "text", init=tmp_path / "vectors.bin", freeze="outputs")
    with pytest.raises(w2v.W2VError, match=r"no word of the model of init occurs at least 10 times in .*text: are"):
        w2v.train(tmp_path / "text", init=tmp_path / "compass.safetensors", freeze="outputs", min_count=10)


def test_freeze_on_the_command_line(tmp_path: Path, compass: w2v.Model, slice_text: Path) -> None:
    compass.save(tmp_path / "compass.safetensors")
    expected = w2v.train(slice_text, init=compass, freeze="outputs", workers=1)
    init = ["--init", tmp_path / "compass.safetensors"]
    run("train", slice_text, *init, "--freeze", "outputs", "-o", tmp_path / "outputs.safetensors", "--workers", 1)
    assert_same(w2v.Model.load(tmp_path / "outputs.safetensors"), expected)
    run("train", slice_text, *init, "-o", tmp_path / "inputs.safetensors", "--workers", 1, "--freeze")
    inputs = w2v.Model.load(tmp_path / "inputs.safetensors")
    words = [word for word in inputs.words if word in compass.wv]
    np.testing.assert_array_equal(inputs.wv[words], compass.wv[words])
    error = run("train", slice_text, *init, "--freeze=both", "-o", tmp_path / "no.safetensors", code=2).stderr
    assert "'both' is not one of 'inputs', 'outputs'" in error


@pytest.mark.parametrize("options", [{"loss": "ns"}, {"loss": "hs"}, {"loss": "class"}, {"subwords": (3, 4)}])
def test_a_continued_model_can_replace_its_file(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "model.safetensors"
    w2v.train(NEW_TEXT, min_count=1, epochs=1, vector_size=8, workers=1, sample=0, **options).save(path)
    again = w2v.train(NEW_TEXT, continue_from=path, epochs=1)
    again.save(path, force=True)  # fails on Windows if the model keeps the old file mapped
    np.testing.assert_array_equal(w2v.load(path).vectors, again.wv.vectors)
