"""Checkpoints that were written before they stored a RunConfig can still be resumed."""

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import run
from w2v.text.phrases import Phrases

OLDER = Path(__file__).with_name("checkpoints")
SETTINGS: dict[str, Any] = {"vector_size": 2, "epochs": 4, "workers": 1, "sample": 0, "seed": 1}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "subwords": {"subwords": "3-3"},
    "hs": {"loss": "hs", "model": "skipgram"},
    "stop_early": {"stop_early": 3},
    "phrases": {"phrases": True},
    "phrase_file": {"phrases": "phrases.tsv"},
    "text_options": {"lower": True, "errors": "replace", "digits": "zero", "max_types": 1000},
}


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The text of these runs, which used the code that every processor can run."""
    monkeypatch.setenv("W2V_SIMD", "baseline")
    chance = random.Random(1)
    lines = [" ".join(chance.choices(["a", "b", "c", "d", "e", "f"], k=8)) for _ in range(1500)]
    lines += [f"a New York {number} b" for number in range(20)] + [f"c rare{number}" for number in range(3000)]
    chance.shuffle(lines)
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def state(folder: Path, name: str) -> Path:
    """A folder with one of the older checkpoints."""
    folder.mkdir()
    shutil.copy(OLDER / f"{name}.safetensors", folder / "checkpoint-000001.safetensors")
    shutil.copy(OLDER / "best.safetensors", folder / "checkpoint-best.safetensors")  # for early stopping
    return folder


@pytest.mark.parametrize("name", KINDS)
def test_an_older_checkpoint_resumes(name: str, text: Path, tmp_path: Path) -> None:
    options = dict(KINDS[name])
    if name == "phrase_file":
        Phrases.find(text).save(tmp_path / "phrases.tsv")
        options["phrases"] = tmp_path / "phrases.tsv"
    again = {"phrases": options["phrases"]} if name == "phrase_file" else {}
    resumed = w2v.resume(state(tmp_path / "states", name), text, **again)
    whole = w2v.train(text, **SETTINGS, **options)
    assert resumed.settings.as_dict() == whole.settings.as_dict()
    assert resumed.text == whole.text
    assert resumed.words == whole.words
    assert ("New_York" in resumed.words) == name.startswith("phrase")
    np.testing.assert_allclose(resumed.wv.vectors, whole.wv.vectors, rtol=1e-4, atol=1e-6)
    assert resumed.metrics["predictions"] == whole.metrics["predictions"]
    assert resumed.metrics.get("held_out_scores") == whole.metrics.get("held_out_scores")


def test_its_outputs_are_shown_and_not_written(text: Path, tmp_path: Path) -> None:
    states = state(tmp_path / "states", "command_line")
    outputs = "--save-vocab /srv/text/words --plot /srv/text/run.png"
    said = run("train", "--resume", states, code=2).stderr
    assert said.endswith(f": w2v train /srv/text/corpus.txt --resume {states} -o /srv/text/out.bin {outputs}\n")
    said = run("train", text, "--resume", states, "-o", tmp_path / "out.bin").stderr
    assert "the run began with --plot /srv/text/run.png: give it again to write that file, too\n" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.bin", "states", "text.txt"]
