"""Several ranks in the threads of this process, with a fake MPI. test_distributed.py tests them in real processes."""

import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pytest

import w2v
from tests.helpers import assert_same
from w2v._errors import W2VError
from w2v._settings import MAX_SENTENCE_CONTEXT
from w2v._text.vocabulary import Vocabulary
from w2v._training import checkpoint_folder, communicator
from w2v._training.checkpoint_folder import CheckpointFolder
from w2v._training.communicator import Communicator
from w2v._training.config import RunConfig
from w2v._training.distributed import MIN_ROUND_WORDS, DistributedRun
from w2v._training.train import open_training

Result = TypeVar("Result")
SMALL: dict[str, Any] = {"vector_size": 8, "min_count": 1, "workers": 1, "epochs": 2}


@dataclass
class Job:
    """What the ranks of a fake MPI job share: a barrier, and the values that each rank passes to a collective call."""

    size: int
    values: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.size, timeout=1000)


class FakeComm:
    """A fake of mpi4py's communicator. Its collective calls are complete when they return."""

    def __init__(self, job: Job, rank: int) -> None:
        self.job, self.rank, self.size = job, rank, job.size

    def Dup(self) -> "FakeComm":
        return self

    def Test(self) -> bool:
        return True

    def Free(self) -> None: ...

    def _values(self, value: Any) -> list[Any]:
        """Return copies of the values of all ranks."""
        self.job.values[self.rank] = value.copy() if isinstance(value, np.ndarray) else value
        self.job.barrier.wait()
        found = [self.job.values[rank] for rank in range(self.size)]
        self.job.barrier.wait()  # so that no rank begins the next call before all ranks have read the values
        return found

    def Ibarrier(self) -> "FakeComm":
        self._values(None)
        return self

    def Iallreduce(self, values: Any, total: Any, operation: str) -> "FakeComm":
        assert operation == "sum"
        total[...] = sum(self._values(values))
        return self

    def Ibcast(self, message: list[Any], root: int) -> "FakeComm":
        message[0][...] = self._values(message[0])[root]
        return self

    def Iallgather(self, own: Any, gathered: Any) -> "FakeComm":
        gathered[...] = np.concatenate(self._values(own))
        return self

    def Iallgatherv(self, own: Any, message: list[Any]) -> "FakeComm":
        gathered, sizes, starts, _ = message
        for size, start, value in zip(sizes, starts, self._values(own), strict=True):
            gathered[start : start + size] = value
        return self

    # Heartbeats: a rank always receives the last one of its predecessor, so that their thread can end.

    def Isend(self, *_: Any) -> "FakeComm":
        return self

    def Iprobe(self, *_: Any) -> bool:
        return True

    def Recv(self, is_last: Any, *_: Any) -> None:
        is_last[0] = True


class ThreadCommunicator(Communicator):
    """A rank in a thread. It receives a signal after some rounds."""

    def __init__(self, job: Job, rank: int, stop_after: float) -> None:
        self.rounds, self.stop_after = 0, stop_after
        comm = FakeComm(job, rank)
        mpi = {"COMM_WORLD": comm, "Query_thread": lambda: 3, "THREAD_MULTIPLE": 3, "SUM": "sum", "BYTE": "byte"}
        super().__init__(SimpleNamespace(**mpi))

    @contextmanager
    def deferred_signals(self) -> Iterator[Callable[[], bool]]:
        yield self._stop_requested

    def _stop_requested(self) -> bool:
        self.rounds += 1
        return self.rounds >= self.stop_after


