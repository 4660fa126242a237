"""Run the tests on builds with extra checks, after showing by a canary that each build still finds mistakes.

    python tests/faults/variants.py checked     every index of every array checked: all tests
    python tests/faults/variants.py sanitize    AddressSanitizer and UndefinedBehaviorSanitizer: compiled modules
    python tests/faults/variants.py thread      ThreadSanitizer: threads that read and train

`make sanitize` builds them and runs all three. A canary is a wrong call of one of our own compiled functions, which the
build must report.
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAULTS = ROOT / "tests/faults"

WRITE_PAST_THE_END = """
import numpy as np
from w2v._losses import _tree
_tree.fill_alias(np.array([0.5, 0.5, 2]), np.zeros((3, 2), np.uint32), np.empty(1, np.int64))
"""
OVERFLOW = """
import numpy as np
from w2v._formats import _formats
_formats.binary_split(np.frombuffer(b"word 1234", np.uint8), 1 << 62, 1, True)
"""
RACE = """
import threading
import numpy as np
from w2v._losses import _tree
parents, depths = np.full(1 << 20, 1 << 20, np.int32), np.empty((1 << 20) + 1, np.int64)
threads = [threading.Thread(target=_tree.fill_depths, args=(parents, depths)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
# For each variant: its canaries, and what it must report for them.
CANARIES = {
    "checked": {WRITE_PAST_THE_END: "IndexError: Out of bounds on buffer access"},
    "sanitize": {WRITE_PAST_THE_END: "AddressSanitizer: heap-buffer-overflow", OVERFLOW: "signed integer overflow"},
    "thread": {RACE: "ThreadSanitizer: data race"},
}
COMPILED = [
    "w2v._kernels",
    "w2v._system._bus_error",
    "w2v._text._normalise",
    "w2v._text._phrases",
    "w2v._text._subwords",
    "w2v._text._text",
    "w2v._formats._formats",
    "w2v._vectors._search",
    "w2v._losses._tree",
    "w2v._graph._edges",
    "w2v._graph._walks",
]
TESTS_OF_COMPILED = ["test_kernels.py", "kernel/test_loop.py", "text", "losses/test_tree.py", "graph"]
TESTS_OF_COMPILED += ["formats/test_registry.py", "formats/test_word2vec.py", "evaluation/test_analogies.py"]
# --capture=sys shows the report of a sanitizer that ends the process.
PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", "--capture=sys"]
# What runs on each variant after its canaries.
RUNS = {
    "checked": [*PYTEST, "-n", "auto", "--maxprocesses", "8", "--dist", "worksteal", "tests"],
    # Tests that measure memory are left out, because the sanitizer never frees it.
    "sanitize": [*PYTEST, "-k", "not memory_does_not_grow", *(f"tests/{name}" for name in TESTS_OF_COMPILED)],
    "thread": ["-m", "tests.faults.threads"],
}


def assert_modules_of_variant() -> None:
    """Raise SystemExit if a compiled module does not belong to the variant under test."""
    folder = os.environ.get("W2V_VARIANT")
    for name in COMPILED if folder else ():
        file = str(importlib.import_module(name).__file__)
        if not Path(file).is_relative_to(str(folder)):
            raise SystemExit(f"{name} is {file}, which is not in {folder}")


def preloaded_libraries(*names: str) -> str:
    """Return the paths of the compiler's libraries with these names, as LD_PRELOAD takes them."""
    compiler = os.environ.get("CC", "gcc").split()[0]
    paths = [subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip() for name in names]
    return " ".join(paths)


def environment(variant: str) -> dict[str, str]:
    """Return the environment for a program that uses the modules of this build; see `assert_modules_of_variant`."""
    folder = str(ROOT / "build" / variant)
    values = os.environ | {"PYTHONPATH": folder, "W2V_VARIANT": folder}
    if variant == "sanitize":
        # C++'s library must be there before Python, because AddressSanitizer intercepts its exceptions.
        values["LD_PRELOAD"] = preloaded_libraries("libasan.so", "libubsan.so", "libstdc++.so")
        values["PYTHONMALLOC"] = "malloc"  # allocates each object separately, so that an overrun is noticed
        # Objects that Python keeps to its end are not leaks. Too large an allocation returns NULL and does not abort.
        values["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1"
        values["UBSAN_OPTIONS"] = "print_stacktrace=1"
    if variant == "thread":
        values["LD_PRELOAD"] = preloaded_libraries("libtsan.so")
        values["TSAN_OPTIONS"] = f"suppressions={FAULTS / 'tsan.txt'}:halt_on_error=1:history_size=7"
    return values


def check_canaries(variant: str) -> None:
    """Raise SystemExit if the build does not report a canary."""
    for program, expected in CANARIES[variant].items():
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, cwd=ROOT / "build" / variant, env=environment(variant), capture_output=True, text=True
        )
        if not done.returncode or expected not in done.stderr:
            raise SystemExit(f"{variant}: the build does not report {expected!r} for\n{program}\n{done.stderr[-2000:]}")
        print(f"{variant}: canary: {re.findall('.*' + expected + '.*', done.stderr)[0].strip()}", flush=True)


def main() -> None:
    for variant in sys.argv[1:]:
        check_canaries(variant)

        command = [sys.executable, *RUNS[variant]]
        print(f"{variant}: {' '.join(command[1:])}", flush=True)
        done = subprocess.run(command, cwd=ROOT / "build" / variant, env=environment(variant))
        if done.returncode:
            raise SystemExit(f"{variant}: exit code {done.returncode}")


if __name__ == "__main__":
    main()
