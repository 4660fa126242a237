"""Models of two views of a word: training, files, unknown words, checkpoints."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import Stop, assert_same, assert_same_views, full_disk, interrupt, run, run_json, stop_at
from w2v._evaluation.similarity import rated_pairs
from w2v._formats import native
from w2v._system import memory
from w2v._text._text import FIRST_TYPE
from w2v._text.idstore import TypeCounts
from w2v._text.words import Words
from w2v._training import checkpoint_folder, reading
from w2v._training import views as views_module
from w2v._training.checkpoint import write_checkpoint
from w2v._training.checkpoint_folder import CheckpointFolder, files, latest_checkpoints
from w2v._training.views import choose_views
from w2v._vectors import neighbours
from w2v._vectors.encode import encode
from w2v.gensim.models import fasttext, keyedvectors

AUTO: dict[str, Any] = {"vector_size": 11, "epochs": 2, "workers": 1}
VIEWS: dict[str, Any] = AUTO | {"views": "words+subwords", "buckets": 3000}
OPTIONS = ["--views", "words+subwords", "--size", "11", "--epochs", "2", "--workers", "1", "--buckets", "3000"]
UNKNOWN_WORDS = (UNKNOWN := "kingdomless", "cityless", "walkingly")


def train(text: Any, **options: Any) -> w2v.Model:
    return w2v.train(text, **VIEWS | options)


@pytest.fixture(scope="module")
def text(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a text of 20,000 words, in short lines.

    Its folder is new: with several workers, pytest may set up the fixtures of a module twice.
    """
    path = tmp_path_factory.mktemp("views") / "views.txt"
    path.write_text(sample.read_text("utf-8")[:100_000], "utf-8")
    return path


@pytest.fixture(scope="module")
def model(text: Path) -> w2v.Model:
    return train(text)


@pytest.fixture(scope="module")
def model_file(model: w2v.Model, text: Path) -> Path:
    path = text.with_name("views.safetensors")
    model.save(path)
    return path


# -- training -----------------------------------------------------------------------------


def test_views_are_unit_vectors_side_by_side(model: w2v.Model) -> None:
    assert {name: view.inputs.shape[1] for name, view in model.views.items()} == {"words": 6, "subwords": 5}
    assert model.wv.vector_size == model.vectors.shape[1] == 11
    parts = {"words": model.wv.vectors[:, :6], "subwords": model.wv.vectors[:, 6:]}
    for name, view in model.views.items():
        units = view.vectors / np.linalg.norm(view.vectors, axis=1, keepdims=True)
        np.testing.assert_allclose(parts[name], units, atol=1e-6)
    assert model.words == model.views["subwords"].vocabulary.words
    assert "views of words (6) and subwords (5)" in repr(model)
    for name in model.views:
        assert f"{name}: loss per prediction, from " in model._repr_html_()


@pytest.mark.parametrize(
    "options", [{}, {"model": "skipgram"}, {"loss": "hs"}, {"vectors": "concatenated"}, {"storage": "bf16"}], ids=str
)
def test_each_view_is_what_an_ordinary_run_gives(text: Path, options: dict[str, Any]) -> None:
    both, words = train(text, **options), AUTO | options | {"vector_size": 6}
    subwords = words | {"vector_size": 5, "subwords": "3-6", "buckets": 3000, "vectors": "input"}
    if options.get("model") != "skipgram":
        subwords |= {"window": 15}  # the default of this view
    for name, given in ("words", words), ("subwords", subwords):
        assert_same_views(both.views[name], w2v.train(text, **given).views["words"])


# -- the choice between one and two views ---------------------------------------------------


