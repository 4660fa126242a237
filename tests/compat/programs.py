"""Run twenty small programs that use gensim, under gensim and under w2v.gensim.install(), and compare what they print.

    python tests/compat/programs.py [NAME…]

A program is a function of this file. It returns values, which must be the same, or nearly the same if they are floats.
What training gives is compared by its shape and quality only. Warnings are errors in both. Exits with 1 if one differs.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from w2v.data import make

TEXT = [line.split() for line in make.corpus(20_000, seed=1)]
SMALL: dict[str, Any] = {"vector_size": 20, "min_count": 3, "workers": 1, "seed": 1}
WORDS = [f"w{row}" for row in range(30)]
VECTORS = np.random.default_rng(3).normal(size=(30, 8)).astype(np.float32)

PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[function.__name__] = function
    return function


def gensim(name: str = "") -> Any:
    return importlib.import_module(f"gensim.{name}".removesuffix("."))


def known_vectors() -> Any:
    vectors = gensim("models").KeyedVectors(8)
    vectors.add_vectors(WORDS, VECTORS)
    return vectors


@program
def train_and_save() -> Any:
    model = gensim("models").Word2Vec(TEXT, **SMALL)
    model.save("model")
    loaded = gensim("models").Word2Vec.load("model")
    return loaded.wv.index_to_key[:50], loaded.wv.vectors.shape, loaded.corpus_count, loaded.epochs


@program
def one_shot_iterators() -> Any:
    model = gensim("models").Word2Vec(**SMALL, sample=0)
    model.build_vocab(iter(TEXT))
    return [
        model.train(text, total_examples=len(TEXT), epochs=5)[1]
        for text in (iter(TEXT), map(list, TEXT), chain(TEXT[:5], TEXT[5:]), TEXT)
    ]


@program
def compressed_files() -> Any:
    starts = []
    for name in ("v.txt.gz", "v.txt.bz2", "v.txt.xz"):
        known_vectors().save_word2vec_format(name)
        starts.append(Path(name).read_bytes()[:3])
        loaded = gensim("models").KeyedVectors.load_word2vec_format(name)
        starts.append(loaded["w3"])
    return starts


@program
def own_get_vector() -> Any:
    class Shifted(gensim("models").KeyedVectors):
        def get_vector(self, key: Any, norm: bool = False) -> Any:
            return super().get_vector(key, norm=norm) + 1

    vectors = Shifted(8)
    vectors.add_vectors(WORDS, VECTORS)
    return vectors.similarity("w1", "w2"), vectors.most_similar("w1"), vectors[["w1", "w2"]]


@program
def queries() -> Any:
    wv = known_vectors()
    return (
        wv.most_similar(positive=["w1", "w2"], negative=["w3"]),
        wv.most_similar_cosmul(["w1"], ["w2"]),
        wv.doesnt_match(["w1", "w2", "w3"]),
        wv.n_similarity(["w1"], ["w2", "w3"]),
        wv.distances("w1")[:4],
        wv.rank("w1", "w2"),
        wv.closer_than("w1", "w2"),
    )


@program
def pickled_model() -> Any:
    path = Path("gensim.pickle")
    source = "import gensim.models, pickle, sys; from w2v.data import make\n"
    source += "text = [line.split() for line in make.corpus(20_000, seed=1)]\n"
    source += "model = gensim.models.Word2Vec(text, vector_size=8, min_count=3, workers=1)\n"
    source += "pickle.dump(model, open('gensim.pickle', 'wb')); model.save('gensim.model')"
    subprocess.run([sys.executable, "-W", "ignore", "-c", source], check=True)
    with path.open("rb") as file:
        model = pickle.load(file)
    saved = gensim("models").Word2Vec.load("gensim.model")
    return np.allclose(model.wv.vectors, saved.wv.vectors), model.wv.index_to_key[:20], saved.wv.vectors.shape


@program
def high_learning_rates() -> Any:
    options = ({"alpha": 0.1, "min_alpha": 1}, {"alpha": 1.0}, {"alpha": 0.5, "sg": 1})
    models = [gensim("models").Word2Vec(TEXT[:300], **SMALL, **each) for each in options]
    return [bool(np.isfinite(model.wv.vectors).all()) for model in models]


@program
def mapped_small_file() -> Any:
    known_vectors().save("vectors.kv")
    loaded = gensim("models").KeyedVectors.load("vectors.kv", mmap="r")
    loaded.vectors[0] = 1
    return loaded["w0"]


@program
def phrases() -> Any:
    module = gensim("models.phrases")
    found = module.Phrases(TEXT, min_count=2, threshold=1, connector_words=module.ENGLISH_CONNECTOR_WORDS)
    found.save("phrases")
    frozen = module.Phraser(module.Phrases.load("phrases"))
    return sorted(found.export_phrases().items())[:50], list(frozen[TEXT[:50]]), frozen[TEXT[3]]


@program
def phrases_saved_by_gensim() -> Any:
    source = "from gensim.models import Phrases; from w2v.data import make\n"
    source += "text = [line.split() for line in make.corpus(20_000, seed=1)]\n"
    source += "model = Phrases(text, min_count=2, threshold=1); model.save('phrases'); model.freeze().save('phraser')"
    subprocess.run([sys.executable, "-W", "ignore", "-c", source], check=True)
    module = gensim("models.phrases")
    loaded, frozen = module.Phrases.load("phrases"), module.Phraser.load("phraser")
    return list(loaded[TEXT[:50]]), list(frozen[TEXT[:50]])


@program
def fasttext() -> Any:
    module = gensim("models.fasttext")
    model = module.FastText(TEXT, **SMALL, bucket=500)
    module.save_facebook_model(model, "model.bin")
    loaded = module.load_facebook_vectors("model.bin")
    model.save("fasttext.model")
    again = module.FastText.load("fasttext.model")
    same = [bool(np.allclose(each["kingdomish"], model.wv["kingdomish"], atol=1e-5)) for each in (loaded, again.wv)]
    return same, module.ft_ngram_hashes("kingdom", 3, 6, 500), "kingdomish" in loaded


@program
def matrices_of_fasttext() -> Any:
    vectors = gensim("models.fasttext").FastTextKeyedVectors(4, 2, 3, 50)
    vectors.vectors_ngrams = VECTORS.reshape(-1)[:200].reshape(50, 4)
    vectors.index_to_key, vectors.key_to_index = ["one"], {"one": 0}
    vectors.recalc_char_ngram_buckets()
    vectors.vectors_vocab = np.ones((1, 4), np.float32)
    vectors.adjust_vectors()
    return vectors["one"], vectors["two"]


@program
def topic_model() -> Any:
    dictionary = gensim("corpora").Dictionary(TEXT[:200])
    bags = [dictionary.doc2bow(text) for text in TEXT[:200]]
    model = gensim("models").LdaModel(bags, id2word=dictionary, num_topics=2, random_state=1)
    weights = gensim("models").TfidfModel(bags)[bags[0]]
    coherence = gensim("models.coherencemodel").CoherenceModel(model, corpus=bags, coherence="u_mass").get_coherence()
    return model.print_topics(), weights, coherence


@program
def document_vectors() -> Any:
    module = gensim("models.doc2vec")
    documents = [module.TaggedDocument(text, [row]) for row, text in enumerate(TEXT[:200])]
    module.Doc2Vec(documents, **SMALL, epochs=2).save("doc2vec")
    loaded = module.Doc2Vec.load("doc2vec")
    return (
        loaded.dv.vectors.shape,
        loaded.dv.index_to_key,
        loaded.wv.index_to_key[:9],
        loaded.infer_vector(TEXT[0]).shape,
    )


@program
def soft_cosines() -> Any:
    dictionary = gensim("corpora").Dictionary([WORDS])
    similarities = gensim("similarities")
    index = similarities.WordEmbeddingSimilarityIndex(known_vectors())
    matrix = similarities.SparseTermSimilarityMatrix(index, dictionary)
    bags = [dictionary.doc2bow(words) for words in (WORDS[:9], WORDS[5:15])]
    return matrix.inner_product(*bags, normalized=(True, True)), similarities.SoftCosineSimilarity(bags, matrix)[
        bags[0]
    ]


@program
def word_mover() -> Any:
    wv = known_vectors()
    return wv.wmdistance(WORDS[:3], WORDS[4:7]), gensim("similarities").WmdSimilarity([WORDS[:3]], wv)[WORDS[4:7]]


@program
def preprocessing() -> Any:
    module = gensim("parsing.preprocessing")
    text = "The <b>Größe</b> of 3 houses, in 1999!"
    return (
        module.preprocess_string(text),
        gensim("utils").simple_preprocess(text),
        list(gensim("utils").chunkize([1, 2], 1)),
    )


@program
def test_data() -> Any:
    utils = gensim("test.utils")
    folder = Path(gensim().__path__[0], "test", "test_data")
    vectors = gensim("models").KeyedVectors.load_word2vec_format(utils.datapath("word2vec_pre_kv_c"), binary=False)
    return folder.is_dir(), len(utils.common_corpus), utils.common_texts[0], vectors.index_to_key


@program
def downloaded() -> Any:
    api = gensim("downloader")
    folder = Path(tempfile.mkdtemp())
    api.BASE_DIR = str(folder)
    (folder / "text8").mkdir()
    path = folder / "text8" / "text8.gz"
    path.write_bytes(gzip.compress(b"one two three"))
    text = list(gensim("models.word2vec").Text8Corpus(str(path)))
    return sorted(set(dir(api)) & {"load", "info", "BASE_DIR"}), text


@program
def callbacks_and_logging() -> Any:
    seen = []

    class Seen(gensim("models.callbacks").CallbackAny2Vec):
        def on_epoch_end(self, model: Any) -> None:
            seen.append(model.wv.vectors.shape)

    model = gensim("models").Word2Vec(TEXT, **SMALL, callbacks=[Seen()], compute_loss=True, epochs=2)
    return seen, model.get_latest_training_loss() > 0, model.wv.get_vecattr("the", "count")


# -- a run ------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """Return a result as values that JSON has."""
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    return repr(value) if isinstance(value, bytes) else value


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float):
        return isinstance(found, float) and abs(found - expected) <= 1e-5 * max(1, abs(expected))
    return bool(found == expected)


def run(name: str, implementation: str) -> None:
    """Print the result of a program, and its processor seconds, as JSON."""
    if implementation == "w2v":
        importlib.import_module("w2v.gensim").install()
    gensim("models")
    warnings.simplefilter("error", UserWarning)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        started = time.process_time()
        result = to_json(PROGRAMS[name]())
        os.chdir("/")
    print(json.dumps({"result": result, "seconds": time.process_time() - started}))


def main() -> int:
    names = sys.argv[1:] or list(PROGRAMS)
    if unknown := set(names) - PROGRAMS.keys():
        sys.exit(f"unknown program: {', '.join(unknown)}; choose from {', '.join(PROGRAMS)}")
    equal = 0
    for name in names:
        results, lines = {}, []
        for implementation in ("gensim", "w2v"):
            command = [sys.executable, __file__, "--one", name, implementation]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                lines.append(f"{implementation}: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
            else:
                results[implementation] = json.loads(done.stdout.splitlines()[-1])
        if len(results) == 2 and not same(results["w2v"]["result"], results["gensim"]["result"]):
            lines += [f"{each}: {results[each]['result']}"[:500] for each in results]
        equal += not lines
        seconds = " and ".join(f"{result['seconds']:.2f}" for result in results.values())
        print(f"{name}: {'the same' if not lines else 'different'}; {seconds} processor seconds", *lines, sep="\n  ")
    print(f"programs: {equal} of {len(names)} give the same results under gensim and w2v.gensim")
    return int(equal < len(names))


if __name__ == "__main__":
    sys.exit(run(*sys.argv[2:]) if sys.argv[1:2] == ["--one"] else main())
