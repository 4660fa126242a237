"""gensim.models.phrases: join word pairs that often occur together into one token (Mikolov et al. 2013b, section 4)."""

from __future__ import annotations

import inspect
import itertools
import logging
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar, TypedDict

from w2v._errors import W2VError, one_line
from w2v._formats import pickles
from w2v._formats.pickles import PickledObject
from w2v._system.files import PICKLE, PathLike, open_regular, translate_os_errors
from w2v._system.schema import Count, Integer, Number, convert, decode, encode
from w2v._text import phrases as core
from w2v.gensim import utils

ENGLISH_CONNECTOR_WORDS = core.ENGLISH_CONNECTOR_WORDS
log = logging.getLogger("gensim.models.phrases")

NEGATIVE_INFINITY = -math.inf  # the score of words that are not a phrase

Scorer = Callable[..., float]
ScoredToken = tuple[str, float | None]  # a token, and its score if it is a phrase


@dataclass(frozen=True)
class _Scorer:
    """A scoring of w2v._text.phrases as a function with gensim's arguments.

    It returns -inf where the score is undefined; npmi also does so for pairs rarer than min_count.
    """

    name: core.Scoring

    def __call__(
        self,
        worda_count: float,
        wordb_count: float,
        bigram_count: float,
        len_vocab: float,
        min_count: float,
        corpus_word_count: float,
    ) -> float:
        if not (worda_count and wordb_count):
            return NEGATIVE_INFINITY
        if self.name == "npmi" and not (bigram_count and min_count <= bigram_count < corpus_word_count):
            return NEGATIVE_INFINITY
        scorer = core.SCORERS[self.name]
        return float(scorer(worda_count, wordb_count, bigram_count, len_vocab, min_count, corpus_word_count))


DEFAULT_SCORER = core.SCORERS["default"]
original_scorer, npmi_scorer = _Scorer("default"), _Scorer("npmi")
ARGUMENTS = tuple(inspect.signature(original_scorer).parameters)
_SCORERS: dict[str, Scorer] = {"default": original_scorer, "npmi": npmi_scorer}  # by the name that a file stores


def _find_scorer(fname: PathLike, name: str) -> Scorer:
    """Return a scorer by the name that a file stores: a known scorer, or a function in an imported module."""
    module, _, function = name.partition(":")
    scorer: Any = _SCORERS.get(name)
    if scorer is None:
        scorer = getattr(sys.modules.get(module), function, None)
        if not inspect.isfunction(scorer) or not set(ARGUMENTS) <= inspect.signature(scorer).parameters.keys():
            raise W2VError(f"{fname}: its scorer {name:.100} is unknown: import the module that defines it first")
    found: Scorer = _SCORERS.setdefault(name, scorer)
    return found


# The types of the fields of a phrases file, besides the name of the class.
FIELDS = {"min_count": Number, "threshold": Number, "delimiter": str, "scoring": str, "connector_words": list[str]}
FROZEN_FIELDS: dict[str, Any] = FIELDS | {"phrasegrams": dict[str, Number]}
PHRASES_FIELDS: dict[str, Any] = FIELDS | {"max_vocab_size": Number, "progress_per": Integer, "min_reduce": Integer}
PHRASES_FIELDS |= {"corpus_word_count": Count, "vocab": dict[str, Count]}


class TransformedCorpus:
    """Sentences with their phrases joined. Each iteration joins them again."""

    def __init__(self, phrases: PhrasesTransformation, sentences: Iterable[Iterable[str]]) -> None:
        self.phrases, self.sentences = phrases, sentences

    def __iter__(self) -> Iterator[list[str]]:
        return (self.phrases.join_phrases(sentence) for sentence in self.sentences)

    def __getitem__(self, number: int) -> list[str]:
        """Return sentence `number` with its phrases joined, if the sentences can be indexed, as in a list."""
        return self.phrases.join_phrases(self.sentences[number])  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.sentences)  # type: ignore[arg-type]


