"""Read graphs from edge lists, NumPy archives of CSR matrices (.npz) and Matrix Market files (.mtx)."""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError, one_line, pluralise, translate_errors
from w2v.formats.npy import NUMBERS, read_open
from w2v.graph._edges import BadLine, split_edges
from w2v.graph.graph import Graph, named_once, number_names
from w2v.options import check_options, option
from w2v.progress import Meter, Report
from w2v.settings import GRAPH
from w2v.system.files import (
    SIGNATURE_BYTES,
    ZIP,
    check_unchanged,
    open_regular,
    text_start,
    translate_os_errors,
)
from w2v.system.threads import map_in_order
from w2v.text._text import FIRST_TYPE, SENTENCE_END_ID, Items, Malformed, Types
from w2v.text.columns import JSON_START, columnar_kind
from w2v.text.corpus import Corpus
from w2v.text.decompress import decompress
from w2v.text.words import KeyType, Words

BLOCK_BYTES = 1 << 19
MAX_LINE_BYTES = 1 << 20
DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ","}  # names of delimiters for --delimiter
WHITE_SPACE = 0  # for split_edges: fields are separated by any run of white space
MATRIX_MARKET = b"%%MatrixMarket"
OTHER_FORMATS = {  # the start of an edge that shows that the file is not an edge list
    "JSON": JSON_START,
    "XML": re.compile(rb"<\?xml\s"),
    "GML": re.compile(rb"graph\s*\["),
    "Pajek's format": re.compile(rb"\*vertices\s", re.IGNORECASE),
}
EDGE_LIST = "write an edge on each line, two nodes with a tab between them"  # the advice for other formats
NUMBER = re.compile(rb"[-+]?\d+(\.\d*)?")
MANY_NODES = 1 << 18  # a Matrix Market file of any size may declare this many nodes
PROBLEMS = {  # why a line is not an edge, and what to do; see _edges.pyx
    "field": "has only one field, and an edge has two nodes: name the character between them with --delimiter",
    "weight": "has no weight: leave out --weighted, or give each edge a third field",
    "number": "has a weight that is not a number from 0 to 3.4e38; begin a header line with #",
    "empty": "has an empty field: give each node a name, or name another --delimiter",
}

ARCHIVE_ERRORS = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, LookupError)

