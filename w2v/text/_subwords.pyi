import numpy as np
from numpy.typing import NDArray

NO_LABEL: int
IGNORED_LABEL: int

def hashes_of(blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int32]: ...

class TextRows:
    rows: int
    def __init__(
        self, words: int, word_ngrams: int, row_of_bucket: NDArray[np.int32], rows: int, add: bool
    ) -> None: ...
    def find(
        self,
        ids: NDArray[np.uint32],
        row_of_type: NDArray[np.int32],
        label_of_type: NDArray[np.int32],
        hash_of_type: NDArray[np.int32],
        ngram_starts: NDArray[np.int64],
        ngram_buckets: NDArray[np.int32],
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int32],
    ]: ...

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
