import numpy as np
from numpy.typing import NDArray

__all__ = ["MaxSum", "spanning_forest"]

def spanning_forest(
    one: NDArray[np.int32], other: NDArray[np.int32], n_vertices: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...

class MaxSum:
    def __init__(
        self,
        offsets: NDArray[np.int64],
        order: NDArray[np.int32],
        parent: NDArray[np.int32],
        table_offsets: NDArray[np.int64],
        tables: NDArray[np.float64],
    ) -> None: ...
    def maximise(self, scores: NDArray[np.float64], assignment: NDArray[np.int32]) -> float: ...
    def max_marginals_into(
        self, scores: NDArray[np.float64], marginals: NDArray[np.float64]
    ) -> None: ...
