"""w2v.train: its inputs, results, measurements, memory and errors. test_learning.py tests what it learns."""

import json
import platform
import subprocess
import sys
import threading
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import QUICK, assert_same, plan_without_text, read_text, run
from w2v._kernel.plan import available_sets, instruction_set, thresholds
from w2v._kernels import MAX_CHUNK_SIZE
from w2v._progress import Progress
from w2v._settings import MAX_INPUTS_PER_STEP
from w2v._system import memory
from w2v._text.corpus import Corpus
from w2v._training.config import RunConfig
from w2v._training.planning import threads_memory
from w2v._training.reading import ReadText
from w2v._training.run import Run
from w2v._training.start import Initialisation
from w2v._vectors.combine_matrices import memory_of

MODELS = [{"model": model, "loss": loss} for model in ("skipgram", "cbow") for loss in ("ns", "hs")]
CPUINFO = Path("/proc/cpuinfo")
SMALL: dict[str, Any] = {"vector_size": 16, "epochs": 2}


@pytest.mark.parametrize("options", [*MODELS, {"storage": "bf16"}, {"kernel": "numba"}], ids=str)
@pytest.mark.parametrize("workers", [1, 3, 64])
def test_every_token_is_trained_in_every_epoch(sample: Path, options: dict[str, Any], workers: int) -> None:
    if options.get("kernel") == "numba":
        pytest.importorskip("numba")
    model = w2v.train(sample, epochs=3, vector_size=8, min_count=10, workers=workers, **options)
    assert model.metrics["tokens"] == model.vocabulary.tokens
    assert model.metrics["tokens_trained"] == 3 * model.vocabulary.tokens
    assert len(model.metrics["loss"]) == 3
    assert model.metrics["loss"][0] > model.metrics["loss"][2] > 0


@pytest.mark.parametrize("options", MODELS, ids=str)
@pytest.mark.parametrize("threads", [{"workers": 1}, {"workers": 3, "deterministic": True}], ids=str)
def test_files_and_lists_give_the_same_bits_with_one_seed(
    sample: Path, tmp_path: Path, options: dict[str, Any], threads: dict[str, Any]
) -> None:
    options, text = SMALL | options | threads, tmp_path / "text"
    text.write_text(sample.read_text("utf-8")[:200_000], "utf-8")
    with text.open(encoding="utf-8") as lines:
        first = w2v.train((line.split() for line in lines), **options)
    second = w2v.train([text], **options)
    assert_same(first, second)
    other = w2v.train(text, seed=2, **options)
    assert not np.array_equal(first.views["words"].inputs, other.views["words"].inputs)


def test_metrics_describe_the_text_and_the_time(sample: Path) -> None:
    model = w2v.train(sample, **SMALL)
    text = sample.read_text("utf-8")
    assert model.metrics["sentences"] == text.count("\n")
    assert model.metrics["tokens_read"] == len(text.split())
    assert model.metrics["tokens"] == model.vocabulary.counts.sum() < model.metrics["tokens_read"]
    assert model.metrics["pruned"] == 0
    assert model.metrics["cache_reused"] is False
    assert model.metrics["words_per_second"] > 0
    assert list(model.metrics["seconds"]) == ["read", "train"]
    assert model.settings == w2v.Settings(**SMALL)
    assert model.wv.vectors.shape == (len(model.vocabulary), 16)
    assert model.vocabulary.counts[0] == text.split().count(model.vocabulary.words[0])
    pruned = w2v.train(text[:20_000].splitlines(), max_types=300, **SMALL)
    assert pruned.metrics["pruned"] > 0


def test_vocabulary_argument_replaces_the_words_of_the_corpus(sample: Path) -> None:
    vocabulary = w2v.Vocabulary(["the", "unheard", "of", "king", "and", "in", "a"], np.arange(70, 0, -10))
    model = w2v.train(sample, vocabulary=vocabulary, **SMALL)
    assert model.vocabulary is vocabulary
    words, known = sample.read_text("utf-8").split(), set(vocabulary.words)
    assert model.metrics["tokens"] == sum(word in known for word in words)
    assert model.metrics["tokens_trained"] == 2 * model.metrics["tokens"]


def test_progress_reaches_the_end(sample: Path) -> None:
    reports: list[Progress] = []
    model = w2v.train(sample, progress=reports.append, **SMALL)
    assert [phase for phase, _ in groupby(reports, key=lambda report: report.phase)] == ["read", "train"]
    for phase, end in (("read", sample.stat().st_size), ("train", model.metrics["tokens_trained"])):
        done = [report.done for report in reports if report.phase == phase]
        assert done == sorted(done)
        assert done[-1] == end
        assert {report.total for report in reports if report.phase == phase} == {end}


