"""Models of documents: training, tags, files, checkpoints, inference, and the command line."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import assert_same, run, run_json, train_and_stop
from w2v._formats import native
from w2v._losses.registry import LOSSES
from w2v._training.infer import Inference

KINDS = ["dbow", "dm", "dbow+words"]
TOPICS, TEXTS = 4, 48
OPTIONS: dict[str, Any] = {"vector_size": 16, "epochs": 40, "sample": 0, "workers": 1, "alpha": 0.1, "window": 1}
QUICK: dict[str, Any] = {"vector_size": 8, "epochs": 2, "workers": 1, "documents": "dbow"}


def make_texts(count: int = TEXTS) -> list[str]:
    """Return texts of 30 words. Text k has topic k % TOPICS, with 12 words of its own."""
    random = np.random.default_rng(3)
    return [
        " ".join(f"t{number % TOPICS}w{word}" for word in random.integers(0, 12, 30).tolist())
        for number in range(count)
    ]


TEXT = make_texts()


@pytest.fixture(scope="module")
def models() -> dict[str, w2v.Model]:
    return {kind: w2v.train(TEXT, documents=kind, **OPTIONS) for kind in KINDS}


@pytest.fixture(scope="module")
def files(models: dict[str, w2v.Model], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("documents")
    for kind, model in models.items():
        model.save(folder / f"{kind}.safetensors")
    return {kind: folder / f"{kind}.safetensors" for kind in models}


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_a_topic_are_neighbours(models: dict[str, w2v.Model], kind: str) -> None:
    documents = models[kind].documents
    assert documents.index_to_key == [*range(TEXTS)]
    found = [
        (number - other) % TOPICS for number in range(TEXTS) for other, _ in documents.most_similar(number, topn=3)
    ]
    assert np.mean(np.array(found) == 0) > 0.7  # by chance, it is 0.25


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_a_topic_are_neighbours(models: dict[str, w2v.Model], kind: str) -> None:
    assert {word[:2] for word, _ in models[kind].wv.most_similar("t1w3", topn=5)} == {"t1"}


@pytest.mark.parametrize("kind", KINDS)
def test_inferred_vectors_are_near_documents_of_the_topic(models: dict[str, w2v.Model], kind: str) -> None:
    model, new = models[kind], make_texts(TEXTS + 20)[TEXTS:]
    nearest = (unit(model.infer(new)) @ unit(model.documents.vectors).T).argmax(axis=1)
    assert np.mean(nearest % TOPICS == np.arange(20) % TOPICS) > 0.85


@pytest.mark.parametrize("kind", KINDS)
def test_inference_gives_the_same_bits_alone_in_batches_and_from_a_file(
    models: dict[str, w2v.Model], files: dict[str, Path], kind: str
) -> None:
    model = models[kind]
    inferred = model.infer(TEXT)
    np.testing.assert_array_equal(np.vstack([model.infer([text]) for text in TEXT[:5]]), inferred[:5])
    loaded = w2v.Model.load(files[kind])
    np.testing.assert_array_equal(loaded.infer([text.split() for text in reversed(TEXT)])[::-1], inferred)
    np.testing.assert_array_equal(loaded.documents.vectors, model.documents.vectors)
    np.testing.assert_array_equal(loaded.vectors, model.vectors)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).infer(TEXT[:3]), inferred[:3])
    assert not np.array_equal(model.infer(TEXT[:1], epochs=2), inferred[:1])
    assert not np.array_equal(model.infer(TEXT[:1], alpha=0.01), inferred[:1])


def test_inference_changes_no_row_of_the_model(models: dict[str, w2v.Model]) -> None:
    inference = Inference(models["dm"].views["words"])
    words, outputs = len(models["dm"].vocabulary), inference._parameters["outputs"].copy()
    rows = inference._inputs[:words].copy()
    inference._infer([np.array([0, 1, 2, 3], np.int32)])
    np.testing.assert_array_equal(inference._inputs[:words], rows)
    np.testing.assert_array_equal(inference._parameters["outputs"], outputs)
    np.testing.assert_array_equal(rows[:, :16], models["dm"].views["words"].inputs)


def test_each_text_has_its_own_random_numbers(models: dict[str, w2v.Model]) -> None:
    inference = Inference(models["dm"].views["words"])
    plans = [inference._plan_of(3, np.array(words, np.int32)) for words in ([0, 1, 2], [0, 1, 2], [0, 2, 1])]
    one, same, other = (plan.settings.seed for plan in plans)
    assert one == same != other


def test_texts_without_known_words_get_zeros(models: dict[str, w2v.Model]) -> None:
    vectors = models["dbow"].infer(["nothing known", "", "t0w1 unknown t0w2", "t0w1 t0w2"])
    assert not vectors[:2].any()
    np.testing.assert_array_equal(vectors[2], vectors[3])
    assert vectors[3].any()
    for text in "t0w1\ue000t0w2", ["t0w1\ue000t0w2"]:  # a space, as in training
        np.testing.assert_array_equal(models["dbow"].infer([text])[0], vectors[3])
    with pytest.raises(w2v.SettingsError, match="epochs 'auto': a new text needs a whole number"):
        models["dbow"].infer(TEXT, epochs="auto")  # type: ignore[arg-type]
    with pytest.warns(w2v.TextWarning, match="1 missing text"):
        assert not models["dbow"].infer([None]).any()


def test_long_texts_are_inferred_in_several_chunks(
    models: dict[str, w2v.Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = models["dbow"].infer(TEXT[:1])
    monkeypatch.setattr("w2v._training.infer.MAX_CHUNK_SIZE", 7)
    found = models["dbow"].infer(TEXT[:1])
    assert not np.array_equal(found, expected)  # other random numbers
    assert float(unit(found)[0] @ unit(expected)[0]) > 0.9


@pytest.mark.parametrize("loss", [name for name, kind in LOSSES.items() if "cython" in kind.kernels and name != "ova"])
@pytest.mark.parametrize("kind", ["dbow", "dm"])
def test_every_loss_trains_and_infers_documents(kind: str, loss: str) -> None:
    model = w2v.train(TEXT, documents=kind, loss=loss, **OPTIONS | {"epochs": 5})
    assert np.abs(model.documents.vectors).max(axis=1).mean() > 0.06  # it was below 0.04 at the start
    assert np.isfinite(model.infer(TEXT[:2])).all()


def test_bfloat16_stores_documents(tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    model = w2v.train(TEXT, documents="dm", storage="bf16", **OPTIONS)
    model.save(tmp_path / "model.safetensors")
    loaded = w2v.Model.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.infer(TEXT[:3]), model.infer(TEXT[:3]))
    assert {other % TOPICS for other, _ in loaded.documents.most_similar(1, topn=3)} == {1}


def test_documents_may_share_tags_and_have_several() -> None:
    tags = [[f"topic {number % TOPICS}", number] for number in range(TEXTS)]
    model = w2v.train(TEXT, documents="dbow", tags=tags, **OPTIONS)
    assert model.documents.index_to_key[:2] == ["topic 0", "0"]
    assert len(model.documents) == TEXTS + TOPICS
    assert {int(other) % TOPICS for other, _ in model.documents.most_similar("topic 1", topn=5)} == {1}


def test_table_names_the_tags(tmp_path: Path) -> None:
    table = tmp_path / "texts.jsonl"
    rows = [{"text": text, "id": [f"d{number}"]} for number, text in enumerate(TEXT)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    model = w2v.train(table, column="text", tags="id", **QUICK)
    assert model.documents.index_to_key == [f"d{number}" for number in range(TEXTS)]
    in_memory = w2v.train(TEXT, tags=[f"d{number}" for number in range(TEXTS)], **QUICK)
    np.testing.assert_array_equal(model.documents.vectors, in_memory.documents.vectors)


def test_documents_are_numbered_by_lines_of_a_file_and_by_texts_of_a_list(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join([TEXT[0], "", *TEXT[1:]]), "utf-8")
    model = w2v.train(path, **QUICK)
    assert model.documents.index_to_key == [*range(TEXTS + 1)]
    several_lines = w2v.train([text.replace(" ", "\n") for text in TEXT], **QUICK)
    assert several_lines.documents.index_to_key == [*range(TEXTS)]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_resume_is_bit_identical(tmp_path: Path, kind: str, workers: int) -> None:
    texts = TEXT * (60 if workers == 1 else 4)  # deterministic threads have shorter chunks
    tags = [number % 50 for number in range(len(texts))]
    options = QUICK | {"documents": kind, "epochs": 3, "tags": tags, "workers": workers, "deterministic": workers > 1}
    train_and_stop(tmp_path / "states", texts, 0.4, **options)
    resumed = w2v.resume(tmp_path / "states", texts, tags=tags)
    complete = w2v.train(texts, **options)
    assert_same(resumed, complete)
    np.testing.assert_array_equal(resumed.documents.vectors, complete.documents.vectors)


@pytest.mark.parametrize("vocab", ["old", "union"])
def test_continued_model_keeps_tags_and_adds_new_ones(vocab: str) -> None:
    tags = [f"d{number}" for number in range(TEXTS)]
    model = w2v.train(TEXT[:24], documents="dbow", tags=tags[:24], **OPTIONS)
    more = w2v.train(TEXT[20:], continue_from=model, vocab=vocab, tags=tags[20:], alpha=0.1, workers=1)
    assert more.documents.index_to_key == tags
    np.testing.assert_array_equal(more.documents.vectors[:20], model.documents.vectors[:20])
    assert not np.array_equal(more.documents["d20"], model.documents["d20"])
    assert {int(other[1:]) % TOPICS for other, _ in more.documents.most_similar("d45", topn=5)} == {1}


def test_model_without_documents_says_how_to_get_them() -> None:
    model = w2v.train(TEXT, **QUICK | {"documents": None})
    for use in (lambda: model.documents, lambda: model.infer(TEXT)):
        with pytest.raises(w2v.SettingsError, match="no documents: train with --documents"):
            use()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"documents": "pv"}, "documents 'pv': choose from dbow, dm, dbow"),
        ({"model": "cbow"}, "documents dbow: it needs model skipgram, not cbow"),
        ({"subwords": "3-6"}, "cannot be combined with subwords"),
        ({"stop_early": 1}, "cannot be combined with stop_early"),
        ({"views": "words+subwords"}, "a model has one view"),
        ({"phrases": True}, "cannot be combined with --phrases"),
        ({"graph": True}, "cannot be combined with --graph"),
        ({"documents": None, "tags": "id"}, "no effect without --documents"),
        ({"documents": None, "tags": [1]}, "no effect without --documents"),
        ({"tags": [1.5] * TEXTS}, "row 1: the label or tag 1.5 is neither text nor a whole number"),
        ({"tags": [None] * TEXTS}, "no text has a tag: all of them are missing"),
        ({"tags": ["a"]}, "more texts than 1 tag: give one tag, or list, for each"),
        ({"tags": [2.0**60] * TEXTS}, "neither text nor a whole number"),
        ({"tags": ["a\ue001b"] * TEXTS}, r"row 1: the label or tag 'a\\ue001b' has a private character"),
        ({"tags": "id"}, "needs --column"),
        ({"max_types": 20}, "more words and tags than --max-types"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.W2VError, match=message):
        w2v.train(TEXT, **QUICK | options)


def test_other_uses_are_refused(models: dict[str, w2v.Model], tmp_path: Path) -> None:
    (path := tmp_path / "texts.txt").write_text("\n".join(TEXT), "utf-8")
    with pytest.raises(w2v.SettingsError, match="continued with --tags"):
        w2v.train(TEXT, continue_from=models["dbow"])
    with pytest.raises(w2v.SettingsError, match="for files, name the column"):
        w2v.train(path, tags=["a"], **QUICK)
    with pytest.raises(w2v.SettingsError, match="tune searches settings for words"):
        w2v.tune(path, time="1s", documents="dm")
    with pytest.raises(w2v.SettingsError, match="slices train words"):
        w2v.slices({"a": path, "b": path}, tmp_path / "slices", documents="dm")
    with pytest.raises(w2v.W2VError, match=r"row 1: the text .* is neither text nor a list of words"):
        w2v.train([[1, 2]] * 9, **QUICK)


def test_texts_without_a_tag_train_only_words(caplog: pytest.LogCaptureFixture) -> None:
    model = w2v.train(TEXT, tags=[None, *range(1, TEXTS)], **QUICK | {"documents": "dm"})
    assert model.documents.index_to_key == [*range(1, TEXTS)]
    assert "1 text without a tag" in caplog.text


def test_whole_numbers_in_a_column_of_floats_are_tags() -> None:
    assert w2v.train(TEXT, tags=[np.nan, *np.arange(1.0, TEXTS)], **QUICK).documents.index_to_key == [*range(1, TEXTS)]


def test_command_trains_saves_and_infers_documents(tmp_path: Path) -> None:
    (path := tmp_path / "texts.txt").write_text("\n".join(TEXT), "utf-8")
    model, documents, vectors = (tmp_path / name for name in ("m.safetensors", "d.vec", "v.npy"))
    options = ["--documents", "dbow", "--size", "16", "--epochs", "40", "--sample", "0", "--workers", "1"]
    run("train", path, "-o", model, *options, "--alpha", "0.1", "--save-documents", documents)
    assert {int(other) % TOPICS for other, _ in w2v.load(documents).most_similar("5", topn=3)} == {1}
    found = run_json("encode", model, path, "-o", vectors)
    assert (found["weights"], found["texts"], found["words"], found["unknown"]) == ("infer", TEXTS, 30 * TEXTS, 0)
    np.testing.assert_array_equal(np.load(vectors), w2v.Model.load(model).infer(TEXT))
    assert run_json("encode", model, path, "-o", vectors, "--weights", "mean", "--force")["weights"] == "mean"
    run("train", path, "-o", tmp_path / "x.bin", "--save-documents", tmp_path / "y.vec", code=2)


def test_command_warns_before_documents_are_lost(tmp_path: Path) -> None:
    (path := tmp_path / "texts.csv").write_text("tag,text\n" + "".join(f"a b,{text}\n" for text in TEXT), "utf-8")
    options = [path, "--column", "text", "--tags", "tag", "--documents", "dbow", "--epochs", "1", "-o"]
    lost = "no.bin has no documents: write .safetensors to keep them, or their vectors with --save-documents FILE"
    assert lost in run("train", *options, tmp_path / "no.bin").stderr
    saved = run("train", *options, tmp_path / "yes.bin", "--save-documents", tmp_path / "tags.safetensors")
    assert "no documents" not in saved.stderr
    failed = run("train", *options, model := tmp_path / "model.bin", "--save-documents", tmp_path / "d.vec", code=1)
    assert "cannot store the white space in 'a b'" in failed.stderr
    assert not model.exists()


def test_damaged_documents_are_refused(files: dict[str, Path], tmp_path: Path) -> None:
    tensors, metadata = native.read_native(files["dm"])
    for name, array in ("documents", tensors["documents"][:5]), ("tag_offsets", tensors["tag_offsets"][:-2]):
        native.write_native(path := tmp_path / f"{name}.safetensors", tensors | {name: array}, metadata)
        with pytest.raises(w2v.W2VError, match="damaged"):
            w2v.Model.load(path)
    native.write_native(path, {name: tensors[name] for name in tensors if name != "documents"}, metadata)
    with pytest.raises(w2v.W2VError, match="damaged: its documents do not fit its settings"):
        w2v.Model.load(path)


def test_query_finds_documents_by_tag_and_by_text(models: dict[str, w2v.Model], files: dict[str, Path]) -> None:
    model, query = models["dm"], ["query", files["dm"], "--documents", "--topn", "3", "--json"]
    nearest = [
        {"document": tag, "score": pytest.approx(score)} for tag, score in model.documents.most_similar(7, topn=3)
    ]
    assert run_json(*query, "7") == {"query": "7", "is_tag": True, "found": nearest}
    found = model.documents.most_similar(model.infer([TEXT[4]])[0], topn=3)
    by_text = run(*query[:-1], *TEXT[4].split())
    assert [line.split()[0] for line in by_text.stdout.splitlines()[1:]] == [str(tag) for tag, _ in found]
    assert by_text.stderr == f"w2v: no document has the tag {TEXT[4][:60]!r}, so it is a text\n"
    assert "holds no word that the model knows" in run(*query[:-1], "unknown", code=1).stderr
    assert "--documents takes no --vector" in run(*query, "7", "--vector", code=2).stderr