def call_on_ranks(
    size: int, function: Callable[[Communicator], Result], stop_after: Mapping[int, int] | None = None
) -> list[Result]:
    """Call a function on each rank, and return the results. The error of a rank is raised."""
    job, results, errors = Job(size), dict[int, Result](), dict[int, BaseException]()

    def call(rank: int) -> None:
        try:
            with ThreadCommunicator(job, rank, (stop_after or {}).get(rank, np.inf)) as ranks:
                results[rank] = function(ranks)
        except BaseException as error:
            errors[rank] = error
            job.barrier.abort()

    threads = [threading.Thread(target=call, args=(rank,), name=f"rank {rank}") for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A failed rank breaks the barrier, so the other ranks fail, too: raise the error of the first.
    for error in sorted(errors.values(), key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error
    return [results[rank] for rank in range(size)]


@pytest.fixture(autouse=True)
def no_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the error of a rank end its thread instead of the process."""
    monkeypatch.setattr(Communicator, "abort", lambda *_: None)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Path:
    """Return a text of about 20,000 words."""
    path = tmp_path_factory.mktemp("ranks") / "text"
    path.write_text(sample.read_text("utf-8")[:100_000], "utf-8")
    return path


def train_on_ranks(size: int, text: Any, stop_after: Mapping[int, int] | None = None, **options: Any) -> w2v.Model:
    """Train on several ranks, assert that all have the same model, and return it."""
    models = call_on_ranks(size, lambda ranks: w2v.train(text, communicator=ranks, **SMALL | options), stop_after)
    for model in models[1:]:
        np.testing.assert_array_equal(model.views["words"].inputs, models[0].views["words"].inputs)
        np.testing.assert_array_equal(model.views["words"].outputs, models[0].views["words"].outputs)
    return models[0]


def resume_on_ranks(size: int, folder: Path, text: Any) -> w2v.Model:
    """Resume a run on several ranks, and return the model of the root."""
    return call_on_ranks(size, lambda ranks: w2v.resume(folder, text, communicator=ranks))[0]


@contextmanager
def prepare_run(ranks: Communicator, text: Any, **options: Any) -> Iterator[DistributedRun]:
    """Prepare the run of this rank. It is closed at the end of the `with` block."""
    with open_training(RunConfig.from_options(SMALL | options), text, ranks=ranks) as training:
        run = training.runs["words"]
        assert isinstance(run, DistributedRun)
        yield run


def get_before_training(size: int, text: Any, get: Callable[[DistributedRun], Result], **options: Any) -> list[Result]:
    """Return a value of the run of each rank, before training."""

    def prepared(ranks: Communicator) -> Result:
        with prepare_run(ranks, text, **options) as run:
            return get(run)

    return call_on_ranks(size, prepared)


# -- results ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    "options",
    [{"model": "skipgram"}, {"model": "cbow", "storage": "bf16"}, {"model": "skipgram", "window": "all"}],
    ids=str,
)
def test_ranks_learn_like_one_process(size: int, options: dict[str, Any], text: Path) -> None:
    model, single = train_on_ranks(size, text, **options, epochs=3), w2v.train(text, **SMALL | options | {"epochs": 3})
    assert model.vocabulary.words == single.vocabulary.words
    assert model.vocabulary.counts.tolist() == single.vocabulary.counts.tolist()
    for name in ("tokens", "tokens_trained", "sentences", "tokens_read"):
        assert model.metrics[name] == single.metrics[name], name
    assert sum(model.metrics["predictions"]) == pytest.approx(sum(single.metrics["predictions"]), rel=0.03)
    assert model.metrics["loss"] == pytest.approx(single.metrics["loss"], rel=0.05)
    assert model.metrics["loss"][2] < model.metrics["loss"][0]
    assert model.metrics["ranks"] == size
    exchange = model.metrics["exchange"]
    assert 0 < exchange["seconds"] < model.metrics["seconds"]["train"]
    assert exchange["share"] == pytest.approx(exchange["seconds"] / model.metrics["seconds"]["train"])
    rounds_per_epoch = model.metrics["tokens"] / size / MIN_ROUND_WORDS  # a short text has the shortest rounds
    assert exchange["rounds"] / 3 == pytest.approx(rounds_per_epoch, abs=1)
    assert_same(model, train_on_ranks(size, text, **options, epochs=3))  # with one thread each, also on another run


def test_ranks_do_not_overshoot_without_subsampling(tmp_path: Path) -> None:
    """All ranks move the vectors of very frequent words in the same direction."""
    words = [f"word{number}" for number in np.random.default_rng(1).zipf(1.3, 20_000) % 60]
    text = tmp_path / "text"
    text.write_text("\n".join(" ".join(words[start : start + 20]) for start in range(0, len(words), 20)))
    options = {"model": "skipgram", "sample": 0, "epochs": 2}
    (_, many), (_, one) = (train_on_ranks(size, text, **options).metrics["loss"] for size in (8, 1))
    assert many < 1.1 * one


def test_words_have_the_order_of_one_process(tmp_path: Path) -> None:
    """Words with equal counts have the order of the whole text, so that the parts must be merged in order."""
    for number, line in enumerate(["d c a", "", "b a e c", "f e d g"]):
        (tmp_path / f"{number}.txt").write_text(f"{line}\n" * 50)
    files = sorted(tmp_path.glob("*.txt"))
    few = {"sample": 0, "negative": 1}
    model, single = train_on_ranks(3, files, **few), w2v.train(files, **SMALL | few)
    assert model.vocabulary.words == single.vocabulary.words
    assert model.vocabulary.counts.tolist() == single.vocabulary.counts.tolist()
    assert model.metrics["tokens_trained"] == single.metrics["tokens_trained"]


def test_ranks_draw_different_random_numbers(text: Path) -> None:
    seeds = get_before_training(3, text, lambda run: run.plan.settings.seed, seed=7)
    assert seeds[0] == 7
    assert len(set(seeds)) == 3
    assert max(seeds) < 1 << 64
    assert len(set(get_before_training(2, text, lambda run: run.plan.settings.seed, seed=(1 << 63) - 1))) == 2


@pytest.mark.parametrize(
    ("different", "others"),
    [("socket.gethostname", "another machine"), ("allowed_processors", [*range(7, 14)])],
    ids=["machines", "processors"],
)
def test_ranks_divide_only_the_processors_that_they_share(
    different: str, others: object, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks 0 and 2 share a machine or a set of processors, and rank 1 has its own."""
    monkeypatch.setattr(communicator, "allowed_processors", lambda: [*range(7)])
    assert get_before_training(3, text, lambda run: run.plan.workers, workers=None) == [2, 2, 2]
    assert get_before_training(2, text, lambda run: run.plan.workers, workers=5) == [5, 5]
    usual = operator.attrgetter(different)(communicator)
    monkeypatch.setattr(
        f"w2v._training.communicator.{different}",
        lambda: others if threading.current_thread().name == "rank 1" else usual(),
    )
    assert get_before_training(3, text, lambda run: run.plan.workers, workers=None) == [3, 7, 3]


# -- rounds and exchanges -------------------------------------------------------------------


def test_ranks_have_the_same_rounds_with_parts_of_different_length(tmp_path: Path) -> None:
    long, short = tmp_path / "long", tmp_path / "short"
    long.write_text("a b c d e f g h\n" * 2000)
    short.write_text("a b c d e f g h\n" * 300)
    rounds = get_before_training(2, [long, short], lambda run: run.schedule.rounds)
    assert rounds[0] == rounds[1] > 5
    # A round of the longest part has at least one chunk.
    chunks = get_before_training(3, [short], lambda run: run.plan.chunks)
    assert max(chunks) >= max(get_before_training(3, [short], lambda run: run.schedule.rounds)) >= 1
    assert train_on_ranks(2, [long, short], sample=0).metrics["tokens_trained"] == 2 * 8 * 2300


@pytest.mark.parametrize(
    ("options", "context_words", "predictions"),
    [
        ({"model": "skipgram", "window": 3, "shrink_windows": False}, 6, 6),
        ({"model": "skipgram", "window": 3}, 4, 4),  # 1, 2 or 3 words on each side
        ({"model": "cbow", "window": (4, 1), "shrink_windows": False}, 5, 1),
        ({"model": "skipgram", "window": "all"}, MAX_SENTENCE_CONTEXT, MAX_SENTENCE_CONTEXT),
    ],
)
@pytest.mark.parametrize("subsampling", [0, 1e-3])
def test_exchange_expects_the_updates_of_each_row(
    options: dict[str, Any], context_words: int, predictions: int, subsampling: float, text: Path
) -> None:
    def frequencies(run: DistributedRun) -> tuple[Vocabulary, list[np.ndarray]]:
        return run.vocabulary, [matrix.frequencies for matrix in run.exchange._matrices]

    vocabulary, (inputs, outputs) = get_before_training(
        2, text, frequencies, negative=3, sample=subsampling, **options
    )[1]
    counts, shares = vocabulary.counts, vocabulary.counts / vocabulary.tokens
    kept = np.minimum(1, np.sqrt(subsampling / shares) + subsampling / shares) if subsampling else np.ones(len(shares))
    np.testing.assert_allclose(inputs, kept * shares * context_words, rtol=1e-5)
    noise = np.sqrt(counts) / np.sqrt(counts).sum()  # the default ns_exponent is 0.5
    centres = kept * shares
    expected = predictions * centres.sum() * (centres / centres.sum() + 3 * noise)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5)


def test_frequencies_of_subwords_are_sums_over_words(text: Path) -> None:
    def frequencies(run: DistributedRun) -> tuple[np.ndarray, Any]:
        by_name = dict(zip(run.parameters, run.exchange._matrices, strict=True))
        return by_name["inputs"].frequencies, by_name["ngrams"].frequencies, run.plan.subwords

    inputs, ngrams, subwords = get_before_training(2, text, frequencies, subwords="3-3", buckets=500)[0]
    expected = np.zeros(len(inputs) + len(ngrams))
    for word, frequency in enumerate(inputs):
        np.add.at(expected, subwords.rows[subwords.starts[word] : subwords.starts[word + 1]], frequency)
    np.testing.assert_allclose(ngrams, expected[len(inputs) :], rtol=1e-5)


# -- checkpoints ----------------------------------------------------------------------------


def stop(folder: Path, text: Any, rounds: int, size: int = 2, rank: int = 1, **options: Any) -> Any:
    """Stop a run by a signal to one rank after some rounds, and return its last checkpoint."""
    with pytest.raises(W2VError, match="another rank was stopped by a signal"):
        train_on_ranks(size, text, {rank: rounds}, checkpoint=folder, **options)
    return checkpoint_folder.latest(folder)


@pytest.mark.parametrize("rounds", [1, 13])
def test_run_resumes_where_a_signal_stopped_it(rounds: int, text: Path, tmp_path: Path) -> None:
    uninterrupted = train_on_ranks(2, text, model="skipgram")
    total = uninterrupted.metrics["exchange"]["rounds"]
    state = stop(tmp_path, text, rounds, model="skipgram", rank=rounds % 2)
    # The flag of the stopped rank reaches the others with the exchange of the next round.
    assert (state.resume_info.done, state.resume_info.end, state.resume_info.ranks) == (rounds + 1, total, 2)
    tokens = uninterrupted.metrics["tokens_trained"]
    assert state.resume_info.tokens_trained == pytest.approx(tokens * state.resume_info.done / total, rel=0.1)
    model = resume_on_ranks(2, tmp_path, text)
    # All rows are exchanged before a checkpoint. Within an epoch, this changes later exchanges.
    np.testing.assert_allclose(model.views["words"].inputs, uninterrupted.views["words"].inputs, atol=0.05)
    assert model.metrics["loss"] == pytest.approx(uninterrupted.metrics["loss"], rel=0.02)
    assert model.metrics["predictions"] == pytest.approx(uninterrupted.metrics["predictions"], rel=0.02)
    assert model.metrics["tokens_trained"] == tokens
    words, seconds, losses, predictions = model.views["words"].history.T
    for column in (words, seconds, losses, predictions):
        assert (np.diff(column) > 0).all()
    assert words[-1] == tokens
    for _, loss in model.views["words"].loss_curve:
        assert loss == pytest.approx(uninterrupted.metrics["loss"][0], rel=0.5)


def test_resume_after_an_epoch_is_bit_identical(text: Path, tmp_path: Path) -> None:
    uninterrupted = train_on_ranks(2, text)
    rounds = uninterrupted.metrics["exchange"]["rounds"] // 2
    assert stop(tmp_path, text, rounds - 1).resume_info.done == rounds
    assert_same(resume_on_ranks(2, tmp_path, text), uninterrupted)


@pytest.mark.parametrize("size", [1, 3])
def test_run_resumes_with_another_number_of_ranks(size: int, text: Path, tmp_path: Path) -> None:
    state = stop(tmp_path, text, 7, epochs=3)
    model = resume_on_ranks(size, tmp_path, text)
    tokens = 3 * model.metrics["tokens"]
    assert model.metrics["tokens_trained"] == pytest.approx(tokens, rel=0.05)
    assert model.metrics.get("ranks", 1) == size
    predictions_per_token = state.predictions[0] / state.resume_info.tokens_trained
    assert sum(model.metrics["predictions"]) == pytest.approx(tokens * predictions_per_token, rel=0.1)
    assert model.metrics["loss"][2] < model.metrics["loss"][0]


def test_rank_without_text_trains_nothing_and_resumes(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b c d e f g h a c\n")
    options = {"sample": 0, "negative": 1, "epochs": 40}
    parts = get_before_training(3, [tmp_path / "text"], lambda run: run.plan.chunks, **options)
    assert sorted(parts) == [0, 0, 1]
    state = stop(tmp_path / "states", [tmp_path / "text"], 12, size=3, **options)
    assert state.resume_info.done == 13
    model = resume_on_ranks(3, tmp_path / "states", [tmp_path / "text"])
    assert model.metrics["tokens_trained"] == 400
    assert_same(model, train_on_ranks(3, [tmp_path / "text"], **options))


def test_checkpoints_are_written_at_the_end_of_each_epoch(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[str, int, int]] = []
    for name in ("copy", "write"):
        function = getattr(CheckpointFolder, name)

        def record(self: CheckpointFolder, state: Any, name: str = name, function: Any = function) -> None:
            written.append((name, state.resume_info.done, state.resume_info.end))
            function(self, state)

        monkeypatch.setattr(CheckpointFolder, name, record)
    model = train_on_ranks(2, text, checkpoint=tmp_path, checkpoint_every="1epoch", epochs=3)
    end = model.metrics["exchange"]["rounds"]
    assert written == [("copy", end // 3, end), ("copy", 2 * end // 3, end), ("write", end, end)]
    assert len(checkpoint_folder.files(tmp_path)) == 2
    state = checkpoint_folder.latest(tmp_path)
    np.testing.assert_array_equal(state.parameters["inputs"], model.views["words"].inputs)
    assert state.mean_losses == model.metrics["loss"]


def test_run_without_checkpoints_writes_none(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(W2VError, match="another rank was stopped by a signal"):
        train_on_ranks(2, text, {0: 3})
    assert list(tmp_path.iterdir()) == []


def test_another_text_is_refused(text: Path, tmp_path: Path) -> None:
    stop(tmp_path / "states", text, 3)
    other = tmp_path / "other"
    other.write_bytes(text.read_bytes().replace(b"a", b"e"))
    with pytest.raises(W2VError, match="belongs to another run, with different words"):
        resume_on_ranks(2, tmp_path / "states", other)


# -- errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [({"epochs": 1}, "epochs 2, and rank 0 .* 1"), ({"lower": True}, "lower false, and .* true")],
)
def test_different_settings_are_refused(text: Path, options: dict[str, Any], message: str) -> None:
    def train(ranks: Communicator) -> w2v.Model:
        return w2v.train(text, communicator=ranks, **SMALL | ({} if ranks.rank else options))

    with pytest.raises(W2VError, match=rf"^rank 1 \(.*\) has {message}: start all ranks with the"):
        call_on_ranks(2, train)


def test_error_in_a_round_is_raised_on_all_ranks(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_to, messages = DistributedRun._train_to, list[str]()

    def fail(run: DistributedRun, end: int) -> None:
        if run.communicator.rank == 1 and run._rounds_done == 3:
            raise W2VError("no luck")
        train_to(run, end)

    def train(ranks: Communicator) -> None:
        with pytest.raises(W2VError, match=r"^rank 1 \(.*\): no luck$") as error:
            w2v.train(text, communicator=ranks, **SMALL)
        messages.append(str(error.value))

    monkeypatch.setattr(DistributedRun, "_train_to", fail)
    call_on_ranks(2, train)
    assert len(messages) == 2


def test_other_kernels_are_refused(text: Path) -> None:
    with pytest.raises(w2v.SettingsError, match="kernel numba: several ranks train with kernel cython"):
        train_on_ranks(2, text, kernel="numba")


# -- texts with labels ----------------------------------------------------------------------


def classify_on_ranks(size: int, texts: Path, **options: Any) -> w2v.Classifier:
    """Train a classifier on several ranks, assert that all have the same, and return it."""
    models = call_on_ranks(size, lambda ranks: w2v.train_classifier(texts, communicator=ranks, workers=1, **options))
    for model in models[1:]:
        np.testing.assert_array_equal(model.inputs, models[0].inputs)
        np.testing.assert_array_equal(model.outputs, models[0].outputs)
        assert model.temperature == models[0].temperature
    return models[0]


def texts_and_labels(number: int) -> tuple[list[str], list[str]]:
    """Return texts of 8 words, and their labels. Four words of each text are words of its label."""
    random = np.random.default_rng(number)
    labels = random.integers(0, 3, number)
    groups = np.where(random.random((number, 8)) < 0.5, labels[:, np.newaxis], random.integers(0, 3, (number, 8)))
    words = groups * 100 + random.integers(0, 30, groups.shape)
    return [" ".join(map(str, row)) for row in words.tolist()], [f"l{label}" for label in labels]


@pytest.fixture(scope="module")
def labelled_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranks") / "labelled"
    lines = (f"__label__{label} {text}\n" for text, label in zip(*texts_and_labels(600), strict=True))
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (2, {}),
        (3, {"balanced": True, "subwords": "2-3"}),
        (2, {"loss": "softmax", "pooling": "mean", "vector_size": 8}),
    ],
    ids=str,
)
def test_ranks_learn_labels_like_one_process(size: int, options: dict[str, Any], labelled_texts: Path) -> None:
    model = classify_on_ranks(size, labelled_texts, **options)
    one = w2v.train_classifier(labelled_texts, workers=1, **options)
    assert model.features.vocabulary.words == one.features.vocabulary.words
    assert sorted(model.features.buckets) == sorted(one.features.buckets)
    if one.features.factors is not None and model.features.factors is not None:
        np.testing.assert_array_equal(
            model.features.factors[np.argsort(model.features.buckets) + len(model.features.vocabulary)],
            one.features.factors[np.argsort(one.features.buckets) + len(one.features.vocabulary)],
        )
    assert model.metrics["texts"] == 600
    assert model.metrics["tokens"] == one.metrics["tokens"]
    accuracies = [each.evaluate(*texts_and_labels(300)).accuracy for each in (model, one)]
    assert accuracies[0] > accuracies[1] - 0.02


def test_ranks_resume_a_classifier(labelled_texts: Path, tmp_path: Path) -> None:
    whole = classify_on_ranks(2, labelled_texts)

    def stopped(ranks: Communicator) -> w2v.Classifier:
        return w2v.train_classifier(labelled_texts, communicator=ranks, workers=1, checkpoint=tmp_path)

    with pytest.raises(W2VError, match="another rank was stopped by a signal"):
        call_on_ranks(2, stopped, stop_after={1: 5})
    resumed = call_on_ranks(2, lambda ranks: w2v.resume(tmp_path, labelled_texts, communicator=ranks))[0]
    np.testing.assert_allclose(resumed.inputs, whole.inputs, atol=0.1)  # a checkpoint exchanges all rows
    assert resumed.metrics["tokens_trained"] == whole.metrics["tokens_trained"] == 10 * whole.metrics["tokens"]


def test_lists_of_texts_are_not_divided() -> None:
    with pytest.raises(W2VError, match="lists and tables cannot be divided among several ranks"):
        call_on_ranks(2, lambda ranks: w2v.train_classifier(["a", "b"], ["x", "y"], communicator=ranks))
