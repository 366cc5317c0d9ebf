from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.features.templates import Found
from spacy_hocrf.types import Rows

__all__ = ["add_signatures_into", "rows_by_token"]

def add_signatures_into(sums: NDArray[np.uint64], rows: Rows, first: int) -> None: ...
def rows_by_token(observations: Sequence[Found], n_tokens: int) -> Rows: ...
