"""The Numba kernel trains the same models as the Cython kernel, and a user's own losses."""

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import caching

import w2v
from tests.helpers import Hinge, assert_one_line, full_disk, plan_without_text, start
from w2v._errors import install_command
from w2v._kernel import numba_kernel, numba_vectors
from w2v._kernel.numba_kernel import compile_function
from w2v._losses import registry
from w2v._losses.loss import Loss
from w2v._losses.registry import loss_for
from w2v._settings import MAX_INPUTS_PER_STEP
from w2v._training.planning import threads_memory
from w2v.data import make

ROOT = Path(__file__).parents[2]
LOSSES: dict[str, dict[str, Any]] = {
    loss: {"loss": loss} for loss in ("ns", "hs", "nce", "sampled", "class", "softmax")
}
LOSSES["adaptive"] = {"loss": "sampled", "adaptive_samples": True, "alpha": 0.3}
MODELS: dict[str, dict[str, Any]] = {
    "skipgram": {"model": "skipgram"},
    "per pair": {"model": "skipgram", "per_pair": True},
    "cbow": {"model": "cbow"},
    "corrected cbow": {"model": "cbow", "cbow_gradient": "corrected", "shrink_windows": False},
}
SMALL: dict[str, Any] = {"vector_size": 20, "epochs": 2, "workers": 1, "min_count": 5, "sample": 0.01}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("numba") / "text.txt"
    path.write_text("".join(make.corpus(20_000, seed=2)), "utf-8")
    return path


