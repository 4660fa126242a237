"""The prompt of `w2v query`: completion by Tab, and the commands help, exit and quit."""

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

from tests.helpers import Terminal
from w2v._cli.prompt import completer, typed_lines


def test_tab_completes_words_help_is_shown_and_ctrl_d_ends_the_program(model: Path) -> None:
    with Terminal("-m", "w2v", "query", model, "--topn", 1, TERM="dumb", INPUTRC=os.devnull) as prompt:
        for typed, answer in (
            (b"denmar\t\n", b"cos(x, denmark)"),
            (b"help\n", b"+ and - add and subtract"),
            (b"francee\n", b"'francee' (did you mean france"),
        ):
            prompt.read_until(b"> ")
            prompt.type(typed)
            prompt.read_until(answer)
        prompt.read_until(b"> ")
        prompt.type(b"\x04")
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
