"""Phrases: words that occur together more often than by chance become one token (Mikolov et al. 2013b, section 4)."""

from __future__ import annotations

import json
import logging
import math
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, fields
from itertools import chain, count, repeat
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from w2v.detect import lines
from w2v.errors import SettingsError, W2VError, one_line
from w2v.options import check_options, option, refuse_unknown
from w2v.progress import Meter, Report
from w2v.settings import TEXT
from w2v.system.files import PathLike, atomic_write, temporary_folder
from w2v.system.schema import decode
from w2v.system.threads import Pool, map_in_order
from w2v.text._phrases import CONNECTOR, PAIR, SEPARATOR, Counter, Joiner, renumber, spell, spellings
from w2v.text._text import FIRST_TYPE
from w2v.text.corpus import Corpus, Source
from w2v.text.idstore import IdStore, ReadingOptions, lowest_threshold, read_corpus, rewritten
from w2v.text.words import Words

Scoring = Literal["default", "npmi", "word2phrase"]

ENGLISH_CONNECTOR_WORDS = frozenset(
    ("a", "an", "the", "for", "of", "with", "without", "at", "from", "to", "in", "on", "by", "and", "or")
)
FORMAT = "w2v phrases, format 1"
MAX_PASSES = 10
PAIRS_AT_ONCE = 6 << 20  # in the table of a thread, of 134 MB
PIECE_IDS = 1 << 20  # ids counted or joined at a time
RELEASE_PIECES = 16  # pieces after which the memory of the id file is freed

