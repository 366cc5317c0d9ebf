import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.sequences.features import Features
from spacy_hocrf.sequences.items import Items

__all__ = ["Steps"]

class Steps:
    def __init__(
        self, items: Items, label: NDArray[np.int32], features: Features, automaton: Automaton
    ) -> None: ...
    def take(
        self,
        order: NDArray[np.int64],
        weights: NDArray[np.float64],
        precision: float,
        before: float,
    ) -> float: ...
