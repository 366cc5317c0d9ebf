import numpy as np
from numpy.typing import NDArray

__all__ = ["affixes", "infixes"]

def affixes(
    text: NDArray[np.uint8], offsets: NDArray[np.int64], size: int, at_end: bool
) -> NDArray[np.uint64]: ...
def infixes(
    text: NDArray[np.uint8], offsets: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]: ...
