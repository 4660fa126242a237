from typing import final

import numpy as np
import numpy.typing as npt

@final
class Walker:
    def __init__(
        self,
        indptr: npt.NDArray[np.int64],
        neighbours: npt.NDArray[np.uint32],
        weights: npt.NDArray[np.float32] | None,
        p: float,
        q: float,
        length: int,
        seed: int,
    ) -> None: ...
    def walks(self, first: int, last: int) -> npt.NDArray[np.uint32]: ...

def count_ids(ids: npt.NDArray[np.uint32], counts: npt.NDArray[np.int64]) -> None: ...
