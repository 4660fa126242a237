"""RunConfig: one description of a run for command line, keyword arguments, settings files and checkpoints."""

import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import w2v
from tests.helpers import SMALL, train_and_stop
from w2v._options import options_of
from w2v._settings import PRESETS, Preset
from w2v._text.idstore import ReadingOptions
from w2v._training.config import RunConfig
from w2v._training.train import Arguments

OPTIONS: dict[str, Any] = {
    "loss": "hs",
    "window": 3,
    "lower": True,
    "column": "text",
    "corpus": ("a.txt", "-"),
    "phrases": "phrases.tsv",
    "init": "vectors.bin",
    "freeze": "inputs",
    "checkpoint": "states",
    "checkpoint_every": "1epoch",
    "notes": {"a": [1, None]},
}


def test_stored_config_can_be_read() -> None:
    config = RunConfig.from_options(OPTIONS)
    stored = json.loads(json.dumps(config.stored()))
    assert (stored["corpus"], stored["phrases"]) == ([str(Path.cwd() / "a.txt"), "-"], str(Path.cwd() / "phrases.tsv"))
    again = RunConfig.from_stored(stored, config.settings)
    assert again.settings == config.settings
    assert again.stored() == config.stored()


def test_all_options_share_one_namespace() -> None:
    config = RunConfig.from_options(OPTIONS)
    assert (config.settings.loss, config.settings.window) == ("hs", 3)
    assert (config.reading.lower, config.text.lower) == (True, True)
    assert RunConfig.from_options({}) == RunConfig()
    with pytest.raises(w2v.SettingsError, match="unknown setting 'phrasse': did you mean phrases"):
        RunConfig.from_options({"phrasse": "phrases.tsv"})


@pytest.mark.parametrize("preset", PRESETS)
def test_preset_replaces_defaults_and_given_options_override_it(preset: Preset) -> None:
    settings = RunConfig.from_options({"preset": preset}).settings
    assert settings == w2v.Settings(**PRESETS[preset]) != w2v.Settings()
    assert RunConfig.from_options({"preset": preset, "epochs": 7}).settings == replace(settings, epochs=7)


def test_preset_for_vectors_has_the_size_of_the_vectors() -> None:
    vectors = w2v.KeyedVectors(["a"], [[1.0, 2.0]])
    settings = RunConfig.from_options({"preset": "graph", "init": "vectors.bin"}, vectors).settings
    assert (settings.vector_size, settings.window) == (2, PRESETS["graph"]["window"])


def test_train_uses_a_preset_and_stores_its_values() -> None:
    model = w2v.train([["a", "b", "c"]] * 9, preset="graph", vector_size=4, sample=0.0, workers=1)
    stored = model.settings.as_dict()
    assert stored == stored | PRESETS["graph"] | {"vector_size": 4, "sample": 0.0}
    with pytest.raises(w2v.SettingsError, match=r"^preset 'grahp': did you mean graph\?$"):
        w2v.train([["a"]], preset="grahp")  # type: ignore[arg-type]
    with pytest.raises(w2v.SettingsError, match="preset has no effect with settings"):
        w2v.train([["a"]], preset="graph", settings=w2v.Settings())
    with pytest.raises(w2v.SettingsError, match="preset has no effect with continue_from"):
        w2v.train([["a"]], preset="graph", continue_from=model)


@pytest.mark.parametrize(
    "wrong",
    [
        {"corpus": "text"}, {"corpus": ("",)}, {"corpus": ("\0",)}, {"vocab": "new"},
        {"freeze": "yes"}, {"ignore_memory": 1}, {"phrases": None}, {"notes": []}, {"checkpoint_every": 5},
    ],
    ids=str,
)  # fmt: skip
def test_error_names_the_impossible_option(wrong: dict[str, Any]) -> None:
    with pytest.raises(w2v.SettingsError, match=f"^{next(iter(wrong))} "):
        RunConfig(**wrong)


def test_signature_of_train_lists_all_options() -> None:
    parameters = inspect.signature(w2v.train).parameters
    assert next(iter(parameters)) == "corpus"
    assert {*options_of(w2v.Settings), *inspect.signature(ReadingOptions).parameters} < {*parameters}
    assert parameters["vector_size"].default == 100
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for name, each in parameters.items() if name != "corpus")
    own = {*parameters} & {*inspect.signature(RunConfig).parameters} - {"settings", "corpus", "vocabulary"}
    defaults = {name: parameters[name].default for name in own if name != "notes"}
    assert {name: getattr(RunConfig, name) for name in defaults} == defaults
    assert {"output", "plot"}.isdisjoint(inspect.signature(Arguments).parameters)


def test_checkpoint_stores_the_config(sample: Path, tmp_path: Path) -> None:
    state = train_and_stop(tmp_path, sample, notes={"a": 1}, lower=True, window=3)
    assert state.config.corpus == (str(sample),)
    assert state.config.checkpoint_every == "2chunks"
    assert (state.config.notes, state.config.text.lower) == ({"a": 1}, True)
    assert state.settings.as_dict() == w2v.Settings(**SMALL, window=3).as_dict()
