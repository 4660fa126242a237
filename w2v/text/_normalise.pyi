import numpy as np
import numpy.typing as npt

SPECIAL: int
BREAK_CLASSES: dict[str, int]
PICTOGRAPHIC_FLAG: int
WORD_FLAG: int
BLANK_FLAG: int

def lower(text: bytes, table: npt.NDArray[np.uint32]) -> bytes: ...
def cut(text: bytes, classes: npt.NDArray[np.uint8], punctuation: bool) -> bytes: ...
