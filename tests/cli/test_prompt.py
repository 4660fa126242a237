"""`w2v query` on a terminal: completion by Tab, and the words that are commands; and options that are none."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from w2v.cli import main as cli
from w2v.cli.prompt import completer, lines


class Prompt:
    """`w2v query` on a pseudo-terminal."""

    def __init__(self, model: Path) -> None:
        self._leader, follower = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "w2v", "query", str(model), "--topn", "1"],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=os.environ | {"TERM": "dumb", "INPUTRC": os.devnull},
        )
        os.close(follower)
        self.read_until("> ")

    def type(self, text: str) -> None:
        os.write(self._leader, text.encode())

    def read_until(self, expected: str) -> str:
        shown = ""
        while expected not in shown:
            assert select.select([self._leader], [], [], 60)[0], shown
            shown += os.read(self._leader, 1).decode()
        return shown

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._leader)


@pytest.fixture
def prompt(model: Path) -> Iterator[Prompt]:
    prompt = Prompt(model)
    try:
        yield prompt
    finally:
        prompt.close()


def test_tab_completes_words(prompt: Prompt) -> None:
    prompt.type("denmar\t\n")
    prompt.read_until("cos(x, denmark)")


def test_help_explains_and_quit_ends(prompt: Prompt) -> None:
    prompt.type("help\n")
    prompt.read_until("+ and - add and subtract")
    prompt.read_until("> ")
    prompt.type("francee\n")
    prompt.read_until("'francee' (did you mean france")
    prompt.read_until("> ")
    prompt.type("quit\n")
    assert prompt.process.wait(timeout=60) == 0


def test_lines_that_are_queries(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    typed = iter(["king", " help ", "+ help", "helpful", "quit", "never read"])
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
        (["king", "-man"], "No such option '-m'"),
        (["-x"], "No such option '-x'"),
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
