"""w2v.gensim's Word2Vec, compared with gensim's."""

import copy
import itertools
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import gensim
import numpy as np
import pytest

import w2v
from w2v.formats import native
from w2v.gensim.model_file import content_of
from w2v.gensim.models.callbacks import CallbackAny2Vec
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.models.word2vec import LineSentence, Text8Corpus, Word2Vec

# gensim warns about its own deprecated members.
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")

RANDOM = np.random.default_rng(7)
SENTENCES = [[f"w{k}" for k in RANDOM.zipf(1.4, 12) % 60] for _ in range(400)]
SMALL: dict[str, Any] = {"vector_size": 12, "min_count": 2, "workers": 1, "epochs": 3, "sample": 0.01}
BOTH: tuple[Any, Any] = (Word2Vec, gensim.models.Word2Vec)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in SENTENCES))
    return path


@pytest.fixture
def model() -> Word2Vec:
    return Word2Vec(SENTENCES, **SMALL)


def untrained_model(**options: Any) -> Word2Vec:
    model = Word2Vec(**SMALL | options)
    model.build_vocab(SENTENCES)
    return model


def train(model: Any, epochs: int = 1, text: Any = SENTENCES, **options: Any) -> Any:
    return model.train(text, total_examples=400, epochs=epochs, **options)


def same_vectors(one: Word2Vec, other: Word2Vec) -> bool:
    return one.wv.index_to_key == other.wv.index_to_key and bool((one.wv.vectors == other.wv.vectors).all())


@pytest.mark.parametrize("options", [{}, {"sg": 1}, {"hs": 1, "negative": 0}, {"sg": 1, "hs": 1, "negative": 0}])
def test_lists_files_and_separate_steps_train_the_same_vectors(file: Path, options: dict[str, Any]) -> None:
    model = Word2Vec(SENTENCES, **SMALL, **options)
    assert same_vectors(model, Word2Vec(LineSentence(file), **SMALL, **options))
    assert same_vectors(model, Word2Vec(corpus_file=str(file), **SMALL, **options))
    stepwise = untrained_model(**options)
    before = stepwise.wv.vectors.copy()
    train(stepwise, epochs=3)
    assert same_vectors(model, stepwise)
    assert isinstance(stepwise.wv, KeyedVectors)
    assert (before != stepwise.wv.vectors).any(axis=1).all()
    assert (model.corpus_count, model.corpus_total_words) == (400, 4800)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sorted_vocab": 0},
        {"max_final_vocab": 20},
        {"max_vocab_size": 30},
        {"null_word": 1},
        {"trim_rule": lambda word, count, least: 1 if word == "w1" else 2 if word == "w59" else 0},
    ],
)
def test_vocabulary_matches_gensim(options: dict[str, Any]) -> None:
    ours, theirs = (kind(SENTENCES, **SMALL, **options) for kind in BOTH)
    assert ours.effective_min_count == theirs.effective_min_count
    np.testing.assert_allclose(ours.cum_table, theirs.cum_table, atol=1)
    for updated in (False, "null_word" not in options):  # gensim adds the null word again in an update
        for model in (ours, theirs) if updated else ():
            model.build_vocab([["new", "new", "w1", "w1"]], update=True)
        assert ours.wv.index_to_key == theirs.wv.index_to_key
        assert ours.wv.expandos["count"].tolist() == theirs.wv.expandos["count"].tolist()


def test_training_continues_from_wv_vectors_except_locked_rows(model: Word2Vec) -> None:
    model.wv.vectors[:] += 100
    model.wv.vectors_lockf = np.ones(len(model.wv), np.float32)
    model.wv.vectors_lockf[3] = 0
    before = model.wv.vectors.copy()
    train(model, 2, start_alpha=1e-4)
    assert model.wv.vectors.min() > 90
    assert np.flatnonzero((before == model.wv.vectors).all(axis=1)).tolist() == [3]


