"""Plant small faults in the Python code of w2v/, one at a time, and count how many the tests find.

    python tests/faults/mutants.py [--faults N] [--seed SEED]

A fault swaps a comparison, drops a call, changes a constant or negates a condition. It is planted in a copy of the
tree, in build/mutants. Then the fast tests of its folder run, first those of the file with its name, and after them
other fast tests that import the changed module, until one fails or hangs. Faults that only mypy finds do not count.

Each result goes to build/mutants-SEED.jsonl at once, so a run that was interrupted continues where it stopped. Rename
this file to begin again. A fault is named by its file, function and kind, and its ordinal among those. The seed orders
the faults by their names: in changed code, the same seed chooses the same faults, where they still exist.
"""

import argparse
import ast
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build/mutants"
OUTPUT = ROOT / "build/mutants.txt"  # of the last program that ran
SWAPS: dict[type, type] = {ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn}
SWAPS |= {new: old for old, new in SWAPS.items()}
NOT_ON_THIS_MACHINE = re.compile(r"\bsys\.platform\b|\bTYPE_CHECKING\b")
MYPY = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / "build/mutants-mypy")]
PYTEST = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-m", "not slow and not cluster"]
PYTEST += ["-o", "faulthandler_timeout=600", "-o", "faulthandler_exit_on_timeout=true"]  # seconds of a test
SECONDS = 3600  # of all tests for a fault


class Fault(NamedTuple):
    """A fault: the bytes of a file from `start` to `end` become `text`."""

    name: str
    path: Path
    start: int
    end: int
    text: str


