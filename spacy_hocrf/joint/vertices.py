"""Vertices on the segments and tokens of sequences, which patterns between documents refer to.

A *segment vertex* (sequence, start, end) has the states 0..Y-1, "exactly this segment is there,
with this label", and Y, "it is not". A *token vertex* (sequence, token) has the states 0..Y-1, the
label of the segment that covers the token. A *label vertex* (sequence, token, label) has two: 0,
"the token has this label", and 1, "it has another".

Extents: D sequences, N tokens, Y labels; V vertices, first those of V_s segments, then V_t tokens,
then V_l labels; E cells.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.types import Segments

__all__ = ["Vertices"]


@dataclass(frozen=True)
class Vertices:
    """V vertices on D sequences; positions are within the sequence."""

    tokens_of: NDArray[np.int64]  # [D + 1] first token of each sequence
    n_labels: int  # Y
    segments: NDArray[np.int64]  # [V_s, 3] sequence, start, end
    tokens: NDArray[np.int64]  # [V_t, 2] sequence, token
    labels: NDArray[np.int64]  # [V_l, 3] sequence, token, label

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """First cell of each vertex, int64 [V + 1]."""
        states = [self.n_labels + 1, self.n_labels, 2]
        return offsets_of(
            np.repeat(states, [len(self.segments), len(self.tokens), len(self.labels)])
        )

    @cached_property
    def first_token(self) -> NDArray[np.int64]:
        """First token of each segment vertex, counted over all sequences, int64 [V_s]."""
        return self.tokens_of[self.segments[:, 0]] + self.segments[:, 1]

    @cached_property
    def end_token(self) -> NDArray[np.int64]:
        """One past the last token of each segment vertex, counted over all sequences, int64 [V_s]."""
        return self.tokens_of[self.segments[:, 0]] + self.segments[:, 2]

    @cached_property
    def token(self) -> NDArray[np.int64]:
        """The token of each token vertex, counted over all sequences, int64 [V_t]."""
        return self.tokens_of[self.tokens[:, 0]] + self.tokens[:, 1]

    @cached_property
    def labelled_token(self) -> NDArray[np.int64]:
        """The token of each label vertex, counted over all sequences, int64 [V_l]."""
        return self.tokens_of[self.labels[:, 0]] + self.labels[:, 1]

    def states_in(self, segmentation: Segments) -> NDArray[np.int32]:
        """Return the state of every vertex, int32 [V].

        segmentation (Segments): a segmentation of each sequence, which covers its tokens.
        """
        # [N] number of the segment that covers each token
        covering = np.repeat(
            np.arange(len(segmentation.label)), segmentation.end - segmentation.start
        )
        segment = covering[self.first_token]
        exact = (segmentation.start[segment] == self.segments[:, 1]) & (
            segmentation.end[segment] == self.segments[:, 2]
        )
        parts = [
            np.where(exact, segmentation.label[segment], np.int32(self.n_labels)),
            segmentation.label[covering[self.token]],
        ]
        if len(self.labels):
            differs = segmentation.label[covering[self.labelled_token]] != self.labels[:, 2]
            parts.append(differs.astype(np.int32))
        return np.concatenate(parts)
