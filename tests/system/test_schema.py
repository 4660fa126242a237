"""JSON in files is checked before it is used: loaders raise only W2VError, whatever a file contains."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import w2v
from tests.helpers import assert_one_line
from w2v._cli import main as cli
from w2v._errors import W2VError
from w2v._formats.native import read_native, write_native
from w2v._system.schema import Count, Integer, Number, decode, encode
from w2v._training import checkpoint, checkpoint_folder

NUMBERS = st.integers() | st.floats() | st.sampled_from([0, -1, 1 << 31, 1 << 62, 1 << 63, 1 << 64, 10**400, 1e400])
TEXTS = st.text(max_size=9) | st.sampled_from(["", "\0", "\ud800", "9" * 999])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "corpus"
    path.write_text("the quick brown fox jumps over the lazy dog\n" * 3000)
    return path


@pytest.fixture(scope="module")
def checkpoint_file(text: Path) -> Path:
    folder = text.parent / "states"
    w2v.train(text, checkpoint=folder, min_count=1, vector_size=2, negative=1, epochs=1, workers=1)
    return checkpoint_folder.files(folder)[-1]


@given(JSON)
def test_json_round_trips(value: Any) -> None:
    again = decode(Any, encode(value, "file"), "file")
    assert repr(again) == repr(value)


@pytest.mark.parametrize("value", [-1, 1 << 63, 1 << 64, 10**30, 0.5, True, "1", None, []])
def test_invalid_counts_are_refused(value: Any) -> None:
    with pytest.raises(W2VError, match=r"^file: damaged: "):
        decode(Count, json.dumps(value), "file")
    assert decode(Count, "9", "file") == 9


@pytest.mark.parametrize(
    ("kind", "low", "high"), [(Count, 0, 2**63 - 1), (Integer, -(2**63), 2**63 - 1), (Number, -(2**63), 2**63 - 1)]
)
def test_numbers_in_files_have_64_bits(kind: Any, low: int, high: int) -> None:
    for number in low, high:
        assert decode(kind, str(number), "file") == number
    for number in low - 1, high + 1:
        with pytest.raises(W2VError, match=r"^file: damaged: "):
            decode(kind, str(number), "file")


DAMAGE = [
    *((name, wrong) for name in ("checkpoint_every", "instruction_set") for wrong in (5, None, ["1s"])),
    *((name, wrong) for name in ("done", "end", "tokens_trained") for wrong in ("1", 0.5, -1, 1 << 64, None)),
    *(("seconds", wrong) for wrong in ("1", None, [], {})),
    *((name, wrong) for name in ("config", "position", "reading") for wrong in (5, None, [])),
    *(("max_types", wrong) for wrong in ("5", -1, 0, 1 << 64, None)),
    *(("files", wrong) for wrong in (5, [5], [["a"]], [["a", "b", "c"]], "abc")),
    *(("corpus", wrong) for wrong in (5, [5], "abc", ["\0"], ["\ud800"], None)),
    *(("errors", wrong) for wrong in ("other", 5)),
    *((name, wrong) for name in ("notes", "phrases", "vocab") for wrong in (5, None)),
    *(("freeze", wrong) for wrong in (5, "both", [])),
]


@pytest.mark.parametrize(("name", "wrong"), DAMAGE, ids=repr)
def test_a_checkpoint_with_a_damaged_description_is_refused(
    checkpoint_file: Path, tmp_path: Path, name: str, wrong: Any
) -> None:
    arrays, metadata = read_native(checkpoint_file)
    run = json.loads(arrays["run"].tobytes())
    parts = (run, run["config"], run["config"]["reading"], run["position"])
    next(part for part in parts if name in part)[name] = wrong
    arrays["run"] = np.frombuffer(json.dumps(run).encode(), np.uint8)
    metadata["checksum"] = checkpoint.checksum(arrays, metadata["settings"])
    write_native(tmp_path / checkpoint_file.name, arrays, metadata)
    with pytest.raises(W2VError, match=re.escape(f"{tmp_path / checkpoint_file.name}: ")) as error:
        w2v.resume(tmp_path)
    assert len(str(error.value)) < 1000
    result = CliRunner().invoke(cli.main, ["train", "--resume", str(tmp_path)], prog_name="w2v")
    assert result.exit_code in (1, 2)
    assert_one_line(result.stderr)
    assert "internal error" not in result.stderr
