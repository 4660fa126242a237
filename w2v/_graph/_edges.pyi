import numpy as np
import numpy.typing as npt

class BadLine(Exception): ...

def split_edges(
    text: bytes,
    delimiter: int,
    fields: int,
    first: int,
    second: int,
    third: int,
    weighted: bool,
    left: bytes,
    right: bytes,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]: ...
def count_degrees(ids: npt.NDArray[np.uint32], degrees: npt.NDArray[np.int64], directed: bool) -> None: ...
def scatter(
    ids: npt.NDArray[np.uint32],
    edge_weights: npt.NDArray[np.float32] | None,
    ends: npt.NDArray[np.int64],
    neighbours: npt.NDArray[np.uint32],
    weights: npt.NDArray[np.float32] | None,
    directed: bool,
) -> None: ...
def sort_rows(
    indptr: npt.NDArray[np.int64],
    neighbours: npt.NDArray[np.uint32],
    weights: npt.NDArray[np.float32] | None,
    degrees: npt.NDArray[np.int64],
    add: bool,
    first: int,
    last: int,
) -> None: ...
def close_gaps(
    indptr: npt.NDArray[np.int64],
    neighbours: npt.NDArray[np.uint32],
    weights: npt.NDArray[np.float32] | None,
    degrees: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]: ...
