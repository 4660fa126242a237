"""Classifiers in fastText's files, dense and quantized. The tests write them and predict with code of their own."""

import gzip
import math
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.faults.fasttext_classifier import LABELS, WORDS, File
from tests.helpers import assert_refused, run, run_json
from w2v._errors import W2VError
from w2v._formats import registry
from w2v.fasttext import load_model

TEXTS = ["ab", "ab köln ab", "c ab unknown dé", "unknown", "", "c\tköln c c __label__y"]


def rows_of(file: File, text: str) -> list[int]:
    """Return the rows of a text as fastText finds them."""
    tokens = [token for token in text.split() if not token.startswith("__label__")] + ["</s>"]
    rows, buckets, hashes = [], [], [np.uint32(fnv(token.encode())).view(np.int32).item() for token in tokens]
    for token in tokens:
        if token in WORDS:
            rows.append([*WORDS].index(token))
        marked = f"<{token}>" if token != "</s>" and file.longest else ""
        for start in range(len(marked)):
            for end in range(start + file.shortest, min(start + file.longest, len(marked)) + 1):
                buckets.append(fnv(marked[start:end].encode()) % file.buckets)
    for at, value in enumerate(hashes):
        for other in hashes[at + 1 : at + file.word_ngrams]:
            value = (value * 116049371 + other) % 2**64
            buckets.append(value % file.buckets)
    for bucket in buckets:
        if file.kept is None:
            rows.append(len(WORDS) + bucket)
        elif bucket in file.kept:
            rows.append(len(WORDS) + [*file.kept].index(bucket))
    return rows


def probabilities(file: File, text: str) -> list[float]:
    """Return the probability of each label as fastText computes it."""
    hidden = file.inputs[rows_of(file, text)].astype(float).mean(axis=0)
    scores = file.outputs.astype(float) @ hidden
    if file.loss == 1:  # z and y share a node, which is as frequent as x: branch 1 of the root is x
        pair, root = (1 / (1 + math.exp(-score)) for score in scores[:2])
        return [root + 1e-5, (1 - root + 1e-5) * (pair + 1e-5), (1 - root + 1e-5) * (1 - pair + 1e-5)]
    if file.loss == 3:
        powers = np.exp(scores - scores.max())
        return [float(each) for each in powers / powers.sum() + 1e-5]
    points = [math.floor((min(max(score, -8), 8) + 8) * 32) / 32 - 8 for score in scores]
    return [1 / (1 + math.exp(-point)) + 1e-5 for point in points]


def fnv(data: bytes) -> int:
    value = 2166136261
    for byte in np.frombuffer(data, np.int8).tolist():
        value = (value ^ (byte & 0xFFFFFFFF)) * 16777619 & 0xFFFFFFFF
    return value


def kept(number: int) -> list[int]:
    return np.random.default_rng(2).permutation(31)[:number].tolist()


FILES = {
    "hs": File(loss=1),
    "ns": File(loss=2, word_ngrams=1),
    "softmax": File(word_ngrams=3, shortest=0, longest=0),
    "ova": File(loss=4, longest=5),
    "quantized": File(part_size=2),
    "norms": File(part_size=3, is_normalised=True, loss=4),
    "pruned": File(part_size=4, kept=kept(11), is_normalised=True, quantized_outputs=True, loss=1),
    "all buckets pruned": File(part_size=5, kept=[], loss=2),
}


@pytest.mark.parametrize("name", FILES)
def test_classifiers_of_fasttext_predict_as_fasttext_does(name: str, tmp_path: Path) -> None:
    file, path = FILES[name], tmp_path / "m.bin"
    path.write_bytes(file.data())
    model = w2v.load(path)
    assert isinstance(model, w2v.Classifier)
    assert (model.labels, model.features.vocabulary.counts.tolist()) == ([*LABELS], [*WORDS.values()])
    expected = [probabilities(file, text) for text in TEXTS]
    found = model.predict_proba(TEXTS)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    for text, probabilities_in_list in zip(TEXTS, found, strict=True):  # a single text gets the same bits
        np.testing.assert_array_equal(model.predict_proba([text])[0], probabilities_in_list)
    model.save(tmp_path / "m.safetensors")
    again = w2v.Classifier.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))


