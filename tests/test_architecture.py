"""The package as a whole: public names, imports between folders, and links and examples in the documentation."""

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import w2v
from w2v._errors import IS_ON_PYPI

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "w2v", ROOT / "tests"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = SETTINGS["project"]["optional-dependencies"]
# A version in a lock file, with the condition for it, and the hashes of its files.
PIN = re.compile(r"^([\w.-]+)==(\S+)(?: ; (.*?))?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n", re.MULTILINE)
# The layers in order, most of them folders. Each imports only from earlier ones. "base" has the files directly in
# w2v/, without the kernel.
LAYERS = [
    "_errors", "_system", "base", "_text", "_formats", "_vectors", "_losses", "_kernel", "_graph", "_evaluation",
    "_training", "_plotting", "gensim", "fasttext", "_explore", "_cli", "data", "top",
]  # fmt: skip
KERNEL = {"w2v._kernels"}
TOP = {"w2v", "w2v.__main__", "w2v.sklearn"}
PUBLIC_PARTS = {"w2v.formats", "w2v.losses"}  # each re-exports names of the folder of the same name
# Modules that re-export names from other modules: public names, and names in gensim's places.
RE_EXPORTERS = PUBLIC_PARTS | {"w2v", "w2v.gensim", "w2v.gensim.models", "w2v.gensim.models.word2vec", "w2v.fasttext"}
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TEXT_SUFFIXES = {"", ".c", ".h", ".md", ".pxd", ".py", ".pyx", ".sh"}  # of the files that are searched for file names
FILE_NAME = re.compile(r"(?<![\w./-])(?:bench|docs|tests|w2v)/[\w/-]+\.(?:c|h|md|pxd|pyx?|sh)\b")
CYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+c?import[ \t]+(?P<names>\([^)]*\)|[^\n]*)"
    r"|c?import[ \t]+(?P<modules>[\w.][^\n]*))$",
    re.MULTILINE,
)


class Import(NamedTuple):
    module: str
    names: tuple[str, ...]  # the names imported from the module; empty if the module itself is imported


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = sorted(path for suffix in ("py", "pyx", "pxd") for path in PACKAGE.rglob(f"*.{suffix}"))
MODULES = {module_name(path) for path in SOURCES}
PACKAGES = {module_name(path) for path in SOURCES if path.stem == "__init__"}
COMPILED = [path for path in SOURCES if path.suffix == ".pyx"]


def python_imports(tree: ast.AST) -> Iterator[Import]:
    """Yield the imports, also in functions and for type checkers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import"
            yield Import(str(node.module), tuple(alias.name for alias in node.names))
        elif isinstance(node, ast.Constant) and node.value in MODULES and node.value not in PACKAGES:
            yield Import(str(node.value), ())  # a string argument of import_module


def cython_imports(source: str) -> Iterator[Import]:
    """Yield the imports and cimports."""
    source = re.sub(r'"""(?:.|\n)*?"""|#.*', "", source)
    for found in CYTHON_IMPORT.finditer(source):
        if found["module"]:
            names = tuple(name.split()[0] for name in found["names"].strip("()").split(",") if name.strip())
            yield Import(found["module"], names)
        else:
            yield from (Import(part.split()[0], ()) for part in found["modules"].split(","))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def imports(path: Path) -> list[Import]:
    return list(python_imports(parsed(path)) if path.suffix == ".py" else cython_imports(path.read_text("utf-8")))


def targets(one: Import) -> set[str]:
    """Return the modules that an import names: `from package import module` names the module."""
    inner = {f"{one.module}.{name}" for name in one.names} & MODULES
    return inner | ({one.module} if len(inner) < len(one.names) or not one.names else set())


def imported_modules(path: Path) -> set[str]:
    """Return the package's modules that a file imports, including imports in functions and for type checkers."""
    return {module for each in imports(path) for module in targets(each) if module.split(".")[0] == "w2v"}


def layer_of(module: str) -> str:
    if module in TOP:
        return "top"
    if module in KERNEL:
        return "_kernel"
    if module in PUBLIC_PARTS:
        return module.replace("w2v.", "_")
    if module == "w2v._errors":
        return "_errors"
    parts = module.split(".")
    return parts[1] if f"w2v.{parts[1]}" in MODULES and (PACKAGE / parts[1]).is_dir() else "base"


def test_public_names_are_sorted_and_documented() -> None:
    assert sorted(w2v.__all__) == w2v.__all__
    for name in w2v.__all__:
        assert getattr(w2v, name).__doc__, name
    assert dir(w2v) == w2v.__all__


