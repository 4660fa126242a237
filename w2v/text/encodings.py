"""Text in other encodings than UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from w2v.errors import SettingsError, W2VError, one_line
from w2v.system.files import Errors
from w2v.text.columns import encode

UTF_8 = "utf-8"
USUAL = ("latin-1", "cp1252", "cp949", "gb18030", "shift_jis", "utf-16")  # of many that Python knows


def encoding_name(name: str) -> str:
    """Python's name of an encoding. Raises SettingsError if it has no such encoding of text."""
    try:
        b"a".decode(name, "replace")  # which refuses codecs that are not encodings of text, such as zlib
        codecs.getincrementaldecoder(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise SettingsError(f"encoding {name!r}: not known to Python: give one such as {', '.join(USUAL)}") from None


def in_utf_8(name: str, chunks: Iterable[bytes], encoding: str, errors: Errors) -> Iterator[bytes]:
    """The text of a file, given in chunks of any size, in UTF-8.

    `name` is the file's name for messages. Bytes that are not in the encoding are treated as `errors` says, as in
    bytes.decode: W2VError names their position.
    """
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    end = 0
    try:
        for chunk in chunks:
            end += len(chunk)
            yield encode(decoder.decode(chunk))
        yield encode(decoder.decode(b"", final=True))
    except UnicodeDecodeError as error:
        # The decoder may have kept the beginning of a character from the chunk before.
        position = end - len(error.object) + error.start
        raise W2VError(
            f"{name}: byte {position}, in {error.object[error.start : error.start + 10]!r}, is not {encoding}: give "
            "another --encoding, or add --errors replace or --errors ignore"
        ) from None
    except UnicodeError as error:  # such as UTF-16 without a byte order mark
        raise W2VError(f"{name}: it is not {encoding}: {one_line(error)}: give another --encoding") from None
