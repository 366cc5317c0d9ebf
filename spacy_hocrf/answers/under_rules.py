"""Answers that keep the constraints of a model, and pay for the rules that they break.

What is forbidden is a structural zero of the potentials already. Rules about all spans of a text are
followed where it could break them more probably than the tolerance: with an automaton that remembers their
states, for those texts together that could break the same; or, where that takes many states, all rules at
once on the probable paths of each text (`answers.ruled`).

A decoder that puts an answer together out of spans that are probable one by one may break a constraint
nevertheless. Such a text gets the whole reading that is worth most, of those that keep the constraints.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.whitespace import merged, scores_of_shown
from spacy_hocrf.answers.decoders import (
    Answer,
    Candidates,
    Decoder,
    ExpectedF,
    Reranked,
    Viterbi,
)
from spacy_hocrf.answers.gains import chances_of, span_gains
from spacy_hocrf.answers.gathering import joined, with_others
from spacy_hocrf.answers.part import Part
from spacy_hocrf.answers.reranking import read
from spacy_hocrf.answers.ruled import RuledTexts
from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.engine.ruled import Ruled
from spacy_hocrf.engine.viterbi import Best
from spacy_hocrf.features.tokens import beginning
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.search import BoundedBest, RuledSearch
from spacy_hocrf.rules.violations import READ_STATES, RuleSurvey, Texts, starts_for
from spacy_hocrf.types import Segments
from spacy_hocrf.warnings import Warnings

__all__ = ["LEAST", "UnderRules"]

LARGER = (0.1, 0.4)
"""Tolerances for texts that could break too many rules at once to be read more exactly."""

FEW_STATES = 10
"""So few states of all rules together multiply the automaton, which is faster then."""

LEAST = 1e-6
"""Less probable spans are not worth the memory, whatever the threshold."""


@dataclass(frozen=True)
class UnderRules:
    """Reads Docs under the rules of a model.

    decoder (Decoder): how an answer is read off the potentials.
    exact (ExpectedF): finds all spans, whatever the decoder.
    """

    rules: CompiledRules
    decoder: Decoder
    exact: ExpectedF

    @cached_property
    def scheme(self) -> LabelScheme:
        """Labels and segments of the model."""
        return self.rules.scheme

    def best(self, part: Part, needed: NDArray[np.bool_] | None = None) -> Best | BoundedBest:
        """The best segmentations under all rules.

        needed (Optional[bool [D, n]]): rules that the best ones without rules are known to break.
        """
        if not self.rules.prices.any():
            return self.exact.best(part.potentials, part.automaton)
        if needed is None:
            needed = np.zeros((len(part.docs), len(self.rules.rules)), dtype=bool)
        search = RuledSearch(self.rules, needed, self.exact.pool)
        with self.exact.pool.lend(part.automaton) as buffers:
            return search.best(part.potentials, part.automaton, buffers)

    def answer(self, part: Part) -> Answer:
        """The decoder's answer for Docs that are read without rules so far."""
        decoder = self.decoder
        if isinstance(decoder, Reranked) and decoder.knows(self.scheme.labels):
            parts = self.apart(part, exactly=True)
            answers = [self._kept(each, read(each, decoder)) for each in parts]
            return joined([each.docs for each in parts], answers)
        if self.rules.constraints.empty and part.inside is None:
            return self._decoded(part)  # which has nothing to break
        if not self.rules.rules:
            return self._kept(part, self._decoded(part))
        if type(decoder) is Viterbi:
            return self._kept(part, self._most_probable(part))
        survey, found = self._survey(part)
        if found is None or not isinstance(decoder, ExpectedF):
            parts = self._apart(part, survey)
            answers = [self._kept(each, self._decoded(each)) for each in parts]
            return joined([each.docs for each in parts], answers)
        if self._all_rules:
            return self._by_all_rules(part, survey, found, decoder)
        parts = self._apart(part, survey, followed=True)
        if parts:
            found = with_others(found, *((each.docs, self._candidates(each)) for each in parts))
        return self._kept_apart([*parts, part], decoder.chosen(found))

    def spans(self, part: Part, least: float, *, exactly: bool) -> Candidates:
        """All spans of at least this probability, of Docs that are read without rules so far.

        exactly (bool): as in `apart`.
        """
        parts = self.apart(part, exactly=exactly)
        found = [
            self.exact.candidates(each.potentials, each.automaton, self.scheme, least, each.blank)
            for each in parts
        ]
        return joined([each.docs for each in parts], found)

    def apart(self, part: Part, *, exactly: bool) -> list[Part]:
        """Docs that are read without rules so far, with those together that could break the same rules.

        exactly (bool): follow more than the tolerance asks for; see `violations.with_more`.
        """
        if not self.rules.rules:
            return [part]
        return self._apart(part, self._survey(part)[0], exactly=exactly)

    def scored(
        self, part: Part, spans: Segments, *, exactly: bool
    ) -> tuple[list[Part], NDArray[np.float64]]:
        """`apart`, or, unless `exactly`, nothing of Docs that are read without rules; and the score of each
        span of all Docs that is shown, float64 [n].

        spans (Segments): of all Docs of the part, n in all.
        """
        if not self.rules.rules:
            return [part], part.scores(self.decoder, spans)
        if type(self.decoder) is Viterbi and not self.scheme.one_token.all():
            survey, scores = self._scored_survey(part, spans)
            parts = self._apart(part, survey, exactly=exactly, followed=not exactly)
            again = [each for each in parts if each.under.numbers]
        else:
            again = parts = self.apart(part, exactly=exactly)
            scores = np.zeros(len(spans.start))
        sizes = np.diff(spans.offsets)
        for each in again:
            chosen = ranges(spans.offsets[each.docs], sizes[each.docs])
            columns = (column[chosen] for column in spans[1:])
            own = Segments(offsets_of(sizes[each.docs]), *columns)
            scores[chosen] = each.scores(self.decoder, own)
        return parts, scores

    def _apart(
        self,
        part: Part,
        survey: RuleSurvey,
        *,
        exactly: bool = False,
        followed: bool = False,
        most: int | None = None,
    ) -> list[Part]:
        """`apart`. followed (bool): leave out Docs that are read without rules."""
        sets = self.rules.to_remember(self._texts(part, survey), exactly=exactly, most=most)
        some = [each for each in sets if each[0] or not followed]
        return [part.only(docs).following(numbers) for numbers, docs in some]

    def _survey(self, part: Part) -> tuple[RuleSurvey, Candidates | None]:
        """How probably a segment of each label begins where, if all Docs are read without rules; and the
        candidates for the answers of an `ExpectedF`, which come out of the same sums.
        """
        decoder, starts = self.decoder, starts_for(self.rules.rules, len(part.potentials.token))
        known = part.potentials, part.automaton, self.scheme
        if isinstance(decoder, ExpectedF):
            found = decoder.candidates(*known, decoder.price, part.blank, starts)
            return RuleSurvey(starts, found.log_partition), found
        log_z = self.exact.candidates(*known, 1.0, starts=starts).log_partition
        return RuleSurvey(starts, log_z), None

    def _scored_survey(self, part: Part, spans: Segments) -> tuple[RuleSurvey, NDArray[np.float64]]:
        """A survey without candidates, and how probable each span is that is shown, out of its sums."""
        starts = starts_for(self.rules.rules, len(part.potentials.token))
        known, log_z = (part.potentials, part.automaton, self.scheme), np.zeros(len(part.docs))

        def score(found: Segments) -> NDArray[np.float64]:
            probability, log_z[:] = self.exact.marginals(*known, found, starts)
            return probability

        if part.blank is None:
            scores = score(spans)
        else:
            scores = scores_of_shown(score, spans, part.blank, part.potentials.offsets)
        return RuleSurvey(starts, log_z), scores

    def _texts(self, part: Part, survey: RuleSurvey) -> Texts:
        return Texts(part.potentials, part.automaton, survey, self.scheme.encoding == "io")

    def _most_probable(self, part: Part) -> Answer:
        """The best segmentations under all rules: that without rules, if it breaks none."""
        best = self.exact.best(part.potentials, part.automaton)
        answer = self._answer_of(best)
        broken = self.rules.broken_segments(best.segments) & (self.rules.prices > 0)
        some = np.flatnonzero(broken.any(axis=1))
        if not len(some):
            return answer
        others = self._answer_of(self.best(part.only(some), broken[some]))
        return with_others(answer, (some, others))

    def _answer_of(self, best: Best | BoundedBest) -> Answer:
        return Answer(self.scheme.spans(best.segments), None, ~np.isneginf(best.scores))

    def _decoded(self, part: Part) -> Answer:
        """What the decoder says under the rules of the part."""
        return self.decoder.answer(part.potentials, part.automaton, self.scheme, part.blank)

    def _candidates(self, part: Part) -> Candidates:
        """The spans that are as probable as their price."""
        decoder = self.decoder
        assert isinstance(decoder, ExpectedF)
        known = part.potentials, part.automaton, self.scheme
        return decoder.candidates(*known, decoder.price, part.blank)

    # All rules at once, on the probable paths of each text

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

    def _by_all_rules(
        self, part: Part, survey: RuleSurvey, found: Candidates, decoder: ExpectedF
    ) -> Answer:
        """The answer by all rules; where these are too many for a text, by those that it could break."""
        breaking, violations = self.rules.may_break(self._texts(part, survey))
        ruled = self._ruled(part, survey, violations)
        if len(breaking):
            answer = self._read_anew(breaking, part, survey, ruled, found, decoder)
        else:
            answer = decoder.chosen(found)
        broken = self._broken_texts(part, answer)
        if not len(broken):
            return answer
        if part.blank is None:
            answer = with_others(answer, ruled.best(broken, decoder.price))
        return self._kept(part, answer)

    def _read_anew(
        self,
        breaking: NDArray[np.int64],
        part: Part,
        survey: RuleSurvey,
        ruled: RuledTexts,
        found: Candidates,
        decoder: ExpectedF,
    ) -> Answer:
        """The answer, for which some texts that could break rules are read once more.

        breaking (int64 [n]): their numbers in the part, ascending.
        """
        texts, others, worse = ruled.probable(breaking, decoder.price)
        answer = decoder.chosen(with_others(found, (texts, others)))
        rest = np.setdiff1d(breaking, texts)
        if len(rest):
            some = part.only(rest)
            own = survey.of_texts(rest, part.potentials.offsets)
            parts = self._apart(some, own, most=READ_STATES)
            answers = [self._kept(each, self._decoded(each)) for each in parts]
            answer = with_others(answer, *zip((each.docs for each in parts), answers))
        worse = worse[answer.possible[worse]]
        if len(worse) and not self._fit_well and not self.rules.told_of_many:
            self.rules.told_of_many = True
            text = beginning(part.doc(int(worse[0])))
            warnings.warn(Warnings.W049.format(text=text), stacklevel=2)
        return answer

    def _ruled(self, part: Part, survey: RuleSurvey, violations: NDArray[np.float64]) -> RuledTexts:
        exact = self.rules.constraints.tolerance
        larger = () if self._fit_well else tuple(t for t in LARGER if t > exact)
        known = part.potentials, part.automaton, self.rules.tables, *survey, violations
        ruled = Ruled(*known, (exact, *larger))
        return RuledTexts(ruled, self.scheme.rules, part.blank, self.exact.pool)

    # Whole readings, where an answer breaks a constraint

    def _kept(self, part: Part, answer: Answer) -> Answer:
        """An answer for the Docs of a part, with the whole reading that is worth most for each that breaks a
        constraint.
        """
        broken = self._broken_texts(part, answer)
        if not len(broken):
            return answer
        whole = self._whole(part.only(broken), answer.scores is not None)
        return with_others(answer, (broken, whole))

    def _kept_apart(self, parts: Sequence[Part], answer: Answer) -> Answer:
        """An answer for all Docs of the last part, with the whole reading that is worth most for each that
        breaks a constraint; Docs that another part has, too, are read under the rules of that one.
        """
        broken = self._broken_texts(parts[-1], answer)
        for part in parts if len(broken) else ():
            own = np.flatnonzero(np.isin(part.docs, broken))
            if len(own):
                answer = with_others(answer, (part.docs[own], self._whole(part.only(own), True)))
            broken = np.setdiff1d(broken, part.docs)
        return answer

    def _whole(self, part: Part, scored: bool) -> Answer:
        """The spans of the reading that is worth most, of all those that keep the rules that must be kept.

        scored (bool): with their probabilities.
        """
        while True:
            best, found = self._best_whole(part)
            spans = self.scheme.spans(best.segments)
            broken = self._broken(part, spans).values()
            missing = set[int]().union(*broken) - set(part.under.numbers)
            if not missing:  # the best of more readings than keep the rules, and it keeps them
                break
            part = part.following(self.rules.together(part.under.numbers, missing))
        if part.blank is not None:
            spans, found = merged(spans, part.blank, part.potentials.offsets), None
        scores = chances_of(spans, found, part.potentials.offsets) if scored else None
        if scored and scores is None:
            scores = part.scores(self.decoder, spans)
        return Answer(spans, scores, ~np.isneginf(best.scores))

    def _best_whole(self, part: Part) -> tuple[Best, Candidates | None]:
        """Whole readings with the largest sum of P(span) - cost, if that is what the decoder goes by
        and a span is one segment, and the spans that are probable at all; else the most probable ones.
        What breaking a rule costs has its part in P(span) then, and only there.
        """
        decoder = self.decoder
        if not isinstance(decoder, ExpectedF) or self.scheme.encoding != "segments":
            return self.exact.best(part.potentials, part.automaton), None
        found = self.exact.candidates(part.potentials, part.automaton, self.scheme, LEAST)
        hard = tuple(rule for rule in part.under.numbers if self.rules.hard[rule])
        potentials = span_gains(part.potentials, self.scheme, found, decoder.price)
        return self.exact.best(potentials, part.following(hard).automaton), found

    def _broken_texts(self, part: Part, answer: Answer) -> NDArray[np.int64]:
        """Numbers in the part of the Docs whose answer breaks a constraint, ascending."""
        return np.array(sorted(self._broken(part, answer.spans)), dtype=np.int64)

    def _broken(self, part: Part, spans: Segments) -> dict[int, set[int]]:
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
