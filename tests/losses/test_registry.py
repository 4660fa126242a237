"""Every registered loss fulfils the protocol, and a new loss works everywhere without any other change."""

import pickle
import re
import sys
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import SMALL, Hinge, assert_same, make_loss, run_json, train_and_stop
from w2v import _kernels
from w2v._errors import LossNotImported
from w2v._evaluation.held_out import GapTest
from w2v._losses import registry
from w2v._losses.loss import Loss, by_tensor_name
from w2v._losses.registry import LOSSES, Settings, loss_for
from w2v._losses.sampling import NegativeSampling
from w2v._losses.worker import new_worker
from w2v._text.corpus import Corpus
from w2v._text.idstore import read_corpus
from w2v._text.vocabulary import Vocabulary
from w2v._training import config, source, train
from w2v._training.checkpoint import untrained_loss
from w2v._training.effective_rank import effective_rank
from w2v._training.planning import memory_needed, plan_run
from w2v._training.start import Initialisation

COUNTS = np.array([40, 30, 20, 10, 8, 6, 4, 2, 2, 1])


PAGE = (Path(__file__).parents[2] / "docs" / "new-loss.md").read_text("utf-8")
PAGE_CODE: dict[str, Any] = {"__name__": "page_code"}
for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
    exec(block, PAGE_CODE)


# Negative sampling with uniform noise, which inherits the branch of the Cython kernel, and a loss with an option.
NEW_LOSSES: dict[str, type[Loss]] = {"uniform": PAGE_CODE["UniformNegatives"], "margin": PAGE_CODE["Margin"]}
RUNS = [("uniform", "cython"), *(pytest.param(name, "numba", marks=pytest.mark.slow) for name in ("uniform", "margin"))]


@pytest.fixture
def new_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kind in NEW_LOSSES.items():
        monkeypatch.setitem(LOSSES, name, kind)
    bases = (Settings, PAGE_CODE["MarginOptions"])
    with_margin = make_dataclass("Settings", [], bases=bases, frozen=True, kw_only=True)
    for module in registry, config, source, train, sys.modules[__name__]:
        monkeypatch.setattr(module, "Settings", with_margin)
    monkeypatch.setattr(registry, "LOSS_OPTIONS", registry.LOSS_OPTIONS | {"margin"})


@pytest.mark.parametrize("name", LOSSES)
def test_loss_fulfils_the_protocol(name: str) -> None:
    kind = LOSSES[name]
    assert kind.help
    assert kind.kernels == (("cython", "numba") if kind.branch in _kernels.LOSS_KINDS else ("numba",))
    assert issubclass(Settings, kind.options_class)
    assert kind.storages in [("float32",), ("float32", "bf16")]


@pytest.mark.parametrize(("name", "storage"), [(name, each) for name in LOSSES for each in LOSSES[name].storages])
def test_tensors_restore_the_loss(name: str, storage: str) -> None:
    loss = make_loss(COUNTS, name, vector_size=6, storage=storage)
    stored = loss.stored(loss.new_parameters())
    assert {key: array.shape for key, array in stored.items()} == loss.shapes
    restored = loss_for(loss.settings, loss.vocabulary, loss.tensors | by_tensor_name(stored))
    assert restored.tensors.keys() == loss.tensors.keys()
    for found, expected in ((restored.tensors, loss.tensors), (restored.data, loss.data)):
        for key, array in expected.items():
            np.testing.assert_array_equal(found[key], array, err_msg=key)
    assert (restored.max_rows, restored.shapes) == (loss.max_rows, loss.shapes)


@pytest.mark.parametrize("name", LOSSES)
def test_memory_estimate_is_the_size_of_the_parameters(name: str) -> None:
    counts = np.arange(10_000, 0, -1)
    loss = make_loss(counts, name, vector_size=192)
    size = sum(int(np.prod(shape)) for shape in loss.shapes.values())
    assert loss.memory_rows * 192 == pytest.approx(size, rel=0.05)


# Where each class begins, with a fault: the type, the shape, the first, the last, or the order.
DAMAGED = [[], [10], [0], [[0, 4, 10]], [1, 4, 10], [0, 4, 9], [0, 4, 11], [0, 4, 4, 10], [0, 6, 4, 10]]


