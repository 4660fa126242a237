"""Read and write JSON, and check it against a type before it is used."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from w2v.errors import translate_errors
from w2v.system.files import open_regular, translate_os_errors

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Integer = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Number = Integer | float
PathText = Annotated[str, msgspec.Meta(pattern=r"\A[^\0\ud800-\udc7f\udd00-\udfff]+\Z")]  # any valid file name


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


def iter_json_strings(
    data: Any, where: object, prefix_pattern: bytes = b"", suffix_pattern: bytes = b"()"
) -> Iterator[tuple[str, bytes]]:
    """Yield the strings in a JSON list or object one by one, each with the match of the group in `suffix_pattern`.

    A list of all strings would take a hundred times the memory of the file.

    Args:
        data: The bytes of the JSON list or object.
        where: The start of error messages.
        prefix_pattern: A regular expression for the part of each item before the string.
        suffix_pattern: A regular expression, with one group, for the part of each item after the string.

    Raises:
        W2VError: If the data has any other structure.
    """
    item = re.compile(
        rb"\s*" + prefix_pattern + rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"' + suffix_pattern + rb"\s*([,\]}])\s*", re.DOTALL
    )
    begin = re.compile(rb"\s*([\[{])\s*([\]}]\s*)?").match(data)
    position = begin.end() if begin else 0
    end = b"," if begin and not begin[2] else b""
    with translate_errors(f"{where}: damaged", ValueError):
        while end == b",":
            match = item.match(data, position)
            if not match:
                raise ValueError(f"its item at byte {position:,} is of another type")
            raw, position, end = match[1], match.end(), match[3]
            value = str(json.loads(b'"' + raw + b'"')) if b"\\" in raw else raw.decode()
            value.encode()  # raises an error for a lone surrogate
            yield value, match[2]
        if not begin or position != len(data):
            raise ValueError(f"the list does not end at byte {position:,}")


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
