"""The loaded model as a soft teacher while it is adapted to new texts.

Where annotation leaves something open, the loaded model fills it in softly: each segmentation that agrees
with the annotation is weighted with its probability, among these, under the loaded model. So a few texts in
which only one label is annotated teach that label, and little is forgotten of the others. That label, and any
that the loaded model did not have, occurs only where it is annotated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.annotation import Annotation

__all__ = ["LoadedModel"]


@dataclass(frozen=True)
class LoadedModel:
    """A loaded model, in the structure that has grown since.

    weights (float64 [F]): its weights, 0 for new features.
    annotated (Sequence[int]): the engine's labels that occur only where they are annotated.
    """

    weights: NDArray[np.float64]
    annotated: Sequence[int]

    def allowed(
        self,
        bits: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        annotations: Sequence[Annotation],
    ) -> NDArray[np.uint8]:
        """Clear the bits of labels that occur only where they are annotated: in spans, which need no bits,
        and where a constraint on the text names the label of tokens.

        bits (uint8 [N, Y]): bits of the tokens of D texts. offsets (int64 [D + 1]): first token of each text.
        """
        if not self.annotated:
            return bits
        cleared: NDArray[np.uint8] = bits.copy()
        cleared[:, self.annotated] = 0
        for first, annotation in zip(offsets, annotations):
            for start, end, _, kind in annotation.constraints:
                if kind in ("inside", "only"):
                    cleared[first + start : first + end] = bits[first + start : first + end]
        return cleared
