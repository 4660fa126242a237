"""Training on items: keys keep their type in models, checkpoints and files, and advice on texts does not appear."""

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet

import w2v
from tests.helpers import run, train_and_stop
from w2v._errors import SettingsError, W2VError
from w2v._formats import registry
from w2v._formats.base import Format
from w2v._kernel.plan import initial_inputs
from w2v._text.phrases import Phrases
from w2v._training.model import Model
from w2v._vectors.keyed import KeyedVectors

LISTS = [[1193, -5, (1 << 62) + number % 3] for number in range(30)]
SMALL: dict[str, Any] = {"vector_size": 3, "epochs": 2, "sample": 0, "min_count": 1, "workers": 1}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    parquet.write_table(pyarrow.table({"x": LISTS}), tmp_path / "sessions.parquet")
    return tmp_path / "sessions.parquet"


def test_numbers_stay_numbers_in_a_model(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no advice on the number of words
        model = w2v.train(LISTS, **SMALL)
    assert model.wv.index_to_key[:2] == [1193, -5]
    assert [key for key, _ in model.wv.most_similar(1193, topn=9)].count(-5) == 1
    model.save(tmp_path / "m.safetensors")
    for loaded in (w2v.load(tmp_path / "m.safetensors"), Model.load(tmp_path / "m.safetensors").wv):
        assert loaded.index_to_key == model.wv.index_to_key
        np.testing.assert_array_equal(loaded[1193], model.wv[1193])


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("keys", [[-5, 7, (1 << 63) - 1], [0, 7, (1 << 64) - 1]])
def test_tables_hold_numbers(tmp_path: Path, keys: list[int], suffix: str) -> None:
    KeyedVectors(keys, np.eye(3), [3, 2, 1]).save(tmp_path / f"m.{suffix}")
    loaded = w2v.load(tmp_path / f"m.{suffix}")
    assert (loaded.index_to_key, loaded.header.key_type) == (keys, "int")
    with pytest.raises(W2VError, match="the keys -1 and 18446744073709551615 do not fit one type of integers"):
        KeyedVectors([-1, (1 << 64) - 1], np.eye(2)).save(tmp_path / f"n.{suffix}")


@pytest.mark.parametrize(
    "extension", [fmt.extensions[0] for fmt in registry.writable_formats() if fmt.name not in ("native", "arrow")]
)
def test_other_formats_hold_numbers_as_text_and_say_so(
    tmp_path: Path, extension: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / f"m{extension}"
    with caplog.at_level(logging.WARNING, "w2v"):
        KeyedVectors([1193, 5, 7], np.eye(3), [3, 2, 1]).save(path)
    messages = [record.message for record in caplog.records if "become text" in record.message]
    assert messages == [f"{path}: the keys, which are numbers, become text: .safetensors and .parquet keep numbers"]
    assert w2v.load(path).index_to_key == ["1193", "5", "7"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"phrases": True}, r"--phrases \(phrases=\) joins words of a text, but the corpus holds items: leave it out"),
        ({"subwords": (3, 6)}, r"--subwords or .* needs the characters of words, but the corpus holds numbers"),
        ({"views": "words+subwords"}, r"--views words\+subwords \(subwords=, views=\) needs the characters of words"),
        ({"loss": "charcnn"}, r"--loss charcnn \(loss=\) needs the characters of words"),
    ],
)
def test_options_for_words_are_refused_as_soon_as_items_are_read(
    options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("w2v._text.corpus.ITEMS_AT_ONCE", 1)
    rest = iter(range(1000))
    with pytest.raises(SettingsError, match=message):
        w2v.train(([number, 7] for number in rest), **SMALL | options)
    assert next(rest) < 100


def test_options_for_words_are_refused_for_every_source_of_numbers(file: Path, tmp_path: Path) -> None:
    table, edges = tmp_path / "t.csv", tmp_path / "g.mtx"
    table.write_text("item,session\n" + "7,1\n8,1\n" * 9)
    edges.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n")
    sources: list[tuple[Path, dict[str, Any]]] = [
        (table, {"item": "item", "session": "session"}),
        (edges, {"graph": True}),
        (file, {"column": "x", "cache": tmp_path / "cache"}),
    ]
    for source, options in sources:
        w2v.train(source, **SMALL | options)
        with pytest.raises(SettingsError, match=r"needs the characters of words, but .* holds numbers"):
            w2v.train(source, subwords=(3, 6), **SMALL | options)
    with pytest.raises(SettingsError, match=r"--phrases .* holds items"):
        w2v.train(file, column="x", cache=tmp_path / "cache", phrases=True, **SMALL)


def test_items_that_are_texts_may_have_ngrams() -> None:
    model = w2v.train([["green tea", "black tea"]] * 9, subwords=(3, 4), **SMALL)
    assert "white tea" in model.wv


def test_phrases_of_items_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(W2VError, match="the corpus holds items, and phrases are joined in texts: give a text"):
        Phrases.find(LISTS)
    result = run("phrases", file, "--column", "x", "-o", tmp_path / "joined.txt", code=1)
    assert "sessions.parquet, column x holds items" in result.stderr


def test_a_resumed_run_keeps_numbers(file: Path, tmp_path: Path) -> None:
    model = w2v.train(file, column="x", checkpoint=tmp_path / "checkpoints", **SMALL)
    resumed = w2v.resume(tmp_path / "checkpoints", file)
    assert resumed.wv.index_to_key == model.wv.index_to_key
    assert resumed.vocabulary.key_type == "int"
    np.testing.assert_array_equal(resumed.wv.vectors, model.wv.vectors)


def test_a_continued_model_keeps_numbers_unless_the_new_items_are_text() -> None:
    model = w2v.train(LISTS, **SMALL)
    continued = w2v.train([[1193, 8]] * 9, continue_from=model, vocab="union")
    assert continued.wv.index_to_key[:2] == [1193, -5]
    assert 8 in continued.wv
    assert "1193" in w2v.train([["1193", "an item"]] * 9, continue_from=model, vocab="union").wv.index_to_key


def test_the_command_accepts_numbers(file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.safetensors"
    command = ["train", file, "--column", "x", "--size", 3, "--epochs", 1, "--sample", 0, "--min-count", 1]
    assert "more text" not in run(*command, "-o", model).stderr
    assert "cos(x, 1193)" in run("query", model, "1193").stdout
    assert '"word": -5' in run("query", model, "1193", "--json").stdout
    words = tmp_path / "words.txt"
    run("vocab", file, "--column", "x", "--min-count", 1, "-o", words)
    run(*command[:-2], "--read-vocab", words, "--min-count", 1, "-o", tmp_path / "n.parquet")
    assert w2v.load(tmp_path / "n.parquet").index_to_key[:2] == [1193, -5]


def test_white_space_that_an_output_cannot_hold_is_refused_before_training(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"x": [["new york", "b"]] * 9}), tmp_path / "x.parquet")
    command = ["train", tmp_path / "x.parquet", "--column", "x", "--size", 3, "--epochs", 1, "--sample", 0]
    for output in ("m.bin", "m.txt", "m.glove.txt"):
        error = run(*command, "-o", tmp_path / output, code=1).stderr
        assert error.endswith(
            f"{output}: this format cannot store the white space in 'new york': use .safetensors or .parquet\n"
        )
    error = run(*command, "-o", tmp_path / "m.npy", "--save-vocab", tmp_path / "words", code=1).stderr
    assert "words: not written: the item 'new york' contains white space" in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.parquet"]
    run(*command, "-o", tmp_path / "m.safetensors")
    assert "new york" in w2v.load(tmp_path / "m.safetensors")