class PhrasesTransformation(utils.SaveLoad):
    """The base of Phrases and FrozenPhrases, which define how `score_candidate` scores a phrase."""

    _kind: ClassVar[str]  # the name of the class in its files
    _fields: ClassVar[dict[str, Any]]  # the types of the fields of its files
    delimiter: str
    threshold: float
    scoring: Scorer

    def __init__(self, connector_words: Iterable[str]) -> None:
        self.connector_words = frozenset(connector_words)

    def score_candidate(self, word_a: str, word_b: str, in_between: Sequence[str]) -> tuple[str | None, float | None]:
        """Return the phrase from `word_a` to `word_b` and its score, or (None, None) if they are not a phrase."""
        raise NotImplementedError

    def analyze_sentence(self, sentence: Iterable[str]) -> Iterator[ScoredToken]:
        """Yield the tokens of a sentence with phrases joined. A phrase does not begin or end with a connector word."""
        scores: dict[int, float] = {}
        for position, token in enumerate(self._join(sentence, scores)):
            yield token, scores.get(position)

    def join_phrases(self, sentence: Iterable[str]) -> list[str]:
        return self._join(sentence, {})

    def _join(self, sentence: Iterable[str], scores: dict[int, float]) -> list[str]:
        """Return the tokens of a sentence with phrases joined. Add the scores of phrases to `scores`, by position."""
        connectors, score_candidate = self.connector_words, self.score_candidate
        tokens: list[str] = []
        start: str | None = None  # a word that may begin a phrase
        between: list[str] = []  # the connector words after it
        for word in sentence:
            if word in connectors:
                (tokens if start is None else between).append(word)
                continue
            if start is not None:
                phrase, score = score_candidate(start, word, between)
                if phrase is not None and score is not None:
                    scores[len(tokens)] = score
                    tokens.append(phrase)
                    start, between = None, []
                    continue
                tokens.append(start)
                if between:
                    tokens += between
                    between = []
            start = word
        return tokens if start is None else [*tokens, start, *between]

    def __getitem__(self, sentence: Iterable[Any]) -> list[str] | TransformedCorpus:
        """Join the phrases of a sentence; or return a TransformedCorpus if given the sentences of a corpus."""
        items = iter(sentence)
        is_iterator = items is sentence
        first = next(items, None)
        if is_iterator and first is not None:
            sentence = itertools.chain([first], items)  # put back the item that was taken to see its type
        return self.join_phrases(sentence) if isinstance(first, str | None) else TransformedCorpus(self, sentence)

    def find_phrases(self, sentences: Iterable[Iterable[str]]) -> dict[str, float]:
        """Return the phrases in these sentences, and their scores."""
        found: dict[str, float] = {}
        for sentence in sentences:
            scores: dict[int, float] = {}
            tokens = self._join(sentence, scores)
            found |= {tokens[position]: score for position, score in scores.items()}
        return found

    def save(self, fname_or_handle: PathLike | BinaryIO, **_: Any) -> None:
        """Write a JSON file, which gensim cannot open. gensim's keyword arguments for pickles have no effect.

        For a scorer of your own, the file has only its name: import the module that defines it before `load`.
        """
        scorer_name = next(name for name, scorer in _SCORERS.items() if scorer == self.scoring)
        content = {field: getattr(self, field) for field in self._fields}
        content |= {"class": self._kind, "scoring": scorer_name, "connector_words": sorted(self.connector_words)}
        with utils.gensim_exceptions(str(fname_or_handle)), utils.open_output(fname_or_handle) as file:
            file.write(encode(content, fname_or_handle).encode())

    @classmethod
    def load(cls, fname: PathLike, **_: Any) -> Any:
        """Read a file that `save` or gensim's own `save` wrote, as Phrases or FrozenPhrases, whichever saved it.

        Raises:
            W2VError: The file is another one, is damaged, or has a scorer of the program that is not imported.
        """
        with utils.gensim_exceptions(fname), utils.unpacked(fname, PICKLE + rb"|\{") as path:
            with translate_os_errors(path), open_regular(path) as file:
                saved = file.read()
            try:
                is_pickle = re.match(PICKLE, saved)
                content = _read_pickle(path) if is_pickle else decode(dict[str, Any], saved, path)
                class_: Any = {"Phrases": Phrases, "FrozenPhrases": FrozenPhrases}[content["class"]]
                schema = TypedDict("schema", class_._fields)  # type: ignore[misc]
                fields: dict[str, Any] = dict(convert(schema, content, path))
            except (W2VError, KeyError, TypeError) as error:
                reason = one_line(error).removeprefix(f"{path}: ")
                raise W2VError(f"{fname}: not a file of {cls.__name__}.save: {reason}") from error
        scoring = _find_scorer(fname, fields.pop("scoring"))
        class_ = cls if issubclass(cls, class_) else class_
        loaded = class_.__new__(class_)
        PhrasesTransformation.__init__(loaded, fields.pop("connector_words"))
        vars(loaded).update(fields, scoring=scoring)
        return loaded


