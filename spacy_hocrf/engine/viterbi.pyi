import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.types import Potentials, Segmentation

__all__ = ["viterbi"]

def viterbi(potentials: Potentials, automaton: Automaton) -> tuple[list[Segmentation], NDArray[np.float64]]: ...
