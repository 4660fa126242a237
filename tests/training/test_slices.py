"""Models of several texts in one coordinate system."""

import json
import os
import re
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import Stop, assert_same, make_loss, run, stop_at
from w2v._losses.sampling import share_outputs
from w2v._training import slices as slicing
from w2v._training.slices import Slice, slice_name

QUICK: dict[str, Any] = {"vector_size": 8, "epochs": 2, "workers": 1}


@pytest.fixture
def texts(sample: Path, tmp_path: Path) -> list[Path]:
    """Return two texts of different words."""
    lines = sample.read_text("utf-8").splitlines(keepends=True)
    paths = [tmp_path / "1990s.txt", tmp_path / "2010s.txt"]
    paths[0].write_text("".join(lines[: len(lines) // 2]), "utf-8")
    paths[1].write_text(re.sub(r"\btwo\b", "twain", "".join(lines[len(lines) // 2 :])), "utf-8")
    return paths


def models_in(folder: Path) -> dict[str, bytes]:
    """Return the content of each model in a folder, by the name of its file."""
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def test_slices_are_the_models_of_single_commands(texts: list[Path], tmp_path: Path) -> None:
    result = w2v.slices(texts, tmp_path / "out", **QUICK)
    compass = w2v.train(texts, views="words", vectors="input", **QUICK)
    assert_same(w2v.Model.load(result.compass), compass)
    assert [Path(each.path).name for each in result.slices.values()] == ["1990s.safetensors", "2010s.safetensors"]
    for text, each in zip(texts, result.slices.values(), strict=True):
        model = w2v.Model.load(each.path)
        assert_same(model, w2v.train(text, init=compass, freeze="outputs", **QUICK))
        assert model.coordinates == w2v.Model.load(result.compass).coordinates != ""
        assert (each.words, each.missing) == (len(model.words), len(compass.words) - len(model.words))
    assert "twain" in w2v.load(result.slices["2010s"].path)
    assert "twain" not in w2v.load(result.slices["1990s"].path)


def test_texts_have_names_and_may_be_lists(texts: list[Path], tmp_path: Path) -> None:
    lists = {"early": texts[0].read_text("utf-8").splitlines(), "late": texts[1].read_text("utf-8").splitlines()}
    result = w2v.slices(lists, tmp_path / "lists", **QUICK)
    files = w2v.slices({"early": [texts[0]], "late": str(texts[1])}, tmp_path / "files", **QUICK)
    assert [*result.slices] == [*files.slices] == ["early", "late"]
    assert_same(w2v.Model.load(result.slices["late"].path), w2v.Model.load(files.slices["late"].path))


def test_name_of_a_text_is_its_file_without_extensions(tmp_path: Path) -> None:
    (tmp_path / "the.1980s").mkdir()
    names = [slice_name(tmp_path / name) for name in ("the.1980s", "1990s.txt", "the.2000s.txt.gz", "2010s.zst", "x")]
    assert names == ["the.1980s", "1990s", "the.2000s", "2010s", "x"]


@pytest.mark.parametrize(
    ("corpora", "message"),
    [
        (["1990s.txt"], "1 text: give at least two"),
        (["1990s.txt", ["a b c"]], r"\['a b c'\] is not a path: give paths, or a dict of texts by name"),
        (["1990s.txt", "other/1990s.txt.gz"], "1990s.txt and other/1990s.txt.gz have the same name '1990s'"),
        (["1990s.txt", "Compass.txt"], "name 'Compass': it belongs to the model of all texts"),
        (["1990s.txt", "201*.txt"], r"201\*.txt: a pattern does not give a name: put its files into a folder"),
        (["1990s.txt", "-"], "-: it can be read only once"),
        ({"a": "1990s.txt", "A": "2010s.txt"}, "names 'a' and 'A': on some systems they are the same file"),
        ({1990: "1990s.txt", "b": "2010s.txt"}, "name 1990: it must be a string, such as '1990'"),
        ({"a": "1990s.txt", "../b": "2010s.txt"}, "name '../b': it must be the name of a file"),
        ({"a": "1990s.txt", "b": [["a", "word"]] * 9}, "texts to join must all be files"),
        ({"a": [["a"]], "b": iter([["a", "word"]])}, "b: it can be read only once"),
    ],
)
def test_unusable_texts_are_refused(
    texts: list[Path], monkeypatch: pytest.MonkeyPatch, corpora: Any, message: str
) -> None:
    monkeypatch.chdir(texts[0].parent)
    with pytest.raises(w2v.SettingsError, match=message):
        w2v.slices(corpora, "out")
    assert models_in(Path("out")) == {}
    with pytest.raises(w2v.SettingsError, match=r"1990s.txt is a file: name a folder with -o"):
        w2v.slices(texts, texts[0], **QUICK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"freeze": "inputs"}, "unknown setting 'freeze'"),
        ({"init": "model"}, "unknown setting 'init'"),
        ({"phrases": True}, "phrases True: each text would have other phrases"),
        ({"loss": "hs"}, "freeze outputs: with loss hs"),
        ({"checkpoint_every": "1h"}, "checkpoint_every has no effect without checkpoint"),
        ({"vectors": "combined"}, "vectors combined: with freeze"),
        ({"tag_words": []}, "tag_words has no words"),
        ({"tag_words": os.devnull}, f"{os.devnull}: no words to tag"),
        ({"tag_words": ["unheard"]}, "no text has one of the words to tag, such as 'unheard'"),
        ({"tag_words": ["the"], "loss": "hs"}, "tag_words: with loss hs, words cannot share outputs: choose ns"),
        ({"tag_words": ["the"], "loss": "softmax"}, "tag_words: with loss softmax, words cannot share outputs"),
        ({"tag_words": ["the"], "views": "words+subwords"}, "views cannot be combined with tag_words"),
        ({"tag_words": ["the"], "subwords": "3-4"}, "subwords cannot be combined with tag_words"),
        ({"tag_words": ["the"], "stop_early": 2}, "stop_early cannot be combined with tag_words"),
    ],
    ids=str,
)
def test_unusable_options_are_refused(texts: list[Path], tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.W2VError, match=message):
        w2v.slices(texts, tmp_path / "out", **QUICK | options)
    assert models_in(tmp_path / "out") == {}


def test_existing_models_are_kept_or_replaced_only_on_request(texts: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    w2v.slices(texts, out, **QUICK)
    before = models_in(out)
    with pytest.raises(w2v.W2VError, match=r"compass.safetensors exists: add --resume"):
        w2v.slices(texts, out, **QUICK)
    w2v.slices(texts, out, resume=True, **QUICK)
    assert models_in(out) == before
    tagged = w2v.slices(texts, out, tag_words=["the"], **QUICK)  # beside the models of slices
    assert models_in(out).items() > before.items()
    with pytest.raises(w2v.W2VError, match=r"tagged.safetensors exists: add --resume"):
        w2v.slices(texts, out, tag_words=["the"], **QUICK)
    assert w2v.slices(texts, out, resume=True, tag_words=["the"], **QUICK) == tagged
    Path(tagged.compass).unlink()
    other = tmp_path / "other"
    w2v.slices(texts, other, **QUICK | {"seed": 2})
    for name in "1990s.safetensors", "compass.safetensors":
        (other / name).write_bytes(before[name])
        with pytest.raises(w2v.W2VError, match=rf"{name} was not written by this call: remove it, or start again with"):
            w2v.slices(texts, other, resume=True, **QUICK | {"seed": 2})
    w2v.slices(texts, out, force=True, **QUICK | {"seed": 2})
    assert all(content != before[name] for name, content in models_in(out).items())


def test_slices_of_another_compass_are_not_kept(texts: list[Path], tmp_path: Path) -> None:
    w2v.slices(texts, tmp_path, **QUICK)
    (tmp_path / "compass.safetensors").unlink()
    with pytest.raises(w2v.W2VError, match=r"1990s.safetensors was not written by this call"):
        w2v.slices(texts, tmp_path, resume=True, **QUICK)


@pytest.mark.parametrize("stop_in", ["compass", "1990s", "2010s"])
@pytest.mark.parametrize("views", ["words", pytest.param("words+subwords", marks=pytest.mark.slow)])
def test_stopped_runs_are_resumed_to_the_same_bits(
    texts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_in: str, views: str
) -> None:
    options = QUICK | {"views": views, "checkpoint": tmp_path / "states", "checkpoint_every": "2chunks"}
    expected = w2v.slices(texts, tmp_path / "whole", **QUICK | {"views": views})
    trained: list[str] = []
    original = slicing._Runs._train

    def train(self: Any, name: str, *arguments: Any) -> Any:
        trained.append(name)
        if name == stop_in and not self.resume:
            self.progress = stop_at(0.3)
        return original(self, name, *arguments)

    monkeypatch.setattr(slicing._Runs, "_train", train)
    with pytest.raises(Stop):
        w2v.slices(texts, tmp_path / "out", **options)
    names = ["compass", "1990s", "2010s"]
    assert trained == names[: names.index(stop_in) + 1]
    trained.clear()
    resumed = w2v.slices(texts, tmp_path / "out", resume=True, **options)
    assert trained == names[names.index(stop_in) :]
    assert resumed.slices.keys() == expected.slices.keys()
    for name in names:
        found, wanted = (tmp_path / folder / f"{name}.safetensors" for folder in ("out", "whole"))
        assert found.read_bytes() == wanted.read_bytes(), name


@pytest.mark.parametrize("stopped", [False, True])
def test_resume_refuses_other_texts_and_options(texts: list[Path], tmp_path: Path, stopped: bool) -> None:
    """If the first call was stopped, there is only a checkpoint."""
    out, third, words = tmp_path / "out", tmp_path / "third.txt", [text.read_text("utf-8") for text in texts]
    third.write_text("one two\n" * 50)
    options = QUICK | {"checkpoint": tmp_path / "states", "checkpoint_every": "2chunks"}
    with pytest.raises(Stop) if stopped else nullcontext():
        w2v.slices(texts, out, progress=stop_at(0.3) if stopped else None, **options)
    before = models_in(out)
    assert len(before) == (0 if stopped else 3)

    def refused(difference: str, *more: Path, **changed: Any) -> None:
        message = f"slices.json belongs to another run, {difference}: give the same texts and options again, or"
        with pytest.raises(w2v.W2VError, match=message):
            w2v.slices([*texts, *more], out, resume=True, **options | changed)

    refused("with lower none, not True", lower=True)
    refused("with epochs 2, not auto", epochs="auto")
    refused("without text third", third)
    texts[1].write_text(words[1].replace(" the ", " teh ", 1), "utf-8")  # as many words
    refused("with different text 2010s")
    for text, other in zip(texts, reversed(words), strict=True):
        text.write_text(other, "utf-8")
    refused("with different text 1990s")
    assert models_in(out) == before


def test_checkpoint_of_another_call_is_refused(texts: list[Path], tmp_path: Path) -> None:
    options = QUICK | {"checkpoint": tmp_path / "states", "checkpoint_every": "2chunks"}
    for folder in "one", "other":
        with pytest.raises(Stop):
            w2v.slices(texts, tmp_path / folder, progress=stop_at(0.3), force=folder == "other", **options)
    with pytest.raises(w2v.W2VError, match=r"compass.*\d.safetensors belongs to another run: start again with --force"):
        w2v.slices(texts, tmp_path / "one", resume=True, **options)
    w2v.slices(texts, tmp_path / "one", resume=True, force=True, **options)


def test_resume_says_what_to_do_with_a_damaged_model(texts: list[Path], tmp_path: Path) -> None:
    w2v.slices(texts, tmp_path / "out", **QUICK)
    damaged = tmp_path / "out" / "1990s.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:1000])
    with pytest.raises(w2v.W2VError, match=r"1990s.safetensors: .*; remove the file to train it again, or start again"):
        w2v.slices(texts, tmp_path / "out", resume=True, **QUICK)


def test_texts_without_frequent_words_are_named_before_the_training(texts: list[Path], tmp_path: Path) -> None:
    texts[1].write_text("a b c d\n", "utf-8")
    with pytest.raises(w2v.W2VError, match="the text 2010s has no word that occurs at least 5 times: join it"):
        w2v.slices(texts, tmp_path / "out", **QUICK)
    assert models_in(tmp_path / "out") == {}
    with pytest.raises(w2v.W2VError, match="the text 2010s: nothing to learn"):
        w2v.slices(texts, tmp_path / "out", min_count=1, **QUICK)
    with pytest.raises(w2v.W2VError, match="the text b: the text holds no words"):
        w2v.slices({"a": ["a b c"] * 9, "b": []}, tmp_path / "empty", **QUICK)
    with pytest.raises(w2v.W2VError, match="the text b: no word of the model of init occurs at least 5 times in"):
        w2v.slices({"a": ["a b c"] * 9, "b": ["d e f"] * 8}, tmp_path / "few", max_vocab=3, sample=0, **QUICK)
    assert not [*tmp_path.glob("empty/*")]


def test_known_words_are_logged_once_for_two_views(
    texts: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "w2v"):
        result = w2v.slices(texts, tmp_path / "out", views="words+subwords", **QUICK)
    found = [record.getMessage() for record in caplog.records if "words of the model occur" in record.getMessage()]
    assert found == [
        f"{each.words:,} of {result.words:,} words of the model occur in the text at least 5 times; the others have no "
        "vector"
        for each in result.slices.values()
    ]


def test_command_prints_words_and_missing_words(texts: list[Path], tmp_path: Path) -> None:
    arguments = ["slices", *texts, "-o", tmp_path / "out", "--epochs", 1, "--vector-size", 8]
    printed = json.loads(run(*arguments, "--json").stdout)
    result = w2v.slices(texts, tmp_path / "out", resume=True, epochs=1, vector_size=8)
    assert printed["slices"] == {name: vars(each) for name, each in result.slices.items()}
    assert isinstance(result.slices["1990s"], Slice)
    assert "exists: add --resume (resume=True) to keep finished models" in run(*arguments, code=1).stderr
    assert "--phrases needs FILE here: write it with w2v phrases" in run(*arguments, "--phrases", code=2).stderr
    shown = run(*arguments, "--resume").stdout.splitlines()
    assert shown[0].split() == ["model", "words", "missing", "words"]
    assert shown[2].split() == [
        str(tmp_path / "out" / "1990s.safetensors"),
        f"{result.slices['1990s'].words:,}",
        f"{result.slices['1990s'].missing:,}",
    ]


@pytest.fixture
def exchanged(sample: Path, tmp_path: Path) -> list[Path]:
    """Return two texts, which differ only in that two words were exchanged."""
    text = sample.read_text("utf-8")
    swapped = text.replace(" france ", " \0 ").replace(" two ", " france ").replace(" \0 ", " two ")
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, content in zip(paths, (text, swapped), strict=True):
        path.write_text(content, "utf-8")
    return paths


def test_words_that_are_exchanged_in_a_text_exchange_their_vectors(exchanged: list[Path], tmp_path: Path) -> None:
    result = w2v.slices(exchanged, tmp_path / "out", vector_size=50, epochs=8)
    one, other = (w2v.load(each.path) for each in result.slices.values())
    units = [model[["france", "two"]] for model in (one, other)]
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in units]
    cosines = units[0] @ units[1].T
    assert cosines[0, 1] > cosines[0, 0] + 0.05
    assert cosines[1, 0] > cosines[1, 1] + 0.05


# -- tagged words ---------------------------------------------------------------------------


def test_tagged_words_share_their_output_row(texts: list[Path], tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("france the\ntwo\n", "utf-8")
    result = w2v.slices(texts, tmp_path / "out", tag_words=words, **QUICK)
    assert [*models_in(tmp_path / "out")] == ["tagged.safetensors"]
    assert {name: (each.words, each.missing) for name, each in result.slices.items()} == {
        "1990s": (3, 0),
        "2010s": (2, 1),  # two was replaced
    }
    arguments = ["slices", *texts, "-o", tmp_path / "out", "--tag-words", words, "--resume"]
    shown = run(*arguments, "--vector-size", 8, "--epochs", 2, "--workers", 1).stdout.splitlines()
    assert [line.split() for line in shown[2:]] == [
        ["tagged", "words", "of", *row.split()] for row in ("1990s 3 0", "2010s 2 1")
    ]
    model = w2v.Model.load(result.compass)
    row = {word: number for number, word in enumerate(model.words)}
    assert not row.keys() & {"france", "the", "two", "two_2010s"}
    for word in "france", "the":
        early, late = row[f"{word}_1990s"], row[f"{word}_2010s"]
        np.testing.assert_array_equal(model.views["words"].outputs[early], model.views["words"].outputs[late])
        assert model.views["words"].outputs[early].any()
        assert (model.views["words"].inputs[early] != model.views["words"].inputs[late]).any()
    counts = [Counter(text.read_text("utf-8").split()) for text in texts]
    assert model.vocabulary.counts[row["the_1990s"]] == counts[0]["the"]
    assert model.vocabulary.counts[row["the_2010s"]] == counts[1]["the"]
    assert model.vocabulary.counts[row["of"]] == counts[0]["of"] + counts[1]["of"]


def test_tagging_a_word_of_one_text_only_renames_it(texts: list[Path], tmp_path: Path) -> None:
    tagged = w2v.slices(texts, tmp_path / "out", tag_words=["twain"], **QUICK)
    model, plain = w2v.Model.load(tagged.compass), w2v.train(texts, views="words", vectors="input", **QUICK)
    expected = ["twain_2010s" if word == "twain" else word for word in plain.words]
    assert model.words == expected
    np.testing.assert_array_equal(model.views["words"].inputs, plain.views["words"].inputs)
    np.testing.assert_array_equal(model.views["words"].outputs, plain.views["words"].outputs)


def test_shared_rows_are_drawn_by_the_counts_of_all_their_words() -> None:
    loss = make_loss([40, 30, 20, 10, 5], "sampled", negative=2)
    shared = share_outputs(loss, np.array([0, 1, 1, 3, 0], np.int32))
    weights = np.sqrt([45.0, 50, 0, 10, 0])
    table = shared.data["alias_table"].astype(np.float64)
    drawn = np.zeros(5)
    for entry, (threshold, alias) in enumerate(table):
        kept = (threshold + 1) / 2**32 if threshold else 0
        drawn[entry] += kept / 5
        drawn[int(alias)] += (1 - kept) / 5
    np.testing.assert_allclose(drawn, weights / weights.sum(), atol=1e-6)
    rows = [0, 1, 3]
    np.testing.assert_allclose(shared.data["offsets"][rows], np.log(2 * weights[rows] / weights.sum()), rtol=1e-5)
    assert np.isfinite(shared.data["offsets"]).all()


def test_forms_of_a_word_that_is_exchanged_in_a_text_differ(exchanged: list[Path], tmp_path: Path) -> None:
    words = ["france", "two", "king"]
    result = w2v.slices(exchanged, tmp_path / "out", tag_words=words, vector_size=50, epochs=8)
    vectors = w2v.load(result.compass)
    assert vectors.similarity("king_a", "king_b") > 0.9
    assert vectors.similarity("france_a", "two_b") > vectors.similarity("france_a", "france_b")
    assert vectors.similarity("two_a", "france_b") > vectors.similarity("two_a", "two_b")


def test_tagged_word_that_is_in_the_text_already_is_refused(texts: list[Path], tmp_path: Path) -> None:
    texts[0].write_text(texts[0].read_text("utf-8") + " the_2010s", "utf-8")
    with pytest.raises(w2v.W2VError, match="the text 1990s has the word 'the_2010s' already: rename the text"):
        w2v.slices(texts, tmp_path / "out", tag_words=["the"], **QUICK)


@pytest.mark.parametrize("options", [{}, {"loss": "nce", "model": "cbow"}], ids=str)
def test_stopped_run_of_tagged_words_is_resumed_to_the_same_bits(
    texts: list[Path], tmp_path: Path, options: dict[str, Any]
) -> None:
    arguments = {"tag_words": ["france", "the"], **QUICK, **options}
    expected = w2v.slices(texts, tmp_path / "whole", **arguments)
    states = {"checkpoint": tmp_path / "states", "checkpoint_every": "2chunks"}
    with pytest.raises(Stop):
        w2v.slices(texts, tmp_path / "out", progress=stop_at(0.3), **arguments, **states)
    assert models_in(tmp_path / "out") == {}
    with pytest.raises(w2v.W2VError, match=r"tagged.json belongs to another run, with tag_words .*: give the same"):
        w2v.slices(texts, tmp_path / "out", resume=True, **arguments | {"tag_words": ["france"]}, **states)
    found = w2v.slices(texts, tmp_path / "out", resume=True, **arguments, **states)
    assert Path(found.compass).read_bytes() == Path(expected.compass).read_bytes()
