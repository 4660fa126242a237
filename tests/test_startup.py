"""The startup: which modules `import w2v` and `w2v --help` load, and public names that are imported on first use."""

import ast
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import w2v
from w2v import _kernels
from w2v._cli import commands, main

HEAVY = {"numpy", "scipy", "rich", "numba", "importlib.metadata"}


def run(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


HELP = """
import sys
from w2v._cli.main import main
try:
    main(["--help"], prog_name="w2v")
except SystemExit as end:
    print(end.code, HEAVY & set(sys.modules))
"""


IMPORTS = """
import sys, w2v
print(HEAVY & set(sys.modules))
print(w2v.losses.check_gradient.__module__)
from w2v import *
print(load.__module__, Model.__module__)
import w2v._training.train, w2v._vectors.keyed, w2v._training.perplexity
print(dir(w2v) == w2v.__all__)
print(w2v.train, w2v.perplexity)
"""


def test_imports_are_lazy_and_give_the_public_names() -> None:
    """Neither import nor help loads a heavy module. No module shadows a public name, and dir() shows only these."""
    assert run(HELP.replace("HEAVY", str(HEAVY))).splitlines()[-1] == "0 set()"
    heavy, checks, kinds, listed, functions = run(IMPORTS.replace("HEAVY", str(HEAVY))).splitlines()
    assert (heavy, checks, listed) == ("set()", "w2v._losses.gradient", "True")
    assert kinds == "w2v._vectors.keyed w2v._training.model"
    assert re.match("<function train at .*> <function perplexity at ", functions)
    public = set(w2v.__all__) - {"formats", "losses"}  # these names are modules
    assert not {module.name for module in pkgutil.iter_modules(w2v.__path__)} & public


def test_unbuilt_sources_give_way_to_the_installed_package(tmp_path: Path) -> None:
    """This happens when Python runs in the folder where the user ran `pip install .`."""
    sources, installed, other = (tmp_path / name for name in ("sources", "installed", "other"))
    (sources / "w2v").mkdir(parents=True)
    shutil.copy(w2v.__file__, sources / "w2v")
    for folder in installed, other:
        (folder / "w2v").mkdir(parents=True)
        shutil.copy(_kernels.__file__, folder / "w2v")
    (other / "setup.py").touch()

    def imported(*folders: Path) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-S", "-c", "import w2v; print(*w2v.__path__)"]  # -S: search only these folders
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
        return subprocess.run(program, cwd=sources, env=environment, capture_output=True, text=True)

    done = imported(other, installed)
    assert done.stdout == f"{installed / 'w2v'}\n", done.stderr
    assert imported(other).stderr.splitlines()[-1] == (
        f"ImportError: the sources in {sources / 'w2v'} are not built: run pip install . in the folder above"
    )


@pytest.mark.parametrize(
    "arguments",
    [["-m", "w2v", "info"], ["-Bmw2v", "encode", "{model}", "-o", "{out}.parquet"], ["-m", "w2v.data.make", "--help"]],
)
def test_modules_of_the_working_directory_are_not_imported(arguments: list[str], model: Path, tmp_path: Path) -> None:
    """`python -m w2v` may run in a folder of unknown origin."""
    own = {path.stem for path in Path(w2v.__file__).parent.iterdir()}
    names = ["pathlib", "json", "numpy", "click", "rich", "scipy", "pyarrow", "msgspec", "numba", "sitecustomize"]
    for name in [*names, *(own - {"__init__", "__main__"})]:
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__file__} was imported')")
    places = {"model": model, "out": tmp_path / "out"}
    program = [sys.executable, *(argument.format(**places) for argument in arguments)]
    done = subprocess.run(program, cwd=tmp_path, input="king\n", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_another_program_that_imports_w2v_keeps_its_path(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__init__.py").write_text("import w2v")
    (tmp_path / "program" / "__main__.py").write_text("import mine")
    (tmp_path / "mine.py").touch()
    for arguments in (["-m", "program"], ["-mprogram", "-m", "w2v"]):
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.stderr == ""
    script = "import sys; sys.argv = ['-m']; sys.orig_argv = []; import w2v"  # a program that contains Python
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""


def test_numba_reads_no_machine_code_from_the_working_directory(tmp_path: Path) -> None:
    pytest.importorskip("yaml")  # Numba needs it to read settings there
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: theirs")
    script = """if True:
        import sys
        from w2v.__main__ import main
        sys.argv = ["w2v", "--version"]
        try:
            main()
        except SystemExit:
            from numba import config
            print(repr(config.CACHE_DIR))
        """
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    program = [sys.executable, "-c", script]
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "''", done.stderr


def test_sources_run_without_being_installed(tmp_path: Path) -> None:
    (tmp_path / "w2v").symlink_to(Path(w2v.__file__).parent)
    paths = [path for path in sys.path if "site-packages" in path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    program = [sys.executable, "-S", "-m", "w2v", "--version"]
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == f"w2v {w2v.__version__}\n", done.stderr


def test_safe_path_of_python_keeps_every_folder_of_pythonpath(tmp_path: Path) -> None:
    """With -P, Python does not add the working directory to sys.path, so w2v must not remove the first folder."""
    (tmp_path / "mine.py").touch()
    program = [sys.executable, "-P", "-c", "import sys; sys.argv = ['-m']; import w2v, mine"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    assert subprocess.run(program, env=environment, capture_output=True, text=True).stderr == ""


def test_type_checkers_see_the_public_names() -> None:
    tree = ast.parse(Path(w2v.__file__).read_text("utf-8"))
    block = next(each for each in tree.body if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING")
    found = {}
    for each in block.body:
        assert isinstance(each, ast.ImportFrom)
        for alias in each.names:
            assert alias.asname == alias.name  # otherwise it is not public for type checkers
            found[alias.name] = f"w2v.{alias.name}" if each.module == "w2v" else each.module
    assert found == w2v._MODULES


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'w2v' has no attribute 'trian'$"):
        _ = w2v.trian


def test_help_describes_each_command_by_its_own_docstring() -> None:
    for name, (_, text) in main.COMMANDS.items():
        command = main.main.get_command(click.Context(main.main), name)
        assert command
        assert (command.name, command.get_short_help_str(200)) == (name, text)


def test_help_names_every_command() -> None:
    modules = {
        module.name: importlib.import_module(f"w2v._cli.commands.{module.name}")
        for module in pkgutil.iter_modules(commands.__path__)
    }
    found = {
        (name.replace("_", "-"), module)
        for module, content in modules.items()
        for name, value in vars(content).items()
        if isinstance(value, click.Command)
    }
    assert found == {(name, module) for name, (module, _) in main.COMMANDS.items()}
