import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.types import Rows

__all__ = ["add_dense_gradient_into", "add_dense_scores_into", "add_rows_into", "expand"]

def add_dense_scores_into(
    scores: NDArray[np.float64],
    rows: Rows,
    feature_offsets: NDArray[np.int64],
    feature_pattern: NDArray[np.int32],
    weights: NDArray[np.float64],
) -> None: ...
def add_dense_gradient_into(
    gradient: NDArray[np.float64],
    rows: Rows,
    feature_offsets: NDArray[np.int64],
    feature_pattern: NDArray[np.int32],
    expected: NDArray[np.float64],
    scale: float,
) -> None: ...
def add_rows_into(
    gradient: NDArray[np.float64],
    features: NDArray[np.int32],
    expected: NDArray[np.float64],
    scale: float,
    values: NDArray[np.float32] | None = None,
) -> None: ...
def expand(ids: NDArray[np.int32], feature_offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
