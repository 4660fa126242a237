"""Read graphs from edge lists and adjacency lists, and other files with networkx and scipy."""

from __future__ import annotations

import ast
import contextlib
import csv
import itertools
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError, pluralise
from w2v._graph._edges import BadLine, split_edges
from w2v._graph.formats import LINES, MATRICES, NOT_READ, GraphFormat, detect_format, read_with_library
from w2v._graph.graph import TWO_KINDS, Graph, note_unused_weights
from w2v._options import check_options, option
from w2v._progress import Meter, Report
from w2v._settings import GRAPH
from w2v._system.files import text_start
from w2v._system.threads import map_in_order
from w2v._text._text import FIRST_TYPE, SENTENCE_END_ID, Items, Malformed, Types
from w2v._text.columns import NUMBER, columnar_kind, find_column, has_header, is_position
from w2v._text.corpus import Corpus
from w2v._text.words import Words

MAX_LINE_BYTES = 1 << 20
SAMPLE_LINES = 100  # number of edges from which the columns of a file are recognised
DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ","}  # names of delimiters for --delimiter
KONECT = re.compile(rb"%\s*(sym|asym|bip)\s")  # the first line of a file of the KONECT project
NOT_AN_EDGE = re.compile(rb"(?m)^(?![ea][ \t]).*$")  # in a DIMACS file
ATTRIBUTES = re.compile(rb"(?m)\{.*\}(?=\s*$)")  # of an edge, as networkx writes them
END_NAMES = (("source", "target"), ("from", "to"), ("src", "dst"), ("node1", "node2"))  # in the header of an edge list
WEIGHT_NAMES = ("weight", "weights", "w", "value", "count")
SIZE = re.compile(r"[0-9]{1,18}")
NAME_COLUMNS = "name the columns of the nodes, such as --edges 1,3, or for adjacency lists add --format adjlist"
NAME_PAIR_COLUMNS = "name the columns of the input and the context, such as --edges 1,3"
EDGE_LIST = "write an edge on each line, two nodes with a tab between them"
PROBLEMS = {  # why a line is not an edge, and what to do; see _edges.pyx
    "fields": "has {found}, and the first line has {fields}: {name_columns}",
    "number": "has a weight that is not a number from 0 to 3.4e38: {name_columns}",
    "quotes": "has quotation marks that do not match: write tabs between names without them",
    "empty": "has an empty field: give each node a name, or name another --delimiter",
}