class Phrases(PhrasesTransformation):
    """A phrase detector: it counts words and word pairs, and joins the pairs with a score above the threshold.

    Attributes:
        vocab: The counts of words, and of pairs joined by the delimiter.
        corpus_word_count: The number of words counted.
    """

    _kind, _fields = "Phrases", PHRASES_FIELDS

    def __init__(
        self,
        sentences: Iterable[Iterable[str]] | None = None,
        min_count: float = 5,
        threshold: float = 10.0,
        max_vocab_size: int = 40_000_000,
        delimiter: str = "_",
        progress_per: int = 10_000,
        scoring: str | Scorer = "default",
        connector_words: Collection[str] = frozenset(),
    ) -> None:
        """Count the words of `sentences`, if given.

        Raises:
            ValueError: min_count or threshold is invalid, or the scorer lacks some of gensim's arguments.
        """
        super().__init__(connector_words)
        if min_count <= 0:
            raise ValueError("min_count should be at least 1")
        if threshold <= 0 and scoring == "default":
            raise ValueError("threshold should be positive for default scoring")
        if scoring == "npmi" and not -1 <= threshold <= 1:
            raise ValueError("threshold should be between -1 and 1 for npmi scoring")
        if isinstance(scoring, str):
            if scoring not in _SCORERS:
                raise ValueError(f"unknown scoring {scoring!r}: choose default, npmi or a function")
            self.scoring = _SCORERS[scoring]
        else:
            missing = [name for name in ARGUMENTS if name not in inspect.signature(scoring).parameters]
            if missing:
                raise ValueError(f"scoring function missing expected parameters {missing}")
            self.scoring = scoring
            if scoring not in _SCORERS.values():
                _SCORERS[f"{scoring.__module__}:{getattr(scoring, '__qualname__', scoring)}"] = scoring
        self.min_count, self.threshold, self.max_vocab_size = min_count, threshold, max_vocab_size
        self.delimiter, self.progress_per = delimiter, progress_per
        self.min_reduce = 1
        self.corpus_word_count = 0
        self.vocab: dict[str, int] = {}
        if sentences is not None:
            self.add_vocab(sentences)
            self.add_lifecycle_event("created", msg=f"built {self}")

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}<{len(self.vocab)} vocab, min_count={self.min_count}, threshold={self.threshold}, "
            f"max_vocab_size={self.max_vocab_size}>"
        )

    def add_vocab(self, sentences: Iterable[Iterable[str]]) -> None:
        """Count the words and pairs of more sentences. Drop the rarest when there are more than max_vocab_size."""
        log.info("collecting all words and their counts")
        vocab, connectors = self.vocab, self.connector_words
        for sentence in sentences:
            pending: list[str] = []  # the last word that is not a connector word, and the connector words after it
            for word in sentence:
                self.corpus_word_count += 1
                if word not in connectors:
                    vocab[word] = vocab.get(word, 0) + 1
                    if pending:
                        phrase = self.delimiter.join([*pending, word])
                        vocab[phrase] = vocab.get(phrase, 0) + 1
                    pending = [word]
                elif pending:
                    pending.append(word)
            if len(vocab) > self.max_vocab_size:
                utils.prune_vocab(vocab, self.min_reduce)
                self.min_reduce += 1
        log.info("collected %d token types (unigram + bigrams)", len(vocab))

    def score_candidate(self, word_a: str, word_b: str, in_between: Sequence[str]) -> tuple[str | None, float | None]:
        vocab = self.vocab
        phrase = self.delimiter.join((word_a, *in_between, word_b))
        count, count_a, count_b = vocab.get(phrase), vocab.get(word_a), vocab.get(word_b)
        if not (count and count_a and count_b):
            return None, None
        if self.scoring is original_scorer:  # the call of _score would take as long as all else here
            score = DEFAULT_SCORER(count_a, count_b, count, len(vocab), self.min_count, self.corpus_word_count)
        else:
            score = self._score(count_a, count_b, count)
        return (phrase, score) if score > self.threshold else (None, None)

    def _score(self, count_a: int, count_b: int, count: int) -> float:
        """Return the score of a phrase that occurs `count` times, from the counts of its first and its last word."""
        if not (count_a and count_b):
            return NEGATIVE_INFINITY
        numbers = count_a, count_b, count, len(self.vocab), self.min_count, self.corpus_word_count
        if isinstance(self.scoring, _Scorer):
            return self.scoring(*numbers)
        # By name: the arguments of a scorer of the program may be in another order.
        return self.scoring(**dict(zip(ARGUMENTS, numbers, strict=True)))

    def export_phrases(self) -> dict[str, float]:
        """Return all counted phrases with a score above the threshold, and their scores."""
        count_of, found = self.vocab.get, dict[str, float]()
        for token, count in self.vocab.items():
            first, delimiter, rest = token.partition(self.delimiter)
            if delimiter:
                score = self._score(count_of(first, 0), count_of(rest.rpartition(delimiter)[2], 0), count)
                if score > self.threshold:
                    found[token] = score
        return found

    def freeze(self) -> FrozenPhrases:
        return FrozenPhrases(self)


