"""Completion of command lines by Tab, as the shells ask for it."""

import os
import shutil
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from w2v.cli import main as cli

BASH, FISH = shutil.which("bash"), shutil.which("fish")


def completed(line, shell="bash"):
    """What completes the last word of a command line, as kind,value: what click's script for the shell asks."""
    words = line.split(" ")
    environment = {"_W2V_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    if shell == "fish":
        environment["COMP_CWORD"] = words[-1]
    done = CliRunner().invoke(cli.main, [], env=environment, prog_name="w2v")
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("w2v ", [f"plain,{name}" for name in cli.COMMANDS]),
        ("w2v qu", ["plain,query"]),
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
        ("w2v query m.bin --top", ["plain,--topn"]),
        ("w2v convert m.bin ou", ["file,ou"]),
        ("w2v vocab a.txt -o wo", ["file,wo"]),
    ],
)
def test_bash_is_told(line, expected):
    found = completed(line)
    if expected is None:  # options: all that start with -
        assert "plain,--vector-size" in found
        assert "plain,--checkpoint" in found
    else:
        assert found == expected


def test_every_argument_and_value_of_an_option_completes():
    """But numbers, names and words, which nothing is known of."""
    context = click.Context(cli.main)
    free = set()
    for name in cli.COMMANDS:
        for parameter in cli.main.get_command(context, name).params:
            takes_value = isinstance(parameter, click.Argument) or not getattr(parameter, "is_flag", False)
            number = isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType)
            if takes_value and not number and not parameter.shell_complete(context, ""):
                free.add(f"{name} {parameter.name}")
    commands = {
        **dict.fromkeys(("epochs", "blocks", "subwords", "window"), "train tune"),
        "objective": "train tune perplexity rank convert",
        "checkpoint_every": "train",
        "time": "tune",
        "column": "train tune vocab phrases tree perplexity evaluate encode",
        "delimiter": "phrases",
        "words": "similarity query plot tree",
        "analogies": "plot",
        "weights": "combine",
        "host": "explore",
    }
    assert free == {f"{command} {name}" for name, all_of in commands.items() for command in all_of.split()}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told(shell):
    assert "file" in completed("w2v info mo", shell)[0]
    assert "query" in "".join(completed("w2v qu", shell))


def test_completion_loads_no_heavy_module():
    script = (
        "import os, sys\nfrom w2v.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: print({'numpy', 'scipy', 'rich'} & set(sys.modules))"
    )
    environment = {"_W2V_COMPLETE": "bash_complete", "COMP_WORDS": "w2v qu", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "plain,query\nset()\n"


@pytest.fixture
def environment(tmp_path):
    """One in which shells find `w2v`."""
    program = tmp_path / "w2v"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m w2v "$@"\n')
    program.chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}


@pytest.mark.skipif(BASH is None, reason="bash is not here")
def test_bash_completes(environment):
    """The function that the line in docs/command-line.md registers, called as bash calls it."""
    script = """
        eval "$(_W2V_COMPLETE=bash_source w2v)"
        complete -p w2v | grep -o '_w2v[a-z_]*'
        COMP_WORDS=(w2v query model.bin --method m) COMP_CWORD=4
        _w2v_completion w2v m --method
        echo "${COMPREPLY[@]}"
    """
    done = subprocess.run([str(BASH), "-c", script], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("_w2v_completion\nmul\n", "")


@pytest.mark.skipif(FISH is None, reason="fish is not here")
def test_fish_completes(environment):
    script = "_W2V_COMPLETE=fish_source w2v | source; complete -C 'w2v query model.bin --method m'"
    done = subprocess.run([str(FISH), "-c", script], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("mul\n", "")
