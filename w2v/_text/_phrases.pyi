from typing import final

import numpy as np
import numpy.typing as npt

SEPARATOR: int
CONNECTOR: int
PAIR: np.dtype[np.void]

@final
class PairTable: ...

@final
class PairCounter:
    bits: int
    part: int
    remaining_parts: list[tuple[int, int]]
    def __init__(
        self, kinds: npt.NDArray[np.uint8], hashes: npt.NDArray[np.uint64], room: int, bits: int, part: int
    ) -> None: ...
    def count(self, ids: npt.NDArray[np.uint32]) -> None: ...
    def pairs(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.uint64]]: ...
    def gap_keys(self) -> npt.NDArray[np.uint64]: ...

@final
class Joiner:
    def __init__(self, types: int, phrases: list[tuple[int, ...]], ids: npt.NDArray[np.uint32]) -> None: ...
    def next_boundary(self, ids: npt.NDArray[np.uint32], start: int) -> int: ...
    def join(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]: ...

def renumber(
    ids: npt.NDArray[np.uint32], numbers: npt.NDArray[np.uint32], counts: npt.NDArray[np.int64], size: int
) -> int: ...
def appended_hashes(
    blob: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], delimiter: bytes, base: int
) -> npt.NDArray[np.uint64]: ...
def ids_to_text(
    ids: npt.NDArray[np.uint32], blob: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]: ...
