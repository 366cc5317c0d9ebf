import numpy as np
from numpy.typing import NDArray

__all__ = ["add_suffixes", "add_to_suffixes"]

def add_suffixes(values: NDArray[np.float64], suffix: NDArray[np.int32]) -> None: ...
def add_to_suffixes(values: NDArray[np.float64], suffix: NDArray[np.int32]) -> None: ...
