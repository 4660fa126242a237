"""Read the lines of a text, or the cells in a column of a table, as a model reads its texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from w2v._errors import W2VError
from w2v._system.files import Errors
from w2v._text._text import PADDING, Items
from w2v._text.corpus import Corpus, TextBlock
from w2v._text.encodings import encoding_name
from w2v._text.idstore import locate_malformed
from w2v._text.markup import without_markup
from w2v._text.normalise import Normaliser, TextOptions, label_pattern
from w2v._text.sessions import SessionBlock


def read_lines(
    texts: Corpus,
    options: TextOptions,
    column: str | None,
    encoding: str,
    errors: Errors,
    label_prefix: str = "",
    action: str = "skipped",
) -> Iterator[tuple[bytes | Items, int]]:
    """Yield blocks of normalised text, and the number of bytes read so far. Lists of items are yielded as Items.

    A text is a line of a plain file, or a cell in the `column` of a table; a missing cell is an empty line. A block
    ends with PADDING, and may end inside a line.

    Args:
        texts: The texts.
        options: How to normalise the texts.
        column, encoding, errors, action: See Corpus.blocks.
        label_prefix: What begins the words that stay as they are; "" for none.

    Raises:
        W2VError: A file is not text, or it is a table and `column` is None.
        SettingsError: `encoding` is unknown.
    """
    normalise = Normaliser(options, errors, label_pattern(label_prefix) if label_prefix else None)
    rest = b""
    encoding = encoding_name(encoding)
    for block in texts.blocks(column, as_lines=True, encoding=encoding, errors=errors, action=action):
        if isinstance(block, SessionBlock):
            yield block.items, block.bytes_done
            continue
        assert isinstance(block, TextBlock)
        with locate_malformed(block):
            text = normalise.to_valid_utf8(block.text)
        if options.strip_markup:
            *lines, rest = (rest + text[: -len(PADDING)]).split(b"\n")
            plain = (b"".join(without_markup([line])).replace(b"\n", b" ") + b"\n" for line in lines)
            text = b"".join([*plain, PADDING])
        yield normalise(text), block.bytes_done


def read_whole_lines(texts: Corpus, *arguments: Any, **options: Any) -> Iterator[bytes]:
    """Yield blocks of whole lines, each followed by PADDING. The arguments are those of `read_lines`.

    Raises:
        W2VError: As in `read_lines`, or for lists of items.
    """
    rest = b""
    for block, _ in read_lines(texts, *arguments, **options):
        if not isinstance(block, bytes):
            raise W2VError(f"{texts} has lists of items: give texts, or lists of words")
        text = rest + block[: -len(PADDING)]
        end = text.rfind(b"\n") + 1
        yield text[:end] + PADDING
        rest = text[end:]
