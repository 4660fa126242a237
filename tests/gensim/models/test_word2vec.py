"""w2v.gensim's Word2Vec, compared with gensim's."""

import copy
import itertools
import pickle
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import w2v
from tests.helpers import import_gensim
from w2v._formats import native, registry
from w2v._progress import Progress
from w2v.gensim.models import word2vec
from w2v.gensim.models.callbacks import CallbackAny2Vec
from w2v.gensim.models.fasttext import FastText
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.models.word2vec import LineSentence, Text8Corpus, Word2Vec
from w2v.gensim.utils import RULE_DEFAULT, RULE_DISCARD, RULE_KEEP

# gensim warns about its own deprecated members.
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")

gensim, datapath = import_gensim(), import_gensim("gensim.test.utils").datapath
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


def trim_rule(word: str, count: int, min_count: int) -> int:
    """Drop the frequent word w1, and keep the rare word w59."""
    return {"w1": RULE_DISCARD, "w59": RULE_KEEP}.get(word, RULE_DEFAULT)


def untrained_model(**options: Any) -> Word2Vec:
    model = Word2Vec(**SMALL | options)
    model.build_vocab(SENTENCES)
    return model


def train(model: Any, epochs: int = 1, text: Any = SENTENCES, **options: Any) -> Any:
    return model.train(text, total_examples=400, epochs=epochs, **options)


def same_vectors(one: Word2Vec, other: Word2Vec) -> bool:
    return one.wv.index_to_key == other.wv.index_to_key and bool((one.wv.vectors == other.wv.vectors).all())


def test_training_leaves_no_temporary_files_and_reads_a_changed_text_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    model = Word2Vec(corpus_file=str(file), **SMALL)
    assert list(temporary.iterdir()) == []
    words = model.wv.index_to_key[:2]
    file.write_text(f"{' '.join(words)}\n" * 50)
    totals = {"total_words": 100, "epochs": 2}
    for options in ({}, {"callbacks": [CallbackAny2Vec()]}):  # with callbacks, the ids of the text are stored
        assert model.train(corpus_file=str(file), **totals, **options)[1] == 200
        assert list(temporary.iterdir()) == []


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


@pytest.mark.parametrize("options", [{}, {"sorted_vocab": 0}, {"null_word": 1}, {"trim_rule": trim_rule}])
def test_vocabulary_matches_gensim(options: dict[str, Any]) -> None:
    ours, theirs = (kind(SENTENCES, **SMALL, **options) for kind in BOTH)
    assert ours.effective_min_count == theirs.effective_min_count
    np.testing.assert_allclose(ours.cum_table, theirs.cum_table, atol=1)
    for updated in (False, "null_word" not in options):  # gensim adds the null word again in an update
        for model in (ours, theirs) if updated else ():
            model.build_vocab([["new", "new", "w1", "w1"]], update=True)
        assert ours.wv.index_to_key == theirs.wv.index_to_key
        assert ours.wv.expandos["count"].tolist() == theirs.wv.expandos["count"].tolist()


@pytest.mark.parametrize("sorted_vocab", [1, 0])
def test_training_continues_from_wv_vectors_except_locked_rows(sorted_vocab: int) -> None:
    model = Word2Vec(SENTENCES, sorted_vocab=sorted_vocab, **SMALL)
    counts = model.wv.expandos["count"]
    assert (sorted(counts, reverse=True) == list(counts)) == bool(sorted_vocab)
    model.wv.vectors[:] += 100
    model.wv.vectors_lockf = np.ones(len(model.wv), np.float32)
    model.wv.vectors_lockf[3] = 0
    before = model.wv.vectors.copy()
    train(model, 2, start_alpha=1e-4)
    assert model.wv.vectors.min() > 90
    assert np.flatnonzero((before == model.wv.vectors).all(axis=1)).tolist() == [3]


def test_one_lock_holds_for_all_rows_as_in_gensim(tmp_path: Path) -> None:
    for kind in BOTH:
        model = kind(SENTENCES, **SMALL)
        model.save(str(tmp_path / "model"))
        for each in (model, kind.load(str(tmp_path / "model"))):
            assert each.wv.vectors_lockf.tolist() == [1]
            each.wv.vectors_lockf[0] = 0
            before = each.wv.vectors.copy()
            train(each, 1)
            np.testing.assert_array_equal(each.wv.vectors, before)


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
    # With untrained output rows, the word and each of the 5 negatives of a prediction have the loss log 2.
    assert model.get_latest_training_loss() == pytest.approx(6 * np.log(2) * predictions, rel=0.02)


