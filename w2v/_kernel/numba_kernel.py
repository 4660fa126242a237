"""Compile the training loop with Numba, together with the functions of a loss.

`compile_function` copies train_chunk of loop.py and every function that it calls. It makes the copies call the loss and
the vector code of numba_vectors.py, and compiles them into one function.

The machine code is cached on disk under a hash of all this code. Numba's own cache key is not enough: it only depends
on the file of train_chunk, so after a change of the loss in another file, old machine code would run. Passing the
functions of the loss as arguments is not possible either: Numba's key would contain them, and they differ in each
process.
"""

from __future__ import annotations

import hashlib
import logging
import re
import zlib
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from w2v._errors import SettingsError, W2VError, one_line, optional_package, out_of_memory

with optional_package("the Numba kernel needs Numba", "numba", SettingsError):
    try:
        import numba
        from numba.core.registry import cpu_target
        from numba.misc.appdirs import AppDirs
    except Exception as error:
        if isinstance(error, ImportError) or out_of_memory(error):
            raise
        # A value of Numba's environment variables is invalid.
        message = one_line(str(error).partition("Traceback")[0])
        raise SettingsError(f"Numba cannot be used: {message} (see the variables NUMBA_…)") from error
if getattr(numba.config, "DISABLE_JIT", 0):
    raise SettingsError("the Numba kernel cannot run uncompiled: unset NUMBA_DISABLE_JIT")

from w2v._kernel import loop, numba_vectors
from w2v._kernel.loop import train_chunk
from w2v._losses import rows
from w2v._losses.binding import Functions, copy_function, pairs_used_by, plain_function, references
from w2v._system.files import check_code_folder

# Pairs of a function of the loop and the faster function that replaces it when it is compiled.
FAST: Functions = (
    (rows.score, numba_vectors.score),
    (rows.update, numba_vectors.update),
    (rows.update_inputs, numba_vectors.update_inputs),
    (rows.prefetch, numba_vectors.prefetch),
    (loop.gather, numba_vectors.gather),
    (loop.scatter, numba_vectors.scatter),
)
# These flags allow reordering and fusing sums, but they preserve infinities and NaN.
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"contract", "reassoc", "nsz", "arcp"}, "error_model": "numpy"}
INLINED: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

log = logging.getLogger("w2v")


# -- compiling ------------------------------------------------------------------------------


def target_name() -> str:
    """Return the compilation target. Another compiler, processor or processor feature may round differently."""
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    return f"Numba {numba.__version__} for {cpu}, {zlib.crc32(f'{triple} {features}'.encode()):08x}"


@cache
def compile_function(function: FunctionType, functions: Functions, on_disk: bool = True) -> Any:
    """Compile a plain Python function and every function that it calls.

    Args:
        function: The function.
        functions: Pairs of functions; the second replaces the first.
        on_disk: Cache the machine code on disk.
    """
    if on_disk and not numba.config.CACHE_DIR:  # type: ignore[attr-defined]
        check_code_folder(Path(AppDirs("numba", appauthor=False).user_cache_dir))  # type: ignore[no-untyped-call]
    copy, _ = _hashed_copy(function, functions)
    return numba.njit(**OPTIONS, cache=on_disk and Path(function.__code__.co_filename).exists())(copy)


@cache
def _compile_inlined(function: FunctionType, functions: Functions) -> tuple[Any, bytes]:
    copy, digest = _hashed_copy(function, functions)
    return numba.njit(**OPTIONS, **INLINED)(copy), digest


def _hashed_copy(function: FunctionType, functions: Functions) -> tuple[FunctionType, bytes]:
    """Return a copy of a function that calls compiled functions, and a hash of everything the machine code depends on.

    The hash is part of the copy's name.
    """
    # The module is included because machine code on disk refers to it.
    parts = function.__module__, _code_parts(function.__code__), function.__defaults__
    digest = hashlib.sha256(repr(parts).encode())
    # The vector instructions are not plain functions, so the hash includes the whole file that defines them.
    digest.update(Path(numba_vectors.__file__).read_bytes())

    def compile_inlined(value: FunctionType) -> Any:
        value = plain_function(dict(functions).get(value, value))
        compiled_function, its_digest = _compile_inlined(value, pairs_used_by(value, functions))
        digest.update(its_digest)
        return compiled_function

    for name, value in references(function).items():
        if isinstance(value, np.ndarray):
            digest.update(name.encode() + repr((value.dtype, value.shape)).encode() + value.tobytes())
        elif isinstance(value, int | float | str | tuple | np.generic):
            digest.update(name.encode() + repr(value).encode())
    copy = copy_function(function, compile_inlined)
    copy.__qualname__ = f"{function.__name__}_{digest.hexdigest()[:16]}"
    return copy, digest.digest()


def _code_parts(code: CodeType) -> tuple[Any, ...]:
    """Return the parts of a function's code that decide what it computes, including the code of nested functions."""
    constants = tuple(_code_parts(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.co_code, constants, code.co_names


# -- the kernel ------------------------------------------------------------------------------


class Kernel(loop.Kernel):
    """The kernel of loop.py, compiled.

    Raises:
        W2VError: If the loss cannot be compiled or violates the protocol of Loss.
    """

    def _with_loss(self, functions: Functions) -> Any:
        fast = tuple((placeholder, dict(FAST).get(function, function)) for placeholder, function in functions)
        try:
            return self._compile_with_fallback(FAST + fast)
        except Exception as error:  # not all of Numba's are NumbaError
            if out_of_memory(error):
                raise
            raise W2VError(f"{self._loss.label} cannot be compiled: {first_line_of_error(error)}") from error

    def _compile_with_fallback(self, functions: Functions) -> Any:
        """Return train_chunk, compiled. Do without the cache on disk if it is damaged, full or read-only."""

        def compile_loop(on_disk: bool) -> Any:
            function = compile_function(train_chunk, functions, on_disk)
            function(self._plan, self._workers[0], 0, self._chunks)  # the first call compiles; this chunk is empty
            return function

        try:
            return compile_loop(on_disk=True)
        except numba.core.errors.NumbaError:
            raise
        except Exception as error:
            function = compile_loop(on_disk=False)  # raises the same error if the cache is not its cause
            reason = f"{type(error).__name__}: {one_line(error)}"
            hint = "to use another folder, set NUMBA_CACHE_DIR"
            log.warning("Numba's cache on disk cannot be used (%s): compiled without it; %s", reason, hint)
            return function


def first_line_of_error(error: Exception) -> str:
    """Return the first informative line of Numba's message, and the first source line that it names."""
    text = re.sub(r"\x1b\[\d*m", "", str(error))  # Numba's colours, if colorama is installed
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    messages = [
        line for line in lines if not line.startswith(("Failed in nopython", "During:", "File", "<source", "^"))
    ]
    location = next((line.rstrip(":") for line in lines if line.startswith("File ")), "")
    message = messages[0] if messages else text
    if not type(error).__module__.startswith("numba"):
        message = f"{type(error).__name__}: {message}"
    return f"{message} ({location})" if location else message
