"""Questions to word vectors as they are typed: `king`, `paris london`, `king - man + woman`."""

from collections.abc import Iterable
from dataclasses import dataclass

from w2v.errors import SettingsError
from w2v.vectors.benchmarks import Method
from w2v.vectors.keyed import KeyedVectors, Neighbours


@dataclass(frozen=True)
class Query:
    """Words to be near to, words to be far from, and how the two are weighed (see KeyedVectors.most_similar)."""

    positive: list[str]
    negative: list[str]
    method: Method

    @property
    def formula(self) -> str:
        """What is highest for the answer x."""
        if self.method == "mul":
            near, far = (" * ".join(f"cos(x, {word})" for word in words) for words in (self.positive, self.negative))
            return f"3CosMul: {near or '1'}{f' / ({far})' if far else ''}, cosines shifted to 0..1"
        if self.negative:
            terms = " + ".join(self.positive) + "".join(f" - {word}" for word in self.negative)
            return f"3CosAdd: cos(x, {terms.strip()}), of unit vectors"
        if len(self.positive) > 1:
            return f"cos(x, mean of {', '.join(self.positive)}), of unit vectors"
        return f"cos(x, {self.positive[0]})"

    def answer(self, vectors: KeyedVectors, topn: int) -> Neighbours:
        """The `topn` best words and their scores. Raises UnknownWordError."""
        search = vectors.most_similar_cosmul if self.method == "mul" else vectors.most_similar
        return search(self.positive, self.negative, topn)


def parse(arguments: Iterable[str], vectors: KeyedVectors, method: Method = "add") -> Query:
    """The query that the arguments spell. Raises SettingsError where they spell none.

    An argument is a word of the vocabulary, or words and the operators + and - between blanks. After an
    operator, and alone, + and - are words themselves.
    """
    tokens = [token for text in arguments for token in ([text] if text in vectors else text.split())]
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
        sides[sign].append(word)
    return Query(sides["+"], sides["-"], method)
