"""`w2v query` on a terminal: completion by Tab, and the words that are commands; and options that are none."""

import io
import os

import pytest

from tests.helpers import Terminal
from w2v.cli import prompt as prompts
from w2v.cli.prompt import completer, lines, piped_lines
from w2v.errors import W2VError


@pytest.fixture
def prompt(model):
    with Terminal("-m", "w2v", "query", model, "--topn", 1, TERM="dumb", INPUTRC=os.devnull) as terminal:
        terminal.read_until(b"> ")
        yield terminal


def test_tab_completes_words_and_ctrl_d_ends(prompt):
    prompt.type(b"denmar\t\n")
    prompt.read_until(b"cos(x, denmark)")
    prompt.read_until(b"> ")
    prompt.type(b"\x04")
    assert prompt.wait() == 0


def test_help_explains_and_quit_ends(prompt):
    prompt.type(b"help\n")
    prompt.read_until(b"+ and - add and subtract")
    prompt.read_until(b"> ")
    prompt.type(b"francee\n")
    prompt.read_until(b"'francee' (did you mean france")
    prompt.read_until(b"> ")
    prompt.type(b"quit\n")
    assert prompt.wait() == 0


@pytest.mark.parametrize("end", ["exit", "quit"])
def test_lines_that_are_queries(end, monkeypatch, capsys):
    typed = iter(["king", " help ", "+ help", "helpful", end, "never read"])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    assert list(lines([])) == ["king", "+ help", "helpful"]
    assert "king - man + woman" in capsys.readouterr().out


def test_completer_follows_the_protocol_of_readline():
    complete = completer(["the", "th\x1b", "then", "a", "other"])
    assert [complete("th", state) for state in range(3)] == ["the", "then", None]
    assert complete("b", 0) is None
    assert complete("", 0) is None  # not all words of a large vocabulary


def test_a_piped_line_has_a_limit(monkeypatch):
    monkeypatch.setattr(prompts, "MAX_LINE", 8)
    rest = "long" * 100
    stream = io.StringIO("king\n1234567\n" + rest)
    monkeypatch.setattr("sys.stdin", stream)
    found = piped_lines()
    assert [next(found), next(found)] == ["king\n", "1234567\n"]
    with pytest.raises(
        W2VError, match=r"^standard input, line 3: more than 8 characters: write one query on each line$"
    ):
        next(found)
    assert len(stream.read()) == len(rest) - 9  # it was not read to its end
