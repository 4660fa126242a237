"""Vectors of texts, compared with the formulas in float64."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow.parquet
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._formats import matrices
from w2v._formats.header import ModelHeader
from w2v._text import corpus
from w2v._text.corpus import Corpus
from w2v._text.normalise import TextOptions
from w2v._text.subwords import Subwords
from w2v._vectors.encode import Encoder, encode
from w2v._vectors.keyed import KeyedVectors

TEXTS = ["Cat the cat", "", "fox unseen", "xyz", "the\nThe dog"]
WORDS = ["the", "cat", "dog", "fox"]


@pytest.fixture
def vectors() -> KeyedVectors:
    rng = np.random.default_rng(1)
    header = ModelHeader(text=TextOptions(lower=True, strip_markup=True), subwords=Subwords(3, 4, 50))
    ngrams = {"ngrams": rng.normal(size=(30, 3)).astype(np.float32), "ngram_buckets": np.arange(30, dtype=np.int32)}
    return KeyedVectors(WORDS, rng.normal(size=(4, 3)), [800, 150, 49, 1], tensors=ngrams, header=header)


def expected(vectors: KeyedVectors, texts: list[str], weights: str) -> np.ndarray:
    counts = dict(zip(WORDS, vectors.counts.tolist(), strict=True))
    formula = {"mean": lambda p: 1, "idf": lambda p: -np.log(p), "sif": lambda p: 1e-3 / (1e-3 + p)}[weights]
    weight = {word: formula(counts.get(word, 1) / 1000) for text in texts for word in [*WORDS, *vectors.words_in(text)]}
    common = sum(counts[word] / 1000 * weight[word] * vectors[word].astype(np.float64) for word in WORDS)
    common = common / np.linalg.norm(common) if weights == "sif" else np.zeros(3)
    found = []
    for text in texts:
        words = [word for word in vectors.words_in(text) if word in vectors]
        total = sum((weight[word] * vectors[word].astype(np.float64) for word in words), np.zeros(3))
        mean = total / (sum(weight[word] for word in words) or 1)
        found.append(mean - common * (common @ mean))
    return np.array(found)


@pytest.mark.parametrize("ngrams", [True, False])
@pytest.mark.parametrize("weights", ["mean", "idf", "sif"])
def test_vectors_match_the_formulas(
    vectors: KeyedVectors, weights: str, ngrams: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BLOCK_BYTES", "SIGNATURE_BYTES"):  # a text then begins in one block of the file and ends in another
        monkeypatch.setattr(f"w2v._text.corpus.{name}", 5)
    monkeypatch.setattr("w2v._vectors.encode.UNKNOWN_AT_ONCE", 1)
    if not ngrams:  # also without strip_markup, so that the encoder may process part of a line
        header = ModelHeader(text=TextOptions(lower=True))
        vectors = KeyedVectors(WORDS, vectors.vectors, vectors.counts, header=header)
    found = encode(vectors, TEXTS, weights)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(vectors, TEXTS, weights), atol=1e-6)
    assert found[3].any() == ngrams
    lists = encode(vectors, [text.split() for text in TEXTS], weights)
    np.testing.assert_array_equal(lists, found)
    (tmp_path / "texts").write_text("".join(text.replace("\n", " ") + "\n" for text in TEXTS))
    of_file = [*Encoder(vectors, weights).blocks(Corpus(tmp_path / "texts"))]
    np.testing.assert_allclose(np.concatenate(of_file), found, atol=1e-6)
    assert encode(vectors, [], weights).shape == (0, 3)
    encoder = Encoder(vectors, weights)
    assert sum(map(len, encoder.blocks(Corpus(iter(TEXTS[:4]))))) == encoder.texts == 4
    assert (encoder.words, encoder.unknown) == (6, 2 * (not ngrams))


@pytest.mark.parametrize("weights", ["mean", "idf", "sif"])
def test_a_word_with_a_count_of_0_counts_as_if_it_occurred_once(vectors: KeyedVectors, weights: Any) -> None:
    texts = ["the fox", "fox", "cat"]
    found = [encode(KeyedVectors(WORDS, vectors.vectors, [800, 150, 49, last]), texts, weights) for last in (0, 1)]
    assert np.isfinite(found[0]).all()
    np.testing.assert_array_equal(*found)


def test_weights_are_sif_by_default(vectors: KeyedVectors) -> None:
    np.testing.assert_array_equal(encode(vectors, TEXTS), encode(vectors, TEXTS, "sif"))
    found = np.concatenate([*Encoder(vectors).blocks(Corpus(iter(TEXTS[:2])))])
    np.testing.assert_array_equal(found, encode(vectors, TEXTS[:2]))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (pandas.DataFrame({"text": TEXTS}), "not a table: give one of its columns"),
        ({"text": TEXTS}, "not a table: give one of its columns"),
        ("great phone", r"not a single one: write \['great phone'\]"),
        (float("nan"), "not an object of type float"),
    ],
)
def test_other_objects_than_lists_of_texts_are_refused(vectors: KeyedVectors, texts: Any, message: str) -> None:
    with pytest.raises(w2v.W2VError, match=f"^a list of texts is needed, {message}$"):
        encode(vectors, texts)


def test_missing_texts_get_zeros(vectors: KeyedVectors) -> None:
    for texts in (
        ["the cat", None, "dog"],
        pandas.Series(["the cat", float("nan"), "dog"], range(5, 8)),
        [["the", "cat"], None, []],
        pyarrow.array(["the\ncat", None, "dog"]),
        pyarrow.chunked_array([["the cat", None], ["dog"]]),
    ):
        with pytest.warns(w2v.TextWarning, match=r"^gave zeros to 1 missing text \(None, NaN, or an empty") as caught:
            found = encode(vectors, texts)
        assert caught[0].filename == __file__
        assert not found[1].any()
        np.testing.assert_array_equal(found[0], encode(vectors, ["the cat"])[0])
        assert len(found) == 3


def test_weights_need_counts(vectors: KeyedVectors) -> None:
    plain = KeyedVectors(WORDS, vectors.vectors)
    with pytest.raises(w2v.SettingsError, match="weights sif: these vectors have no counts; choose mean"):
        encode(plain, TEXTS)
    with pytest.raises(w2v.SettingsError, match="weights 'tfidf': did you mean idf"):
        encode(vectors, TEXTS, "tfidf")
    with pytest.raises(w2v.SettingsError, match="weights None: choose from"):
        encode(vectors, TEXTS, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("end", matrices.WRITERS)
def test_every_line_becomes_a_row(vectors: KeyedVectors, tmp_path: Path, end: str) -> None:
    model, path = tmp_path / "m.safetensors", tmp_path / f"out{end}"
    vectors.save(model)
    texts = ["the <p>cat &amp; dog</p>", "", "fox"]
    found = run_json("encode", model, "-o", path, stdin="\n".join(texts))  # no newline at the end
    assert found | {"texts": 3, "words": 5, "unknown": 1, "vector_size": 3} == found
    rows = encode(vectors, ["the cat & dog", "", "fox"])
    if end == ".npy":
        read = np.load(path)
    elif end == ".tsv":
        read = np.loadtxt(path, np.float32)
    elif end == ".jsonl":
        read = np.array([json.loads(line)["vector"] for line in path.read_text().splitlines()], np.float32)
    else:
        opened = pyarrow.parquet.read_table(path) if end == ".parquet" else pyarrow.ipc.open_file(path).read_all()
        read = np.stack(opened["vector"].to_numpy())
    np.testing.assert_array_equal(read, rows)
    assert "exists" in run("encode", model, "-o", path, stdin="", code=1).stderr


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_every_table_row_becomes_a_row(vectors: KeyedVectors, tmp_path: Path, kind: str) -> None:
    model, table, path = tmp_path / "m.safetensors", tmp_path / f"t.{kind}", tmp_path / "o.npy"
    vectors.save(model)
    rows = [{"n": "1", "t": text} for text in ("the\ncat", None, "fox, <b>dog</b>")]
    if kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), table)
    elif kind == "jsonl":
        table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        table.write_text('n,t\n1,"the\ncat"\n1,\n1,"fox, <b>dog</b>"\n')
    assert "add --column NAME" in run("encode", model, table, "-o", path, code=1).stderr
    done = run("encode", model, table, "-o", path, "--column", "t", "--json")
    assert done.stderr.count("gave zeros to 1 missing text (None, NaN, or an empty field of CSV)") == 1
    assert json.loads(done.stdout) | {"texts": 3, "missing": 1, "words": 4, "unknown": 0} == json.loads(done.stdout)
    np.testing.assert_array_equal(np.load(path), encode(vectors, ["the cat", "", "fox, dog"]))


def test_unsuitable_texts_are_refused(vectors: KeyedVectors, tmp_path: Path) -> None:
    model = tmp_path / "m.safetensors"
    vectors.save(model)
    assert "use one of .npy," in run("encode", model, "-o", tmp_path / "o.bin", code=2).stderr
    problem = run("encode", model, "-o", tmp_path / "o.npy", stdin=b"a\nb\xff\n", code=1)
    assert "standard input: byte 3," in problem.stderr
    problem = run("encode", model, "-o", tmp_path / "o.npy", stdin=b"<b>a</b>\nb\xff\n", code=1)
    assert "standard input: byte 10," in problem.stderr  # counted with the markup
    assert not (tmp_path / "o.npy").exists()
    run("encode", model, "-o", tmp_path / "o.npy", "--errors", "replace", stdin=b"a\nb\xff\n")


def test_progress_counts_bytes(vectors: KeyedVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 100)
    (tmp_path / "text").write_bytes(b"the cat\n" * 1000)
    reports: list[w2v.Progress] = []
    found = np.concatenate(list(Encoder(vectors).blocks(Corpus(tmp_path / "text"), reports.append)))
    np.testing.assert_array_equal(found, encode(vectors, ["the cat"] * 1000))
    done = [report.done for report in reports]
    assert done == sorted(done)
    assert len(set(done)) > 5
    assert {report.total for report in reports} == {done[-1]} == {8000}
