from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["span_json"]

def span_json(
    bounds: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    label: NDArray[np.int32],
    millionths: NDArray[np.int64] | None,
    names: Sequence[bytes],
) -> list[str]: ...
