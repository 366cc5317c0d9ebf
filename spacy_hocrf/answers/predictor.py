"""Predictions: the best segmentation of each Doc, given what earlier components have set and the constraints
of the settings and of single texts; and how probable its spans are.

Whatever a text must not contain is a structural zero, so every probability is conditional on the constraints.
Rules about all spans of a text are applied in `answers.under_rules`. Neither the model nor a Doc is changed.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_hocrf.annotation import text_constraints
from spacy_hocrf.annotation.annotation import Annotation, NamedSpans, constrain
from spacy_hocrf.annotation.prediction import BatchPrediction, Prediction, Predictions, Trace
from spacy_hocrf.annotation.targets import Target
from spacy_hocrf.annotation.text_constraints import INSIDE, TextConstraints
from spacy_hocrf.annotation.whitespace import without_whitespace
from spacy_hocrf.answers.alternatives import Alternatives
from spacy_hocrf.answers.decoders import Answer, Decoder, ExpectedF, Viterbi
from spacy_hocrf.answers.forbidden import Masks, forbidden_by
from spacy_hocrf.answers.part import Part
from spacy_hocrf.answers.under_rules import LEAST, UnderRules
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forbidden import Forbidden, without
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.engine.viterbi import Best
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import TokenBatch, beginning
from spacy_hocrf.model.placement import Placed
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.errors import ConstraintErrors
from spacy_hocrf.rules.followed import FollowedRules
from spacy_hocrf.rules.search import BoundedBest
from spacy_hocrf.types import Potentials, Segments
from spacy_hocrf.warnings import Warnings

__all__ = ["Predictor", "Revise", "Revised"]


class Revised(NamedTuple):
    """The jointly best segmentations of D Docs, each Doc's potentials given the others, and bounds on the
    score.
    """

    best: Best
    # of each Doc, given the others' segmentations; spans and their probabilities are read off these
    potentials: Potentials
    whole: bool = False  # must each Doc get its best segmentation, whatever the decoder?
    # [D] upper bound, in nats, on how much better a joint segmentation could score
    gap: NDArray[np.float64] | None = None
    certificate: NDArray[np.bool_] | None = None  # [D] proved optimal?
    traces: Sequence[Trace] | None = None  # [D] trace of the decoding, if requested


Revise = Callable[[TokenBatch, Potentials, Automaton, Best | BoundedBest], Revised]
"""Takes the log potentials and the best segmentation of each Doc by itself, and decides jointly."""

Found = TypeVar("Found")
"""A result read off the log potentials of a batch."""

Read = Callable[[Part], tuple[Found, NDArray[np.bool_]]]
"""Reads a result off D Docs, and tells which of them have an allowed segmentation, bool [D]."""


@dataclass(frozen=True)
class Predictor:
    """A trained model, and the constraints on its predictions.

    weights (Placed, or float64 [F]): placed in the compiled index, or as they are learnt.
    rules (CompiledRules): the constraints; they hold the model's labels and automaton.
    exact (ExpectedF): finds all probable spans, whatever the decoder.
    """

    structure: Structure
    weights: Placed | NDArray[np.float64]
    target: Target
    rules: CompiledRules
    decoder: Decoder = field(default_factory=Viterbi)
    exact: ExpectedF = field(default_factory=ExpectedF)

    @cached_property
    def scheme(self) -> LabelScheme:
        """Labels and segments of the model, with the forbidden transitions."""
        return self.rules.scheme

    def predict(
        self,
        batch: TokenBatch,
        *,
        scores: bool,
        threshold: float | None,
        revise: Revise | None = None,
        whole: bool = False,
    ) -> Predictions:
        """Predict the spans of every Doc.

        scores (bool): compute their probabilities; a threshold implies this.
        threshold (Optional[float]): leave out spans that are less probable.
        revise (Optional[Revise]): decode the Docs jointly: each Doc's spans and probabilities are then
            conditional on the best segmentations of the others.
        whole (bool): compute P(exactly the spans of the Doc).
        RAISES (ValueError): H007 if a Doc has no allowed segmentation, H216 if its constraints cannot be
            satisfied.
        """
        found = self._found(batch, scores, threshold, revise, whole)
        (offsets, start, end, label), names, chances, right = found.batch
        predictions = [
            Prediction(
                start[i:j], end[i:j], label[i:j], names, None if chances is None else chances[i:j]
            )
            for i, j in pairwise(offsets.tolist())
        ]
        if right is not None:
            pairs = zip(predictions, right.tolist())
            predictions = [prediction._replace(whole=p) for prediction, p in pairs]
        if self.target.n_best:
            self._add_alternatives(predictions, found)
        revised = found.revised
        if revised is not None and revised.gap is not None and revised.certificate is not None:
            traces: Sequence[Trace | None] = revised.traces or [None] * len(predictions)
            proofs = zip(predictions, revised.gap.tolist(), revised.certificate.tolist(), traces)
            predictions = [
                prediction._replace(gap=gap, certificate=certificate, trace=trace)
                for prediction, gap, certificate, trace in proofs
            ]
        return Predictions(predictions, found.batch)

    def spans(self, batch: TokenBatch, *, scores: bool, threshold: float | None) -> BatchPrediction:
        """Predict the spans of every Doc by itself, without alternatives."""
        return self._found(batch, scores, threshold, None, False).batch

    def parts(self, batch: TokenBatch) -> Iterator[tuple[Part, NDArray[np.float64]]]:
        """Yield Docs that are decoded under the same rules, given what was set before, with log Z of each,
        float64 [D].

        RAISES (ValueError): H007 or H216 as in `predict`.
        """
        yield from self._decode(batch, self._presets(batch), self._read_totals)[1]

    def _found(
        self,
        batch: TokenBatch,
        scores: bool,
        threshold: float | None,
        revise: Revise | None,
        whole: bool,
    ) -> "_Found":
        """Compute the raw results for `predict` and `spans`."""
        presets = self._presets(batch)
        revised = None
        read: Read[Answer] = self._read_answer
        if self.target.overlapping and threshold is not None:
            read = partial(self._read_spans, max(threshold, LEAST))
        if revise is None:
            part, answer = self._decode(batch, presets, read)
        else:
            part, best = self._decode(batch, presets, self._read_best)
            revised = revise(batch, part.potentials, part.automaton, best)
            part = replace(part, potentials=revised.potentials)
            if revised.whole or (read == self._read_answer and type(self.decoder) is Viterbi):
                spans = self.scheme.spans(revised.best.segments)
                answer = Answer(spans, None, np.ones(len(batch.docs), dtype=bool))
            else:
                answer = read(part)[0]
        spans, given, total = answer.spans, answer.scores, answer.log_partition
        shown, kept = self._shown(batch, presets, spans)
        asked = scores or threshold is not None
        exactly = whole or self.target.n_best > 0
        parts, chances = [part], None
        if asked and given is None:
            parts, chances = self._under.scored(part, shown, exactly=exactly)
        elif exactly:
            parts = self._under.apart(part, exactly=True)
        if asked and given is not None:
            chances = given if kept is None else given[kept]
        if chances is not None and threshold is not None:
            likely = ~(chances < threshold)
            shown, chances = shown.only(likely), chances[likely]
        total = None if self.rules.rules else total
        right = answer.whole if threshold is None else None
        if whole and right is None:
            right = self._whole(parts, presets, shown)
        found = BatchPrediction(shown, self.scheme.labels, chances, right if whole else None)
        return _Found(found, parts, total, revised)

    # Reading results off the log potentials

    @cached_property
    def _under(self) -> UnderRules:
        return UnderRules(self.rules, self.decoder, self.exact)

    def _read_answer(self, part: Part) -> tuple[Answer, NDArray[np.bool_]]:
        """Return the spans that the decoder chooses."""
        answer = self._under.answer(part)
        return answer, answer.possible

    def _read_spans(self, least: float, part: Part) -> tuple[Answer, NDArray[np.bool_]]:
        """Return all spans of at least this probability."""
        found = self._under.spans(part, least, exactly=self.target.n_best > 0)
        return Answer(*found), found.possible

    def _read_best(self, part: Part) -> tuple[Best | BoundedBest, NDArray[np.bool_]]:
        """Return the best segmentations."""
        best = self._under.best(part)
        return best, ~np.isneginf(best.scores)

    def _read_totals(
        self, part: Part
    ) -> tuple[list[tuple[Part, NDArray[np.float64]]], NDArray[np.bool_]]:
        """Return the Docs grouped by the rules they are decoded under, with log Z of each."""
        found, possible = [], np.ones(len(part.docs), dtype=bool)
        for each in self._under.apart(part, exactly=True):
            total = self._total(each)
            found.append((each, total))
            possible[each.docs] = ~np.isneginf(total)
        return found, possible

    def _total(self, part: Part) -> NDArray[np.float64]:
        """Return log Z of each Doc."""
        with self.exact.pool.lend(part.automaton) as buffers:
            return log_partition(part.potentials, part.automaton, buffers=buffers)

    def _decode(
        self, batch: TokenBatch, presets: Mapping[int, Annotation], read: Read[Found]
    ) -> tuple[Part, Found]:
        """Apply annotations set before and the constraints to all Docs, and read a result off them.

        Where that leaves a Doc no segmentation, the annotations set before are ignored.
        RAISES (ValueError): H007 or H216 as in `predict`.
        """
        texts, forbidden = self._text_constraints(batch)
        constrained = texts is not None or not self.rules.constraints.empty
        free = self.structure.allowed(batch)
        allowed = self._with_presets(batch, presets, free) if presets else free
        if constrained:
            allowed = self._kept(batch, texts, forbidden, allowed)
        compiled = self.structure.compile(self.structure.observe(batch), allowed, once=True)
        part = self._part(batch, texts, forbidden, compiled.potentials(self.weights))
        found, possible = read(part)
        if possible.all():
            return part, found
        if presets:
            if constrained:
                self._tell(batch, [i for i in np.flatnonzero(~possible).tolist() if i in presets])
                free = self._kept(batch, texts, forbidden, free)
            bad = np.repeat(~possible, np.diff(batch.offsets))[:, None]
            allowed = np.where(bad, free, allowed)
            part = replace(part, potentials=replace(part.potentials, allowed=allowed))
            found, possible = read(part)
        for i in np.flatnonzero(~possible).tolist():
            if not self._empty(batch, i):
                self._refuse(batch.docs[i], i, texts, constrained)
        return part, found

    def _empty(self, batch: TokenBatch, number: int) -> bool:
        """Is there nothing in this Doc that a span could be shown on: no tokens, or only whitespace?"""
        if not len(batch.docs[number]):
            return True
        own = slice(*batch.offsets[number : number + 2].tolist())
        return self.target.trims and bool(batch.blank[own].all())

    # Input of the model

    def _presets(self, batch: TokenBatch) -> dict[int, Annotation]:
        """Return the annotations set before, having fetched all token attributes that are needed."""
        batch.prefetch(self._reads)
        return self.target.presets(batch)

    @cached_property
    def _reads(self) -> tuple[str, ...]:
        """Token attributes needed from every Doc."""
        index, target = self.structure.index, self.target
        return (*index.attributes, *target.reads, *target.writes_by, "IS_SPACE")

    def _text_constraints(
        self, batch: TokenBatch
    ) -> tuple[TextConstraints | None, Forbidden | None]:
        """Return the constraints on single texts, and the segments and patterns that these forbid."""
        key = self.rules.constraints.spans_key
        some = batch.with_group(key)
        if not some:
            return None, None
        texts = text_constraints.read(batch, some, key, self.scheme)
        return texts, forbidden_by(self.scheme, texts, batch.offsets, self._blank(batch))

    def _blank(self, batch: TokenBatch) -> NDArray[np.bool_] | None:
        """Return the whitespace that a span of the model may begin or end with, though it is shown without;
        None if there is none.
        """
        solid = self.scheme.solid or not self.target.trims or not batch.has_blank
        return None if solid else batch.blank

    def _part(
        self,
        batch: TokenBatch,
        texts: TextConstraints | None,
        forbidden: Forbidden | None,
        potentials: Potentials,
    ) -> Part:
        """Return a part of all Docs in which forbidden spans of several tokens score -inf."""
        automaton = self.rules.automaton
        if forbidden is not None:
            patterns = forbidden.added_to(automaton.patterns)
            if patterns is not automaton.patterns:
                automaton = self.rules.compile(patterns)
            potentials = without(potentials, forbidden, patterns)
        inside = None if texts is None else texts.of_kind(INSIDE)
        under, every = FollowedRules(self.rules, automaton), np.arange(len(batch.docs))
        return Part(batch, potentials, under, self._blank(batch), every, inside)

    @cached_property
    def _masks(self) -> Masks:
        return Masks(self.scheme)

    def _kept(
        self,
        batch: TokenBatch,
        texts: TextConstraints | None,
        forbidden: Forbidden | None,
        bits: NDArray[np.uint8],
    ) -> NDArray[np.uint8]:
        """Return the bits that satisfy the constraints, except for forbidden spans of several tokens."""
        kept: NDArray[np.uint8] = bits.copy()
        if self.rules.edged:
            self.rules.at_edges(kept, batch.blank, batch.offsets)
        if texts is not None:
            self._masks.take_from(kept, texts, batch.offsets)
        if forbidden is not None:
            kept[tuple(forbidden.tokens.T)] = 0
        return kept

    def _with_presets(
        self, batch: TokenBatch, presets: Mapping[int, Annotation], free: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """Return the bits of every token, uint8 [N, Y], given what was set before."""
        allowed: NDArray[np.uint8] = free.copy()
        for i, preset in presets.items():
            tokens = slice(batch.offsets[i], batch.offsets[i + 1])
            allowed[tokens] = self._around(free[tokens], preset)
        return allowed

    def _around(self, bits: NDArray[np.uint8], preset: Annotation) -> NDArray[np.uint8]:
        """Return the bits of the segmentations that agree with what was set before; spans that this model
        cannot produce count as outside.
        """
        return constrain(self.scheme, bits, Annotation(self._had(preset), preset.unknown))

    def _had(self, preset: Annotation) -> tuple[tuple[int, int, str], ...]:
        """Return the spans set before that this model can produce."""
        labels = self.scheme.labels
        return tuple(
            span for span in preset.spans if span[2] in labels and self.scheme.can_have([span])
        )

    def _tell(self, batch: TokenBatch, docs: Sequence[int]) -> None:
        """Warn once that annotations set before give way to constraints."""
        if docs and not self.rules.told:
            self.rules.told = True
            text = Warnings.W036.format(text=beginning(batch.docs[docs[0]]))
            warnings.warn(text, stacklevel=2)

    def _refuse(
        self, doc: Doc, number: int, texts: TextConstraints | None, constrained: bool
    ) -> None:
        """RAISES (ValueError): H007, or H216 if there are constraints."""
        if not constrained:
            raise ValueError(Errors.H007.format(text=repr(beginning(doc))))
        named = () if texts is None else texts.named(number, self.scheme.labels)
        places = [
            f"{each.kind} {each.label} on tokens {each.start} to {each.end}" for each in named
        ]
        which = f": {', '.join(places)}" if places else ""
        key, text = self.rules.constraints.spans_key, beginning(doc)
        raise ValueError(ConstraintErrors.H216.format(text=text, which=which, key=key))

    # Output

    def _shown(
        self, batch: TokenBatch, presets: Mapping[int, Annotation], decoded: Segments
    ) -> tuple[Segments, NDArray[np.bool_] | None]:
        """Trim whitespace from the spans and drop those that collide with what was set before. Also return
        which of the decoded spans remain, bool [n], or None if all do.
        """
        trims = self.target.trims and batch.has_blank
        if not presets and not trims:
            return decoded, None
        base = np.repeat(batch.offsets[:-1], np.diff(decoded.offsets))
        start, end = base + decoded.start, base + decoded.end
        if trims:
            start, end = without_whitespace(batch.blank, start, end)
        keep = start < end
        if presets:
            taken = np.zeros(len(batch) + 1, dtype=np.int64)  # preset tokens up to each token
            for i, preset in presets.items():
                taken[batch.offsets[i] + 1 : batch.offsets[i + 1] + 1] = ~preset.unknown
            taken = np.cumsum(taken)
            keep &= taken[start] == taken[end]
        trimmed = decoded._replace(
            start=(start - base).astype(np.int32), end=(end - base).astype(np.int32)
        )
        return trimmed.only(keep), keep

    def _whole(
        self, parts: Sequence[Part], presets: Mapping[int, Annotation], shown: Segments
    ) -> NDArray[np.float64]:
        """Return P(exactly the spans that are shown and those set before), float64 [D]."""
        named: list[NamedSpans] = [*self.scheme.named(shown)]
        for i, preset in presets.items():
            named[i] = sorted({*named[i], *self._had(preset)})
        found = np.ones(len(named))
        for part in parts:
            logs = Alternatives(part, self.exact.pool).log_sums([named[i] for i in part.docs])
            found[part.docs] = np.exp(np.minimum(0.0, logs - self._total(part)))
        return found

    def _add_alternatives(self, predictions: list[Prediction], found: "_Found") -> None:
        """Add the n best readings of each Doc by itself to its prediction."""
        for part in found.parts:
            others = Alternatives(part, self.exact.pool)
            log_z = self._total(part) if found.total is None else found.total
            for i, (doc, own) in enumerate(zip(part.docs.tolist(), log_z.tolist())):
                best = others.best(i, self.target.n_best, own)
                predictions[doc] = predictions[doc]._replace(alternatives=best)


class _Found(NamedTuple):
    """Raw results for a batch."""

    batch: BatchPrediction
    parts: Sequence[Part]
    total: NDArray[np.float64] | None  # [D] log Z, if known
    revised: Revised | None
