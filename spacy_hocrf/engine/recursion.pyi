import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.types import Potentials

__all__ = ["Batch", "Chain", "Workspace"]

class Chain:
    automaton: Automaton
    def __init__(self, automaton: Automaton) -> None: ...

class Batch:
    sequences: int
    tokens: int
    longest: int
    rows: int
    spans: int
    lengths: int
    scalable: bool
    potentials: Potentials
    def __init__(
        self,
        potentials: Potentials,
        chain: Chain,
        initial: NDArray[np.float64] | None = None,
        final: NDArray[np.float64] | None = None,
    ) -> None: ...

class Workspace:
    def __init__(self, chain: Chain, batch: Batch) -> None: ...
