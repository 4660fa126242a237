"""JSON in files, checked against a type before it is used."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from w2v.errors import W2VError, one_line
from w2v.system.files import errors_named, open_regular

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Integer = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Number = Integer | float
PathText = Annotated[str, msgspec.Meta(pattern=r"\A[^\0\ud800-\udc7f\udd00-\udfff]+\Z")]  # the possible file names


def decode(kind: type[T], text: str | bytes, where: object) -> T:
    """JSON text as an object of this type, a dataclass or one of Python's types.

    Raises W2VError, beginning with `where`, for any other text.
    """
    try:
        value = json.loads(text)  # not by msgspec, which refuses the lone surrogates that file names may hold
    except (ValueError, RecursionError) as error:
        raise W2VError(f"{where}: damaged: {one_line(error)}") from error
    return checked(kind, value, where)


def read(kind: type[T], path: Path, decoder: Callable[..., T] = msgspec.json.decode) -> T:
    """The content of a file of JSON, or of what another decoder of msgspec takes, as an object of this type.

    Raises W2VError for a file that cannot be read, or holds anything else.
    """
    with errors_named(path), open_regular(path) as file:
        content = file.read()
    try:
        return decoder(content, type=kind)
    except (ValueError, RecursionError, OverflowError) as error:
        raise W2VError(f"{path}: damaged: {one_line(error)}") from error


def strings(text: Any, where: object, before: bytes = b"", after: bytes = b"()") -> Iterator[tuple[str, bytes]]:
    """The strings in the bytes of a JSON list or object, each with what the group in `after` has found.

    `before` and `after` are regular expressions for the rest of an item. One by one, since all together take a hundred
    times as much memory as in the file. Raises W2VError, beginning with `where`, for anything else.
    """
    item = re.compile(rb"\s*" + before + rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"' + after + rb"\s*([,\]}])\s*", re.DOTALL)
    begin = re.compile(rb"\s*([\[{])\s*([\]}]\s*)?").match(text)
    place = begin.end() if begin else 0
    end = b"," if begin and not begin[2] else b""
    try:
        while end == b",":
            found = item.match(text, place)
            if not found:
                raise ValueError(f"its item at byte {place:,} is of another type")
            raw, place, end = found[1], found.end(), found[3]
            value = str(json.loads(b'"' + raw + b'"')) if b"\\" in raw else raw.decode()
            value.encode()  # not a lone surrogate
            yield value, found[2]
        if not begin or place != len(text):
            raise ValueError(f"no list ends at byte {place:,}")
    except ValueError as error:
        raise W2VError(f"{where}: damaged: {one_line(error)}") from error


def checked(kind: type[T], value: Any, where: object) -> T:
    """A value that was decoded from JSON as an object of this type. Raises W2VError as `decode` does."""
    try:
        return msgspec.convert(value, kind)
    except (ValueError, RecursionError) as error:
        raise W2VError(f"{where}: damaged: {one_line(error)}") from error


def encode(value: Any, where: object) -> str:
    """A value as JSON text that `decode` reads. Raises W2VError, beginning with `where`, if JSON cannot hold it."""
    try:
        return json.dumps(value, default=msgspec.to_builtins)
    except (TypeError, ValueError, RecursionError) as error:
        raise W2VError(f"{where}: not written: {one_line(error)}") from error
