import numpy as np
from numpy.typing import NDArray

__all__ = ["bound_violations", "last_states"]

def bound_violations(
    offsets: NDArray[np.int64],
    chance: NDArray[np.float64],
    cover: NDArray[np.float64],
    kinds: NDArray[np.int64],
    by_state: NDArray[np.int32],
    by_kind: NDArray[np.int32],
    apart: NDArray[np.uint8],
    broken: NDArray[np.uint8],
) -> NDArray[np.float64]: ...
def last_states(
    offsets: NDArray[np.int64], labels: NDArray[np.int32], after: NDArray[np.int32]
) -> NDArray[np.int32]: ...