class FrozenPhrases(PhrasesTransformation):
    """The phrases of a Phrases object without its counts. It is smaller and faster, but cannot learn more phrases."""

    _kind, _fields = "FrozenPhrases", FROZEN_FIELDS

    def __init__(self, phrases_model: Phrases) -> None:
        super().__init__(phrases_model.connector_words)
        self.threshold, self.min_count = phrases_model.threshold, phrases_model.min_count
        self.delimiter, self.scoring = phrases_model.delimiter, phrases_model.scoring
        self.phrasegrams = phrases_model.export_phrases()

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}<{len(self.phrasegrams)} phrases, min_count={self.min_count}, "
            f"threshold={self.threshold}>"
        )

    def score_candidate(self, word_a: str, word_b: str, in_between: Sequence[str]) -> tuple[str | None, float | None]:
        between = self.delimiter.join(["", *in_between, ""]) if in_between else self.delimiter
        phrase = f"{word_a}{between}{word_b}"
        score = self.phrasegrams.get(phrase, NEGATIVE_INFINITY)
        return (phrase, score) if score > self.threshold else (None, None)


Phraser = FrozenPhrases


# -- the pickles of gensim 1 to 4, which are read as data -----------------------------------------------

PICKLED_CLASSES = {"Phrases": "Phrases", "Phraser": "FrozenPhrases", "FrozenPhrases": "FrozenPhrases"}
PICKLED_SCORERS = {"original_scorer": "default", "npmi_scorer": "npmi"}
# The values of attributes that old files lack.
DEFAULTS = {"max_vocab_size": 40_000_000, "progress_per": 10_000, "min_reduce": 1, "corpus_word_count": 0}
NUMBERS = ("min_count", "threshold", *DEFAULTS)


def _read_pickle(path: PathLike) -> dict[str, Any]:
    """Return the fields of a Phrases or FrozenPhrases object, named as in the files that w2v.gensim saves.

    Raises:
        W2VError: The file is damaged, or holds something else.
    """
    root = pickles.read(path)
    name = root.name.rpartition(".")[2] if isinstance(root, PickledObject) else type(root).__name__
    if not isinstance(root, PickledObject) or name not in PICKLED_CLASSES:
        raise W2VError(f"{path}: not phrases, but a pickle of {name:.60}")
    saved = DEFAULTS | root.attributes()
    fields: dict[str, Any] = {number: saved[number] for number in NUMBERS if number in saved}
    fields |= {"class": PICKLED_CLASSES[name], "scoring": _scorer_name(saved.get("scoring"))}
    try:
        fields["delimiter"] = _text(saved.get("delimiter", "_"))
        connectors: Any = saved.get("connector_words", saved.get("common_terms", []))
        if isinstance(connectors, PickledObject):  # frozenset(list) in protocol 2
            (connectors,) = connectors.arguments
        fields["connector_words"] = sorted(map(_text, connectors))
        if name == "Phrases":
            fields["vocab"] = {_text(token): count for token, count in saved["vocab"].items()}
        else:
            fields["phrasegrams"] = {
                _phrase(words, fields["delimiter"]): score[-1] if isinstance(score, tuple) else score
                for words, score in saved["phrasegrams"].items()
            }
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise W2VError(f"{path}: damaged: its phrases are not words and numbers") from error
    return fields


def _scorer_name(scoring: Any) -> str:
    """Return the name of a scorer: "default" and "npmi" for gensim's own, "module:function" for others."""
    if isinstance(scoring, type) and issubclass(scoring, PickledObject):  # it stands for a function
        module, _, function = scoring.name.rpartition(".")
        return PICKLED_SCORERS.get(function, function) if module == "gensim.models.phrases" else f"{module}:{function}"
    return "default" if scoring is None else str(scoring)[:60]


def _phrase(words: Any, delimiter: str) -> str:
    """Return a phrase. gensim 3 stores a tuple of its words, with the count and the score as value."""
    return delimiter.join(map(_text, words)) if isinstance(words, tuple) else _text(words)


def _text(value: Any) -> str:
    """Return a word. gensim 3 stores words as UTF-8."""
    if not isinstance(value, str | bytes):
        raise TypeError("not a word")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
