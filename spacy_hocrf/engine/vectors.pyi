import numpy as np
from numpy.typing import NDArray

__all__ = ["add_multiples_into", "dot", "products_into"]

def dot(x: NDArray[np.float64], y: NDArray[np.float64]) -> float: ...
def products_into(
    out: NDArray[np.float64],
    s: NDArray[np.float64],
    y: NDArray[np.float64],
    rows: int,
    newest: int,
    g: NDArray[np.float64],
) -> None: ...
def add_multiples_into(
    out: NDArray[np.float64],
    s: NDArray[np.float64],
    s_factor: NDArray[np.float64],
    y: NDArray[np.float64],
    y_factor: NDArray[np.float64],
    rows: int,
) -> None: ...
