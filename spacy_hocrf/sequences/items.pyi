from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Attributes", "Items", "attributes_of", "look_up", "read_items"]

Attributes = tuple[list[str], list[float] | None]  # names and values, None if all are 1

class Items(NamedTuple):
    offsets: NDArray[np.int64]  # [D + 1] first item of each sequence
    row_offsets: NDArray[np.int64]  # [N + 1] first row of each item
    attribute: NDArray[np.int32]  # [R]
    value: NDArray[np.float64] | None  # [R] None if all are 1

def read_items(sequence: Iterable[Any]) -> list[Attributes]: ...
def attributes_of(item: Any) -> Attributes: ...
def look_up(sequences: Sequence[Sequence[Attributes]], numbers: dict[str, int]) -> Items: ...
