import numpy as np
from numpy.typing import NDArray

def fill_alias(weights: NDArray[np.float64], alias_table: NDArray[np.uint32], stacks: NDArray[np.int64]) -> None: ...
def fill_huffman(
    counts: NDArray[np.int64], sums: NDArray[np.int64], parents: NDArray[np.int32], bits: NDArray[np.int8]
) -> None: ...
def fill_depths(parents: NDArray[np.int32], depths: NDArray[np.int64]) -> None: ...
def fill_paths(
    parents: NDArray[np.int32],
    bits: NDArray[np.int8],
    starts: NDArray[np.int64],
    nodes: NDArray[np.int32],
    codes: NDArray[np.int8],
) -> None: ...