def test_update_adds_words_and_keeps_the_others(model: Word2Vec) -> None:
    before = model.wv.vectors.copy()
    more = [["new", "w1"]] * 5
    model.build_vocab(more, update=True)
    np.testing.assert_array_equal(model.wv.vectors[:-1], before)
    assert model.wv.index_to_key[-1] == "new"
    new = model.wv["new"].copy()
    model.train(more, total_examples=5, epochs=5)
    assert (model.wv["new"] != new).any()
    del model.wv.expandos["count"]
    model.build_vocab([["newer", "w1"]] * 5, update=True)
    assert [model.wv.get_vecattr(word, "count") for word in ("newer", "w1", "w2")] == [5, 5, 0]


def test_callbacks_see_each_epoch() -> None:
    losses: list[float] = []
    vectors: list[np.ndarray] = []

    def watch(model: Word2Vec) -> None:
        losses.append(model.get_latest_training_loss())
        vectors.append(model.wv.vectors.copy())
        assert model.wv.most_similar("w1")

    watcher = Mock(spec=CallbackAny2Vec, on_epoch_end=Mock(side_effect=watch))
    model = Word2Vec(SENTENCES, **SMALL | {"epochs": 5, "alpha": 0.1}, compute_loss=True, callbacks=[watcher])
    calls = [name.removeprefix("on_") for name, *_ in watcher.method_calls]
    assert calls == ["train_begin", *["epoch_begin", "epoch_end"] * 5, "train_end"]
    assert all((one != other).any() for one, other in itertools.pairwise(vectors))
    shares = np.diff([0, *losses])
    assert (shares > 0).all()
    assert shares[-1] < shares[0]
    assert model.get_latest_training_loss() == losses[-1]


class CountedIterations(list[list[str]]):
    iterations = 0

    def __iter__(self) -> Iterator[list[str]]:
        self.iterations += 1
        return super().__iter__()


@pytest.mark.parametrize("options", [{}, {"hs": 1}, {"callbacks": [CallbackAny2Vec()]}])
def test_sentences_are_read_once(options: dict[str, Any]) -> None:
    sentences = CountedIterations(SENTENCES)
    model = Word2Vec(sentences, **SMALL, **options)
    assert sentences.iterations == 2  # once to count the words, once to train
    assert train(model, 2, [["unknown", "w1"]]) == (0, 4)
    if "hs" in options:  # both losses
        assert model.syn1.any()
        assert model.syn1neg.any()
        assert train(model, 2)[1] == 2 * 4800


def test_loss_is_the_sum_over_predictions() -> None:
    model = untrained_model(sg=1)
    train(model, compute_loss=True, start_alpha=1e-9, end_alpha=1e-9)
    found = w2v.train(SENTENCES, model="skipgram", alpha=1e-9, min_alpha=1e-9, **SMALL | {"epochs": 1})
    predictions = found.metrics["predictions"][0]
    assert model.get_latest_training_loss() == pytest.approx(6 * np.log(2) * predictions, rel=0.02)


def test_word_totals_match_gensim(file: Path) -> None:
    ours, theirs = (kind(SENTENCES, **SMALL | {"min_count": 40}) for kind in BOTH)
    unknown = [*SENTENCES, ["unknown", "w1", "w2"], ["unknown"]]
    for text, same_text, words in (
        (SENTENCES, SENTENCES, 4800),
        (LineSentence(file), SENTENCES, 4800),
        (unknown, unknown, 4804),
    ):
        found, expected = train(ours, 9, text), train(theirs, 9, same_text)
        assert found[0] == pytest.approx(expected[0], rel=0.02)
        assert found[1] == expected[1] == 9 * words


def test_invalid_alpha_does_not_change_the_model(model: Word2Vec) -> None:
    before = model.alpha, model.min_alpha, model.epochs
    for wrong in (-0.05, float("nan"), float("inf"), 1e9):
        for name in ("start_alpha", "end_alpha"):
            with pytest.raises(ValueError, match=f"alpha {wrong}: it must be a number, from 0"):
                train(model, 7, **{name: wrong})
    assert (model.alpha, model.min_alpha, model.epochs) == before


