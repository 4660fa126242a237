"""Output files of commands: checks before the work, atomic writes, and the fallback when a write fails."""

import gc
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest

import w2v
from tests.helpers import PROGRAM, QUICK, assert_mode, command_of, full_disk, run
from w2v._cli import main, outputs
from w2v._cli.commands import evaluation, training
from w2v._text.corpus import Corpus

PACKAGE = Path(w2v.__file__).parent
# A command line for each option or argument that names an output file.
OUTPUTS = {
    ("train", "output"): ["train", "{corpus}", *QUICK, "-o", "{out}.bin"],
    ("train", "save_vocab"): ["train", "{corpus}", *QUICK, "-o", "{other}.bin", "--save-vocab", "{out}"],
    ("train", "save_config"): ["train", "{corpus}", *QUICK, "-o", "{other}.bin", "--save-config", "{out}"],
    ("train", "contexts"): ["train", "--pairs", "{pairs}", *QUICK, "-o", "{other}.bin", "--contexts", "{out}.bin"],
    ("train", "save_documents"): [
        *("train", "{corpus}", *QUICK, "--documents", "dbow", "-o", "{other}.safetensors", "--save-documents"),
        "{out}.safetensors",
    ],
    ("train", "plot"): ["train", "{corpus}", *QUICK, "-o", "{other}.bin", "--plot", "{out}.svg"],
    ("classify", "output"): ["classify", "{labelled}", "--workers", "1", "-o", "{out}.safetensors"],
    ("walks", "output"): ["walks", "{corpus}", "--format", "adjlist", "--walks", "1", "-o", "{out}"],
    ("walks", "hold_out"): [
        *("walks", "{corpus}", "--format", "adjlist", "--walks", "1", "-o", "{other}", "--share", "0.01"),
        *("--hold-out", "{out}"),
    ],
    ("plot", "output"): ["plot", "{model}", "--topn", "9", "-o", "{out}.svg"],
    ("rank", "output"): ["rank", "{model}", "--contexts", "9", "--targets", "9", "-o", "{out}.svg"],
    ("explore", "output"): ["explore", "{model}", "--restrict-vocab", "9", "-o", "{out}.html"],
    ("convert", "output"): ["convert", "{model}", "{out}.txt"],
    ("combine", "output"): ["combine", "{model}", "{model}", "-o", "{out}.bin"],
    ("encode", "output"): ["encode", "{model}", "{corpus}", "-o", "{out}.npy"],
    ("recommend", "output"): ["recommend", "{model}", "{corpus}", "-o", "{out}.jsonl"],
    ("vocab", "output"): ["vocab", "{corpus}", "-o", "{out}"],
    ("phrases", "output"): ["phrases", "{corpus}", "-o", "{out}"],
    ("phrases", "save_phrases"): ["phrases", "{corpus}", "--save-phrases", "{out}"],
}
FOLDERS = {
    ("train", "checkpoint"),
    ("classify", "checkpoint"),
    ("align", "output"),
    ("slices", "checkpoint"),
    ("slices", "output"),
}
READS = (
    *("train", "classify", "tune", "slices", "vocab", "phrases", "tree", "perplexity", "evaluate"),
    *("compare-losses", "compare-periods"),
)
FOLDERS |= {(command, "cache") for command in READS}
# in tests/training/test_tune.py and test_quantize.py
TESTED_ELSEWHERE = {("tune", "output"), ("quantize", "output")}
INPUTS = {
    "corpus", "texts", "model", "model2", "models", "first", "second", "init", "continue_from", "resume", "config",
    "tree_vectors", "questions", "pairs", "held_out", "pairs_or_words", "words", "words_file", "vocabulary",
    "read_phrases", "phrases", "tag_words", "graphs", "retrain", "dictionary", "exclude", "sessions", "labelled",
    "test", "edges", "trained_on",
}  # fmt: skip


def test_all_paths_are_listed_as_inputs_or_outputs() -> None:
    """Otherwise the tests below would miss a new output."""
    context = click.Context(main.main)
    found = {
        (name, str(parameter.name))
        for name in main.COMMANDS
        for parameter in command_of(context, name).params
        if isinstance(parameter.type, click.Path)
    }
    assert {entry for entry in found if entry[1] not in INPUTS} <= {*OUTPUTS, *FOLDERS, *TESTED_ELSEWHERE}
    assert {*OUTPUTS} <= found