def test_word_totals_match_gensim(file: Path) -> None:
    ours, theirs = (kind(SENTENCES, **SMALL | {"min_count": 40}) for kind in BOTH)
    unknown = [*SENTENCES, ["unknown", "w1", "w2"], ["unknown"]]
    texts = (SENTENCES, SENTENCES, 4800), (LineSentence(file), SENTENCES, 4800), (unknown, unknown, 4804)
    for text, same_text, words in texts:
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
def test_memory_estimate_tables_and_null_word_match_gensim(options: dict[str, Any]) -> None:
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
    model.save(tmp_path / "any.model")
    content = registry.read(tmp_path / "any.model")
    assert content.header.gensim
    content.header.gensim.attributes["negative"] = True
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


def test_log_records_do_not_keep_an_error_with_the_ids_of_the_text(caplog: pytest.LogCaptureFixture) -> None:
    """Windows could not remove the temporary file of the ids."""
    Word2Vec([["a", "b", "c"]] * 9, vector_size=2, min_count=1, epochs=1)
    assert "nothing to learn" in caplog.text
    assert not any(isinstance(each, Exception) for record in caplog.records for each in record.args or ())


def test_messages_match_gensim(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level("INFO")
    messages = []
    for kind in BOTH:
        caplog.clear()
        kind(SENTENCES, **SMALL).save(str(tmp_path / "any.model"))
        assert {record.name for record in caplog.records} == {"gensim.models.word2vec", "gensim.utils"}
        # Their first 36 characters have none of the numbers that depend on chance. A slow epoch also logs its progress.
        starts = [record.getMessage()[:36] for record in caplog.records]
        messages.append(sorted(start for start in starts if " - PROGRESS" not in start))
        assert "training on 14400 raw" in caplog.text
    messages[1].remove("not storing attribute cum_table")  # only gensim's files have attributes to leave out
    assert messages[0] == messages[1]


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
        (TypeError, "corpus_file", lambda file: Word2Vec(corpus_file=f"{file}x")),
        (TypeError, "either", lambda file: Word2Vec(SENTENCES, corpus_file=str(file))),
        (ValueError, "^sample -1: it must be 0 or higher$", lambda file: Word2Vec(SENTENCES, sample=-1)),
        (FileNotFoundError, None, lambda file: Word2Vec(LineSentence(f"{file}x"))),
        (FileNotFoundError, None, lambda file: Word2Vec(Text8Corpus(f"{file}x"))),
        (FileNotFoundError, None, lambda file: Word2Vec(LineSentence("-"))),
        (RuntimeError, "vocabulary", lambda file: Word2Vec([])),
        (RuntimeError, "prior vocabulary", lambda file: Word2Vec().build_vocab(SENTENCES, update=True)),
        (ValueError, "hs=1 or negative", lambda file: Word2Vec(SENTENCES, hs=0, negative=0)),
        (KeyboardInterrupt, None, lambda file: untrained_model().train(interrupted(), total_words=9, epochs=1)),
        (NotImplementedError, r"Unsupported\._train_epoch would not", lambda file: Unsupported(SENTENCES, **SMALL)),
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


def events(obj: Any) -> list[str]:
    return [event["event"] for event in obj.lifecycle_events]


def test_initial_vectors_match_gensim() -> None:
    for options in ({}, {"seed": 5}, {"hs": 1}, {"hs": 1, "negative": 0}):
        ours, theirs = (kind(**SMALL | options) for kind in BOTH)
        for more in (SENTENCES, [["new", "new", "w1"]]):
            for model in (ours, theirs):
                model.build_vocab(more, update=more is not SENTENCES)
            assert ours.wv.index_to_key == theirs.wv.index_to_key
            np.testing.assert_array_equal(ours.wv.vectors, theirs.wv.vectors)
            for name in ("syn1", "syn1neg"):
                expected = getattr(theirs, name, None)
                np.testing.assert_array_equal(getattr(ours, name, None), expected)
    other = untrained_model(seed=9)
    other.reset_from(ours)
    assert (other.wv.index_to_key, other.corpus_count) == (ours.wv.index_to_key, ours.corpus_count)
    assert other.wv.vectors.shape == other.syn1neg.shape == ours.wv.vectors.shape
    assert not other.syn1neg.any()


OPTIONS: dict[str, Any] = {  # all different, so that swapped arguments show
    "vector_size": 12, "alpha": 0.03, "window": 4, "min_count": 3, "max_vocab_size": 1000, "sample": 0.02, "seed": 6,
    "workers": 2, "min_alpha": 0.002, "sg": 1, "hs": 1, "negative": 7, "ns_exponent": 0.6, "cbow_mean": 0, "epochs": 8,
    "null_word": 1, "sorted_vocab": 0, "batch_words": 900, "compute_loss": True, "max_final_vocab": 40,
    "shrink_windows": False,
}  # fmt: skip


@pytest.mark.parametrize("options", [{}, OPTIONS])
def test_attributes_of_a_new_model_match_gensim(options: dict[str, Any]) -> None:
    ours, theirs = (kind(**options) for kind in BOTH)
    names = {*OPTIONS, "corpus_count", "corpus_total_words", "train_count", "total_train_time", "running_training_loss"}
    names |= {"min_alpha_yet_reached", "effective_min_count", "layer1_size"}
    for name in names & vars(theirs).keys():
        assert getattr(ours, name) == getattr(theirs, name), name
    assert str(ours) == str(theirs)


def test_settings_of_a_run_follow_from_the_arguments() -> None:
    model = untrained_model(**OPTIONS | {"hs": 0, "sg": 0, "null_word": 0, "sorted_vocab": 1})
    settings = model._model("ns", start=2, end=5)[0].settings
    assert (settings.model, settings.loss, settings.epochs) == ("cbow", "ns", 3)
    for name in ("vector_size", "window", "negative", "ns_exponent", "sample", "shrink_windows"):
        assert getattr(settings, name) == OPTIONS[name], name
    skipgram = untrained_model(hs=1, sg=1, negative=0, sample=30)
    settings = skipgram._model("hs")[0].settings
    assert (settings.model, settings.loss) == ("skipgram", "hs")
    assert 0 < settings.sample < 1
    assert settings.seed != skipgram._model("hs", start=1, end=2)[0].settings.seed
    before = skipgram._model("hs")[0].settings.seed
    train(skipgram)
    assert skipgram._model("hs")[0].settings.seed != before


def test_events_match_gensim(tmp_path: Path) -> None:
    found = []
    for kind in BOTH:
        one, other = kind(SENTENCES, **SMALL), kind(**SMALL)
        other.build_vocab(SENTENCES)
        train(other)
        other.save(str(tmp_path / "any.model"))
        found.append([events(one), events(other), events(kind.load(str(tmp_path / "any.model")))])
    assert found[0] == found[1]


@pytest.mark.parametrize("sample", [0.01, 0.999, 1, 1.5, 30, 0])
@pytest.mark.parametrize("min_count", [1, 40, 1000])
def test_effects_on_the_vocabulary_are_reported_as_in_gensim(sample: float, min_count: int) -> None:
    found = []
    for kind in BOTH:
        model = kind(**SMALL)
        model.scan_vocab(SENTENCES)
        found.append(model.prepare_vocab(dry_run=True, min_count=min_count, sample=sample))
        assert (len(model.wv), model.min_count, model.sample) == (0, SMALL["min_count"], SMALL["sample"])
        assert len(model.raw_vocab) == 60
        found.append(model.prepare_vocab(min_count=min_count, sample=sample, keep_raw_vocab=True))
        found.append((model.min_count, model.sample, len(model.raw_vocab)))
        model.prepare_vocab()
        found.append(len(model.raw_vocab))
    assert found[:4] == found[4:]


@pytest.mark.parametrize("limit", [3, 20, 59, 60, 61])
def test_limits_of_the_vocabulary_match_gensim(limit: int) -> None:
    ours, theirs = (kind(**SMALL | {"max_vocab_size": limit}) for kind in BOTH)
    for rule in (None, trim_rule):
        found, expected = (model.scan_vocab(SENTENCES, trim_rule=rule) for model in (ours, theirs))
        assert found == expected == (4800, 400)
        assert ours.raw_vocab == theirs.raw_vocab
    for min_count in (2, 60):
        ours, theirs = (kind(**SMALL | {"max_final_vocab": limit, "min_count": min_count}) for kind in BOTH)
        for model in (ours, theirs):
            model.build_vocab(SENTENCES)
        assert ours.effective_min_count == theirs.effective_min_count
        assert ours.wv.index_to_key == theirs.wv.index_to_key


def test_vocabulary_from_counts_matches_gensim() -> None:
    counts = {"a": 9, "b": 1, "c": 4, (1, 2): 4}
    for options in ({}, {"corpus_count": 7}, {"keep_raw_vocab": True}, {"trim_rule": lambda *_: RULE_KEEP}):
        ours, theirs = (kind(vector_size=3, min_count=2) for kind in BOTH)
        for model in (ours, theirs):
            model.build_vocab_from_freq(counts, **options)
        assert ours.wv.index_to_key == theirs.wv.index_to_key
        assert (ours.corpus_count, dict(ours.raw_vocab)) == (theirs.corpus_count, dict(theirs.raw_vocab))
        for model in (ours, theirs):
            model.build_vocab_from_freq({"a": 1, "new": 5}, update=True)
        assert ours.wv.index_to_key == theirs.wv.index_to_key
        assert ours.wv.expandos["count"].tolist() == theirs.wv.expandos["count"].tolist()


def test_an_empty_file_has_no_words(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    for kind in BOTH:
        model = kind()
        assert model.scan_vocab(corpus_file=str(tmp_path / "empty")) == (0, 0)
        assert not model.raw_vocab


@pytest.mark.parametrize("counts", [[3, 2, 1, 1], [9, 1, 1, 1, 1], [2, 1, 1]])
def test_huffman_codes_of_rare_words_are_as_long_as_gensims(counts: list[int]) -> None:
    lengths = []
    for kind in BOTH:
        model = kind(hs=1, min_count=0, vector_size=2)
        model.build_vocab_from_freq({f"w{row}": count for row, count in enumerate(counts)})
        lengths.append(sorted(len(model.wv.get_vecattr(word, "code")) for word in model.wv.index_to_key))
        for word in model.wv.index_to_key:
            assert len(model.wv.get_vecattr(word, "code")) == len(model.wv.get_vecattr(word, "point"))
    assert sum(np.power(2.0, -np.array(lengths[0]))) == 1
    assert np.dot(lengths[0], counts) == np.dot(lengths[1], counts)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (RuntimeError, "vocabulary before scoring", lambda kind: kind(hs=1, negative=0).score(SENTENCES)),
        (RuntimeError, "score needs hier", lambda kind: kind(SENTENCES, **SMALL).score(SENTENCES)),
        (RuntimeError, "needs negative sampling", lambda kind: kind(hs=1, negative=0).predict_output_word(["w1"])),
        (RuntimeError, "Parameters required", lambda kind: kind(**SMALL).predict_output_word(["w1"])),
        (RuntimeError, "vocabulary before training", lambda kind: train(kind(**SMALL))),
        (RuntimeError, "initialize vectors", lambda kind: train(with_words_only(kind))),
        (ValueError, "total_words", lambda kind: kind(SENTENCES, **SMALL).train(SENTENCES, epochs=1)),
        (ValueError, "of epochs", lambda kind: kind(SENTENCES, **SMALL).train(SENTENCES, total_examples=400)),
        (ValueError, "of epochs", lambda kind: train(kind(SENTENCES, **SMALL), 0)),
        (ValueError, "of epochs", lambda kind: train(kind(SENTENCES, **SMALL), -1)),
        (TypeError, "generator", lambda kind: train(kind(SENTENCES, **SMALL), 2, (each for each in SENTENCES))),
        (TypeError, "generator", lambda kind: kind((each for each in SENTENCES), **SMALL | {"epochs": 1})),
        (TypeError, "iterable of lists of words", lambda kind: kind(5, **SMALL)),
        (TypeError, "either sentences", lambda kind: kind(**SMALL).build_vocab()),
    ],
)
def test_errors_match_gensim(error: type[Exception], message: str, call: Any) -> None:
    ours, theirs = BOTH
    with pytest.raises(error) as raised:
        call(theirs)
    with pytest.raises(type(raised.value), match=message):
        call(ours)


