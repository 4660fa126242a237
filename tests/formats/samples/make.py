"""Write the sample files of this folder, one of each kind that w2v writes, and what they hold, to expected.json.

Files that exist are left alone, since they show what earlier versions wrote:

    W2V_SIMD=baseline python -m tests.formats.samples.make
"""

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import w2v
import w2v.gensim
from tests.helpers import Stop, run, stop_at
from w2v.formats import table
from w2v.gensim.models import fasttext, keyedvectors, phrases, word2vec
from w2v.losses.registry import LOSSES
from w2v.vectors import reduce

HERE = Path(__file__).parent
CORPUS = HERE / "corpus.txt"
SENTENCES = [
    "The new york bridge is 12 miles long",
    "a king and a queen walk in new york",
    "the queen of the long river is old",
    "the king of köln is old and the bridge is new",
]
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
    "text-options": {"lower": True, "tokenize": "words", "digits": "spell", "normalize": "nfc", "strip_markup": True},
    "phrases": {"phrases": HERE / "phrases.txt"},
}
PLAIN = (
    ".bin", ".txt", ".vec", ".glove.txt", ".npy", ".tsv", ".parquet", ".arrow", ".db", ".model2vec", ".ft.bin",
)  # fmt: skip


def main() -> None:
    if not CORPUS.exists():
        CORPUS.write_text("".join(f"{line}\n" for line in SENTENCES * 15), "utf-8")
    path = HERE / "expected.json"
    expected: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    add(expected, "phrases.txt", found_phrases)
    for name, options in VARIANTS.items():
        add(expected, f"{name}.safetensors", lambda file, options=options: native(file, options))
    model = w2v.Model.load(HERE / "ns.safetensors")
    subwords = w2v.Model.load(HERE / "subwords.safetensors")
    for end in PLAIN:
        add(expected, f"plain{end}", lambda file: (model.save(file), described(model.wv))[1])
    add(expected, "plain.spacy", spacy)
    add(expected, "subwords.ft.bin", lambda file: (subwords.save(file), described(subwords.wv))[1])
    for storage in ("f16", "int8"):
        add(expected, f"{storage}.safetensors", lambda file, storage=storage: stored(file, storage))
    add(expected, "dims.safetensors", smaller)
    add(expected, "vectors.safetensors", lambda file: (model.wv.save(file), described(model.wv))[1])
    add(expected, "gensim-word2vec.model", lambda file: gensims(file, word2vec.Word2Vec, sg=1))
    add(expected, "gensim-word2vec-hs.model", lambda file: gensims(file, word2vec.Word2Vec, hs=1, negative=0))
    add(expected, "gensim-fasttext.model", lambda file: gensims(file, fasttext.FastText, min_n=2, max_n=3, bucket=30))
    add(expected, "gensim-keyedvectors.kv", gensims_vectors)
    add(expected, "gensim-phrases.json", gensims_phrases)
    add(expected, "vocabulary.txt", saved_vocabulary)
    add(expected, "settings.toml", saved_settings)
    add(expected, "checkpoint", checkpoint)
    path.write_text(json.dumps(expected, ensure_ascii=False) + "\n", "utf-8")


def add(expected: dict[str, Any], name: str, write: Callable[[Path], Any]) -> None:
    if not (HERE / name).exists():
        expected[name] = write(HERE / name)


def some(values: Any) -> Any:
    return [*values[:3], values[-1]]


def rounded(vectors: Any) -> list[list[float]]:
    return np.round(np.stack(some(np.asarray(vectors, np.float64))), 4).tolist()


def described(wv: Any, model: w2v.Model | None = None) -> dict[str, Any]:
    """The words, vectors and counts of a file, of the first and last words only, and what a whole model holds."""
    found: dict[str, Any] = {"size": len(wv), "words": some(wv.index_to_key), "vectors": rounded(wv.vectors)}
    found["counts"] = None if wv.counts is None else some(wv.counts.tolist())
    if model is not None:
        kept = {name: value for name, value in model.metrics.items() if name in ("tokens", "loss", "phrases")}
        found |= {"settings": model.settings.as_dict(), "metrics": kept, "text": asdict(model.text)}
    return found


def native(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    model = w2v.train(CORPUS, **SMALL | options)
    model.save(file)
    return described(model.wv, model)


def spacy(file: Path) -> dict[str, Any]:
    model = w2v.Model.load(HERE / "ns.safetensors")
    model.save(file)
    (file / "tokenizer").unlink()  # large, and not read
    return described(model.wv)


def stored(file: Path, storage: Any) -> dict[str, Any]:
    content = reduce.in_storage(table.read(HERE / "subwords.safetensors"), storage)
    table.write(file, content)
    return described(w2v.vectors.keyed.keyed(content))


def smaller(file: Path) -> dict[str, Any]:
    run("convert", HERE / "ns.safetensors", file, "--dims", 3, "--check", "--quiet")
    return described(w2v.load(file))


def gensims(file: Path, kind: Any, **options: Any) -> dict[str, Any]:
    sentences = [line.split() for line in SENTENCES * 15]
    model = kind(sentences, vector_size=4, window=2, min_count=2, epochs=2, seed=3, workers=1, **options)
    model.note = "kept"
    model.lifecycle_events = None  # which would hold paths and the machine
    model.save(file)
    names = ("window", "epochs", "sg", "hs", "negative", "note")
    return described(model.wv) | {"attributes": {name: getattr(model, name) for name in names}}


def gensims_vectors(file: Path) -> dict[str, Any]:
    vectors = keyedvectors.KeyedVectors(2)
    vectors.lifecycle_events = None
    vectors.add_vectors(["one", 2], [[1, 2], [3, 4]], extras={"kind": np.array([7, 8])})
    vectors.save(file)
    return described(vectors)


def gensims_phrases(file: Path) -> dict[str, Any]:
    found = phrases.Phrases([line.split() for line in SENTENCES * 15], min_count=1, threshold=3)
    found.save(file)
    return {"sentence": found[["walk", "in", "new", "york"]]}


def found_phrases(file: Path) -> dict[str, Any]:
    found = w2v.Phrases.find(CORPUS, min_count=5, threshold=2, passes=2)
    found.save(file)
    return {"phrases": [list(each) for each in found.passes]}


def saved_vocabulary(file: Path) -> dict[str, Any]:
    model = w2v.Model.load(HERE / "ns.safetensors")
    model.vocabulary.save(file, model.metrics["sentences"])
    return {"size": len(model.words), "words": some(model.words), "counts": some(model.vocabulary.counts.tolist())}


def saved_settings(file: Path) -> dict[str, Any]:
    options = ["--loss", "hs", "--window", "2,1", "--lower", "--min-count", "2", "--epochs", "1", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        run("train", CORPUS, "-o", Path(folder, "m.vec"), *options, "--save-config", file)
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith(("corpus", "output"))), "utf-8")
    return {"loss": "hs", "window": "2,1", "lower": True, "min_count": 2, "epochs": 1}


def checkpoint(folder: Path) -> dict[str, Any]:
    options = SMALL | {"loss": "hs", "epochs": 4, "lower": True}
    with tempfile.TemporaryDirectory() as other, suppress(Stop):
        corpus = shutil.copy(CORPUS, other)  # the path of this folder would be in the checkpoint
        w2v.train(corpus, checkpoint=folder, checkpoint_every="1epoch", progress=stop_at(0.6), **options)
    for old in sorted(folder.iterdir())[:-1]:
        old.unlink()
    whole = w2v.train(CORPUS, **options)
    return described(whole.wv, whole)


if __name__ == "__main__":
    main()
