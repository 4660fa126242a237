"""`compare_periods`: find the words that two collections of documents use differently, such as two periods.

If nothing has changed, a document of one period could as well be from the other: documents are exchangeable, but words
are not, because they come in bursts. So each word is tested by a permutation of its documents:

- A model gives each context word a vector. The vector of a word in a period is the mean of the vectors of the words
  around it, each weighted by how often `train` keeps it, times a matrix. The matrix is fitted by ridge regression, so
  that it maps the mean context of a word to the word's own vector (Khodak et al. 2018, "A La Carte Embedding",
  https://arxiv.org/abs/1805.05388). No training follows, so thousands of permutations cost less than the model.
- The distance of a word is 1 minus the cosine of its vectors in both periods. The documents that have the word are
  dealt to the periods again at random, as many to each as before. p is the share of deals with at least this distance,
  where the observed one counts, too (Rodriguez, Spirling & Stewart 2023, "Embedding Regression",
  https://doi.org/10.1017/S0003055422001228). Deals stop early for words that are exceeded often (Besag & Clifford 1991,
  "Sequential Monte Carlo p-values"). If there are few different deals, each is made once. If more than 1,000 documents
  of a period have the word, a random sample of 1,000 is used.
- The adjusted p is for lists. If all words with an adjusted p of at most 0.05 are called changed, at most 5 % of them
  are false on average (Benjamini & Hochberg 1995).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._display import Result
from w2v._errors import SettingsError, W2VError, pluralise
from w2v._evaluation.change import MIN_COUNT, RESTRICT_VOCAB
from w2v._evaluation.evaluate import NEIGHBOURS
from w2v._options import check_numbers, options_of
from w2v._progress import Meter, Report
from w2v._text.columns import has_columns
from w2v._text.corpus import Corpus, Source
from w2v._text.idstore import ReadingOptions
from w2v._text.lines import read_lines
from w2v._text.words import as_list
from w2v._training.slices import joined
from w2v._training.train import train
from w2v._vectors.cosines import Floats, unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, Neighbours, vectors_of

log = logging.getLogger("w2v")

LEVEL = 0.05  # of the adjusted p of words that changed
MIN_DOCUMENTS = 5
MAX_DOCUMENTS = 1_000  # with a word, of each period; a random sample of more documents is taken
OFFSETS = np.array([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5])  # of the context words from the word
SAMPLE = 1e-4  # the threshold of subsampling, by which context words are weighted
MIN_FITTED = 20  # occurrences of the words to which the matrix is fitted
FITTED = 200  # occurrences that are used of each of these words
RIDGE = 0.01  # weight of the identity, as a share of the weight of a word in each direction
MAX_DEALS = 20_000  # random deals of a word's documents; EXCEEDED larger distances end them earlier
EXCEEDED = 10
DEALS_AT_ONCE = 200
SAME = 1e-6  # smaller differences between distances are rounding


@dataclass(frozen=True)
class ChangedWord:
    """How differently two periods use a word.

    Attributes:
        word: The word.
        counts: How often it occurs in each period.
        documents: How many documents of each period have it.
        cosine: One minus the cosine of its vectors in both periods, 0 to 2.
        by_chance: The mean of this distance if the documents are dealt at random.
        z: How far the distance is above this mean, in standard deviations.
        p: The probability of such a distance if the documents are dealt at random.
        lowest_p: The lowest p that these numbers of documents, and of random deals, allow.
        adjusted_p: The same, adjusted for the number of compared words.
        first, second: The words with the vectors nearest to the word's in each period, and their cosines.
    """

    word: str
    counts: list[int]
    documents: list[int]
    cosine: float
    by_chance: float
    z: float
    p: float
    lowest_p: float
    adjusted_p: float
    first: Neighbours
    second: Neighbours


@dataclass(frozen=True)
class PeriodComparison(Result):
    """The words that two periods use differently.

    Attributes:
        documents: Number of documents of each period.
        compared: Number of words that were compared.
        significant: Number of compared words with an adjusted p of at most 0.05.
        possible: Number of compared words that would be significant if each had its `lowest_p`.
        least: At least this many words must have their `lowest_p` before any is significant; 0 if none can be.
        words: The words asked for; or the words with the largest distance above chance, the significant ones first.
    """

    documents: list[int]
    compared: int
    significant: int
    possible: int
    least: int
    words: list[ChangedWord]


def compare_periods(
    first: Source,
    second: Source,
    *,
    model: KeyedVectors | HasWordVectors | None = None,
    words: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    min_count: int = MIN_COUNT,
    min_documents: int = MIN_DOCUMENTS,
    restrict_vocab: int = RESTRICT_VOCAB,
    topn: int = 20,
    seed: int = 1,
    progress: Report | None = None,
    **given: Any,
) -> PeriodComparison:
    """Find the words that two collections of documents use differently, such as two periods; see the module.

    Args:
        first, second: The documents, as for `train`. Of several files, or of a folder, each file is a document.
            Otherwise, each line, or each text of a list or a column, is a document. No file may be in both periods, and
            without `model`, the texts must be readable twice.
        model: The vectors of the context words; by default of a model that is trained on all documents.
        words: The words to report, by default the `topn` that changed most.
        exclude: Words that are not compared, such as proper names. They are normalised as the texts of the model.
        min_count: Leave out words that occur less often in one of the periods.
        min_documents: Leave out words that fewer documents of one of the periods have.
        restrict_vocab: Compare only this many words, the first of the model.
        topn: Number of words to report.
        seed: Seed of the training and of the random deals.
        progress: See `train`; then called in the phase "compare".
        given: Other arguments of `train`. With `model`, only column, header, encoding and errors.

    Raises:
        W2VError: The texts cannot be used, fewer than two words are left, or one of `words` is not compared.
        SettingsError: An argument is impossible, a file is in both periods, or texts to train can be read only once.
    """
    check_numbers(min_count=min_count, min_documents=min_documents, restrict_vocab=restrict_vocab, topn=topn, seed=seed)
    if model is not None and (others := given.keys() - {"column", "header", "encoding", "errors"}):
        raise SettingsError(f"{min(others)} has no effect with model, which has its own settings: leave it out")
    reading = ReadingOptions(**{name: given[name] for name in options_of(ReadingOptions) if name in given})
    _check_sources([first, second], is_trained=model is None)
    if model is None:
        model = train(joined([first, second]), **{"views": "words", "seed": seed, "progress": progress, **given})
    vectors = vectors_of(model)
    periods = _Periods(vectors, [first, second], reading, seed)
    excluded = [vectors.row_of(" ".join(vectors.words_in(str(word)))) for word in as_list(exclude or ())]
    if unknown := excluded.count(None):
        log.warning("the model lacks %d of %s to exclude", unknown, pluralise(len(excluded), "word"))
    candidates = np.setdiff1d(
        np.flatnonzero(periods.counts[:, :restrict_vocab].min(axis=0) >= min_count),
        [row for row in excluded if row is not None],
    )
    numbers = {row: periods.documents_with(row) for row in candidates.tolist()}
    rows = [row for row, documents in numbers.items() if min(documents) >= min_documents]
    if len(rows) < 2:
        raise W2VError(
            f"{' and '.join(map(str, periods.documents))} documents share {pluralise(len(rows), 'word')} that occur at "
            f"least {min_count} times, in at least {pluralise(min_documents, 'document')}, in each period: at least 2 "
            "are needed, so give more documents, or lower --min-count or --min-documents (min_count=, min_documents=)"
        )
    position = {vectors.index_to_key[row]: number for number, row in enumerate(rows)}
    asked = None if words is None else list(dict.fromkeys(as_list(words)))
    for word in asked or ():
        if word not in position:
            raise W2VError(
                f"{word!r} is not compared: it is excluded, unknown, or occurs less than {min_count} times or in fewer "
                f"than {pluralise(min_documents, 'document')} of a period"
            )
    periods.fit()
    meter, tested = Meter(progress, "compare"), []
    for number, row in enumerate(rows, 1):
        tested.append(periods.test(row))
        meter(number, len(rows))
    from scipy import stats  # imported late: it takes longer to import than the whole package

    *_, p, lowest = np.array(tested).T
    adjusted = stats.false_discovery_control(p).tolist()
    ranks = np.arange(1, len(rows) + 1)
    enough = ranks[np.sort(lowest) * (len(rows) / ranks) <= LEVEL].tolist()  # as in false_discovery_control
    if not enough:
        log.warning(
            "too few documents: no p can be below %.2g, which is too high for any of %d words to count as changed",
            lowest.min(),
            len(rows),
        )
    if asked is None:
        order = sorted(range(len(rows)), key=lambda at: (adjusted[at] > LEVEL, tested[at][1] - tested[at][0]))[:topn]
    else:
        order = [position[word] for word in asked]
    found = []
    for at in order:
        row, near = rows[at], periods.neighbours(rows[at])
        counts = periods.counts[:, row].tolist()
        key = vectors.index_to_key[row]
        found.append(ChangedWord(key, counts, numbers[row], *tested[at], adjusted[at], *near))
    least, possible = (enough[0], enough[-1]) if enough else (0, 0)
    significant = sum(p <= LEVEL for p in adjusted)
    return PeriodComparison(periods.documents, len(rows), significant, possible, least, found)


def _check_sources(sources: Sequence[Source], is_trained: bool) -> None:
    """Raise SettingsError if both periods have the same file, or if a text to train can be read only once."""
    corpora = [Corpus(source) for source in sources]
    one, two = ({Path(name).resolve() for name in corpus.files} for corpus in corpora)
    if one & two:
        raise SettingsError(f"{min(one & two)} is in both periods: give each document to one period only")
    for source, corpus in zip(sources, corpora, strict=True):
        if is_trained and (isinstance(source, Iterator) or (corpus.files and corpus.total_bytes is None)):
            raise SettingsError(
                f"{corpus}: it can be read only once, but it is trained and then compared: give a file or a list, or a "
                "model (--model, model=)"
            )


class _Periods:
    """The words of two periods as rows of a model.

    Attributes:
        rows: The row of each known word of all texts, (n,).
        sentences, document_of: The numbers of its sentence and of its document, (n,).
        documents: Number of documents with a known word in each period.
        counts: How often each word occurs in each period, (2, V).
    """

    def __init__(self, vectors: KeyedVectors, sources: Sequence[Source], reading: ReadingOptions, seed: int) -> None:
        self._vectors, self._random = vectors, np.random.default_rng(seed)
        found: list[tuple[NDArray[Any], ...]] = []
        self.documents, ends = [], []
        sentence = document = 0
        for source in sources:
            corpus, before = Corpus(source), document
            are_files = not has_columns(reading.column) and corpus.files not in ([], [str(source)])
            for part in [Corpus(Path(name)) for name in corpus.files] if are_files else [corpus]:
                part.header = reading.header
                options = vectors.header.text, reading.column, reading.encoding, reading.errors
                for text, _ in read_lines(part, *options):
                    rows = vectors.lookup.find(text)[0]  # -1 at the end of a line; V + k is the unknown word k
                    sentences = sentence + np.cumsum(rows < 0)
                    numbers = np.full(len(rows), document) if are_files else sentences
                    known = (rows >= 0) & (rows < len(vectors))
                    found.append((rows[known], sentences[known], numbers[known]))
                    sentence = int(sentences[-1]) if len(rows) else sentence
                sentence += 1
                document = document + 1 if are_files else sentence
            ends.append(document)
            own = np.concatenate([numbers for *_, numbers in found])
            self.documents.append(len(np.unique(own[own >= before])))
        columns = (np.concatenate(column).astype(np.int32) for column in zip(*found, strict=True))
        self.rows, self.sentences, self.document_of = columns
        self._border = ends[0]
        is_first = self.document_of < self._border
        counts = [np.bincount(self.rows[part], minlength=len(vectors)) for part in (is_first, ~is_first)]
        self.counts = np.array(counts)
        shares = np.maximum(self.counts.sum(axis=0), 1) / max(1, len(self.rows))
        keep = np.minimum(1, np.sqrt(SAMPLE / shares) + SAMPLE / shares)
        self._contexts = (vectors.vectors * keep[:, None]).astype(np.float32)
        self._matrix = np.eye(vectors.vector_size, dtype=np.float32)
        self._order = np.argsort(self.rows, kind="stable")
        self._bounds = np.append(0, np.cumsum(self.counts.sum(axis=0)))

    def _places(self, row: int) -> NDArray[np.int64]:
        """Return where a word occurs, in the order of the text."""
        return self._order[self._bounds[row] : self._bounds[row + 1]]

    def documents_with(self, row: int) -> list[int]:
        """Return the number of documents with a word in each period."""
        found = np.unique(self.document_of[self._places(row)])
        first = int(np.searchsorted(found, self._border))
        return [first, len(found) - first]

    def fit(self) -> None:
        """Fit the matrix that maps the mean context of a word to the word's own vector.

        A ridge pulls the matrix towards the identity. Otherwise, about as many words as dimensions would be fitted
        exactly, and differences between their contexts would be lost.
        """
        rows = np.flatnonzero(self.counts.sum(axis=0) >= MIN_FITTED)
        means = np.zeros((len(rows), len(self._matrix)))
        for number, row in enumerate(rows.tolist()):
            places = self._random.permutation(self._places(row))[:FITTED]
            means[number] = self._sums(places, np.zeros(len(places), np.int64))[0] / len(places)
        own = self._vectors.vectors[rows].astype(np.float64)
        if means.any() and own.any():
            means *= np.linalg.norm(own) / np.linalg.norm(means)
            ridge = RIDGE * np.eye(len(self._matrix)) * (means**2).sum() / len(rows)
            self._matrix = np.linalg.solve(means.T @ means + ridge, means.T @ own + ridge).astype(np.float32)

    def _sums(self, places: NDArray[np.int64], groups: NDArray[np.int64]) -> Floats:
        """Return the sum of the context vectors around the places of each group, (groups, D)."""
        from scipy import sparse

        wanted = places[:, None] + OFFSETS
        near = np.clip(wanted, 0, len(self.rows) - 1)
        inside = (self.sentences[near] == self.sentences[places, None]) & (near == wanted)
        pairs = np.repeat(groups, inside.sum(axis=1)), self.rows[near[inside]]
        ones, shape = np.ones(len(pairs[0]), np.float32), (int(groups.max()) + 1, len(self._contexts))
        sums: Floats = sparse.csr_array((ones, pairs), shape=shape) @ self._contexts
        return sums

    def _by_document(self, row: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the vectors of a word, summed in each of n documents, (n, D), and which are of the first period."""
        places = self._places(row)
        documents, groups = np.unique(self.document_of[places], return_inverse=True)
        is_first = documents < self._border
        chosen = np.zeros(len(documents), bool)
        for period in (is_first, ~is_first):
            chosen[self._random.permutation(np.flatnonzero(period))[:MAX_DOCUMENTS]] = True
        taken = chosen[groups]
        numbers = np.cumsum(chosen) - 1
        return self._sums(places[taken], numbers[groups[taken]]) @ self._matrix, is_first[chosen]

    def test(self, row: int) -> tuple[float, float, float, float, float]:
        """Return the distance of a word, its mean by chance, its z, its p and its lowest p; see ChangedWord."""
        sums, is_first = self._by_document(row)
        total, number, documents = sums.sum(axis=0), int(is_first.sum()), len(is_first)

        def distances(chosen: NDArray[np.bool_]) -> NDArray[Any]:
            one = chosen.astype(np.float32) @ sums
            found: NDArray[Any] = 1 - np.einsum("nd,nd->n", unit(one), unit(total - one))
            return found

        observed = float(distances(is_first[None])[0])
        dealt: list[NDArray[Any]] = []
        exceeded = 0
        for deals in self._deals(documents, number):
            dealt.append(distances(deals))
            exceeded += int((dealt[-1] >= observed - SAME).sum())
            if exceeded >= EXCEEDED:
                break
        p = (1 + exceeded) / (1 + sum(map(len, dealt)))
        by_chance = float(dealt[0].mean())
        z = (observed - by_chance) / max(SAME, float(dealt[0].std()))
        every = math.comb(documents, number)
        # Two periods of as many documents have the same distance when they are exchanged.
        lowest = (2 if 2 * number == documents else 1) / every if every <= MAX_DEALS else 1 / (1 + MAX_DEALS)
        return observed, by_chance, z, p, lowest

    def _deals(self, documents: int, number: int) -> Iterator[NDArray[np.bool_]]:
        """Yield random choices of the documents of the first period, (n, documents).

        If there are at most MAX_DEALS, each is dealt once, except the observed one, so that p is exact.
        """
        if math.comb(documents, number) <= MAX_DEALS:
            every = _all_deals(documents, number)
            order = self._random.permutation(len(every))
            for start in range(0, len(order), DEALS_AT_ONCE):
                yield every[order[start : start + DEALS_AT_ONCE]]
        else:
            for _ in range(MAX_DEALS // DEALS_AT_ONCE):
                keys = self._random.random((DEALS_AT_ONCE, documents), np.float32)
                yield keys <= np.partition(keys, number - 1, axis=1)[:, number - 1, None]

    def neighbours(self, row: int) -> list[Neighbours]:
        """Return the words with the vectors nearest to the word's in each period, and their cosines."""
        sums, is_first = self._by_document(row)
        word, found = self._vectors.index_to_key[row], []
        for period in (is_first, ~is_first):
            near = self._vectors.most_similar(sums[period].sum(axis=0), topn=NEIGHBOURS + 1)
            found.append([each for each in near if each[0] != word][:NEIGHBOURS])
        return found


@lru_cache(maxsize=32)
def _all_deals(documents: int, number: int) -> NDArray[np.bool_]:
    """Return all choices of a number of documents except the first one, which is in the first period."""
    chosen = np.array(list(combinations(range(documents), number)))[1:]
    deals = np.zeros((len(chosen), documents), bool)
    np.put_along_axis(deals, chosen, True, axis=1)
    return deals
