"""w2v.gensim's Doc2Vec, compared with gensim's."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import import_gensim
from w2v._errors import W2VError
from w2v._formats import native
from w2v.gensim.models import Doc2Vec, KeyedVectors, Word2Vec
from w2v.gensim.models.callbacks import CallbackAny2Vec
from w2v.gensim.models.doc2vec import TaggedBrownCorpus, TaggedDocument, TaggedLineDocument

theirs, datapath = import_gensim("gensim.models.doc2vec"), import_gensim("gensim.test.utils").datapath
RANDOM = np.random.default_rng(5)
TOPICS, WORDS = 3, 12  # a document has words of its topic, and words of all topics
TEXTS = [
    [f"{RANDOM.choice([f't{row % TOPICS}', f't{row % TOPICS}', ''])}w{RANDOM.integers(WORDS)}" for _ in range(40)]
    for row in range(60)
]
SMALL: dict[str, Any] = {"vector_size": 12, "min_count": 1, "workers": 1, "epochs": 20, "sample": 0, "alpha": 0.05}
KINDS = {
    "dm": {"dm": 1},
    "sum": {"dm": 1, "dm_mean": 0},
    "dbow": {"dm": 0},
    "words": {"dm": 0, "dbow_words": 1},
    "hs": {"dm": 0, "hs": 1, "negative": 0},
    "dm and hs": {"dm": 1, "hs": 1, "negative": 0},
}


def documents(tag: Any = int, kind: Any = TaggedDocument, texts: Any = TEXTS) -> list[Any]:
    return [kind(words, [tag(row)]) for row, words in enumerate(texts)]


def untrained_model(corpus: Any = None, **options: Any) -> Doc2Vec:
    model = Doc2Vec(**SMALL | options)
    model.build_vocab(documents() if corpus is None else corpus)
    return model


@pytest.fixture(scope="module")
def model() -> Doc2Vec:
    return Doc2Vec(documents(), **SMALL, dm=0)


def same_topic(model: Any, vector: Any, topic: int) -> float:
    """Return how many of the ten nearest documents have this topic."""
    return float(np.mean([tag % TOPICS == topic for tag, _ in model.dv.most_similar([vector], topn=10)]))


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())
def test_documents_of_a_topic_are_near_each_other_and_near_new_ones(options: dict[str, Any]) -> None:
    model = Doc2Vec(documents(), **SMALL, **options)
    assert np.mean([same_topic(model, model.dv[row], row % TOPICS) for row in range(30)]) > 0.7
    inferred = [model.infer_vector(TEXTS[row]) for row in range(30)]
    assert np.mean([same_topic(model, vector, row % TOPICS) for row, vector in enumerate(inferred)]) > 0.7
    assert model.similarity_unseen_docs(TEXTS[0], TEXTS[3]) > model.similarity_unseen_docs(TEXTS[0], TEXTS[1])


@pytest.mark.parametrize("options", [{"dm": 0}, {"dm": 1}, {"dm": 0, "dbow_words": 1}])
def test_only_dbow_leaves_word_vectors_unchanged(options: dict[str, Any]) -> None:
    model = untrained_model(**options)
    words, tags = model.wv.vectors.copy(), model.dv.vectors.copy()
    model.train(documents(), total_examples=60, epochs=1)
    assert (words == model.wv.vectors).all() == (options == {"dm": 0})
    assert (tags != model.dv.vectors).any(axis=1).all()


def test_lists_files_and_separate_steps_train_the_same_vectors(tmp_path: Path, model: Doc2Vec) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(" ".join(words) + "\n" for words in TEXTS))
    stepwise = untrained_model(dm=0)
    stepwise.train(documents(), total_examples=60, epochs=20)
    for other in (stepwise, Doc2Vec(corpus_file=path, **SMALL, dm=0), Doc2Vec(TaggedLineDocument(path), **SMALL, dm=0)):
        np.testing.assert_array_equal(other.dv.vectors, model.dv.vectors)
        assert (other.corpus_count, other.corpus_total_words) == (60, 2400)


class KeptTags(CallbackAny2Vec):
    def __init__(self) -> None:
        self.vectors: list[Any] = []

    def on_epoch_end(self, model: Any) -> None:
        self.vectors.append(model.dv.vectors.copy())


def test_each_epoch_trains_the_tags_with_both_losses(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(" ".join(words) + "\n" for words in TEXTS))
    kept = KeptTags(), KeptTags()
    model = untrained_model(hs=1)
    assert model.train(documents(), total_examples=60, epochs=2, callbacks=[kept[0]]) == (4800, 4800)
    model = untrained_model(hs=1)
    assert model.train(corpus_file=path, total_examples=60, epochs=2, callbacks=[kept[1]]) == (4800, 4800)
    np.testing.assert_array_equal(kept[0].vectors, kept[1].vectors)
    assert (kept[0].vectors[0] != kept[0].vectors[1]).any(axis=1).all()


def test_each_line_of_a_file_is_a_document_even_if_it_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(["", *(" ".join(words) for words in TEXTS[:30]), "", "a b"]))
    for source in ({"documents": list(TaggedLineDocument(path))}, {"corpus_file": str(path)}):
        trained = Doc2Vec(**source, **SMALL, dm=0)  # type: ignore[arg-type]
        fresh = untrained_model(list(TaggedLineDocument(path)), dm=0)
        changed = (trained.dv.vectors != fresh.dv.vectors).any(axis=1)
        assert (trained.corpus_count, len(trained.dv)) == (33, 33)
        assert np.flatnonzero(~changed).tolist() == [0, 31]


@pytest.mark.parametrize(
    "corpus",
    [
        documents(),
        documents(lambda row: f"_*{row % 35}"),
        [TaggedDocument(words, [row, words[0], 65]) for row, words in enumerate(TEXTS)],
        [TaggedDocument(words, []) for words in TEXTS],
    ],
    ids=["ints", "texts", "mixed", "none"],
)
def test_tags_match_gensim(corpus: Any) -> None:
    ours, expected = untrained_model(corpus), theirs.Doc2Vec(**SMALL)
    expected.build_vocab(corpus)
    assert ours.dv.index_to_key == expected.dv.index_to_key
    assert ours.dv.key_to_index == expected.dv.key_to_index
    assert ours.dv.vectors.shape == expected.dv.vectors.shape
    assert {name: counts.tolist() for name, counts in ours.dv.expandos.items()} == {
        name: counts.tolist() for name, counts in expected.dv.expandos.items()
    }
    assert ours.estimate_memory() == expected.estimate_memory()
    ours.train(corpus, total_examples=60, epochs=1)
    assert np.isfinite(ours.dv.vectors).all()


def test_new_words_and_tags_can_be_added(model: Doc2Vec) -> None:
    ours = copy.deepcopy(model)
    new = [TaggedDocument(["new", "words"], [3, 120, "more"])] * 2
    ours.build_vocab(new, update=True)
    assert ours.dv.index_to_key == [*range(121), "more"]
    assert ours.dv.get_vecattr("more", "doc_count") == 2
    np.testing.assert_array_equal(ours.dv.vectors[:60], model.dv.vectors)
    before = ours.dv.vectors.copy()
    ours.train(new, total_examples=2, epochs=1)
    assert np.flatnonzero((ours.dv.vectors != before).any(axis=1)).tolist() == [3, 120, 121]


def test_one_document_trains_all_its_tags_and_unknown_tags_are_left_out() -> None:
    model = untrained_model([TaggedDocument(words, [row, f"topic {row % TOPICS}"]) for row, words in enumerate(TEXTS)])
    before = model.dv.vectors.copy()
    model.train([TaggedDocument(TEXTS[4] * 20, [4, "topic 1", "unknown", 500])], total_examples=1, epochs=1)
    assert np.flatnonzero((model.dv.vectors != before).any(axis=1)).tolist() == [4, 61]


def test_vectors_lockf_of_tags_is_applied() -> None:
    model = untrained_model()
    before = model.dv.vectors.copy()
    model.dv.vectors_lockf = np.arange(60, dtype=np.float32) % 2
    model.train(documents(), total_examples=60, epochs=1)
    assert ((model.dv.vectors != before).any(axis=1) == (np.arange(60) % 2 == 1)).all()


def test_inference_depends_only_on_the_text_and_the_model(model: Doc2Vec) -> None:
    ours = copy.deepcopy(model)
    words, outputs = ours.wv.vectors.copy(), ours.syn1neg.copy()
    first = ours.infer_vector(TEXTS[0])
    ours.infer_vector(TEXTS[1], epochs=3)
    np.testing.assert_array_equal(ours.infer_vector([*TEXTS[0], "unknown"]), first)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).infer_vector(TEXTS[0]), first)
    assert (words == ours.wv.vectors).all()
    assert (outputs == ours.syn1neg).all()
    assert not ours.infer_vector(["unknown"]).any()
    for options in ({"alpha": 0.1}, {"min_alpha": 0.04}, {"epochs": 3}):
        assert (ours.infer_vector(TEXTS[0], **options) != first).any()
    ours.train(documents(), total_examples=60, epochs=1)
    assert (ours.infer_vector(TEXTS[0]) != first).any()


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())
def test_text_of_a_model_matches_gensim(options: dict[str, Any]) -> None:
    assert str(Doc2Vec(**SMALL, comment=None, **options)) == str(
        theirs.Doc2Vec(**SMALL, **{"cbow_mean" if name == "dm_mean" else name: options[name] for name in options})
    )


def test_files_keep_tags_and_settings(tmp_path: Path) -> None:
    corpus = [TaggedDocument(words, [row, f"topic {row % TOPICS}"]) for row, words in enumerate(TEXTS)]
    saved = Doc2Vec(corpus, **SMALL | {"epochs": 1}, dm=0, dbow_words=1)
    saved.dv.vectors_lockf = np.zeros(63, np.float32)
    saved.save(tmp_path / "model")
    for loaded in (kind.load(tmp_path / "model") for kind in (Doc2Vec, Word2Vec, KeyedVectors)):
        assert type(loaded) is Doc2Vec
        assert str(loaded) == str(saved)
        assert loaded.dv.index_to_key == saved.dv.index_to_key
        np.testing.assert_array_equal(loaded.dv.vectors, saved.dv.vectors)
        assert not loaded.dv.vectors_lockf.any()
        assert loaded.dv.get_vecattr("topic 1", "doc_count") == 20
        np.testing.assert_array_equal(loaded.infer_vector(TEXTS[0]), saved.infer_vector(TEXTS[0]))
        loaded.train(corpus, total_examples=60, epochs=1)


def test_gensims_own_files_are_loaded(tmp_path: Path) -> None:
    corpus = [theirs.TaggedDocument(words, [row, f"topic {row % TOPICS}"]) for row, words in enumerate(TEXTS)]
    saved = theirs.Doc2Vec(corpus, **SMALL, dm=0, dbow_words=1)
    for options in ({}, {"sep_limit": 0}):
        saved.save(str(tmp_path / "model"), **options)
        loaded = Doc2Vec.load(tmp_path / "model")
        assert (str(loaded), loaded.dbow_words) == (str(saved), 1)
        assert loaded.dv.index_to_key == saved.dv.index_to_key
        assert loaded.dv.get_vecattr("topic 1", "word_count") == 800
        np.testing.assert_array_equal(loaded.dv.vectors, saved.dv.vectors)
        vector = loaded.infer_vector(TEXTS[4])
        assert np.mean([tag % TOPICS == 1 for tag, _ in loaded.dv.most_similar([vector], topn=10, clip_end=60)]) > 0.9


@pytest.mark.parametrize(
    "name", ["doc2vec_old", *(f"old_d2v_models/d2v_{version}.mdl" for version in ("0.12.0", "3.4.0"))]
)
def test_files_that_gensim_4_does_not_open_are_loaded(name: str) -> None:
    loaded = Doc2Vec.load(datapath(name))
    assert loaded.dv.index_to_key == [*range(len(loaded.dv.vectors))]
    assert loaded.infer_vector(loaded.wv.index_to_key[:2]).shape == (loaded.vector_size,)


@pytest.mark.parametrize(("doctag_vec", "word_vec"), [(True, True), (True, False), (False, True)])
def test_word2vec_format_holds_tags_and_words(tmp_path: Path, model: Doc2Vec, doctag_vec: bool, word_vec: bool) -> None:
    model.save_word2vec_format(tmp_path / "vectors", doctag_vec, word_vec)
    loaded = KeyedVectors.load_word2vec_format(tmp_path / "vectors")
    tags = [f"*dt_{row}" for row in range(60)] if doctag_vec else []
    assert loaded.index_to_key == [*(model.wv.index_to_key if word_vec else []), *tags]
    if doctag_vec:
        np.testing.assert_allclose(loaded["*dt_3"], model.dv[3], rtol=1e-5)


def test_items_of_a_model_are_words_or_tags(model: Doc2Vec) -> None:
    np.testing.assert_array_equal(model["w1"], model.wv["w1"])
    np.testing.assert_array_equal(model["w1", 3], [model.wv["w1"], model.wv[3]])
    assert untrained_model(documents(str))["7"].shape == (12,)
    with pytest.raises(KeyError):
        model["unknown"]
    assert (model.dm, model.dbow, model.estimated_lookup_memory()) == (False, 1, 200 * 60)


def test_reset_from_copies_words_and_tags(model: Doc2Vec) -> None:
    other = Doc2Vec(**SMALL, dm=0)
    other.reset_from(model)
    assert (other.wv.index_to_key, other.dv.index_to_key) == (model.wv.index_to_key, model.dv.index_to_key)
    assert (other.dv.vectors != model.dv.vectors).any(axis=1).all()
    other.train(documents(), total_words=2400, epochs=20)
    np.testing.assert_array_equal(other.dv.vectors, model.dv.vectors)
    other.init_sims(replace=True)
    np.testing.assert_allclose(np.linalg.norm(other.dv.vectors, axis=1), 1, rtol=1e-5)


def test_vectors_of_tags_can_be_given(model: Doc2Vec) -> None:
    given = copy.deepcopy(model.dv)
    np.testing.assert_array_equal(untrained_model(dv=given).dv.vectors, model.dv.vectors)


class ChangedJobs(Doc2Vec):
    def _do_train_job(self, sentences: list[Any], alpha: float, inits: Any) -> tuple[int, int]:
        return super()._do_train_job(sentences, alpha, inits)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (NotImplementedError, "dm_concat=1: .*use dm_mean=1", lambda: Doc2Vec(dm_concat=1)),
        (NotImplementedError, "ChangedJobs._do_train_job", lambda: ChangedJobs(documents(), **SMALL)),
        (TypeError, "list of words, not the string 'a text'", lambda: untrained_model().infer_vector("a text")),
        (AttributeError, "no attribute 'words'", lambda: Doc2Vec(TEXTS, **SMALL)),
        (TypeError, "corpus_file", lambda: Doc2Vec(**SMALL).build_vocab(corpus_file="missing")),
        (RuntimeError, "build vocabulary", lambda: Doc2Vec(**SMALL).infer_vector(["a"])),
    ],
)
def test_mistakes_are_refused_in_one_line(error: type[Exception], message: str, call: Any) -> None:
    with pytest.raises(error, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_models_of_concatenated_vectors_are_refused_when_they_are_read(model: Doc2Vec, tmp_path: Path) -> None:
    ours = copy.deepcopy(model)
    ours.dm_concat = 1
    ours.save(tmp_path / "model")
    with pytest.raises(NotImplementedError, match=r"dm_concat=1: .*use dm_mean=1"):
        Doc2Vec.load(tmp_path / "model")


def test_missing_counts_and_replaced_tags_without_vectors_are_refused(model: Doc2Vec) -> None:
    ours = copy.deepcopy(model)
    del ours.wv.expandos["count"]
    with pytest.raises(RuntimeError, match="have no counts"):
        ours.infer_vector(["w1"])
    ours = copy.deepcopy(model)
    ours.dv.index_to_key = [*range(100)]
    with pytest.raises(RuntimeError, match=r"dv\.vectors has shape \(60, 12\), but the model has 100 tags"):
        ours.train(documents(), total_examples=60, epochs=1)


@pytest.mark.parametrize("name", ["words", "vectors", "vectors_lockf"])
def test_damaged_tags_are_refused(tmp_path: Path, model: Doc2Vec, name: str) -> None:
    model.save(tmp_path / "model")
    content = native.FORMAT.load(tmp_path / "model")
    content.tensors[f"dv.{name}"] = content.tensors[f"dv.{name}"][:0]
    native.FORMAT.save(tmp_path / "model", content, replace=True)
    with pytest.raises(W2VError, match="damaged"):
        Doc2Vec.load(tmp_path / "model")


def test_readers_match_gensim(tmp_path: Path) -> None:
    path = tmp_path / "ca01"
    path.write_text("The/at Jury/nn-tl said/vbd ,/, 1/2/cd\n\n./.\nTerm-end/nn plain\n")
    for ours, expected in (
        (TaggedBrownCorpus(tmp_path), "TaggedBrownCorpus"),
        (TaggedLineDocument(path), "TaggedLineDocument"),
    ):
        source = str(tmp_path if expected == "TaggedBrownCorpus" else path)
        assert list(ours) == list(getattr(theirs, expected)(source))
    with path.open("rb") as file:
        assert list(TaggedLineDocument(file)) == list(TaggedLineDocument(path))
    assert str(next(iter(TaggedLineDocument(path)))).startswith("TaggedDocument<['The/at', ")


def test_a_string_instead_of_words_gives_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    Doc2Vec().build_vocab([TaggedDocument("human", [12])])
    assert "Each 'words' should be a list of words (usually unicode strings)." in caplog.text
    assert "Highest int doctag (12) larger than count of documents (1)" in caplog.text