log = logging.getLogger("w2v")


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """The options for reading a graph.

    Raises:
        SettingsError: For impossible values.
    """

    weighted: bool = option(
        False,
        "Choose edges by weight: the third field of an edge list, the values of a matrix, or the attribute weight of "
        "networkx. Otherwise all edges weigh the same.",
        GRAPH,
        flags=("--weighted/--unweighted",),
    )
    directed: bool = option(
        False,
        "Follow edges only from the first node to the second.",
        GRAPH,
        flags=("--directed/--undirected",),
    )
    delimiter: str | None = option(
        None,
        "The character between the fields of an edge list: tab, space (any white space), comma, or another character.",
        GRAPH,
        default_text="a tab, comma or semicolon if the first edge has one, otherwise space",
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.delimiter is not None:
            delimiter_code(self.delimiter)  # raises SettingsError


def delimiter_code(delimiter: str) -> int:
    """Return the code of a delimiter for `split_edges`.

    Raises:
        SettingsError: If it is not one ASCII character.
    """
    character = DELIMITERS.get(delimiter, delimiter)
    if len(character) != 1 or not character.isascii() or character in "\n\r\0#%":
        raise SettingsError(f"delimiter {delimiter[:20]!r}: it must be tab, space, comma, or one ASCII character")
    return WHITE_SPACE if character == " " else ord(character)


def read_graph(
    corpus: Corpus, options: GraphOptions | None = None, *, workers: int = 1, progress: Report | None = None
) -> Graph:
    """Read a graph from one or more files. Several edge lists together are one graph.

    Args:
        corpus: The files. Edge lists and Matrix Market files may be compressed. The format is recognised by content.
        options: How to read them.
        workers: The number of threads.
        progress: Called regularly with a Progress of phase "read".

    Raises:
        W2VError: If a file cannot be read.
    """
    options = options or GraphOptions()
    graph = None
    for name, head in ((name, _head(name)) for name in corpus.files if name != "-"):
        if re.match(ZIP, head):
            if len(corpus.files) > 1:
                raise W2VError(f"{name}: a graph in .npz format is a whole graph: name only this file")
            graph = _read_npz(name, options, workers)
    if graph is None:
        graph = _EdgeReader(corpus, options, workers, progress).graph()
    return graph


def check_edges(graph: Graph, where: str) -> None:
    """Log how many nodes have no edges, because their vectors say nothing.

    Raises:
        W2VError: If no node has an edge. The message begins with `where`.
    """
    if not len(graph.neighbours):
        raise W2VError(f"{where} has no edges")
    if isolated := graph.isolated:
        log.warning("%s without edges: kept, but their vectors are random", pluralise(isolated, "node"))


def _head(name: str) -> bytes:
    with translate_os_errors(name), Path(name).open("rb") as file:
        return file.read(SIGNATURE_BYTES)


# -- edge lists and Matrix Market -------------------------------------------------------------------


class _Block(NamedTuple):
    """Whole lines of a file."""

    text: bytes
    name: str  # of the file, for messages
    line: int  # the number of the first line
    delimiter: int


class _MatrixHeader(NamedTuple):
    """What the first lines of a Matrix Market file say."""

    nodes: int
    entries: int
    symmetric: bool


class _EdgeReader:
    """Reads the edges of text files, in several threads."""

    def __init__(self, corpus: Corpus, options: GraphOptions, workers: int, progress: Report | None) -> None:
        self.corpus, self.options, self.workers = corpus, options, workers
        self.delimiter = None if options.delimiter is None else delimiter_code(options.delimiter)
        self.meter, self.total, self.done = Meter(progress, "read"), corpus.total_bytes, 0
        self.header: _MatrixHeader | None = None
        self.unpacked = 0

    def graph(self) -> Graph:
        """Read all edges and build the graph."""
        types = Types()
        edges: list[tuple[NDArray[np.uint32], NDArray[np.float32] | None]] = []
        weighted = self.options.weighted

        def scan(block: _Block) -> tuple[_Block, Any, NDArray[np.float32] | None]:
            try:
                names, offsets, weights = split_edges(block.text, block.delimiter, weighted)
            except BadLine as error:
                position, problem = error.args
                raise self._bad_line(block, position, PROBLEMS[problem]) from None
            return block, types.scan(Items(names, offsets, np.array([len(offsets) - 1]))), weights

        for block, scanned, weights in map_in_order(scan, self._blocks(), self.workers):
            try:
                ids = types.merge(scanned)
                edges.append((ids[ids != SENTENCE_END_ID], weights))
            except Malformed:
                raise self._not_utf8(block) from None
            self.meter(self.done, self.total)
        self.meter(self.done, self.done)
        lengths = types.lengths()[FIRST_TYPE:]
        blob = np.concatenate([np.empty(0, np.uint8), *types.strings()])
        names = Words(blob, np.cumsum(np.append(0, lengths)))
        if self.header:
            return self._matrix(edges, names, self.header)
        return Graph.from_blocks(edges, names, directed=self.options.directed, workers=self.workers)

    def _matrix(self, edges: list[tuple[Any, Any]], names: Words, header: _MatrixHeader) -> Graph:
        """Return the graph of a Matrix Market file, with its rows in order as nodes."""
        where = self.corpus.files[0]
        if header.nodes > max(MANY_NODES, self.unpacked):
            raise W2VError(
                f"{where}: refused: it declares {header.nodes:,} rows in {self.unpacked:,} bytes: nearly all nodes "
                "would be without edges"
            )
        found = sum(len(ids) for ids, _ in edges) // 2
        if found != header.entries:
            raise W2VError(f"{where}: {found:,} entries, but its header declares {header.entries:,}: it is incomplete")
        try:
            rows = np.array([0, 0, *(int(name) for name in names)], np.int64)
        except (ValueError, OverflowError):
            wrong = next(name for name in names if not re.fullmatch(r"\d{1,18}", name, re.ASCII))
            raise W2VError(f"{where}: {wrong!r:.60} is not the number of a row") from None
        if len(names) and not 1 <= rows[FIRST_TYPE:].min() <= rows.max() <= header.nodes:
            wrong_row = next(row for row in rows[FIRST_TYPE:].tolist() if not 1 <= row <= header.nodes)
            raise W2VError(f"{where}: row {wrong_row} does not exist: its header declares {header.nodes:,} rows")
        ids = (rows + FIRST_TYPE - 1).astype(np.uint32)
        blocks = [(ids[block], weights) for block, weights in edges]
        edges.clear()
        directed = self.options.directed and not header.symmetric
        names = number_names(1, header.nodes)
        return Graph.from_blocks(blocks, names, directed=directed, key_type="int", workers=self.workers)

    def _blocks(self) -> Iterator[_Block]:
        """Yield the lines of all files in blocks. A file without a last newline gets one."""
        for name in self.corpus.files:
            display = "standard input" if name == "-" else name
            line, rest, delimiter = 1, b"", self.delimiter
            for number, chunk in enumerate(itertools.chain(self._chunks(name, display), [b"\n"])):
                text = rest + chunk
                if number == 0 and text.startswith(MATRIX_MARKET):
                    text, line = self._skip_matrix_header(display, text)
                    delimiter = WHITE_SPACE
                end = text.rfind(b"\n") + 1
                rest = text[end:]
                if end:
                    block = _Block(text[:end], display, line, delimiter or WHITE_SPACE)
                    if delimiter is None:
                        delimiter = _detected(block)
                        block = block._replace(delimiter=delimiter or WHITE_SPACE)
                    if line == 1:
                        _check_first_lines(block)
                    yield block
                    line += text.count(b"\n", 0, end)
                if len(rest) > MAX_LINE_BYTES:
                    raise W2VError(f"{display}, line {line}: more than {MAX_LINE_BYTES >> 20} MB, too long for an edge")

    def _chunks(self, name: str, display: str) -> Iterator[bytes]:
        """Yield the decompressed bytes of a file. The first piece has at least SIGNATURE_BYTES, or the whole file."""
        with (
            translate_os_errors(display),
            contextlib.nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as stream,
            check_unchanged(display, stream),
        ):
            head, started = b"", False
            for chunk in decompress(display, self._read(stream)):
                self.unpacked += len(chunk)
                if started:
                    yield chunk
                    continue
                head += chunk
                if len(head) >= SIGNATURE_BYTES:
                    started = True
                    yield _text_start(display, head)
            if not started:
                yield _text_start(display, head)

    def _read(self, stream: Any) -> Iterator[bytes]:
        while chunk := stream.read(BLOCK_BYTES):
            self.done += len(chunk)
            yield chunk

    def _skip_matrix_header(self, display: str, text: bytes) -> tuple[bytes, int]:
        """Read the header of a Matrix Market file. Return the text after it and the number of the next line."""
        if len(self.corpus.files) > 1:
            raise W2VError(f"{display}: a Matrix Market file is a whole graph: name only this file")
        lines = text.split(b"\n")
        words = lines[0].decode("latin-1").lower().split()
        if len(words) != 5 or words[1:3] != ["matrix", "coordinate"]:
            raise W2VError(f"{display}, line 1: only matrices in coordinate format have edges: write a sparse matrix")
        field, symmetry = words[3:]
        if field not in ("real", "double", "integer", "pattern") or symmetry not in ("general", "symmetric"):
            raise W2VError(
                f"{display}, line 1: a {field} {symmetry} matrix: only real weights of 0 or more are possible"
            )
        if field == "pattern" and self.options.weighted:
            raise W2VError(f"{display}, line 1: a pattern has no weights: leave out --weighted")
        number = next((number for number, line in enumerate(lines) if line.strip() and line[:1] != b"%"), len(lines))
        if number == len(lines) or number + 1 == len(lines):
            raise W2VError(f"{display}: it ends before its first entry, or its comments are too long")
        sizes = lines[number].split()
        if len(sizes) != 3 or not all(re.fullmatch(rb"\d{1,18}", size) for size in sizes):
            raise W2VError(f"{display}, line {number + 1}: expected the numbers of rows, columns and entries")
        rows, columns, entries = map(int, sizes)
        if rows != columns:
            raise W2VError(f"{display}: {rows:,} rows and {columns:,} columns: the matrix of a graph is square")
        self.header = _MatrixHeader(rows, entries, symmetry == "symmetric")
        return b"\n".join(lines[number + 1 :]), number + 2

    def _bad_line(self, block: _Block, position: int, problem: str) -> W2VError:
        line = block.text[position : position + 200].split(b"\n")[0].decode(errors="replace").strip()
        number = block.line + block.text.count(b"\n", 0, position)
        return W2VError(f"{block.name}, line {number}: {line[:60]!r} {problem}")

    def _not_utf8(self, block: _Block) -> W2VError:
        for number, line in enumerate(block.text.split(b"\n"), block.line):
            try:
                line.decode()
            except UnicodeDecodeError:
                return W2VError(f"{block.name}, line {number}: {line[:60]!r} is not UTF-8: convert the file with iconv")
        raise AssertionError("all lines are UTF-8")


def _text_start(display: str, head: bytes) -> bytes:
    """Return the start of a text file without its byte order mark. Raise W2VError if it is not text."""
    if kind := columnar_kind(head):
        raise W2VError(f"{display} is {kind}: {EDGE_LIST}")
    return text_start(display, head)


def _first_edges(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the first lines that are neither empty nor comments, each with the number of lines before it."""
    for number, line in enumerate(text.split(b"\n", 1000)[:1000]):
        if line.strip() and line.lstrip()[:1] not in b"#%":
            yield number, line.strip()


def _detected(block: _Block) -> int | None:
    """Return the delimiter in the first edge of a block, or None if it contains no edge.

    Raises:
        W2VError: If it may be a comma or a semicolon.
    """
    for number, line in _first_edges(block.text):
        fields = line.partition(b"{")[0]  # networkx writes the attributes of an edge as a dict, with commas
        found = [character for character in "\t,;" if character.encode() in fields]
        if found == [",", ";"]:
            raise W2VError(
                f"{block.name}, line {block.line + number} has a comma and a semicolon: name the character between its "
                "fields with --delimiter"
            )
        return ord(found[0]) if found else WHITE_SPACE
    return None


def _check_first_lines(block: _Block) -> None:
    """Log a warning if the first edge of a file looks like a header.

    Raises:
        W2VError: If the file is binary, has another format than an edge list, or is CSV with quotation marks, which
            would become a part of names.
    """
    if b"\0" in block.text:
        raise W2VError(f"{block.name} is binary, not text")
    edges = list(itertools.islice(_first_edges(block.text), 2))
    for number, line in edges[:1]:
        where = f"{block.name}, line {block.line + number}"
        for kind, start in OTHER_FORMATS.items():
            if start.match(line):
                raise W2VError(f"{where} is {kind}: {EDGE_LIST}")
        if line.startswith(b'"') and chr(block.delimiter) in ",;":
            raise W2VError(f"{where} has quotation marks, which edge lists lack: write tabs between names without them")
    delimiter = None if block.delimiter == WHITE_SPACE else bytes([block.delimiter])
    are_numbers = [[bool(NUMBER.fullmatch(name.strip())) for name in line.split(delimiter)[:2]] for _, line in edges]
    if are_numbers == [[False, False], [True, True]]:
        log.warning(
            "%s: %s looks like a header, but counts as an edge: begin the line with # to leave it out",
            where,
            one_line(edges[0][1].decode(errors="replace"))[:60],
        )


# -- NumPy archives ---------------------------------------------------------------------------------


def _read_npz(name: str, options: GraphOptions, workers: int) -> Graph:
    """Read a CSR matrix that scipy.sparse.save_npz or PecanPy wrote."""
    with translate_os_errors(name), open_regular(name) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                arrays = {info.filename: _member(name, archive, info) for info in archive.infolist()[:20]}
        except Exception as error:
            is_damage = isinstance(error, ARCHIVE_ERRORS) or type(error).__module__ in ("zlib", "_lzma", "struct")
            if isinstance(error, W2VError) or not is_damage:
                raise
            raise W2VError(f"{name}: a damaged archive: {one_line(error)}") from error
    form = arrays.get("format.npy")
    if form is not None and form.ravel()[:1].tolist() not in ([b"csr"], ["csr"]):
        raise W2VError(f"{name}: a matrix in another format than CSR: save matrix.tocsr()")
    missing = [key for key in ("indptr", "indices", "data") if f"{key}.npy" not in arrays]
    if missing:
        raise W2VError(f"{name}: it has no array {missing[0]!r}: save a CSR matrix with scipy.sparse.save_npz")
    indptr, indices, data = (cast(NDArray[Any], arrays[f"{key}.npy"]) for key in ("indptr", "indices", "data"))
    shape = arrays.get("shape.npy")
    if shape is not None and shape.ravel().tolist() != [len(indptr.ravel()) - 1] * 2:
        raise W2VError(
            f"{name}: a matrix of shape {tuple(shape.ravel()[:2].tolist())}: the matrix of a graph is square"
        )
    weights = data if options.weighted else None
    names, key_type = _ids(name, arrays.get("IDs.npy"))
    graph = Graph.from_rows(name, indptr, indices, weights, names, directed=options.directed, workers=workers)
    graph.key_type = key_type
    return graph


def _member(name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any] | None:
    """Read an array of an archive. Return None for a member that is not an array."""
    if not info.filename.endswith(".npy"):
        return None
    with archive.open(info) as member:
        stream = cast(BufferedIOBase, member)
        return read_open(f"{name}, {info.filename:.100}", stream, info.file_size, NUMBERS + "bUS")


def _ids(name: str, ids: NDArray[Any] | None) -> tuple[Words | None, KeyType]:
    """Return the names of nodes in an archive of PecanPy, and their type."""
    if ids is None:
        return None, "int"
    if ids.ndim != 1 or ids.dtype.kind not in "USiu":
        raise W2VError(f"{name}: its IDs are not a row of names")
    with translate_errors(f"{name}: its IDs are not text", ValueError, SystemError):
        names = [each.decode() if isinstance(each, bytes) else str(each) for each in ids.tolist()]
    return named_once(name, names), "str" if ids.dtype.kind in "US" else "int"
