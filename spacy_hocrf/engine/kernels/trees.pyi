import numpy as np
from numpy.typing import NDArray

__all__ = ["add_suffixes", "add_to_suffixes", "arc_constants"]

def add_suffixes(values: NDArray[np.float64], suffix: NDArray[np.int32]) -> None: ...
def add_to_suffixes(values: NDArray[np.float64], suffix: NDArray[np.int32]) -> None: ...
def arc_constants(
    const: NDArray[np.float64],
    length_pattern: NDArray[np.int32],
    length_score: NDArray[np.float64],
    pattern_body: NDArray[np.int32],
    arc_pattern: NDArray[np.int32],
) -> NDArray[np.float64]: ...
