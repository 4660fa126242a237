"""The prompt of `w2v query`: completion by Tab, and the commands help, exit and quit."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

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


def test_end_of_input_ends_the_line_of_the_prompt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("builtins.input", end_of_input)
    assert list(typed_lines([])) == []
    welcome, *rest = capsys.readouterr().out.split("\n")
    assert welcome.startswith("Type a word, or king - man + woman.")
    assert rest == ["", ""]


def end_of_input(_: str) -> NoReturn:
    raise EOFError


@pytest.mark.parametrize(
    ("documentation", "binding"),
    [("Importing this module enables readline.", "tab: complete"), ("libedit readline", "bind ^I rl_complete"),
     (None, "tab: complete")],
)  # fmt: skip
def test_tab_completes_with_readline_and_with_libedit(
    documentation: str | None, binding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    readline: Any = ModuleType("readline", documentation)
    bound: list[str] = []
    delimiters: list[str] = []
    completers: list[Any] = []
    readline.parse_and_bind, readline.set_completer_delims = bound.append, delimiters.append
    readline.set_completer = completers.append
    monkeypatch.setitem(sys.modules, "readline", readline)
    monkeypatch.setattr("builtins.input", end_of_input)
    list(typed_lines(["king-size", "queen"]))
    assert bound == [binding]
    assert delimiters == [" \t\n"]  # a hyphen is part of a word
    assert [complete("king", 0) for complete in completers] == ["king-size"]


def test_prompt_works_without_readline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "readline", None)
    typed = iter(["king", "quit"])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    assert list(typed_lines([])) == ["king"]


def test_completer_follows_the_protocol_of_readline() -> None:
    complete = completer(["the", "th\x1b", "then", "a", "other"])
    assert [complete("th", state) for state in range(3)] == ["the", "then", None]
    assert complete("b", 0) is None
    assert complete("", 0) is None  # otherwise all words of a large vocabulary would match


def test_a_line_has_at_most_65536_characters_with_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{'x' * 65_535}\n{'y' * 65_536}\n"))
    lines = piped_lines()
    assert next(lines) == f"{'x' * 65_535}\n"
    with pytest.raises(W2VError, match=r"^standard input, line 2: more than 65,536 characters"):
        next(lines)


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
