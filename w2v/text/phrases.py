"""Phrases: words that occur together more often than by chance become one token (Mikolov et al. 2013b, section 4)."""

from __future__ import annotations

import json
import logging
import math
import secrets
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError, one_line
from w2v.files import PathLike, atomic_write, lines
from w2v.options import check_options, option, refuse_unknown
from w2v.progress import Meter, Report
from w2v.schema import decode
from w2v.settings import TEXT
from w2v.text._phrases import (
    CONNECTOR,
    ENDS,
    SEPARATOR,
    STARTS,
    Counter,
    Joiner,
    Numbering,
    spell,
    spellings,
)
from w2v.text._text import FIRST_TYPE, SENTENCE_END_ID
from w2v.text.corpus import Corpus, Source
from w2v.text.idstore import IdStore, ReadingOptions, read_corpus, rewritten
from w2v.text.words import Words
from w2v.threads import Pool

Scoring = Literal["default", "npmi", "word2phrase"]

ENGLISH_CONNECTOR_WORDS = frozenset(
    ("a", "an", "the", "for", "of", "with", "without", "at", "from", "to", "in", "on", "by", "and", "or")
)
FORMAT = "w2v phrases, format 1"
MAX_PASSES = 10
PAIRS_AT_ONCE = 6 << 20  # in the table of a thread, of 134 MB
PIECE_IDS = 1 << 20  # ids counted or joined at a time
RELEASE_PIECES = 16  # pieces after which the memory of the id file is freed
POLL = 0.1  # seconds between checks of the threads

Array = NDArray[Any]
T = TypeVar("T")
R = TypeVar("R")
log = logging.getLogger("w2v")


@dataclass(frozen=True, slots=True)
class Found:
    """How often a phrase's words occur together, and their score."""

    count: int
    score: float


# Arguments, arrays or numbers: the counts of the first word, the last word and the phrase; numbers: types (different
# words and pairs), min_count, and words in the text.
SCORERS: dict[Scoring, Callable[[Any, Any, Any, float, float, float], Any]] = {
    "default": lambda first, last, both, types, min_count, tokens: (both - min_count) / (first * last) * types,
    "word2phrase": lambda first, last, both, types, min_count, tokens: (both - min_count) / first / last * tokens,
    "npmi": lambda first, last, both, types, min_count, tokens: (
        np.log(both / tokens / (first / tokens * (last / tokens))) / -np.log(both / tokens)
    ),
}
THRESHOLDS: dict[Scoring, float] = {"default": 10.0, "word2phrase": 100.0, "npmi": 0.5}


@dataclass(frozen=True, kw_only=True)
class PhraseOptions:
    """How phrases are found. Raises SettingsError for impossible values.

    `connectors` are words that may be inside a phrase but not at its ends, such as those in ENGLISH_CONNECTOR_WORDS;
    they are not counted. The default `threshold` is that of the scoring in THRESHOLDS.
    """

    scoring: Scoring = option(
        "default",
        "The score of a pair: (count - min_count) / (first * last), times the number of different words and pairs "
        "(default, as in gensim) or times the words of the text (word2phrase); or normalised pointwise mutual "
        "information (npmi).",
        TEXT,
    )
    threshold: float | None = option(
        None,
        "Join pairs with a higher score.",
        TEXT,
        minimum=-1,
        default_text="10; word2phrase: 100; npmi: 0.5",
    )
    min_count: int = option(5, "Ignore pairs that occur less often.", TEXT, minimum=1)
    passes: int = option(
        1, "Number of passes that join pairs: 2 make phrases of up to 4 words.", TEXT, minimum=1, maximum=MAX_PASSES
    )
    delimiter: str = option("_", "Text between the words of a phrase.", TEXT)
    max_pairs: int = option(
        50_000_000,
        "Drop the rarest pairs if more than this many occur --min-count times.",
        TEXT,
        minimum=1,
    )
    connectors: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "connectors", _connectors(self.connectors))
        if self.threshold is None:
            object.__setattr__(self, "threshold", THRESHOLDS[self.scoring])
        if self.scoring == "npmi" and not -1 <= self.limit <= 1:
            raise SettingsError(f"threshold {self.limit:g}: with npmi it must be from -1 to 1")
        if self.scoring != "npmi" and self.limit <= 0:
            raise SettingsError(f"threshold {self.limit:g}: with scoring {self.scoring} it must be more than 0")
        _check_token("delimiter", self.delimiter)

    @property
    def limit(self) -> float:
        """The threshold."""
        return cast(float, self.threshold)


