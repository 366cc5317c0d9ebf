from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.types import Expectations, Potentials

__all__ = ["expectations", "log_partition", "log_state_scores"]

_Space = Literal["auto", "scaled", "log"]

def log_partition(
    potentials: Potentials,
    automaton: Automaton,
    *,
    space: _Space = "auto",
    initial: NDArray[np.float64] | None = None,
    final: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]: ...
def expectations(potentials: Potentials, automaton: Automaton, *, space: _Space = "auto") -> Expectations: ...
def log_state_scores(
    potentials: Potentials, automaton: Automaton, *, space: _Space = "auto"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
