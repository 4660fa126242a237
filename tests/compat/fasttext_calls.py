"""Compare w2v.fasttext with fastText's own Python module, call by call, on models that fastText trains.

    python tests/compat/fasttext_calls.py

Prints one line without fastText, whose wheel exists only for Python before 3.12. Exits with 1 if a result differs.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import w2v
import w2v.fasttext as ours
from w2v.data import make

OPTIONS = {"dim": 10, "bucket": 500, "thread": 1, "lr": 0.2, "minCount": 2, "verbose": 0}
MODELS: dict[str, dict[str, Any]] = {
    "skipgram": {},
    "cbow": {"model": "cbow"},
    "maxn=0": {"maxn": 0},
    "hs": {"loss": "hs"},
    "softmax": {"loss": "softmax", "epoch": 1},
    "wordNgrams=2": {"wordNgrams": 2},
    "wordNgrams=2, maxn=0": {"wordNgrams": 2, "maxn": 0},
    "minn=1": {"minn": 1, "maxn": 3},
    "minn=5, maxn=3": {"minn": 5, "maxn": 3},
}


def error_of(call: Callable[[], Any]) -> str:
    """Return the type and the message of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


CALLS: dict[str, Callable[[Any], Any]] = {
    "words": lambda model: model.words,
    "labels": lambda model: model.labels,
    "get_words": lambda model: model.get_words(include_freq=True),
    "get_labels": lambda model: model.get_labels(),
    "get_dimension": lambda model: model.get_dimension(),
    "is_quantized": lambda model: model.is_quantized(),
    "contains": lambda model: ("king" in model, "kingdomish" in model),
    "get_word_id": lambda model: (model.get_word_id("king"), model.get_word_id("kingdomish")),
    "get_word_vector": lambda model: model.get_word_vector("king"),
    "get_word_vector, unknown": lambda model: model.get_word_vector("kingdomish"),
    "get_word_vector, not ASCII": lambda model: model["naïveté 東京"],
    "bytes": lambda model: (model[b"king"], model[b"kingdomish"], model.get_word_id(b"king"), b"king" in model),
    "get_subwords, bytes": lambda model: model.get_subwords(b"king"),
    "get_nearest_neighbors, bytes": lambda model: model.get_nearest_neighbors(b"king", k=5),
    "get_line": lambda model: model.get_line("the king  of\tkingdomish"),
    "get_line, list": lambda model: model.get_line(["the king", "of"]),
    "test": lambda model: model.test(__file__)[0],
    "test_label": lambda model: model.test_label(__file__),
    "getArgs": lambda model: [getattr(model.f.getArgs(), name) for name in ("dim", "ws", "epoch", "minCount", "neg")],
    "getArgs, loss": lambda model: (str(model.f.getArgs().loss), str(model.f.getArgs().model)),
    "predict": lambda model: error_of(lambda: model.predict("the king")),
    "quantize": lambda model: error_of(lambda: model.quantize()),
    "get_word_vector, empty": lambda model: model[""],
    "get_word_vector, end of line": lambda model: model["</s>"],
    "get_sentence_vector": lambda model: model.get_sentence_vector("the king of kingdomish"),
    "get_sentence_vector, white space": lambda model: model.get_sentence_vector("the\u00a0king \x1cof\v\r\fa"),
    "get_sentence_vector, empty": lambda model: model.get_sentence_vector(""),
    "get_nearest_neighbors": lambda model: model.get_nearest_neighbors("king", k=5),
    "get_analogies": lambda model: model.get_analogies("king", "man", "woman", k=4),
    "get_subwords": lambda model: model.get_subwords("king"),
    "get_subwords, unknown": lambda model: model.get_subwords("naïveté"),
    "get_subwords, end of line": lambda model: model.get_subwords("</s>"),
    "get_subword_id": lambda model: [model.get_subword_id(each) for each in ("kin", "<k", "東", "", "</s>")],
    "get_input_vector": lambda model: model.get_input_vector(3),
    "get_input_matrix": lambda model: model.get_input_matrix(),
    "get_output_matrix": lambda model: model.get_output_matrix(),
}
WORDS = [f"w{number}ö" for number in range(300)]
STEP = 0.25 / 32  # the largest step of fastText's table of the logistic function
VECTOR_CALLS = ("get_word_vector", "get_nearest_neighbors", "get_subwords")  # not of models with pruned n-grams
LINES = ["the king of kingdomish", "a b", "", "unknown", "the\u00a0king \x1cof\v\r\fa", "naïveté 東京"]
LINES += ["w1ö\0w2ö w3ö </s> w4ö", "</s> w1ö"]


