"""Progress callbacks: rates, remaining time, and the state of training."""

from pathlib import Path
from typing import Any

import pytest

import w2v
from tests.helpers import SMALL, train_and_stop
from w2v._evaluation.compare import compare
from w2v._evaluation.evaluate import evaluate
from w2v._formats import registry, row_blocks
from w2v._progress import PHASES, Meter, NotebookBar, Progress, duration, formatted_values, quantity
from w2v._training.effective_rank import effective_rank


def set_clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr("time.monotonic", lambda: seconds)


def test_rate_and_remaining_time_count_from_the_start_of_the_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = []
    set_clock(monkeypatch, 100)
    meter = Meter(reports.append, "train", 800, epochs=2)
    meter(800, 1000)
    set_clock(monkeypatch, 102)
    meter(900, 1000, epoch=2, loss=1.5)
    assert [(report.rate, report.seconds_left) for report in reports] == [(None, None), (50, 2)]
    assert reports[1] == Progress("train", 900, 1000, "words", 50, 2, epoch=2, epochs=2, loss=1.5)


def test_total_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = []
    set_clock(monkeypatch, 100)
    meter = Meter(reports.append, "read")
    set_clock(monkeypatch, 110)
    meter(500, None)
    assert reports == [Progress("read", 500, None, "bytes", 50, None)]
    Meter(None, "read")(500, None)  # without a callback


def test_notebook_shows_a_bar_during_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []

    class Display:
        def update(self, line: Any) -> None:
            shown.append(line.data)

    pytest.importorskip("IPython")
    monkeypatch.setattr("IPython.display.display", lambda line, display_id: shown.append(line.data) or Display())
    set_clock(monkeypatch, 100)
    bar = NotebookBar()
    # It appears after a second, and is then drawn at most ten times a second.
    for seconds, done in (100.99, 1), (101.01, 2), (101.1, 3), (101.12, 4), (101.2, 5), (101.21, 10):
        set_clock(monkeypatch, seconds)
        bar(Progress("train", done, 10, "words", epoch=1, epochs=2, loss=0.5))
    lines = [f'<div>train <progress value="{done}" max="10"></progress> epoch 1/2, loss 0.500</div>' for done in (2, 4)]
    assert shown == [*lines, ""]


def test_training_reports_epoch_loss_and_learning_rate(sample: Path) -> None:
    reports = []
    model = w2v.train(sample, progress=reports.append, **SMALL)
    training = [report for report in reports if report.phase == "train"]
    assert (training[0].done, training[0].rate, training[0].loss) == (0, None, None)
    assert training[0].alpha == model.settings.start_alpha
    assert {report.epochs for report in training} == {3}
    epochs = [report.epoch or 0 for report in training]
    assert epochs == sorted(epochs)
    assert {1, 3} <= set(epochs) <= {1, 2, 3}
    alphas = [report.alpha or 0 for report in training]
    assert alphas == sorted(alphas, reverse=True)
    assert training[-1].loss == model.metrics["loss"][-1]
    assert training[-1].alpha == pytest.approx(model.settings.end_alpha)
    assert training[-1].seconds_left == 0
    reading = [report for report in reports if report.phase == "read"]
    assert reading[-1].loss is reading[-1].alpha is reading[-1].epoch is reading[-1].memory is None


def test_rate_of_a_resumed_run_excludes_earlier_words(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run divides only its own words, not all words, by the seconds since it was resumed."""
    state = train_and_stop(tmp_path, sample, 0.8)
    reports = []

    def report(progress: Progress) -> None:
        if progress.phase == "train":
            reports.append(progress)
            set_clock(monkeypatch, 105)

    set_clock(monkeypatch, 100)
    w2v.resume(tmp_path, sample, progress=report)
    first, *_, last = reports
    assert first.done == state.resume_info.tokens_trained
    assert last.rate == (last.done - first.done) / 5


def test_perplexity_reports_words(model: Path, sample: Path) -> None:
    reports = []
    lines = sample.read_text("utf-8").splitlines()[:200]
    w2v.perplexity(model, [line.split() for line in lines], progress=reports.append)
    assert reports[-1].phase == "predict"
    last = reports[-1]
    assert (last.unit, last.done, last.epoch) == ("words", last.total, None)


def test_other_long_work_reports_until_its_end(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 10_000)  # small, so that every thread reads a block
    vectors = w2v.load(model)
    text = tmp_path / "m.txt"
    for path in (text, tmp_path / "m.safetensors"):
        reports = []
        registry.write(path, registry.read(model), progress=reports.append)
        assert (reports[-1].phase, reports[-1].done) == ("save", reports[-1].total)
    work = {
        "load": lambda report: w2v.load(text, progress=report),
        "answer": lambda report: w2v.analogies(vectors, progress=report),
        "evaluate": lambda report: evaluate(vectors, progress=report),
        "compare": lambda report: compare(vectors, vectors, restrict_vocab=100, progress=report),
        "predict": lambda report: effective_rank(w2v.Model.load(model), 100, 50, report),
    }
    for phase, function in work.items():
        reports = []
        function(reports.append)
        of_phase = [report for report in reports if report.phase == phase]
        assert of_phase, phase
        if phase != "compare":  # it counts the rows of the first model, and then of the second
            assert [report.done for report in of_phase] == sorted(report.done for report in of_phase)
        assert of_phase[-1].done == of_phase[-1].total
        assert {report.unit for report in of_phase} == {PHASES[phase]}


def test_quantities_and_durations_are_formatted() -> None:
    numbers = {0.5: "0.5", 99.4: "99.4", 100: "100", 1234: "1,234", 9999: "9,999", 10_000: "0.01 M", 2.5e6: "2.50 M"}
    assert [quantity(number) for number in numbers] == [*numbers.values()]
    seconds = {45: "45 seconds", 119: "119 seconds", 120: "2 minutes", 600: "10 minutes", 4320: "72 minutes"}
    seconds |= {7199: "120 minutes", 7200: "2.0 hours", 9000: "2.5 hours"}
    assert [duration(number) for number in seconds] == [*seconds.values()]


def test_known_values_of_a_report_are_formatted_in_order() -> None:
    everything = Progress(
        "tune",
        5,
        10,
        "words",
        12_345,
        3725.4,
        epoch=2,
        epochs=3,
        loss=0.12345,
        alpha=0.0256,
        score=0.5678,
        view="grams",
    )
    assert formatted_values(everything) == [
        "1:02:05 left", "best score 56.78", "grams", "epoch 2/3", "0.01 M words/s", "loss 0.123", "alpha 0.026"
    ]  # fmt: skip
    assert formatted_values(Progress("tune", 5, 10, "words", seconds_left=125)) == ["02:05 left"]
    assert formatted_values(Progress("tune", 5, 10, "words", seconds_left=0, score=0.0, loss=0.0)) == [
        "best score 0.00", "loss 0.000"
    ]  # fmt: skip
