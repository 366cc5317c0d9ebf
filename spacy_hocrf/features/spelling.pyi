import numpy as np
from numpy.typing import NDArray

__all__ = ["HYPHENS", "SPELLINGS", "spellings"]

SPELLINGS: tuple[str, ...]
HYPHENS: str

def spellings(words: list[str], first: int = 0) -> NDArray[np.int32]: ...