@pytest.mark.parametrize("starts", [np.array([0, 4, 10], np.int32), *(np.array(each, np.int64) for each in DAMAGED)])
def test_damaged_classes_are_refused(starts: np.ndarray) -> None:
    loss = make_loss(COUNTS, "class", vector_size=6)
    for tensors, message in ({"class_starts": starts}, ""), ({}, ": class_starts is missing"):
        with pytest.raises(w2v.W2VError, match=f"the model's classes are damaged{message}"):
            loss.prepared(loss.vocabulary, loss.settings, tensors)


@pytest.mark.parametrize("scale", [0.1, 0.5, 30])
@pytest.mark.parametrize("name", LOSSES)
def test_probabilities_add_up_to_one_however_they_are_computed(name: str, scale: float) -> None:
    loss, random = make_loss(COUNTS, name, vector_size=6), np.random.default_rng(2)
    stored = {key: random.normal(0, scale, shape) for key, shape in loss.shapes.items()}
    rows = random.normal(size=(4, 6))
    logs = loss.log_probabilities(stored, rows)
    assert logs.shape == (4, len(COUNTS))
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)
    numbers, words = (part.ravel() for part in np.indices(logs.shape))
    common = np.array([0, 2, 3])
    pairs, table = loss.log_probabilities_of(stored, rows, numbers, words, common)
    np.testing.assert_allclose(pairs, logs.ravel())
    np.testing.assert_allclose(table, logs[:, common])


@pytest.mark.usefixtures("new_losses")
@pytest.mark.parametrize(("name", "kernel"), RUNS)
def test_new_loss_works_everywhere(name: str, kernel: str, sample: Path, tmp_path: Path) -> None:
    own: dict[str, Any] = {"negative": 5} if name == "uniform" else {"margin": 0.5}
    settings = Settings(**SMALL, model="skipgram", loss=name, kernel=kernel, sample=0, **own)
    assert settings.in_effect().items() >= own.items()
    model = w2v.train(sample, settings=settings)
    assert isinstance(model.views["words"].loss, NEW_LOSSES[name])
    assert model.metrics["loss"][-1] < model.metrics["loss"][0]
    path = tmp_path / "m.safetensors"
    model.save(path)
    loaded = w2v.Model.load(path)
    assert loaded.settings.as_dict() == replace(model.settings, workers=None).as_dict()
    assert isinstance(loaded.views["words"].loss, NEW_LOSSES[name])
    for key, array in model.views["words"].output_parameters.items():
        np.testing.assert_array_equal(loaded.views["words"].output_parameters[key], array)
    result = w2v.perplexity(loaded, sample)
    assert result.perplexity < result.unigram_perplexity
    assert effective_rank(loaded, 30, 30).rank <= model.settings.vector_size + 1  # 1 for the normaliser of the softmax
    info = run_json("info", path)
    assert info["output_layer"]["loss"] == name
    assert {name: info["output_layer"].get(name) for name in ("negative", "margin") if name in own} == own
    assert len(info["output_layer"]) == 1 + len(own) + (name == "uniform")  # with ns_exponent
    more = w2v.train(sample, continue_from=path, vocab="union", epochs=1)
    assert more.settings.loss == name
    states = tmp_path / "states"
    train_and_stop(states, sample, settings=settings)
    resumed = w2v.resume(states, sample)
    assert resumed.metrics["loss"] == model.metrics["loss"]
    np.testing.assert_array_equal(resumed.views["words"].inputs, model.views["words"].inputs)


@pytest.mark.usefixtures("new_losses")
@pytest.mark.parametrize(("name", "kernel"), RUNS)
def test_memory_estimate_includes_the_matrices_of_a_new_loss(name: str, kernel: str, sample: Path) -> None:
    with read_corpus(Corpus(sample)) as store:
        vocabulary = Vocabulary.from_store(store)
        settings = [
            Settings(loss=name, kernel=kernel, vector_size=size, workers=1, vectors="input") for size in (16, 160)
        ]
        small, large = (memory_needed(plan_run(one, Initialisation(vocabulary), store), one) for one in settings)
    matrices = 2 * len(vocabulary) * (160 - 16) * 4
    assert matrices <= large - small < 1.2 * matrices


