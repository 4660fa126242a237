"""What files say in JSON is checked before it is used: whatever it is, loaders raise nothing but W2VError."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import w2v
from tests.helpers import Stop, assert_one_line
from w2v.cli import info
from w2v.cli import main as cli
from w2v.cli.train import resume_job
from w2v.errors import W2VError
from w2v.formats.native import read_native, write_native
from w2v.schema import Count, decode, encode
from w2v.text import idstore
from w2v.text.corpus import Corpus
from w2v.text.vocabulary import Vocabulary
from w2v.training import checkpoint
from w2v.vectors.keyed import load

NUMBERS = st.integers() | st.floats() | st.sampled_from([0, -1, 1 << 31, 1 << 62, 1 << 63, 1 << 64, 10**400, 1e400])
HARMLESS = st.characters(exclude_characters="/*?[-")  # as a path, which a checkpoint names
TEXTS = st.text(HARMLESS, max_size=9) | st.sampled_from(["", "\0", "\ud800", "ns", "hs", "a:b", "1s", "9" * 999])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OFTEN = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values inside a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


def forged(sound: str, data: st.DataObject) -> str:
    """A sound JSON text of which one value is replaced or left out."""
    value = json.loads(sound)
    *path, last = (None, *data.draw(st.sampled_from(list(places(value)))))
    if last is None:
        return json.dumps(data.draw(JSON))
    part = value
    for key in path[1:]:
        part = part[key]
    if data.draw(st.booleans()):
        part[last] = data.draw(JSON)
    else:
        del part[last]
    return json.dumps(value)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "corpus"
    path.write_text("the quick brown fox jumps over the lazy dog\n" * 3000)
    return path


@pytest.fixture(scope="module")
def states(text: Path) -> Path:
    folder = text.parent / "states"
    w2v.train(text, checkpoint=folder, min_count=1, vector_size=2, negative=1, epochs=1, workers=1)
    return checkpoint.files(folder)[-1]


@pytest.fixture(scope="module")
def model(text: Path) -> Path:
    path = text.parent / "model.safetensors"
    w2v.train(text, min_count=1, vector_size=2, negative=1, epochs=1).save(path)
    return path


def only_one_line(error: W2VError) -> None:
    assert "\n" not in str(error)
    assert len(str(error)) < 1000


@OFTEN
@given(data=st.data())
def test_forged_metadata_of_a_model(model: Path, data: st.DataObject) -> None:
    arrays, metadata = read_native(model)
    name = data.draw(st.sampled_from(["settings", "metrics"]))
    path = model.with_name("forged.safetensors")
    write_native(path, arrays, metadata | {name: forged(metadata[name], data)})
    for use in (w2v.Model.load, lambda path: info.model(path, load(path))):
        try:
            use(path)
        except W2VError as error:
            only_one_line(error)


@OFTEN
@given(data=st.data())
def test_forged_description_of_a_checkpoint(states: Path, data: st.DataObject) -> None:
    def stop(_: object) -> None:
        raise Stop

    arrays, metadata = read_native(states)
    run, kept = arrays["run"].tobytes().decode(), metadata["settings"]
    if data.draw(st.booleans()):
        run = forged(run, data)
    else:
        kept = forged(kept, data)
    arrays["run"] = np.frombuffer(run.encode(), np.uint8)
    folder = states.parent / "forged"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write_native(folder / states.name, arrays, {"settings": kept, "checksum": checkpoint.checksum(arrays, kept)})
    shared: dict[str, Any] = {"save_vocab": None, "checkpoint_every": None, "force": False, "ignore_memory": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(states.parent)
        patch.setattr("w2v.cli.train.refuse_together", lambda *_: None)
        patch.setattr("w2v.cli.train.given_settings", lambda _: {})
        for use in (
            lambda: w2v.resume(folder, progress=stop),
            lambda: resume_job(folder, (), {}, output=folder / "out.bin", **shared),
        ):
            try:
                use()
            except W2VError as error:
                only_one_line(error)
            except Stop:
                pass


@OFTEN
@given(data=st.data())
def test_forged_description_of_a_cache(text: Path, data: st.DataObject) -> None:
    folder = text.parent / "cache"
    reading = idstore.ReadingOptions(cache=folder)
    shutil.rmtree(folder, ignore_errors=True)
    with idstore.read_corpus(Corpus(text), reading) as store:
        expected = store.checksum()
    (path,) = folder.iterdir()
    content = path.read_bytes()
    tail = len(content) - len(idstore.SIGNATURE) - 8
    start = tail - int.from_bytes(content[tail : tail + 8], "little")
    made = forged(content[start:tail].decode(), data).encode()
    path.write_bytes(content[:start] + made + len(made).to_bytes(8, "little") + idstore.SIGNATURE)
    with idstore.read_corpus(Corpus(text), reading) as store:
        assert store.checksum() == expected  # the file was written anew where it was damaged
        assert len(Vocabulary.from_store(store, 1)) == 8


@OFTEN
@given(data=st.data())
def test_forged_header_of_a_native_file(model: Path, data: st.DataObject) -> None:
    content = model.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    made = forged(content[8:end].decode(), data).encode()
    path = model.with_name("forged.safetensors")
    path.write_bytes(len(made).to_bytes(8, "little") + made + content[end:])
    for use in (w2v.Model.load, lambda path: info.model(path, load(path))):
        try:
            use(path)
        except W2VError as error:
            only_one_line(error)


@given(JSON)
def test_json_is_read_back(value: Any) -> None:
    again = decode(Any, encode(value, "file"), "file")  # type: ignore[arg-type]
    assert repr(again) == repr(value)


@pytest.mark.parametrize("value", [-1, 1 << 63, 1 << 64, 10**30, 0.5, True, "1", None, []])
def test_what_is_no_count(value: Any) -> None:
    with pytest.raises(W2VError, match=r"^file: damaged: "):
        decode(Count, json.dumps(value), "file")  # type: ignore[arg-type]
    assert decode(Count, "9", "file") == 9  # type: ignore[arg-type]


def test_what_json_cannot_hold_is_not_written() -> None:
    with pytest.raises(W2VError, match=r"^file: not written: "):
        encode({"a": {1j}}, "file")


DAMAGE: list[tuple[str, Any]] = [
    *((name, wrong) for name in ("every", "instruction_set", "version") for wrong in (5, None, ["1s"])),
    *((name, wrong) for name in ("position", "end", "tokens_trained") for wrong in ("1", 0.5, -1, 1 << 64, None)),
    *(("seconds", wrong) for wrong in ("1", None, [], {})),
    *(("parameters", wrong) for wrong in (5, [5], ["no such"], None)),
    *(("origin", wrong) for wrong in (5, None, [])),
    *(("max_types", wrong) for wrong in ("5", -1, 0, 1 << 64, None)),
    *(("files", wrong) for wrong in (5, [5], [["a"]], [["a", "b", "c"]], "abc")),
    *(("sources", wrong) for wrong in (5, [5], "abc", ["\0"], ["\ud800"], None)),
    *(("cache", wrong) for wrong in (5, "\0", "\ud800", [])),
    *(("errors", wrong) for wrong in ("other", 5)),
    *(("output", wrong) for wrong in (5, None, "\0", [])),
    *(("save_vocab", wrong) for wrong in (5, "\0\0", [])),
    *(("force", wrong) for wrong in ("yes", 5, [])),
]


@pytest.mark.parametrize(("name", "wrong"), DAMAGE, ids=repr)
def test_damaged_description_of_a_checkpoint(states: Path, tmp_path: Path, name: str, wrong: Any) -> None:
    arrays, metadata = read_native(states)
    run = json.loads(arrays["run"].tobytes())
    notes = {"output": str(tmp_path / "m.bin"), "save_vocab": None, "force": False}
    run["origin"]["notes"] = notes
    next(part for part in (run, run["origin"], notes) if name in part)[name] = wrong
    arrays["run"] = np.frombuffer(json.dumps(run).encode(), np.uint8)
    kept = {"settings": metadata["settings"], "checksum": checkpoint.checksum(arrays, metadata["settings"])}
    write_native(tmp_path / states.name, arrays, kept)
    of_notes = name in notes
    if not of_notes:
        with pytest.raises(W2VError) as error:
            w2v.resume(tmp_path)
        only_one_line(error.value)
    result = CliRunner().invoke(cli.main, ["train", "--resume", str(tmp_path)], prog_name="w2v")
    assert result.exit_code in (1, 2)
    assert_one_line(result.stderr)
    assert "internal error" not in result.stderr


@pytest.mark.parametrize("name", ["losses", "predictions"])
def test_damaged_arrays_of_a_checkpoint(states: Path, tmp_path: Path, name: str) -> None:
    arrays, metadata = read_native(states)
    arrays[name] = arrays[name].astype(np.float32)
    kept = {"settings": metadata["settings"], "checksum": checkpoint.checksum(arrays, metadata["settings"])}
    write_native(tmp_path / states.name, arrays, kept)
    with pytest.raises(W2VError, match="is damaged"):
        w2v.resume(tmp_path)
