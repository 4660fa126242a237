"""What `import w2v` and `w2v --help` load, and the public names, which are imported when they are used."""

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import w2v
from w2v.cli import commands, main

HEAVY = {"numpy", "scipy", "rich", "numba", "importlib.metadata"}


def run(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


HELP = """
import sys
from w2v.cli.main import main
try:
    main(["--help"], prog_name="w2v")
except SystemExit as end:
    print(end.code, HEAVY & set(sys.modules))
"""


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        (f"import sys, w2v; print({HEAVY} & set(sys.modules))", "set()"),
        (HELP.replace("HEAVY", str(HEAVY)), "0 set()"),
        ("import w2v, w2v.training.train, w2v.vectors.keyed; print(dir(w2v) == w2v.__all__)", "True"),
        ("from w2v import *; print(load.__module__, Model.__module__)", "w2v.vectors.keyed w2v.training.model"),
    ],
    ids=["import", "help", "public names", "star"],
)
def test_imports(script, shown):
    """Neither import nor help loads a heavy module, and only public names are shown."""
    assert run(script).splitlines()[-1] == shown


def test_sources_that_are_not_built_give_way_to_the_installed_package(tmp_path):
    """As when Python runs in the folder in which `pip install .` ran."""
    built = Path(w2v.__file__).parent
    sources, installed, other = (tmp_path / name for name in ("sources", "installed", "other"))
    (sources / "w2v").mkdir(parents=True)
    for name in ("__init__.py", "__main__.py", "pictured.py"):
        (sources / "w2v" / name).write_text((built / name).read_text("utf-8"), "utf-8")
    for folder in installed, other:
        folder.mkdir()
        (folder / "w2v").symlink_to(built)
    (other / "setup.py").touch()

    def imported(*folders):
        program = [sys.executable, "-S", "-c", "import w2v; print(*w2v.__path__)"]  # -S: no folders but these
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
        return subprocess.run(program, cwd=sources, env=environment, capture_output=True, text=True)

    done = imported(other, installed)
    assert done.stdout == f"{installed / 'w2v'}\n", done.stderr
    assert imported(other).stderr.splitlines()[-1] == (
        f"ImportError: the sources in {sources / 'w2v'} are not built: run pip install . in the folder above"
    )


def test_names_that_type_checkers_see_are_those_that_are_imported():
    tree = ast.parse(Path(w2v.__file__).read_text("utf-8"))
    block = next(statement for statement in tree.body if isinstance(statement, ast.If))
    imports = [statement for statement in block.body if isinstance(statement, ast.ImportFrom)]
    assert {each.module: tuple(alias.name for alias in each.names) for each in imports} == w2v._MODULES
    assert sorted(name for names in w2v._MODULES.values() for name in names) == w2v.__all__


def test_no_module_takes_the_place_of_a_public_name():
    assert not {module.name for module in pkgutil.iter_modules(w2v.__path__)} & set(w2v.__all__)
    script = "import w2v.training.train, w2v.evaluation.perplexity, w2v; print(w2v.train, w2v.perplexity)"
    train, perplexity = run(script).split(" at ")[:2]
    assert train == "<function train"
    assert perplexity.endswith("<function perplexity")


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match=r"^module 'w2v' has no attribute 'trian'$"):
        _ = w2v.trian


def test_help_names_each_command_as_it_describes_itself():
    for name, (_, text) in main.COMMANDS.items():
        command = main.main.get_command(click.Context(main.main), name)
        assert command
        assert (command.name, command.get_short_help_str(200)) == (name, text)


def test_help_names_every_command():
    modules = {
        module.name: importlib.import_module(f"w2v.cli.commands.{module.name}")
        for module in pkgutil.iter_modules(commands.__path__)
    }
    found = {
        (name, module)
        for module, content in modules.items()
        for name, value in vars(content).items()
        if isinstance(value, click.Command)
    }
    assert found == {(name, module) for name, (module, _) in main.COMMANDS.items()}
