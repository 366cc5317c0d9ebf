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
    BUILT_IN,
    Answer,
    Candidates,
    Decoder,
    ExpectedF,
    Reranked,
    Viterbi,
    checked_answer,
)
from spacy_hocrf.answers.gains import chances_of, span_gains
from spacy_hocrf.answers.gathering import gathered, with_others
from spacy_hocrf.answers.part import Part
from spacy_hocrf.answers.reranking import rerank
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

__all__ = ["MIN_PROBABILITY", "UnderRules"]

LARGER_TOLERANCES = (0.1, 0.4)
"""Tolerances for texts that could break too many rules at once to be read with the requested one."""

FEW_STATES = 10
"""Up to this many states of all rules together, multiplying them into the automaton is faster."""

MIN_PROBABILITY = 1e-6
"""Spans less probable than this are left out, whatever the threshold: they are not worth their memory."""


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
            parts = self.split(part, exactly=True)
            return gathered([(p.docs, self._repaired(p, rerank(p, decoder))) for p in parts])
        if self.rules.constraints.empty and part.inside is None:
            return self._decode(part)  # there is nothing to break
        if not self.rules.rules:
            return self._repaired(part, self._decode(part))
        if type(decoder) is Viterbi:
            return self._repaired(part, self._most_probable(part))
        survey, candidates = self._survey(part)
        if candidates is None or not isinstance(decoder, ExpectedF):
            parts = self._split(part, survey)
            return gathered([(p.docs, self._repaired(p, self._decode(p))) for p in parts])
        if self._prefers_all_rules:
            return self._answer_by_all_rules(part, survey, candidates, decoder)
        parts = self._split(part, survey, followed=True)
        others = ((p.docs, decoder.candidates(*p.inputs, decoder.price, p.blank)) for p in parts)
        candidates = with_others(candidates, *others)
        return self._repaired_by_parts([*parts, part], decoder.chosen(candidates))

    def spans(self, part: Part, at_least: float, *, exactly: bool) -> Candidates:
        """Return all spans of at least this probability, for a part that follows no rules yet.

        exactly (bool): as in `split`.
        """
        parts = self.split(part, exactly=exactly)
        find = self.exact.candidates
        return gathered([(part.docs, find(*part.inputs, at_least, part.blank)) for part in parts])

    def split(self, part: Part, *, exactly: bool) -> list[Part]:
        """Split a part that follows no rules yet into parts of Docs that could break the same rules.

        exactly (bool): follow more rules than the tolerance requires; see `violations.with_more`.
        """
        if not self.rules.rules:
            return [part]
        return self._split(part, self._survey(part)[0], exactly=exactly)

    def scored(
        self, part: Part, spans: Segments, *, exactly: bool
    ) -> tuple[list[Part], NDArray[np.float64]]:
        """Return the parts as `split` does (unless `exactly`, without those that follow no rules), and the
        score of each shown span of all Docs, float64 [n].

        spans (Segments): n spans of all Docs of the part.
        """
        if not self.rules.rules:
            return [part], part.scores(self.decoder, spans)
        if type(self.decoder) is Viterbi and not self.scheme.one_token.all():
            survey, scores = self._scored_survey(part, spans)
            parts = self._split(part, survey, exactly=exactly, followed=not exactly)
            unscored = [subpart for subpart in parts if subpart.under.numbers]
        else:
            unscored = parts = self.split(part, exactly=exactly)
            scores = np.zeros(len(spans.start))
        sizes = np.diff(spans.offsets)
        for subpart in unscored:
            place = ranges(spans.offsets[subpart.docs], sizes[subpart.docs])  # of the part's spans
            columns = (column[place] for column in spans[1:])
            own_spans = Segments(offsets_of(sizes[subpart.docs]), *columns)
            scores[place] = subpart.scores(self.decoder, own_spans)
        return parts, scores

    def _split(
        self,
        part: Part,
        survey: RuleSurvey,
        *,
        exactly: bool = False,
        followed: bool = False,
        most: int | None = None,
    ) -> list[Part]:
        """Split a part like `split`. followed (bool): leave out Docs that need no rules.

        most (Optional[int]): maximum number of joint states of rules, see `CompiledRules.rule_sets`.
        """
        texts = self._texts(part, survey)
        sets, inexact = self.rules.rule_sets(texts, exactly=exactly, most=most)
        self._warn_of_states(part, inexact)
        return [part.only(docs).following(rules) for rules, docs in sets if rules or not followed]

    def _survey(self, part: Part) -> tuple[RuleSurvey, Candidates | None]:
        """Return how probably a segment of each label begins at each token if all Docs are decoded without
        rules; and the candidates for the answers of an `ExpectedF`, which come from the same pass.
        """
        decoder, starts = self.decoder, starts_for(self.rules.rules, len(part.potentials.token))
        if isinstance(decoder, ExpectedF):
            candidates = decoder.candidates(*part.inputs, decoder.price, part.blank, starts)
            return RuleSurvey(starts, candidates.log_partition), candidates
        log_z = self.exact.candidates(*part.inputs, 1.0, starts=starts).log_partition
        return RuleSurvey(starts, log_z), None

    def _scored_survey(self, part: Part, spans: Segments) -> tuple[RuleSurvey, NDArray[np.float64]]:
        """Return a survey without candidates, and the probability of each shown span, from one pass."""
        starts = starts_for(self.rules.rules, len(part.potentials.token))
        log_z = np.zeros(len(part.docs))

        def score(variants: Segments) -> NDArray[np.float64]:
            probability, log_z[:] = self.exact.marginals(*part.inputs, variants, starts)
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
        answer = self._answer_of_best(best)
        broken = self.rules.broken_segments(best.segments) & (self.rules.prices > 0)
        breaking = np.flatnonzero(broken.any(axis=1))
        if not len(breaking):
            return answer
        others = self._answer_of_best(self.best(part.only(breaking), broken[breaking]))
        return with_others(answer, (breaking, others))

    def _answer_of_best(self, best: Best | BoundedBest) -> Answer:
        return Answer(self.scheme.spans(best.segments), None, ~np.isneginf(best.scores))

    def _decode(self, part: Part) -> Answer:
        """Return the decoder's answer under the rules of the part. RAISES (ValueError): H590."""
        answer = self.decoder.answer(*part.inputs, part.blank)
        if type(self.decoder) in BUILT_IN:
            return answer
        return checked_answer(self.decoder, answer, part.potentials, len(self.scheme.labels))

    # All rules at once, on the probable paths of each text

    @cached_property
    def _prefers_all_rules(self) -> bool:
        """Is it faster to follow all rules at once on the probable paths? Only if spans are segments."""
        exact = self.rules.constraints.tolerance == 0
        many_states = not self.rules.fits(range(len(self.rules.rules)), FEW_STATES)
        return self.scheme.encoding == "segments" and many_states and not exact

    @cached_property
    def _all_fit(self) -> bool:
        """Can a text be read under all rules together, whichever it could break?"""
        return self.rules.fits(range(len(self.rules.rules)), READ_STATES)

    def _answer_by_all_rules(
        self, part: Part, survey: RuleSurvey, candidates: Candidates, decoder: ExpectedF
    ) -> Answer:
        """Return the answer under all rules; if these are too many for a text, under those it could break."""
        breaking, violations = self.rules.may_break(self._texts(part, survey))
        ruled = self._ruled(part, survey, violations)
        if len(breaking):
            answer = self._redecoded(breaking, part, survey, ruled, candidates, decoder)
        else:
            answer = decoder.chosen(candidates)
        still_breaking = self._breaking_docs(part, answer)
        if not len(still_breaking):
            return answer
        if part.blank is None:
            answer = with_others(answer, ruled.best(still_breaking, decoder.price))
        return self._repaired(part, answer)

    def _redecoded(
        self,
        breaking: NDArray[np.int64],
        part: Part,
        survey: RuleSurvey,
        ruled: RuledTexts,
        candidates: Candidates,
        decoder: ExpectedF,
    ) -> Answer:
        """Return the answer after decoding texts that could break rules a second time.

        breaking (int64 [n]): their indices in the part, ascending.
        """
        texts, new_candidates, inexact = ruled.probable(breaking, decoder.price)
        answer = decoder.chosen(with_others(candidates, (texts, new_candidates)))
        unread = np.setdiff1d(breaking, texts)
        if len(unread):
            unread_survey = survey.of_texts(unread, part.potentials.offsets)
            parts = self._split(part.only(unread), unread_survey, most=READ_STATES)
            answers = ((p.docs, self._repaired(p, self._decode(p))) for p in parts)
            answer = with_others(answer, *answers)
        if not self._all_fit:
            self._warn_of_states(part, inexact[answer.possible[inexact]])
        return answer

    def _warn_of_states(self, part: Part, inexact: NDArray[np.int64]) -> None:
        """Warn once of Docs of a part, int64 [n], that could break more rules than can be followed."""
        if len(inexact) and not self.rules.warned_of_states:
            self.rules.warned_of_states = True
            text = beginning(part.doc(int(inexact[0])))
            warnings.warn(Warnings.W049.format(text=text), stacklevel=2)

    def _ruled(self, part: Part, survey: RuleSurvey, violations: NDArray[np.float64]) -> RuledTexts:
        tolerance = self.rules.constraints.tolerance
        larger = () if self._all_fit else tuple(t for t in LARGER_TOLERANCES if t > tolerance)
        model = part.potentials, part.automaton, self.rules.tables, *survey, violations
        ruled = Ruled(*model, (tolerance, *larger))
        return RuledTexts(ruled, self.scheme.rules, part.blank, self.exact.pool)

    # Whole readings in place of answers that break a constraint

    def _repaired(self, part: Part, answer: Answer) -> Answer:
        """Replace answers that break a constraint by the whole reading with the largest gain."""
        breaking = self._breaking_docs(part, answer)
        if not len(breaking):
            return answer
        readings = self._best_readings(part.only(breaking), answer.scores is not None)
        return with_others(answer, (breaking, readings))

    def _repaired_by_parts(self, parts: Sequence[Part], answer: Answer) -> Answer:
        """Replace the answer of each Doc of the last part that breaks a constraint by the whole reading with
        the largest gain; Docs that are in another part, too, are read under the rules of that one.
        """
        breaking = self._breaking_docs(parts[-1], answer)
        for part in parts if len(breaking) else ():
            own = np.flatnonzero(np.isin(part.docs, breaking))
            if len(own):
                readings = self._best_readings(part.only(own), True)
                answer = with_others(answer, (part.docs[own], readings))
            breaking = np.setdiff1d(breaking, part.docs)
        return answer

    def _best_readings(self, part: Part, scored: bool) -> Answer:
        """Return the spans of the reading with the largest gain, among those that keep the hard rules.

        scored (bool): compute their probabilities.
        """
        while True:
            best, candidates = self._best_by_gain(part)
            spans = self.scheme.spans(best.segments)
            broken = self._broken(part, spans).values()
            missing = set[int]().union(*broken) - set(part.under.numbers)
            if not missing:  # the best of a superset of all readings that keep the rules
                break
            part = part.following(self.rules.together(part.under.numbers, missing))
        if part.blank is not None:
            spans, candidates = spans_shown(spans, part.blank, part.potentials.offsets), None
        scores = chances_of(spans, candidates, part.potentials.offsets) if scored else None
        if scored and scores is None:
            scores = part.scores(self.decoder, spans)
        return Answer(spans, scores, ~np.isneginf(best.scores))

    def _best_by_gain(self, part: Part) -> tuple[Best, Candidates | None]:
        """Return the whole readings with the largest Σ (P(span) - cost), if the decoder is an `ExpectedF` and
        spans are segments, with all spans that are probable at all; else the most probable readings. The
        penalties of broken rules then only enter through P(span).
        """
        decoder = self.decoder
        if not isinstance(decoder, ExpectedF) or self.scheme.encoding != "segments":
            return self.exact.best(part.potentials, part.automaton), None
        candidates = self.exact.candidates(*part.inputs, MIN_PROBABILITY)
        hard = tuple(rule for rule in part.under.numbers if self.rules.hard[rule])
        potentials = span_gains(part.potentials, self.scheme, candidates, decoder.price)
        return self.exact.best(potentials, part.following(hard).automaton), candidates

    def _breaking_docs(self, part: Part, answer: Answer) -> NDArray[np.int64]:
        """Return the indices in the part of the Docs whose answer breaks a constraint, ascending."""
        return np.array(sorted(self._broken(part, answer.spans)), dtype=np.int64)

    def _broken(self, part: Part, spans: Segments) -> dict[int, set[int]]:
        """Return the Docs of the part whose spans break a hard constraint: by index in the part, the numbers
        of the broken rules about all spans.
        """
        broken_rules = self.rules.broken(spans, np.diff(part.potentials.offsets))
        broken_rules[:, :-1] &= self.rules.hard
        broken = {
            i: set(np.flatnonzero(broken_rules[i, :-1]).tolist())
            for i in np.flatnonzero(broken_rules.any(axis=1)).tolist()
        }
        if part.inside is not None:
            for i in part.inside.texts_without(spans).tolist():
                broken.setdefault(i, set())
        return broken
