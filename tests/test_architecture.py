"""The package as a whole: its public names, who imports whom, and the README's promises."""

import ast
import importlib
import os
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import w2v

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "w2v"
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")
COMPILED = sorted(path.stem for path in PACKAGE.glob("*.pyx"))
COMMAND_LINE = {"cli", "options", "console", "show", "info", "query", "targets", "jobs"}
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def imported(module: str) -> set[str]:
    """The modules of the package that a module imports when it is imported."""
    found = set()
    for statement in ast.parse((PACKAGE / f"{module}.py").read_text("utf-8")).body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "w2v":
            found |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("w2v."):
            found.add(str(statement.module).removeprefix("w2v."))
    return found


def test_public_names() -> None:
    assert sorted(w2v.__all__) == w2v.__all__
    for name in w2v.__all__:
        assert getattr(w2v, name).__doc__, name
    public = {name for name, value in vars(w2v).items() if name[0] != "_" and not isinstance(value, ModuleType)}
    assert public - {"version"} == set(w2v.__all__)


def test_imports_go_one_way() -> None:
    order = TopologicalSorter({module: imported(module) & set(MODULES) for module in MODULES})
    assert set(order.static_order()) == set(MODULES)  # raises CycleError


def test_command_line_is_on_top() -> None:
    assert set(MODULES) > COMMAND_LINE
    for module in set(MODULES) - COMMAND_LINE:
        assert not imported(module) & COMMAND_LINE, module
        assert "click" not in (PACKAGE / f"{module}.py").read_text("utf-8"), module
    for module in COMMAND_LINE - {"cli"}:
        assert "cli" not in imported(module)


@pytest.mark.parametrize("module", COMPILED)
def test_compiled_module_has_a_stub_that_tells_its_names(module: str) -> None:
    stub = ast.parse((PACKAGE / f"{module}.pyi").read_text("utf-8"))
    names = {part.name for part in stub.body if isinstance(part, ast.FunctionDef | ast.ClassDef)}
    compiled = importlib.import_module(f"w2v.{module}")
    assert names
    assert {name for name in names if not hasattr(compiled, name)} == set()


@pytest.mark.parametrize("module", COMPILED)
def test_compiler_directives_stand_in_one_place(module: str) -> None:
    """In setup.py: those in the head of a file cannot be changed by the builds that check every index."""
    assert "# cython:" not in (PACKAGE / f"{module}.pyx").read_text("utf-8")


def test_nothing_is_unpickled() -> None:
    for path in [*PACKAGE.glob("*.py"), *PACKAGE.glob("*.pyx")]:
        assert not re.search(r"import pickle|allow_pickle=True|np\.load\(", path.read_text("utf-8")), path


def test_readme_does_what_it_says(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.txt").symlink_to(sample)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    blocks = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    assert [language for language, _ in blocks] == ["sh", "sh", "sh", "sh", "python"]
    for language, block in blocks:
        program = ["bash", "-eo", "pipefail", "-c"] if language == "sh" else [sys.executable, "-W", "error", "-c"]
        done = subprocess.run([*program, block], capture_output=True, text=True, env=os.environ | {"PATH": path})
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_readme_links_to_files_that_are_there() -> None:
    for file in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", file.read_text("utf-8")):
            assert (file.parent / target).exists(), target
