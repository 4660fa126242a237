"""gensim's own tests pass with w2v.gensim in gensim's place."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_gensims_own_tests_pass() -> None:
    pytest.importorskip("gensim")
    pytest.importorskip("testfixtures")
    program = Path(__file__).parents[1] / "compat" / "run.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
