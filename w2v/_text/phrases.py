"""Find phrases (words that occur together more often than by chance) and join each into one token.

The method is described in Mikolov et al. 2013b, section 4.
"""

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

from w2v._detect import read_lines
from w2v._errors import SettingsError, W2VError, one_line
from w2v._options import check_options, option, refuse_unknown
from w2v._progress import Meter, Report
from w2v._settings import TEXT
from w2v._system.files import PathLike, atomic_write, temporary_folder
from w2v._system.schema import decode
from w2v._system.threads import Pool, map_in_order
from w2v._text._phrases import CONNECTOR, PAIR, SEPARATOR, Joiner, PairCounter, appended_hashes, ids_to_text, renumber
from w2v._text._text import FIRST_TYPE
from w2v._text.corpus import Corpus, Source
from w2v._text.idstore import IdStore, ReadingOptions, pruning_threshold, read_corpus, store_of_ids
from w2v._text.words import KeyType, Words

Scoring = Literal["default", "npmi", "word2phrase"]

ENGLISH_CONNECTOR_WORDS = frozenset(
    ("a", "an", "the", "for", "of", "with", "without", "at", "from", "to", "in", "on", "by", "and", "or")
)
FORMAT = "w2v phrases, format 1"
MAX_PASSES = 10
PAIRS_AT_ONCE = 6 << 20  # pairs in the hash table of a thread, which takes 134 MB
PIECE_IDS = 1 << 20  # ids counted or joined at a time
RELEASE_PIECES = 16  # number of pieces after which the memory of the id file is freed

Array = NDArray[Any]
Ids = NDArray[np.uint32]
log = logging.getLogger("w2v")


@dataclass(frozen=True, slots=True)
class PhraseScore:
    """The count of a phrase in the text, and its score."""

    count: int
    score: float


