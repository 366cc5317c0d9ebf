import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.types import Rows

__all__ = [
    "expand_rows",
    "kinds_among",
    "place_cells",
    "sort_cells",
    "token_bits",
]

Ints = NDArray[np.int32]
Values = NDArray[np.float32]

def token_bits(bits: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint8]: ...
def place_cells(
    feature_offsets: NDArray[np.int64],
    slot: Ints,
    feature_pattern: Ints,
    kind: Ints,
    sizes: Ints,
    sparse: Ints,
    n_labels: int,
    vector: int,
) -> tuple[Ints, NDArray[np.int64], NDArray[np.uint16], Ints, Ints, int]: ...
def sort_cells(
    rows: Rows,
    kind: int,
    observation_kind: Ints,
    row_place: Ints,
    cell_offsets: NDArray[np.int64],
    cell_label: NDArray[np.uint16],
    cell_place: Ints,
    short_rows: bool,
) -> tuple[
    Ints, NDArray[np.uint16] | Ints, Values | None, Ints, Ints, NDArray[np.uint16], Values | None
]: ...
def kinds_among(ids: Ints, entries: Ints, kinds: int) -> list[int]: ...
def expand_rows(
    rows: Rows,
    feature_offsets: NDArray[np.int64],
    feature_pattern: Ints,
    feature_part: NDArray[np.uint8],
    place: Ints,
    folded: NDArray[np.uint8],
    n_labels: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint8], Ints, Ints, Values | None]: ...