@pytest.mark.slow
@pytest.mark.usefixtures("new_losses")
def test_both_kernels_train_the_same_new_loss(sample: Path) -> None:
    one, other = (w2v.train(sample, **SMALL, loss="uniform", kernel=kernel) for kernel in ("cython", "numba"))
    np.testing.assert_allclose(one.views["words"].inputs, other.views["words"].inputs, atol=5e-4)
    weighted = w2v.train(sample, **SMALL)
    assert not np.allclose(one.views["words"].inputs, weighted.views["words"].inputs, atol=1e-2)


@pytest.mark.slow  # as other slow tests, which compile the same loss
@pytest.mark.usefixtures("new_losses")
def test_compiled_functions_read_the_option_of_the_documented_loss(sample: Path) -> None:
    options = {**SMALL, "loss": "margin", "epochs": 1, "vectors": "input"}
    none, large, again = (w2v.train(sample, settings=Settings(**options, margin=margin)) for margin in (0, 5, 5))
    np.testing.assert_array_equal(large.views["words"].inputs, again.views["words"].inputs)
    assert large.metrics["loss"][0] > none.metrics["loss"][0] + 1


def test_a_users_loss_is_found_in_the_working_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is imported from there: the search path is restored, also after an error."""
    (here / "loss_of_a_user.py").write_text("import w2v\n\nclass Mine(w2v.Loss): ...\n\nclass Other: ...\n")
    (here / "broken_loss.py").write_text("1 / 0\n")
    monkeypatch.setattr(registry, "_own_losses", {})
    before = list(sys.path)
    loss = registry.find("loss_of_a_user:Mine")
    assert loss.label == "objective loss_of_a_user:Mine"
    assert registry.find("loss_of_a_user:Mine").label == loss.label
    for name, message in {
        "loss_of_a_user:None": "AttributeError: ",
        "loss_of_a_user:Other": "it is not a Loss",
        "broken_loss:Mine": "ZeroDivisionError: ",
        "missing_loss:Mine": "ModuleNotFoundError: ",
    }.items():
        with pytest.raises(w2v.SettingsError, match=f"^objective {name}: {message}"):
            registry.find(name)
    for name in ("loss_of_a_user", "loss_of_a_user:", ":Mine"):
        with pytest.raises(w2v.SettingsError, match=f"^objective '{name}': write module:Name"):
            registry.find(name)
    assert sys.path == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_may_hold_numbers(dtype: type[np.floating[Any]]) -> None:
    loss = make_loss(COUNTS)
    loss.data = {"python": 0.5, "whole": 2, "single": np.float32(0.5), "array": np.ones(2, np.float32)}
    data = new_worker(loss, {}, 1, 16, dtype).data
    assert (data.python, data.whole, data.single) == (0.5, 2, 0.5)
    assert type(data.python) is type(data.single) is data.array.dtype.type is dtype


class OwnNegatives(NegativeSampling):
    """A user's own loss with the options of a built-in loss."""

    @staticmethod
    def choose(s: Any, centre: int, x: Any) -> int:
        s.rows[0] = 10**6
        return 1


def test_a_loss_derived_from_a_built_in_one_is_a_users_own(sample: Path) -> None:
    loss = OwnNegatives().prepared(Vocabulary(["a", "b"], [2, 1]), Settings(objective=OwnNegatives()))
    assert loss.label == f"objective {__name__}:OwnNegatives"
    assert untrained_loss(loss) == np.inf
    for attempt in (w2v.losses.check_gradient, lambda loss: w2v.train(sample, **SMALL, objective=loss)):
        with pytest.raises(w2v.W2VError, match=r"OwnNegatives: choose, test_registry.py, line \d+: chose row 1000000"):
            attempt(OwnNegatives())


class MarginInData(Hinge):
    """A loss with objects that differ."""

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = margin

    def prepare(self) -> None:
        self.data = {"margin": self.margin, "pair": np.array([1 + 2j])}


def test_two_losses_of_a_class_are_two_losses() -> None:
    vocabulary = Vocabulary(["a", "b"], [2, 1])
    small, large = (Settings(objective=MarginInData(margin)) for margin in (0.5, 2.0))
    assert small != large
    assert small == replace(small)
    for settings, margin in ((small, 0.5), (large, 2.0), (pickle.loads(pickle.dumps(small)), 0.5)):
        assert loss_for(settings, vocabulary).data["margin"] == margin
        assert settings.as_dict()["objective"] == f"{__name__}:MarginInData"
    name = registry.register(MarginInData(4.0))
    assert registry.find(name).margin == 1  # type: ignore[attr-defined]  # a name calls the class without arguments
    assert loss_for(Settings(objective=name), vocabulary).data["margin"] == 1


