"""Queries to word vectors as people type them: `king`, `paris london`, `king - man + woman`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from w2v._errors import SettingsError
from w2v._vectors.keyed import KeyedVectors, Neighbours

Method = Literal["add", "mul"]  # 3CosAdd or 3CosMul, see `analogies` in _evaluation/analogies.py

MAX_PHRASE_WORDS = 16
SIGNS = {"+", "-"}
MINUS = "\N{MINUS SIGN}"  # as in printed formulas
SIGNED = re.compile(r"(?=[+-]|.*\+)[+-]?[^+-]+(?:[+-][^+-]+)*")  # such as king-man+woman, or -man


@dataclass(frozen=True)
class Query:
    """A search for words near the `positive` words and far from the `negative` ones; see KeyedVectors.most_similar."""

    positive: list[str]
    negative: list[str]
    method: Method

    @property
    def formula(self) -> str:
        """The score of a candidate word x, as a formula to print."""
        if self.method == "mul":
            near, far = (" * ".join(f"cos(x, {word})" for word in words) for words in (self.positive, self.negative))
            return f"3CosMul: {near or '1'}{f' / ({far})' if far else ''}, cosines shifted to 0..1"
        if self.negative:
            terms = " + ".join(self.positive) + "".join(f" - {word}" for word in self.negative)
            return f"3CosAdd: cos(x, {terms.strip()}), of unit vectors"
        if len(self.positive) > 1:
            return f"cos(x, mean of {', '.join(self.positive)}), of unit vectors"
        return f"cos(x, {self.positive[0]})"

    @property
    def words(self) -> list[str]:
        return [*self.positive, *self.negative]

    def answer(self, vectors: KeyedVectors, topn: int, restrict_vocab: int | None = None) -> Neighbours:
        """Return the `topn` best words and their scores, among the first `restrict_vocab` words (default: all).

        Raises:
            UnknownWordError: If a word of the query does not have a vector.
        """
        search = vectors.most_similar_cosmul if self.method == "mul" else vectors.most_similar
        return search(self.positive, self.negative, topn, restrict_vocab)


def split_if_unknown(word: str, vectors: KeyedVectors) -> list[str]:
    """Return [word] if it is in the vocabulary, otherwise the words into which the training's tokenizer splits it."""
    return [word] if vectors.is_known(word) else vectors.words_in(word) or [word]


def parse(arguments: Iterable[str], vectors: KeyedVectors, method: Method = "add") -> Query:
    """Parse the arguments of a query.

    An argument is a word of the vocabulary, or words and the operators + and -, separated by spaces. The spaces are
    optional in `king-man+woman` and `king -man`, but not in `king-man`, which may be a hyphenated word. A sign counts
    as a word if it follows an operator or is the only argument. Words outside the vocabulary are normalised like the
    training text, for instance to lower case. Consecutive words that form a phrase of the model, such as `new york`,
    are joined.

    Raises:
        SettingsError: If there is no word, or if none follows the last operator.
    """
    pieces = (
        piece
        for text in arguments
        for piece in ([text] if vectors.is_known(text) else text.replace(MINUS, "-").split())
    )
    tokens = _with_phrases([token for piece in pieces for token in _split_at_signs(piece, vectors)], vectors)
    if not tokens:
        raise SettingsError("no word is given")
    sides: dict[str, list[str]] = {"+": [], "-": []}
    rest = iter(tokens)
    for token in rest:
        sign, word = "+", token
        if token in sides and len(tokens) > 1:
            sign, word = token, next(rest, "")
            if not word:
                raise SettingsError(f"a word is missing after the last {token}")
        sides[sign] += split_if_unknown(word, vectors)
    return Query(sides["+"], sides["-"], method)


def _split_at_signs(piece: str, vectors: KeyedVectors) -> list[str]:
    """Split a piece such as `king-man+woman` or `-man` into words and operators, unless it is a word itself."""
    is_word = any(vectors.is_known(word) and not SIGNS.isdisjoint(word) for word in split_if_unknown(piece, vectors))
    return [piece] if is_word or not SIGNED.fullmatch(piece) else re.findall(r"[+-]|[^+-]+", piece)


def _with_phrases(tokens: list[str], vectors: KeyedVectors) -> list[str]:
    """Join tokens that form phrases, if the model was trained on phrases: from left to right, the longest first."""
    delimiter = vectors.header.phrase_delimiter
    if delimiter is None:
        return tokens
    joined, start = list[str](), 0
    while start < len(tokens):
        sizes = range(min(len(tokens) - start, MAX_PHRASE_WORDS), 0, -1)
        words = [split_if_unknown(token, vectors) for token in tokens[start : start + MAX_PHRASE_WORDS]]
        phrases = ((delimiter.join(chain.from_iterable(words[:size])), size) for size in sizes)
        word, size = next((phrase for phrase in phrases if vectors.is_known(phrase[0])), (tokens[start], 1))
        joined.append(word)
        start += size
    return joined
