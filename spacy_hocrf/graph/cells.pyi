import numpy as np
from numpy.typing import NDArray

__all__ = ["add_up", "disagree", "move"]

def add_up(
    assignment: NDArray[np.int32],
    offsets: NDArray[np.int64],
    vertices: NDArray[np.int32],
    states: NDArray[np.int32],
    weights: NDArray[np.float64],
    fires: NDArray[np.uint8] | None = None,
) -> float: ...
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
    length: float,
) -> None: ...
