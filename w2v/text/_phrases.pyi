from typing import final

import numpy as np
import numpy.typing as npt

SEPARATOR: int
CONNECTOR: int
STARTS: int
ENDS: int

@final
class Counter:
    bits: int
    part: int
    left: list[tuple[int, int]]
    def __init__(
        self, kinds: npt.NDArray[np.uint8], spellings: npt.NDArray[np.uint64], room: int, bits: int, part: int
    ) -> None: ...
    def count(self, ids: npt.NDArray[np.uint32]) -> None: ...
    def pairs(
        self,
    ) -> tuple[
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint32],
        npt.NDArray[np.int64],
    ]: ...
    def gap_words(self, gap: int) -> list[int]: ...

@final
class Joiner:
    def __init__(
        self, kinds: npt.NDArray[np.uint8], phrases: list[tuple[int, ...]], ids: npt.NDArray[np.uint32]
    ) -> None: ...
    def cut(self, ids: npt.NDArray[np.uint32], start: int) -> int: ...
    def join(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]: ...

@final
class Numbering:
    size: int
    def __init__(self, types: int, fixed: int) -> None: ...
    def renumber(self, ids: npt.NDArray[np.uint32]) -> None: ...
    def old_ids(self) -> npt.NDArray[np.uint32]: ...
    def counts(self) -> npt.NDArray[np.int64]: ...

def spellings(
    blob: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], delimiter: bytes, base: int
) -> npt.NDArray[np.uint64]: ...
def spell(
    ids: npt.NDArray[np.uint32], sentence_end: int, blob: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]: ...
