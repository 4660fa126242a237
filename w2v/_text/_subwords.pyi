from typing import final

import numpy as np
from numpy.typing import NDArray

NO_LABEL: int
IGNORED_LABEL: int

def hashes_of(blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int32]: ...
def idf_weights(
    rows: NDArray[np.int32],
    counts: NDArray[np.int32],
    starts: NDArray[np.int64],
    factors: NDArray[np.float32],
    tiny: float,
) -> NDArray[np.float32]: ...
def sum_rows(
    rows: NDArray[np.float32], chosen: NDArray[np.int32], starts: NDArray[np.int64], weights: NDArray[np.float32]
) -> NDArray[np.float32]: ...
def sum_sparse_rows(
    values: NDArray[np.float32],
    columns: NDArray[np.int32],
    row_starts: NDArray[np.int64],
    width: int,
    chosen: NDArray[np.int32],
    starts: NDArray[np.int64],
    weights: NDArray[np.float32],
) -> NDArray[np.float32]: ...

@final
class TextTypes:
    def __init__(
        self,
        blob: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        own: NDArray[np.int32],
        labels: NDArray[np.int32],
        width: int = 0,
    ) -> None: ...

@final
class Addends:
    width: int
    def __init__(self, rows: NDArray[np.uint8], outputs: NDArray[np.float32]) -> None: ...

@final
class TextRows:
    row_count: int
    def __init__(
        self,
        word_ngrams: int,
        shortest: int,
        longest: int,
        row_of_bucket: NDArray[np.int32],
        row_count: int,
        add: bool = False,
        pruned: bool = False,
    ) -> None: ...
    def find(
        self, ids: NDArray[np.uint32], known: TextTypes, new: TextTypes
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int32],
    ]: ...
    def pool(
        self, ids: NDArray[np.uint32], known: TextTypes, new: TextTypes, addends: Addends
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...

def counts_of(
    blob: NDArray[np.uint8], offsets: NDArray[np.int64], shortest: int, longest: int
) -> NDArray[np.int64]: ...
def buckets_of(
    blob: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    shortest: int,
    longest: int,
    buckets: int,
    hash_code_points: bool = False,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def compose(
    blob: NDArray[np.uint8] | bytes,
    offsets: NDArray[np.int64],
    shortest: int,
    longest: int,
    buckets: int,
    used: NDArray[np.int32],
    rows: NDArray[np.float32],
    vectors: NDArray[np.float32],
    known: bool,
) -> int: ...
