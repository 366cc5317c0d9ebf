from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.features.table import ObservationTable
from spacy_hocrf.features.tokens import JoinedStrings

__all__ = ["MAX_COLUMNS", "Plan"]

MAX_COLUMNS: int

class Plan:
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def steps(self) -> tuple[tuple[str, int, Sequence[tuple[int, int]]], ...]: ...
    def __init__(
        self,
        columns: Sequence[str],
        steps: Sequence[tuple[str, int, Sequence[tuple[int, int]]]],
    ) -> None: ...
    def __reduce__(self) -> tuple[Callable[..., Plan], tuple[Any, ...]]: ...
    def find(
        self,
        table: ObservationTable,
        values: Sequence[NDArray[np.uint64]],
        texts_of: Callable[[NDArray[np.uint64]], JoinedStrings],
        offsets: NDArray[np.int64],
        edge: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
