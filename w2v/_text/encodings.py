"""Convert text from other encodings to UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from w2v._errors import SettingsError, W2VError, one_line
from w2v._system.files import Errors
from w2v._text.columns import encode

UTF_8 = "utf-8"
USUAL = ("latin-1", "cp1252", "cp949", "gb18030", "shift_jis", "utf-16")  # examples for an error message


def encoding_name(name: str) -> str:
    """Return Python's name of an encoding.

    Raises:
        SettingsError: If Python has no text encoding of this name.
    """
    try:
        b"a".decode(name, "replace")  # raises LookupError for codecs that are not text encodings, such as zlib
        codecs.getincrementaldecoder(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise SettingsError(f"encoding {name!r}: not known to Python: give one such as {', '.join(USUAL)}") from None


def to_utf_8(where: str, pieces: Iterable[bytes], encoding: str, errors: Errors) -> Iterator[bytes]:
    """Convert the text of a file, in pieces of any size, to UTF-8.

    Args:
        where: The start of error messages.
        pieces: The bytes of the file.
        encoding: The encoding of the file.
        errors: How to treat bytes that are not in the encoding, as in bytes.decode.

    Raises:
        W2VError: If `errors` is "strict" and some bytes are not in the encoding; the message gives their position.
    """
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    end = 0
    try:
        for piece in pieces:
            end += len(piece)
            yield encode(decoder.decode(piece))
        yield encode(decoder.decode(b"", final=True))
    except UnicodeError as error:
        # Without a byte order mark, `errors` is ignored, and the class of the error depends on the version of Python.
        if not isinstance(error, UnicodeDecodeError) or "BOM" in error.reason:
            raise W2VError(f"{where}: it is not {encoding}: {one_line(error)}: give another --encoding") from None
        # The decoder may have kept the first bytes of a character from the previous piece.
        position = end - len(error.object) + error.start
        raise W2VError(
            f"{where}: byte {position}, in {error.object[error.start : error.start + 10]!r}, is not {encoding}: give "
            "another --encoding, or add --errors replace or --errors ignore"
        ) from None
