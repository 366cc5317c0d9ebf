"""Predictions: the best segmentation of each Doc, given what earlier components have set and the constraints
of the settings and of single texts; and how probable its spans are.

Whatever a text must not contain is a structural zero, so every probability is conditional on the constraints.
Rules about all spans of a text are applied in `answers.under_rules`. Neither the model nor a Doc is changed.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple, NoReturn, TypeVar

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
from spacy_hocrf.answers.under_rules import MIN_PROBABILITY, UnderRules
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
    keeps_best: bool  # must each Doc get its best segmentation, whatever the decoder?
    # [D] upper bound, in nats, on how much better a joint segmentation could score
    gap: NDArray[np.float64]
    certificate: NDArray[np.bool_]  # [D] proved optimal?
    traces: Sequence[Trace | None]  # [D] trace of the decoding, if requested


Revise = Callable[[TokenBatch, Potentials, Automaton, Best | BoundedBest], Revised]
"""Takes the log potentials and the best segmentation of each Doc by itself, and decides jointly."""

Result = TypeVar("Result")
"""A result read off the log potentials of a batch."""

Read = Callable[[Part], tuple[Result, NDArray[np.bool_]]]
"""Reads a result off D Docs, and tells which of them have an allowed segmentation, bool [D]."""


@dataclass(frozen=True)
class Predictor:
    """A trained model, and the constraints on its predictions.

    weights (Placed): weights of the features, and of the dense scores, placed in the compiled index.
    rules (CompiledRules): the constraints; they hold the model's labels and automaton.
    exact (ExpectedF): finds all probable spans, whatever the decoder.
    """

    structure: Structure
    weights: Placed
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
        text_probability: bool = False,
    ) -> Predictions:
        """Predict the spans of every Doc.

        scores (bool): compute their probabilities; a threshold implies this.
        threshold (Optional[float]): leave out spans that are less probable.
        revise (Optional[Revise]): decode the Docs jointly: each Doc's spans and probabilities are then
            conditional on the best segmentations of the others.
        text_probability (bool): compute P(exactly the spans of the Doc).
        RAISES (ValueError): H007 if a Doc has no allowed segmentation, H216 if its constraints cannot be
            satisfied.
        """
        decoded = self._decoded(batch, scores, threshold, revise, text_probability)
        (offsets, start, end, label), names, chances, text_chances = decoded.batch
        predictions = [
            Prediction(
                start[i:j], end[i:j], label[i:j], names, None if chances is None else chances[i:j]
            )
            for i, j in pairwise(offsets.tolist())
        ]
        if text_chances is not None:
            pairs = zip(predictions, text_chances.tolist())
            predictions = [prediction._replace(text_probability=p) for prediction, p in pairs]
        if self.target.n_best:
            self._add_alternatives(predictions, decoded)
        if decoded.revised is not None:
            gaps, certificates, traces = decoded.revised[3:]
            proofs = zip(predictions, gaps.tolist(), certificates.tolist(), traces)
            predictions = [
                prediction._replace(gap=gap, certificate=certificate, trace=trace)
                for prediction, gap, certificate, trace in proofs
            ]
        return Predictions(predictions, decoded.batch)

    def spans(self, batch: TokenBatch, *, scores: bool, threshold: float | None) -> BatchPrediction:
        """Predict the spans of every Doc by itself, without alternatives."""
        return self._decoded(batch, scores, threshold, None, False).batch

    def parts(self, batch: TokenBatch) -> Iterator[tuple[Part, NDArray[np.float64]]]:
        """Yield Docs that are decoded under the same rules, given what was set before, with log Z of each,
        float64 [D].

        RAISES (ValueError): H007 or H216 as in `predict`.
        """
        totals = self._read(batch, self._presets(batch), self._read_totals)[1]
        for part, log_z in totals:
            for i in np.flatnonzero(np.isneginf(log_z)).tolist():
                self._refuse(part.doc(i), i, None, False)
        yield from totals

    def _decoded(
        self,
        batch: TokenBatch,
        scores: bool,
        threshold: float | None,
        revise: Revise | None,
        text_probability: bool,
    ) -> "_Decoded":
        """Return the spans to show with the probabilities that are asked for, see `predict`."""
        presets = self._presets(batch)
        read: Read[Answer] = self._read_answer
        if self.target.overlapping and threshold is not None:
            read = partial(self._read_spans, max(threshold, MIN_PROBABILITY))
        revised = None
        if revise is None:
            part, answer = self._read(batch, presets, read)
        else:
            part, answer, revised = self._revised(batch, presets, read, revise)
        shown, kept = self._shown(batch, presets, answer.spans)
        parts, chances, exactly = [part], None, text_probability or self.target.n_best > 0
        scores = scores or threshold is not None
        if scores and answer.scores is None:
            parts, chances = self._under.scored(part, shown, exactly=exactly)
        elif exactly:
            parts = self._under.split(part, exactly=True)
        if scores and answer.scores is not None:
            chances = answer.scores if kept is None else answer.scores[kept]
        if chances is not None and threshold is not None:
            likely = ~(chances < threshold)
            shown, chances = shown.only(likely), chances[likely]
        text_chances = answer.text_probabilities if text_probability and threshold is None else None
        if text_probability and text_chances is None:
            text_chances = self._text_probabilities(parts, presets, shown)
        prediction = BatchPrediction(shown, self.scheme.labels, chances, text_chances)
        log_z = None if self.rules.rules else answer.log_partition
        return _Decoded(prediction, parts, log_z, revised)

    def _revised(
        self,
        batch: TokenBatch,
        presets: Mapping[int, Annotation],
        read: Read[Answer],
        revise: Revise,
    ) -> tuple[Part, Answer, Revised]:
        """Decode the Docs jointly: return the changed potentials, what is read off them, and the rest."""
        part, best = self._read(batch, presets, self._read_best)
        revised = revise(batch, part.potentials, part.automaton, best)
        part = replace(part, potentials=revised.potentials)
        if revised.keeps_best or (read == self._read_answer and type(self.decoder) is Viterbi):
            spans = self.scheme.spans(revised.best.segments)
            return part, Answer(spans, None, np.ones(len(batch.docs), dtype=bool)), revised
        return part, read(part)[0], revised

    # Reading results off the log potentials

    @cached_property
    def _under(self) -> UnderRules:
        return UnderRules(self.rules, self.decoder, self.exact)

    def _read_answer(self, part: Part) -> tuple[Answer, NDArray[np.bool_]]:
        """Return the spans that the decoder chooses."""
        answer = self._under.answer(part)
        return answer, answer.possible

    def _read_spans(self, at_least: float, part: Part) -> tuple[Answer, NDArray[np.bool_]]:
        """Return all spans of at least this probability."""
        candidates = self._under.spans(part, at_least, exactly=self.target.n_best > 0)
        return Answer(*candidates), candidates.possible

    def _read_best(self, part: Part) -> tuple[Best | BoundedBest, NDArray[np.bool_]]:
        """Return the best segmentations."""
        best = self._under.best(part)
        return best, ~np.isneginf(best.scores)

    def _read_totals(
        self, part: Part
    ) -> tuple[list[tuple[Part, NDArray[np.float64]]], NDArray[np.bool_]]:
        """Return the Docs grouped by the rules they are decoded under, with log Z of each."""
        possible = np.ones(len(part.docs), dtype=bool)
        totals = list(self._with_log_z(self._under.split(part, exactly=True)))
        for subpart, log_z in totals:
            possible[subpart.docs] = ~np.isneginf(log_z)
        return totals, possible

    def _with_log_z(self, parts: Iterable[Part]) -> Iterator[tuple[Part, NDArray[np.float64]]]:
        """Yield the parts with log Z of each Doc. Docs with nothing that a span could be shown on, which
        cannot keep a rule, are in a part of their own that follows none.
        """
        for part in parts:
            log_z = self._log_z(part)
            free = np.isneginf(log_z) & bool(part.under.numbers)
            for i in np.flatnonzero(free).tolist():
                free[i] = self._empty(part.batch, int(part.docs[i]))
            if not free.all():
                yield part.only(np.flatnonzero(~free)), log_z[~free]
            if free.any():
                under = FollowedRules(self._free_rules, part.under.plain)
                unruled = replace(part.only(np.flatnonzero(free)), under=under)
                yield unruled, self._log_z(unruled)

    @cached_property
    def _free_rules(self) -> CompiledRules:
        return self.rules.at_no_price()

    def _log_z(self, part: Part) -> NDArray[np.float64]:
        """Return log Z of each Doc."""
        with self.exact.pool.lend(part.automaton) as buffers:
            return log_partition(part.potentials, part.automaton, buffers=buffers)

    def _read(
        self, batch: TokenBatch, presets: Mapping[int, Annotation], read: Read[Result]
    ) -> tuple[Part, Result]:
        """Apply annotations set before and the constraints to all Docs, and read a result off them.

        Where that leaves a Doc no segmentation, the annotations set before are ignored.
        RAISES (ValueError): H007 or H216 as in `predict`.
        """
        texts, forbidden = self._text_constraints(batch)
        constrained = texts is not None or not self.rules.constraints.empty
        free = self.structure.allowed(batch)
        allowed = self._with_presets(batch, presets, free) if presets else free
        if constrained:
            allowed = self._constrained(batch, texts, forbidden, allowed)
        compiled = self.structure.compile(self.structure.observe(batch), allowed, once=True)
        part = self._part(batch, texts, forbidden, compiled.potentials(self.weights))
        result, possible = read(part)
        if possible.all():
            return part, result
        if presets:
            if constrained:
                self._warn_of([batch.docs[i] for i in presets if not possible[i]])
                free = self._constrained(batch, texts, forbidden, free)
            # the bits without presets, for the tokens of impossible Docs only
            impossible = np.repeat(~possible, np.diff(batch.offsets))[:, None]
            allowed = np.where(impossible, free, allowed)
            part = replace(part, potentials=replace(part.potentials, allowed=allowed))
            result, possible = read(part)
        for i in np.flatnonzero(~possible).tolist():
            if not self._empty(batch, i):
                self._refuse(batch.docs[i], i, texts, constrained)
        return part, result

    def _empty(self, batch: TokenBatch, number: int) -> bool:
        """Is there nothing in this Doc that a span could be shown on: no tokens, or only whitespace?"""
        if not len(batch.docs[number]):
            return True
        tokens = slice(*batch.offsets[number : number + 2].tolist())
        return self.target.trims and bool(batch.blank[tokens].all())

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
        docs = batch.with_group(key)
        if not docs:
            return None, None
        texts = text_constraints.read_constraints(batch, docs, key, self.scheme)
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
        under, docs = FollowedRules(self.rules, automaton), np.arange(len(batch.docs))
        return Part(batch, potentials, under, self._blank(batch), docs, inside)

    @cached_property
    def _masks(self) -> Masks:
        return Masks(self.scheme)

    def _constrained(
        self,
        batch: TokenBatch,
        texts: TextConstraints | None,
        forbidden: Forbidden | None,
        bits: NDArray[np.uint8],
    ) -> NDArray[np.uint8]:
        """Return the bits that satisfy the constraints, except for forbidden spans of several tokens."""
        bits = bits.copy()
        self.rules.successions.clear_edges(bits, batch)
        if texts is not None:
            self._masks.take_from(bits, texts, batch.offsets)
        if forbidden is not None:
            bits[tuple(forbidden.tokens.T)] = 0
        return bits

    def _with_presets(
        self, batch: TokenBatch, presets: Mapping[int, Annotation], free: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """Return the bits of every token, uint8 [N, Y], that agree with what was set before; spans that this
        model cannot produce count as outside.
        """
        allowed: NDArray[np.uint8] = free.copy()
        for i, preset in presets.items():
            tokens = slice(batch.offsets[i], batch.offsets[i + 1])
            possible = Annotation(self._possible_spans(preset), preset.unknown)
            allowed[tokens] = constrain(self.scheme, free[tokens], possible)
        return allowed

    def _possible_spans(self, preset: Annotation) -> tuple[tuple[int, int, str], ...]:
        """Return the spans set before that this model can produce."""
        labels = self.scheme.labels
        return tuple(
            span for span in preset.spans if span[2] in labels and self.scheme.can_have([span])
        )

    def _warn_of(self, docs: Sequence[Doc]) -> None:
        """Warn once that annotations set before give way to constraints."""
        if docs and not self.rules.warned_of_presets:
            self.rules.warned_of_presets = True
            warnings.warn(Warnings.W036.format(text=beginning(docs[0])), stacklevel=2)

    def _refuse(
        self, doc: Doc, number: int, texts: TextConstraints | None, constrained: bool
    ) -> NoReturn:
        """RAISES (ValueError): H007, or H216 if there are constraints."""
        if not constrained:
            raise ValueError(Errors.H007.format(text=repr(beginning(doc))))
        own = () if texts is None else texts.named(number, self.scheme.labels)
        listed = [f"{kind} {label} on tokens {start} to {end}" for start, end, label, kind in own]
        which = f": {', '.join(listed)}" if listed else ""
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
        first = np.repeat(batch.offsets[:-1], np.diff(decoded.offsets))  # token of each span's Doc
        start, end = first + decoded.start, first + decoded.end
        if trims:
            start, end = without_whitespace(batch.blank, start, end)
        keep = start < end
        if presets:
            # a span is free of preset tokens if as many of them come before its end as before its start
            n_preset = np.zeros(len(batch) + 1, dtype=np.int64)
            for i, preset in presets.items():
                n_preset[batch.offsets[i] + 1 : batch.offsets[i + 1] + 1] = ~preset.unknown
            n_preset = np.cumsum(n_preset)
            keep &= n_preset[start] == n_preset[end]
        trimmed = decoded._replace(
            start=(start - first).astype(np.int32), end=(end - first).astype(np.int32)
        )
        return trimmed.only(keep), keep

    def _text_probabilities(
        self, parts: Sequence[Part], presets: Mapping[int, Annotation], shown: Segments
    ) -> NDArray[np.float64]:
        """Return P(exactly the spans that are shown and those set before), float64 [D]."""
        spans: list[NamedSpans] = [*self.scheme.named(shown)]
        for i, preset in presets.items():
            spans[i] = sorted({*spans[i], *self._possible_spans(preset)})
        chances = np.ones(len(spans))
        for part, log_z in self._with_log_z(parts):
            logs = Alternatives(part, self.exact.pool).log_sums([spans[i] for i in part.docs])
            chances[part.docs] = np.exp(np.minimum(0.0, logs - log_z))
        return chances

    def _add_alternatives(self, predictions: list[Prediction], decoded: "_Decoded") -> None:
        """Add the n best readings of each Doc by itself to its prediction."""
        parts, total = decoded.parts, decoded.log_z
        for part, log_z in self._with_log_z(parts) if total is None else zip(parts, [total]):
            alternatives = Alternatives(part, self.exact.pool)
            for i, (doc, doc_log_z) in enumerate(zip(part.docs.tolist(), log_z.tolist())):
                best = alternatives.best(i, self.target.n_best, doc_log_z)
                predictions[doc] = predictions[doc]._replace(alternatives=best)


class _Decoded(NamedTuple):
    """Results for a batch, and the parts that further results are computed from."""

    batch: BatchPrediction
    parts: Sequence[Part]
    log_z: NDArray[np.float64] | None  # [D] if known
    revised: Revised | None