def test_memory_is_estimated_before_training(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Progress] = []
    held = memory.resident_bytes()  # a constant, because the actual value changes during the test
    monkeypatch.setattr(memory, "resident_bytes", lambda: held)
    model = w2v.train(sample, vector_size=1000, epochs=1, progress=reports.append)
    estimated, limit = reports[-1].memory, reports[-1].memory_limit
    words = len(model.vocabulary)
    threads = threads_memory(plan_without_text(model.views["words"].loss, model.settings, MAX_CHUNK_SIZE), "cython")
    needed = 2 * 4 * 1008 * words + memory_of("combined", words, 1000) + threads
    assert needed <= estimated - held < needed + 50e6
    assert estimated < limit
    monkeypatch.setattr(memory, "available", lambda: needed)
    w2v.train(sample, vector_size=1000, epochs=1)
    monkeypatch.setattr(memory, "available", lambda: needed - 1)
    message = r"^training needs about [\d,]+ MB of memory, but only [\d,]+ MB are available: lower "
    with pytest.raises(w2v.W2VError, match=message):
        w2v.train(sample, vector_size=1000, epochs=1)


# Each estimate has a process of its own, because a heap may have large gaps that are used again.
MEASURE_THREADS = """
import json, os, sys
from pathlib import Path
import w2v
from w2v._system import memory
from w2v._text.corpus import Corpus
from w2v._text.idstore import read_corpus
from w2v._training.config import RunConfig
from w2v._training.reading import ReadText
from w2v._training.start import Initialisation
from w2v._training.run import Run

memory.resident_bytes = lambda: 0
vocabulary = w2v.Vocabulary([f"word{number}" for number in range(30_000)], [1] * 30_000)
options = json.loads(sys.argv[1])
while options and os.fork():  # the child measures the first of the options
    assert os.wait()[1] == 0
    options.pop(0)
if not options:
    sys.exit()
settings = w2v.Settings(min_count=1, vector_size=1, workers=2, **options[0])
with read_corpus(Corpus([["word1"]])) as store:
    statistics = Path("/proc/self/statm")  # the virtual memory in pages, whether it was written to or not
    before = int(statistics.read_text().split()[0])
    run = Run(RunConfig(settings=settings), Initialisation(vocabulary), ReadText(store, store))
    print(4096 * (int(statistics.read_text().split()[0]) - before), run.peak_memory)
"""


# The lower bound is a number of float32 values for each thread. For drawn words, it multiplies the steps in a window of
# 2000 context words, the rows that a step draws, the 3 windows that are filled in advance, and the values for a row: a
# pointer (2), an offset, and perhaps a weight.
MEMORY_OF_THREADS: list[tuple[dict[str, Any], int]] = [
    ({"loss": "softmax", "window": 1000}, MAX_INPUTS_PER_STEP * 30_000),  # scores
    ({"loss": "softmax", "window": 1000, "model": "cbow"}, 4 * 30_000),
    ({"loss": "class", "window": 1000, "classes": 2}, MAX_INPUTS_PER_STEP * 15_000),
    ({"loss": "ns", "model": "skipgram", "window": 1000, "negative": 9999}, 125 * 10_000 * 3 * 3),
    ({"loss": "ns", "model": "skipgram", "window": 1000, "negative": 999, "per_pair": True}, 2000 * 1000 * 3 * 3),
    ({"loss": "nce", "model": "skipgram", "window": 1000, "negative": 999, "per_pair": True}, 2000 * 1000 * 3 * 4),
]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the memory of a process as Linux shows it")
def test_memory_of_threads_is_estimated() -> None:
    command = [sys.executable, "-c", MEASURE_THREADS, json.dumps([options for options, _ in MEMORY_OF_THREADS])]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for (options, lower_bound), line in zip(MEMORY_OF_THREADS, output.splitlines(), strict=True):
        allocated, estimate = map(int, line.split())
        assert 1 < estimate / (2 * 4 * lower_bound) < 10, options
        assert allocated == pytest.approx(estimate, rel=0.01, abs=16e6), options


def test_rate_of_a_resumed_rank_excludes_earlier_words() -> None:
    text = [["one", "two"]] * 100
    vocabulary = w2v.Vocabulary(["one", "two"], [100, 100])
    with read_text(Corpus(text)) as store:
        settings = w2v.Settings(min_count=1, vector_size=8, workers=1, sample=0)
        run = Run(RunConfig(settings=settings), Initialisation(vocabulary), ReadText(store, store))
        run.train(lambda _: None)
        run.tokens *= 3  # as if this were one of three ranks
        reports: list[Progress] = []
        run._start_meter(reports.append)
    assert reports[0].done == reports[0].total > 0
    assert reports[0].rate is None