def with_words_only(kind: Any) -> Any:
    model = kind(**SMALL)
    model.scan_vocab(SENTENCES)
    model.prepare_vocab()
    return model


def test_a_generator_is_read_in_one_pass() -> None:
    model, other = Word2Vec(**SMALL), untrained_model()
    model.build_vocab(sentence for sentence in SENTENCES)
    assert model.wv.index_to_key == other.wv.index_to_key
    assert train(model, 1, (sentence for sentence in SENTENCES)) == train(other)
    assert same_vectors(model, other)


class ReadAgain:
    """An iterator that iter() starts again."""

    def __iter__(self) -> Iterator[list[str]]:
        self.rest = iter(SENTENCES)
        return self

    def __next__(self) -> list[str]:
        return next(self.rest)


@pytest.mark.parametrize("options", [{}, {"hs": 1}])
@pytest.mark.parametrize(("iterate", "epochs_read"), [(lambda: map(list, SENTENCES), 1), (ReadAgain, 5)])
def test_an_iterator_is_read_in_each_epoch_as_in_gensim(
    iterate: Callable[[], Any], epochs_read: int, options: dict[str, Any]
) -> None:
    models = [kind(**SMALL | {"sample": 0, "min_count": 1} | options) for kind in BOTH]
    for model in models:
        model.build_vocab(iterate())
        assert train(model, 5, iterate()) == (epochs_read * 4800, epochs_read * 4800)
    assert models[0].min_alpha_yet_reached == pytest.approx(models[1].min_alpha_yet_reached)