def test_the_documentation_lists_the_public_modules() -> None:
    named = re.findall(r"^\| `(w2v[.\w]*)` \|", (ROOT / "docs" / "python.md").read_text("utf-8"), re.MULTILINE)
    public = {".".join(module.split(".")[:2]) for module in MODULES if not re.search(r"\._", module)}
    assert {*named} == public


def test_imports_of_every_kind_are_detected() -> None:
    source = (
        "import a, b.c as d\nfrom e.f import (\n    g,  # one\n    h as i,\n)\ncimport j\nfrom k cimport l, m\n"
        'def n():\n    """\n    from the docstring import nothing\n    """\n    from o import p\n'
    )
    found = [("a", ()), ("b.c", ()), ("e.f", ("g", "h")), ("j", ()), ("k", ("l", "m")), ("o", ("p",))]
    assert [*cython_imports(source)] == found
    python = "if TYPE_CHECKING:\n    import a\nclass B:\n    import b\n    def c(self):\n        if d: from e import f"
    python += "\n        import_module('w2v._errors')"
    assert list(python_imports(ast.parse(python))) == [
        Import("a", ()), Import("b", ()), Import("e", ("f",)), Import("w2v._errors", ())
    ]  # fmt: skip
    assert {"w2v._kernels", "w2v._kernel.worker", "w2v._losses._tree", "w2v.data.make"} < MODULES
    assert "w2v._kernel.worker" in imported_modules(PACKAGE / "_kernels.pyx")


def test_layers_import_only_from_earlier_layers() -> None:
    places = {module: LAYERS.index(layer_of(module)) for module in MODULES}
    pairs = [(module_name(path), module) for path in SOURCES for module in imported_modules(path)]
    assert [pair for pair in pairs if places[pair[1]] > places[pair[0]]] == []


def test_imports_have_no_cycles() -> None:
    graph = {module: set() for module in MODULES}
    for path in SOURCES:
        name = module_name(path)
        graph[name] |= imported_modules(path) - {name}
    assert set(TopologicalSorter(graph).static_order()) == MODULES  # raises CycleError


def test_names_are_imported_from_the_modules_that_define_them() -> None:
    """Only RE_EXPORTERS re-export names. All other __init__ files have only a docstring."""
    for path in PACKAGE.rglob("__init__.py"):
        body = parsed(path).body
        assert module_name(path) in RE_EXPORTERS or [type(part) for part in body] == [ast.Expr], path
    imported_names = {
        module_name(path): {name for one in imports(path) for name in one.names or (one.module,)}
        for path in SOURCES
        if module_name(path) not in RE_EXPORTERS
    }
    indirect = [
        (str(path.relative_to(ROOT)), module, *names)
        for path in [*SOURCES, *TESTS.rglob("*.py"), *(ROOT / "bench").glob("*.py")]
        for module, all_names in imports(path)
        if (names := imported_names.get(module, set()) & set(all_names))
    ]
    assert indirect == []


def test_pyproject_lists_every_package() -> None:
    assert set(SETTINGS["tool"]["setuptools"]["packages"]) == PACKAGES


def locked_versions(lock: Path, environment: dict[str, str]) -> dict[str, str]:
    """Return the version of each package that a lock file has for these values of the variables in its conditions."""
    pins = PIN.findall(lock.read_text("utf-8"))
    return {name: version for name, version, marker, _ in pins if not marker or Marker(marker).evaluate(environment)}


def requirements(lists: Iterable[list[str]], environment: dict[str, str]) -> Iterator[tuple[str, Requirement]]:
    """Yield the requirements for an environment, each with the name of its package in a lock file."""
    for requirement in (Requirement(line) for lines in lists for line in lines):
        if requirement.name != "w2v" and (not requirement.marker or requirement.marker.evaluate(environment)):
            yield canonicalize_name(requirement.name), requirement


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize(
    ("system", "machine"),
    [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("darwin", "x86_64"), ("win32", "AMD64")],
)
def test_every_requirement_is_locked(python: str, system: str, machine: str) -> None:
    """If this fails, run `make lock`."""
    environment = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": system}
    environment |= {"platform_machine": machine, "os_name": "nt" if system == "win32" else "posix"}
    versions = locked_versions(ROOT / "requirements.lock", environment)
    lists = [SETTINGS["build-system"]["requires"], SETTINGS["project"]["dependencies"], *EXTRAS.values()]
    for name, requirement in requirements([*lists, *SETTINGS["dependency-groups"].values()], environment):
        assert requirement.specifier.contains(versions[name]), requirement


def test_oldest_versions_are_locked() -> None:
    """If this fails, run `make lock`."""
    versions = locked_versions(TESTS / "wheels" / "oldest.lock", {})
    extras = [EXTRAS[name] for name in Requirement(*EXTRAS["all"]).extras]
    for name, requirement in requirements([SETTINGS["project"]["dependencies"], *extras], {}):
        assert [Version(versions[name])] == [Version(bound.version) for bound in requirement.specifier]


