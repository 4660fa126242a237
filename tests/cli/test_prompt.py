"""The prompt of `w2v query`: completion by Tab, and the commands help, exit and quit."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import Terminal
from w2v.cli import prompt as prompts
from w2v.cli.prompt import completer, piped_lines, typed_lines
from w2v.errors import W2VError


@pytest.fixture
def prompt(model: Path) -> Iterator[Terminal]:
    with Terminal("-m", "w2v", "query", model, "--topn", 1, TERM="dumb", INPUTRC=os.devnull) as terminal:
        terminal.read_until(b"> ")
        yield terminal


def test_tab_completes_words_and_ctrl_d_ends_the_program(prompt: Terminal) -> None:
    prompt.type(b"denmar\t\n")
    prompt.read_until(b"cos(x, denmark)")
    prompt.read_until(b"> ")
    prompt.type(b"\x04")
    assert prompt.wait() == 0


def test_help_is_shown_and_quit_ends_the_program(prompt: Terminal) -> None:
    prompt.type(b"help\n")
    prompt.read_until(b"+ and - add and subtract")
    prompt.read_until(b"> ")
    prompt.type(b"francee\n")
    prompt.read_until(b"'francee' (did you mean france")
    prompt.read_until(b"> ")
    prompt.type(b"quit\n")
    assert prompt.wait() == 0


@pytest.mark.parametrize("end", ["exit", "quit"])
def test_commands_are_not_queries(
    end: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["king", " help ", "+ help", "helpful", end, "never read"])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    assert list(typed_lines([])) == ["king", "+ help", "helpful"]
    assert "king - man + woman" in capsys.readouterr().out


def test_completer_follows_the_protocol_of_readline() -> None:
    complete = completer(["the", "th\x1b", "then", "a", "other"])
    assert [complete("th", state) for state in range(3)] == ["the", "then", None]
    assert complete("b", 0) is None
    assert complete("", 0) is None  # otherwise all words of a large vocabulary would match


def test_piped_lines_are_limited_in_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "MAX_LINE", 8)
    long_line = "long" * 100
    stream = io.StringIO("king\n1234567\n" + long_line)
    monkeypatch.setattr("sys.stdin", stream)
    lines = piped_lines()
    assert [next(lines), next(lines)] == ["king\n", "1234567\n"]
    with pytest.raises(
        W2VError, match=r"^standard input, line 3: more than 8 characters: write one query on each line$"
    ):
        next(lines)
    assert len(stream.read()) == len(long_line) - 9  # the line is not read to its end
