"""Write a sample of each kind of file that w2v writes to this folder, and the expected content to expected.json.

All files are replaced. Write them again when a format changes on purpose. Usage:

    W2V_SIMD=baseline python -m tests.formats.samples.make
"""

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import w2v
import w2v.gensim
from tests.helpers import run
from w2v._formats import registry
from w2v._losses.registry import LOSSES
from w2v._vectors import reduce
from w2v.gensim.models import fasttext, keyedvectors, phrases, word2vec

HERE = Path(__file__).parent
CORPUS = HERE / "corpus.txt"
SENTENCES = [line.split() for line in CORPUS.read_text("utf-8").splitlines()]
SMALL: dict[str, Any] = {
    "vector_size": 4, "window": 2, "min_count": 2, "epochs": 2, "sample": 0, "workers": 1, "seed": 5,
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    **{loss: {"loss": loss} for loss in LOSSES if loss not in ("dsoftmax", "mos")},
    "dsoftmax": {"loss": "dsoftmax", "blocks": "2:5,1:6,1"},
    "mos": {"loss": "mos", "mixtures": 2},
    "skipgram": {"model": "skipgram", "vectors": "input"},
    "window-sides": {"window": "2,1"},
    "concatenated": {"vectors": "concatenated"},
    "bf16": {"storage": "bf16"},
    "subwords": {"subwords": "2-3", "buckets": 30},
    "views": {"views": "words+subwords", "subwords": "2-3", "buckets": 30},
    "text-options": {"lower": True, "tokenize": "words", "digits": "spell", "normalize": "nfc", "strip_markup": True},
    "phrases": {"phrases": HERE / "phrases.txt"},
}
METRICS = ("tokens", "loss", "phrases", "views")  # what expected.json has of a model's metrics
UNKNOWN = "bridges"  # not in the corpus
PLAIN = (
    ".bin", ".txt", ".vec", ".glove.txt", ".npy", ".tsv", ".parquet", ".arrow", ".db", ".model2vec", ".spark",
    ".ft.bin",
)  # fmt: skip
GENSIM_MODELS: list[tuple[str, Any, dict[str, Any]]] = [
    ("word2vec", word2vec.Word2Vec, {"sg": 1}),
    ("word2vec-hs", word2vec.Word2Vec, {"hs": 1, "negative": 0}),
    ("fasttext", fasttext.FastText, {"min_n": 2, "max_n": 3, "bucket": 30}),
]


def main() -> None:
    for path in HERE.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path != CORPUS and path.suffix != ".py":
            path.unlink()
    write: dict[str, Callable[[Path], Any]] = {"phrases.txt": phrase_list}
    write |= {f"{name}.safetensors": partial(native_model, options=options) for name, options in VARIANTS.items()}
    write |= {f"plain{end}": partial(saved_model, name="ns") for end in PLAIN}
    write |= {"plain.spacy": spacy_folder, "subwords.ft.bin": partial(saved_model, name="subwords")}
    write |= {f"{storage}.safetensors": partial(small_storage, storage=storage) for storage in ("f16", "int8")}
    write |= {"dims.safetensors": fewer_dimensions, "vectors.safetensors": saved_vectors}
    for name, kind, options in GENSIM_MODELS:
        write[f"gensim-{name}.model"] = partial(gensim_model, kind=kind, **options)
    write |= {"gensim-keyedvectors.kv": gensim_vectors, "gensim-phrases.json": gensim_phrases}
    write |= {"classifier.safetensors": classifier}
    write |= {"vocabulary.txt": vocabulary, "settings.toml": settings_file}
    expected = {name: function(HERE / name) for name, function in write.items()}
    (HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False) + "\n", "utf-8")


def first_three_and_last(values: Any) -> Any:
    return [*values[:3], values[-1]]


def rounded_rows(vectors: Any) -> list[list[float]]:
    return np.round(np.stack(first_three_and_last(np.asarray(vectors, np.float64))), 4).tolist()


