"""What a model predicts for Docs: the best segmentation around what earlier components have set, and how probable its spans are.

Nothing is changed here, neither the model nor a Doc.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.marginals import Window, segment_marginals, window_marginals
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.errors import Errors
from spacy_hocrf.model.network import Network
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.pipeline.annotation import Annotation, constrain, trim
from spacy_hocrf.pipeline.targets import Prediction, Target
from spacy_hocrf.types import CONTINUE, FIRST, LAST, Potentials, Segmentation

__all__ = ["Decoder"]

NamedSpans = Sequence[tuple[int, int, str]]
"""Start, end and label."""


@dataclass(frozen=True)
class Decoder:
    """A trained model."""

    network: Network
    scheme: LabelScheme
    automaton: Automaton
    weights: NDArray[np.float64]  # [F]
    target: Target

    def predict(self, docs: Sequence[Doc], *, scores: bool, threshold: float | None) -> list[Prediction]:
        """Spans of every Doc, decoded together.

        scores (bool): with their probabilities; a threshold computes them too.
        threshold (Optional[float]): leave out spans that are less probable.
        RAISES (ValueError): H007 if a Doc has no allowed segmentation.
        """
        presets = [self.target.preset(doc) for doc in docs]
        potentials, segmentations = self._decode(docs, presets)
        decoded = [self.scheme.decode(segments) for segments in segmentations]
        probabilities: Sequence[NDArray[np.float64] | None] = [None] * len(docs)
        if scores or threshold is not None:
            probabilities = self.probabilities(potentials, decoded)
        return [self._select(*each, threshold) for each in zip(docs, presets, decoded, probabilities)]

    def probabilities(self, potentials: Potentials, spans: Sequence[NamedSpans]) -> list[NDArray[np.float64]]:
        """P(exactly this span is in the segmentation | Doc, constraints) of some spans of each Doc."""
        if self.scheme.encoding == "segments":
            segments = [[s for span in found for s in self.scheme.encode_span(*span)] for found in spans]
            return segment_marginals(potentials, self.automaton, segments)
        lengths = np.diff(potentials.offsets).tolist()
        windows = [_window(self.scheme, i, span, lengths[i]) for i, found in enumerate(spans) for span in found]
        flat = window_marginals(potentials, self.automaton, windows)
        return np.split(flat, np.cumsum([len(found) for found in spans])[:-1])

    def _decode(self, docs: Sequence[Doc], presets: Sequence[Annotation | None]) -> tuple[Potentials, list[Segmentation]]:
        lengths = [len(doc) for doc in docs]
        free = self.network.allowed(docs)
        pieces = np.split(free, np.cumsum(lengths)[:-1])
        bits = [self._around(piece, preset) for piece, preset in zip(pieces, presets)]
        batch = self.network.compile(self.network.observe(docs), np.concatenate(bits))
        potentials = batch.potentials(self.weights)
        segmentations, best = viterbi(potentials, self.automaton)
        stuck = np.isneginf(best)
        if stuck.any():  # this model cannot have what was set before: decode freely, and give way to it in `_select`
            allowed = np.where(np.repeat(stuck, lengths)[:, None], free, potentials.allowed)
            potentials = replace(potentials, allowed=allowed)
            segmentations, best = viterbi(potentials, self.automaton)
        for doc, score in zip(docs, best):
            if len(doc) and np.isneginf(score):
                raise ValueError(Errors.H007.format(text=repr(doc.text[:60])))
        return potentials, segmentations

    def _around(self, bits: NDArray[np.uint8], preset: Annotation | None) -> NDArray[np.uint8]:
        """Bits of the segmentations that agree with what was set before; what this model cannot have is outside."""
        if preset is None:
            return bits
        spans = tuple(span for span in preset.spans if self._can_have(*span))
        return constrain(self.scheme, bits, Annotation(spans, preset.unknown))

    def _can_have(self, start: int, end: int, label: str) -> bool:
        scheme = self.scheme
        if label not in scheme.labels:
            return False
        limit = scheme.limits[scheme.outside + 1 + scheme.labels.index(label)] if scheme.encoding == "segments" else 0
        return limit == 0 or end - start <= limit

    def _select(
        self,
        doc: Doc,
        preset: Annotation | None,
        spans: NamedSpans,
        scores: NDArray[np.float64] | None,
        threshold: float | None,
    ) -> Prediction:
        """Trim white space, drop what is improbable or in the way of what was there before."""
        taken = np.zeros(len(doc), dtype=bool) if preset is None else ~preset.unknown
        kept: list[tuple[int, int, str]] = []
        chosen: list[int] = []
        for i, (start, end, label) in enumerate(spans):
            if self.target.trims:
                start, end = trim(doc, start, end)
            improbable = threshold is not None and scores is not None and scores[i] < threshold
            if start < end and not improbable and not taken[start:end].any():
                kept.append((start, end, label))
                chosen.append(i)
        return Prediction(tuple(kept), None if scores is None else scores[chosen])


def _window(scheme: LabelScheme, sequence: int, span: tuple[int, int, str], length: int) -> Window:
    """What makes a decoded span of a CRF exactly this span: its own labels, and neighbours that do not prolong it."""
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
