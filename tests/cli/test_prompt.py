"""`w2v query` on a terminal: completion by Tab, and the words that are commands; and options that are none."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.helpers import Terminal
from w2v.cli import main as cli
from w2v.cli.prompt import completer, lines


@pytest.fixture
def prompt(model: Path) -> Iterator[Terminal]:
    with Terminal("-m", "w2v", "query", model, "--topn", 1, TERM="dumb", INPUTRC=os.devnull) as terminal:
        terminal.read_until(b"> ")
        yield terminal


def test_tab_completes_words(prompt: Terminal) -> None:
    prompt.type(b"denmar\t\n")
    prompt.read_until(b"cos(x, denmark)")


def test_help_explains_and_quit_ends(prompt: Terminal) -> None:
    prompt.type(b"help\n")
    prompt.read_until(b"+ and - add and subtract")
    prompt.read_until(b"> ")
    prompt.type(b"francee\n")
    prompt.read_until(b"'francee' (did you mean france")
    prompt.read_until(b"> ")
    prompt.type(b"quit\n")
    assert prompt.wait() == 0


@pytest.mark.parametrize("end", ["exit", "quit"])
def test_lines_that_are_queries(end: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    typed = iter(["king", " help ", "+ help", "helpful", end, "never read"])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    assert list(lines([])) == ["king", "+ help", "helpful"]
    assert "king - man + woman" in capsys.readouterr().out


def test_completer_follows_the_protocol_of_readline() -> None:
    complete = completer(["the", "then", "a", "other"])
    assert [complete("th", state) for state in range(3)] == ["the", "then", None]
    assert complete("b", 0) is None
    assert complete("", 0) is None  # not all words of a large vocabulary


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["king", "--unknown"], "No such option '--unknown'"),
        (["king", "--tops", "3"], "No such option '--tops'"),
        (["king", "-man"], "No such option '-m'; see"),
        (["-x"], "No such option '-x'; see"),
    ],
)
def test_options_that_are_not_there_are_not_words(model: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli.main, ["query", str(model), *arguments], prog_name="w2v")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"w2v: {message}")
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [["king", "-", "man", "+", "woman"], ["--", "king", "-", "man", "+", "woman"]])
def test_analogies_need_no_quotes(model: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(cli.main, ["query", str(model), *arguments], prog_name="w2v")
    assert result.stdout.startswith("3CosAdd: cos(x, king + woman - man)")