def test_an_iterator_at_its_end_is_not_read_again() -> None:
    class OneShot:
        starts, sentences = 0, iter(SENTENCES)

        def __iter__(self) -> Any:
            self.starts += 1
            return self

        def __next__(self) -> list[str]:
            return next(self.sentences)

    class Epochs(CallbackAny2Vec):
        ended = 0

        def on_epoch_end(self, model: Any) -> None:
            self.ended += 1

    model, text, epochs = Word2Vec(**SMALL), OneShot(), Epochs()
    model.build_vocab(SENTENCES)
    model.train(text, total_examples=len(SENTENCES), epochs=30, callbacks=[epochs])
    assert (text.starts, epochs.ended) == (2, 30)
    assert model.min_alpha_yet_reached == pytest.approx(model.min_alpha, abs=1e-3)


def test_training_on_an_iterator_at_its_end_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    Word2Vec(iter(SENTENCES), **SMALL)  # build_vocab reads the whole iterator, so gensim trains nothing either
    line = "nothing was trained: the text is empty, or an iterator that has been read before; give a list"
    assert [record.getMessage() for record in caplog.records if record.name == "w2v"] == [line]


def test_loss_is_reset_by_each_training(model: Word2Vec) -> None:
    assert model.get_latest_training_loss() == 0
    train(model, 1, compute_loss=True)
    one = model.get_latest_training_loss()
    train(model, 1, compute_loss=True)
    assert 0 < model.get_latest_training_loss() < 1.1 * one
    train(model, 1)
    assert model.get_latest_training_loss() == 0