def test_files_are_written_only_by_atomic_write() -> None:
    writing = re.compile(r"""open\(["'](?!rb?["'])|\.open\("[wxa]|write_(text|bytes)\(|savefig\(path|mkstemp""")
    for path in PACKAGE.rglob("*.py"):
        # gensim has an argument append=, which adds to a file.
        if path.relative_to(PACKAGE).parts[0] not in {"data", "gensim"}:
            assert not writing.search(path.read_text("utf-8")), path


def command_for(output: tuple[str, str], sample: Path, model: Path, out: Path) -> list[str]:
    """Return the command line of OUTPUTS with these paths; `out` lacks its extension."""
    labelled = sample.with_name("labelled.txt")
    labelled.write_text("__label__a king queen\n__label__b bread soup\n" * 9)
    pairs = sample.with_name("pairs.txt")
    pairs.write_text("".join(f"king {number}\n" for number in range(9)))
    names = {"corpus": sample, "model": model, "labelled": labelled, "out": out, "other": out.with_name("other")}
    return [part.format(**names, pairs=pairs) for part in OUTPUTS[output]]


def output_path(command: list[str], out: Path) -> Path:
    return Path(next(part for part in command if part.startswith(str(out))))


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a command starts its work."""

    def fail(*_: object, **__: object) -> NoReturn:
        pytest.fail("the work has started")

    monkeypatch.setattr(training, "open_training", fail)
    monkeypatch.setattr(Corpus, "blocks", fail)
    monkeypatch.setattr(evaluation, "effective_rank", fail)
    monkeypatch.setattr("w2v._formats.registry.read", fail)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("output", OUTPUTS, ids="-".join)
def test_outputs_with_too_long_names_are_refused_before_the_work(
    sample: Path, model: Path, tmp_path: Path, output: tuple[str, str]
) -> None:
    command = command_for(output, sample, model, tmp_path / ("大" * 100))
    assert "cannot write" in (error := run(*command, code=1).stderr)
    assert "File name too long" in error


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("output", OUTPUTS, ids="-".join)
def test_outputs_that_cannot_be_written_are_refused_before_the_work(
    sample: Path, model: Path, tmp_path: Path, output: tuple[str, str]
) -> None:
    command = command_for(output, sample, model, tmp_path / "nowhere" / "out")
    assert "does not exist" in run(*command, code=1).stderr
    command = command_for(output, sample, model, tmp_path / "out")
    output_path(command, tmp_path / "out").write_bytes(b"old")
    error = run(*command, code=1).stderr
    where = {"output": "as OUT" if output[0] == "convert" else "with -o"}
    option = where.get(output[1], f"with --{output[1].replace('_', '-')}")
    assert f"exists: name another file {option}, or add --force" in error
    assert output_path(command, tmp_path / "out").read_bytes() == b"old"


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("convert {model} {out}.npy", "as OUT"),
        ("combine {model} {model} -o {out}.npy", "with -o"),
        ("train {corpus} -o {out}.npy", "with -o"),
        ("tune {corpus} -o {out}.npy", "with -o"),
    ],
)
def test_old_companion_file_is_refused_before_the_work(
    command: str, where: str, sample: Path, model: Path, tmp_path: Path
) -> None:
    words = tmp_path / "out.words.txt"
    words.write_text("old\n")
    arguments = command.format(corpus=sample, model=model, out=tmp_path / "out").split()
    message = f"w2v: {words} exists: name another file {where}, or add --force to replace it\n"
    assert run(*arguments, code=1).stderr == message
    assert words.read_text() == "old\n"


@pytest.mark.usefixtures("no_work")
def test_extensions_of_pictures_and_pages_are_checked_before_the_work(model: Path, tmp_path: Path) -> None:
    for command in (["rank", model, "-o"], ["plot", model, "-o"], ["train", model, "--plot"]):
        error = run(*command, tmp_path / "picture.bin", code=2).stderr
        assert "unknown extension of a picture: use .png, .svg or .pdf" in error
    error = run("explore", model, "-o", tmp_path / "page.bin", code=2).stderr
    assert "unknown extension of a page: use .html" in error


@pytest.mark.parametrize("output", OUTPUTS, ids="-".join)
def test_old_file_is_kept_when_writing_fails(
    sample: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: tuple[str, str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    command = command_for(output, sample, model, tmp_path / "out")
    old = output_path(command, tmp_path / "out")
    old.write_bytes(b"old")
    old.chmod(0o600)
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full_disk)
        error = run(*command, "--force", code=1).stderr
    if sys.platform == "win32":
        gc.collect()  # it removes the temporary file of a failed run when nothing maps it
    assert f"cannot write {old}: No space left on device" in error
    assert old.read_bytes() == b"old"
    assert [path for path in tmp_path.iterdir() if path.is_file()] == [old]  # Matplotlib makes folders
    run(*command, "--force")
    assert len(old.read_bytes()) > 100
    assert_mode(old, 0o600)


def test_vocabulary_is_saved_even_if_the_model_must_be_saved_elsewhere(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(outputs, "check", lambda *_: None)  # as if the folder vanished after the check
    paths = ["-o", tmp_path / "gone" / "m.bin", "--save-vocab", tmp_path / "words.txt"]
    (tmp_path / "usual").touch()
    error = run("train", sample, *paths, *QUICK, code=1).stderr
    (folder,) = (tmp_path / "tmp").iterdir()
    saved = folder / "m.bin"
    assert error.endswith(f"saved as {saved} instead\n")
    assert_mode(folder, 0o700)
    assert (tmp_path / "words.txt").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert w2v.Vocabulary.load(tmp_path / "words.txt").words == w2v.load(saved).index_to_key
    paths = ["-o", tmp_path / "gone" / "m.bin", "--save-vocab", tmp_path / "gone" / "words.txt"]
    error = run("train", sample, *paths, *QUICK, code=1).stderr
    assert error.count("instead") == 2
    assert len(list((tmp_path / "tmp").iterdir())) == 3


def test_signal_while_a_pipe_waits_for_its_reader_loses_nothing(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system_open, pipe = os.open, tmp_path / "pipe.bin"
    os.mkfifo(pipe)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))

    def wait(path: Path | str, *rest: Any, **options: Any) -> int:
        if Path(path) == pipe:
            signal.raise_signal(signal.SIGTERM)
        return system_open(path, *rest, **options)

    monkeypatch.setattr(os, "open", wait)
    command = ["train", sample, "-o", pipe, "--save-vocab", tmp_path / "words.txt", *QUICK]
    error = run(*command, code=128 + signal.SIGTERM).stderr
    (model,), (words,) = ((tmp_path / "tmp").glob(f"*/{name}") for name in ("pipe.bin", "words.txt"))
    assert error.startswith(f"w2v: stopped by SIGTERM; {pipe} is not written; saved as {model} instead; ")
    assert w2v.Vocabulary.load(words).words == w2v.load(model).index_to_key


def test_standard_output_is_refused_as_output_file(sample: Path, tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        for name, stdout in (("/dev/stdout", subprocess.PIPE), (file.name, file)):
            command = [*PROGRAM, "vocab", sample, "--force", "-o", name]
            process = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE)
            assert b": outputs cannot be written to standard output: name a file" in process.stderr
            assert process.returncode == 2


def test_error_names_all_files_if_no_folder_can_hold_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> NoReturn:
        raise RuntimeError("no home")

    def refuse(path: Path, force: bool) -> NoReturn:
        raise w2v.W2VError(f"cannot write {path}")

    monkeypatch.setattr(Path, "home", missing)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(w2v.W2VError, match=r"^cannot write m.bin; cannot write words$"):
        outputs.save([(Path("m.bin"), refuse), (Path("words"), refuse)], False)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with models that consist of several files."""
    folder = tmp_path_factory.mktemp("models")
    vectors = w2v.KeyedVectors(["a", "b", "c"], [[1, 2], [3, 4], [5, 6.5]])
    for name in ("a.npy", "a.tsv", "a.model2vec", "a.vec"):
        vectors.save(folder / name)
    (folder / "a.vec").rename(folder / "w.words.txt")
    return folder


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("convert a.npy a.words.txt", "a.words.txt belongs to a.npy, which is read"),
        ("convert a.npy ./../{folder}/a.words.txt", "a.words.txt belongs to a.npy, which is read"),
        ("convert a.tsv a.metadata.tsv", "a.metadata.tsv belongs to a.tsv, which is read"),
        ("convert a.model2vec a.model2vec/model.safetensors", "belongs to a.model2vec, which is read"),
        ("convert w.words.txt w.npy", "w.words.txt is named twice"),
        ("convert a.npy b.vec --words b.vec", "b.vec is named twice"),
        ("train {corpus} --init a.npy -o a.words.txt", "a.words.txt belongs to a.npy, which is read"),
        ("train {corpus} --init a.npy -o b.bin --save-vocab a.words.txt", "a.words.txt belongs to a.npy"),
        ("train {corpus} --init w.words.txt -o w.npy", "w.words.txt is named twice"),
        ("train {corpus} --hs --tree clustered --tree-vectors a.npy -o a.words.txt", "a.words.txt belongs to a.npy"),
        ("encode a.tsv {corpus} -o a.metadata.tsv", "a.metadata.tsv belongs to a.tsv, which is read"),
        ("encode w.words.txt {corpus} -o a.npy", "would be read as the vectors of the words in a.words.txt"),
        ("encode w.words.txt {corpus} -o a.tsv", "would be read as the vectors of the words in a.metadata.tsv"),
        ("combine w.words.txt w.words.txt -o w.npy", "w.words.txt is named twice"),
        ("explore a.npy -o a.words.txt", "a.words.txt belongs to a.npy, which is read"),
        ("plot a.npy -o a.words.txt", "a.words.txt belongs to a.npy, which is read"),
        ("phrases {corpus} --connectors b.vec -o b.vec", "b.vec is named twice"),
    ],
)
def test_output_cannot_replace_a_file_of_a_model_that_is_read(
    sample: Path, models: Path, monkeypatch: pytest.MonkeyPatch, command: str, message: str
) -> None:
    monkeypatch.chdir(models)
    Path("b.vec").write_text("a\n")
    arguments = command.format(corpus=sample, folder=models.name).split()
    before = {path: path.read_bytes() for path in models.rglob("*") if path.is_file()}
    result = run(*arguments, "--force", code=1 if "would be" in message else 2)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in models.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["a.npy", "a.tsv"])