def test_any_hashable_object_can_be_a_word() -> None:
    model = Word2Vec([[1, "new york", (2, 3)]] * 20, vector_size=4, min_count=1, workers=1, sample=0)
    assert {"new york", (2, 3)} < set(model.wv.key_to_index)
    assert model.wv.most_similar("new york")


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        (np.array(SENTENCES), {}, {}),  # has no truth value, like a column of a data frame
        (SENTENCES, {"sample": None}, {"sample": 0}),
        (SENTENCES, {"workers": 4}, {}),  # a small text gives the same vectors for any number of threads
        (SENTENCES, {"workers": 0}, {}),
        (SENTENCES, {"workers": -1}, {}),
        # Scripts lower alpha below min_alpha, because they do not change min_alpha.
        (SENTENCES, {"alpha": 0.001, "min_alpha": 0.01}, {"alpha": 0.01, "min_alpha": 0.01}),
    ],
    ids=["array", "sample", "workers", "no workers", "fewer", "alpha"],
)
def test_equivalent_arguments_train_the_same_vectors(text: Any, one: dict[str, Any], other: dict[str, Any]) -> None:
    assert same_vectors(Word2Vec(text, **SMALL | one), Word2Vec(SENTENCES, **SMALL | other))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_can_be_trained(copied: Callable[[Word2Vec], Word2Vec], model: Word2Vec) -> None:
    found = copied(model)
    assert same_vectors(model, found)
    train(found)
    assert same_vectors(model, found) == (copied is copy.copy)  # a shallow copy shares the vectors, as in gensim
    with pytest.raises(AttributeError, match="on the class"):
        found.load("any.model")


