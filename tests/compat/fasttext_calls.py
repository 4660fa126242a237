"""Compare w2v.fasttext with fastText's own Python module, call by call, on models that fastText trains.

    python tests/compat/fasttext_calls.py

Prints one line without fastText, whose wheel exists only for Python before 3.12. Exits with 1 if a result differs.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

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
LEFT_OUT = {("maxn=0", "get_subword_id")}  # fastText divides by 0


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, list) and expected and isinstance(expected[0], tuple):  # (cosine, word)
        words, expected_words = ([word for _, word in pairs] for pairs in (found, expected))
        return words == expected_words and np.allclose([c for c, _ in found], [c for c, _ in expected], atol=1e-5)
    if isinstance(expected, np.ndarray):
        return np.shape(found) == expected.shape and np.allclose(found, expected, atol=1e-5)
    return bool(found == expected)


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
    compared += 1
    lines = "a b\n\tc  d\n"
    different += ["tokenize"] * (ours.tokenize(lines) != theirs.tokenize(lines))
    print(f"fastText's calls: {compared - len(different)} of {compared} give the same result", *different, sep="\n  ")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
