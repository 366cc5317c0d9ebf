"""Predictions that keep constraints: those of the settings, and those that single texts have.

What is forbidden is a structural zero, so that every probability is conditional on the constraints.
Texts that could break rules about all of their spans are decoded, and read, under these: on their probable
paths, or with an automaton that remembers what the rules need, those together that could break the same.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_hocrf.annotation import text_constraints
from spacy_hocrf.annotation.annotation import Annotation, NamedSpans, TextConstraint
from spacy_hocrf.annotation.blanks import merged
from spacy_hocrf.annotation.text_constraints import INSIDE, TextConstraints
from spacy_hocrf.answers.decoders import Answer, Candidates, ExpectedF, Viterbi
from spacy_hocrf.answers.gathering import gathered, of_sequences, with_others
from spacy_hocrf.answers.predictor import LEAST, Part, Predictor, Read, hopeless
from spacy_hocrf.answers.ruled import RuledTexts
from spacy_hocrf.answers.worth import chances_of, worth
from spacy_hocrf.answers.zeros import Masks, unwanted
from spacy_hocrf.arrays import ranges
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.ruled import Ruled
from spacy_hocrf.engine.selection import select_sequences
from spacy_hocrf.engine.viterbi import Best
from spacy_hocrf.engine.zeros import Unwanted, without
from spacy_hocrf.features.tokens import TokenBatch, beginning
from spacy_hocrf.rules.compiled import CompiledRules, Numbers
from spacy_hocrf.rules.errors import ConstraintErrors
from spacy_hocrf.rules.risks import READ_STATES, Survey, Texts, starts_for
from spacy_hocrf.rules.search import BoundedBest, RuledSearch
from spacy_hocrf.types import Potentials, Segments
from spacy_hocrf.warnings import Warnings

__all__ = ["ConstrainedPart", "ConstrainedPredictor"]

LARGER = (0.1, 0.4)
"""Tolerances for texts that could break too many rules at once to be read more exactly."""

FEW_STATES = 4
"""So few states of all rules together multiply the automaton, which is faster then."""


@dataclass(frozen=True)
class ConstrainedPart(Part):
    """Docs that are read under the same rules.

    plain (Automaton): without rules.
    rules (tuple[int, ...]): numbers of those that the automaton remembers.
    candidates (Optional[Candidates]): for the answer, if it is without rules and they are known.
    inside (Optional[TextConstraints]): tokens that must be in a span, if there are any.
    """

    plain: Automaton = field(kw_only=True)
    candidates: Candidates | None = None
    rules: Numbers = ()
    inside: TextConstraints | None = None


@dataclass(frozen=True)
class ConstrainedPredictor(Predictor):
    """A trained model whose predictions keep constraints.

    rules (CompiledRules): those of the settings; `scheme` and `automaton` are theirs.
    """

    rules: CompiledRules = field(kw_only=True)

    def parts(self, batch: TokenBatch) -> Iterator[tuple[Part, NDArray[np.float64]]]:
        """Docs that are read with the same automaton, and log Z of each, float64 [D].

        RAISES (ValueError): H007 as `predict`; H216 for constraints that cannot be kept.
        """
        parts, total = self._decode(batch, self._presets(batch), self._total, hopeless)
        for part in parts:
            yield part, total if part.docs is None else total[part.docs]

    def stricter(self, part: Part, spans: NamedSpans) -> Part | None:
        """Under the rules that the spans break: those that hardly any reading of the text would break are
        left out, but the best one with an improbable span may break them.
        """
        if not isinstance(part, ConstrainedPart):
            return None
        missing = self.rules.must_keep(spans) - set(part.rules)
        return (
            self._remembering(part, self.rules.together(part.rules, missing)) if missing else None
        )

    def _decode(
        self,
        batch: TokenBatch,
        presets: Mapping[int, Annotation],
        read: Callable[[Part], Read],
        stuck: Callable[[Read], NDArray[np.bool_]],
    ) -> tuple[list[Part], Read]:
        key = self.rules.constraints.spans_key
        some = batch.with_group(key)
        if not some and self.rules.constraints.empty:
            return super()._decode(batch, presets, read, stuck)
        texts = text_constraints.read(batch, some, key, self.scheme) if some else None
        zeros = None
        if texts is not None:
            zeros = unwanted(self.scheme, texts, batch.offsets, self.blank(batch))
        free = self.structure.allowed(batch)
        allowed = self._kept(batch, texts, zeros, self._with_presets(batch, presets, free))
        part = self._part(batch, texts, zeros, self._compiled(batch, allowed))
        parts, found = self._read(batch, part, read)
        bad = stuck(found)
        if not bad.any():
            return parts, found
        # presets give way to constraints, as they do to a model that cannot have them
        for i in np.flatnonzero(bad).tolist():
            if i in presets and not self.rules.told:
                self.rules.told = True
                text = Warnings.W036.format(text=beginning(batch.docs[i]))
                warnings.warn(text, stacklevel=2)
        freed = self._kept(batch, texts, zeros, free)
        allowed = np.where(np.repeat(bad, np.diff(batch.offsets))[:, None], freed, allowed)
        part = replace(part, potentials=replace(part.potentials, allowed=allowed))
        parts, found = self._read(batch, part, read)
        for i in np.flatnonzero(stuck(found)).tolist():
            if len(batch.docs[i]):
                named = () if texts is None else texts.named(i, self.scheme.labels)
                self._contradicted(batch.docs[i], named)
        return parts, found

    @cached_property
    def _masks(self) -> Masks:
        return Masks(self.scheme)

    def _kept(
        self,
        batch: TokenBatch,
        texts: TextConstraints | None,
        zeros: Unwanted | None,
        bits: NDArray[np.uint8],
    ) -> NDArray[np.uint8]:
        """Bits of the segmentations that keep the constraints, but for spans of several tokens that
        must not be.
        """
        kept: NDArray[np.uint8] = bits.copy()
        if self.rules.edged:
            self.rules.at_edges(kept, batch.blank, batch.offsets)
        if texts is not None:
            self._masks.take_from(kept, texts, batch.offsets)
        if zeros is not None:
            kept[tuple(zeros.tokens.T)] = 0
        return kept

    def _part(
        self,
        batch: TokenBatch,
        texts: TextConstraints | None,
        zeros: Unwanted | None,
        potentials: Potentials,
    ) -> ConstrainedPart:
        """All Docs, without the spans of several tokens that must not be."""
        automaton = self.automaton
        if zeros is not None:
            patterns = zeros.added_to(automaton.patterns)
            if patterns is not automaton.patterns:
                automaton = self.rules.compile(patterns)
            potentials = without(potentials, zeros, patterns)
        inside = None if texts is None else texts.of_kind(INSIDE)
        return ConstrainedPart(
            potentials, automaton, self.blank(batch), plain=automaton, inside=inside
        )

    def _read(
        self, batch: TokenBatch, part: ConstrainedPart, read: Callable[[Part], Read]
    ) -> tuple[list[Part], Read]:
        """What is read off Docs that are read under the same rules, Doc by Doc."""
        if not self.rules.rules or read == self._best:
            return [part], read(part)
        if read == self._answer and type(self.decoder) is Viterbi and not self.target.n_best:
            best = self._best(part)
            spans, possible = self.scheme.spans(best.segments), ~np.isneginf(best.scores)
            answer = Answer(spans, None, possible)
            broken = self._broken_texts(part, answer)
            whole = self._with_whole(answer, part, broken, False)
            return [part], cast("Read", whole)
        part, survey = self._surveyed(part)
        if read == self._answer and isinstance(self.decoder, ExpectedF) and not self.target.n_best:
            return [part], cast("Read", self._at_once(batch, part, survey, self.decoder))
        return self._read_apart(part, survey, read)

    def _best(self, part: Part) -> Best | BoundedBest:
        """The best segmentations under all rules."""
        if not self.rules.prices.any():
            return super()._best(part)
        search = RuledSearch(self.rules, len(part.potentials.offsets) - 1, self.exact.pool)
        with self.exact.pool.lend(part.automaton) as buffers:
            return search.best(part.potentials, part.automaton, buffers)

    def _under_rules(self, part: Part) -> list[Part]:
        if not isinstance(part, ConstrainedPart) or not self.rules.rules:
            return [part]
        exactly = self.target.n_best > 0
        return [*self._apart(*self._surveyed(part), exactly)]

    def _read_apart(
        self,
        part: ConstrainedPart,
        survey: Survey,
        read: Callable[[Part], Read],
        most: int | None = None,
    ) -> tuple[list[Part], Read]:
        """Docs that could break the same rules, with an automaton that remembers them."""
        exactly = read == self._total or self.target.n_best > 0
        parts = self._apart(part, survey, exactly, most)
        found = [read(each) for each in parts]
        if len(parts) == 1:
            return [*parts], found[0]
        return [*parts], gathered([each.docs for each in parts], found, len(survey.log_partition))

    def _apart(
        self, part: ConstrainedPart, survey: Survey, exactly: bool, most: int | None = None
    ) -> list[ConstrainedPart]:
        sets = self.rules.to_remember(self._texts(part, survey), exactly=exactly, most=most)
        return [self._remembering(self._only(part, docs), rules) for rules, docs in sets]

    def _at_once(
        self, batch: TokenBatch, part: ConstrainedPart, survey: Survey, decoder: ExpectedF
    ) -> Answer:
        """The answer for all Docs; those that could break a rule are read again."""
        if self._all_rules:
            return self._by_all_rules(batch, part, survey, decoder)
        sets = self.rules.to_remember(self._texts(part, survey))
        assert part.candidates is not None
        found, plain = part.candidates, replace(part, candidates=None)
        parts = [
            (docs, self._remembering(self._only(plain, docs), own)) for own, docs in sets if own
        ]
        if parts:
            found = with_others(found, *((docs, self._priced(each)) for docs, each in parts))
        answer = decoder.chosen(found)
        broken = self._broken_texts(part, answer)
        for docs, each in [*parts, (np.arange(len(found.possible)), plain)] if len(broken) else ():
            own = np.flatnonzero(np.isin(docs, broken))
            if len(own):
                answer = with_others(answer, (docs[own], self._whole(self._only(each, own), True)))
            broken = np.setdiff1d(broken, docs)
        return answer

    def _by_all_rules(
        self, batch: TokenBatch, part: ConstrainedPart, survey: Survey, decoder: ExpectedF
    ) -> Answer:
        """The same, by all rules; where these are too many for a text, by those that it could break."""
        assert part.candidates is not None
        doubtful, risks = self.rules.doubtful(self._texts(part, survey))
        ruled = self._ruled(part, survey, risks)
        texts, others, worse = ruled.probable(doubtful, decoder.price)
        answer = decoder.chosen(with_others(part.candidates, (texts, others)))
        rest = np.setdiff1d(doubtful, texts)
        if len(rest):
            some = replace(self._only(part, rest), docs=None)
            own = survey.of_texts(rest, part.potentials.offsets)
            found = self._read_apart(some, own, self._answer, READ_STATES)[1]
            answer = with_others(answer, (rest, found))
        worse = worse[answer.possible[worse]]
        if len(worse) and not self._fit_well and not self.rules.told_of_many:
            self.rules.told_of_many = True
            text = beginning(batch.docs[int(worse[0])])
            warnings.warn(Warnings.W049.format(text=text), stacklevel=2)
        broken = self._broken_texts(part, answer)
        if len(broken) and part.blank is None:
            docs, best = ruled.best(broken, decoder.price)
            answer = with_others(answer, (docs, best))
            broken = self._broken_texts(part, answer)
        return self._with_whole(answer, part, broken, True)

    def _priced(self, part: ConstrainedPart) -> Candidates:
        """The spans that are as probable as their price."""
        assert isinstance(self.decoder, ExpectedF)
        known = part.potentials, part.automaton, self.scheme
        return self.decoder.candidates(*known, self.decoder.price, part.blank)

    @cached_property
    def _all_rules(self) -> bool:
        """Is it faster to follow all rules at once on the probable paths? A span must be one segment."""
        exact = self.rules.constraints.tolerance == 0
        many = not self.rules.fits(range(len(self.rules.rules)), FEW_STATES)
        return self.scheme.encoding == "segments" and many and not exact

    @cached_property
    def _fit_well(self) -> bool:
        """Can a text be read under all rules, whatever it could break?"""
        return self.rules.fits(range(len(self.rules.rules)), READ_STATES)

    def _texts(self, part: ConstrainedPart, survey: Survey) -> Texts:
        return Texts(part.potentials, part.automaton, survey, self.scheme.encoding == "io")

    def _ruled(
        self, part: ConstrainedPart, survey: Survey, risks: NDArray[np.float64]
    ) -> RuledTexts:
        exact = self.rules.constraints.tolerance
        larger = () if self._fit_well else tuple(t for t in LARGER if t > exact)
        known = part.potentials, part.automaton, self.rules.tables, *survey, risks
        ruled = Ruled(*known, (exact, *larger))
        return RuledTexts(ruled, self.scheme.rules, part.blank, self.exact.pool)

    def _broken_texts(self, part: ConstrainedPart, answer: Answer) -> NDArray[np.int64]:
        """Numbers of the Docs whose answer breaks a rule, ascending."""
        return np.array(sorted(self._broken(part, answer.spans)), dtype=np.int64)

    def _surveyed(self, part: ConstrainedPart) -> tuple[ConstrainedPart, Survey]:
        """All Docs, read without rules, and how probably a segment begins where: the candidates of most
        Docs come out of the same sums.
        """
        decoder, starts = self.decoder, starts_for(self.rules.rules, len(part.potentials.token))
        known = part.potentials, part.automaton, self.scheme
        if isinstance(decoder, ExpectedF):
            found = decoder.candidates(*known, decoder.price, part.blank, starts)
            return replace(part, candidates=found), Survey(starts, found.log_partition)
        found = self.exact.candidates(*known, 1.0, starts=starts)
        return part, Survey(starts, found.log_partition)

    def _only(self, part: ConstrainedPart, docs: NDArray[np.int64]) -> ConstrainedPart:
        """Some Docs of a part.

        docs (int64 [n]): their numbers in the part, ascending.
        """
        offsets, blank = part.potentials.offsets, part.blank
        if len(docs) == len(offsets) - 1:
            return part
        if blank is not None:
            blank = blank[ranges(offsets[docs], np.diff(offsets)[docs])]
        return replace(
            part,
            potentials=select_sequences(part.potentials, docs),
            blank=blank,
            docs=docs if part.docs is None else part.docs[docs],
            inside=None if part.inside is None else part.inside.of_texts(docs),
            candidates=None if part.candidates is None else of_sequences(part.candidates, docs),
        )

    def _remembering(self, part: ConstrainedPart, rules: Numbers) -> ConstrainedPart:
        """The same Docs with an automaton that remembers these rules."""
        _, automaton = self.rules.remembering(part.plain, rules)
        under = _RulesOfPart(self.rules, part.plain, rules)
        known = self.rules.hard.sum() == self.rules.hard[list(rules)].sum()
        forgotten = None if known else under
        part = replace(part, automaton=automaton, rules=rules, under=under, forgotten=forgotten)
        return replace(part, candidates=None) if rules else part

    def _scores(
        self, parts: Sequence[Part], shown: Segments, given: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        if given is None and len(parts) == 1 and parts[0].under is None:
            parts = self._under_rules(parts[0])
        if given is not None or len(parts) == 1:
            return super()._scores(parts, shown, given)
        named, found = self.scheme.named(shown), np.zeros(len(shown.start))
        for part in parts:
            assert part.docs is not None
            chosen = ranges(shown.offsets[part.docs], np.diff(shown.offsets)[part.docs])
            found[chosen] = self._scored(part, [named[i] for i in part.docs])
        return found

    def _answer(self, part: Part) -> Answer:
        """What the decoder says, or where that breaks a rule, since it puts an answer together out
        of spans that are probable one by one, the whole reading that is worth most.
        """
        if not isinstance(part, ConstrainedPart):
            return super()._answer(part)
        if part.candidates is not None and isinstance(self.decoder, ExpectedF):
            answer = self.decoder.chosen(part.candidates)
        else:
            answer = super()._answer(part)
        broken = self._broken_texts(part, answer)
        return self._with_whole(answer, part, broken, answer.scores is not None)

    def _with_whole(
        self, answer: Answer, part: ConstrainedPart, docs: NDArray[np.int64], scored: bool
    ) -> Answer:
        """With the whole reading that is worth most for some Docs; others keep their answer."""
        if not len(docs):
            return answer
        return with_others(answer, (docs, self._whole(self._only(part, docs), scored)))

    def _whole(self, part: ConstrainedPart, scored: bool) -> Answer:
        """The spans of the reading that is worth most, of all those that keep the rules that must be kept.

        scored (bool): with their probabilities.
        """
        while True:
            best, found = self._best_of(part)
            spans = self.scheme.spans(best.segments)
            broken = self._broken(part, spans).values()
            missing = set[int]().union(*broken) - set(part.rules)
            if not missing:  # the best of more readings than keep the rules, and it keeps them
                break
            part = self._remembering(part, self.rules.together(part.rules, missing))
        if part.blank is not None:
            spans, found = merged(spans, part.blank, part.potentials.offsets), None
        scores = chances_of(spans, found, part.potentials.offsets) if scored else None
        if scored and scores is None:
            scores = self._scored(part, self.scheme.named(spans))
        return Answer(spans, scores, ~np.isneginf(best.scores))

    def _best_of(self, part: ConstrainedPart) -> tuple[Best, Candidates | None]:
        """Whole readings with the largest sum of P(span) - cost, if that is what the decoder goes by
        and a span is one segment, and the spans that are probable at all; else the most probable ones.
        What breaking a rule costs has its part in P(span) then, and only there.
        """
        decoder = self.decoder
        if not isinstance(decoder, ExpectedF) or self.scheme.encoding != "segments":
            return self.exact.best(part.potentials, part.automaton), None
        found = self.exact.candidates(part.potentials, part.automaton, self.scheme, LEAST)
        hard = tuple(rule for rule in part.rules if self.rules.hard[rule])
        _, automaton = self.rules.remembering(part.plain, hard)
        potentials = worth(part.potentials, self.scheme, found, decoder.price)
        return self.exact.best(potentials, automaton), found

    def _broken(self, part: ConstrainedPart, spans: Segments) -> dict[int, set[int]]:
        """The Docs of the part whose spans break a rule that must be kept, by number, with the numbers of
        those about all spans.
        """
        wrong = self.rules.broken(spans, np.diff(part.potentials.offsets))
        wrong[:, :-1] &= self.rules.hard
        broken = {
            i: set(np.flatnonzero(wrong[i, :-1]).tolist())
            for i in np.flatnonzero(wrong.any(axis=1)).tolist()
        }
        if part.inside is not None:
            for i in part.inside.texts_without(spans).tolist():
                broken.setdefault(i, set())
        return broken

    def _contradicted(self, doc: Doc, constraints: Sequence[TextConstraint]) -> None:
        """RAISES (ValueError): H216."""
        places = [f"{c.kind} {c.label} on tokens {c.start} to {c.end}" for c in constraints]
        which = f": {', '.join(places)}" if places else ""
        key, text = self.rules.constraints.spans_key, beginning(doc)
        raise ValueError(ConstraintErrors.H216.format(text=text, which=which, key=key))


@dataclass(frozen=True)
class _RulesOfPart:
    """Rules that an automaton remembers, and the others."""

    rules: CompiledRules
    plain: Automaton
    remembered: Numbers

    def remember(self, automaton: Automaton) -> Automaton:
        return self.rules.remembering(automaton, self.remembered)[1]

    def broken(self, spans: NamedSpans) -> set[int]:
        return self.rules.must_keep(spans) - set(self.remembered)

    def remembering(self, others: set[int]) -> Automaton:
        rules = self.rules.together(self.remembered, others)
        return self.rules.remembering(self.plain, rules)[1]

    def breaks(self, potentials: Potentials) -> dict[str, float]:
        every = range(len(self.rules.rules))
        known = potentials, self.plain, self.remembered
        return {self.rules.rules[i].name: self.rules.chance_of_break(*known, i) for i in every}

    def costs(self, segments: Segments) -> dict[str, float]:
        (broken,), rules = self.rules.broken_segments(segments), self.rules.rules
        return {rules[i].name: rules[i].price for i in self.remembered if broken[i]}

    def expected_cost(self, potentials: Potentials) -> float:
        prices, known = self.rules.prices, (potentials, self.plain, self.remembered)
        some = [i for i in self.remembered if 0 < prices[i] < np.inf]
        return sum(float(prices[i]) * self.rules.chance_of_break(*known, i) for i in some)
