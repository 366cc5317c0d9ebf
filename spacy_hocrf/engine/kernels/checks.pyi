from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["all_between", "all_finite", "all_of_kinds", "first_uncarried", "rises_from_0"]

def all_finite(values: NDArray[np.float64]) -> bool: ...
def all_between(values: NDArray[np.int32], least: int, most: int) -> bool: ...
def all_of_kinds(
    owner: object, kinds: dict[str, tuple[np.dtype[Any], int]], optional: tuple[str, ...] = ()
) -> bool: ...
def rises_from_0(offsets: NDArray[np.int64]) -> bool: ...
def first_uncarried(
    patterns: NDArray[np.int32],
    pattern_body: NDArray[np.int32],
    pattern_folded: NDArray[np.uint8],
    parts: NDArray[np.uint8] | None = None,
    start: int = 0,
) -> int: ...
