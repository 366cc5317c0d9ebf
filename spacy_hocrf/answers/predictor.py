"""What a model predicts for Docs: the best segmentation around what earlier components have set,
and how probable its spans are.

Nothing is changed here, neither the model nor a Doc.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.annotation import Annotation, NamedSpans, constrain
from spacy_hocrf.annotation.blanks import scores_of_shown, without_blanks
from spacy_hocrf.annotation.prediction import BatchPrediction, Prediction, Predictions, Trace
from spacy_hocrf.annotation.targets import Target
from spacy_hocrf.answers.alternatives import Alternatives, ForgottenRules, RulesOfPart
from spacy_hocrf.answers.decoders import Answer, Decoder, ExpectedF, Viterbi
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.engine.viterbi import Best
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import TokenBatch, beginning
from spacy_hocrf.model.outline import Placed
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.rules.search import BoundedBest
from spacy_hocrf.types import LabelPattern, Potentials, Segments

__all__ = ["LEAST", "Part", "Predictor", "Read", "Revise", "Revised", "hopeless"]


@dataclass(frozen=True)
class Part:
    """Docs of a batch that are read with one automaton."""

    potentials: Potentials  # log potentials of these Docs
    automaton: Automaton
    # white space that spans are shown without, bool [N], if there is any
    blank: NDArray[np.bool_] | None
    docs: NDArray[np.int64] | None = None  # their numbers in the batch, ascending; None for all
    under: RulesOfPart | None = None  # what the automaton remembers; None for no rules
    forgotten: ForgottenRules | None = None  # None if the automaton has no reading that may not be


class Revised(NamedTuple):
    """Segmentations of D Docs, and what is proved about them."""

    best: Best
    # [D] no segmentations of the Docs that were decided on together score higher by more, nats
    gap: NDArray[np.float64] | None = None
    certificate: NDArray[np.bool_] | None = None  # [D] proved to be the best ones?
    traces: Sequence[Trace] | None = None  # [D] how that came, if it is asked for


Revise = Callable[[TokenBatch, Potentials, Automaton, Best | BoundedBest], Revised]
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
    ) -> Predictions:
        """Spans of every Doc.

        scores (bool): with their probabilities, in which `revise` has no part; a threshold computes
            them too.
        threshold (Optional[float]): leave out spans that are less probable.
        revise (Optional[Revise]): puts other segmentations in the place of the best ones.
        RAISES (ValueError): H007 if a Doc has no allowed segmentation.
        """
        found = self._found(batch, scores, threshold, revise)
        together = self._together(found)
        predictions = self._predictions(together)
        if self.target.n_best:
            predictions = self._with_alternatives(predictions, found.parts, found.total)
        revised = found.revised
        if revised is None or revised.gap is None or revised.certificate is None:
            return Predictions(predictions, together)
        proofs = zip(predictions, revised.gap.tolist(), revised.certificate.tolist())
        proved = [
            prediction._replace(gap=gap, certificate=certificate)
            for prediction, gap, certificate in proofs
        ]
        if revised.traces is not None:
            traced = zip(proved, revised.traces)
            proved = [each._replace(trace=trace) for each, trace in traced]
        return Predictions(proved, together)

    def spans(self, batch: TokenBatch, *, scores: bool, threshold: float | None) -> BatchPrediction:
        """What `predict` says of every Doc by itself, without alternatives."""
        return self._together(self._found(batch, scores, threshold, None))

    def _found(
        self, batch: TokenBatch, scores: bool, threshold: float | None, revise: Revise | None
    ) -> "_Found":
        """As `predict`."""
        presets = self._presets(batch)
        revised, given, total = None, None, None
        if revise is None:
            read = (
                partial(self._all, threshold)
                if self.target.overlapping and threshold is not None
                else self._answer
            )
            parts, answer = self._decode(batch, presets, read, _impossible)
            spans, given, total = answer.spans, answer.scores, answer.log_partition
        else:
            parts, best = self._decode(batch, presets, self._best, _without_score)
            (part,) = parts
            revised = revise(batch, part.potentials, part.automaton, best)
            spans = self.scheme.spans(revised.best.segments)
            parts = self._under_rules(part) if self.target.n_best else [part]
        shown, kept = self._shown(batch, presets, spans)
        chances = None
        if scores or threshold is not None:
            if given is not None and kept is not None:
                given = given[kept]
            chances = self._scores(parts, shown, given)
        if chances is not None and threshold is not None:
            likely = ~(chances < threshold)
            shown, chances = shown.only(likely), chances[likely]
        return _Found(shown, chances, parts, total, revised)

    def parts(self, batch: TokenBatch) -> Iterator[tuple[Part, NDArray[np.float64]]]:
        """Log potentials around what was set before, and log Z of each Doc, float64 [D].

        RAISES (ValueError): H007 as `predict`.
        """
        (part,), total = self._decode(batch, self._presets(batch), self._total, hopeless)
        yield part, total

    def stricter(self, part: Part, spans: NamedSpans) -> Part | None:
        """The same Docs with an automaton that forbids a reading with these spans, which is not one of
        the model though it is in the automaton of the part; None if it is one.
        """
        return None

    @property
    def carried(self) -> frozenset[LabelPattern]:
        """Label patterns that open segments remember."""
        index = self.structure.index
        return frozenset() if index is None else frozenset(index.carried)

    def _presets(self, batch: TokenBatch) -> dict[int, Annotation]:
        """What was set before; all that is needed of the Docs is read at once."""
        batch.prefetch(self._reads)
        return self.target.presets(batch)

    @cached_property
    def _reads(self) -> tuple[str, ...]:
        """Token attributes that are needed of every Doc."""
        index, target = self.structure.index, self.target
        if index is None:
            return ()
        return (*index.attributes, *target.reads, *target.writes_by, "IS_SPACE")

    def blank(self, batch: TokenBatch) -> NDArray[np.bool_] | None:
        """White space that a span of the model may begin or end with, though none is shown with it;
        None if there is none.
        """
        solid = self.scheme.solid or not self.target.trims or not batch.has_blank
        return None if solid else batch.blank

    def _answer(self, part: Part) -> Answer:
        return self.decoder.answer(part.potentials, part.automaton, self.scheme, part.blank)

    def _all(self, at_least: float, part: Part) -> Answer:
        """All spans that are so probable, but for hopeless ones."""
        least, known = max(at_least, LEAST), (part.potentials, part.automaton)
        return Answer(*self.exact.candidates(*known, self.scheme, least, part.blank))

    def _best(self, part: Part) -> Best | BoundedBest:
        return self.decoder.best(part.potentials, part.automaton)

    def _total(self, part: Part) -> NDArray[np.float64]:
        """log Z of each Doc."""
        with self.exact.pool.lend(part.automaton) as buffers:
            return log_partition(part.potentials, part.automaton, buffers=buffers)

    def _decode(
        self,
        batch: TokenBatch,
        presets: Mapping[int, Annotation],
        read: Callable[[Part], Read],
        stuck: Callable[[Read], NDArray[np.bool_]],
    ) -> tuple[list[Part], Read]:
        """The log potentials, constrained by what was set before, and what is read off them.

        stuck: which Docs have no allowed segmentation, bool [D].
        """
        free = self.structure.allowed(batch)
        allowed = self._with_presets(batch, presets, free)
        part = Part(self._compiled(batch, allowed), self.automaton, self.blank(batch))
        found = read(part)
        bad = stuck(found)
        if not bad.any():
            return [part], found
        # this model cannot have what was set before: decode freely, and give way to it in `_shown`
        if presets:
            allowed = np.where(np.repeat(bad, np.diff(batch.offsets))[:, None], free, allowed)
            part = replace(part, potentials=replace(part.potentials, allowed=allowed))
            found = read(part)
            bad = stuck(found)
        for doc in np.flatnonzero(bad).tolist():
            if len(batch.docs[doc]):
                raise ValueError(Errors.H007.format(text=repr(beginning(batch.docs[doc]))))
        return [part], found

    def _under_rules(self, part: Part) -> list[Part]:
        """The Docs of a batch as probabilities are about them."""
        return [part]

    def _compiled(self, batch: TokenBatch, allowed: NDArray[np.uint8]) -> Potentials:
        """The log potentials of a batch."""
        compiled = self.structure.compile(self.structure.observe(batch), allowed, once=True)
        return compiled.potentials(self.weights)

    def _with_presets(
        self, batch: TokenBatch, presets: Mapping[int, Annotation], free: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """Bits of every token, uint8 [N, Y], around what was set before; `free` if nothing was."""
        allowed = free.copy() if presets else free
        for i, preset in presets.items():
            tokens = slice(batch.offsets[i], batch.offsets[i + 1])
            allowed[tokens] = self._around(free[tokens], preset)
        return allowed

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
        self, parts: Sequence[Part], shown: Segments, given: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """The score of each span that is shown.

        given (Optional[float64 [n]]): what the decoder has said.
        """
        if given is not None:
            return given
        (part,) = parts
        return self._scored(part, self.scheme.named(shown))

    def _scored(self, part: Part, spans: Sequence[NamedSpans]) -> NDArray[np.float64]:
        """The score of each span as it is shown."""
        score = partial(self.decoder.scores, part.potentials, part.automaton, self.scheme)
        if part.blank is None:
            return score(spans)
        return scores_of_shown(score, spans, part.blank, part.potentials.offsets)

    def _with_alternatives(
        self,
        predictions: Sequence[Prediction],
        parts: Sequence[Part],
        total: NDArray[np.float64] | None,
    ) -> list[Prediction]:
        """With the best readings of each Doc by itself.

        total (Optional[float64 [D]]): log Z, if it is known.
        """
        found = list(predictions)
        for part in parts:
            known = part.automaton, self.scheme, self.exact.pool, part.blank, part.forgotten
            others = Alternatives(part.potentials, *known)
            log_z = self._total(part) if total is None or len(parts) > 1 else total
            numbers = range(len(log_z)) if part.docs is None else part.docs.tolist()
            for i, (doc, own) in enumerate(zip(numbers, log_z.tolist())):
                best = others.best(i, self.target.n_best, own)
                found[doc] = found[doc]._replace(alternatives=best)
        return found

    def _together(self, found: "_Found") -> BatchPrediction:
        return BatchPrediction(found.shown, self.scheme.labels, found.chances)

    def _predictions(self, found: BatchPrediction) -> list[Prediction]:
        (offsets, start, end, label), names, chances = found
        return [
            Prediction(
                start[i:j], end[i:j], label[i:j], names, None if chances is None else chances[i:j]
            )
            for i, j in pairwise(offsets.tolist())
        ]


class _Found(NamedTuple):
    """What is found in a batch."""

    shown: Segments
    chances: NDArray[np.float64] | None  # [n] their probabilities, if somebody asks
    parts: Sequence[Part]
    total: NDArray[np.float64] | None  # [D] log Z, if it is known
    revised: Revised | None


def _impossible(answer: Answer) -> NDArray[np.bool_]:
    return ~answer.possible


def hopeless(total: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Has a Doc with this log Z no allowed segmentation? bool [D]"""
    return np.isneginf(total)


def _without_score(best: Best | BoundedBest) -> NDArray[np.bool_]:
    return np.isneginf(best.scores)
