import numpy as np
from numpy.typing import NDArray

__all__ = ["add_gathered_into", "add_scattered_into"]

def add_gathered_into(
    scores: NDArray[np.float64], table: NDArray[np.float64], codes: NDArray[np.int32]
) -> None: ...
def add_scattered_into(
    table: NDArray[np.float64],
    codes: NDArray[np.int32],
    expectations: NDArray[np.float64],
    scale: float,
) -> None: ...