@pytest.mark.parametrize("lock", [ROOT / "requirements.lock", TESTS / "wheels" / "oldest.lock"])
def test_lock_files_have_only_versions_and_hashes(lock: Path) -> None:
    """pip takes the packages from the index of the user, not from where `make lock` found them."""
    assert re.fullmatch(r"(?: *#.*\n)*", PIN.sub("", lock.read_text("utf-8")))


def test_only_the_folder_system_asks_for_the_operating_system() -> None:
    specific = re.compile(
        r"\bsys\.platform\b|\bhasattr\((mmap|os|signal|socket|time)\b|\bmmap\.MADV_|"
        r"\bimport (ctypes|fcntl|msvcrt|resource)\b|"
        r"\bos\.(name|get(e?[gu]id|uid)|O_(NOFOLLOW|NONBLOCK)|posix_\w+|sched_\w+)\b"
    )
    for path in SOURCES:
        found = specific.search(path.read_text("utf-8"))
        assert not found or layer_of(module_name(path)) == "_system", f"{path}: {found}"


def test_tests_that_are_skipped_on_windows_exist() -> None:
    """Without this, a renamed test could silently be run there, or the list keep its old name."""
    for skipped in tomllib.loads((TESTS / "wheels" / "windows.toml").read_text("utf-8")).values():
        for test in skipped:
            file, _, name = test.partition("::")
            assert f"def {name.partition('[')[0]}" in (TESTS / file).read_text("utf-8"), test


def test_only_the_command_line_uses_click() -> None:
    using = {
        layer_of(module_name(path)) for path in SOURCES for one in imports(path) if one.module.split(".")[0] == "click"
    }
    assert using == {"_cli", "data"}


def test_tests_import_only_helpers_from_tests() -> None:
    for path in TESTS.rglob("*.py"):
        shared = {module for module, *_ in imports(path) if module.split(".")[0] in {"tests", "conftest"}}
        assert all(re.match(r"tests\.(helpers|faults)\b", module) for module in shared), path
        assert not re.search(r"""["'(]/tmp\b""", path.read_text("utf-8").replace(r'["\'(]/tmp', "")), path


def test_tests_do_not_depend_on_speed() -> None:
    """Tests stop a run at a position instead of a time: see tests.helpers.train_and_stop."""
    for path in TESTS.rglob("*.py"):
        timed = re.search(r"\bsleep\(|\bPOLL_SECONDS\b|\bmonotonic\(|\bperf_counter\(", path.read_text("utf-8"))
        assert not timed or path.parent.name in {"faults", "browser"}, f"{path}: {timed}"


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.stem)
def test_stub_names_exist_in_the_compiled_module(path: Path) -> None:
    stub = parsed(path.with_suffix(".pyi"))
    names = {part.name for part in stub.body if isinstance(part, ast.FunctionDef | ast.ClassDef)}
    compiled = importlib.import_module(module_name(path))
    assert names
    assert {name for name in names if not hasattr(compiled, name)} == set()


def test_compiler_directives_are_only_in_setup_py_and_generated_c_is_elsewhere() -> None:
    """A directive in a source file would override the settings of the builds that check every index."""
    for path in COMPILED:
        assert "# cython:" not in path.read_text("utf-8"), path
        assert not path.with_suffix(".c").exists(), path


def test_nothing_is_unpickled() -> None:
    # utils.py has gensim's unpickle; with installation.py, gensim's own `load` finds its classes.
    reader = PACKAGE / "_formats" / "pickles.py"  # its unpickler finds no class and no function
    for path in set(SOURCES) - {reader, *(PACKAGE / "gensim" / name for name in ("utils.py", "installation.py"))}:
        assert not re.search(r"import pickle\b|allow_pickle=True|np\.load\(", path.read_text("utf-8")), path
    assert not re.search(r"pickle\.(loads?|Unpickler)\b", reader.read_text("utf-8"))