log = logging.getLogger("w2v")


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """The options for reading a graph.

    Raises:
        SettingsError: For impossible values.
    """

    graph_format: GraphFormat | None = option(
        None,
        "The format of the graph: an edge list (edges), adjacency lists (adjlist), or a format of networkx or scipy.",
        GRAPH,
        flags=("--format", "--graph-format"),
        default_text="recognised by content or extension",
    )
    edges: str | None = option(
        None,
        "The columns of an edge list with the two nodes, and possibly the weight: their numbers, such as 2,3, or their "
        "names in a header. A third column is used as with --weighted. With --pairs, the columns of the input, the "
        "context and possibly the weight.",
        GRAPH,
        default_text="the first two, and the third is the weight",
    )
    delimiter: str | None = option(
        None,
        "The character between the fields of an edge list: tab, space (any white space), comma, or another character.",
        GRAPH,
        default_text="a tab, comma or semicolon if the first edge has one, otherwise space",
    )
    weighted: bool = option(
        False,
        "Choose edges by weight: the third field of an edge list, the values of a matrix, or the attribute weight of "
        "networkx. Otherwise all edges weigh the same.",
        GRAPH,
        flags=("--weighted/--unweighted",),
    )
    directed: bool = option(
        False,
        "Follow edges only from the first node to the second. Formats of networkx say whether they are directed.",
        GRAPH,
        flags=("--directed/--undirected",),
    )
    bipartite: bool = option(
        False,
        "The first nodes of edges, or the rows of a matrix, are another kind of nodes than the second. So user 1 and "
        "item 1 are two nodes: left:1 and right:1, or with the names of a header. The default with --pairs; "
        "names then stay as they are.",
        GRAPH,
        flags=("--bipartite/--unipartite",),
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.delimiter is not None:
            character = DELIMITERS.get(self.delimiter, self.delimiter)
            if len(character) != 1 or not character.isascii() or character in "\n\r\0#%":
                raise SettingsError(
                    f"delimiter {self.delimiter[:20]!r}: it must be tab, space, comma, or one ASCII character"
                )
        if self.edges is not None:
            columns = self.edges.split(",")
            if len(columns) not in (2, 3) or len({*columns}) < len(columns) or not all(columns) or "0" in columns:
                raise SettingsError(
                    f"edges {self.edges[:60]!r}: name two or three different columns with commas between them, by "
                    "their names in a header or their numbers from 1"
                )


def read_graph(
    corpus: Corpus,
    options: GraphOptions | None = None,
    *,
    pairs: tuple[bytes, bytes] | None = None,
    workers: int = 1,
    progress: Report | None = None,
) -> Graph:
    """Read a graph from one or more files. Several edge lists or adjacency lists together are one graph.

    Args:
        corpus: The files. They may be compressed.
        options: How to read them.
        pairs: The prefixes of contexts and of inputs if the edges are pairs, from an input to a context. They become
            edges from the context to the input. Repeated pairs add up, and a pair without a weight weighs 1.
        workers: The number of threads.
        progress: Called regularly with a Progress of phase "read".

    Raises:
        W2VError: If a file cannot be read.
    """
    return _Reader(corpus, options or GraphOptions(), pairs, workers, progress).graph()


def check_edges(graph: Graph, where: str) -> None:
    """Log how many nodes have no edges, because their vectors say nothing.

    Raises:
        W2VError: If no node has an edge. The message begins with `where`.
    """
    if not len(graph.neighbours):
        raise W2VError(f"{where} has no edges")
    if isolated := graph.isolated:
        log.warning("%s without edges: kept, but their vectors are random", pluralise(isolated, "node"))


_File = tuple[str, str, Iterator[bytes]]  # the name for messages, the format, and the decompressed bytes


class _Layout(NamedTuple):
    """How the lines of a file are divided into fields.

    Attributes:
        kind: The format of the file.
        delimiter: The character between fields; a space is any white space.
        fields: The number of fields of each line; 0 in adjacency lists.
        columns: The positions of the two nodes and of the weight; -1 for no weight.
        has_attributes: Whether lines end with the attributes of the edge, as networkx writes them.
        prefixes: What precedes the names of the first and of the second nodes; empty unless the graph is bipartite.
    """

    kind: str
    delimiter: str
    fields: int
    columns: tuple[int, int, int]
    has_attributes: bool
    prefixes: tuple[bytes, bytes]


class _Block(NamedTuple):
    """Whole lines of a file; `line` is the number of the first."""

    text: bytes
    name: str
    line: int
    layout: _Layout


@dataclass
class _Reader:
    """Reads a graph; the lines of edge lists in several threads."""

    corpus: Corpus
    options: GraphOptions
    pairs: tuple[bytes, bytes] | None
    workers: int
    progress: Report | None

    def __post_init__(self) -> None:
        self.name_columns = NAME_PAIR_COLUMNS if self.pairs else NAME_COLUMNS
        self.weighted = bool(self.pairs) or self.options.weighted or (self.options.edges or "").count(",") == 2
        self.has_noted, self.first_row = False, [""]
        self.meter = Meter(self.progress, "read")
        self.types = Types()

    def graph(self) -> Graph:
        """Read all edges and build the graph."""
        opened = map(self._open, self.corpus.contents())
        name, kind, chunks = next(opened)
        if kind not in LINES:
            chosen = {name: getattr(self.options, name) for name in ("weighted", "directed", "bipartite")}
            content = b"".join(chunks)
            if not self.pairs:
                return read_with_library(kind, name, content, **chosen)
            if kind not in MATRICES:
                raise W2VError(f"{name} is a graph of the format {kind}, not pairs: leave out --pairs")
            graph = read_with_library(kind, name, content, **dict.fromkeys(chosen, True))
            return graph.as_pairs(self.pairs)
        edges: list[tuple[NDArray[np.uint32], NDArray[np.float32] | None]] = []
        blocks = self._blocks(itertools.chain([(name, kind, chunks)], opened))
        for block, scanned, weights in map_in_order(self._scan, blocks, self.workers):
            try:
                ids = self.types.merge(scanned)
            except Malformed as error:
                at, line = _line_at(block, block.text, block.text.find(error.args[1]))
                raise W2VError(f"{at}: {line!r:.60} is not UTF-8: convert the file with iconv") from None
            edges.append((_ids_of_edges(ids, block.layout), weights if self.weighted else None))
            if self.pairs and block.layout.columns[2] < 0:
                edges[-1] = (edges[-1][0], np.ones(len(edges[-1][0]) // 2, np.float32))
            self.meter(self.corpus.bytes_read, self.corpus.total_bytes)
        self.meter(self.corpus.bytes_read, self.corpus.bytes_read)
        names = Words(
            np.concatenate([np.empty(0, np.uint8), *self.types.strings()]),
            np.cumsum(np.append(0, self.types.lengths()[FIRST_TYPE:])),
        )
        self._refuse_metis(names)
        directed, add_repeats = self.options.directed, bool(self.pairs)
        return Graph.from_blocks(edges, names, directed=directed, add_repeats=add_repeats, workers=self.workers)

    def _refuse_metis(self, names: Words) -> None:
        """Raise W2VError if the first line counts nodes and edges, and the other lines are numbers of neighbours."""
        if not 2 <= len(self.first_row) <= 4 or not all(map(SIZE.fullmatch, self.first_row)):
            return
        nodes, edges, digits, weights = map(int, [*self.first_row, *["0", "1"][len(self.first_row) - 2 :]])
        # The digits say whether nodes have a size, whether they have weights, and whether edges have a weight.
        expected = nodes * (digits // 100 + digits // 10 % 10 * weights) + 2 * edges * (1 + digits % 10)
        fields = int(self.types.counts()[FIRST_TYPE:].sum()) - len(self.first_row)
        if fields == expected and all(
            SIZE.fullmatch(name) and (digits or int(name) <= nodes or name in self.first_row[1:]) for name in names
        ):
            raise W2VError(f"{self.corpus.files[0]} looks like a METIS file, which w2v does not read: {EDGE_LIST}")

    def _open(self, content: tuple[str, bytes, Iterator[bytes]]) -> _File:
        """Recognise the format of a file."""
        name, head, chunks = content
        kind = self.options.graph_format or detect_format(name, head)
        if kind in NOT_READ:
            raise W2VError(f"{name} is a {kind.upper()} file, which w2v does not read: {EDGE_LIST}")
        if kind not in LINES:
            if len(self.corpus.files) > 1:
                raise W2VError(f"{name}: a file in the format {kind} is a whole graph: name only this file")
        elif columnar_kind(head):
            raise W2VError(f"{name} is a table of Parquet or Arrow: save its edges as CSV")
        else:
            head = text_start(name, head)
        if (kind != "edges" and self.options.edges) or (kind not in LINES and self.options.delimiter):
            raise W2VError(f"{name}: the format {kind} has no columns: leave out --edges and --delimiter")
        if kind == "adjlist" and self.pairs:
            raise W2VError(f"{name}: adjacency lists are not pairs: write an input and a context on each line")
        if kind == "adjlist" and self.weighted:
            raise W2VError(f"{name}: adjacency lists have no weights: leave out --weighted (weighted)")
        return name, kind, itertools.chain([head], chunks)

    def _blocks(self, files: Iterable[_File]) -> Iterator[_Block]:
        """Yield the lines of all files in blocks. A file without a last newline gets one."""
        for name, kind, chunks in files:
            line, rest, layout = 1, b"", None
            for chunk in itertools.chain(chunks, [b"\n"]):
                text = rest + chunk
                end = text.rfind(b"\n") + 1
                text, rest = text[:end], text[end:]
                if len(rest) > MAX_LINE_BYTES:
                    number = line + text.count(b"\n")
                    raise W2VError(f"{name}, line {number}: more than {MAX_LINE_BYTES >> 20} MB, too long for an edge")
                if layout is None and text:
                    if b"\0" in text:
                        raise W2VError(f"{name} is binary, not text")
                    layout, text = self._layout(name, kind, line, text)
                if layout is not None:
                    yield _Block(text, name, line, layout)
                line += text.count(b"\n")

    def _layout(self, name: str, kind: str, line: int, text: bytes) -> tuple[_Layout | None, bytes]:
        """Recognise how the first lines of a file are divided, and return them without the header.

        The layout is None if the lines have no edge yet.
        """
        lines = [
            (number, row.strip())
            for number, row in enumerate(_prepared(kind, False, text).split(b"\n", 1000)[:1000], line)
            if row.strip() and row.lstrip()[:1] not in b"#%"
        ][:SAMPLE_LINES]
        if not lines:
            return None, text
        at = f"{name}, line {lines[0][0]}"
        has_attributes = ATTRIBUTES.search(lines[0][1]) is not None
        sample = [_prepared(kind, has_attributes, row).decode(errors="replace") for _, row in lines]
        delimiter = self._delimiter(at, sample[0])
        rows = [_fields(row, delimiter) for row in sample]
        konect = KONECT.match(text)
        columns, is_header = self._columns(at, kind, rows, konect is not None)
        first, second, third = [*columns, -1][:3]
        if self.weighted and third < 0 and not self.pairs:
            raise W2VError(
                f"{at}: {sample[0][:60]!r} has no weight: leave out --weighted, or name the column of weights, such as "
                "--edges 1,2,3"
            )
        if not (self.weighted or self.has_noted or kind == "adjlist" or (has_attributes and b"weight" not in text)):
            self._note_numbers(name, rows, is_header, first, second, third)
        if konect is None:
            self.first_row = rows[0]
        prefixes = self.pairs or (b"", b"")
        if self.pairs:
            first, second = second, first
        elif self.options.bipartite or (konect and konect[1] == b"bip"):
            kinds = (rows[0][first], rows[0][second])
            kinds = kinds if is_header and kinds[0] != kinds[1] else TWO_KINDS
            prefixes = f"{kinds[0]}:".encode(), f"{kinds[1]}:".encode()
        if is_header:
            before = text.split(b"\n", lines[0][0] - line + 1)
            text = b"\n".join([*before[:-2], b"", before[-1]])
        fields = 0 if kind == "adjlist" else len(rows[0])
        return _Layout(kind, delimiter, fields, (first, second, third), has_attributes, prefixes), text

    def _note_numbers(
        self, name: str, rows: list[list[str]], is_header: bool, first: int, second: int, third: int
    ) -> None:
        """Log that edges have weights, or perhaps weights in a column of another name, which are not used."""
        numeric = [
            number
            for number, (name_or_value, *rest) in enumerate(zip(*rows, strict=False))
            if number not in (first, second)
            and name_or_value.lower() != "id"
            and all(map(NUMBER.fullmatch, rest if is_header else (name_or_value, *rest)))
        ]
        if self.options.edges or not numeric:
            return
        if third in numeric:
            note_unused_weights(name)
        else:
            columns = ",".join(rows[0][number] for number in (first, second, numeric[0]))
            log.warning("%s: its numbers are not used: if they are weights, add --edges %s", name, columns)
        self.has_noted = True

    def _delimiter(self, at: str, line: str) -> str:
        """Return the chosen delimiter, or the one in the first edge of a file."""
        if self.options.delimiter is not None:
            return DELIMITERS.get(self.options.delimiter, self.options.delimiter)
        found = [character for character in "\t,;" if character in line]
        if found == [",", ";"]:
            raise W2VError(f"{at} has a comma and a semicolon: name the character between its fields with --delimiter")
        return found[0] if found else " "

    def _columns(self, at: str, kind: str, rows: list[list[str]], is_konect: bool) -> tuple[list[int], bool]:
        """Return the positions of the two nodes and possibly the weight, and whether the first row is a header.

        Raises:
            W2VError: If they are not clear.
        """
        names = rows[0]
        if kind == "adjlist":
            return [0, 1], False
        if len(names) < 2 + (kind == "dimacs"):
            raise W2VError(
                f"{at}: {names[0][:60]!r} has only one field, and an edge has two nodes: name the character between "
                "them with --delimiter"
            )
        if kind == "dimacs":
            return [1, 2, 3][: len(names) - 1], False
        known = [name.lower() for name in names]
        ends = next((pair for pair in END_NAMES if {*pair} <= {*known}), ())
        wanted = self.options.edges.split(",") if self.options.edges else []
        is_named = not all(map(is_position, wanted))
        least = 2 if len(names) == 2 else 1  # nodes may be named by numbers in one column, as in alice,17
        is_header = bool(ends) or has_header([row[:3] for row in rows], wanted if is_named else [], least)
        weights = [known.index(name) for name in WEIGHT_NAMES if name in known][:1] if is_header else []
        if wanted:
            columns = [find_column(at, names if is_header else [""] * len(names), each) for each in wanted]
        elif ends:
            columns = [known.index(end) for end in ends] + weights
        elif (len(names) > 3 and not is_konect) or (is_header and len(names) == 3 and weights != [2]):
            raise W2VError(f"{at} has {pluralise(len(names), 'field')}: {', '.join(names):.60}: {self.name_columns}")
        else:
            columns = [0, 1, 2][: len(names)]
        if is_header and not is_named:
            nodes = " and ".join(repr(names[column])[:60] for column in columns[:2])
            log.warning("%s is a header, and its nodes are %s; move it down if it is an edge", at, nodes)
        return columns, is_header

    def _scan(self, block: _Block) -> tuple[_Block, Any, NDArray[np.float32]]:
        """Look up the nodes of a block among the types so far, for `Types.merge`. Any thread may call this."""
        layout = block.layout
        text = _prepared(layout.kind, layout.has_attributes, block.text)
        code = 0 if layout.delimiter == " " else ord(layout.delimiter)
        try:
            names, offsets, lengths, weights = split_edges(
                text, code, layout.fields, *layout.columns, self.weighted, *layout.prefixes
            )
        except BadLine as error:
            position, problem = error.args
            at, line = _line_at(block, text, position)
            found = pluralise(len(_fields(line, layout.delimiter)), "field")
            why = PROBLEMS[problem].format(found=found, fields=layout.fields, name_columns=self.name_columns)
            raise W2VError(f"{at}: {line[:60]!r} {why}") from None
        if layout.fields:
            lengths = np.array([len(offsets) - 1])
        return block, self.types.scan(Items(names, offsets, lengths)), weights


def _prepared(kind: str, has_attributes: bool, text: bytes) -> bytes:
    """Return lines that are ready for `split_edges`: of DIMACS only edges, and weights instead of attributes."""
    text = NOT_AN_EDGE.sub(b"", text) if kind == "dimacs" else text
    return ATTRIBUTES.sub(lambda match: _weight_in(match[0]), text) if has_attributes else text


def _line_at(block: _Block, text: bytes, position: int) -> tuple[str, str]:
    """Return where a position of the prepared text of a block is, for messages, and its original line."""
    number = text.count(b"\n", 0, position)
    return f"{block.name}, line {block.line + number}", block.text.split(b"\n")[number].decode(errors="replace").strip()


def _fields(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line."""
    if delimiter in ",;":
        with contextlib.suppress(csv.Error):  # for fields of more than 128 KB
            return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))]
    return line.split() if delimiter == " " else [field.strip() for field in line.split(delimiter)]


@lru_cache(1 << 12)
def _weight_in(attributes: bytes) -> bytes:
    """Return the weight in the attributes of an edge as networkx writes them; 1 if they have none."""
    with contextlib.suppress(ValueError, SyntaxError, AttributeError, RecursionError, MemoryError):
        return str(ast.literal_eval(attributes.decode()).get("weight", 1)).encode()
    return b"?"  # not a number, so the line is refused


def _ids_of_edges(ids: NDArray[np.uint32], layout: _Layout) -> NDArray[np.uint32]:
    """Return the ids of the two nodes of each edge in a block: uint32 (2 · edges,)."""
    if layout.fields:
        pairs = ids[ids != SENTENCE_END_ID].reshape(-1, 2)
        return np.ravel(pairs if layout.columns[0] < layout.columns[1] else pairs[:, ::-1])
    is_end = ids == SENTENCE_END_ID
    ends = np.flatnonzero(is_end)
    starts = np.append(0, ends + 1)[:-1]
    is_end[starts] = True
    edges = np.empty((np.count_nonzero(~is_end), 2), np.uint32)
    edges[:, 0], edges[:, 1] = np.repeat(ids[starts], ends - starts - 1), ids[~is_end]
    return edges.ravel()
