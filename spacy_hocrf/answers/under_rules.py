"""Answers that satisfy the constraints of a model, and pay for the rules that they break.

Anything forbidden is already a structural zero of the potentials. Rules about all spans of a text are
followed only where a text may break them with more probability than the tolerance: with an automaton that
remembers their states, for groups of texts that could break the same rules; or, where that takes many states,
with all rules at once on the probable paths of each text (`answers.ruled`).

A decoder that assembles its answer from individually probable spans may still break a constraint. Such a text
gets the whole reading with the largest gain among those that satisfy the constraints.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.whitespace import scores_of_shown, spans_shown
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
"""Tolerances for texts that could break too many rules at once to be read with the requested one."""

FEW_STATES = 10
"""Up to this many states of all rules together, multiplying them into the automaton is faster."""

LEAST = 1e-6
"""Spans less probable than this are not worth their memory, whatever the threshold."""


@dataclass(frozen=True)
class UnderRules:
    """Reads Docs under the rules of a model.

    decoder (Decoder): reads the answer off the potentials.
    exact (ExpectedF): finds all probable spans, whatever the decoder.
    """

    rules: CompiledRules
    decoder: Decoder
    exact: ExpectedF

    @cached_property
    def scheme(self) -> LabelScheme:
        """Labels and segments of the model."""
        return self.rules.scheme

    def best(self, part: Part, needed: NDArray[np.bool_] | None = None) -> Best | BoundedBest:
        """Return the best segmentations under all rules.

        needed (Optional[bool [D, n]]): rules known to be broken by the best segmentations without rules.
        """
        if not self.rules.prices.any():
            return self.exact.best(part.potentials, part.automaton)
        if needed is None:
            needed = np.zeros((len(part.docs), len(self.rules.rules)), dtype=bool)
        search = RuledSearch(self.rules, needed, self.exact.pool)
        with self.exact.pool.lend(part.automaton) as buffers:
            return search.best(part.potentials, part.automaton, buffers)

    def answer(self, part: Part) -> Answer:
        """Return the decoder's answer for a part that follows no rules yet."""
        decoder = self.decoder
        if isinstance(decoder, Reranked) and decoder.knows(self.scheme.labels):
            parts = self.apart(part, exactly=True)
            answers = [self._kept(each, read(each, decoder)) for each in parts]
            return joined([each.docs for each in parts], answers)
        if self.rules.constraints.empty and part.inside is None:
            return self._decoded(part)  # there is nothing to break
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
        """Return all spans of at least this probability, for a part that follows no rules yet.

        exactly (bool): as in `apart`.
        """
        parts = self.apart(part, exactly=exactly)
        found = [
            self.exact.candidates(each.potentials, each.automaton, self.scheme, least, each.blank)
            for each in parts
        ]
        return joined([each.docs for each in parts], found)

    def apart(self, part: Part, *, exactly: bool) -> list[Part]:
        """Split a part that follows no rules yet into parts of Docs that could break the same rules.

        exactly (bool): follow more rules than the tolerance requires; see `violations.with_more`.
        """
        if not self.rules.rules:
            return [part]
        return self._apart(part, self._survey(part)[0], exactly=exactly)

    def scored(
        self, part: Part, spans: Segments, *, exactly: bool
    ) -> tuple[list[Part], NDArray[np.float64]]:
        """Return the parts as `apart` does (unless `exactly`, without those that follow no rules), and the
        score of each shown span of all Docs, float64 [n].

        spans (Segments): n spans of all Docs of the part.
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
        """Split a part like `apart`. followed (bool): leave out Docs that need no rules."""
        sets = self.rules.to_remember(self._texts(part, survey), exactly=exactly, most=most)
        some = [each for each in sets if each[0] or not followed]
        return [part.only(docs).following(numbers) for numbers, docs in some]

    def _survey(self, part: Part) -> tuple[RuleSurvey, Candidates | None]:
        """Return how probably a segment of each label begins at each token if all Docs are decoded without
        rules; and the candidates for the answers of an `ExpectedF`, which come from the same pass.
        """
        decoder, starts = self.decoder, starts_for(self.rules.rules, len(part.potentials.token))
        known = part.potentials, part.automaton, self.scheme
        if isinstance(decoder, ExpectedF):
            found = decoder.candidates(*known, decoder.price, part.blank, starts)
            return RuleSurvey(starts, found.log_partition), found
        log_z = self.exact.candidates(*known, 1.0, starts=starts).log_partition
        return RuleSurvey(starts, log_z), None

    def _scored_survey(self, part: Part, spans: Segments) -> tuple[RuleSurvey, NDArray[np.float64]]:
        """Return a survey without candidates, and the probability of each shown span, from one pass."""
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
        """Return the best segmentations under all rules: the one without rules, where it breaks none."""
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
        """Return the decoder's answer under the rules of the part."""
        return self.decoder.answer(part.potentials, part.automaton, self.scheme, part.blank)

    def _candidates(self, part: Part) -> Candidates:
        """Return the spans that are at least as probable as their price."""
        decoder = self.decoder
        assert isinstance(decoder, ExpectedF)
        known = part.potentials, part.automaton, self.scheme
        return decoder.candidates(*known, decoder.price, part.blank)

    # All rules at once, on the probable paths of each text

    @cached_property
    def _all_rules(self) -> bool:
        """Is it faster to follow all rules at once on the probable paths? Only if spans are segments."""
        exact = self.rules.constraints.tolerance == 0
        many = not self.rules.fits(range(len(self.rules.rules)), FEW_STATES)
        return self.scheme.encoding == "segments" and many and not exact

    @cached_property
    def _fit_well(self) -> bool:
        """Can a text be read under all rules together, whichever it could break?"""
        return self.rules.fits(range(len(self.rules.rules)), READ_STATES)

    def _by_all_rules(
        self, part: Part, survey: RuleSurvey, found: Candidates, decoder: ExpectedF
    ) -> Answer:
        """Return the answer under all rules; if these are too many for a text, under those it could break."""
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
        """Return the answer after decoding texts that could break rules a second time.

        breaking (int64 [n]): their indices in the part, ascending.
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

    # Whole readings in place of answers that break a constraint

    def _kept(self, part: Part, answer: Answer) -> Answer:
        """Replace answers that break a constraint by the whole reading with the largest gain."""
        broken = self._broken_texts(part, answer)
        if not len(broken):
            return answer
        whole = self._whole(part.only(broken), answer.scores is not None)
        return with_others(answer, (broken, whole))

    def _kept_apart(self, parts: Sequence[Part], answer: Answer) -> Answer:
        """Replace the answer of each Doc of the last part that breaks a constraint by the whole reading with
        the largest gain; Docs that are in another part, too, are read under the rules of that one.
        """
        broken = self._broken_texts(parts[-1], answer)
        for part in parts if len(broken) else ():
            own = np.flatnonzero(np.isin(part.docs, broken))
            if len(own):
                answer = with_others(answer, (part.docs[own], self._whole(part.only(own), True)))
            broken = np.setdiff1d(broken, part.docs)
        return answer

    def _whole(self, part: Part, scored: bool) -> Answer:
        """Return the spans of the reading with the largest gain, among those that keep the hard rules.

        scored (bool): compute their probabilities.
        """
        while True:
            best, found = self._best_whole(part)
            spans = self.scheme.spans(best.segments)
            broken = self._broken(part, spans).values()
            missing = set[int]().union(*broken) - set(part.under.numbers)
            if not missing:  # the best of a superset of all readings that keep the rules
                break
            part = part.following(self.rules.together(part.under.numbers, missing))
        if part.blank is not None:
            spans, found = spans_shown(spans, part.blank, part.potentials.offsets), None
        scores = chances_of(spans, found, part.potentials.offsets) if scored else None
        if scored and scores is None:
            scores = part.scores(self.decoder, spans)
        return Answer(spans, scores, ~np.isneginf(best.scores))

    def _best_whole(self, part: Part) -> tuple[Best, Candidates | None]:
        """Return the whole readings with the largest Σ (P(span) - cost), if the decoder is an `ExpectedF` and
        spans are segments, with all spans that are probable at all; else the most probable readings. The
        penalties of broken rules then only enter through P(span).
        """
        decoder = self.decoder
        if not isinstance(decoder, ExpectedF) or self.scheme.encoding != "segments":
            return self.exact.best(part.potentials, part.automaton), None
        found = self.exact.candidates(part.potentials, part.automaton, self.scheme, LEAST)
        hard = tuple(rule for rule in part.under.numbers if self.rules.hard[rule])
        potentials = span_gains(part.potentials, self.scheme, found, decoder.price)
        return self.exact.best(potentials, part.following(hard).automaton), found

    def _broken_texts(self, part: Part, answer: Answer) -> NDArray[np.int64]:
        """Return the indices in the part of the Docs whose answer breaks a constraint, ascending."""
        return np.array(sorted(self._broken(part, answer.spans)), dtype=np.int64)

    def _broken(self, part: Part, spans: Segments) -> dict[int, set[int]]:
        """Return the Docs of the part whose spans break a hard constraint: by index in the part, the numbers
        of the broken rules about all spans.
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
