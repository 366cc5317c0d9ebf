from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.types import Segments

__all__ = [
    "Lexicon",
    "any_set",
    "distinct",
    "end_to_end",
    "entity_columns",
    "packed_flags",
    "set_labels",
    "spread_lists",
]

def any_set(column: NDArray[np.uint64]) -> bool: ...

class Lexicon:
    @property
    def count(self) -> int: ...
    def __init__(self, width: int, most: int) -> None: ...
    def clear(self) -> None: ...
    def look_up(
        self, column: NDArray[np.uint64], find: Callable[[NDArray[np.uint64]], NDArray[np.int32]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...

def distinct(column: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]: ...
def end_to_end(strings: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
def entity_columns(
    offsets: NDArray[np.int64], spans: Segments, hashes: NDArray[np.uint64]
) -> NDArray[np.uint64]: ...
def set_labels(
    column: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    spans: Segments,
    hashes: NDArray[np.uint64],
) -> None: ...
def packed_flags(
    columns: Sequence[NDArray[np.uint64]], codes: NDArray[np.int32], others: NDArray[np.int32]
) -> NDArray[np.uint64]: ...
def spread_lists(
    firsts: NDArray[np.int64], codes: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
