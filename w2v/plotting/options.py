"""Names and defaults of pictures that the command line needs without loading matplotlib."""

from typing import Literal

Groups = Literal["sections", "clusters", "frequency"]

SKIPPED = 100  # of the most frequent words, which say little about a model: the, of, and
WORDS = 200  # of a map, by default
PAIRS = 20  # of a section of analogy questions, by default
CLUSTERS = 8
WORDS_OF_A_CLUSTER = 5  # at least, on average, by default


def skipped(words: int, top: int) -> int:
    """How many of so many words are left out by default, the most frequent: SKIPPED, if `top` words remain then."""
    return max(0, min(SKIPPED, words - top))