# The arguments are the counts of the first word, the last word and the phrase (arrays or numbers); the number of types
# (different words and pairs), min_count, and the number of words in the text.
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
    """The options for finding phrases.

    Attributes:
        scoring: The score of a pair, "default" (as in gensim), "word2phrase" or "npmi"; see SCORERS.
        threshold: Pairs with a higher score become phrases; by default 10, 100 or 0.5, by scoring.
        min_count: Pairs that occur less often are ignored.
        passes: The number of passes; each pass can join the phrases of earlier passes.
        delimiter: The text between the words of a joined phrase.
        max_pairs: The rarest pairs are dropped if more than this number occur `min_count` times.
        connectors: Words that may be inside a phrase but not at its ends, such as ENGLISH_CONNECTOR_WORDS. They are not
            counted.

    Raises:
        SettingsError: For impossible values.
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
        object.__setattr__(self, "connectors", _check_connectors(self.connectors))
        if self.threshold is None:
            object.__setattr__(self, "threshold", THRESHOLDS[self.scoring])
        if self.scoring == "npmi" and not -1 <= self.resolved_threshold <= 1:
            raise SettingsError(f"threshold {self.resolved_threshold:g}: with npmi it must be from -1 to 1")
        if self.scoring != "npmi" and self.resolved_threshold <= 0:
            raise SettingsError(
                f"threshold {self.resolved_threshold:g}: with scoring {self.scoring} it must be more than 0"
            )
        _check_token("delimiter", self.delimiter)

    @property
    def resolved_threshold(self) -> float:
        """The threshold, which is never None."""
        return cast(float, self.threshold)


def _check_connectors(words: Iterable[str]) -> frozenset[str]:
    """Return connector words as a set. Raise SettingsError if they are a string or cannot be tokens."""
    if isinstance(words, str):
        raise SettingsError(f"connectors {words!r}: give a set of words")
    connector_words = frozenset(words)
    for word in connector_words:
        _check_token("connector", word)
    return connector_words


def _check_token(name: str, text: object) -> None:
    """Raise SettingsError if `text` cannot be a token or a part of one."""
    try:
        fits = isinstance(text, str) and text.encode().split() == [text.encode()]
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise SettingsError(f"{name} {text!r}: it must have one or more characters, none of them white space")


@dataclass(frozen=True)
class Phrases:
    """The phrases of a text.

    Attributes:
        options: The options that the phrases were found with.
        passes: For each pass, the phrases with their counts and scores, best first. The tokens of a phrase are
            separated by spaces. A token in a later pass may be a phrase of an earlier pass: "new_york city".
    """

    options: PhraseOptions
    passes: Sequence[Mapping[str, PhraseScore]]

    def __len__(self) -> int:
        return sum(map(len, self.passes))

    def __repr__(self) -> str:
        return f"<Phrases: {len(self)}>"

    def joined(self, phrase: str) -> str:
        """Return the token that replaces a phrase in the text."""
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
        """Find the phrases of a text.

        Args:
            corpus: The text, in any form that `train` accepts.
            options: The options for finding phrases.
            reading: The options for reading the text.
            workers: The number of threads.
            progress: Called regularly with a Progress of phase "read", "count" or "join".
            **given: Fields of PhraseOptions, instead of `options`.

        Raises:
            W2VError: If the text cannot be used.
            SettingsError: For impossible options.
        """
        refuse_unknown(given, [each.name for each in fields(PhraseOptions)], {"connector_words": "connectors"})
        if options and given:
            raise SettingsError(f"{sorted(given)[0]} is given in addition to options: make it a part of them")
        options = options or PhraseOptions(**given)
        with ExitStack() as stack:
            store = stack.enter_context(_open_store(corpus, reading, workers, progress))
            passes = [_find_phrases(store, options, workers, progress)]
            for _ in range(1, options.passes):
                last = cls(options, passes[-1:])
                store = stack.enter_context(last.join(store, workers=workers, progress=progress))
                passes.append(_find_phrases(store, options, workers, progress))
        return cls(options, passes)

    def join(
        self, store: IdStore, *, folder: PathLike | None = None, workers: int = 1, progress: Report | None = None
    ) -> IdStore:
        """Join the phrases in the text of a store. Return a new store in a temporary file in `folder`."""
        joined, folder = store, temporary_folder(folder)
        for phrases in self.passes:
            joined = _join_phrases(joined, self.options, phrases, folder, workers, progress)
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
        """Write a text with the phrases joined, one sentence per line.

        Words that the reader has dropped to keep within `max_types` are left out.

        Args:
            corpus: The text, in any form that `train` accepts.
            path: The file to write.
            force: If True, replace an existing file.
            reading: The options for reading the text.
            workers: The number of threads.
            progress: Called regularly with a Progress of phase "read" or "join".

        Returns:
            The number of tokens written.

        Raises:
            W2VError: If the text cannot be used, if the file cannot be written, or if it exists and `force` is False.
        """
        *earlier, phrases = self.passes
        with _open_store(corpus, reading, workers, progress) as store, atomic_write(path, force) as file:
            last = Phrases(self.options, earlier).join(store, workers=workers, progress=progress)
            joiner, types = _joiner(last, self.options, phrases)

            def join_to_text(ids: Ids) -> tuple[Array, int]:
                joined = joiner.join(ids)
                return ids_to_text(joined, types.blob, types.offsets), int(np.count_nonzero(joined >= FIRST_TYPE))

            tokens = 0
            pieces = _pieces(last, Meter(progress, "join"), joiner.next_boundary)
            for text, size in map_in_order(join_to_text, pieces, workers):
                file.write(text.data)
                tokens += size
        return tokens

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write the phrases to a text file, which `load` reads.

        The first line has the options in JSON. Each other line has a phrase, its count, its score and its pass,
        separated by tabs.

        Raises:
            W2VError: If the file cannot be written, or if it exists and `force` is False.
        """
        options = asdict(self.options) | {"connectors": sorted(self.options.connectors), "format": FORMAT}
        with atomic_write(path, force) as file:
            file.write(json.dumps(options, ensure_ascii=False).encode() + b"\n")
            for number, phrases in enumerate(self.passes, 1):
                for phrase, score in phrases.items():
                    file.write(f"{phrase}\t{score.count}\t{score.score!r}\t{number}\n".encode())

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a file that `save` has written.

        Raises:
            W2VError: If the file cannot be read, or if a line is in another format; the message has its number.
        """
        options: PhraseOptions | None = None
        passes: list[dict[str, PhraseScore]] = []
        for number, line in read_lines(path, "phrases"):
            try:
                if options is None:
                    options = _parse_header(line)
                    passes = [{} for _ in range(options.passes)]
                elif line.strip():
                    phrase, score, pass_number = _parse_row(line, options)
                    if passes[pass_number - 1].setdefault(phrase, score) is not score:
                        raise ValueError(f"the phrase {phrase[:60]!r} appears twice")
            except ValueError as error:
                raise W2VError(f"{path}, line {number}: {one_line(error)}") from None
        assert options is not None  # even an empty file has a first line
        return cls(options, passes)


@dataclass(frozen=True, kw_only=True)
class _Header(PhraseOptions):
    """The first line of a phrase file, in JSON."""

    format: Literal["w2v phrases, format 1"]


class _Row(msgspec.Struct, array_like=True):
    """Any other line of a phrase file."""

    phrase: str
    count: Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]
    score: float
    pass_number: Annotated[int, msgspec.Meta(ge=1, le=MAX_PASSES)]


def _parse_header(line: bytes) -> PhraseOptions:
    """Read the options in the first line of a phrase file. Raises ValueError for any other line."""
    if not line.startswith(b"{"):
        raise ValueError("not a file of w2v phrases --save-phrases")
    try:
        values = asdict(decode(_Header, line, "the options"))
        del values["format"]
        return PhraseOptions(**values)
    except W2VError as error:
        raise ValueError(f"not a file of w2v phrases --save-phrases: {error}") from None


def _parse_row(line: bytes, options: PhraseOptions) -> tuple[str, PhraseScore, int]:
    """Read a phrase, its score, and its pass from a line. Raises ValueError for a line in another format."""
    try:
        row = msgspec.convert(line.decode().rstrip("\r\n").split("\t"), _Row, strict=False)
    except ValueError:
        raise ValueError(f"{line[:60].strip()!r} is not a phrase, a count, a score and a pass") from None
    words = row.phrase.split(" ")
    if len(words) < 2 or [word.encode() for word in words] != row.phrase.encode().split():
        raise ValueError(f"{row.phrase[:60]!r} is not two or more words separated by spaces")
    inside = [word in options.connectors for word in words]
    if inside != [False, *[True] * (len(words) - 2), False]:
        raise ValueError(f"{row.phrase[:60]!r}: the words inside must be connectors, and the first and last must not")
    if not math.isfinite(row.score):
        raise ValueError(f"the score {row.score} is not a number")
    if row.pass_number > options.passes:
        raise ValueError(f"pass {row.pass_number} of {options.passes}: change it, or passes in the first line")
    return row.phrase, PhraseScore(row.count, row.score), row.pass_number


def read_connectors(name: str) -> frozenset[str]:
    """Return ENGLISH_CONNECTOR_WORDS for the name "english"; for any other name, the words in the file of that name.

    Raises:
        W2VError: If the file cannot be read or is not UTF-8.
    """
    if name == "english":
        return ENGLISH_CONNECTOR_WORDS
    try:
        return frozenset(word.decode() for _, line in read_lines(name) for word in line.split())
    except UnicodeDecodeError:
        raise W2VError(f"{name}: its connector words are not UTF-8") from None


def _find_phrases(
    store: IdStore, options: PhraseOptions, workers: int, progress: Report | None
) -> dict[str, PhraseScore]:
    """Return the phrases of one pass, best first."""
    pairs, word_counts, types, gap_keys = _count_pairs(store, options, workers, progress)
    first, last = word_counts[pairs["first"]], word_counts[pairs["last"]]
    with np.errstate(divide="ignore", invalid="ignore"):  # npmi is 0 / 0 if the text repeats one pair
        scores = SCORERS[options.scoring](first, last, pairs["count"], types, options.min_count, store.tokens)
        chosen = scores > options.resolved_threshold
    pairs = pairs[chosen]
    phrase_scores = map(PhraseScore, pairs["count"].tolist(), scores[chosen].tolist())
    phrases = zip(_join_texts(store, pairs, gap_keys, " "), phrase_scores, strict=True)
    return dict(sorted(phrases, key=lambda item: (-item[1].score, -item[1].count, item[0])))


def _join_texts(store: IdStore, pairs: Array, gap_keys: Array, delimiter: str) -> list[str]:
    """Return the text of each pair: its words, with the connector words of its gap between them; see `_gap_ids`."""
    gaps = pairs["gap"].tolist()
    between = {gap: store.words(_gap_ids(gap_keys, gap)) for gap in set(gaps)}
    first, last = store.words(pairs["first"]), store.words(pairs["last"])
    return [delimiter.join([a, *between[gap], b]) for a, gap, b in zip(first, gaps, last, strict=True)]


def _gap_ids(gap_keys: Array, gap: int) -> NDArray[np.int64]:
    """Return the ids of the connector words in a gap; see PairCounter.gap_keys in _phrases.pyx."""
    ids: list[int] = []
    while gap:
        gap, id = divmod(int(gap_keys[gap]), 1 << 32)
        ids.append(id)
    return np.array(ids[::-1], np.int64)


def _count_pairs(
    store: IdStore, options: PhraseOptions, workers: int, progress: Report | None
) -> tuple[Array, Array, int, Array]:
    """Count the pairs of a text exactly. If more than max_pairs are frequent, drop the rarest of them.

    The pairs are counted in parts, `workers` parts at a time; _phrases.pyx explains this.

    Returns:
        The frequent pairs, PAIR (N,); the count of each word, float64 (types,), including pairs with the same joined
        text; the number of different words and pairs in the text, including rare ones; and PairCounter.gap_keys.
    """
    kinds = np.zeros(len(store.counts), np.uint8)
    kinds[store.remap(sorted(options.connectors)) >= 0] = CONNECTOR
    kinds[:FIRST_TYPE] = SEPARATOR
    base = 256 + secrets.randbits(60)  # secret, so that nobody can write a text of phrases with equal hashes
    word_hashes = appended_hashes(store.types.blob, store.types.offsets, options.delimiter.encode(), base)
    word_counts = store.counts.astype(np.float64)
    pairs: Array = np.empty(0, PAIR)
    types = frequent = finished = done = 0
    size, meter = len(store.ids), Meter(progress, "count")
    bits = (workers - 1).bit_length()  # at least one part for each worker
    parts = [(bits, part) for part in range(1 << bits)]
    with Pool(workers) as pool:
        while parts:
            counters = [PairCounter(kinds, word_hashes, min(PAIRS_AT_ONCE, size), *part) for part in parts[:workers]]
            del parts[:workers]
            for ids in _pieces(store):
                list(pool.map(PairCounter.count, counters, repeat(ids)))
                done += len(counters) * len(ids)
                remaining = [part for counter in counters for part in counter.remaining_parts]
                meter(done, size * (finished + len(counters) + len(parts) + len(remaining)))
            finished += len(counters)
            parts += remaining
            for part_pairs, part_types in pool.map(
                lambda counter: _frequent_pairs(counter, store, options, kinds, word_hashes, word_counts), counters
            ):
                pairs = _most_frequent(np.append(pairs, part_pairs), options.max_pairs)
                frequent += len(part_pairs)
                types += part_types
    dropped = frequent - len(pairs)
    if dropped:
        log.warning(
            "dropped the rarest %s of the pairs that occur %d times or more, because of max_pairs (%s)",
            f"{dropped:,}",
            options.min_count,
            f"{options.max_pairs:,}",
        )
    return pairs, word_counts, types, counters[0].gap_keys()


def _most_frequent(pairs: Array, size: int) -> Array:
    """Drop the rarest pairs so that at most `size` remain.

    Pairs with equal counts are kept or dropped together, so the result does not depend on the order of the parts.
    """
    counts = pairs["count"]
    return pairs if len(pairs) <= size else pairs[counts > pruning_threshold(counts, size)]


def _frequent_pairs(
    counter: PairCounter, store: IdStore, options: PhraseOptions, kinds: Array, word_hashes: Array, word_counts: Array
) -> tuple[Array, int]:
    """Return the frequent pairs of a part and its number of types, and update `word_counts`.

    Words and pairs with the same joined text are one type and share their count.
    """
    pairs, hashes = counter.pairs()
    in_part = word_hashes[:, 1] & np.uint64((1 << counter.bits) - 1) == np.uint64(counter.part)
    words = np.flatnonzero(in_part & (kinds == 0) & (store.counts > 0))
    all_hashes, totals = np.append(hashes, word_hashes[words, 1]), np.append(pairs["count"], store.counts[words])
    types, size = len(totals), len(pairs)  # rows 0 to size - 1 are pairs; the rows after them are words
    ordered = np.sort(all_hashes)
    # Only rows with equal hashes can have equal texts, so build the texts of these rows only.
    rows = np.flatnonzero(np.isin(all_hashes, ordered[1:][ordered[1:] == ordered[:-1]]))
    rows_by_text = defaultdict[str, list[int]](list)
    texts = _join_texts(store, pairs[rows[rows < size]], counter.gap_keys(), options.delimiter)
    for row, text in zip(rows.tolist(), [*texts, *store.words(words[rows[rows >= size] - size])], strict=True):
        rows_by_text[text].append(row)
    for same in rows_by_text.values():
        types -= len(same) - 1
        totals[same] = totals[same].sum()
    changed = rows[rows >= size]
    word_counts[words[changed - size]] = totals[changed]
    pairs["count"] = totals[:size]
    return pairs[pairs["count"] >= options.min_count], types


def _joiner(store: IdStore, options: PhraseOptions, phrases: Iterable[str]) -> tuple[Joiner, Words]:
    """Return the Joiner for these phrases, and the word of each id that the joined text may contain.

    If the joined text of a phrase is already a word of the text, the phrase gets the id of this word.
    """
    phrase_words = [phrase.split(" ") for phrase in phrases]
    tokens = list(dict.fromkeys(chain(*phrase_words, map(options.delimiter.join, phrase_words))))
    token_of_id = store.remap(tokens)  # the index in `tokens` of each id's word, or -1
    known = np.flatnonzero(token_of_id >= 0)
    ids = {tokens[row]: id for row, id in zip(token_of_id[known].tolist(), known.tolist(), strict=True)}
    phrase_words = [words for words in phrase_words if ids.keys() >= set(words)]
    joined = [options.delimiter.join(words) for words in phrase_words]
    new_tokens = [token for token in dict.fromkeys(joined) if token not in ids]
    ids |= {token: id for id, token in enumerate(new_tokens, len(token_of_id))}
    types = store.types.concat(Words.of(new_tokens))
    tuples = [tuple(ids[word] for word in words) for words in phrase_words]
    return Joiner(len(types), tuples, np.array([ids[token] for token in joined], np.uint32)), types


def _join_phrases(
    store: IdStore, options: PhraseOptions, phrases: Iterable[str], folder: Path, workers: int, progress: Report | None
) -> IdStore:
    """Join the phrases of one pass in a text. The new ids are in first-seen order, as if the joined text were read."""
    joiner, types = _joiner(store, options, phrases)
    numbers, counts = np.zeros(len(types), np.uint32), np.zeros(len(types), np.int64)
    numbers[:FIRST_TYPE] = range(FIRST_TYPE)
    size = FIRST_TYPE

    def new_ids() -> Iterator[tuple[Ids, float]]:
        nonlocal size
        done, pieces = 0, _pieces(store, Meter(progress, "join"), joiner.next_boundary)
        for ids, length in map_in_order(lambda piece: (joiner.join(piece), len(piece)), pieces, workers):
            size = renumber(ids, numbers, counts, size)
            done += length
            yield ids, done / len(store.ids)

    def counts_and_words() -> tuple[NDArray[np.int64], Words]:
        seen, order = np.flatnonzero(numbers), np.zeros(size, np.int64)
        order[numbers[seen]] = seen
        return counts[:size], types.take(order)

    footer = store.footer
    joined_store = store_of_ids(
        new_ids(), counts_and_words, folder, cache_key=footer.cache_key, pruned=footer.pruned, noun=footer.noun
    )
    joined_store.reused = store.reused
    return joined_store


def _pieces(
    store: IdStore, meter: Meter | None = None, next_boundary: Callable[[Ids, int], int] = lambda _, end: end
) -> Iterator[Ids]:
    """Yield the ids of a text in pieces of at least PIECE_IDS, except for the last piece.

    A piece ends at the first boundary after PIECE_IDS. By default, each position is a boundary.
    """
    start, size = 0, len(store.ids)
    for number in count(1):
        end = min(next_boundary(store.ids, start + PIECE_IDS), size)
        yield store.ids[start:end]
        if meter:
            meter(end, size)
        if end == size:
            return
        start = end
        if number % RELEASE_PIECES == 0:
            store.release()


def _open_store(
    corpus: Source | IdStore, reading: ReadingOptions | None, workers: int, progress: Report | None
) -> AbstractContextManager[IdStore]:
    """Return the ids of a text as a context manager. A store that the caller passes stays open after it."""
    if isinstance(corpus, IdStore):
        return nullcontext(corpus)
    return read_corpus(Corpus(corpus), reading, workers=workers, progress=progress, check_items=refuse_items)


def refuse_items(where: str, key_type: KeyType | None) -> None:
    """Raise W2VError, for a corpus that holds items instead of words. `where` is its name."""
    raise W2VError(f"{where} holds items, and phrases are joined in texts: give a text")