def test_both_losses_take_turns_in_each_epoch() -> None:
    """Callbacks are called after each epoch, so with them each epoch is a run of its own anyway."""
    one, other = (Word2Vec(SENTENCES, **SMALL, hs=1, callbacks=each) for each in ((), [CallbackAny2Vec()]))
    assert same_vectors(one, other)
    np.testing.assert_array_equal(one.syn1, other.syn1)
    np.testing.assert_array_equal(one.syn1neg, other.syn1neg)


def test_arguments_without_effect_cause_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    for options, message in (
        ({}, ""),
        ({"hashfxn": len}, "hashfxn has no effect"),
        ({"trim_rule": trim_rule}, "trim_rule and callbacks have no effect here"),
        ({"callbacks": [CallbackAny2Vec()]}, "trim_rule and callbacks have no effect here"),
    ):
        caplog.clear()
        Word2Vec(**SMALL | options)
        assert [message in record.getMessage() for record in caplog.records] == ([True] if message else [])
    caplog.clear()
    Word2Vec(SENTENCES, **SMALL, trim_rule=trim_rule, callbacks=[CallbackAny2Vec()])
    assert caplog.records == []


def test_warnings_match_gensim(caplog: pytest.LogCaptureFixture) -> None:
    found = []
    for kind in BOTH:
        caplog.clear()
        model = kind(SENTENCES, **SMALL)
        train(model, start_alpha=0.5)  # a higher rate than before
        model.predict_output_word(["unknown"])
        kind(**SMALL).build_vocab(["plain", "text"])
        kind(**SMALL).build_vocab([["a list"], "plain text"])
        kind(SENTENCES, **SMALL, hs=1)
        # gensim's message on an unknown word has a level of its own
        found.append([record.name for record in caplog.records if record.levelname == "WARNING"])
    assert found[0] == found[1] == 4 * ["gensim.models.word2vec"]


