"""Names and defaults of pictures that the command line needs without loading matplotlib."""

from typing import Literal

Groups = Literal["sections", "clusters", "frequency"]

WORDS = 200  # of a map, by default
PAIRS = 20  # of a section of analogy questions, by default
CLUSTERS = 8