def test_memory_can_be_ignored(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default = w2v.train(sample, workers=1, **SMALL)
    threads = threads_memory(plan_without_text(default.views["words"].loss, default.settings, MAX_CHUNK_SIZE), "cython")
    monkeypatch.setattr(memory, "available", lambda: 2 * 64 * len(default.vocabulary) + threads)
    options = SMALL | {"vectors": "input", "epochs": 1, "workers": 1}
    w2v.train(sample, **options)
    with pytest.raises(w2v.W2VError, match="or add --ignore-memory"):  # because checkpoints need a copy
        w2v.train(sample, checkpoint=tmp_path, **options)
    w2v.train(sample, checkpoint=tmp_path / "never", checkpoint_every="never", **options)  # without a copy
    w2v.train(sample, checkpoint=tmp_path, ignore_memory=True, **options)
    run("train", sample, "-o", tmp_path / "m.bin", "--ignore-memory", *QUICK)


PEAK = """
import sys, w2v
from w2v._system import memory
# After each checkpoint, the run releases the pages of the ids.
checkpoints = {"checkpoint": sys.argv[2], "checkpoint_every": "100chunks"}
model = w2v.train(sys.argv[1], vector_size=20, epochs=1, workers=2, sample=1e-6, **checkpoints)
print(model.metrics["tokens"], memory.peak_resident_bytes())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the memory of a process as Linux shows it")
def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    line = b" ".join(b"word%d" % (i * i % 5_003) for i in range(50_000)) + b"\n"
    peaks = []
    for times in (60, 300):
        (tmp_path / "text").write_bytes(line * times)
        command = [sys.executable, "-c", PEAK, str(tmp_path / "text"), str(tmp_path / str(times))]
        tokens, peak = map(int, subprocess.run(command, capture_output=True, check=True).stdout.split())
        assert tokens == times * 50_000
        peaks.append(peak)
    assert peaks[1] - peaks[0] < (300 - 60) * len(line) / 10  # a tenth of the growth of the text


def test_training_works_if_the_clock_does_not_advance(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.perf_counter", lambda: 5.0)
    monkeypatch.setattr("time.monotonic", lambda: 5.0)
    run("train", sample, "-o", tmp_path / "m.bin", "--plot", tmp_path / "run.svg", *QUICK)
    assert w2v.load(tmp_path / "m.bin").vectors.any()
    assert (tmp_path / "run.svg").exists()


@pytest.mark.parametrize("phase", ["read", "train"])
def test_interrupt_ends_the_threads(sample: Path, phase: str) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.phase == phase and progress.done:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        w2v.train(sample, epochs=100_000, progress=interrupt)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("corpus", "options", "expected"),
    [
        ([], {}, "holds no words"),
        ([["a", "b"]], {}, "no word occurs 5 times"),
        ([["a"] * 9], {}, "one word, 'a'"),
        ("no such file", {}, "does not exist"),
        (["one sentence"], {}, "no word occurs 5 times"),
        ([["a", b"b"]], {}, "of type bytes"),
        (5, {}, "of type int"),
        ([["a"]], {"size": 5}, "unknown setting 'size'"),
        ([["a"]], {"settings": w2v.Settings(), "epochs": 5}, "give epochs inside settings"),
        ([["a"]], {"vocabulary": w2v.Vocabulary(["b", "c"], np.array([1, 1])), "negative": 1}, "no word of the corpus"),
    ],
)
def test_unusable_corpora_and_options_are_refused(corpus: Any, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(w2v.W2VError, match=expected):
        w2v.train(corpus, **options)


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not CPUINFO.exists(), reason="needs the CPU features as Linux lists them"
)
def test_all_instruction_sets_of_the_processor_are_available() -> None:
    features = set(CPUINFO.read_text().split())
    needed = {"avx512": {"avx512f", "avx512dq", "avx512vl"}, "avx2": {"avx2", "fma"}, "baseline": set()}
    assert available_sets() == [name for name, required in needed.items() if required <= features]


def test_instruction_set_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("W2V_SIMD", "baseline")
    assert instruction_set() == "baseline"
    monkeypatch.setenv("W2V_SIMD", "quantum")
    with pytest.raises(w2v.SettingsError, match=r"W2V_SIMD=quantum: this machine supports .*baseline"):
        instruction_set()


def test_thresholds_cover_all_32_bit_numbers() -> None:
    result = thresholds(np.array([1, 0.5, 2**-32], np.float32))
    assert result.tolist() == [2**32 - 1, 2**31 - 1, 0]


def test_repr_of_a_model_is_short() -> None:
    model = w2v.train([["a", "b", "c"]] * 9, min_count=1, vector_size=2, negative=1, sample=0, epochs=1)
    assert repr(model) == "<Model: 3 words, 2 values each, cbow with loss ns>"
    assert repr(model.views["words"]) == "<View: 3 words, 2 values each, cbow with loss ns>"
