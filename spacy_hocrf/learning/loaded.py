"""What a loaded model keeps saying of texts while it is adapted to them.

Where annotation leaves something open, the model that was loaded fills it in, softly: of the
segmentations that agree with the annotation, each has the probability that this model gives it among
them. So a few texts in which one new label alone is annotated teach that label, and little of the others is
forgotten. A label that the loaded model did not have is nowhere but where it is annotated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LoadedModel"]


@dataclass(frozen=True)
class LoadedModel:
    """A model that was loaded, in the structure that has grown since.

    weights (float64 [F]): its weights, 0 for features that are new.
    unheard (Sequence[int]): the engine's labels that it did not have.
    """

    weights: NDArray[np.float64]
    unheard: Sequence[int]

    def allowed(self, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Bits of every token and label without labels that it did not have, uint8 [N, Y]."""
        if not self.unheard:
            return bits
        bits = bits.copy()
        bits[:, self.unheard] = 0
        return bits