def meter_results(model: Any, meter: Any) -> Any:
    """Return the precision at some recalls, the recall at some precisions, and the scores of a label with the truth.

    With other losses than softmax, and with pruned n-grams, rounding decides whether scores are equal.
    """
    if str(model.f.getArgs().loss) != "loss_name.softmax":
        return "not compared"
    label, shares = model.labels[1], [each / 10 for each in range(1, 10)]
    functions = meter.precision_at_recall, meter.recall_at_precision
    points = [each(share, own) for each in functions for share in shares for own in (None, label)]
    if hasattr(meter, "m"):  # fastText's own score_vs_true fails with NumPy 2
        scores, truths = np.array(meter.m.scoreVsTrue(model.get_label_id(label))).T
    else:
        scores, truths = meter.score_vs_true(label)
    return np.array(points), scores, truths.sum()


CLASSIFIER_CALLS: dict[str, Callable[[Any], Any]] = {
    **{
        name: CALLS[name]
        for name in (
            "words",
            "labels",
            "get_words",
            "get_labels",
            "get_dimension",
            "is_quantized",
            "contains",
            "get_word_id",
            "get_word_vector",
            "get_word_vector, unknown",
            "get_line",
            "get_line, list",
            "getArgs, loss",
            "get_word_vector, end of line",
            "get_sentence_vector",
            "get_subwords",
        )
    },
    "get_labels, counts": lambda model: model.get_labels(include_freq=True),
    "get_label_id": lambda model: (model.get_label_id(model.labels[2]), model.get_label_id("__label__unknown")),
    "get_line, lines": lambda model: model.get_line(LINES),
    "get_line, labels": lambda model: model.get_line(f"{model.labels[1]} the __label__unknown {model.labels[0]}"),
    "get_nearest_neighbors, known word": lambda model: model.get_nearest_neighbors(model.words[3], k=5),
    "f.predict": lambda model: sorted(model.f.predict("the king\n", -1, 0.0, "strict"))[-1][1],
    "predict, list": lambda model: tuple(model.predict(LINES, on_unicode_error="replace")[1]),
    "predict, threshold": lambda model: list(map(sorted, model.predict(LINES, -1, 0.2)[0])),
    "predict, types of list": lambda model: [each.dtype for each in model.predict(LINES, k=2)[1]],
    "predict, k=0": lambda model: error_of(lambda: model.predict("the", k=0)),
    "test": lambda model: model.test(TEST_FILE, k=-1, threshold=0.2),
    # fastText 0.9.2 does not count the true labels here, so its recall is NaN.
    "test_label": lambda model: {
        label: str(found["precision"]) for label, found in model.test_label(TEST_FILE, k=-1, threshold=0.2).items()
    },
    "get_meter": lambda model: meter_results(model, model.get_meter(TEST_FILE)),
    "get_input_matrix": lambda model: model.is_quantized() or model.get_input_matrix(),
    "get_output_matrix": lambda model: model.is_quantized() or model.get_output_matrix(),
}
TEST_FILE = "labelled.txt"  # in the working directory
LEFT_OUT = {("maxn=0", "get_subword_id")}  # fastText divides by 0


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return bool(found == expected or np.isclose(found, expected, atol=1e-5))
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, list) and expected and isinstance(expected[0], tuple):  # (cosine, word)
        words, expected_words = ([word for _, word in pairs] for pairs in (found, expected))
        return words == expected_words and np.allclose([c for c, _ in found], [c for c, _ in expected], atol=1e-5)
    if isinstance(expected, np.ndarray):
        return np.shape(found) == expected.shape and np.allclose(found, expected, atol=1e-5)
    return bool(found == expected)


def probabilities_differ(theirs: Any, model: Any) -> bool:
    """Return whether the probability of a label differs by more than 1e-5, or the order of labels by more than that.

    A score next to a step of fastText's table of the logistic function may take the next value of the table.
    """
    loss = str(theirs.f.getArgs().loss)
    largest = STEP if loss in ("loss_name.ns", "loss_name.ova") else 1e-5
    names, found = model.predict(LINES + WORDS, k=-1)
    for line, labels, values in zip(LINES + WORDS, names, found, strict=True):
        expected = {label: value for value, label in theirs.f.predict(f"{line}\n", -1, 0.0, "strict")}
        if any(expected.pop(label, 0) > 2e-5 for label in expected.keys() - {*labels}):  # with hs, some are left out
            return True
        values_of_labels = np.array([expected.get(label, 1e-5) for label in labels])
        errors = np.abs(values_of_labels - values)
        if np.any(errors > largest) or np.count_nonzero(errors > 1e-5) > 2:
            return True
        if np.any(np.diff(values_of_labels) > largest + 1e-5):
            return True
    return False


def labelled(lines: int, labels: int) -> list[str]:
    """Return lines of random words, and a label that their first word decides."""
    random = np.random.default_rng(1)
    drawn = random.zipf(1.3, (lines, 8)) % len(WORDS)
    return [f"__label__{row[0] % labels} {' '.join(WORDS[number] for number in row)}" for row in drawn]