@pytest.mark.parametrize("name", FILES)
def test_classifiers_are_written_as_they_were_read(name: str, tmp_path: Path) -> None:
    file, path = FILES[name], tmp_path / "m.bin"
    data, extension = file.data(), ".ft.bin" if file.part_size is None else ".ftz"
    if name == "hs":  # fastText never uses the last output row
        data = data[: -4 * file.size] + bytes(4 * file.size)
    path.write_bytes(data)
    registry.write(tmp_path / f"copy{extension}", registry.read(path))
    copy = (tmp_path / f"copy{extension}").read_bytes()
    tokens = 12 + 3 * 4 + 24 + 8 + 16 + 12  # the place of the number of tokens, which the test chose freely
    assert copy[: tokens - 8] == data[: tokens - 8]
    assert copy[tokens:] == data[tokens:]


def read_quantized_matrices(data: bytes) -> list[Any]:
    """Return the input and output rows at the end of a file, decoded with code of its own."""
    words, labels, _, pruned = struct.unpack("<2i2q", data[68:92])
    at, matrices = 92, []
    for _ in range(words + labels):
        at = data.index(b"\0", at) + 10
    at += 8 * max(0, pruned)

    def take(kind: str, size: int) -> Any:
        nonlocal at
        at += np.dtype(kind).itemsize * size
        return np.frombuffer(data, kind, size, at - np.dtype(kind).itemsize * size)

    def decode(codes: Any) -> Any:
        _, parts, size, last = take("<i4", 4)
        sizes = [size] * (parts - 1) + [last]
        return np.concatenate(
            [take("<f4", 256 * own).reshape(256, own)[codes[:, part]] for part, own in enumerate(sizes)], axis=1
        )

    for _ in range(2):
        is_quantized = take("?", 1)[0]
        has_norms = take("?", 1)[0] if is_quantized else False
        rows, columns = take("<i8", 2)
        if is_quantized:
            matrix = decode(take("u1", take("<i4", 1)[0]).reshape(rows, -1))
            matrix = matrix * decode(take("u1", rows)[:, None]) if has_norms else matrix
        else:
            matrix = take("<f4", rows * columns).reshape(rows, columns)
        matrices.append(matrix)
    assert at == len(data)
    return matrices


@pytest.mark.parametrize("loss", ["softmax", "hs", "ova"])
def test_trained_classifiers_are_quantised(loss: str, tmp_path: Path) -> None:
    texts = [f"a{n % 7} b{n % 5} c{n % 3}" for n in range(120)]
    fixed = {"pooling": "mean", "vector_size": 5, "buckets": 300, "workers": 1, "epochs": 20}
    model = w2v.train_classifier(texts, [f"l{n % 3}" for n in range(120)], loss=loss, **fixed)
    path = tmp_path / "m.ftz"
    model.save(path)
    again = w2v.Classifier.load(path)
    inputs, outputs = read_quantized_matrices(path.read_bytes())
    np.testing.assert_array_equal(again.inputs, inputs)
    np.testing.assert_array_equal(again.outputs, -outputs[:-1] if loss == "hs" else outputs)
    words, ngrams = np.split(model.inputs, [len(model.features.vocabulary)])
    rows = np.concatenate([words, ngrams[np.argsort(model.features.buckets)]])
    assert np.abs(inputs - rows).max() < 0.05 * np.abs(rows).max()
    np.testing.assert_allclose(again.predict_proba(texts), model.predict_proba(texts), atol=0.02)
    again.save(tmp_path / "copy.ftz")
    assert (tmp_path / "copy.ftz").read_bytes() == path.read_bytes()


def test_only_classifiers_are_quantised(tmp_path: Path) -> None:
    vectors = w2v.KeyedVectors(["a"], np.ones((1, 2), np.float32))
    with pytest.raises(w2v.W2VError, match="not written: this format stores only classifiers"):
        vectors.save(tmp_path / "m.ftz")
    vectors.save(tmp_path / "m.bin")
    run("convert", tmp_path / "m.bin", tmp_path / "m.ftz", code=2)


def test_the_rows_of_a_file_are_not_copied(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(FILES["ova"].data())
    stored = registry.read(tmp_path / "m.bin")
    model = w2v.Classifier.from_vector_file(stored, "the model")
    assert np.shares_memory(model.inputs, stored.vectors)
    np.testing.assert_array_equal(model.inputs, FILES["ova"].inputs)
    stored.tensors["text_ngrams"] = stored.tensors["text_ngrams"].copy()
    again = w2v.Classifier.from_vector_file(stored, "the model")
    np.testing.assert_array_equal(again.inputs, model.inputs)


@pytest.mark.parametrize("name", ["hs", "softmax", "pruned"])
def test_mapped_classifiers_predict_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(FILES[name].data())
    mapped, read = (w2v.Classifier.load(path, mmap=mmap) for mmap in (True, False))
    np.testing.assert_allclose(mapped.predict_proba(TEXTS), read.predict_proba(TEXTS), atol=1e-6)
    assert load_model(path, mmap=True).predict("ab c")[0] == load_model(path).predict("ab c")[0]
    path.with_suffix(".bin.gz").write_bytes(gzip.compress(path.read_bytes()))
    again = w2v.load(path.with_suffix(".bin.gz"), mmap=True)  # is read
    np.testing.assert_array_equal(again.predict_proba(TEXTS), read.predict_proba(TEXTS))
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))
    assert np.any(mapped.inputs) == (name == "pruned")  # which is quantized, and so read