def test_text_warnings_are_logged_once_per_model(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    letters = str.maketrans("0123456789", "abcdefghij")  # words with digits could be identifiers
    sentences = [[word.translate(letters) for word in sentence] for sentence in SENTENCES]
    file.write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
    for kind in (Word2Vec, FastText):
        for text in (sentences, LineSentence(file)):
            model = kind(**SMALL, **({"bucket": 100} if kind is FastText else {}))
            model.build_vocab(text)
            counts = []
            for _ in range(2):
                caplog.clear()
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    train(model, 1, text)
                counts.append([each.getMessage() for each in caplog.records if "the text has" in each.getMessage()])
            assert len(counts[0]) == 1, (kind, text)
            assert "the text has only 4,800 words" in counts[0][0]
            assert counts[1] == []


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("shrink", [True, False])
def test_cbow_sum_learns_as_fast_as_in_gensim(window: int, shrink: bool) -> None:
    """After few steps, the output rows are proportional to the sums of the context vectors."""
    options = SMALL | {"cbow_mean": 0, "sample": 0, "window": window, "shrink_windows": shrink, "epochs": 1}
    sizes = []
    for kind in BOTH:
        model = kind(**options, alpha=1e-3, min_alpha=1e-3)
        model.build_vocab(SENTENCES)
        model.wv.vectors = np.full(model.wv.vectors.shape, 0.1, np.float32)
        train(model)
        sizes.append([np.abs(model.syn1neg[:5]).mean(), np.abs(model.wv.vectors[:5] - 0.1).mean()])
    np.testing.assert_allclose(*sizes, rtol=0.35)


class Recorded:
    """A base of a subclass that records the batches of its _do_train_job."""

    batches: list[list[int]]

    def _do_train_job(self, sentences: Any, alpha: float, inits: Any) -> tuple[int, int]:
        self.batches.append([len(sentence) for sentence in sentences])
        return super()._do_train_job(sentences, alpha, inits)  # type: ignore[misc]


@pytest.mark.parametrize("size", [10, 12, 25, 100])
def test_batches_match_gensim(size: int, file: Path) -> None:
    sentences = [sentence[: 1 + 5 * row % 12] for row, sentence in enumerate(SENTENCES)]
    batches = []
    for kind in (type(kind()) for kind in BOTH):
        recorded = type("Recorder", (Recorded, kind), {"batches": []})
        model = recorded(**SMALL | {"batch_words": size})
        model.build_vocab(sentences)
        model.train(sentences, total_examples=400, epochs=1)
        batches.append(model.batches)
    # The first 20 batches are read once more, to count their words.
    assert batches[0][-len(batches[1]) :] == batches[1]
    file_only = type("Recorder", (Recorded, Word2Vec), {"batches": []})(**SMALL)
    file_only.build_vocab(corpus_file=str(file))
    assert file_only.train(corpus_file=str(file), total_words=4800, epochs=1)[1] == 4800  # as in gensim, without jobs
    assert file_only.batches == []


def test_progress_is_logged_at_most_once_per_delay(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([100.0, 101.0, 102.5, 103.0, 104.5, 105.0, 107.0, 109.0, 111.0])
    monkeypatch.setattr(word2vec, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    caplog.set_level("INFO", "gensim.models.word2vec")
    log = word2vec.ProgressLog(2.0)
    for number in range(6):
        log(Progress("train", 25 * number, 200, "words", rate=1234.6, epoch=2, epochs=3))
    log(Progress("read", 1, 2, "bytes"))
    log(Progress("train", 1, 2, "words"))
    assert caplog.messages == [
        "EPOCH 1 - PROGRESS: at 12.50% words, 1235 words/s",
        "EPOCH 1 - PROGRESS: at 37.50% words, 1235 words/s",
        "EPOCH 1 - PROGRESS: at 62.50% words, 1235 words/s",
        "EPOCH 0 - PROGRESS: at 50.00% words, 0 words/s",
    ]


def test_score_stops_after_the_given_number_of_sentences() -> None:
    model = Word2Vec(SENTENCES, **SMALL, hs=1, negative=0)
    scores = model.score(SENTENCES[:5])
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(model.score(SENTENCES, total_sentences=5), scores)
    np.testing.assert_array_equal(model.score(iter(SENTENCES), 3), scores[:3])


@pytest.mark.parametrize("version", ["0.12.0", "1.0.0", "2.3.0", "3.2.0", "3.4.0"])
def test_models_of_old_gensim_keep_their_size(version: str) -> None:
    assert Word2Vec.load(datapath(f"old_w2v_models/w2v_{version}.mdl")).vector_size == 4


@pytest.mark.parametrize("extension", ["", ".gz", ".bz2"])
def test_arrays_that_gensim_saved_separately_are_loaded(tmp_path: Path, extension: str) -> None:
    saved = gensim.models.Word2Vec(SENTENCES, **SMALL)
    saved.save(str(tmp_path / f"model{extension}"), sep_limit=1)
    loaded = Word2Vec.load(tmp_path / f"model{extension}")
    assert (loaded.wv.vectors == saved.wv.vectors).all()
    assert (loaded.syn1neg == saved.syn1neg).all()
    array = next(tmp_path.glob("*.wv.vectors.*"))
    array.write_bytes(array.read_bytes()[:-99])
    with pytest.raises((EOFError, w2v.W2VError), match=re.escape(str(tmp_path / f"model{extension}.wv.vectors"))):
        Word2Vec.load(tmp_path / f"model{extension}")


def test_numbers_of_numpy_are_saved_as_settings(tmp_path: Path) -> None:
    options = {"epochs": np.int64(2), "seed": np.int64(3), "alpha": np.float32(0.5), "sample": np.float64(0.01)}
    Word2Vec(SENTENCES[:9], **SMALL | options).save(tmp_path / "model")
    loaded = Word2Vec.load(tmp_path / "model")
    assert {name: getattr(loaded, name) for name in options} == options


def test_load_gives_the_class_that_was_saved(tmp_path: Path, model: Word2Vec) -> None:
    """As in gensim."""

    class Own(Word2Vec):
        pass

    FastText(SENTENCES, **SMALL, bucket=50).save(tmp_path / "fasttext")
    model.save(tmp_path / "words")
    for kind in (Word2Vec, FastText):
        assert type(kind.load(tmp_path / "fasttext")) is FastText
        assert type(kind.load(tmp_path / "words")) is Word2Vec
    assert "zzw1zz" in Word2Vec.load(tmp_path / "fasttext").wv
    assert type(Own.load(tmp_path / "words")) is Own


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0.1, "min_alpha": 1}, {"alpha": 1.0}, {"alpha": 1.0, "sg": 1}, {"alpha": 1.0, "hs": 1, "negative": 0}],
)
def test_a_run_that_diverges_is_repeated_with_a_lower_learning_rate(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    for text in (SENTENCES, iter(SENTENCES)):
        caplog.clear()
        model = Word2Vec(**SMALL | options)
        model.build_vocab(SENTENCES)
        train(model, 3, text)
        assert np.isfinite(model.wv.vectors).all()
        assert any("training diverged: " in each.getMessage() for each in caplog.records)
        assert model.alpha == options["alpha"]


def test_alpha_of_zero_trains_with_min_alpha_as_in_gensim() -> None:
    for kind in BOTH:
        model = kind(SENTENCES, **SMALL, alpha=0.0)
        assert 0 < model.min_alpha_yet_reached <= 1e-4 or kind is not Word2Vec


@pytest.mark.parametrize("kind", ["Word2Vec", "FastText"])
def test_pickles_of_gensim_are_unpickled_as_our_classes(tmp_path: Path, kind: str) -> None:
    options = SMALL | ({"bucket": 100} if kind == "FastText" else {})
    theirs = getattr(gensim.models, kind)(SENTENCES, **options)
    (tmp_path / "pickle").write_bytes(pickle.dumps(theirs))
    with w2v.gensim.install():
        loaded = pickle.loads((tmp_path / "pickle").read_bytes())
    assert type(loaded).__module__.startswith("w2v.gensim.")
    assert (loaded.wv.vectors == theirs.wv.vectors).all()
    assert loaded.vector_size == loaded.wv.vector_size == 12
    assert loaded.wv.most_similar("w1", topn=3)[0][0] == theirs.wv.most_similar("w1", topn=3)[0][0]
    if kind == "FastText":
        assert np.allclose(loaded.wv["unknown"], theirs.wv["unknown"], atol=1e-6)
    before = loaded.wv.vectors.copy()
    train(loaded)
    assert (before != loaded.wv.vectors).any()
    with pytest.raises(AttributeError, match="call it on the class"):
        loaded.load("any")
