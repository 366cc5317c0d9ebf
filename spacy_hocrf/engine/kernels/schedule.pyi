import numpy as np
from numpy.typing import NDArray

__all__ = ["schedule"]

def schedule(
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    end: NDArray[np.int32],
    gain: NDArray[np.float64],
) -> NDArray[np.bool_]: ...
