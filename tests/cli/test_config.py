"""Settings files: `--config`, `--save-config`, and errors in such files."""

import json
import tomllib
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

import w2v
from tests.helpers import QUICK, run, run_json, write_with_strings
from w2v._cli.commands import training
from w2v._training.config import RunConfig, read_options
from w2v._training.views import settings_to_repeat

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)


def settings_with(file: Path, *options: object) -> dict[str, Any]:
    """Return the settings and the cache of a run with this settings file. The run ends before it reads the text."""
    settings: dict[str, Any] = {}

    def open_training(config: RunConfig, *_: object, **__: object) -> NoReturn:
        settings.update(config.settings.as_dict(), cache=config.reading.cache)
        raise w2v.W2VError("enough")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "open_training", open_training)
        run("train", "--config", file, "-o", file.with_name("m.bin"), "--force", *options, code=1)
    return settings


@given(
    corpus=st.lists(TEXT),
    output=TEXT,
    vector_size=st.integers(1, 1000),
    sample=st.floats(0, 1),
    seed=st.integers(0, (1 << 64) - 1),
    per_pair=st.booleans(),
    tree=TEXT,
    model=st.just("skipgram"),
    loss=st.just("hs"),
)
def test_saved_settings_are_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, corpus: list[str], output: str, **options: Any
) -> None:
    file = tmp_path_factory.getbasetemp() / "config.toml"
    config = RunConfig.from_options({"corpus": tuple(corpus), **options})
    config.save(file, output=output, views="auto", force=True)
    found = read_options(file)
    assert (found.pop("output"), found["views"]) == (output, "auto")
    assert RunConfig.from_options(found) == config
    assert tomllib.loads(file.read_text("utf-8"))["tree"] == options["tree"]


def test_names_that_are_not_utf8_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(w2v.W2VError, match=r"run\.toml: corpus is not UTF-8"):
        RunConfig(corpus=("caf\udce9",)).save(tmp_path / "run.toml", output="m.bin", views="words")
    assert list(tmp_path.iterdir()) == []


def test_command_line_overrides_file_and_file_overrides_defaults(sample: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        f"corpus = '{sample}'\nvector_size = 8\nepochs = 3\nloss = 'ns'\nnegative = 3\nmodel = 'cbow'\nsample = 0\n"
        f"cache = '{tmp_path}/cache.ids'\n"
    )
    settings = settings_with(file, "--epochs", 1, "--sg")
    assert (settings["vector_size"], settings["negative"], settings["sample"]) == (8, 3, 0.0)
    assert (settings["epochs"], settings["model"], settings["window"]) == (1, "skipgram", 5)
    assert settings["cache"] == f"{tmp_path}/cache.ids"
    # With hs, `negative` has no effect. Since it comes from the file, this is not an error.
    assert settings_with(file, "--epochs", 1, "--hs")["loss"] == "hs"


def test_file_may_name_output_and_several_corpus_files(sample: Path, tmp_path: Path) -> None:
    file, output = tmp_path / "run.toml", tmp_path / "from-file.vec"
    file.write_text(f"corpus = ['{sample}', '{sample}']\noutput = '{output}'\nepochs = 1\nvector_size = 4\n")
    twice = run_json("train", "--config", file)
    assert twice["output"] == str(output)
    assert output.exists()
    once = run_json("train", sample, "--config", file, "-o", tmp_path / "own.vec", "--min-count", 10)
    assert (once["output"], once["settings"]["epochs"]) == (str(tmp_path / "own.vec"), 1)
    assert once["tokens"] < twice["tokens"]


def test_run_is_repeated_from_saved_config(sample: Path, tmp_path: Path) -> None:
    first, second, file = tmp_path / "1.safetensors", tmp_path / "2.bin", tmp_path / "run.toml"
    options = ["--cbow", "--alpha", "0.03", "--max-types", 100_000, "--negative", 7]
    run("train", sample, "-o", first, *QUICK, *options, "--save-config", file)
    saved = read_options(file)
    assert (saved["corpus"], saved["output"]) == ((str(sample),), str(first))
    assert saved["max_types"] == 100_000
    assert "tree" not in saved
    run("train", "--config", file, "-o", second)
    expected = w2v.load(first)
    assert w2v.load(second).vectors.tobytes() == expected.vectors.tobytes()
    third = tmp_path / "3.bin"
    run("train", sample, "--config", first, "-o", third, "--workers", 1)  # the settings stored in a model
    assert third.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("source", ["run.toml", "m.safetensors"])
def test_defaults_are_computed_from_overridden_options(sample: Path, tmp_path: Path, source: str) -> None:
    """Defaults depend on the other settings of the new run, not on the settings of the run that wrote the file."""
    saved = ["-o", tmp_path / "m.safetensors", "--save-config", tmp_path / "run.toml"]
    run("train", sample, *saved, "--epochs", 1, "--vector-size", 4, "--min-count", 40)
    for options in ({"loss": "hs"}, {"loss": "dsoftmax"}, {"model": "skipgram"}, {"subwords": "3-4"}):
        flags = [text for name, value in options.items() for text in (f"--{name}", value)]
        expected = w2v.Settings(**{"epochs": 1, "vector_size": 4, "min_count": 40} | options)
        assert settings_with(tmp_path / source, sample, *flags) == expected.as_dict() | {"cache": None}


def test_given_settings_are_saved_even_if_they_equal_the_defaults() -> None:
    given = {"alpha": 0.075, "min_alpha": 7.5e-6, "window": 8, "vectors": "combined", "workers": 3}
    assert w2v.Settings(**given).in_effect(computed=False).items() >= given.items()
    assert "kernel" not in w2v.Settings(loss="mos").in_effect(computed=False)
    assert w2v.Settings(kernel="numba").in_effect(computed=False)["kernel"] == "numba"