def nodes(parts: Iterable[ast.AST], function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes that run on this machine, with the function around them; without annotations and decorators."""
    for node in parts:
        match node:
            case ast.FunctionDef(args=arguments):
                name = f"{function}.{node.name}".strip(".")
                yield from nodes([*arguments.defaults, *filter(None, arguments.kw_defaults), *node.body], name)
            case ast.ClassDef():
                yield from nodes(node.body, f"{function}.{node.name}".strip("."))
            case ast.If(test=test) if NOT_ON_THIS_MACHINE.search(ast.unparse(test)):
                yield from nodes(node.body if "!=" in ast.unparse(test) else node.orelse, function)
            case ast.AnnAssign(value=value):
                yield from nodes([value] if value else [], function)
            case ast.expr() if isinstance(node, ast.JoinedStr) or NOT_ON_THIS_MACHINE.search(ast.unparse(node)):
                continue  # Python 3.11 does not know the positions in a JoinedStr, which is an f-string
            case _:
                yield function, node
                yield from nodes(ast.iter_child_nodes(node), function)


def changes(node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Yield the kind of each fault of a node, and the node that it replaces by which text."""
    match node:
        case ast.Compare(ops=[operator, *others]):
            swapped = ast.Compare(node.left, [SWAPS[type(operator)](), *others], node.comparators)
            yield "comparison", node, f"({ast.unparse(swapped)})"
        case ast.Expr(ast.Call()):
            yield "call", node, "pass"
        case ast.Constant(bool() as value):
            yield "constant", node, str(not value)
        case ast.Constant(int() | float() as value):
            yield "constant", node, str(value + 1)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.comprehension(ifs=[test, *_]):
            if not isinstance(test, ast.Compare):
                yield "condition", test, f"(not ({ast.unparse(test)}))"


def faults(path: Path, source: bytes) -> Iterator[Fault]:
    """Yield the faults of a file."""
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    ordinals = Counter[tuple[str, str]]()
    for function, node in [] if b"\nassert sys.platform" in source else nodes(ast.parse(source).body):
        for kind, old, text in changes(node):
            ordinals[function, kind] += 1
            name = f"{path} {function or '-'} {kind} {ordinals[function, kind]}"
            end = starts[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0)
            yield Fault(name, path, starts[old.lineno - 1] + old.col_offset, end, text)


def copy_tree() -> None:
    """Copy the files that git knows, and the compiled modules."""
    shutil.rmtree(COPY, ignore_errors=True)
    tracked = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    for file in [*filter(None, tracked), *(path.relative_to(ROOT) for path in (ROOT / "w2v").rglob("*.so"))]:
        (COPY / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, COPY / file, follow_symlinks=False)


def run(*command: str) -> tuple[int | None, str]:
    """Return the exit code of a program in the copy, None if it hangs, and its output; end all that it started."""
    with tempfile.TemporaryDirectory() as temporary, OUTPUT.open("w+") as output:
        options: dict[str, Any] = {"env": os.environ | {"TMPDIR": temporary}, "start_new_session": True}
        options |= {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        with subprocess.Popen(command, cwd=COPY, **options) as process:
            code = None
            try:
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(SECONDS)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        return code, output.read()


def tests_of(path: Path) -> list[str]:
    """Return the files with the tests of a module. They run in this order."""
    folder = COPY.joinpath("tests", *(part.removeprefix("_") for part in path.parts[1:-1]))
    while not folder.is_dir():
        folder = folder.parent
    files = [folder / f"test_{path.stem.lower().strip('_')}.py"]
    if folder == COPY / "tests":
        files += sorted(folder.glob("test_*.py"))
    else:
        imports = re.compile(rf"\b{r'[.]'.join(path.parts[:-1])}([.]| import .*\b){path.stem}\b")
        others = (file for file in COPY.rglob("tests/**/test_*.py") if imports.search(file.read_text("utf-8")))
        files += [*sorted(folder.rglob("test_*.py")), *sorted(others)]
    return [str(file) for file in dict.fromkeys(files) if file.exists()]


def try_fault(fault: Fault) -> dict[str, str]:
    """Plant a fault in the copy, and return what finds it; raise SystemExit if a test fails without it, too."""
    file = COPY / fault.path
    source = file.read_bytes()
    before, old, after = source[: fault.start], source[fault.start : fault.end], source[fault.end :]
    line = before.count(b"\n") + 1
    file.write_bytes(before + fault.text.encode() + after)
    try:
        code, output = run(*PYTEST, *tests_of(fault.path))
        failed = re.search(r"^(?:FAILED|ERROR) (\S+::\w+(?:\[.*?\])?)(?: - .*)?$", output, re.MULTILINE)
        found = failed[1] if failed else f"exit code {code}" if code != 0 else ""
        found = found or ("mypy" if run(*MYPY)[0] else "")
    finally:
        file.write_bytes(source)
    if failed and run(*PYTEST, failed[1])[0]:
        raise SystemExit(f"{failed[1]} fails without a fault, too: see {OUTPUT}")
    return {"fault": fault.name, "change": f"line {line}: {old.decode()} → {fault.text}", "found": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=100, help="how many to try")
    parser.add_argument("--seed", type=int, default=1, help="chooses the faults")
    options = parser.parse_args()
    copy_tree()
    files = COPY.rglob("w2v/**/*.py")
    planted = [fault for file in files for fault in faults(file.relative_to(COPY), file.read_bytes())]
    planted.sort(key=lambda fault: hashlib.sha256(f"{options.seed} {fault.name}".encode()).digest())
    os.environ |= {"PYTHONPATH": str(COPY), "W2V_VARIANT": str(COPY), "HOME": str(COPY), "NUMBA_OPT": "1"}
    resource.setrlimit(resource.RLIMIT_DATA, (12 << 30, resource.getrlimit(resource.RLIMIT_DATA)[1]))  # of a process
    stored = ROOT / f"build/mutants-{options.seed}.jsonl"
    lines = stored.read_text("utf-8").splitlines() if stored.exists() else []
    results = {one["fault"]: one for one in map(json.loads, lines)}
    for fault in planted:
        counted = [one for one in results.values() if one["found"] != "mypy"]
        if len(counted) >= options.faults:
            break
        if fault.name not in results:
            results[fault.name] = try_fault(fault)
            print(fault.name, results[fault.name]["found"] or "not found", sep=": ", flush=True)
            with stored.open("a", encoding="utf-8") as file:
                print(json.dumps(results[fault.name]), file=file)
    survivors = [f"{one['fault']}, {one['change']}" for one in counted if not one["found"]]
    print(*survivors, f"The tests found {len(counted) - len(survivors)} of {len(counted)} faults.", sep="\n")


if __name__ == "__main__":
    main()