def test_a_file_is_not_used_with_another_loss_of_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_own_losses", {})
    vocabulary = Vocabulary(["a", "b"], [2, 1])
    loss = loss_for(Settings(objective=MarginInData(0.5)), vocabulary)
    tensors = loss.tensors | loss.stored(loss.new_parameters())
    settings = Settings(objective=str(loss))
    with pytest.raises(LossNotImported, match="does not run code that a file names"):
        loss_for(settings, vocabulary, tensors)
    registry.register(MarginInData(2.0))
    with pytest.raises(LossNotImported, match=r"with another loss .*:MarginInData, with other data.margin: give"):
        loss_for(settings, vocabulary, tensors)
    registry.register(MarginInData(0.5 + 1e-9))  # another machine may round differently
    assert loss_for(settings, vocabulary, tensors).data["margin"] == 0.5 + 1e-9
    with pytest.raises(LossNotImported, match=r"with other data.pair"):
        loss_for(settings, vocabulary, tensors | {"data.pair": np.zeros(16, np.uint8)})
    for other in (
        tensors | {"data.more": np.ones(1)},
        {name: tensors[name] for name in tensors if name != "data.pair"},
    ):
        with pytest.raises(LossNotImported, match=r"with other data\.(more|pair)"):
            loss_for(settings, vocabulary, other)


@pytest.mark.slow
def test_a_run_is_not_resumed_with_another_loss_of_the_class(tmp_path: Path, sample: Path) -> None:
    loss, options = MarginInData(0.5), SMALL | {"epochs": 1}
    model = w2v.train(sample, **options, objective=loss, checkpoint=tmp_path / "run")
    w2v.train(sample, **options, objective=MarginInData(2.0))
    with pytest.raises(LossNotImported, match=r"MarginInData, with other data\.margin"):
        w2v.resume(tmp_path / "run", sample)
    registry.register(loss)
    assert_same(w2v.resume(tmp_path / "run", sample), model)
    model.save(tmp_path / "m.safetensors")
    more = w2v.train(sample, continue_from=tmp_path / "m.safetensors", epochs=1)
    assert more.views["words"].loss.data["margin"] == 0.5
    registry.register(MarginInData(2.0))
    with pytest.raises(LossNotImported, match=r"m\.safetensors: the file was written with another loss"):
        w2v.Model.load(tmp_path / "m.safetensors")


@pytest.mark.slow
def test_early_stopping_keeps_the_loss_of_the_run(
    sample: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scores = iter([0.7, 0.6])
    monkeypatch.setattr(GapTest, "score", lambda *_: next(scores))

    def register_another(_: w2v.Progress) -> None:
        registry.register(MarginInData(2.0))

    w2v.train(sample, **SMALL, objective=MarginInData(), stop_early=1, progress=register_another)
    assert "instead of the best" not in caplog.text


def test_a_users_loss_can_inherit_the_options_of_a_built_in_loss(sample: Path) -> None:
    with read_corpus(Corpus(sample)) as store:
        vocabulary = Vocabulary.from_store(store)
    loss = OwnNegatives()
    settings = Settings(objective=loss, negative=3, ns_exponent=0.25)
    prepared = loss.prepared(vocabulary, settings)
    assert (prepared.negative, prepared.options.ns_exponent) == (3, 0.25)
    loss.options_class = PAGE_CODE["MarginOptions"]
    with pytest.raises(w2v.SettingsError, match="its options_class MarginOptions does not belong to a built-in loss"):
        loss.prepared(vocabulary, settings)


@pytest.mark.usefixtures("new_losses")
def test_kernels_and_storages_that_a_new_loss_lacks_are_refused(sample: Path) -> None:
    with pytest.raises(w2v.SettingsError, match=r"^kernel cython: loss margin needs kernel numba"):
        w2v.train(sample, loss="margin", kernel="cython")
    with pytest.raises(w2v.SettingsError, match=r"^storage bf16: loss margin supports only float32"):
        w2v.train(sample, loss="margin", storage="bf16")