def test_values_that_training_would_compute_are_not_taken_from_a_model() -> None:
    computed = {"alpha": 0.075, "min_alpha": 7.5e-6, "window": 8, "vectors": "combined"}
    assert not settings_to_repeat([w2v.Settings(**computed)]).in_effect(computed=False).keys() & computed.keys()
    other = w2v.Settings(alpha=0.5, min_alpha=0.2)
    assert settings_to_repeat([other]) == other


def test_loss_on_the_command_line_overrides_objective_in_the_file(sample: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('objective = "no_such_module:Name"\nloss = "objective"\nepochs = 1\nvector_size = 4\n')
    assert settings_with(file, sample, "--hs")["loss"] == "hs"


def test_settings_file_runs_no_code(sample: Path, here: Path) -> None:
    """An objective in a settings file is imported only if the command line names it, too."""
    (here / "theirs.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    (here / "run.toml").write_text(f'objective = "m:{"x" * 20_000}"\n')
    assert len(run("train", sample, "--config", "run.toml", code=2).stderr) < 500
    (here / "run.toml").write_text('objective = "theirs:Own"\nepochs = 1\nvector_size = 4\n')
    command = ["train", sample, "--config", "run.toml", "-o", "m.safetensors"]
    assert run(*command, "--epochs", 2, code=2).stderr == (
        "w2v: run.toml: its objective is theirs:Own, and w2v does not run code that a file names: if you trust that "
        "code, add --objective theirs:Own\n"
    )
    assert not (here / "ran").exists()
    assert "has no attribute 'Own'" in run(*command, "--objective", "theirs:Own", code=2).stderr
    assert (here / "ran").exists()


def test_pairs_of_numbers_may_be_lists(sample: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("subwords = [3, 4]\nwindow = [2, 0]\nepochs = 1\nvector_size = 4\n")
    settings = settings_with(file, sample)
    assert (settings["subwords"], settings["window"]) == ("3-4", "2,0")


@pytest.mark.parametrize(
    ("content", "expected", "code"),
    [
        ("vector_sise = 3", "run.toml: unknown setting 'vector_sise': did you mean vector_size?", 2),
        ("loss = ['ns']", "run.toml: loss ['ns']: choose from ns", 2),
        ("size = 3", "run.toml: unknown setting 'size': write vector_size", 2),
        ('vector_size = "3"', "run.toml: vector_size '3': it must be a whole number", 2),
        ("vector_size = 3.0", "run.toml: vector_size 3.0: it must be a whole number", 2),
        ("epochs = true", "run.toml: epochs True: it must be a whole number", 2),
        ("alpha = nan", "run.toml: alpha nan: it must be a number", 2),
        ("alpha = -1", "run.toml: alpha -1", 2),
        ('per_pair = "yes"', "run.toml: per_pair 'yes': it must be True or False", 2),
        ('loss = "hinge"', "run.toml: loss 'hinge': choose from ns, ", 2),
        ("tree = 3", "run.toml: tree 3: it must be a name or a path", 2),
        ('errors = "pass"', "run.toml: errors 'pass': choose from strict", 2),
        ('preset = "zoo"', "run.toml: preset 'zoo': choose from items, graph", 2),
        ("preset = ['items']", "run.toml: preset ['items']: did you mean items?", 2),
        ("corpus = 3", "run.toml: corpus 3: it must be a path or a list of paths", 2),
        ("corpus = [3]", "run.toml: corpus [3]: it must be a path", 2),
        ("output = 3", "run.toml: output 3: it must be a path", 2),
        ("[settings]\nepochs = 3", "run.toml: unknown setting 'settings'", 2),
        ("epochs 3", "run.toml is not a TOML file of settings: ", 1),
        ("epochs = \xff", "run.toml is not a TOML file of settings: ", 1),
    ],
)
def test_errors_in_settings_files_are_named(
    content: str, expected: str, code: int, sample: Path, tmp_path: Path
) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(content.encode("latin-1"))
    assert expected in run("train", sample, "--config", file, "-o", tmp_path / "m.bin", code=code).stderr
    assert list(tmp_path.iterdir()) == [file]


def test_unusable_files_are_refused_as_config(sample: Path, model: Path, tmp_path: Path) -> None:
    def error(file: Path, code: int = 1) -> str:
        return run("train", sample, "--config", file, "-o", tmp_path / "m.bin", code=code).stderr

    assert "cannot read" in error(tmp_path / "missing.toml")
    vectors = tmp_path / "vectors.safetensors"
    w2v.KeyedVectors(["a"], [[1.0]]).save(vectors)
    assert "vectors.safetensors: it has no settings" in error(vectors)
    for number, (settings, expected) in enumerate(
        (
            ("[", "its settings: damaged: "),
            ('{"loss": "objective"}', "model files run no code"),
            ('{"objective": "os:abort"}', "model files run no code"),
            ('{"loss": "ns", "objective": "os:abort"}', "model files run no code"),
            *(
                (json.dumps({name: str(tmp_path)}), f"does not know '{name}': use the version that wrote it")
                for name in ("corpus", "output", "cache")
            ),
        )
    ):
        vectors = tmp_path / f"{number}.safetensors"  # Windows does not replace a file that an error keeps mapped
        write_with_strings(vectors, settings=settings)
        assert expected in error(vectors, code=1 if "model files" not in expected else 2)
    assert (
        "--config has no effect with --resume" in run("train", "--resume", tmp_path, "--config", model, code=2).stderr
    )
    assert "CORPUS" in run("train", "--config", model, code=2).stderr
