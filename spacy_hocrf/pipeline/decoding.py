"""What a model predicts for Docs: the best segmentation around what earlier components have set,
and how probable its spans are.

Nothing is changed here, neither the model nor a Doc.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.marginals import Window, segment_marginals, window_marginals
from spacy_hocrf.engine.viterbi import Best, viterbi
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.placement import Placed
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.pipeline.annotation import Annotation, constrain
from spacy_hocrf.pipeline.targets import Prediction, Target
from spacy_hocrf.types import CONTINUE, FIRST, LAST, Potentials, Segments

__all__ = ["Decoder", "Revise", "Revised"]

NamedSpans = Sequence[tuple[int, int, str]]
"""Start, end and label."""


class Revised(NamedTuple):
    """Segmentations of D Docs, and what is proved about them."""

    best: Best
    # [D] no segmentations of the Docs that were decided on together score higher by more, nats
    gap: NDArray[np.float64] | None = None
    certificate: NDArray[np.bool_] | None = None  # [D] proved to be the best ones?


Revise = Callable[[TokenBatch, Potentials, Automaton, Best], Revised]
"""Looks at the log potentials and the best segmentation of each Doc by itself, and decides."""


@dataclass(frozen=True)
class Decoder:
    """A trained model."""

    structure: Structure
    scheme: LabelScheme
    automaton: Automaton
    weights: Placed | NDArray[np.float64]  # placed, or [F]
    target: Target

    def predict(
        self,
        batch: TokenBatch,
        *,
        scores: bool,
        threshold: float | None,
        revise: Revise | None = None,
    ) -> list[Prediction]:
        """Spans of every Doc.

        scores (bool): with their probabilities, in which `revise` has no part; a threshold computes
            them too.
        threshold (Optional[float]): leave out spans that are less probable.
        revise (Optional[Revise]): puts other segmentations in the place of the best ones.
        RAISES (ValueError): H007 if a Doc has no allowed segmentation.
        """
        if self.structure.index is not None:
            batch.prefetch([*self.structure.index.attributes, *self.target.reads, "IS_SPACE"])
        presets = self.target.presets(batch)
        potentials, best = self._decode(batch, presets)
        revised = Revised(best)
        if revise is not None:
            revised = revise(batch, potentials, self.automaton, best)
        decoded = self.scheme.spans(revised.best.segments)
        probabilities = None
        if scores or threshold is not None:
            probabilities = np.concatenate(
                [np.zeros(0), *self.probabilities(potentials, self._named(decoded))]
            )
        predictions = self._select(batch, presets, decoded, probabilities, threshold)
        if revised.gap is None or revised.certificate is None:
            return predictions
        proofs = zip(predictions, revised.gap.tolist(), revised.certificate.tolist())
        return [
            prediction._replace(gap=gap, certificate=certificate)
            for prediction, gap, certificate in proofs
        ]

    def probabilities(
        self, potentials: Potentials, spans: Sequence[NamedSpans]
    ) -> list[NDArray[np.float64]]:
        """P(exactly this span is in the segmentation | Doc, constraints) of some spans of each Doc."""
        if self.scheme.encoding == "segments":
            segments = [
                [s for span in found for s in self.scheme.encode_span(*span)] for found in spans
            ]
            return segment_marginals(potentials, self.automaton, segments)
        lengths = np.diff(potentials.offsets).tolist()
        windows = [
            _window(self.scheme, i, span, lengths[i])
            for i, found in enumerate(spans)
            for span in found
        ]
        flat = window_marginals(potentials, self.automaton, windows)
        return np.split(flat, np.cumsum([len(found) for found in spans])[:-1])

    def _decode(
        self, batch: TokenBatch, presets: Mapping[int, Annotation]
    ) -> tuple[Potentials, Best]:
        free = self.structure.allowed(batch)
        allowed = free.copy() if presets else free
        for i, preset in presets.items():
            tokens = slice(batch.offsets[i], batch.offsets[i + 1])
            allowed[tokens] = self._around(free[tokens], preset)
        potentials = self.structure.compile(self.structure.observe(batch), allowed).potentials(
            self.weights
        )
        best = viterbi(potentials, self.automaton)
        stuck = np.isneginf(best.scores)
        # this model cannot have what was set before: decode freely, and give way to it in `_select`
        if stuck.any() and presets:
            allowed = np.where(np.repeat(stuck, np.diff(batch.offsets))[:, None], free, allowed)
            potentials = replace(potentials, allowed=allowed)
            best = viterbi(potentials, self.automaton)
        for doc in np.flatnonzero(np.isneginf(best.scores) & (np.diff(batch.offsets) > 0)).tolist():
            raise ValueError(Errors.H007.format(text=repr(batch.docs[doc].text[:60])))
        return potentials, best

    def _named(self, decoded: Segments) -> list[NamedSpans]:
        """The same spans Doc by Doc, with their labels."""
        rows = list(
            zip(
                decoded.start.tolist(),
                decoded.end.tolist(),
                (self.scheme.labels[y] for y in decoded.label.tolist()),
            )
        )
        offsets = decoded.offsets.tolist()
        return [rows[first:last] for first, last in pairwise(offsets)]

    def _around(self, bits: NDArray[np.uint8], preset: Annotation) -> NDArray[np.uint8]:
        """Bits of the segmentations that agree with what was set before; what this model cannot
        have is outside.
        """
        spans = tuple(span for span in preset.spans if self._can_have(*span))
        return constrain(self.scheme, bits, Annotation(spans, preset.unknown))

    def _can_have(self, start: int, end: int, label: str) -> bool:
        scheme = self.scheme
        if label not in scheme.labels:
            return False
        limit = (
            scheme.limits[scheme.outside + 1 + scheme.labels.index(label)]
            if scheme.encoding == "segments"
            else 0
        )
        return limit == 0 or end - start <= limit

    def _select(
        self,
        batch: TokenBatch,
        presets: Mapping[int, Annotation],
        decoded: Segments,
        scores: NDArray[np.float64] | None,
        threshold: float | None,
    ) -> list[Prediction]:
        """Trim white space, drop what is improbable or in the way of what was there before."""
        base = np.repeat(batch.offsets[:-1], np.diff(decoded.offsets))
        start, end = base + decoded.start, base + decoded.end
        if self.target.trims and batch.blank.any():
            start, end = _without_blanks(batch.blank, start, end)
        keep = start < end
        if scores is not None and threshold is not None:
            keep &= ~(scores < threshold)
        if presets:
            taken = np.zeros(len(batch) + 1, dtype=np.int64)  # known tokens up to each token
            for i, preset in presets.items():
                taken[batch.offsets[i] + 1 : batch.offsets[i + 1] + 1] = ~preset.unknown
            taken = np.cumsum(taken)
            keep &= taken[start] == taken[end]
        start, end, label = (start - base)[keep], (end - base)[keep], decoded.label[keep]
        chosen = None if scores is None else scores[keep]
        offsets = np.concatenate([[0], np.cumsum(keep)])[decoded.offsets].tolist()
        names = self.scheme.labels
        return [
            Prediction(
                start[i:j], end[i:j], label[i:j], names, None if chosen is None else chosen[i:j]
            )
            for i, j in pairwise(offsets)
        ]


def _without_blanks(
    blank: NDArray[np.bool_], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Spans without white space at either end; empty if there is nothing else.

    blank (bool [N]): is each token white space?
    start, end (int64 [m]): spans; the result has the same extents.
    """
    solid = np.flatnonzero(~blank)
    first = np.append(solid, len(blank))[np.searchsorted(solid, start)]
    last = np.append(-1, solid)[np.searchsorted(solid, end)]  # the last one before `end`
    return np.minimum(first, end), np.maximum(last + 1, np.minimum(first, end))


def _window(scheme: LabelScheme, sequence: int, span: tuple[int, int, str], length: int) -> Window:
    """What makes a decoded span of a CRF exactly this span: its own labels, and neighbours that do
    not prolong it.
    """
    start, end, label = span
    path = np.zeros((end - start, scheme.n_labels), dtype=np.uint8)
    for segment in scheme.encode_span(start, end, label):
        path[segment.start - start, segment.label] = FIRST | CONTINUE | LAST
    closed = np.full((1, scheme.n_labels), FIRST | CONTINUE | LAST, dtype=np.uint8)
    closed[0, scheme.continuing(label)] = 0
    before = scheme.encoding == "io" and start > 0
    after = scheme.encoding in ("io", "bio") and end < length
    allowed = np.concatenate([closed[: int(before)], path, closed[: int(after)]])
    return Window(sequence, start - int(before), allowed)
