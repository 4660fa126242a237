"""The full softmax."""

from pathlib import Path

import w2v
from tests.helpers import QUICK, run


def test_full_softmax_of_many_words_is_to_be_asked_for(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a b\n" + "".join(f"word{number}\n" for number in range(29_999)), "utf-8")
    command = ["train", text, "-o", tmp_path / "m.bin", "--loss", "softmax", "--min-count", 1, *QUICK]
    error = run(*command, code=2).stderr
    assert "loss softmax: each prediction computes the scores of all 30,001 words" in error
    assert "large_softmax" in error
    run(*command, "--large-softmax")
    assert len(w2v.load(tmp_path / "m.bin")) == 30_001