SUBWORDS = {"subwords": "2-3", "buckets": 5000}
WIDE = {"window": MAX_INPUTS_PER_STEP + 3}
ALL_CASES = [
    *(loss | model for loss in LOSSES.values() for model in MODELS.values()),
    *(SUBWORDS | MODELS[model] for model in ("skipgram", "cbow")),
    *(WIDE | MODELS["skipgram"] | LOSSES[loss] for loss in ("ns", "hs", "class")),
]
# Numba compiles the loop for each loss, which takes some seconds.
CASES = [pytest.param(case, marks=[pytest.mark.slow] * (case.get("loss", "ns") != "ns")) for case in ALL_CASES]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_numba_kernel_equals_cython_kernel(text: Path, case: dict[str, Any]) -> None:
    lines = [line.split() for line in text.read_text("utf-8").splitlines()]
    if "adaptive_samples" in case:  # in a long run, rounding may change the number of drawn words
        lines = lines[:600]
    elif "window" in case:
        lines = [text.read_text("utf-8").split()[:5000]]
    one, other = (w2v.train(lines, kernel=kernel, **SMALL | {"epochs": 1} | case) for kernel in ("cython", "numba"))
    assert np.abs(one.views["words"].outputs).max() > 0.1
    np.testing.assert_allclose(other.views["words"].inputs, one.views["words"].inputs, atol=5e-4)
    np.testing.assert_allclose(other.views["words"].outputs, one.views["words"].outputs, atol=5e-4)
    np.testing.assert_allclose(other.metrics["loss"], one.metrics["loss"], rtol=1e-6)
    assert other.metrics["tokens_trained"] == one.metrics["tokens_trained"]
    if "subwords" in case:
        assert np.abs(one.views["words"].ngrams.rows).max() > 0.1
        np.testing.assert_allclose(other.views["words"].ngrams.rows, one.views["words"].ngrams.rows, atol=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ns", "softmax"])  # nce and sampled take the same step: see rows_step
def test_numba_kernel_equals_cython_kernel_with_frozen_outputs(text: Path, loss: str) -> None:
    lines = [line.split() for line in text.read_text("utf-8").splitlines()]
    compass = w2v.train(lines, **SMALL | {"loss": loss, "model": "skipgram"})
    one, other = (
        w2v.train(lines[:600], init=compass, freeze="outputs", kernel=kernel, epochs=1)
        for kernel in ("cython", "numba")
    )
    np.testing.assert_array_equal(other.views["words"].outputs, one.views["words"].outputs)
    np.testing.assert_allclose(other.views["words"].inputs, one.views["words"].inputs, atol=5e-4)
    np.testing.assert_allclose(other.metrics["loss"], one.metrics["loss"], rtol=1e-6)


def test_memory_estimate_includes_the_loss() -> None:
    vocabulary = w2v.Vocabulary([f"word{number}" for number in range(500)], [1] * 500)
    scores = 2 * 4 * 1000 * 500  # for two threads
    estimates = {}
    for loss in "softmax", "mos":
        chosen = w2v.Settings(loss=loss, kernel="numba", window=500, workers=2, vector_size=16)  # type: ignore[arg-type]
        estimates[loss] = threads_memory(plan_without_text(loss_for(chosen, vocabulary), chosen, 1), "numba")
    assert 2 * scores < estimates["softmax"] < 3 * scores
    assert estimates["mos"] > estimates["softmax"] + 4 * scores


def test_resuming_on_another_processor_warns(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    w2v.train(text, kernel="numba", checkpoint=tmp_path, **SMALL)
    here = numba_kernel.target_name()
    w2v.resume(tmp_path, text)
    assert caplog.records == []
    code = "from w2v._kernel.numba_kernel import target_name; print(target_name())"
    for name, value in ("UNRELATED", "1"), ("NUMBA_CPU_NAME", "generic"), ("NUMBA_CPU_FEATURES", "+sse2"):
        environment = os.environ | {name: value}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        elsewhere = done.stdout.strip()
        assert (elsewhere == here) == (name == "UNRELATED"), done.stderr
        monkeypatch.setattr(numba_kernel, "target_name", functools.partial(str, elsewhere))
        w2v.resume(tmp_path, text)
        message = f"the run began with {here}, and this machine uses {elsewhere}: last bits will differ"
        assert caplog.messages == ([] if elsewhere == here else [message])
        caplog.clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("empty index", "EOFError: Ran out of input"),
        ("garbage", "UnpicklingError: "),
        ("folder", "IsADirectoryError: "),
        ("empty code", "EOFError: Ran out of input"),
        ("full disk", "OSError: [Errno 28] No space left on device"),
        ("read-only", "RuntimeError: cannot cache function "),
        ("no home", "PermissionError: there is no home folder for ~/.cache/numba"),
        ("another's home", "PermissionError: others can write to "),
        ("open home", "PermissionError: others can write to "),
    ],
)
def test_training_continues_if_the_cache_cannot_be_used(
    text: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    damage: str,
    reason: str,
) -> None:
    def train() -> w2v.Model:
        def train_chunk(c: Any, s: Any, epoch: int, chunk: int) -> tuple[float, int]:  # quick to compile
            return 1.0, 1

        monkeypatch.setattr(numba_kernel, "train_chunk", train_chunk)
        return w2v.train(text, kernel="numba", **SMALL)

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    train()
    assert caplog.records == []
    (index,), (code,) = tmp_path.rglob("*.nbi"), tmp_path.rglob("*.nbc")
    match damage:
        case "empty index" | "garbage":
            index.write_bytes(damage.encode() if damage == "garbage" else b"")
        case "folder":
            index.unlink()
            index.mkdir()
        case "empty code":
            code.write_bytes(b"")
        case "full disk":
            index.unlink()
            monkeypatch.setattr(caching.IndexDataCacheFile, "_save_index", full_disk)
        case "read-only":  # Numba cannot write to any folder
            monkeypatch.setattr(caching._CacheLocator, "ensure_cache_path", full_disk)
        case _:
            monkeypatch.setattr(numba.config, "CACHE_DIR", "")
            monkeypatch.setenv("XDG_CACHE_HOME", "~/.cache" if damage == "no home" else str(tmp_path))
            tmp_path.chmod(0o777 if damage == "open home" else 0o700)
            if damage == "another's home":
                monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert train().metrics["loss"] == [1.0, 1.0]
    (message,) = caplog.messages
    assert message.startswith(f"Numba's cache on disk cannot be used ({reason}")