def test_readme_examples_run(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make docs` runs the examples of the pages in docs/."""
    monkeypatch.chdir(tmp_path)
    queried = {"france", "king", "man", "queen", "woman"}
    lines = sample.read_text("utf-8").splitlines(keepends=True)
    lines.sort(key=lambda line: queried.isdisjoint(line.split()))
    lines = lines[: len(lines) // 30]
    (tmp_path / "corpus.txt").write_text("".join(lines), "utf-8")
    (tmp_path / "reviews.csv").write_text("id,text\n" + "".join(f"1,{line}" for line in lines), "utf-8")
    blocks = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    assert [language for language, _ in blocks] == ["sh", "python", "sh"]
    for language, block in blocks:
        run_block(language, block)


def run_block(language: str, block: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    strict = [sys.executable, "-W", "error", "-W", "ignore::UserWarning", "-c"]  # TextWarning: the text is small
    program = ["bash", "-eo", "pipefail", "-c"] if language == "sh" else strict
    done = subprocess.run([*program, block], capture_output=True, text=True, env=os.environ | {"PATH": path})
    assert done.returncode == 0, done.stderr
    assert done.stdout or (language == "python" and "print" not in block)


def test_install_instructions_name_the_same_package_as_the_errors() -> None:
    """While w2v is not on the package index, its name there could belong to someone else."""
    named = re.compile(r"pip install '?([\w.]+)\[")
    expected = "w2v" if IS_ON_PYPI else "."
    for file in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *PACKAGE.rglob("*.py")]:
        if file != PACKAGE / "_errors.py":
            assert set(named.findall(file.read_text("utf-8"))) <= {expected}, file


def test_links_between_pages_lead_to_existing_headings() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "bench").glob("*.md")]
    for page in pages:
        for target in re.findall(r"(?:\]\(|src=\")(?!https?:)([^)\"]+)", page.read_text("utf-8")):
            name, _, heading = target.partition("#")
            file = page.parent / name if name else page
            assert file.exists(), (page, target)
            if heading and file.name != "measurements.md":  # this page includes another
                assert heading in headings(file), (page, target)


def test_pages_that_include_a_file_link_to_it() -> None:
    """Readers in the repository see the page without the included text."""
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text("utf-8")
        shown = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for name in re.findall(r"\{include\} (\S+)", text):
            assert f"]({name})" in shown, page


def test_named_files_exist() -> None:
    tracked = [path for folder in ("bench", "docs", "tests", "w2v") for path in (ROOT / folder).rglob("*.*")]
    naming = [path for path in [*tracked, *ROOT.glob("*.md"), ROOT / "Makefile"] if path.suffix in TEXT_SUFFIXES]
    named = {(path, name) for path in naming for name in FILE_NAME.findall(path.read_text("utf-8"))}
    assert len(named) > 50
    examples = {f"w2v/_losses/{name}.py" for name in ("uniform", "margin")}  # readers of docs/new-loss.md create them
    missing = {f"{path.name}: {name}" for path, name in named if name not in examples and not (ROOT / name).exists()}
    assert not missing


def headings(page: Path) -> list[str]:
    """Return the anchors of the headings of a page."""
    found = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found]


def test_demo_reads_expected_scores_from_the_documentation() -> None:
    """bench/demo.py reads the table in docs/small-text.md."""
    program = """import demo
print(demo.expected_scores(300_000)["text"], demo.expected_scores(10**9)["text"], demo.table_rows()[0])"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT / "bench")
    assert done.stdout.startswith("2 MB 100 MB {'text': '1 MB'"), done.stderr
    for column in ("questions-words", "bundled questions", "EN-WS-353-ALL", "EN-SIMLEX-999", "rank of queen"):
        assert f"'{column}'" in done.stdout


def test_demo_without_a_text_is_refused_in_one_line() -> None:
    command = [sys.executable, ROOT / "bench/demo.py", "--shared", ROOT / "nothing"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "name a text of some megabytes: make demo-real CORPUS=text.txt\n"


@pytest.mark.parametrize(
    ("variable", "apt", "expected"),
    [
        ("mirror:/own/", "Debian mirror:/apt/", "mirror:/own/"),
        ("", "Ubuntu mirror:/ubuntu/\nDebian-Security mirror:/security/\nDebian mirror:/apt/", "mirror:/apt/"),
        ("", " mirror:/ubuntu/\n mirror:/debian/", "mirror:/debian/"),  # before apt-get update, without labels
        ("", "Ubuntu mirror:/ubuntu/", ""),
        ("", "", ""),
    ],
)
def test_debian_packages_come_from_the_users_or_apts_source(
    tmp_path: Path, variable: str, apt: str, expected: str
) -> None:
    """The script itself names no mirror."""
    for name, script in ("apt-get", f"echo '{apt}'"), ("debootstrap", 'echo "$@" >&2; exit 3'):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "DEBIAN_MIRROR": variable}
    script = [TESTS / "wheels/debian.sh", tmp_path / "trixie", "amd64", "trixie", "python3.13"]
    done = subprocess.run(["sh", *script], env=environment, capture_output=True, text=True)
    if expected:
        assert f" {expected} /usr/share/debootstrap/" in done.stderr
        assert done.returncode == 3
    else:
        assert done.stderr.startswith("no mirror of Debian: apt on this machine names none; set DEBIAN_")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stdout == ""
