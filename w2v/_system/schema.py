"""Read and write JSON, and check it against a type before it is used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from w2v._errors import translate_errors
from w2v._system.files import open_regular, translate_os_errors

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Integer = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Number = Integer | float


def decode(kind: type[T], text: str | bytes, where: object) -> T:
    """Decode JSON text into an object of a type.

    Args:
        kind: The type: a dataclass or a built-in type.
        text: The JSON text.
        where: The start of error messages.

    Raises:
        W2VError: If the text is not JSON, or does not match the type.
    """
    with translate_errors(f"{where}: damaged", ValueError, RecursionError):
        value = json.loads(text)  # msgspec would refuse lone surrogates, which file names may contain
    return convert(kind, value, where)


def read(kind: type[T], path: Path, decoder: Callable[..., T] = msgspec.json.decode) -> T:
    """Read a file in JSON, or in the format of another msgspec decoder, into an object of a type.

    Raises:
        W2VError: If the file cannot be read, or its content does not match the type.
    """
    with translate_os_errors(path), open_regular(path) as file:
        content = file.read()
    with translate_errors(f"{path}: damaged", ValueError, RecursionError, OverflowError):
        return decoder(content, type=kind)


def convert(kind: type[T], value: Any, where: object) -> T:
    """Convert a value that was decoded from JSON into an object of a type. The arguments are as in `decode`.

    Raises:
        W2VError: If the value does not match the type.
    """
    with translate_errors(f"{where}: damaged", ValueError, RecursionError):
        return msgspec.convert(value, kind)


def encode(value: Any, where: object) -> str:
    """Encode a value as JSON for `decode`.

    Args:
        value: The value.
        where: The start of error messages.

    Raises:
        W2VError: If JSON cannot represent the value.
    """
    with translate_errors(f"{where}: not written", TypeError, ValueError, RecursionError):
        return json.dumps(value, default=msgspec.to_builtins)
