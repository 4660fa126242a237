import numpy as np
from numpy.typing import NDArray

WIDTH: int

def update_best(
    cosines: NDArray[np.float32],  # (U, W)
    questions: NDArray[np.int32],  # (Q, 3)
    rows: NDArray[np.int32],  # (U,)
    next_variant: NDArray[np.int32],  # (V,)
    first: int,
    multiply: bool,
    epsilon: float,
    best_scores: NDArray[np.float32],  # (Q,)
    best_rows: NDArray[np.int64],  # (Q,)
) -> None: ...
def keep_best(
    scores: NDArray[np.float32],  # (Q, W)
    first: int,
    left_out: NDArray[np.int64],  # (m,)
    starts: NDArray[np.int64],  # (Q + 1,)
    best_scores: NDArray[np.float32],  # (Q, K)
    best_rows: NDArray[np.int64],  # (Q, K)
) -> None: ...
