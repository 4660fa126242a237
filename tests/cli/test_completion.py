"""Completion of command lines by Tab: what w2v answers to the scripts of click for bash, zsh and fish."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from w2v._cli import main as cli


def completions(line: str) -> list[str]:
    """Return the completions of the last word of a command line as "kind,value", as click's shell script asks."""
    words = line.split(" ")
    variables = {"_W2V_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
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
