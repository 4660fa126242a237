"""Where text comes from: files, folders, globs, compressed files, standard input, lists of tokens."""

import contextlib
import glob
import itertools
import os
import stat
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

from w2v.errors import W2VError
from w2v.files import HEAD, PathLike, text_start
from w2v.text._text import PADDING, last_space
from w2v.text.decompress import decompressed

Source = PathLike | Sequence[PathLike] | Iterable[Iterable[str]]

BLOCK = 1 << 19  # bytes, to stay in the second-level cache while it is scanned
CACHE_SUFFIX = ".w2v-ids"  # of files that are not text, wherever they are kept


class Block(NamedTuple):
    """A piece of the text that begins and ends between tokens, with PADDING behind it."""

    text: bytes
    origins: list[tuple[int, str, int]]  # from this position on: the file's name, the position in its text
    bytes_done: int  # read from disk up to here

    def locate(self, position: int) -> tuple[str, int]:
        """The file that a position in `text` comes from, and the position in that file's text."""
        start, name, offset = self.origins[bisect_right(self.origins, position, key=lambda origin: origin[0]) - 1]
        return name, offset + position - start


class Corpus:
    """A user's text: a path or a list of paths, or an iterable of lists of tokens.

    A path is a file, a folder (all files in it at any depth, sorted by name; hidden files, kept ids and links to
    folders are left out), a glob pattern, or "-" for standard input. Files are plain text, gzip, bzip2, xz or
    zstandard; their content tells. An iterable is read once, one list at a time. W2VError says what cannot
    be read.

    `total_bytes` is the size of all files on disk; None if it cannot be known.
    """

    def __init__(self, source: Source) -> None:
        self._sentences: Iterable[Iterable[str]] = ()
        self._files: list[str] = []
        if isinstance(source, str | os.PathLike):
            self._files = _expand(source)
        elif isinstance(source, list | tuple) and source and all(isinstance(x, str | os.PathLike) for x in source):
            self._files = [file for path in cast(Sequence[PathLike], source) for file in _expand(path)]
        elif isinstance(source, Iterable):
            self._sentences = cast(Iterable[Iterable[str]], source)
        else:
            kind = type(source).__name__
            raise W2VError(f"a corpus is a path, a list of paths, or lists of tokens, not of type {kind}")
        self._infos = [_regular(file) for file in self._files]
        self._bytes_read = 0
        self.total_bytes: int | None = None
        if self.fingerprint() is not None:
            self.total_bytes = sum(info.st_size for info in self._infos if info)

    @property
    def files(self) -> list[str]:
        """The files that the paths stand for, "-" for standard input."""
        return list(self._files)

    def __str__(self) -> str:
        if not self._files:
            return "the lists of tokens"
        more = f" and {len(self._files) - 1} more" if len(self._files) > 1 else ""
        return _display(self._files[0]) + more

    def fingerprint(self) -> list[tuple[str, int, int]] | None:
        """(absolute path, bytes, time of last change in ns) per file; None if they can be read only once."""
        if not self._files or None in self._infos:
            return None
        return [
            (str(Path(file).resolve()), info.st_size, info.st_mtime_ns)
            for file, info in zip(self._files, self._infos, strict=True)
            if info
        ]

    def blocks(self) -> Iterator[Block]:
        """The text in blocks of about half a MiB; a newline ends every file and every list of tokens."""
        parts: list[bytes | memoryview] = []
        size = 0
        origins: list[tuple[int, str, int]] = []
        expected = ("", 0)
        for name, offset, chunk in itertools.chain(self._lines(), *map(self._text, self._files)):
            if (name, offset) != expected:
                origins.append((size, name, offset))
            expected = (name, offset + len(chunk))
            size += len(chunk)
            cut = last_space(chunk) + 1 if size >= BLOCK else 0
            if cut:
                yield Block(b"".join([*parts, memoryview(chunk)[:cut], PADDING]), origins, self._bytes_read)
                parts, size = [chunk[cut:]], len(chunk) - cut
                origins = [(0, name, offset + cut)]
            else:
                parts.append(chunk)
        if size:
            yield Block(b"".join([*parts, PADDING]), origins, self._bytes_read)

    def _lines(self) -> Iterator[tuple[str, int, bytes]]:
        """The lists of tokens as lines of text: (name for messages, position in the text, line)."""
        offset = 0
        for number, sentence in enumerate(self._sentences):
            line = _line(number, sentence)
            yield str(self), offset, line
            offset += len(line)

    def _text(self, file: str) -> Iterator[tuple[str, int, bytes]]:
        """The text of a file, decompressed: (name for messages, position in the text, some bytes of it)."""
        name = _display(file)
        try:
            with contextlib.nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as stream:
                chunks = decompressed(name, self._read(stream))
                head = b""
                for chunk in chunks:
                    head += chunk
                    if len(head) >= HEAD:
                        break
                text = text_start(name, head)
                offset = len(head) - len(text)
                for chunk in itertools.chain([text], chunks, [b"\n"]):
                    yield name, offset, chunk
                    offset += len(chunk)
        except OSError as error:
            raise W2VError(f"cannot read {name}: {error.strerror or error}") from error

    def _read(self, stream: IO[bytes]) -> Iterator[bytes]:
        while chunk := stream.read(BLOCK):
            self._bytes_read += len(chunk)
            yield chunk


