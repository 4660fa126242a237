import numpy as np
from numpy.typing import NDArray

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
    blob: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    shortest: int,
    longest: int,
    row_of_bucket: NDArray[np.int32],
    rows: NDArray[np.float32],
    own: NDArray[np.float32],
) -> None: ...