def test_model_of_several_files_can_replace_itself(models: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(models)
    run("convert", name, name, "--force", "--max-vocab", 2)
    assert w2v.load(name).index_to_key == ["a", "b"]


@pytest.mark.parametrize(
    "command",
    [
        "vocab text -o text",
        "phrases text -o text",
        "phrases text -o new --save-phrases text",
        "phrases text -o new --save-phrases new",
        "phrases text -o list --read-phrases list",
        "phrases text -o list --connectors list",
        "phrases text --save-phrases list --connectors list",
        "encode list text.npy -o text.npy",
        "encode list.npy text -o list.npy",
        "combine text.bin list.bin -o list.bin",
        "rank text.svg -o text.svg",
        "plot text.svg -o text.svg",
        "plot text --words list.svg -o list.svg",
        "plot text --analogies --questions list.svg -o list.svg",
        "explore text.html -o text.html",
        "explore text list.html -o list.html",
        "train text.bin -o text.bin",
        "train text -o list.bin --read-vocab list.bin",
        "train text -o list.bin --phrases list.bin",
        "train text -o new.bin --save-vocab text",
        "train text -o new.bin --save-config text",
        "train text -o new.bin --plot text.svg --save-vocab text.svg",
        "train text -o new.bin --save-config new.bin",
        "train text -o new.bin --config run.toml --save-config run.toml",
        "train text --init old.bin -o old.bin",
        "train text --init old.bin -o new.bin --save-vocab old.bin",
        "train text --continue old.safetensors -o old.safetensors",
        "train text --hs --tree clustered --tree-vectors old.bin -o old.bin",
        "tune text.bin -o text.bin",
        "tune text -o list.bin --phrases list.bin",
        "tune text -o list.bin --questions list.bin",
        "tune text -o list.bin --pairs list.bin",
        "tune run.toml -o run.bin",
        "tune run.tune.json -o run.bin",
    ],
)
def test_output_cannot_be_an_input_or_another_output(command: str, here: Path) -> None:
    w2v.train([["a", "b", "c"]] * 40, vector_size=3, epochs=1, sample=0, workers=1).save(here / "old.safetensors")
    w2v.load("old.safetensors").save("old.bin")
    for stem in "text", "list":
        for extension in "", ".bin", ".npy", ".svg", ".html":
            Path(stem + extension).write_text("b\n")
    for name in "run.toml", "run.tune.json":
        Path(name).write_text("")
    before = {path: path.read_bytes() for path in here.iterdir()}
    assert " is named twice: choose another file for the output" in run(*command.split(), "--force", code=2).stderr
    assert {path: path.read_bytes() for path in here.iterdir()} == before
