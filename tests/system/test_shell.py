"""Command lines for the system's shell, and the encoding of the standard streams."""

import os
import subprocess
import sys

import pytest

from w2v._system.shell import join_command

ARGUMENTS = ["with space", "é", "back\\slash", "-o", "a'b", "R&D", "a|b", "(x)", "two words\\", ""]


def test_shell_splits_a_joined_command_into_its_words() -> None:
    command = join_command([sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", *ARGUMENTS])
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout == f"{ARGUMENTS!a}\n", done.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_text_in_pipes_is_utf_8_unless_the_user_names_an_encoding(encoding: str) -> None:
    program = "from w2v._cli.console import _set_up_streams; _set_up_streams(); print(input())"
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONIOENCODING", "PYTHONUTF8")}
    variables |= {"PYTHONIOENCODING": encoding} if encoding != "utf-8" else {"LC_ALL": "C.UTF-8"}
    text = "Zoë naïve".encode(encoding)
    done = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, env=variables)
    assert done.stdout.rstrip() == text, done.stderr