@pytest.mark.parametrize("options", [{}, {"hs": 1}, {"hs": 1, "negative": 0}])
def test_other_members_match_gensim(options: dict[str, Any]) -> None:
    ours, theirs = (kind(SENTENCES, **SMALL, **options) for kind in BOTH)
    assert ours.estimate_memory() == theirs.estimate_memory()
    assert ours.estimate_memory(10**6, {"text": 5}) == theirs.estimate_memory(10**6, {"text": 5})
    vector, expected = (model.seeded_vector("text", 7) for model in (ours, theirs))
    assert (vector.shape, vector.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(vector, ours.seeded_vector("text", 7))
    assert (vector != ours.seeded_vector("other", 7)).all()
    assert np.abs(vector).max() <= 0.5 / 7
    if options:
        for name in ("code", "point"):
            assert ours.wv.get_vecattr("w1", name).dtype == theirs.wv.get_vecattr("w1", name).dtype
    for model in (ours, theirs):
        model.make_cum_table(1000)
        model.add_null_word()
        model.wv.vectors = np.vstack([model.wv.vectors, model.wv.vectors[:1]])
        model.init_sims(replace=True)
        assert model.wv.index_to_key[-1] == "\0"
        np.testing.assert_allclose(np.linalg.norm(model.wv.vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(ours.cum_table[:-1], theirs.cum_table, atol=20)  # ours has the new word


def test_saved_model_can_be_trained(tmp_path: Path) -> None:
    model = Word2Vec(SENTENCES, **SMALL, ns_exponent=-0.5, hs=1)
    model.save(tmp_path / "any.model")
    for mmap in (None, "r"):
        loaded, again = (Word2Vec.load(tmp_path / "any.model", mmap=each) for each in (mmap, None))
        assert same_vectors(model, loaded)
        assert (loaded.ns_exponent, loaded.corpus_count, loaded.epochs) == (-0.5, 400, 3)
        for one in (loaded, again):
            train(one)
        assert same_vectors(again, loaded)
        assert not same_vectors(model, loaded)


def test_predictions_match_gensim() -> None:
    ours, theirs = (kind(SENTENCES, **SMALL) for kind in BOTH)
    theirs.wv.vectors, theirs.syn1neg = ours.wv.vectors.copy(), ours.syn1neg.copy()
    found, expected = (model.predict_output_word(["w1", 3, "unknown"], topn=4) for model in (ours, theirs))
    assert [word for word, _ in found] == [word for word, _ in expected]
    np.testing.assert_allclose([p for _, p in found], [p for _, p in expected], rtol=1e-4)
    assert ours.predict_output_word(["unknown"]) is None


def test_cbow_sum_learns_and_predicts_as_gensim() -> None:
    random = np.random.default_rng(1)
    topics = [[f"{'ab'[number % 2]}{word}" for word in random.integers(0, 8, 10)] for number in range(300)]
    options = SMALL | {"cbow_mean": 0, "sample": 0, "alpha": 0.1}
    model, other = (kind(topics, **options) for kind in BOTH)
    for word in ("a1", "b5"):
        assert {near[0] for near, _ in model.wv.most_similar(word, topn=7)} == {word[0]}
    before = model.wv.vectors.copy()
    train(model, 1, topics, start_alpha=1e-9, end_alpha=1e-9)
    np.testing.assert_allclose(model.wv.vectors, before, atol=1e-6)
    other.wv.vectors, other.syn1neg = before, model.syn1neg
    found, expected = ([share for _, share in one.predict_output_word(["a1", "a2"])] for one in (model, other))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("options", [{"sg": 1}, {"sg": 0}, {"cbow_mean": 0}])
def test_score_is_the_sum_of_log_probabilities(options: dict[str, int]) -> None:
    model = Word2Vec(SENTENCES, **SMALL, **options, hs=1, negative=0, window=2)
    sentence = SENTENCES[0][:6]
    inner, rows = model._model("hs")
    model_row = {model.wv.index_to_key[row]: number for number, row in enumerate(rows)}
    words = [model_row[word] for word in sentence if word in model_row]
    expected = 0.0
    for position, centre in enumerate(words):
        context = words[max(0, position - 2) : position] + words[position + 1 : position + 3]
        inputs = model.wv.vectors[rows[context]]
        if not model.sg:
            inputs = inputs.mean(axis=0, keepdims=True) * (1 if model.cbow_mean else len(inputs))
        logs = inner.log_probabilities(inputs)
        expected += float(logs[:, centre].sum())
    assert model.score([sentence, ["unknown"]]) == pytest.approx([expected, 0], rel=1e-4)
    before = model.syn1.copy()
    train(model, start_alpha=1e-9, end_alpha=1e-9)
    np.testing.assert_allclose(model.syn1, before, atol=1e-6)


def test_keyed_vectors_load_returns_the_saved_model(tmp_path: Path) -> None:
    path = tmp_path / "any.model"
    for model, kind in ((Word2Vec(SENTENCES, **SMALL), KeyedVectors), (BOTH[1](**SMALL), gensim.models.KeyedVectors)):
        model.language, model.wv.source, model.shares = "de", ["a", 1], np.arange(4) / 4
        model.save(str(path))
        for loaded in (kind.load(str(path)), type(model).load(str(path))):
            assert type(loaded) is type(model)
            assert (loaded.language, loaded.wv.source, loaded.shares.tolist()) == ("de", ["a", 1], [0, 0.25, 0.5, 0.75])
        with path.open("wb") as file:
            model.save(file)
        assert type(model).load(str(path)).language == "de"


def test_aligned_model_can_be_saved_but_not_trained(
    model: Word2Vec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = model.wv.index_to_key[30:10:-1]
    model.wv.vectors = model.wv[shared]
    model.wv.index_to_key, model.wv.key_to_index = shared, {word: row for row, word in enumerate(shared)}
    model.save(tmp_path / "any.model")
    assert "not saved: syn1neg of shape" in caplog.text
    loaded = Word2Vec.load(tmp_path / "any.model")
    assert loaded.wv.index_to_key == shared
    for one in (model, loaded):
        with pytest.raises(RuntimeError, match=r"syn1neg has shape .* need \(20, 12\)"):
            train(one)
    model.wv.vectors = model.wv.vectors[:, :2]
    model.save(tmp_path / "any.model")
    assert Word2Vec.load(tmp_path / "any.model").wv.vector_size == 2


def test_forged_model_files_are_refused(model: Word2Vec, tmp_path: Path) -> None:
    content = content_of(model)
    assert content.header.gensim
    saved = replace(content.header.gensim, attributes={**content.header.gensim.attributes, "negative": True})
    content = replace(content, header=replace(content.header, gensim=saved))
    native.write(tmp_path / "any.model", content)
    assert Word2Vec.load(tmp_path / "any.model").negative == 1  # gensim 3 has True for some numbers
    content.tensors["syn1neg"] = content.tensors["syn1neg"][:5]
    native.write(tmp_path / "any.model", content)
    with pytest.raises(w2v.W2VError, match="damaged: its arrays do not fit together"):
        Word2Vec.load(tmp_path / "any.model")


class Walker(Word2Vec):
    """A model like fastnode2vec's: its _do_train_job makes random walks from the first words of the sentences."""

    def __init__(self, graph: dict[str, str], **options: Any) -> None:
        super().__init__(min_count=1, vector_size=8, sg=1, workers=1, batch_words=10, **options)
        self.graph = graph
        self.build_vocab([[word] for word in graph])

    def _do_train_job(self, sentences: Any, alpha: float, inits: Any) -> tuple[int, int]:
        walks = [[start, *(self.graph[start] for _ in placeholders)] for start, *placeholders in sentences]
        return super()._do_train_job(walks, alpha, inits)


def test_subclass_can_replace_sentences_in_do_train_job(tmp_path: Path) -> None:
    graph = {f"{name}{row}": f"{'ba'[name == 'b']}{row}" for row in range(10) for name in "ab"}
    model = Walker(graph, sample=0, alpha=0.1)
    starts = [[node] * 5 for node in graph] * 50
    assert model.train((start for start in starts), total_examples=len(starts), epochs=1) == (5000, 5000)
    assert model.train(starts, total_examples=len(starts), epochs=10) == (50_000, 50_000)
    assert model.wv.similarity("a3", "b3") > 0.5 > model.wv.similarity("a3", "b4")
    model.save(tmp_path / "any.model")
    loaded = Walker.load(tmp_path / "any.model")  # load does not call the constructor, which requires a graph
    assert isinstance(loaded, Walker)
    assert loaded.graph == graph


def test_models_without_a_seed_differ(tmp_path: Path) -> None:
    one, other = (Word2Vec(SENTENCES, **SMALL, seed=None) for _ in range(2))
    assert not same_vectors(one, other)
    assert one.random.random() != other.random.random()
    one.save(tmp_path / "any.model")
    assert Word2Vec.load(tmp_path / "any.model").seed is None


def test_final_learning_rate_matches_gensims_last_batch() -> None:
    """gensim uses one rate for a batch of 10,000 words, so that the rate falls less in a small text."""
    for size, epochs in ((10_000, 1), (4801, 2), (2400, 1), (480, 3)):
        options = SMALL | {"batch_words": size, "epochs": epochs}
        found, expected = (kind(SENTENCES, **options).min_alpha_yet_reached for kind in BOTH)
        assert found == pytest.approx(expected, abs=2e-4)


def test_progress_per_sets_the_interval_of_log_messages(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gensim.models.word2vec")
    messages = []
    for kind in (Word2Vec, gensim.models.Word2Vec):
        caplog.clear()
        kind(min_count=1).build_vocab(SENTENCES, progress_per=150)
        messages.append([record.getMessage() for record in caplog.records if "PROGRESS" in record.getMessage()])
    assert messages[0] == messages[1]
    assert len(messages[0]) == 3


def test_messages_use_gensims_loggers(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level("INFO")
    Word2Vec(SENTENCES, **SMALL).save(tmp_path / "any.model")
    assert {record.name for record in caplog.records} == {"gensim.models.word2vec", "gensim.utils"}
    assert len(caplog.records) >= 17
    for part in ("collecting all words", "60 word types from a corpus of 4800 raw words", "training on 14400 raw"):
        assert part in caplog.text


@pytest.mark.parametrize("reader", [LineSentence, Text8Corpus])
def test_max_sentence_length_is_respected(file: Path, reader: Any) -> None:
    sentences = reader(file, max_sentence_length=5)
    model = Word2Vec(sentences, **SMALL)
    assert same_vectors(model, Word2Vec(list(sentences), **SMALL))
    assert model.corpus_count == len(list(sentences)) > 400


class Unsupported(Word2Vec):
    def _train_epoch(self) -> None: ...


def interrupted() -> Iterator[list[str]]:
    yield SENTENCES[0]
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (TypeError, "generator", lambda file: Word2Vec(sentence for sentence in SENTENCES)),
        (TypeError, "corpus_file", lambda file: Word2Vec(corpus_file=f"{file}x")),
        (TypeError, "either", lambda file: Word2Vec(SENTENCES, corpus_file=str(file))),
        (FileNotFoundError, None, lambda file: Word2Vec(LineSentence(f"{file}x"))),
        (FileNotFoundError, None, lambda file: Word2Vec(Text8Corpus(f"{file}x"))),
        (FileNotFoundError, None, lambda file: Word2Vec(LineSentence("-"))),
        (RuntimeError, "vocabulary", lambda file: Word2Vec([])),
        (RuntimeError, "prior vocabulary", lambda file: Word2Vec().build_vocab(SENTENCES, update=True)),
        (ValueError, "hs=1 or negative", lambda file: Word2Vec(SENTENCES, hs=0, negative=0)),
        (AttributeError, "on the class", lambda file: Word2Vec(SENTENCES, **SMALL).load(file)),
        (
            KeyboardInterrupt,
            None,
            lambda file: Word2Vec(SENTENCES, **SMALL).train(interrupted(), total_words=9, epochs=1),
        ),
        (
            NotImplementedError,
            r"Unsupported\._train_epoch would not be called",
            lambda file: Unsupported(SENTENCES, **SMALL),
        ),
    ],
)
def test_invalid_use_raises_gensims_exceptions(
    file: Path, error: type[Exception], message: str | None, call: Callable[[Path], object]
) -> None:
    with pytest.raises(error, match=message):
        call(file)


def test_untrainable_text_logs_a_warning(model: Word2Vec, caplog: pytest.LogCaptureFixture) -> None:
    before = model.wv.vectors.copy()
    assert train(model, 2, [["unknown"]]) == (0, 2)
    assert "holds no words" in caplog.text
    np.testing.assert_array_equal(model.wv.vectors, before)
    Word2Vec(["text", "more"], min_count=1, vector_size=4)
    assert "should be a list of words" in caplog.text


@pytest.mark.parametrize("options", [{}, {"hs": 1, "negative": 0, "sg": 1}, {"hs": 1, "negative": 3}], ids=str)
def test_model_saved_by_gensim_can_be_loaded_and_trained(tmp_path: Path, options: dict[str, Any]) -> None:
    theirs = BOTH[1](SENTENCES, **SMALL, **options)
    theirs.save(str(tmp_path / "their.model"))
    ours = Word2Vec.load(tmp_path / "their.model")
    assert ours.wv.index_to_key == theirs.wv.index_to_key
    assert ours.wv.expandos["count"].tolist() == theirs.wv.expandos["count"].tolist()
    np.testing.assert_array_equal(ours.wv.vectors, theirs.wv.vectors)
    for name in {"syn1", "syn1neg"} & vars(theirs).keys():
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    for name in ("sg", "hs", "negative", "window", "epochs", "alpha", "min_alpha", "corpus_count", "seed", "sample"):
        assert getattr(ours, name) == getattr(theirs, name), name
    before = ours.wv.vectors.copy()
    train(ours, 2)
    assert not np.array_equal(ours.wv.vectors, before)
    for vectors in (theirs.wv, ours.wv):
        vectors.save(str(tmp_path / "any.kv"))
        with pytest.raises(AttributeError, match=r"kv is not a Word2Vec model: it holds only vectors; use Keyed"):
            Word2Vec.load(tmp_path / "any.kv")


@pytest.mark.parametrize("sample", [0.01, 0.999, 1, 1.5, 30])
def test_a_sample_from_one_on_is_a_count_of_words_as_in_gensim(sample: float) -> None:
    found = []
    for kind in BOTH:
        model = kind(**SMALL | {"sample": sample})
        model.scan_vocab(SENTENCES)
        found.append(model.prepare_vocab()["downsample_total"])
    assert found[0] == pytest.approx(found[1], abs=1)