Array = NDArray[Any]
Ids = NDArray[np.uint32]
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
        common=True,
    )
    min_count: int = option(5, "Ignore pairs that occur less often.", TEXT, minimum=1, common=True)
    passes: int = option(
        1,
        "Number of passes that join pairs: 2 make phrases of up to 4 words.",
        TEXT,
        minimum=1,
        maximum=MAX_PASSES,
        common=True,
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
        with ExitStack() as stack:
            store = stack.enter_context(_opened(corpus, reading, workers, progress))
            passes = [_find(store, options, workers, progress)]
            for _ in range(1, options.passes):
                last = cls(options, passes[-1:])
                store = stack.enter_context(last.join(store, workers=workers, progress=progress))
                passes.append(_find(store, options, workers, progress))
        return cls(options, passes)

    def join(
        self, store: IdStore, *, folder: PathLike | None = None, workers: int = 1, progress: Report | None = None
    ) -> IdStore:
        """The text of a store with the phrases joined, as a new store in a temporary file in a folder."""
        joined, folder = store, temporary_folder(folder)
        for found in self.passes:
            joined = _join(joined, self.options, found, folder, workers, progress)
        return joined

    def write(
        self,
        corpus: Source | IdStore,
        path: PathLike,
        *,
        force: bool = False,
        reading: ReadingOptions | None = None,
        workers: int = 1,
        progress: Report | None = None,
    ) -> int:
        """Write a text with the phrases joined, one sentence per line. Returns the number of tokens.

        Words that the reader has dropped to keep within `max_types` are left out. Raises W2VError for a text that
        cannot be used, and if the file cannot be written, or exists and `force` is false.
        """
        *earlier, found = self.passes
        with _opened(corpus, reading, workers, progress) as store, atomic_write(path, force) as file:
            last = Phrases(self.options, earlier).join(store, workers=workers, progress=progress)
            joiner, types = _joiner(last, self.options, found)

            def spelt(ids: Ids) -> tuple[Array, int]:
                joined = joiner.join(ids)
                return spell(joined, types.blob, types.offsets), int(np.count_nonzero(joined >= FIRST_TYPE))

            tokens = 0
            for text, size in map_in_order(spelt, _pieces(last, Meter(progress, "join"), joiner.cut), workers):
                file.write(text.data)
                tokens += size
        return tokens

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write a text file: a line of options in JSON, then lines of phrase, count, score and pass, with tabs between.

        Raises W2VError if it cannot be written, or exists and `force` is false.
        """
        options = asdict(self.options) | {"connectors": sorted(self.options.connectors), "format": FORMAT}
        with atomic_write(path, force) as file:
            file.write(json.dumps(options, ensure_ascii=False).encode() + b"\n")
            for number, found in enumerate(self.passes, 1):
                for phrase, one in found.items():
                    file.write(f"{phrase}\t{one.count}\t{one.score!r}\t{number}\n".encode())

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a file of `save`. Raises W2VError, naming the line, for any other file."""
        options: PhraseOptions | None = None
        passes: list[dict[str, Found]] = []
        for number, line in lines(path, "phrases"):
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
class _Header(PhraseOptions):
    """The first line of a file of phrases, in JSON."""

    format: Literal["w2v phrases, format 1"]


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
        return PhraseOptions(**values)
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


def _find(store: IdStore, options: PhraseOptions, workers: int, progress: Report | None) -> dict[str, Found]:
    """The phrases of one pass, best first."""
    pairs, word_counts, types, gap_keys = _count(store, options, workers, progress)
    first, last = word_counts[pairs["first"]], word_counts[pairs["last"]]
    with np.errstate(divide="ignore", invalid="ignore"):  # npmi is 0 / 0 if the text repeats one pair
        scores = SCORERS[options.scoring](first, last, pairs["count"], types, options.min_count, store.tokens)
        chosen = scores > options.limit
    pairs = pairs[chosen]
    each = map(Found, pairs["count"].tolist(), scores[chosen].tolist())
    found = zip(_texts(store, pairs, gap_keys, " "), each, strict=True)
    return dict(sorted(found, key=lambda item: (-item[1].score, -item[1].count, item[0])))


def _texts(store: IdStore, pairs: Array, gap_keys: Array, delimiter: str) -> list[str]:
    """The words of each pair, joined."""
    gaps = pairs["gap"].tolist()
    between = {gap: store.words(_gap(gap_keys, gap)) for gap in set(gaps)}
    first, last = store.words(pairs["first"]), store.words(pairs["last"])
    return [delimiter.join([a, *between[gap], b]) for a, gap, b in zip(first, gaps, last, strict=True)]


def _gap(gap_keys: Array, gap: int) -> NDArray[np.int64]:
    """The ids of the connector words of a gap."""
    found: list[int] = []
    while gap:
        gap, word = divmod(int(gap_keys[gap]), 1 << 32)
        found.append(word)
    return np.array(found[::-1], np.int64)


def _count(
    store: IdStore, options: PhraseOptions, workers: int, progress: Report | None
) -> tuple[Array, Array, int, Array]:
    """Count the pairs of a text exactly; if more than max_pairs are frequent, the rarest of them are dropped.

    Returns the frequent pairs, PAIR (N,); the counts of words by id, float64 (types,), with those of pairs of the same
    spelling; the number of different words and pairs in the text, rare ones included; and Counter.gap_keys. The pairs
    are counted in parts (see _phrases.pyx), as many at a time as `workers`.
    """
    kinds = np.zeros(len(store.counts), np.uint8)
    kinds[store.remap(sorted(options.connectors)) >= 0] = CONNECTOR
    kinds[:FIRST_TYPE] = SEPARATOR
    spelt = spellings(store.types.blob, store.types.offsets, options.delimiter.encode(), 256 + secrets.randbits(60))
    word_counts = store.counts.astype(np.float64)
    pairs: Array = np.empty(0, PAIR)
    types = frequent = finished = done = 0
    size, meter = len(store.ids), Meter(progress, "count")
    bits = (workers - 1).bit_length()
    parts = [(bits, part) for part in range(1 << bits)]
    with Pool(workers) as pool:
        while parts:
            counters = [Counter(kinds, spelt, min(PAIRS_AT_ONCE, size), *part) for part in parts[:workers]]
            del parts[:workers]
            for ids in _pieces(store):
                list(pool.map(Counter.count, counters, repeat(ids)))
                done += len(counters) * len(ids)
                left = [part for counter in counters for part in counter.left]
                meter(done, size * (finished + len(counters) + len(parts) + len(left)))
            finished += len(counters)
            parts += left
            for found, number in pool.map(
                lambda each: _frequent(each, store, options, kinds, spelt, word_counts), counters
            ):
                pairs = _most_frequent(np.append(pairs, found), options.max_pairs)
                frequent += len(found)
                types += number
    dropped = frequent - len(pairs)
    if dropped:
        log.warning(
            "the rarest %s of the pairs that occur %d times or more were dropped, because of max_pairs (%s)",
            f"{dropped:,}",
            options.min_count,
            f"{options.max_pairs:,}",
        )
    return pairs, word_counts, types, counters[0].gap_keys()


def _most_frequent(pairs: Array, size: int) -> Array:
    """At most `size` pairs, without those of the lowest counts.

    The pairs left at the end do not depend on the order in which parts are added: their counts are above the
    lowest threshold above which no more than `size` counts lie.
    """
    counts = pairs["count"]
    return pairs if len(pairs) <= size else pairs[counts > lowest_threshold(counts, size)]


def _frequent(
    counter: Counter, store: IdStore, options: PhraseOptions, kinds: Array, spelt: Array, word_counts: Array
) -> tuple[Array, int]:
    """The frequent pairs of a part, and the number of its types. What is spelt alike is one type, counted together."""
    pairs, hashes = counter.pairs()
    mine = spelt[:, 1] & np.uint64((1 << counter.bits) - 1) == np.uint64(counter.part)
    words = np.flatnonzero(mine & (kinds == 0) & (store.counts > 0))
    all_hashes, totals = np.append(hashes, spelt[words, 1]), np.append(pairs["count"], store.counts[words])
    types, size = len(totals), len(pairs)
    ordered = np.sort(all_hashes)
    rows = np.flatnonzero(np.isin(all_hashes, ordered[1:][ordered[1:] == ordered[:-1]]))
    alike = defaultdict[str, list[int]](list)
    texts = _texts(store, pairs[rows[rows < size]], counter.gap_keys(), options.delimiter)
    for row, text in zip(rows.tolist(), [*texts, *store.words(words[rows[rows >= size] - size])], strict=True):
        alike[text].append(row)
    for same in alike.values():
        types -= len(same) - 1
        totals[same] = totals[same].sum()
    changed = rows[rows >= size]
    word_counts[words[changed - size]] = totals[changed]
    pairs["count"] = totals[:size]
    return pairs[pairs["count"] >= options.min_count], types


def _joiner(store: IdStore, options: PhraseOptions, found: Iterable[str]) -> tuple[Joiner, Words]:
    """The Joiner of these phrases, and the words of all ids that the joined text may have.

    A phrase whose joined text is a word of the text gets that word's id.
    """
    phrases = [phrase.split(" ") for phrase in found]
    wanted = list(dict.fromkeys(chain(*phrases, map(options.delimiter.join, phrases))))
    index = store.remap(wanted)
    known = np.flatnonzero(index >= 0)
    ids = {wanted[at]: id for at, id in zip(index[known].tolist(), known.tolist(), strict=True)}
    phrases = [words for words in phrases if ids.keys() >= set(words)]
    joined = [options.delimiter.join(words) for words in phrases]
    added = [token for token in dict.fromkeys(joined) if token not in ids]
    ids |= {token: id for id, token in enumerate(added, len(index))}
    types = store.types.followed_by(Words.of(added))
    tuples = [tuple(ids[word] for word in words) for words in phrases]
    return Joiner(len(types), tuples, np.array([ids[token] for token in joined], np.uint32)), types


def _join(
    store: IdStore, options: PhraseOptions, found: Iterable[str], folder: Path, workers: int, progress: Report | None
) -> IdStore:
    """A text with the phrases of one pass joined. Its ids are in first-seen order, as if the joined text were read."""
    joiner, types = _joiner(store, options, found)
    numbers, counts = np.zeros(len(types), np.uint32), np.zeros(len(types), np.int64)
    numbers[:FIRST_TYPE] = range(FIRST_TYPE)
    size = FIRST_TYPE

    def renumbered() -> Iterator[Ids]:
        nonlocal size
        for ids in map_in_order(joiner.join, _pieces(store, Meter(progress, "join"), joiner.cut), workers):
            size = renumber(ids, numbers, counts, size)
            yield ids

    def counted() -> tuple[NDArray[np.int64], Words]:
        seen, order = np.flatnonzero(numbers), np.zeros(size, np.int64)
        order[numbers[seen]] = seen
        return counts[:size], types.take(order)

    return rewritten(store, renumbered(), counted, folder)


def _pieces(
    store: IdStore, meter: Meter | None = None, cut: Callable[[Ids, int], int] = lambda _, end: end
) -> Iterator[Ids]:
    """The ids of a text in pieces."""
    start, size = 0, len(store.ids)
    for number in count(1):
        end = min(cut(store.ids, start + PIECE_IDS), size)
        yield store.ids[start:end]
        if meter:
            meter(end, size)
        if end == size:
            return
        start = end
        if number % RELEASE_PIECES == 0:
            store.release()


def _opened(
    corpus: Source | IdStore, reading: ReadingOptions | None, workers: int, progress: Report | None
) -> AbstractContextManager[IdStore]:
    """The ids of a text. A store that the caller passes is not closed."""
    if isinstance(corpus, IdStore):
        return nullcontext(corpus)
    return read_corpus(Corpus(corpus), reading, workers=workers, progress=progress)
