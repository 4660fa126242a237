"""Remove HTML and XML markup from text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

MAX_TAG = 1 << 16  # bytes; a < without a > within this distance is text
INLINE = frozenset(
    b"a abbr b bdi bdo big cite code del dfn em font i ins kbd mark nobr q s samp small span strike strong sub sup tt "
    b"u var".split()
)
LINES = frozenset(
    b"address article aside blockquote body br dd div dl doc dt figcaption footer form h1 h2 h3 h4 h5 h6 head header "
    b"hr html li main nav ol option p pre section table td text th title tr ul".split()
)
_MARKUP = re.compile(
    rb"<!--|<!\[CDATA\[|\]\]>"
    rb"|</?([A-Za-z][^\s/<>]{0,99}+)[^<>]{0,%(max)d}+>"
    rb"|<[!?][^<>]{0,%(max)d}+>"
    rb"|&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[Xx][0-9A-Fa-f]{1,6});" % {b"max": MAX_TAG}
)
_UNFINISHED = re.compile(rb"(?:<[^<>]{0,%d}|&#?[A-Za-z0-9]{0,32}|\]{1,2})\Z" % (MAX_TAG + 100))
# The ends of markup with content that is not text. The last _END_BYTES of a piece may be the start of such an end.
_COMMENT_END = re.compile(rb"-->")
_ENDS = {name: re.compile(rb"</%s(?=[\s/>])" % name, re.IGNORECASE) for name in (b"script", b"style")}
_END_BYTES = len(b"</script")


def without_markup(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text of a document, in pieces of any size, without its markup.

    Removes comments, the content of script and style, declarations, the delimiters of CDATA sections, and tags. A tag
    is < followed by a letter, /, ! or ?, up to the next >. A tag in LINES becomes a newline, a tag in INLINE nothing,
    and any other tag a space. An entity becomes its character, or a space if the character is white space.
    """
    rest = b""
    end: re.Pattern[bytes] | None = None  # matches the end of an unclosed comment, script or style
    for piece in pieces:
        text, rest, end = _strip(rest + piece, end, last=False)
        yield text
    yield _strip(rest, end, last=True)[0]


def _strip(data: bytes, end: re.Pattern[bytes] | None, last: bool) -> tuple[bytes, bytes, re.Pattern[bytes] | None]:
    """Remove the markup from a piece of a document.

    Args:
        data: The piece.
        end: The pattern for the end of an element that an earlier piece left unclosed, or None.
        last: True for the last piece.

    Returns:
        The text; the bytes at the end that may be incomplete markup (none if `last`); and `end` for the next piece.
    """
    parts: list[bytes] = []
    position, stop = 0, -1  # stop: where possibly incomplete markup begins, or -1 before that is known
    while True:
        if end is not None:
            found = end.search(data, position)
            if not found:
                return b"".join(parts), data[max(position, len(data) - _END_BYTES) :], end
            position, stop = found.end() if end is _COMMENT_END else found.start(), -1
            end = None
        if stop < 0:
            unfinished = None if last else _UNFINISHED.search(data, max(position, len(data) - MAX_TAG - 200))
            stop = unfinished.start() if unfinished else len(data)
        found = _MARKUP.search(data, position, stop)
        if not found:
            return b"".join([*parts, data[position:stop]]), data[stop:], None
        parts.append(data[position : found.start()])
        position = found.end()
        markup = found[0]
        if markup == b"<!--":
            end = _COMMENT_END
            position -= 2  # so that <!--> counts as a complete comment
        elif markup.startswith(b"&"):
            parts.append(_character(markup))
        elif name := (found[1] or b"").lower():
            parts.append(b"" if name in INLINE else b"\n" if name in LINES else b" ")
            if markup[1:2] != b"/" and not markup.endswith(b"/>"):
                end = _ENDS.get(name)


def _character(entity: bytes) -> bytes:
    """Return the character of an HTML entity, or the text itself if there is no such entity."""
    character = html.unescape(entity.decode("ascii"))
    return b" " if character.isspace() else character.encode()