def test_files_that_cannot_be_mapped_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(FILES["softmax"].data()[:-500])
    with pytest.raises(W2VError, match=r"m\.bin: truncated"):
        w2v.Classifier.load(path, mmap=True)
    w2v.KeyedVectors(["a", "b"], np.eye(2, dtype=np.float32)).save(tmp_path / "words.ft.bin")
    with pytest.raises(W2VError, match=r"words\.ft\.bin: a fastText model of words cannot be memory-mapped: convert"):
        w2v.load(tmp_path / "words.ft.bin", mmap=True)


def test_commands_use_classifiers_of_fasttext(tmp_path: Path) -> None:
    path, texts = tmp_path / "m.bin", tmp_path / "texts.txt"
    path.write_bytes(FILES["softmax"].data())
    texts.write_text("__label__x ab\n__label__z c c\n")
    expected = np.array([probabilities(FILES["softmax"], text) for text in ("ab", "c c")])
    printed = [line.split("\t") for line in run("predict", path, texts).stdout.splitlines()]
    assert [label for label, _ in printed] == [[*LABELS][best] for best in expected.argmax(axis=1)]
    assert [float(probability) for _, probability in printed] == pytest.approx(expected.max(axis=1), abs=2e-6)
    scores = run_json("evaluate", path, "--labelled", texts)["classifiers"][0]
    assert (scores["texts"], scores["accuracy"]) == (2, (expected.argmax(axis=1) == [0, 2]).mean())
    shown = run_json("info", path)
    assert (shown["classifier"]["labels"], shown["settings"]["loss"]) == (3, "softmax")