def describe(wv: Any, model: w2v.Model | None = None) -> dict[str, Any]:
    """Return some words of a file with their vectors and counts and, for a model, its settings and metrics."""
    found: dict[str, Any] = {
        "size": len(wv),
        "words": first_three_and_last(wv.index_to_key),
        "vectors": rounded_rows(wv.vectors),
    }
    found["counts"] = None if wv.counts is None else first_three_and_last(wv.counts.tolist())
    if model is not None:
        metrics = {name: value for name, value in model.metrics.items() if name in METRICS}
        found |= {"settings": model.settings.as_dict(), "metrics": metrics, "text": asdict(model.text)}
    return found


def saved_model(file: Path, name: str) -> dict[str, Any]:
    model = w2v.Model.load(HERE / f"{name}.safetensors")
    model.save(file)
    return describe(model.wv)


def saved_vectors(file: Path) -> dict[str, Any]:
    vectors = w2v.Model.load(HERE / "ns.safetensors").wv
    vectors.save(file)
    return describe(vectors)


def native_model(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    model = w2v.train(CORPUS, **SMALL | options)
    model.save(file)
    found = describe(model.wv, model)
    if model.wv.ngrams:
        found["unknown"] = {UNKNOWN: np.round(model.wv[UNKNOWN].astype(np.float64), 4).tolist()}
    return found


def spacy_folder(file: Path) -> dict[str, Any]:
    found = saved_model(file, "ns")
    (file / "tokenizer").unlink()  # large, and w2v does not read it
    return found


def small_storage(file: Path, storage: Any) -> dict[str, Any]:
    content = reduce.change_storage(registry.read(HERE / "subwords.safetensors"), storage)
    registry.write(file, content)
    return describe(w2v._vectors.keyed.to_keyed_vectors(content))


def fewer_dimensions(file: Path) -> dict[str, Any]:
    run("convert", HERE / "ns.safetensors", file, "--dims", 3, "--check", "--quiet")
    return describe(w2v.load(file))


def gensim_model(file: Path, kind: Any, **options: Any) -> dict[str, Any]:
    model = kind(SENTENCES, vector_size=4, window=2, min_count=2, epochs=2, seed=3, workers=1, **options)
    model.note = "kept"
    model.lifecycle_events = None  # they would contain paths and the name of the machine
    model.save(file)
    names = ("window", "epochs", "sg", "hs", "negative", "note")
    return describe(model.wv) | {"attributes": {name: getattr(model, name) for name in names}}


def gensim_vectors(file: Path) -> dict[str, Any]:
    vectors = keyedvectors.KeyedVectors(2)
    vectors.lifecycle_events = None
    vectors.add_vectors(["one", 2], [[1, 2], [3, 4]], extras={"kind": np.array([7, 8])})
    vectors.save(file)
    return describe(vectors)


def gensim_phrases(file: Path) -> dict[str, Any]:
    found = phrases.Phrases(SENTENCES, min_count=1, threshold=3)
    found.save(file)
    return {"sentence": found[["walk", "in", "new", "york"]]}


def classifier(file: Path) -> dict[str, Any]:
    texts, labels = ["a good film", "a bad film", "great great film"] * 7, ["pro", "contra", "very pro"] * 7
    model = w2v.train_classifier(texts, labels, subwords="2-3", buckets=50, lower=True, workers=1)
    model.save(file)
    probabilities = np.round(model.predict_proba(["Good film"]).astype(np.float64), 4).tolist()
    return {"labels": model.labels, "probabilities": probabilities}


def phrase_list(file: Path) -> dict[str, Any]:
    found = w2v.Phrases.find(CORPUS, min_count=5, threshold=2, passes=2)
    found.save(file)
    return {"phrases": [list(each) for each in found.passes]}


def vocabulary(file: Path) -> dict[str, Any]:
    model = w2v.Model.load(HERE / "ns.safetensors")
    model.vocabulary.save(file, model.metrics["sentences"])
    return {
        "size": len(model.words),
        "words": first_three_and_last(model.words),
        "counts": first_three_and_last(model.vocabulary.counts.tolist()),
    }


def settings_file(file: Path) -> dict[str, Any]:
    options = ["--loss", "hs", "--window", "2,1", "--lower", "--min-count", "2", "--epochs", "1", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        run("train", CORPUS, "-o", Path(folder, "m.vec"), *options, "--save-config", file)
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith(("corpus", "output"))), "utf-8")
    return {"loss": "hs", "window": "2,1", "lower": True, "min_count": 2, "epochs": 1}


if __name__ == "__main__":
    main()
