"""Checkpoints of w2v 0.2.0 that have no RunConfig can still be resumed."""

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import run
from w2v.text.phrases import Phrases

FOLDER = Path(__file__).with_name("checkpoints")
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
    """Return the text of the runs that wrote these checkpoints."""
    monkeypatch.setenv("W2V_SIMD", "baseline")  # the runs used the instruction set that every processor has
    generator = random.Random(1)
    lines = [" ".join(generator.choices(["a", "b", "c", "d", "e", "f"], k=8)) for _ in range(1500)]
    lines += [f"a New York {number} b" for number in range(20)] + [f"c rare{number}" for number in range(3000)]
    generator.shuffle(lines)
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines) + "\n", newline="\n")  # the checkpoints know the size of their text
    return path


def create_folder(folder: Path, name: str) -> Path:
    """Create a folder with one of the older checkpoints, and return it."""
    folder.mkdir()
    shutil.copy(FOLDER / f"{name}.safetensors", folder / "checkpoint-000001.safetensors")
    shutil.copy(FOLDER / "best.safetensors", folder / "checkpoint-best.safetensors")  # for early stopping
    return folder


@pytest.mark.parametrize("name", KINDS)
def test_older_checkpoint_can_be_resumed(name: str, text: Path, tmp_path: Path) -> None:
    options = dict(KINDS[name])
    if name == "phrase_file":
        Phrases.find(text).save(tmp_path / "phrases.tsv")
        options["phrases"] = tmp_path / "phrases.tsv"
    files_again = {"phrases": options["phrases"]} if name == "phrase_file" else {}
    resumed = w2v.resume(create_folder(tmp_path / "states", name), text, **files_again)
    uninterrupted = w2v.train(text, **SETTINGS, **options)
    assert resumed.settings.as_dict() == uninterrupted.settings.as_dict()
    assert resumed.text == uninterrupted.text
    assert resumed.words == uninterrupted.words
    assert ("New_York" in resumed.words) == name.startswith("phrase")
    np.testing.assert_allclose(resumed.wv.vectors, uninterrupted.wv.vectors, rtol=1e-4, atol=1e-6)
    assert resumed.metrics["predictions"] == uninterrupted.metrics["predictions"]
    assert resumed.metrics.get("held_out_scores") == uninterrupted.metrics.get("held_out_scores")


def test_outputs_in_an_older_checkpoint_are_shown_but_not_written(text: Path, tmp_path: Path) -> None:
    states = create_folder(tmp_path / "states", "command_line")
    outputs = "--save-vocab /srv/text/words --plot /srv/text/run.png"
    stderr = run("train", "--resume", states, code=2).stderr
    assert stderr.endswith(f": w2v train /srv/text/corpus.txt --resume {states} -o /srv/text/out.bin {outputs}\n")
    stderr = run("train", text, "--resume", states, "-o", tmp_path / "out.bin").stderr
    assert "the run began with --plot /srv/text/run.png: give it again to write that file, too\n" in stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.bin", "states", "text.txt"]