def test_a_classifier_of_fasttext_is_continued_with_its_own_rules(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(FILES["pruned"].data())
    model = w2v.Classifier.load(tmp_path / "m.bin")
    options: dict[str, Any] = {"epochs": 20, "workers": 1}
    further = w2v.train_classifier(["ab c new", "köln"] * 20, ["x", "z"] * 20, continue_from=model, **options)
    assert [pairs[0][0] for pairs in further.predict(["ab c", "köln"])] == ["x", "z"]
    assert set(further.features.vocabulary.words) == set(WORDS)  # a pruned classifier learns no new rows
    np.testing.assert_array_equal(further.features.buckets, model.features.buckets)
    assert (further.options.pruned, further.features.pruned, further.quantised) == (True, True, None)


@pytest.mark.parametrize(("prefix", "expected"), [("__label__", "__label__"), ("#", "#"), ("__lang__", "__lang__")])
def test_the_prefix_of_labels_is_found(prefix: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(File(prefix=prefix).data())
    model = w2v.Classifier.load(tmp_path / "m.bin")
    assert (model.labels, model.features.label_prefix) == ([*LABELS], expected)


def test_version_11_had_no_character_ngrams(tmp_path: Path) -> None:
    file = File(changes={"version": 11})
    (tmp_path / "m.bin").write_bytes(file.data())
    file.longest = 0
    found = w2v.Classifier.load(tmp_path / "m.bin").predict_proba(TEXTS)
    np.testing.assert_allclose(found, [probabilities(file, text) for text in TEXTS], atol=2e-6)


DAMAGED: dict[str, tuple[File, str]] = {
    "no labels": (File(changes={"labels": 0}), "damaged: a classifier with 0 labels"),
    "labels": (File(changes={"labels": 2}), "damaged: it declares 5 words, 2 labels and 8 entries"),
    "order": (File(changes={"labels": 2, "words": 6}), "damaged: entry 6 has type 1; expected 0"),
    "many": (File(changes={"labels": 1 << 30, "entries": 5 + (1 << 30)}), "truncated: it should hold 1,073,741,829"),
    "words": (File(changes={"word_ngrams": 11}), "refused: n-grams of 11 words; at most 10 are read"),
    "dense and pruned": (File(kept=[1, 2]), "damaged: n-grams were pruned, but it is not quantized"),
    "buckets": (File(kept=[1], part_size=2, changes={"buckets": 1 << 27}), "refused: 134,217,728 buckets of n-grams"),
    "bucket": (File(kept=[1, 31], part_size=2), "damaged: its list of pruned n-grams is inconsistent"),
    "bucket twice": (File(kept=[1, 1], part_size=2), "damaged: its labels and n-grams are inconsistent"),
    "pairs": (File(changes={"pruned": 1 << 40}, part_size=2), "truncated"),
    "rows": (File(changes={"buckets": 30}), "damaged: a matrix of 36 by 5 values; expected 35 by 5"),
    "size": (File(changes={"dim": 6}, part_size=2), "damaged: a matrix of 36 by 5 values; expected 36 by 6"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_classifiers_are_refused(name: str, tmp_path: Path) -> None:
    file, message = DAMAGED[name]
    (tmp_path / "m.bin").write_bytes(file.data())
    with pytest.raises(w2v.W2VError, match=message) as caught:
        w2v.Classifier.load(tmp_path / "m.bin")
    assert "\n" not in str(caught.value)


def test_ngrams_with_nan_are_refused(tmp_path: Path) -> None:
    data, path = FILES["ova"].data(), tmp_path / "m.bin"
    place = len(data) - 17 - 4 * 5 * 3 - 4  # the last value of the input matrix
    nan = struct.pack("<f", math.nan)
    assert_refused(path, "row 31 of text_ngrams holds NaN", data[:place] + nan + data[place + 4 :])


def test_damaged_quantizers_are_refused(tmp_path: Path) -> None:
    data, path = FILES["norms"].data(), tmp_path / "m.ftz"
    start = data.index(struct.pack("<4i", 5, 2, 3, 2))
    codes = start - 4 - 36 * 2
    for place, value, message in (
        (codes, 36 * 3, "damaged: a quantizer of .* parts of .* values; rows have 5 values"),
        (codes, 36 * 2 + 1, "damaged: 73 codes for 36 rows of 5 values"),
        (codes, -36, "damaged: -36 codes for 36 rows of 5 values"),
        (start, 6, "damaged: a quantizer of 2 parts of 3 values; rows have 5 values"),
        (start + 8, 2, "damaged: a quantizer of 2 parts of 2 values"),
        (start + 12, 0, "damaged: a quantizer of 2 parts of 3 values"),
        (start + 16, 0x7FC00000, "damaged: its quantizer holds NaN or infinite values"),
    ):
        assert_refused(path, message, data[:place] + struct.pack("<i", value) + data[place + 4 :])
    for size in range(len(data) - 1, 0, -997):
        assert_refused(path, "truncated|empty|not a", data[:size])


def test_classifiers_that_fasttext_cannot_represent_are_refused(tmp_path: Path) -> None:
    texts, labels, path = ["one two", "three four"] * 9, ["a", "b"] * 9, tmp_path / "m.ft.bin"
    for options, message in (
        ({}, "this format cannot store the weights of idf pooling: train with --pooling mean, or write .safetensors"),
        ({"pooling": "mean", "loss": "ns"}, "fastText would compute other probabilities with loss ns"),
        ({"pooling": "mean", "loss": "hs", "tree": "balanced"}, "other probabilities with loss hs"),
    ):
        model = w2v.train_classifier(texts, labels, epochs=1, vector_size=2, **options)
        with pytest.raises(w2v.W2VError, match=message):
            model.save(path)
    (tmp_path / "m.ftz").write_bytes(FILES["pruned"].data())
    with pytest.raises(w2v.W2VError, match="its n-grams were pruned"):
        w2v.Classifier.load(tmp_path / "m.ftz").save(path)
    assert not path.exists()


@pytest.mark.parametrize(
    "options",
    [{"loss": "softmax", "subwords": "2-3"}, {"loss": "ova"}, {"loss": "hs"}, {"loss": "ova", "several": True}],
    ids=str,
)
def test_written_classifiers_predict_the_same_but_for_the_number_that_fasttext_adds(
    options: dict[str, Any], tmp_path: Path
) -> None:
    several = options.pop("several", False)
    labels = [["very a", "c"] if several else "very a", "b", "c"] * 30
    fixed = {"pooling": "mean", "classifier": "embedded", "vector_size": 4, "buckets": 50, "workers": 1}
    model = w2v.train_classifier(["one two", "three four", "five two"] * 30, labels, epochs=2, **fixed | options)
    model = replace(model, temperature=1.5)
    model.save(tmp_path / "m.ft.bin")
    again = w2v.Classifier.load(tmp_path / "m.ft.bin")
    assert again.labels == model.labels
    texts = ["one two", "four two", "five"]
    tolerance = 0.25 / 32 if several else 3e-5  # a step of fastText's table of the logistic function
    np.testing.assert_allclose(again.predict_proba(texts), model.predict_proba(texts), atol=tolerance)
