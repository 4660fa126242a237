"""`Identity`: the identity of a run, which is stored with its state on disk.

Two runs can agree in all shapes, names and counts, and still have different texts or matrices. So state is matched only
by a random id and by checksums.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from w2v._errors import W2VError, one_line
from w2v._losses.hierarchical_softmax import TREES
from w2v._system.files import PathLike, atomic_write, translate_os_errors
from w2v._system.schema import encode, read

FILE_OPTIONS = ("tree", "tree_vectors")  # settings that may name a file
# Options that do not change results. The phrases do, but they are joined when the checksum of the text is taken.
WITHOUT_EFFECT = {"cache", "workers", "phrases", "checkpoint_every", "ignore_memory"}


def new_run_id() -> str:
    """Return a random id for a run."""
    return uuid.uuid4().hex


T = TypeVar("T", bound="State")


@dataclass(frozen=True)
class Identity:
    """The identity of a run.

    Attributes:
        run_id: The random id of the run; a resumed run keeps it.
        inputs: The checksum of each input, by the name of the input in messages.
        options: The options that the results depend on, as text.
    """

    run_id: str
    inputs: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)


def identity_of(run_id: str, inputs: Mapping[str, str], given: Mapping[str, Any]) -> Identity:
    """Return the identity of a run.

    Args:
        run_id: The id of the run.
        inputs: The checksums of the inputs that the options do not name.
        given: The options that the user has given. The files that some of them name are inputs, too.
    """
    named = {name: given[name] for name in FILE_OPTIONS if given.get(name) not in (None, *TREES)}
    files = {name: checksum_of_files([path]) for name, path in named.items() if Path(path).is_file()}
    options = {name: str(value) for name, value in given.items() if value is not None}
    return Identity(run_id, {**inputs, **files}, {name: options[name] for name in options.keys() - WITHOUT_EFFECT})


def check_identity(where: object, stored: Identity, expected: Identity, remedy: str = "") -> None:
    """Check that stored state belongs to a run.

    Args:
        where: The name of the state in the message, such as a path.
        stored: The identity in the state.
        expected: The identity of the run.
        remedy: Advice for the user, at the end of the message.

    Raises:
        W2VError: The identities differ. The message names the first difference.
    """
    if stored == expected:
        return
    difference = ""
    if different := _first_difference(stored.inputs, expected.inputs):
        name, old, new = different
        difference = f", {'with different' if old and new else 'with' if old else 'without'} {name}"
    elif different := _first_difference(stored.options, expected.options):
        name, old, new = different
        difference = f", with {name} {one_line(old or 'none')}, not {one_line(new or 'none')}"
    raise W2VError(f"{where} belongs to another run{difference}{': ' if remedy else ''}{remedy}")


def _first_difference(stored: Mapping[str, str], expected: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return the first name with different values, and both values. A missing value is ""."""
    values = ((name, stored.get(name, ""), expected.get(name, "")) for name in sorted({*stored, *expected}))
    return next((value for value in values if value[1] != value[2]), None)


def checksum_of_files(paths: Iterable[PathLike]) -> str:
    """Return the SHA-256 of the contents of files, in this order; "" for no files.

    Raises:
        W2VError: A file cannot be read.
    """
    digests: list[bytes] = []
    for path in paths:
        with translate_os_errors(path), Path(path).open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").digest())
    return hashlib.sha256(b"".join(digests)).hexdigest() if digests else ""


@dataclass(frozen=True)
class State:
    """The base class of the state that a stopped command stores, so that it can be resumed."""

    identity: Identity


def read_state(path: Path, new: T, remedy: str) -> T:
    """Read the state of a command, which goes on with the run id in its file.

    Args:
        path: The file.
        new: The state to start with if the file does not exist.
        remedy: See `check_identity`.

    Raises:
        W2VError: The file is damaged, or belongs to a command with other inputs or options.
    """
    with translate_os_errors(path):
        if not path.exists():
            return new
    stored = read(type(new), path)
    check_identity(path, stored.identity, replace(new.identity, run_id=stored.identity.run_id), remedy)
    return stored


def write_state(path: Path, state: State) -> None:
    """Write the state of a command. Raise W2VError if the file cannot be written."""
    with atomic_write(path) as file:
        file.write(encode(state, path).encode())