def _connectors(words: Iterable[str]) -> frozenset[str]:
    if isinstance(words, str):
        raise SettingsError(f"connectors {words!r}: give a set of words")
    found = frozenset(words)
    for word in found:
        _check_token("connector", word)
    return found


def _check_token(name: str, text: object) -> None:
    """Raise SettingsError for text that cannot be (part of) a token."""
    try:
        fits = isinstance(text, str) and text.encode().split() == [text.encode()]
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise SettingsError(f"{name} {text!r}: it must have one or more characters, none of them white space")


@dataclass(frozen=True)
class Phrases:
    """Phrases that were found in a text.

    Attributes:
        options: how they were found.
        passes: the phrases of each pass, best first: their tokens, separated by spaces, with count and score. Tokens
            of later passes may be phrases of earlier ones: "new_york city".
    """

    options: PhraseOptions
    passes: Sequence[Mapping[str, Found]]

    def __len__(self) -> int:
        return sum(map(len, self.passes))

    def __repr__(self) -> str:
        return f"<Phrases: {len(self)}>"

    def joined(self, phrase: str) -> str:
        """The one token that the tokens of a phrase become."""
        return phrase.replace(" ", self.options.delimiter)

    @classmethod
    def find(
        cls,
        corpus: Source | IdStore,
        *,
        options: PhraseOptions | None = None,
        reading: ReadingOptions | None = None,
        workers: int = 1,
        progress: Report | None = None,
        **given: Any,
    ) -> Self:
        """Find the phrases of a text, which is anything that `train` accepts.

        `given` are fields of PhraseOptions, instead of `options`. `progress` is called regularly with a Progress of
        phase "read", "count" or "join". Raises W2VError for a text that cannot be used, SettingsError for impossible
        options.
        """
        refuse_unknown(given, [each.name for each in fields(PhraseOptions)], {"connector_words": "connectors"})
        if options and given:
            raise SettingsError(f"{sorted(given)[0]} is given in addition to options: make it a part of them")
        options = options or PhraseOptions(**given)
        with _opened(corpus, reading, workers, progress) as store:
            passes = [_find(store, options, workers, progress)]
            for _ in range(1, options.passes):
                with cls(options, passes).join(store, workers=workers, progress=progress) as joined:
                    passes.append(_find(joined, options, workers, progress))
        return cls(options, passes)

    def join(
        self, store: IdStore, *, folder: PathLike | None = None, workers: int = 1, progress: Report | None = None
    ) -> IdStore:
        """The text of a store with the phrases joined, as a new store in a temporary file in a folder."""
        joined, folder = store, Path(folder or tempfile.gettempdir())
        for found in self.passes:
            before, joined = joined, _join(joined, self.options, found, folder, workers, progress)
            if before is not store:
                before.close()
        return joined

    def write(
        self,
        corpus: Source | IdStore,
        path: PathLike,
        *,
        replace: bool = True,
        reading: ReadingOptions | None = None,
        workers: int = 1,
        progress: Report | None = None,
    ) -> int:
        """Write a text with the phrases joined, one sentence per line. Returns the number of tokens.

        Words that the reader has dropped to keep within `max_types` are left out. Raises W2VError for a text that
        cannot be used, and if the file cannot be written, or exists and `replace` is false.
        """
        with _opened(corpus, reading, workers, progress) as store, atomic_write(path, replace) as file:
            earlier = Phrases(self.options, self.passes[:-1])
            last = earlier.join(store, workers=workers, progress=progress)
            joiner, types = _joiner(last, self.options, self.passes[-1])
            tokens = 0

            def spelt(ids: NDArray[np.uint32]) -> tuple[NDArray[np.uint8], int]:
                joined = joiner.join(ids)
                text = spell(joined, SENTENCE_END_ID, types.blob, types.offsets)
                return text, int(np.count_nonzero(joined >= FIRST_TYPE))

            for text, size in _in_order(spelt, _pieces(last, joiner, Meter(progress, "join")), workers):
                file.write(text.data)
                tokens += size
            if last is not store:
                last.close()
        return tokens

    def save(self, path: PathLike, *, replace: bool = True) -> None:
        """Write a text file: a line of options in JSON, then lines of phrase, count, score and pass, with tabs between.

        Raises W2VError if it cannot be written, or exists and `replace` is false.
        """
        options = asdict(self.options) | {"connectors": sorted(self.options.connectors), "format": FORMAT}
        with atomic_write(path, replace) as file:
            file.write(json.dumps(options, ensure_ascii=False).encode() + b"\n")
            for number, found in enumerate(self.passes, 1):
                for phrase, one in found.items():
                    file.write(f"{phrase}\t{one.count}\t{one.score!r}\t{number}\n".encode())

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a file of `save`. Raises W2VError, naming the line, for any other file."""
        options: PhraseOptions | None = None
        passes: list[dict[str, Found]] = []
        for number, line in lines(path):
            try:
                if options is None:
                    options = _header(line)
                    passes = [{} for _ in range(options.passes)]
                elif line.strip():
                    phrase, found, at = _row(line, options)
                    if passes[at - 1].setdefault(phrase, found) is not found:
                        raise ValueError(f"the phrase {phrase[:60]!r} appears twice")
            except ValueError as error:
                raise W2VError(f"{path}, line {number}: {one_line(error)}") from None
        assert options is not None  # there is a first line, even of an empty file
        return cls(options, passes)


@dataclass(frozen=True, kw_only=True)
class _Header:
    """The first line of a file of phrases, in JSON."""

    format: Literal["w2v phrases, format 1"]
    scoring: Scoring
    threshold: float
    min_count: int
    passes: int
    delimiter: str
    max_pairs: int
    connectors: list[str] = field(default_factory=list)


class _Row(msgspec.Struct, array_like=True):
    """The fields of each other line."""

    phrase: str
    count: Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]
    score: float
    at: Annotated[int, msgspec.Meta(ge=1, le=MAX_PASSES)]


def _header(line: bytes) -> PhraseOptions:
    """The options in the first line of a file of phrases. Raises ValueError for any other line."""
    if not line.startswith(b"{"):
        raise ValueError("not a file of w2v phrases --save-phrases")
    try:
        values = asdict(decode(_Header, line, "the options"))
        del values["format"]
        return PhraseOptions(**values | {"connectors": frozenset(values["connectors"])})
    except W2VError as error:
        raise ValueError(f"not a file of w2v phrases --save-phrases: {error}") from None


def _row(line: bytes, options: PhraseOptions) -> tuple[str, Found, int]:
    """The phrase, its count and score, and its pass. Raises ValueError for a line that is not in the format."""
    try:
        row = msgspec.convert(line.decode().rstrip("\r\n").split("\t"), _Row, strict=False)
    except ValueError:
        raise ValueError(f"{line[:60].strip()!r} is not a phrase, a count, a score and a pass") from None
    words = row.phrase.split(" ")
    if len(words) < 2 or [word.encode() for word in words] != row.phrase.encode().split():
        raise ValueError(f"{row.phrase[:60]!r} is not two or more words separated by spaces")
    inside = [word in options.connectors for word in words]
    if inside != [False, *[True] * (len(words) - 2), False]:
        raise ValueError(f"{row.phrase[:60]!r}: the words inside must be connectors, and those at the ends must not")
    if not math.isfinite(row.score):
        raise ValueError(f"the score {row.score} is not a number")
    if row.at > options.passes:
        raise ValueError(f"pass {row.at} of {options.passes}")
    return row.phrase, Found(row.count, row.score), row.at


def connectors(name: str) -> frozenset[str]:
    """English connector words for "english"; for other names the words of that file, split at white space."""
    if name == "english":
        return ENGLISH_CONNECTOR_WORDS
    try:
        return frozenset(word.decode() for _, line in lines(name) for word in line.split())
    except UnicodeDecodeError:
        raise W2VError(f"{name}: its connector words are not UTF-8") from None


@dataclass
class _Pairs:
    """Pairs of words.

    Attributes:
        rows: first and last id, index into `between`, and count of each pair: four arrays (N,).
        between: the ids of connector words, as tuples.
        types: number of different words and pairs in the text, rare ones included.
        word_counts: counts by id of words with the spelling of a joined pair; they include the pair's.
    """

    rows: tuple[Array, ...]
    between: list[tuple[int, ...]]
    types: int
    word_counts: dict[int, int] = field(default_factory=dict)

    def take(self, rows: Array) -> None:
        self.rows = tuple(array[rows] for array in self.rows)


def _find(store: IdStore, options: PhraseOptions, workers: int, progress: Report | None) -> dict[str, Found]:
    """The phrases of one pass, best first."""
    pairs = _count(store, options, workers, progress)
    word_counts = store.counts.astype(np.float64)
    word_counts[list(pairs.word_counts)] = list(pairs.word_counts.values())
    first, last, gaps, counts = pairs.rows
    with np.errstate(divide="ignore", invalid="ignore"):  # npmi is 0 / 0 if the text repeats one pair
        numbers = pairs.types, options.min_count, store.tokens
        scores = SCORERS[options.scoring](word_counts[first], word_counts[last], counts, *numbers)
        chosen = scores > options.limit
    columns = [array[chosen].tolist() for array in (first, gaps, last, counts, scores)]
    used = sorted({*columns[0], *columns[2], *(id for gap in pairs.between for id in gap)})
    words = dict(zip(used, store.words(np.array(used, np.int64)), strict=True))
    between = ["".join(f"{words[id]} " for id in gap) for gap in pairs.between]
    found = [
        (f"{words[a]} {between[gap]}{words[b]}", Found(count, score))
        for a, gap, b, count, score in zip(*columns, strict=True)
    ]
    return dict(sorted(found, key=lambda item: (-item[1].score, -item[1].count, item[0])))


def _count(store: IdStore, options: PhraseOptions, workers: int, progress: Report | None) -> _Pairs:
    """Count the pairs of a text exactly; if more than max_pairs are frequent, the rarest of them are dropped.

    The pairs are counted in parts (see _phrases.pyx), distributed among `workers` threads.
    """
    kinds, _ = _kinds(store, options)
    spelt = spellings(store.types.blob, store.types.offsets, options.delimiter.encode(), 256 + secrets.randbits(60))
    stop = threading.Event()
    done = [0]  # ids, by all threads
    meter = Meter(progress, "count")

    def count(bits: int, part: int) -> tuple[_Pairs, list[tuple[int, int]]]:
        counter = Counter(kinds, spelt, min(PAIRS_AT_ONCE, len(store.ids)), bits, part)
        for number, start in enumerate(range(0, len(store.ids), PIECE_IDS), 1):
            if stop.is_set():
                break
            counter.count(store.ids[start : start + PIECE_IDS])
            done[0] += min(PIECE_IDS, len(store.ids) - start)
            if number % RELEASE_PIECES == 0:
                store.release()
        return _frequent(counter, store, options, kinds, spelt), counter.left

    bits = (workers - 1).bit_length()
    parts = 1 << bits
    pairs = _Pairs(tuple(np.zeros(0, kind) for kind in (np.uint32, np.uint32, np.int64, np.int64)), [], 0)
    gaps: dict[tuple[int, ...], int] = {}
    dropped = 0
    with Pool(workers) as pool:
        try:
            waiting = {pool.submit(count, bits, part) for part in range(parts)}
            while waiting:
                ready, waiting = wait(waiting, POLL, FIRST_COMPLETED)
                for each in ready:
                    found, left = each.result()
                    parts += len(left)
                    waiting |= {pool.submit(count, *one) for one in left}
                    _add(pairs, found, gaps)
                    dropped += _drop_rarest(pairs, options.max_pairs)
                meter(done[0], parts * len(store.ids))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    if dropped:
        log.warning(
            "the rarest %s of the pairs that occur %d times or more were dropped, because of max_pairs (%s)",
            f"{dropped:,}",
            options.min_count,
            f"{options.max_pairs:,}",
        )
    pairs.between = list(gaps)
    return pairs


def _add(pairs: _Pairs, part: _Pairs, gaps: dict[tuple[int, ...], int]) -> None:
    """Add the pairs of a part; `gaps` numbers the gaps of all parts."""
    numbers = np.array([gaps.setdefault(gap, len(gaps)) for gap in part.between], np.int64)
    first, last, own, counts = part.rows
    pairs.rows = tuple(map(np.append, pairs.rows, (first, last, numbers[own], counts)))
    pairs.types += part.types
    pairs.word_counts |= part.word_counts


def _drop_rarest(pairs: _Pairs, size: int) -> int:
    """Drop the pairs of the lowest counts until there are at most `size`, and return how many were dropped.

    The pairs left at the end do not depend on the order in which parts are added: their counts are above the smallest
    number that at most `size` of all counts exceed.
    """
    counts = pairs.rows[3]
    if len(counts) > size:
        rank = len(counts) - size - 1
        pairs.take(counts > np.partition(counts, rank)[rank])
    return len(counts) - len(pairs.rows[3])


def _frequent(
    counter: Counter, store: IdStore, options: PhraseOptions, kinds: NDArray[np.uint8], spelt: NDArray[np.uint64]
) -> _Pairs:
    """The frequent pairs of a part. Pairs and words whose joined text is the same are one type."""
    hashes, first, last, gaps, counts = counter.pairs()
    mask = np.uint64((1 << counter.bits) - 1)
    mine = (kinds == 0) & (spelt[:, 0] & mask == np.uint64(counter.part)) & (store.counts > 0)
    words = np.flatnonzero(mine)
    all_hashes, totals = np.append(hashes, spelt[words, 0]), np.append(counts, store.counts[words])
    types, size = len(totals), len(counts)
    ordered = np.sort(all_hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    changed: dict[int, int] = {}
    if twice.size:
        alike: dict[str, list[int]] = {}
        for row in np.flatnonzero(np.isin(all_hashes, twice)).tolist():
            ids = [words[row - size]] if row >= size else [first[row], *counter.gap_words(gaps[row]), last[row]]
            alike.setdefault(options.delimiter.join(store.words(np.array(ids, np.int64))), []).append(row)
        for rows in alike.values():
            types -= len(rows) - 1
            totals[rows] = totals[rows].sum()
            changed |= {int(words[row - size]): int(totals[row]) for row in rows if row >= size}
    kept = np.flatnonzero(totals[:size] >= options.min_count)
    used, numbers = np.unique(gaps[kept], return_inverse=True)
    between = [tuple(counter.gap_words(gap)) for gap in used.tolist()]
    return _Pairs((first[kept], last[kept], numbers, totals[kept]), between, types, changed)


def _kinds(store: IdStore, options: PhraseOptions, words: Iterable[str] = ()) -> tuple[Array, dict[str, int]]:
    """The kind of each id, uint8 (types,), and the ids of connectors and `words` that are in the text."""
    wanted = list(dict.fromkeys([*options.connectors, *words]))
    index = store.remap(wanted)
    known = np.flatnonzero(index >= 0)
    ids = {wanted[at]: id for at, id in zip(index[known].tolist(), known.tolist(), strict=True)}
    kinds = np.zeros(len(store.counts), np.uint8)
    kinds[:FIRST_TYPE] = SEPARATOR
    kinds[[ids[word] for word in options.connectors if word in ids]] = CONNECTOR
    return kinds, ids


def _joiner(store: IdStore, options: PhraseOptions, found: Iterable[str]) -> tuple[Joiner, Words]:
    """The Joiner of these phrases, and the words of all ids that the joined text may have.

    A phrase whose joined text is a word of the text gets that word's id.
    """
    spelt = {phrase: (phrase.split(" "), phrase.replace(" ", options.delimiter)) for phrase in found}
    kinds, ids = _kinds(store, options, (word for words, joined in spelt.values() for word in (*words, joined)))
    size = len(kinds)
    phrases, numbers = [], []
    added: list[str] = []
    for words, joined in spelt.values():
        if all(ids.get(word, size) < size for word in words):
            if joined not in ids:
                ids[joined] = size + len(added)
                added.append(joined)
            phrases.append(tuple(ids[word] for word in words))
            numbers.append(ids[joined])
    kinds[[phrase[0] for phrase in phrases]] |= STARTS
    kinds[[phrase[-1] for phrase in phrases]] |= ENDS
    new = Words.of(added)
    blob = np.concatenate([store.types.blob, new.blob])
    types = Words(blob, np.concatenate([store.types.offsets, store.types.offsets[-1] + new.offsets[1:]]))
    return Joiner(kinds, phrases, np.array(numbers, np.uint32)), types


def _join(
    store: IdStore,
    options: PhraseOptions,
    found: Iterable[str],
    folder: Path,
    workers: int,
    progress: Report | None,
) -> IdStore:
    """A text with the phrases of one pass joined. Its ids are in first-seen order, as if the joined text were read."""
    joiner, types = _joiner(store, options, found)
    numbering = Numbering(len(types), FIRST_TYPE)

    def renumbered() -> Iterator[NDArray[np.uint32]]:
        for ids in _in_order(joiner.join, _pieces(store, joiner, Meter(progress, "join")), workers):
            numbering.renumber(ids)
            yield ids

    def counted() -> tuple[NDArray[np.int64], Words]:
        return numbering.counts(), types.take(numbering.old_ids().astype(np.int64))

    return rewritten(store, renumbered(), counted, folder)


def _pieces(store: IdStore, joiner: Joiner, meter: Meter) -> Iterator[NDArray[np.uint32]]:
    """The ids of a text in pieces; phrases lie within pieces."""
    start, number = 0, 0
    while start < len(store.ids):
        end = joiner.cut(store.ids, start + PIECE_IDS)
        yield store.ids[start:end]
        start, number = end, number + 1
        meter(start, len(store.ids))
        if number % RELEASE_PIECES == 0:
            store.release()


def _in_order(work: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """The results of `work` for each item, in order, computed in `workers` threads a few items ahead."""
    with Pool(workers) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _opened(
    corpus: Source | IdStore, reading: ReadingOptions | None, workers: int, progress: Report | None
) -> AbstractContextManager[IdStore]:
    """The ids of a text. A store that the caller passes is not closed."""
    if isinstance(corpus, IdStore):
        return nullcontext(corpus)
    return read_corpus(Corpus(corpus), reading, workers=workers, progress=progress)
