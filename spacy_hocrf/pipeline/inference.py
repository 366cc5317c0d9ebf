"""How an answer is read off a model: what `[components.*.inference]` names.

An answer is one segmentation of every sequence, and a score of every span that is shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.marginals import Window, segment_marginals, window_marginals
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.engine.viterbi import Best, viterbi
from spacy_hocrf.errors import Errors
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.types import CONTINUE, FIRST, LAST, Potentials

__all__ = ["Inference", "NamedSpans", "Viterbi", "checked_inference"]

NamedSpans = Sequence[tuple[int, int, str]]
"""Start, end and label."""


class Inference(Protocol):
    """Reads an answer off log potentials; a value of its settings."""

    def best(self, potentials: Potentials, automaton: Automaton) -> Best:
        """The answer for D sequences: allowed segmentations, each with its score; no segments and
        -inf for a sequence that has none.
        """
        ...

    def scores(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        spans: Sequence[NamedSpans],
    ) -> NDArray[np.float64]:
        """A score of each span, at least 0, sequence after sequence: float64 [all spans].

        Scores of spans that exclude one another are added where several of them would be shown as
        one.
        """
        ...


@dataclass(frozen=True)
class Viterbi:
    """`spacy-hocrf.Viterbi.v1`: the exact best segmentation, and exact probabilities of its spans."""

    _pool: BufferPool = field(default_factory=BufferPool, init=False, repr=False, compare=False)

    def best(self, potentials: Potentials, automaton: Automaton) -> Best:
        """The segmentation of the highest score (Nguyen et al., JMLR 15, §2.4)."""
        with self._pool.lend(automaton) as buffers:
            return viterbi(potentials, automaton, buffers=buffers)

    def scores(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        spans: Sequence[NamedSpans],
    ) -> NDArray[np.float64]:
        """P(exactly this span is in the segmentation | Doc, constraints)."""
        if scheme.encoding == "segments":
            segments = [[s for span in found for s in scheme.encode_span(*span)] for found in spans]
            with self._pool.lend(automaton) as buffers:
                found = segment_marginals(potentials, automaton, segments, buffers=buffers)
            return np.concatenate([np.zeros(0), *found])
        lengths = np.diff(potentials.offsets).tolist()
        windows = [
            _window(scheme, i, span, lengths[i]) for i, found in enumerate(spans) for span in found
        ]
        with self._pool.lend(automaton) as buffers:
            return window_marginals(potentials, automaton, windows, buffers=buffers)


def checked_inference(inference: Any, name: str) -> Inference:
    """What the component of this name uses; `Viterbi` for None.

    RAISES (ValueError): H118 for what lacks a member of `Inference`.
    """
    missing = [member for member in ("best", "scores") if not hasattr(inference, member)]
    if inference is not None and missing:
        found = type(inference).__name__
        raise ValueError(Errors.H118.format(name=name, found=found, missing=", ".join(missing)))
    reader: Inference = Viterbi() if inference is None else inference
    return reader


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
