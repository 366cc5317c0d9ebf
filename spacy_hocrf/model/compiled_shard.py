"""A fixed part of a data set, compiled: `engine.data_set.Shard`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.model.compiled import CompiledBatch
from spacy_hocrf.model.histories import Histories
from spacy_hocrf.model.placement import Placed
from spacy_hocrf.types import Expectations, Potentials, Scratch, Segments

__all__ = ["CompiledShard"]


class CompiledShard:
    """A shard of sequences, in the form in which the objective reads it.

    batch (CompiledBatch): the compiled sequences.
    observed (Optional[Observed]): segmentations that agree with incomplete annotation, see
        `engine.forbidden`; None if all is complete.
    gold (Segments): the annotation, if it is complete; else no segments.
    histories (Histories): trie of the model's label patterns.
    copies (int): how often each sequence counts.
    texts (Sequence[object]): name of each sequence in errors.
    weights (Optional[float64 [D]]): further factor of each sequence, above 0; None for 1.
    """

    def __init__(
        self,
        batch: CompiledBatch,
        observed: Any,
        gold: Segments,
        histories: Histories,
        copies: int,
        texts: Sequence[object],
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self.batch, self.observed, self.copies, self.weights = batch, observed, copies, weights
        self._gold, self._histories, self._texts = gold, histories, texts

    @property
    def compiled(self) -> "CompiledShard":
        """The shard itself, which is compiled already."""
        return self

    def release(self) -> None:
        """Do nothing: there is nothing to free that could be recomputed."""

    def only(self, sequence: int) -> "CompiledShard":
        """Return one sequence, which must be completely annotated, as a shard."""
        begin, end = self._gold.offsets[sequence : sequence + 2].tolist()
        offsets = np.array([0, end - begin], dtype=np.int64)
        gold = Segments(offsets, *(part[begin:end] for part in self._gold[1:]))
        assert self.observed is None and self.weights is None
        kept = self._histories, self.copies, self._texts[sequence : sequence + 1]
        return CompiledShard(self.batch.only(sequence), None, gold, *kept)

    def potentials(self, weights: Placed, scratch: Scratch) -> Potentials:
        """Return the log potentials of all sequences."""
        return self.batch.potentials(weights, scratch)

    def gold(self) -> Segments:
        """The annotation if it is complete; else no segments."""
        return self._gold

    def add_gold_into(self, counts: Placed) -> None:
        """Add the counts of each feature in the complete annotation, copies and weights included."""
        self._add_into(self._gold, float(self.copies), counts, self.weights)

    def add_segments_into(self, segments: Segments, scale: float, counts: Placed) -> None:
        """Add `scale` times the counts of each feature in a segmentation of all sequences."""
        self._add_into(segments, scale, counts, None)

    def _add_into(
        self,
        segments: Segments,
        scale: float,
        counts: Placed,
        weights: NDArray[np.float64] | None,
    ) -> None:
        located = self._histories.locate(segments, self.batch.offsets)
        self.batch.add_counts_into(self.batch.gold_counts(located, weights), scale, counts)

    def add_counts_into(self, expected: Expectations, scale: float, counts: Placed) -> None:
        """Add `scale` times the expected count of every feature."""
        self.batch.add_counts_into(expected, scale, counts)

    def describe(self, sequence: int) -> str:
        """Text of a sequence, for messages."""
        return repr(self._texts[sequence])
