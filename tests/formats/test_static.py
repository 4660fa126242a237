"""Folders of static embeddings: model2vec loads the folders of w2v, and w2v loads the folders of model2vec."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import w2v
from tests.helpers import assert_refused
from w2v._formats.header import ModelHeader
from w2v._text.normalise import TextOptions

WORDS = ["the", "Köln", "a"]


@pytest.fixture
def vectors() -> w2v.KeyedVectors:
    return w2v.KeyedVectors(WORDS, np.random.default_rng(1).standard_normal((3, 4)))


@pytest.mark.parametrize("lower", [False, True])
def test_model2vec_loads_written_folders(tmp_path: Path, vectors: w2v.KeyedVectors, lower: bool) -> None:
    model2vec = pytest.importorskip("model2vec")
    if lower:
        vectors = w2v.KeyedVectors(
            [word.lower() for word in WORDS], vectors.vectors, header=ModelHeader(text=TextOptions(lower=True))
        )
    vectors.save(tmp_path / "m.model2vec")
    loaded = model2vec.StaticModel.from_pretrained(str(tmp_path / "m.model2vec"), normalize=False)
    texts = ["the Köln", "a  a the unknown", "THE"]
    found = loaded.encode(texts, use_multiprocessing=False)
    for text, vector in zip(texts, found, strict=True):
        known = [word for word in (text.lower() if lower else text).split() if word in vectors]
        expected = vectors[known].mean(axis=0) if known else np.zeros(4)
        np.testing.assert_allclose(vector, expected, atol=1e-6)
    again = model2vec.StaticModel.from_pretrained(str(tmp_path / "m.model2vec"))
    assert again.normalize


def test_the_layout_is_what_sentence_transformers_expects(tmp_path: Path, vectors: w2v.KeyedVectors) -> None:
    """StaticEmbedding averages the rows of all tokens, so the row of unknown words is zero; see its `load`."""
    vectors.header = ModelHeader({"loss": "ns", "window": 5, "seed": None})
    vectors.save(tmp_path / "m.model2vec")
    modules: list[dict[str, Any]] = json.loads((tmp_path / "m.model2vec" / "modules.json").read_text())
    assert [module["type"].rpartition(".")[2] for module in modules] == ["StaticEmbedding", "Normalize"]
    matrix = load_file(tmp_path / "m.model2vec" / "model.safetensors")["embeddings"]
    np.testing.assert_array_equal(matrix, np.vstack([vectors.vectors, np.zeros((1, 4), np.float32)]))
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "m.model2vec" / "tokenizer.json"))
    assert tokenizer.encode("Köln  the\tköln").ids == [1, 0, 3]
    card = (tmp_path / "m.model2vec" / "README.md").read_text("utf-8")
    assert card.startswith("---\nlibrary_name: model2vec\n")
    assert "| window | 5 |" in card
    assert "converted by w2v" in card  # fastText files have settings, too, but were not trained by w2v
    assert "seed" not in card


@pytest.mark.parametrize("words", [["a", "[UNK]"], ["[UNK]", "b", "[[UNK]]"], ["[[UNK]]"]])
def test_a_vocabulary_may_contain_the_usual_names_of_the_unknown_token(tmp_path: Path, words: list[str]) -> None:
    vectors = w2v.KeyedVectors(words, np.eye(len(words)))
    vectors.save(tmp_path / "m.model2vec")
    found = w2v.load(tmp_path / "m.model2vec")
    assert found.index_to_key == words
    np.testing.assert_array_equal(found.vectors, vectors.vectors)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_folders_of_model2vec_are_read(tmp_path: Path, dtype: type) -> None:
    model2vec = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "the": 2, "##s": 3}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    rows = np.random.default_rng(1).standard_normal((2, 5)).astype(dtype)
    options = {"weights": np.array([1, 1, 2, 0.5]), "token_mapping": np.array([0, 0, 1, 1])}
    model2vec.StaticModel(rows, tokenizer, **options).save_pretrained(str(tmp_path / "theirs"))
    found = w2v.load(tmp_path / "theirs")
    assert found.index_to_key == ["[PAD]", "the", "##s"]
    np.testing.assert_allclose(found.vectors, rows[[0, 1, 1]] * np.array([[1], [2], [0.5]]), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("tokenizer.json", b'{"model": {"vocab": {"a": 9}}}', "its tokens do not fit its matrix"),
        ("tokenizer.json", b'{"model": {"vocab": {"a": -9}}}', "damaged"),
        ("tokenizer.json", b'{"model": {"vocab": {"a": 9999999999999999999}}}', "damaged"),
        ("tokenizer.json", b'{"model": {"vocab": {"a": 1e99}}}', "damaged"),
        ("tokenizer.json", b'{"model": {"vocab": {}}}', "0 words"),
        ("tokenizer.json", b'{"model": {"vocab": {"a": 0, "b": [1]}}}', "damaged"),
        ("tokenizer.json", b'{"model": {"vocab": [["a", 0.5], ["b"]]}}', "damaged"),
        ("tokenizer.json", b'{"model": {"vocab": "a"}}', "damaged"),
        ("tokenizer.json", b'{"model": ' + b"[" * 9999, "damaged"),
        ("tokenizer.json", b"\xff", "damaged"),
        ("model.safetensors", {"embedding.weight": np.ones(4, np.float32)}, "do not fit its matrix|vectors of shape"),
        ("model.safetensors", {"other": np.ones((4, 2), np.float32)}, "do not fit its matrix"),
        ("model.safetensors", {"embeddings": np.full((4, 2), np.nan, np.float32)}, "NaN"),
        ("model.safetensors", {"embeddings": np.ones((4, 2), np.float32), "mapping": np.full(4, 7)}, "do not fit"),
        *(
            ("model.safetensors", {"embeddings": np.ones((4, 2), np.float32), "mapping": mapping}, "do not fit")
            for mapping in (np.full(4, -1), np.full(4, 0.5), np.zeros((4, 1), np.int64), np.full(4, 1 << 63, np.uint64))
        ),
        ("model.safetensors", b"cut", "truncated"),
    ],
)
def test_damaged_folders_are_refused(
    tmp_path: Path, vectors: w2v.KeyedVectors, name: str, data: Any, message: str
) -> None:
    vectors.save(tmp_path / "m.model2vec")
    path = tmp_path / "m.model2vec" / name
    path.write_bytes(data) if isinstance(data, bytes) else save_file(data, path)
    assert_refused(tmp_path / "m.model2vec", message)


def test_tokens_may_have_quotes_and_backslashes(tmp_path: Path) -> None:
    words = ['"', "\\", '\\"', '\\\\"\\', "\\u0061", "a"]
    w2v.KeyedVectors(words, np.eye(6)).save(tmp_path / "m.model2vec")
    assert w2v.load(tmp_path / "m.model2vec").index_to_key == words