@pytest.mark.parametrize("fmt", registry.writable_formats(), ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("space", [" ", "\t", "\n"])
def test_formats_hold_all_white_space_except_their_separators(tmp_path: Path, fmt: Format, space: str) -> None:
    word, path = f"new{space}york", tmp_path / f"m{fmt.extensions[0]}"
    vectors = KeyedVectors([word, "b", "c"], np.eye(3), [3, 2, 1])
    if space.encode() in fmt.separators:
        with pytest.raises(W2VError, match="not written"):
            vectors.save(path)
    else:
        vectors.save(path)
        assert w2v.load(path).index_to_key[0] == word


def test_messages_call_items_items(tmp_path: Path) -> None:
    units = set[str]()
    model = w2v.train(LISTS, progress=lambda progress: units.add(f"{progress.phase}: {progress.unit}"), **SMALL)
    assert "train: items" in units
    model.save(tmp_path / "m.safetensors")
    assert repr(Model.load(tmp_path / "m.safetensors")).startswith("<Model: 5 items, 3 values each")
    with pytest.raises(W2VError, match="no item occurs 99 times: the most frequent, '1193', occurs 30 times"):
        w2v.train(LISTS, min_count=99)


def views_and_bookings() -> pandas.DataFrame:
    """Return sessions of one item each, of a group. Item 90 or 91 is booked after the items of an even or odd group."""
    rows = [(8 * group + view % 8, f"{group} {view}", 90 + group % 2) for group in range(4) for view in range(40)]
    rows += [(90 + number % 2, f"booked {number}", None) for number in range(20)]
    return pandas.DataFrame(rows, columns=["item", "session", "booked"])


COLUMNS = {"item": "item", "session": "session", "also_context": "booked"}


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["ns", "hs", "softmax"])
def test_also_context_is_the_context_of_each_item_of_its_session(model: str, loss: str) -> None:
    trained = w2v.train(views_and_bookings(), **COLUMNS, model=model, loss=loss, **SMALL | {"epochs": 30, "alpha": 0.5})
    assert trained.metrics["tokens"] == 180
    view = trained.views["words"]
    assert trained.vocabulary.counts.tolist()[:2] == [10, 10]  # 90 and 91 are counted only where they are items
    before = initial_inputs(34, 3, trained.settings.seed)[:, :3]
    changed = [
        key for key, row, old in zip(trained.wv.index_to_key, view.inputs, before, strict=True) if (row != old).any()
    ]
    assert sorted(changed) == [90, 91]  # sessions have one item, so no other item is context
    if loss != "hs":
        scores = view.outputs @ view.inputs[[trained.wv.key_to_index[90], trained.wv.key_to_index[91]]].T
        favourite = {key: 90 + int(score.argmax()) for key, score in zip(trained.wv.index_to_key, scores, strict=True)}
        assert [favourite[item] for item in range(32)] == [90 + item // 8 % 2 for item in range(32)]


@pytest.mark.parametrize(
    "options", [{}, {"deterministic": True, "workers": 2, "epochs": 2}, {"window": "all", "model": "cbow"}]
)
def test_weighted_sessions_with_contexts_equal_their_repetitions_and_resume(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    random = np.random.default_rng(5)
    sessions = [[*map(int, random.integers(0, 30, random.integers(2, 9)))] for _ in range(900)]
    rows = [(item, number, min(each), number % 4) for number, each in enumerate(sessions) for item in each]
    table = pandas.DataFrame(rows, columns=["item", "session", "booked", "times"])
    repeated = pandas.concat(
        table[table["times"] > count].assign(session=lambda part, count=count: part["session"] + 1000 * count)
        for count in range(3)
    )
    given = SMALL | {"epochs": 12} | COLUMNS | options
    expected = w2v.train(repeated, **given)
    weighted = w2v.train(table, **given, weight="times")
    np.testing.assert_array_equal(weighted.vectors, expected.vectors)
    assert weighted.metrics["tokens"] == len(repeated)
    train_and_stop(tmp_path / "states", table, 0.4, **given, weight="times")
    np.testing.assert_array_equal(w2v.resume(tmp_path / "states", table).vectors, expected.vectors)


@pytest.mark.slow
def test_numba_trains_contexts_of_sessions_alike() -> None:
    models = [
        w2v.train(views_and_bookings(), **COLUMNS, kernel=kernel, loss="hs", **SMALL) for kernel in ("cython", "numba")
    ]
    np.testing.assert_allclose(models[0].vectors, models[1].vectors, atol=1e-5)


def test_items_of_also_context_that_are_not_in_the_vocabulary_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    table = views_and_bookings().replace({"booked": {91: 1000}})
    with caplog.at_level(logging.WARNING, "w2v"):
        trained = w2v.train(table, **COLUMNS, **SMALL)
    assert "--also-context: 1 item not in the vocabulary, such as '1000', left out" in caplog.messages
    assert 1000 not in trained.wv
    more = w2v.train(views_and_bookings(), continue_from=trained, vocab="union", **COLUMNS, workers=1)
    assert more.wv.index_to_key == trained.wv.index_to_key
    longer = table.assign(booked=1000, session=0)
    without = w2v.train(longer, item="item", session="session", **SMALL)
    np.testing.assert_array_equal(w2v.train(longer, **COLUMNS, **SMALL).vectors, without.vectors)
    with pytest.raises(
        W2VError, match=r"no session has an item in the column of --also-context: all of them are missing"
    ):
        w2v.train(table.assign(booked=None), **COLUMNS, **SMALL)
    for options in ({"subwords": "2-3"}, {"init": trained.wv, "freeze": "inputs"}):
        with pytest.raises(SettingsError, match=r"--also-context .* cannot be combined with --subwords"):
            w2v.train(table, **COLUMNS, **SMALL | options)


def test_the_command_reads_weights_and_contexts_of_sessions(tmp_path: Path) -> None:
    table = views_and_bookings().assign(times=2)
    parquet.write_table(pyarrow.Table.from_pandas(table), tmp_path / "views.parquet")
    options = "--item item --session session --also-context booked --weight times --min-count 1 --vector-size 4 --quiet"
    run("train", tmp_path / "views.parquet", *options.split(), "-o", tmp_path / "m.safetensors")
    assert Model.load(tmp_path / "m.safetensors").metrics["tokens"] == 360
