"""Completion of command lines by Tab in bash, zsh and fish."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from w2v.cli import main as cli

BASH, FISH = shutil.which("bash"), shutil.which("fish")


def completions(line: str, shell: str = "bash") -> list[str]:
    """Return the completions of the last word of a command line as "kind,value", as click's shell script asks."""
    words = line.split(" ")
    variables = {"_W2V_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    if shell == "fish":
        variables["COMP_CWORD"] = words[-1]
    result = CliRunner().invoke(cli.main, [], env=variables, prog_name="w2v")
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("w2v ", [f"plain,{name}" for name in cli.COMMANDS]),
        ("w2v que", ["plain,query"]),
        ("w2v train co", ["file,co"]),
        ("w2v train a.txt -", None),
        ("w2v train --loss s", ["plain,sampled", "plain,softmax"]),
        ("w2v train --model ", ["plain,skipgram", "plain,cbow"]),
        ("w2v train --tree b", ["file,b", "plain,balanced"]),
        ("w2v train --resume st", ["file,st"]),
        ("w2v train --errors i", ["plain,ignore"]),
        ("w2v analogy mo", ["file,mo"]),
        ("w2v analogy m.bin --method ", ["plain,add", "plain,mul"]),
        ("w2v perplexity m.safetensors a.txt b", ["file,b"]),
        ("w2v query m.bin --to", ["plain,--topn"]),
        ("w2v convert m.bin ou", ["file,ou"]),
        ("w2v vocab a.txt -o wo", ["file,wo"]),
    ],
)
def test_commands_options_values_and_files_are_completed(line: str, expected: list[str] | None) -> None:
    found = completions(line)
    if expected is None:  # options: all that start with -
        assert "plain,--vector-size" in found
        assert "plain,--checkpoint" in found
    else:
        assert found == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_zsh_and_fish_get_completions_in_their_own_format(shell: str) -> None:
    assert "file" in completions("w2v info mo", shell)[0]
    assert "query" in "".join(completions("w2v qu", shell))


def test_completion_imports_no_slow_module() -> None:
    script = (
        "import os, sys\nfrom w2v.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: print({'numpy', 'scipy', 'rich'} & set(sys.modules))"
    )
    variables = {"_W2V_COMPLETE": "bash_complete", "COMP_WORDS": "w2v que", "COMP_CWORD": "1"}
    process = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | variables, capture_output=True, text=True, check=True
    )
    assert process.stdout == "plain,query\nset()\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return environment variables that let shells find `w2v`."""
    program = tmp_path / "w2v"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m w2v "$@"\n')
    program.chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_completes_a_word(environment: dict[str, str]) -> None:
    """Bash calls the function that the line in docs/command-line.md registers."""
    script = """
        eval "$(_W2V_COMPLETE=bash_source w2v)"
        complete -p w2v | grep -o '_w2v[a-z_]*'
        COMP_WORDS=(w2v query model.bin --method m) COMP_CWORD=4
        _w2v_completion w2v m --method
        echo "${COMPREPLY[@]}"
    """
    process = subprocess.run([str(BASH), "-c", script], env=environment, capture_output=True, text=True)
    assert (process.stdout, process.stderr) == ("_w2v_completion\nmul\n", "")


@pytest.mark.skipif(FISH is None, reason="fish is not installed")
def test_fish_completes_a_word(environment: dict[str, str]) -> None:
    script = "_W2V_COMPLETE=fish_source w2v | source; complete -C 'w2v query model.bin --method m'"
    process = subprocess.run([str(FISH), "-c", script], env=environment, capture_output=True, text=True)
    assert (process.stdout, process.stderr) == ("mul\n", "")