def run_python(code: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with these environment variables. Any warning is an error."""
    warnings = ["-W", "error", "-W", "ignore::UserWarning"]  # about a small text
    return subprocess.run(
        [sys.executable, *warnings, "-c", code], capture_output=True, text=True, cwd=folder, env=os.environ | variables
    )


def test_numba_is_imported_only_when_used(text: Path, tmp_path: Path) -> None:
    train = f"import sys, w2v; w2v.train({str(text)!r}, epochs=1, workers=1)"
    assert run_python(f"{train}; assert 'numba' not in sys.modules", tmp_path).returncode == 0
    missing = "import sys; sys.modules['numba'] = None; from w2v._cli.main import main; "
    for arguments, code in ([], 0), (["--kernel", "numba"], 2):
        command = f"main(['train', {str(text)!r}, '-o', '{code}.bin', '--epochs', '1', *{arguments}])"
        done = run_python(missing + command, tmp_path)
        assert done.returncode == code, done.stderr
        assert (install_command("numba") in done.stderr) == bool(code)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("NUMBA_NUM_THREADS", "0", "Numba cannot be used: Number of threads specified must be > 0"),
        ("NUMBA_DISABLE_JIT", "1", "the Numba kernel cannot run uncompiled: unset NUMBA_DISABLE_JIT"),
    ],
)
def test_unusable_numba_is_one_line(variable: str, value: str, message: str, text: Path, tmp_path: Path) -> None:
    arguments = ["train", text, "--kernel", "numba", "-o", tmp_path / "m.bin"]
    with start(*arguments, env=os.environ | {variable: value}) as done:
        stderr = done.stderr.read().decode()
    assert done.returncode == 2
    assert_one_line(stderr)
    assert message in stderr


def test_machine_code_is_reused_by_another_process(text: Path, tmp_path: Path) -> None:
    """Another process loads the loop from disk instead of compiling it."""
    w2v.train(text, epochs=1, workers=1, kernel="numba")  # compiles the loop, unless an earlier test did
    code = (
        "import numba, w2v, numba.core.event as event\n"
        "with event.install_recorder('numba:compile') as seen:\n"
        f"    w2v.train({str(text)!r}, epochs=1, workers=1, kernel='numba')\n"
        "    print(len(seen.buffer))\n"
        "    numba.njit(lambda: 1)()\n"
        "    print(len(seen.buffer))"
    )
    done = run_python(code, tmp_path)
    of_loop, of_all = map(int, done.stdout.split())
    assert of_loop == 0 < of_all, done.stderr


# -- user's own losses ----------------------------------------------------------------------


hinge_choose, hinge_link = Hinge.choose, Hinge.link  # Numba cannot compile Hinge.choose(…).


class BiasedHinge(Hinge):
    """The hinge loss with a bias for each word."""

    def parameters(self, random: np.random.Generator) -> dict[str, Any]:
        return super().parameters(random) | {"bias": np.zeros((len(self.vocabulary), 1), np.float32)}

    @staticmethod
    def choose(s: Any, centre: int, x: Any) -> int:
        m = hinge_choose(s, centre, x)
        s.offset[:m] = -s.parameters.bias[:, 0][s.rows[:m]]  # a loss may allocate arrays
        return m

    @staticmethod
    def link(s: Any, scores: Any) -> float:
        loss = hinge_link(s, scores)
        for i in range(scores.shape[0]):
            for j in range(scores.shape[1]):
                s.parameters.bias[s.rows[j], 0] += 0.01 * scores[i, j]
        return loss


@pytest.mark.slow
def test_own_loss_is_trained_saved_and_resumed(text: Path, tmp_path: Path) -> None:
    model = w2v.train([text] * 5, objective=BiasedHinge(), checkpoint=tmp_path / "states", **SMALL | {"epochs": 4})
    assert model.metrics["loss"][0] > model.metrics["loss"][3]
    assert model.settings.as_dict()["objective"] == f"{__name__}:BiasedHinge"
    assert np.abs(model.views["words"].parameters["bias"]).max() > 0.01
    path = tmp_path / "m.safetensors"
    model.save(path)
    loaded = w2v.Model.load(path)
    np.testing.assert_array_equal(loaded.views["words"].parameters["bias"], model.views["words"].parameters["bias"])
    np.testing.assert_array_equal(loaded.views["words"].outputs, model.views["words"].outputs)
    logs = loaded.views["words"].log_probabilities(loaded.views["words"].inputs[:5])
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-5)
    with pytest.raises(w2v.W2VError, match=r"^vocab union: with loss objective"):
        w2v.train(text, continue_from=path, vocab="union")
    assert w2v.train(text, continue_from=path, epochs=1).metrics["loss"][0] < model.metrics["loss"][0]
    assert w2v.resume(tmp_path / "states", [text] * 5).metrics["loss"] == model.metrics["loss"]


class Raising(BiasedHinge):
    @staticmethod
    def choose(s: Any, centre: int, x: Any) -> int:
        if s.position[0] > 50:  # after the first words, which the dry run tries in Python
            raise ValueError("out of luck")
        s.rows[0], s.target[0] = centre, 1
        return 1


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_an_exception_in_a_thread_ends_the_run(text: Path, tmp_path: Path, workers: int) -> None:
    options = SMALL | {"workers": workers}
    message = r"Raising: training, test_numba_kernel.py, line \d+: ValueError: out of luck$"
    with pytest.raises(w2v.W2VError, match=message):
        w2v.train([text] * 5, objective=Raising(), checkpoint=tmp_path / "states", **options)
    assert list((tmp_path / "states").iterdir()) == []  # a run cannot be resumed within a chunk


@pytest.mark.slow
def test_files_do_not_run_code(text: Path, tmp_path: Path) -> None:
    w2v.train(text, objective=BiasedHinge(), checkpoint=tmp_path / "states", **SMALL).save(tmp_path / "m.safetensors")
    expected = (
        f"the model's objective is {__name__}:BiasedHinge, and w2v does not run code that a file names: give "
        "--objective"
    )
    done = run_python("import w2v; w2v.load('m.safetensors'); w2v.Model.load('m.safetensors')", tmp_path)
    assert f"LossNotImported: {expected}" in done.stderr
    done = run_python("from w2v._cli.main import main; main(['train', '--resume', 'states'])", tmp_path)
    assert done.stderr.startswith(f"w2v: {tmp_path / 'states' / 'checkpoint-000001.safetensors'}: {expected}")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


@staticmethod
def wrong_index(s: Any, centre: int, x: Any) -> int:
    s.rows[99] = 0
    return 1


@staticmethod
def infinite_loss(s: Any, scores: Any) -> float:
    return float(np.log(scores[0, 0] - 1))


@staticmethod
def uncompilable_step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
    return float(len({str(k): k for k in x.tolist()[0]}))


@staticmethod
def importing_step(s: Any, centre: int, x: Any, change: Any, alpha: float) -> float:
    import math

    return math.pi


def bad_loss(**members: Any) -> type[Loss]:
    """Return a loss that differs from BiasedHinge in these members."""
    return type("Mistaken", (BiasedHinge,), members)


def unpadded(loss: BiasedHinge, random: np.random.Generator) -> dict[str, Any]:
    return BiasedHinge.parameters(loss, random) | {"outputs": np.zeros((len(loss.vocabulary), 20), np.float32)}


ROWS = np.zeros((3, 3), np.float32)


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (bad_loss(choose=wrong_index), r"Mistaken: choose, PLACE: IndexError: index 99 is out of bounds"),
        (bad_loss(link=infinite_loss), r"Mistaken: link, PLACE: with untrained vectors, the loss is nan: "),
        (bad_loss(step=importing_step), r"Mistaken cannot be compiled: .*IMPORT_NAME.*test_numba_kernel.py \(\d+\)$"),
        (
            bad_loss(step=uncompilable_step),
            r"Mistaken cannot be compiled: .*\(File .*test_numba_kernel.py\", line \d+\)$",
        ),
        (type("NoStep", (Loss,), {}), "NoStep has no choose: write choose and link, or step$"),
        (bad_loss(choose=lambda s, centre, x: 1), ": choose, PLACE: it takes no self: write @staticmethod above it$"),
        (bad_loss(parameters=unpadded), ": parameters, PLACE: rows of outputs have 20 values: .* to 32$"),
        (bad_loss(parameters=lambda *_: None), ": parameters gave NoneType: it must be a dict of arrays$"),
        (bad_loss(parameters=lambda *_: {"my-bias": ROWS}), ": a key of parameters is 'my-bias': it must"),
        (bad_loss(parameters=lambda *_: {"outputs": ROWS[0].astype(float)}), "'outputs' is float64 .* C-contiguous fl"),
        (bad_loss(scratch=lambda *_: {"room": "large"}), ": scratch 'room' is str: it must be an array$"),
        (bad_loss(data={"margin": "large"}), ": data 'margin' is str: it must be an array or a number$"),
        (bad_loss(max_rows=0), ": max_rows is 0: it must be a whole number above 0$"),
        (bad_loss(prepare=lambda _: ROWS[9]), ": prepare, PLACE: IndexError: index 9 is out of bounds"),
    ],
)
def test_mistakes_in_own_losses_are_one_line_with_the_place(text: Path, objective: type[Loss], expected: str) -> None:
    place = r"test_numba_kernel.py, line \d+"
    with pytest.raises(w2v.W2VError, match=expected.replace("PLACE", place)):
        w2v.train(text, objective=objective(), **SMALL)


def test_missing_memory_is_not_a_mistake_in_a_loss(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba_kernel, "compile_function", functools.cache(lambda *_: bytearray(1 << 62)))
    with pytest.raises(MemoryError):
        w2v.train(text, kernel="numba", **SMALL)


def test_colours_in_numbas_messages_are_removed() -> None:
    lines = ["Failed in nopython mode pipeline", "\x1b[31mno such name", 'File "l.py", line 3:']
    error = numba.core.errors.TypingError("\n".join(f"\x1b[1m{line}\x1b[0m" for line in lines))
    assert numba_kernel.first_line_of_error(error) == 'no such name (File "l.py", line 3)'


def placeholder() -> float:
    raise NotImplementedError


def score() -> float:
    """Return a constant. Compiled code calls this as it calls functions of the kernel."""
    return 0.5


def scaled(factor: float, values: Any) -> Any:
    """Return a function that computes factor · values[1] + 0.5, and the pair that replaces its placeholder."""

    def value() -> float:
        return float(values[1])

    def product() -> float:
        return factor * placeholder() + score()

    return product, ((placeholder, value),)


def test_machine_code_is_named_by_its_dependencies() -> None:
    """The name of cached machine code depends on everything that determines its behaviour."""
    one, two = np.array([1.0, 2.0]), np.array([1.0, 3.0])
    functions = [compile_function(*scaled(factor, values)) for factor, values in ((2.0, one), (3.0, one), (2.0, two))]
    assert [function() for function in functions] == [4.5, 6.5, 6.5]
    product, others = scaled(2.0, one)
    product.__module__ = "elsewhere"  # machine code imports the module when it is loaded
    functions.append(compile_function(product, others))
    assert len({function.py_func.__qualname__ for function in functions}) == 4
    product, others = scaled(2.0, one)
    assert compile_function(product, others).py_func.__qualname__ == functions[0].py_func.__qualname__


def test_name_of_machine_code_depends_on_the_vector_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    product, others = scaled(2.0, np.array([1.0, 2.0]))
    names = [compile_function.__wrapped__(product, others).py_func.__qualname__ for _ in range(2)]
    source = Path(numba_vectors.__file__).read_text("utf-8")
    (tmp_path / "changed.py").write_text(source + "# another version\n", "utf-8")
    monkeypatch.setattr(numba_vectors, "__file__", str(tmp_path / "changed.py"))
    names.append(compile_function.__wrapped__(product, others).py_func.__qualname__)
    assert names[0] == names[1] != names[2]


def test_name_of_machine_code_depends_on_nested_functions() -> None:
    """The name is the same in every process, so it must not contain the address of a nested function."""
    source = "def outer():\n    def inner():\n        return {}\n    return inner()\n"

    def name(number: int) -> str:
        scope: dict[str, Any] = {"__name__": __name__}
        exec(source.format(number), scope)
        found: str = compile_function(scope["outer"], ()).py_func.__qualname__
        return found

    assert name(1) == name(1) != name(2)


@pytest.mark.slow
def test_probabilities_of_the_wrong_shape_are_refused(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = w2v.train(text, objective=BiasedHinge(), **SMALL)
    monkeypatch.setattr(BiasedHinge, "log_probabilities", lambda self, parameters, rows: rows, raising=False)
    message = r"BiasedHinge: log_probabilities, test_numba_kernel.py, line \d+: returned \(\d+, 20\)"
    with pytest.raises(w2v.W2VError, match=message):
        w2v.perplexity(model, text)


def test_objectives_that_do_not_exist_are_refused(text: Path) -> None:
    for name in ("hinge", "nothing_there:Hinge", "math:pi", "math:sqrt", "w2v:Settings"):
        with pytest.raises(w2v.SettingsError, match=f"^objective '?{name}"):
            w2v.train(text, objective=name)
    with pytest.raises(w2v.SettingsError, match="must be a Loss"):
        registry.register("hinge:Hinge")  # type: ignore[arg-type]
    with pytest.raises(w2v.SettingsError, match=r"^objective a:B replaces loss hs: give only one of them$"):
        w2v.train(text, objective="a:B", loss="hs")
    with pytest.raises(w2v.SettingsError, match=r"^loss objective: name your loss with objective, as module:Name$"):
        w2v.train(text, loss="objective")
