import numpy as np
import numpy.typing as npt

NEEDS_STR_LOWER: int
BREAK_CLASSES: dict[str, int]
PICTOGRAPHIC_FLAG: int
WORD_FLAG: int
BLANK_FLAG: int

def lower(text: bytes, table: npt.NDArray[np.uint32]) -> bytes: ...
def split_words(text: bytes, classes: npt.NDArray[np.uint8], punctuation: bool) -> bytes: ...
