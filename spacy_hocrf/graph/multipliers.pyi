import numpy as np
from numpy.typing import NDArray

__all__ = ["disagree", "move"]

def disagree(
    assignment: NDArray[np.int32],
    vertex: NDArray[np.int32],
    state: NDArray[np.int32],
    chosen: NDArray[np.uint8],
    gradient: NDArray[np.int8],
) -> int: ...
def move(
    scores: NDArray[np.float64],
    rewards: NDArray[np.float64],
    cells: NDArray[np.int64],
    gradient: NDArray[np.int8],
    size: float,
) -> None: ...