def types_of(words: str, tokens: int) -> TypeCounts:
    """Return the types of a text of this many words. The first of these words is the most frequent."""
    packed = Words.of(words.split())
    empty = np.zeros(FIRST_TYPE, np.int64)  # the ids below the first word
    counts = np.full(len(packed), tokens // len(packed), np.int64)
    counts[0] += tokens - counts.sum()
    offsets = np.concatenate([empty, packed.offsets])
    return TypeCounts(np.concatenate([empty, counts]), packed.with_padding(), offsets, 0)


WORDS_WITH_PARTS = "the green house of king arthur stands near lakes"


@pytest.mark.parametrize(
    ("tokens", "words", "options", "chosen"),
    [
        (299_999, WORDS_WITH_PARTS, {}, "words"),
        (300_000, WORDS_WITH_PARTS, {}, "words+subwords"),
        (300_000, WORDS_WITH_PARTS, {"vector_size": 99}, "words"),
        (5_000_000, WORDS_WITH_PARTS, {"vector_size": 199}, "words+subwords"),
        (5_000_001, WORDS_WITH_PARTS, {"vector_size": 199}, "words"),
        (25_000_000, WORDS_WITH_PARTS, {"vector_size": 200}, "words+subwords"),
        (25_000_001, WORDS_WITH_PARTS, {"vector_size": 1000}, "words"),
        *(
            (1_000_000, WORDS_WITH_PARTS, options, "words")
            for options in (
                {"model": "skipgram"},
                {"loss": "hs"},
                {"window": 8},
                {"vectors": "combined"},
                {"subwords": "3-6"},
            )
        ),
        *(
            (1_000_000, words, {}, "words")
            for words in ("item_12 item_13 item_14", "1001 1002 1003 1004", "北京 大学 学生 今天 天气", "a b c d ef gh")
        ),
    ],
)
def test_views_are_chosen_by_text_and_settings(tokens: int, words: str, options: dict[str, Any], chosen: str) -> None:
    assert choose_views("auto", w2v.Settings(**options), types_of(words, tokens)) == chosen


@pytest.fixture
def two_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let w2v choose two views for the short text and the short vectors of the tests."""
    monkeypatch.setattr(views_module, "MIN_WORDS", 1000)
    monkeypatch.setattr(views_module, "MIN_VECTOR_SIZE", 11)


@pytest.mark.usefixtures("two_by_default")
def test_chosen_views_are_like_given_views(text: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "w2v"):
        model = w2v.train(text, **AUTO)
    assert [line for line in caplog.messages if "views" in line] == [
        "a text of 18,108 words is best learnt by two models, of words and of subwords: training both; --views words "
        "(views=) trains one"
    ]
    assert_same(model, train(text, buckets=2_000_000))
    assert [*w2v.train(text, **AUTO, views="words").views] == ["words"]


@pytest.mark.usefixtures("two_by_default")
def test_a_continued_model_keeps_its_views(text: Path, tmp_path: Path) -> None:
    one = w2v.train(text, **AUTO, views="words")
    one.save(tmp_path / "one.safetensors")
    for source in one, tmp_path / "one.safetensors":
        for options in {}, {"views": "auto"}:
            assert [*w2v.train(text, continue_from=source, **options).views] == ["words"]
    with pytest.raises(w2v.SettingsError, match="the continued model has words"):
        w2v.train(text, continue_from=one, views="words+subwords")
    assert [*w2v.train(text, init=one.wv, **AUTO).views] == ["words"]
    assert len(w2v.train(text, continue_from=w2v.train(text, **AUTO), views="auto").views) == 2


@pytest.mark.usefixtures("two_by_default")
def test_checkpoints_of_chosen_views_resume(text: Path, tmp_path: Path) -> None:
    uninterrupted = w2v.train(text, **AUTO)
    for folder in tmp_path / "path", CheckpointFolder(tmp_path / "open", "2chunks"):
        with pytest.raises(Stop):
            w2v.train(text, checkpoint=folder, checkpoint_every="2chunks", progress=stop_at(0.7), **AUTO)
        path = folder.folder if isinstance(folder, CheckpointFolder) else folder
        assert_same(w2v.resume(path, text), uninterrupted)


@pytest.mark.usefixtures("two_by_default")
def test_settings_of_a_run_with_chosen_views_can_be_given_again(text: Path, tmp_path: Path) -> None:
    states, options = tmp_path / "states", ["--size", 11, "--views", "auto", "--epochs", "auto", "--workers", 1]
    output, config = tmp_path / "m.safetensors", tmp_path / "run.toml"
    run("train", text, "-o", output, *options, "--checkpoint", states, "--save-config", config)
    assert 'views = "auto"' in config.read_text()
    resumed = tmp_path / "resumed.safetensors"
    run("train", text, "--resume", states, "-o", resumed, *options)
    assert_same(w2v.Model.load(resumed), w2v.Model.load(output))
    run("train", text, "--continue", output, "--config", config, "--epochs", 1, "-o", tmp_path / "more.safetensors")
    assert len(w2v.Model.load(tmp_path / "more.safetensors").views) == 2


@pytest.mark.parametrize(("window", "windows"), [(None, (8, 15)), (8, (8, 8)), (3, (3, 3)), ("2,0", ("2,0", "2,0"))])
def test_windows_of_views_survive_continuing_and_copying_settings(
    text: Path, tmp_path: Path, window: int | str | None, windows: tuple[int | str, ...]
) -> None:
    train(text, window=window, epochs=1).save(first := tmp_path / "first.safetensors")
    assert w2v.Model.load(first).settings.window == window
    for option in "--continue", "--config":
        second = tmp_path / f"{option}.safetensors"
        run("train", text, option, first, "--epochs", 1, "-o", second)
        assert tuple(view.settings.window for view in w2v.Model.load(second).views.values()) == windows


@pytest.mark.usefixtures("two_by_default", "few_candidates")
@pytest.mark.parametrize("command", [["train"], ["tune", "--time", "1h"]], ids=lambda command: command[0])
def test_fasttext_files_get_one_model(text: Path, tmp_path: Path, command: list[str]) -> None:
    run(*command, text, "--size", 11, "--epochs", 1, "-o", tmp_path / "m.ft.bin")
    assert w2v.load(tmp_path / "m.ft.bin").vector_size == 11


@pytest.mark.usefixtures("two_by_default", "few_candidates")
@pytest.mark.parametrize("views", ["auto", "words+subwords"])
def test_tuning_tries_models_of_both_views(text: Path, caplog: pytest.LogCaptureFixture, views: Any) -> None:
    with caplog.at_level("INFO", "w2v"):
        result = w2v.tune(text, time="1h", views=views, vector_size=11, epochs=1, workers=1)
    assert result.trials > 1
    assert len(result.model.views) == 2
    assert sum("best learnt by two models" in line for line in caplog.messages) == (views == "auto")
    window = result.model.settings.window
    assert window is None or {view.settings.window for view in result.model.views.values()} == {window}


# -- a run ------------------------------------------------------------------------------------


def test_text_is_read_once(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings, read = [], reading.read_corpus
    monkeypatch.setattr(reading, "read_corpus", lambda *args, **options: readings.append(1) or read(*args, **options))
    train(iter(text.read_text("utf-8").splitlines()), epochs=1)
    assert len(readings) == 1


def test_progress_and_metrics_are_those_of_one_run(text: Path) -> None:
    reports: list[w2v.Progress] = []
    model = train(text, progress=reports.append)
    training = [report for report in reports if report.phase == "train"]
    done = [report.done for report in training]
    assert done == sorted(done)
    assert {report.total for report in training} == {done[-1]} == {2 * 2 * model.metrics["tokens"]}
    assert {report.view for report in training} == {"words", "subwords"}
    assert len({report.memory for report in training}) == 1
    timed = [report for report in training if report.rate]
    left = [(done[-1] - report.done) / report.rate for report in timed if report.rate]
    assert [report.seconds_left for report in timed] == pytest.approx(left)
    assert timed[0].view == "words"
    assert (timed[-1].view, timed[-1].seconds_left) == ("subwords", 0)
    assert model.metrics["tokens_trained"] == done[-1]
    assert [*model.metrics["views"]] == ["words", "subwords"]
    assert all(len(view["loss"]) == 2 for view in model.metrics["views"].values())


def test_memory_for_both_views_is_checked_before_training(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed: list[int] = []
    check = memory.check

    def spy(amount: int, what: str, *others: Any) -> tuple[int, int]:
        found = check(amount, what, *others)
        needed.extend([amount] if what == "training" else [])
        return found

    monkeypatch.setattr(memory, "check", spy)
    for grown in 0, 1 << 40:  # the bytes of the first view that are in use when the second one starts
        monkeypatch.setattr(memory, "resident_bytes", lambda grown=grown: grown if len(needed) % 2 else 0)
        model = train(text, epochs=1)
    first, both, _, second = needed
    assert both == first + second
    view = model.views["subwords"]
    assert second > view.inputs.nbytes + view.outputs.nbytes + model.vectors.nbytes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vector_size": 1}, "vector_size 1: views words.subwords needs at least 2"),
        ({"views": "subwords"}, "views 'subwords': did you mean words or words.subwords"),
        ({"loss": "hs", "vectors": "concatenated"}, "vectors concatenated: with loss hs"),
        ({"init": w2v.KeyedVectors(["the"], np.ones((1, 11)))}, "leave out init or views"),
    ],
    ids=str,
)
def test_impossible_options_are_refused(text: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.W2VError, match=message):
        w2v.train(text, **VIEWS | options)


# -- unknown words ------------------------------------------------------------------------


def unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def expected_vectors(known: Any, model: w2v.Model) -> Any:
    """Return the vectors of the unknown words if the vectors of the known words are `known`, (V, 11)."""
    own = unit(model.views["subwords"].wv[UNKNOWN_WORDS])
    nearest = np.argsort(-(own @ np.asarray(known)[:, 6:].T))[:, :10]
    return np.hstack([unit(np.asarray(known)[nearest, :6].mean(axis=1)), own])


def test_unknown_words_resemble_known_words_in_the_view_of_words(model: w2v.Model, model_file: Path) -> None:
    expected = expected_vectors(model.vectors, model)
    assert expected[:, :6].any(axis=1).all()
    for vectors in (model.wv, w2v.load(model_file), w2v.load(model_file, mmap=True)):
        np.testing.assert_allclose(vectors[UNKNOWN_WORDS], expected, atol=1e-5)
        np.testing.assert_allclose(vectors[UNKNOWN], expected[0], atol=1e-5)
        np.testing.assert_allclose(vectors.get_vector(UNKNOWN, norm=True), unit(expected[0]), atol=1e-5)
        mixed = vectors[["the", UNKNOWN, "and"]]
        np.testing.assert_allclose(mixed, [vectors["the"], expected[0], vectors["and"]], atol=1e-5)
        np.testing.assert_allclose(vectors.get_mean_vector(UNKNOWN_WORDS), unit(expected).mean(axis=0), atol=1e-5)
        cosine = unit(expected[0]) @ unit(expected[1])
        assert vectors.similarity(*UNKNOWN_WORDS[:2]) == pytest.approx(cosine, abs=1e-5)
        of_vectors = [vectors.most_similar([vector]) for vector in expected]
        for results in (
            [vectors.most_similar(word) for word in UNKNOWN_WORDS],
            vectors.most_similar_batch(UNKNOWN_WORDS),
        ):
            assert [[word for word, _ in result] for result in results] == [
                [word for word, _ in result] for result in of_vectors
            ]


def test_evaluation_and_texts_use_the_same_vectors_of_unknown_words(
    model: w2v.Model, model_file: Path, tmp_path: Path
) -> None:
    expected = expected_vectors(model.vectors, model)
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("".join(f"{word} the {score}\n" for score, word in enumerate(UNKNOWN_WORDS)))
    for vectors in (model.wv, w2v.load(model_file, mmap=True)):
        encoded = encode(vectors, [*UNKNOWN_WORDS, " ".join(UNKNOWN_WORDS), "the"], weights="mean")
        np.testing.assert_allclose(encoded, [*expected, expected.mean(axis=0), vectors["the"]], atol=1e-5)
        cosines = rated_pairs(vectors, pairs).cosines
        np.testing.assert_allclose(cosines, unit(expected) @ unit(vectors["the"]), atol=1e-5)
    assert UNKNOWN in json.dumps(run_json("query", model_file, UNKNOWN, "--topn", 3))
    assert run_json("info", model_file)["views"] == {"words": 6, "subwords": 5}


def test_known_words_need_no_search(model: w2v.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = model.wv
    calls: list[int] = []
    nearest = neighbours.nearest
    monkeypatch.setattr(
        neighbours, "nearest", lambda queries, *rest: calls.append(len(queries)) or nearest(queries, *rest)
    )
    assert UNKNOWN in vectors
    assert vectors[["the", "and"]].any()
    assert encode(vectors, ["the and"]).any()
    assert len(vectors.most_similar(["the"], ["and"])) == 10
    assert calls == []
    assert vectors[[*UNKNOWN_WORDS, "the"]].any()
    assert encode(vectors, [" ".join(UNKNOWN_WORDS)]).any()
    assert calls == [3, 3]


def test_words_without_a_known_ngram_are_unknown(model: w2v.Model, model_file: Path) -> None:
    for vectors in (model.wv, w2v.load(model_file)):
        word = next(word for word in map(chr, range(0x4E00, 0x9FFF)) if word not in vectors)
        with pytest.raises(w2v.UnknownWordError):
            vectors[[UNKNOWN, word]]
        assert not encode(vectors, [word]).any()
        np.testing.assert_array_equal(encode(vectors, [f"{word} {UNKNOWN}"]), encode(vectors, [UNKNOWN]))


# -- files --------------------------------------------------------------------------------


def test_native_file_holds_both_models(model: w2v.Model, model_file: Path, tmp_path: Path) -> None:
    for loaded in (w2v.Model.load(model_file), w2v.Model.load(model_file, mmap=True)):
        assert_same(loaded, model)
        assert loaded.settings.vector_size == 11
        loaded.save(tmp_path / "again.safetensors", force=True)
        assert_same(w2v.Model.load(tmp_path / "again.safetensors"), model)
    w2v.load(model_file, limit=10).save(tmp_path / "part.safetensors")
    assert len(w2v.load(tmp_path / "part.safetensors")) == 10
    with pytest.raises(w2v.W2VError, match="only words and vectors"):
        w2v.Model.load(tmp_path / "part.safetensors")


@pytest.mark.parametrize("suffix", [".bin", ".txt", ".npy", ".safetensors"])
def test_vector_files_hold_the_concatenation(model: w2v.Model, tmp_path: Path, suffix: str) -> None:
    model.save(tmp_path / f"model{suffix}")
    np.testing.assert_allclose(w2v.load(tmp_path / f"model{suffix}").vectors, model.wv.vectors, atol=1e-6)


def test_fasttext_file_holds_the_view_of_subwords(model: w2v.Model, model_file: Path, tmp_path: Path) -> None:
    model.save(tmp_path / "model.ft.bin")
    loaded, view = w2v.load(tmp_path / "model.ft.bin"), model.views["subwords"]
    np.testing.assert_allclose(loaded.vectors, view.vectors, atol=1e-6)
    np.testing.assert_allclose(loaded[UNKNOWN], view.wv[UNKNOWN], atol=1e-6)
    converted = run_json("convert", model_file, tmp_path / "other.ft.bin")
    assert (converted["lost"], converted["vector_size"]) == (["view of words", "settings", "metrics"], 5)
    run("convert", model_file, tmp_path / "top.safetensors", "--max-vocab", 50)
    assert "not only a part of" in run("convert", tmp_path / "top.safetensors", tmp_path / "top.ft.bin", code=1).stderr


@pytest.mark.parametrize("option", ["--max-vocab 50", "--dims 9", "--storage int8", "--storage f16"])
def test_smaller_files_keep_vectors_of_unknown_words(
    model: w2v.Model, model_file: Path, tmp_path: Path, option: str
) -> None:
    before, small = w2v.load(model_file), tmp_path / "small.safetensors"
    lost = run_json("convert", model_file, small, *option.split())["lost"]
    assert lost == ["view of words", "view of subwords"]
    after = w2v.load(small)
    for vectors in (after, w2v.load(small, mmap=True)):
        if option.startswith("--dims"):  # the parts are mixed: unknown words are made of their n-grams only
            axes = np.linalg.lstsq(before.vectors, after.vectors)[0]
            expected = model.views["subwords"].wv[UNKNOWN_WORDS] @ axes[6:]
        else:
            expected = expected_vectors(vectors.vectors[:], model)
        tolerance = 0.02 if "int8" in option else 1e-3
        np.testing.assert_allclose(vectors[UNKNOWN_WORDS], expected, atol=tolerance)
    with pytest.raises(w2v.W2VError, match="only words and vectors"):
        w2v.Model.load(small)


def test_damaged_views_are_refused(model_file: Path, tmp_path: Path) -> None:
    tensors, strings = native.read_native(model_file)
    damaged = tmp_path / "damaged.safetensors"

    def write(changes: dict[str, Any], **changed_strings: str) -> None:
        left = {name: array for name, array in (tensors | changes).items() if array is not None}
        native.write_native(damaged, left, strings | changed_strings)

    views = json.loads(strings["views"])
    for changes, changed, message in (
        ({"view.words.vectors": None}, {}, "lacks 'vectors' of the view of words"),
        ({"view.words.vectors": tensors["view.words.vectors"][1:]}, {}, "the view of words: "),
        ({"view.subwords.outputs": None}, {}, "only words and vectors"),
        ({"ngrams": None}, {}, "lacks 'ngrams'"),
        ({}, {"views": json.dumps({"words": views["words"]})}, "damaged: its views are words$"),
        ({}, {"views": "[]"}, "its views: damaged"),
    ):
        write(changes, **changed)
        with pytest.raises(w2v.W2VError, match=message):
            w2v.Model.load(damaged)
    write({}, ngram_offset="7")
    with pytest.raises(w2v.W2VError, match="its n-grams are inconsistent"):
        w2v.load(damaged)[UNKNOWN]


def test_perplexity_and_rank_measure_one_view(model: w2v.Model, model_file: Path, text: Path, tmp_path: Path) -> None:
    for command in ["perplexity", model_file, text], ["rank", model_file]:
        default = run(*command)
        assert "this is the view of words, and --view subwords measures the other" in default.stderr
        assert default.stdout == run(*command, "--view", "words").stdout
    words = run_json("perplexity", model_file, text, "--view", "words")
    assert words["perplexity"] == pytest.approx(w2v.perplexity(model.views["words"], text).perplexity)
    w2v.Model({"words": model.views["words"]}).save(one := tmp_path / "one.safetensors")
    assert "has one view only" in run("perplexity", one, text, "--view", "words", code=2).stderr
    # Scores from 5 values have rank 5. The logarithm of the noise and the normaliser add 1 each.
    assert run_json("rank", model_file, "--view", "subwords")["rank"] <= 5 + 2
    assert w2v.perplexity(model_file, text).perplexity == pytest.approx(words["perplexity"])


def test_command_says_that_fasttext_files_lack_a_view(text: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.ft.bin"
    stderr = run("train", text, *OPTIONS, "-o", output).stderr
    assert f"{output} has only the view of subwords, of 5 values" in stderr
    stderr = run("train", text, *OPTIONS, "-o", tmp_path / "model.bin").stderr
    assert "has no n-grams, so unknown words have no vector" in stderr


def test_attributes_of_a_view_are_named_in_the_error(model: w2v.Model) -> None:
    for name in ("inputs", "ngrams", "loss_curve", "log_probabilities"):
        with pytest.raises(AttributeError, match=rf"use model.views\['words'\].{name}$"):
            getattr(model, name)


def test_gensim_fasttext_refuses_ngrams_of_a_part(model_file: Path) -> None:
    assert len(keyedvectors.KeyedVectors.load(str(model_file))) == len(w2v.load(model_file))
    with pytest.raises(w2v.W2VError, match="n-grams make only a part of its vectors: load it"):
        fasttext.FastTextKeyedVectors.load(str(model_file))


# -- continuing and resuming --------------------------------------------------------------


@pytest.mark.parametrize("vocab", ["old", "union"])
def test_continued_training_continues_both_views(model: w2v.Model, model_file: Path, text: Path, vocab: Any) -> None:
    more = text.read_text("utf-8") + "brandnewword appears here\n" * 10
    continued = w2v.train(more.splitlines(), continue_from=model_file, vocab=vocab, epochs=1, workers=1)
    for name, view in model.views.items():
        options: dict[str, Any] = {"continue_from": w2v.Model({"words": view}), "vocab": vocab}
        one = w2v.train(more.splitlines(), **options, epochs=1, workers=1)
        assert_same_views(continued.views[name], one.views["words"])
    assert ("brandnewword" in continued.words) == (vocab == "union")


@pytest.mark.parametrize("options", [{}, {"deterministic": True, "workers": 2}, {"stop_early": 1}], ids=str)
def test_resume_is_bit_identical(text: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    uninterrupted = train(text, **options)
    uninterrupted.save(whole := tmp_path / "whole.safetensors")
    for share in 0.2, 0.8:  # in the view of words, and of subwords
        states = tmp_path / str(share)
        with pytest.raises(Stop):
            train(text, checkpoint=states, checkpoint_every="2chunks", progress=stop_at(share), **options)
        positions = [each.resume_info.done for each in latest_checkpoints(states).values()]
        assert [position > 0 for position in positions] == [True, share > 0.5]
        resumed = w2v.resume(states, text)
        assert_same(resumed, uninterrupted)
        resumed.save(states / "resumed.safetensors")
        assert (states / "resumed.safetensors").read_bytes() == whole.read_bytes()
    assert_same(w2v.resume(states, text), uninterrupted)  # nothing is left to train


def test_early_stopping_scores_each_view(text: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "w2v"):
        metrics = train(text, stop_early=1, epochs=3).metrics["views"]
    assert all(view["held_out_scores"] for view in metrics.values())
    lines = [line for line in caplog.messages if "view of" in line or "held-out text" in line]
    assert [lines[0], lines[2]] == ["training the view of words", "training the view of subwords"]
    assert len(lines) == 4


def test_command_resumes_both_views(text: Path, tmp_path: Path) -> None:
    run("train", text, *OPTIONS, "-o", tmp_path / "whole.safetensors")
    states, model = tmp_path / "states", tmp_path / "model.safetensors"
    assert f"--resume {states} -o {model}" in interrupt(text, *OPTIONS, "-o", model, "--checkpoint", states, "--quiet")
    run("train", text, "--resume", states, "-o", model)
    assert model.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert "the run in" in run("train", text, "--resume", states, "-o", "x.bin", "--size", 12, code=2).stderr


def test_checkpoints_of_other_runs_are_not_mixed(text: Path, tmp_path: Path) -> None:
    train(text, epochs=1, checkpoint=tmp_path)
    for views in "words", "words+subwords":
        with pytest.raises(w2v.W2VError, match="holds checkpoints of another run"):
            train(text, views=views, epochs=1, checkpoint=tmp_path)
    for views, number in ("words", 1), ("words+subwords", 2):
        options = ["--views", views, "--epochs", 1, "--checkpoint", tmp_path, "--force"]
        run("train", text, *options, "-o", tmp_path / "model.bin")
        assert len(w2v.resume(tmp_path, text).views) == number
        assert [bool(files(tmp_path / name)) for name in ("", "words", "subwords")] == [number == 1, *[number == 2] * 2]


def test_views_of_two_runs_are_not_joined(text: Path, tmp_path: Path) -> None:
    for folder in "one", "other":
        train(text, epochs=1, checkpoint=tmp_path / folder, checkpoint_every="never")
    shutil.rmtree(tmp_path / "one" / "subwords")
    with pytest.raises(w2v.W2VError, match="subwords holds no checkpoint"):
        w2v.resume(tmp_path / "one", text)
    shutil.copytree(tmp_path / "other" / "subwords", tmp_path / "one" / "subwords")
    with pytest.raises(w2v.W2VError, match=r"subwords.*safetensors belongs to another run: start a new run"):
        w2v.resume(tmp_path / "one", text)


@pytest.mark.parametrize("full_for", ["words", "subwords"])
def test_a_run_that_could_not_be_resumed_does_not_begin(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_for: str
) -> None:
    """The old run in the folder is complete, under other names."""
    train(text, epochs=1, checkpoint=tmp_path / "states")
    old = {path.with_name(f"{path.name}.replaced") for path in (tmp_path / "states").rglob("*.safetensors")}

    def write(path: Path, *arguments: Any, **options: Any) -> None:
        (full_disk if path.parent.name == full_for else write_checkpoint)(path, *arguments, **options)

    monkeypatch.setattr(checkpoint_folder, "write_checkpoint", write)
    options = ["--views", "words+subwords", "--size", 11, "--checkpoint", tmp_path / "states", "--force"]
    stderr = run("train", text, *options, "-o", tmp_path / "m.bin", "--quiet", code=1).stderr
    assert "No space left on device" in stderr
    assert old <= {*(tmp_path / "states").rglob("*")}
    with pytest.raises(w2v.W2VError, match="holds no checkpoint since a new run began to replace its"):
        w2v.resume(tmp_path / "states", text)
