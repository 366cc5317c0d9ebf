import numpy as np
from numpy.typing import NDArray

__all__ = ["by_sequence", "schedule"]

def by_sequence(
    places: NDArray[np.int64], sequences: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
def schedule(
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    end: NDArray[np.int32],
    gain: NDArray[np.float64],
) -> NDArray[np.int64]: ...
