"""Messages of errors: one short printable line, and the command that installs a missing package."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import w2v
from w2v import _errors as errors
from w2v._errors import (
    LossNotImported,
    SettingsError,
    TextWarning,
    W2VError,
    error_message,
    import_optional,
    install_command,
    malformed_lines,
    one_line,
    optional_package,
    pluralise,
    translate_errors,
)
from w2v._vectors.unknown_words import UnknownWordError

PACKAGE = Path(errors.__file__).parent


def test_errors_name_the_packages_of_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert install_command("plot") == "pip install matplotlib textalloc"
    assert install_command("sklearn") == "pip install scikit-learn"
    with pytest.raises(W2VError, match=r"^more is needed: pip install openTSNE umap-learn$"):
        import_optional("more is needed", "maps", "w2v.nosuch")
    monkeypatch.setattr(errors, "IS_ON_PYPI", True)
    assert install_command("plot") == "pip install 'w2v[plot]'"


def test_every_extra_in_the_code_exists_and_has_packages() -> None:
    with (Path(__file__).parents[1] / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    code = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    named = {
        *re.findall(r"\binstall_command\('(\w+)'\)", code),
        *re.findall(r"\b(?:import_optional|optional_package)\(\s*\S.*?, \"(\w+)\"", code),
    }
    assert {"plot", "maps", "numba", "parquet", "tokenize", "zstd"} <= named <= {*extras}
    for extra in named:
        packages = [re.split("[>=<]", package)[0] for package in extras[extra]]
        assert install_command(extra) == f"pip install {' '.join(packages)}"


def test_command_installs_an_extra_from_uninstalled_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert install_command("plot") == "pip install '.[plot]' in the folder of w2v's sources"


def test_messages_of_errors_and_warnings_are_printable() -> None:
    kinds = [W2VError, TextWarning]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert len(kinds) > 8
    for kind in kinds:
        error = kind(["a\x1b[2J\n\u202e"], {}) if kind is UnknownWordError else kind("a\x1b[2J\n\u202e")
        assert str(error).strip("'").endswith(r"a\x1b[2J\n\u202e")


def test_message_of_an_error_is_one_short_printable_line() -> None:
    assert one_line("a\nb\x1b") == "a\\nb\\x1b"
    assert one_line("x" * 300) == "x" * 300
    assert one_line("x" * 301) == "x" * 300
    assert one_line("\n" * 300) == "\\n" * 150
    assert one_line(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (W2VError("what to do"), "what to do"),
        (MemoryError("some bytes"), "out of memory"),
        (FileNotFoundError(2, "No such file", "name"), "name: No such file"),
        (OSError(2, "No such file"), "No such file"),
        (OSError("text only"), "text only"),
        (KeyError("name"), "internal error: KeyError: 'name'"),
        (SystemError(errors.UNREPORTED), f"probably out of memory: {errors.UNREPORTED}"),
        (SystemError("no exception"), "internal error: SystemError: no exception"),
        (ImportError("Help!\nx.so: failed to map segment"), "probably out of memory: x.so: failed to map segment"),
    ],
)
def test_errors_are_described_without_a_traceback(error: Exception, message: str) -> None:
    assert error_message(error) == message


def test_errors_caused_by_missing_memory_say_so() -> None:
    error = OSError("Could not find/load shared object file")
    error.__context__ = OSError("x.so: failed to map segment")
    assert error_message(error) == "probably out of memory: x.so: failed to map segment"


def test_translated_errors_of_w2v_keep_their_class_and_whole_message() -> None:
    long = "x" * 400
    with pytest.raises(LossNotImported, match=f"^file: {long}$"), translate_errors("file", W2VError):
        raise LossNotImported(long)
    with (
        pytest.raises(LossNotImported, match=r"^file: x{300}$"),
        translate_errors("file", ValueError, to=LossNotImported),
    ):
        raise ValueError(long)


def test_numbers_of_things_are_singular_or_plural() -> None:
    assert [pluralise(number, "word") for number in (0, 1, 2, 1000)] == ["0 words", "1 word", "2 words", "1,000 words"]
    assert malformed_lines(1, 5) == "1 malformed line: line 5"
    assert malformed_lines(1000, 5) == "1,000 malformed lines: the first is line 5"


def test_warning_about_a_text_points_at_the_line_that_called_w2v() -> None:
    with pytest.warns(TextWarning) as caught:
        w2v.train([["a", "b"] * 200], min_count=1, epochs=1, vector_size=2, sample=0)
    assert {warning.filename for warning in caught} == {__file__}


def test_missing_memory_is_not_reported_as_a_missing_package() -> None:
    with pytest.raises(ImportError, match="failed to map"), optional_package("more is needed", "maps"):
        raise ImportError("x.so: failed to map segment from shared object")


def test_import_of_optional_modules_returns_the_first() -> None:
    assert import_optional("more is needed", "maps", "json", "csv").__name__ == "json"
    with pytest.raises(SettingsError, match="more is needed"):
        import_optional("more is needed", "maps", "json", "w2v.nosuch", kind=SettingsError)
