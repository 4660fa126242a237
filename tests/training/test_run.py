"""A run: what its monitor does while threads train, its measurements, and its messages."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import assert_same_views, make_loss, read_text
from w2v._errors import Diverged
from w2v._losses.loss import by_tensor_name
from w2v._losses.registry import LOSSES
from w2v._system.threads import Thread
from w2v._text.corpus import Corpus
from w2v._text.vocabulary import Vocabulary
from w2v._training.config import RunConfig
from w2v._training.model import matrix_arguments
from w2v._training.planning import memory_needed
from w2v._training.reading import ReadText
from w2v._training.run import Run
from w2v._training.start import Initialisation

WORDS = Vocabulary(["one", "two", "three"], [400, 200, 200])
TEXT = [["one", "two", "one", "three"]] * 200
STOP_TIMEOUT = 30  # seconds that a thread waits for the monitor to stop it; then the test fails


class ControlledKernel:
    """A kernel with threads that do what a test says. They can wait until the monitor stops them."""

    def __init__(self, kernel: Any, work: Callable[["ControlledKernel", int], None]) -> None:
        self.kernel, self.work = kernel, work
        self.stop_called = threading.Event()
        self.stopped_in_time = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def run(self, number: int, end: int) -> None:
        self.work(self, number)

    def stop(self) -> None:
        self.stop_called.set()

    def wait_for_stop(self) -> None:
        self.stopped_in_time = self.stop_called.wait(STOP_TIMEOUT)


@pytest.fixture
def new_run() -> Iterator[Callable[..., Run]]:
    """Return a function that creates a run over TEXT with some settings."""
    with read_text(Corpus(TEXT)) as store:

        def create(share: float = 1.0, **settings: Any) -> Run:
            defaults = {"min_count": 1, "vector_size": 8, "workers": 1, "sample": 0, "epochs": 2, "negative": 1}
            config = RunConfig(settings=w2v.Settings(**defaults | settings))
            run = Run(config, Initialisation(WORDS), ReadText(store, store), share=share)
            run._start_meter(None)
            return run

        yield create


def train_with(run: Run, work: Callable[[ControlledKernel, int], None]) -> ControlledKernel:
    """Run one round. Each thread of the run calls `work(kernel, number)`."""
    run.kernel = ControlledKernel(run.kernel, work)
    run._train_to(run.plan.total_chunks)
    return run.kernel


# -- the monitor ----------------------------------------------------------------------------


def test_error_of_a_thread_stops_the_others(new_run: Callable[..., Run]) -> None:
    def work(kernel: ControlledKernel, number: int) -> None:
        if number == 1:
            raise ValueError("broken")
        kernel.wait_for_stop()

    run = new_run(workers=2)
    with pytest.raises(ValueError, match="broken"):
        train_with(run, work)
    assert run.kernel.stopped_in_time


@pytest.mark.parametrize("matrix", ["inputs", "outputs"])
def test_divergence_stops_the_threads(new_run: Callable[..., Run], matrix: str) -> None:
    def work(kernel: ControlledKernel, number: int) -> None:
        run.parameters[matrix][-1, 0] = np.nan
        kernel.wait_for_stop()

    run = new_run()
    with pytest.raises(Diverged, match="after 0 of 1,600 words vectors have NaN or infinite values"):
        train_with(run, work)
    assert run.kernel.stopped_in_time


def test_threads_stop_when_a_checkpoint_is_due(new_run: Callable[..., Run]) -> None:
    run = new_run()
    folder: Any = SimpleNamespace(due=True, diverged=False)
    run.checkpoint_folder = folder
    assert train_with(run, lambda kernel, _: kernel.wait_for_stop()).stopped_in_time


def test_no_checkpoint_is_written_while_threads_may_still_run(
    new_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second Ctrl-C interrupts the wait for the threads."""

    def interrupt(thread: Thread) -> None:
        raise KeyboardInterrupt

    def work(kernel: ControlledKernel, number: int) -> None:
        kernel.kernel.run(number, 1)

    run, written = new_run(), list[Any]()
    folder: Any = SimpleNamespace(due=False, diverged=False, copies_matrices=False, next_position=lambda *_: 1)
    folder.write = written.append
    run.checkpoint_folder, run.kernel = folder, ControlledKernel(run.kernel, work)
    monkeypatch.setattr(Thread, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.train()
    assert run.kernel.position == 1
    assert not written


def test_message_of_divergence_has_the_words_and_the_loss(new_run: Callable[..., Run]) -> None:
    run = new_run(alpha=0.5)
    sums: Any = {"losses": np.array([50_000.0, 0]), "predictions": np.array([2000, 0]), "tokens_trained": 700}
    run.kernel = SimpleNamespace(**sums)
    message = "training diverged: after 700 of 1,600 words the mean loss of a prediction is 25; lower alpha, now 0.5"
    with pytest.raises(Diverged, match=f"^{message}$"):
        run._check_divergence(*run.parameters.values())
    sums["losses"] /= 10
    run._check_divergence(*run.parameters.values())


# -- results --------------------------------------------------------------------------------


def test_share_of_a_text_is_its_beginning(new_run: Callable[..., Run]) -> None:
    assert new_run().plan.tokens == new_run(share=1).plan.tokens == 800
    half = new_run(share=0.5)
    assert (half.plan.tokens, half.tokens) == (400, 400)
    np.testing.assert_array_equal(half.plan.ids, new_run().plan.ids[:500])  # 4 words and the end of each sentence
    half.train()
    assert half.view().metrics["tokens_trained"] == 2 * 400


def test_views_do_not_change_the_run(new_run: Callable[..., Run]) -> None:
    run = new_run(subwords="2-3", buckets=50)
    run.train()
    run.plan = replace(run.plan, output_words=np.array([0, 1, 1], np.int32))
    before = {name: array.copy() for name, array in run.parameters.items()}
    first, second = run.view(), run.view()
    assert_same_views(first, second)
    np.testing.assert_array_equal(first.outputs, before["outputs"][[0, 1, 1]])
    assert not np.allclose(first.inputs, before["inputs"], atol=1e-4)
    np.testing.assert_equal(run.make_checkpoint().parameters, before)
    # The new rows are part of the estimate of memory. The n-gram rows are in memory twice while they are sorted, or
    # once with what is needed after the run.
    settings = replace(run.settings, vectors="input")
    plain = memory_needed(replace(run.plan, output_words=None), replace(settings, subwords=None))
    ngrams, row_bytes = len(first.ngrams.rows), 4 * settings.vector_size
    assert memory_needed(run.plan, settings) == plain + (2 * 3 + 2 * ngrams) * row_bytes
    assert memory_needed(run.plan, settings, later=1 << 30) == plain + (2 * 3 + ngrams) * row_bytes + (1 << 30)


def test_speed_is_words_per_second(new_run: Callable[..., Run]) -> None:
    run = new_run()
    run.train()
    run.seconds, run.text.seconds = 4.0, 2.5
    metrics = run.view().metrics
    assert metrics["words_per_second"] == 1600 / 4
    assert metrics["seconds"] == {"read": 2.5, "train": 4.0}


def test_history_gets_a_row_for_each_200th_of_the_run(new_run: Callable[..., Run]) -> None:
    run = new_run(epochs=100)
    kernel: Any = SimpleNamespace(tokens_trained=0, losses=np.zeros(1), predictions=np.zeros(1))
    run.kernel = kernel
    for tokens in (0, 399, 400, 401, 799, 800, 79_999, 80_000, 80_000):
        kernel.tokens_trained, kernel.losses, kernel.predictions = tokens, np.full(1, tokens / 2), np.full(1, tokens)
        run._record(tokens / 10)
    found = [400, 800, 79_999, 80_000]
    np.testing.assert_array_equal(run.history, [[each, each / 10, each / 2, each] for each in found])


def test_loss_curve_has_the_mean_since_the_point_before() -> None:
    model = w2v.train([["a", "b", "c"]] * 9, min_count=1, vector_size=2, negative=1, sample=0, epochs=1)
    view = model.views["words"]
    assert view.loss_curve == [(27, model.metrics["loss"][0])]
    history = np.array([[10, 1, 30, 10], [20, 2, 50, 20], [25, 3, 50, 20], [40, 4, 90, 60]], float)
    assert replace(view, history=history).loss_curve == [(10, 3), (20, 2), (40, 1)]
    none = np.zeros((0, 4))
    assert replace(view, history=none, metrics={"tokens": 7, "loss": [5.0, None, 3.0]}).loss_curve == [(7, 5), (21, 3)]
    assert replace(view, history=none, metrics={}).loss_curve == []


@pytest.mark.parametrize("name", LOSSES)
def test_only_losses_with_output_rows_have_an_output_matrix(name: str) -> None:
    loss = make_loss([5, 4, 3, 2], name, vector_size=6, negative=1)
    matrices = {"inputs": np.zeros((4, 6), np.float32)} | by_tensor_name(loss.stored(loss.new_parameters()))
    arguments = matrix_arguments(matrices)
    assert arguments["outputs"].shape == (loss.rows if "outputs" in loss.shapes else 0, 6)
    assert arguments["parameters"].keys() == loss.shapes.keys() - {"outputs"}
