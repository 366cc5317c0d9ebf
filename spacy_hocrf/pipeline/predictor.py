"""What a model predicts for Docs: the best segmentation around what earlier components have set,
and how probable its spans are.

Nothing is changed here, neither the model nor a Doc.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.engine.viterbi import Best
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import TokenBatch, beginning
from spacy_hocrf.model.placement import Placed
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.pipeline.annotation import Annotation, constrain
from spacy_hocrf.pipeline.blanks import scores_of_shown, without_blanks
from spacy_hocrf.pipeline.decoders import Answer, Decoder, ExpectedF, Viterbi
from spacy_hocrf.pipeline.targets import Prediction, Target
from spacy_hocrf.types import LabelPattern, Potentials, Segments

__all__ = ["Predictor", "Revise", "Revised"]


class Revised(NamedTuple):
    """Segmentations of D Docs, and what is proved about them."""

    best: Best
    # [D] no segmentations of the Docs that were decided on together score higher by more, nats
    gap: NDArray[np.float64] | None = None
    certificate: NDArray[np.bool_] | None = None  # [D] proved to be the best ones?


Revise = Callable[[TokenBatch, Potentials, Automaton, Best], Revised]
"""Looks at the log potentials and the best segmentation of each Doc by itself, and decides."""


LEAST = 1e-6
"""Less probable spans are not worth the memory, whatever the threshold."""

Read = TypeVar("Read")
"""What is read off the log potentials of a batch."""


@dataclass(frozen=True)
class Predictor:
    """A trained model."""

    structure: Structure
    scheme: LabelScheme
    automaton: Automaton
    weights: Placed | NDArray[np.float64]  # placed, or [F]
    target: Target
    decoder: Decoder = field(default_factory=Viterbi)
    exact: ExpectedF = field(default_factory=ExpectedF)  # finds all spans, whatever the decoder

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
        presets = self._presets(batch)
        revised, given = None, None
        if revise is None:
            blank = self.blank(batch)
            read = (
                partial(self._all, blank, threshold)
                if self.target.overlapping and threshold is not None
                else partial(self._answer, blank)
            )
            potentials, answer = self._decode(batch, presets, read, _impossible)
            spans, given = answer.spans, answer.scores
        else:
            potentials, best = self._decode(batch, presets, self._best, _without_score)
            revised = revise(batch, potentials, self.automaton, best)
            spans = self.scheme.spans(revised.best.segments)
        shown, kept = self._shown(batch, presets, spans)
        chances = None
        if scores or threshold is not None:
            if given is not None and kept is not None:
                given = given[kept]
            chances = self._scores(batch, potentials, shown, given)
        if chances is not None and threshold is not None:
            likely = ~(chances < threshold)
            shown, chances = shown.only(likely), chances[likely]
        predictions = self._predictions(shown, chances)
        if revised is None or revised.gap is None or revised.certificate is None:
            return predictions
        proofs = zip(predictions, revised.gap.tolist(), revised.certificate.tolist())
        return [
            prediction._replace(gap=gap, certificate=certificate)
            for prediction, gap, certificate in proofs
        ]

    def potentials(self, batch: TokenBatch) -> tuple[Potentials, NDArray[np.float64]]:
        """Log potentials around what was set before, and log Z of each Doc, float64 [D].

        RAISES (ValueError): H007 as `predict`.
        """

        def total(potentials: Potentials) -> NDArray[np.float64]:
            with self.exact.pool.lend(self.automaton) as buffers:
                return log_partition(potentials, self.automaton, buffers=buffers)

        return self._decode(batch, self._presets(batch), total, np.isneginf)

    @property
    def carried(self) -> frozenset[LabelPattern]:
        """Label patterns that open segments remember."""
        index = self.structure.index
        return frozenset() if index is None else frozenset(index.carried)

    def _presets(self, batch: TokenBatch) -> dict[int, Annotation]:
        """What was set before; all that is needed of the Docs is read at once."""
        if self.structure.index is not None:
            batch.prefetch((*self.structure.index.attributes, *self.target.reads, "IS_SPACE"))
        return self.target.presets(batch)

    def blank(self, batch: TokenBatch) -> NDArray[np.bool_] | None:
        """White space that a span of the model may begin or end with, though none is shown with it;
        None if there is none.
        """
        solid = self.scheme.solid or not self.target.trims or not batch.has_blank
        return None if solid else batch.blank

    def _answer(self, blank: NDArray[np.bool_] | None, potentials: Potentials) -> Answer:
        return self.decoder.answer(potentials, self.automaton, self.scheme, blank)

    def _all(
        self, blank: NDArray[np.bool_] | None, at_least: float, potentials: Potentials
    ) -> Answer:
        """All spans that are so probable, but for hopeless ones."""
        least = max(at_least, LEAST)
        return Answer(*self.exact.candidates(potentials, self.automaton, self.scheme, least, blank))

    def _best(self, potentials: Potentials) -> Best:
        return self.decoder.best(potentials, self.automaton)

    def _decode(
        self,
        batch: TokenBatch,
        presets: Mapping[int, Annotation],
        read: Callable[[Potentials], Read],
        stuck: Callable[[Read], NDArray[np.bool_]],
    ) -> tuple[Potentials, Read]:
        """The log potentials, constrained by what was set before, and what is read off them.

        stuck: which Docs have no allowed segmentation, bool [D].
        """
        free = self.structure.allowed(batch)
        allowed = free.copy() if presets else free
        for i, preset in presets.items():
            tokens = slice(batch.offsets[i], batch.offsets[i + 1])
            allowed[tokens] = self._around(free[tokens], preset)
        potentials = self.structure.compile(self.structure.observe(batch), allowed).potentials(
            self.weights
        )
        found = read(potentials)
        bad = stuck(found)
        if not bad.any():
            return potentials, found
        # this model cannot have what was set before: decode freely, and give way to it in `_shown`
        if presets:
            allowed = np.where(np.repeat(bad, np.diff(batch.offsets))[:, None], free, allowed)
            potentials = replace(potentials, allowed=allowed)
            found = read(potentials)
            bad = stuck(found)
        for doc in np.flatnonzero(bad).tolist():
            if len(batch.docs[doc]):
                raise ValueError(Errors.H007.format(text=repr(beginning(batch.docs[doc]))))
        return potentials, found

    def _around(self, bits: NDArray[np.uint8], preset: Annotation) -> NDArray[np.uint8]:
        """Bits of the segmentations that agree with what was set before; what this model cannot
        have is outside.
        """
        labels = self.scheme.labels
        spans = tuple(
            span for span in preset.spans if span[2] in labels and self.scheme.can_have([span])
        )
        return constrain(self.scheme, bits, Annotation(spans, preset.unknown))

    def _shown(
        self, batch: TokenBatch, presets: Mapping[int, Annotation], decoded: Segments
    ) -> tuple[Segments, NDArray[np.bool_] | None]:
        """The spans without white space at either end, and without those that are in the way of what
        was there before; and which of all they are, bool [n], None for all of them.
        """
        trims = self.target.trims and batch.has_blank
        if not presets and not trims:
            return decoded, None
        base = np.repeat(batch.offsets[:-1], np.diff(decoded.offsets))
        start, end = base + decoded.start, base + decoded.end
        if trims:
            start, end = without_blanks(batch.blank, start, end)
        keep = start < end
        if presets:
            taken = np.zeros(len(batch) + 1, dtype=np.int64)  # known tokens up to each token
            for i, preset in presets.items():
                taken[batch.offsets[i] + 1 : batch.offsets[i + 1] + 1] = ~preset.unknown
            taken = np.cumsum(taken)
            keep &= taken[start] == taken[end]
        trimmed = decoded._replace(
            start=(start - base).astype(np.int32), end=(end - base).astype(np.int32)
        )
        return trimmed.only(keep), keep

    def _scores(
        self,
        batch: TokenBatch,
        potentials: Potentials,
        shown: Segments,
        given: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """The score of each span that is shown.

        given (Optional[float64 [n]]): what the decoder has said.
        """
        if given is not None:
            return given
        blank = self.blank(batch)
        score = partial(self.decoder.scores, potentials, self.automaton, self.scheme)
        spans = self.scheme.named(shown)
        return (
            score(spans) if blank is None else scores_of_shown(score, spans, blank, batch.offsets)
        )

    def _predictions(self, shown: Segments, scores: NDArray[np.float64] | None) -> list[Prediction]:
        names = self.scheme.labels
        return [
            Prediction(
                shown.start[i:j],
                shown.end[i:j],
                shown.label[i:j],
                names,
                None if scores is None else scores[i:j],
            )
            for i, j in pairwise(shown.offsets.tolist())
        ]


def _impossible(answer: Answer) -> NDArray[np.bool_]:
    return ~answer.possible


def _without_score(best: Best) -> NDArray[np.bool_]:
    return np.isneginf(best.scores)