def _expand(path: PathLike) -> list[str]:
    """The files that a path stands for."""
    name = os.fspath(path)
    if name == "-":
        return [name]
    if not name:
        raise W2VError("the path of a corpus is empty")
    if Path(name).is_dir():
        files = [file for file in sorted(_walk(name)) if file.is_file() or not file.exists()]
        if not files:
            raise W2VError(f"folder {name} holds no files to read")
        return [str(file) for file in files]
    if not os.path.lexists(name) and glob.has_magic(name):
        matches = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 (Path.glob refuses absolute patterns)
        if not matches:
            raise W2VError(f"no file matches {name}")
        return [file for match in matches for file in _expand(match)]
    return [name]


def _walk(folder: str) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise W2VError(f"cannot read folder {error.filename}: {error.strerror}") from error

    for root, folders, files in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(root, name) for name in files if not name.startswith(".") and not name.endswith(CACHE_SUFFIX))


def _regular(file: str) -> os.stat_result | None:
    """What identifies the content of a readable file; None if it can be read only once."""
    if file == "-":
        return None
    try:
        info = Path(file).stat()
    except FileNotFoundError:
        hint = "; sentences are given as lists of tokens" if len(file.split()) > 1 else ""
        raise W2VError(f"corpus file {file!r} does not exist{hint}") from None
    except OSError as error:
        raise W2VError(f"cannot read {file}: {error.strerror}") from error
    if not os.access(file, os.R_OK):
        raise W2VError(f"cannot read {file}: permission denied")
    return info if stat.S_ISREG(info.st_mode) else None


def _display(file: str) -> str:
    return "standard input" if file == "-" else file


def _line(number: int, sentence: Iterable[str]) -> bytes:
    """A list of tokens as a line of text."""
    if isinstance(sentence, str | bytes) or not isinstance(sentence, Iterable):
        kind = type(sentence).__name__
        raise W2VError(f"sentence {number} is of type {kind}: give a list of tokens, such as text.split()")
    tokens = list(sentence)
    if not all(isinstance(token, str) for token in tokens):
        raise W2VError(f"sentence {number} holds tokens that are not str")
    line = " ".join(tokens)
    if line.split() != tokens:  # it may split at white space beyond ASCII, which is none of ours
        for token in map(_encode, tokens):
            if not token:
                raise W2VError(f"sentence {number} holds an empty token: leave it out")
            if token.split() != [token]:
                raise W2VError(f"token {token.decode(errors='replace')[:60]!r} contains white space: join it with '_'")
    return _encode(line + "\n")


def _encode(text: str) -> bytes:
    """UTF-8; a lone surrogate becomes bytes that are not, to be handled as any malformed bytes are."""
    return text.encode("utf-8", "surrogatepass")