def compare_classifiers(theirs: Any) -> tuple[int, list[str]]:
    """Compare classifiers of all losses and n-grams, dense and quantized, in the working directory.

    Return the number of comparisons, and the names of calls with another result.
    """
    compared, different, models = 0, [], {}
    Path(TEST_FILE).write_text("".join(f"{line}\n" for line in labelled(2000, 9)))
    Path("many.txt").write_text("".join(f"{line}\n" for line in labelled(6000, 300)))
    for loss, word_ngrams, lengths in product(("softmax", "hs", "ns", "ova"), (1, 2, 3), ((0, 0), (2, 4), (3, 6))):
        options = {"loss": loss, "wordNgrams": word_ngrams, "minn": lengths[0], "maxn": lengths[1]}
        models[f"{loss}, {word_ngrams} words, {lengths[0]}-{lengths[1]} characters"] = options
    for number, (name, options) in enumerate(models.items()):
        trained = theirs.train_supervised(TEST_FILE, **OPTIONS | options)
        trained.save_model("dense.bin")
        quantize = {"qnorm": number % 2 == 1, "dsub": 2 + number % 3}
        has_ngrams = options["wordNgrams"] > 1 or options["maxn"]
        for kind, more in (("dense", None), ("quantized", {}), ("pruned", {"cutoff": 450})):
            if more is not None and (has_ngrams or not more):
                trained = theirs.load_model("dense.bin")
                trained.quantize(input=TEST_FILE, **quantize | more)
            trained.save_model("model.bin")
            found = ours.FastText._FastText("model.bin")
            for call, function in CLASSIFIER_CALLS.items():
                if kind == "pruned" and ((options["maxn"] and call.startswith(VECTOR_CALLS)) or call == "get_meter"):
                    continue
                compared += 1
                different += [f"{name}, {kind}: {call}"] * (not same(function(found), function(trained)))
            compared += 1
            different += [f"{name}, {kind}: predict"] * probabilities_differ(trained, found)
            if kind == "dense":
                found.save_model("copy.bin")
                w2v.Classifier.load("model.bin").save("again.ft.bin", force=True)
                compared += 1
                different += [f"{name}: written"] * probabilities_differ(theirs.load_model("again.ft.bin"), found)
                for small in ({}, {"cutoff": 450}) if has_ngrams else ({},):
                    again = ours.load_model("model.bin")
                    again.quantize(**quantize | small)
                    again.save_model("small.ftz")
                    compared += 1
                    different += [f"{name}, {small}: quantized by w2v"] * probabilities_differ(
                        theirs.load_model("small.ftz"), again
                    )
    for loss in ("softmax", "hs", "ns", "ova"):  # 256 labels or more, so that output rows can be quantized
        trained = theirs.train_supervised("many.txt", **OPTIONS | {"loss": loss, "wordNgrams": 2})
        trained.quantize(input="many.txt", qout=True, cutoff=450)
        trained.save_model("model.bin")
        compared += 1
        different += [f"{loss}, quantized outputs: predict"] * probabilities_differ(
            trained, ours.load_model("model.bin")
        )
        trained = ours.train_supervised("many.txt", **OPTIONS | {"loss": loss, "wordNgrams": 2, "maxn": 3})
        for kind in ("dense", "quantized"):
            trained.save_model("model.bin")
            compared += 1
            different += [f"{loss}, trained by w2v, {kind}: predict"] * probabilities_differ(
                theirs.load_model("model.bin"), trained
            )
            trained.quantize(qout=True, cutoff=450)
    return compared, different


def main() -> int:
    try:
        theirs = importlib.import_module("fasttext")
    except ImportError:
        print("fastText's calls: skipped, because fastText is not installed: pip install fasttext-wheel")
        return 0
    theirs.FastText.eprint = lambda line: None  # the warnings of load_model
    compared, different = 0, []
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        text.write_text("".join(make.corpus(60_000, seed=1)))
        for name, options in MODELS.items():
            path = str(Path(folder) / "model.bin")
            theirs.train_unsupervised(str(text), **OPTIONS | options).save_model(path)
            expected, found = theirs.load_model(path), ours.load_model(path)
            for call, function in CALLS.items():
                if (name, call) not in LEFT_OUT:
                    compared += 1
                    different += [f"{name}: {call}"] * (not same(function(found), function(expected)))
            found.save_model(f"{path}.copy")
            compared += 1
            different += [f"{name}: save_model"] * (Path(path).read_bytes() != Path(f"{path}.copy").read_bytes())
        trained = ours.train_unsupervised(text, **OPTIONS)
        trained.save_model(path)
        expected = theirs.load_model(path)
        for call in ("words", "get_word_vector", "get_word_vector, unknown", "get_input_matrix", "get_output_matrix"):
            compared += 1
            different += [f"trained by w2v: {call}"] * (not same(CALLS[call](trained), CALLS[call](expected)))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        more, others = compare_classifiers(theirs)
        compared, different = compared + more, different + others
    compared += 1
    lines = "a b\n\tc  d\n"
    different += ["tokenize"] * (ours.tokenize(lines) != theirs.tokenize(lines))
    print(f"fastText's calls: {compared - len(different)} of {compared} give the same result", *different, sep="\n  ")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
