import numpy as np
from numpy.typing import NDArray

__all__ = ["add_gathered_into", "add_rows_into", "add_scattered_into", "gather"]

Ints = NDArray[np.int32]
Values = NDArray[np.float32]

def add_gathered_into(
    scores: NDArray[np.float64], table: NDArray[np.float64], codes: NDArray[np.int32]
) -> None: ...
def add_scattered_into(
    table: NDArray[np.float64],
    codes: NDArray[np.int32],
    expectations: NDArray[np.float64],
    scale: float,
) -> None: ...
def gather(
    placed: NDArray[np.float64],
    place: Ints,
    values: Values | None = None,
    result: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]: ...
def add_rows_into(
    placed: NDArray[np.float64],
    places: Ints,
    expected: NDArray[np.float64],
    scale: float,
    values: Values | None = None,
) -> None: ...
