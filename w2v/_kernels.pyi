import numpy as np
from numpy.typing import NDArray

from w2v.losses.layers import OutputLayer

MOST_CHUNK_IDS: int

def chunk_ids(rows: float, width: int, window: int) -> int: ...
def step_for(name: str) -> bool: ...
def worker_bytes(
    layer: OutputLayer,
    *,
    width: int,
    window: int,
    cbow: bool,
    per_pair: bool,
    chunk: int,
    workers: int,
    bfloat16: bool,
) -> int: ...

class Kernel:
    def __init__(
        self,
        *,
        ids: NDArray[np.uint32],
        words: NDArray[np.int32],
        tokens_before: NDArray[np.int64],
        keep: NDArray[np.uint32],
        inputs: NDArray[np.float32] | NDArray[np.uint16],
        outputs: NDArray[np.float32] | NDArray[np.uint16],
        layer: OutputLayer,
        cbow: bool,
        corrected: bool,
        window: int,
        shrink_windows: bool,
        per_pair: bool,
        alpha: float,
        min_alpha: float,
        epochs: int,
        seed: int,
        chunk: int,
        workers: int,
        instruction_set: str,
    ) -> None: ...
    def run(self, worker: int) -> None: ...
    def stop(self) -> None: ...
    def restore(self, position: int, losses: NDArray[np.float64], predictions: NDArray[np.int64]) -> None: ...
    @property
    def position(self) -> int: ...
    @property
    def tokens_trained(self) -> int: ...
    @property
    def losses(self) -> NDArray[np.float64]: ...
    @property
    def predictions(self) -> NDArray[np.int64]: ...
