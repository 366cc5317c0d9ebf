"""Alternative readings of a text: the n best in order, and random samples.

A reading is the complete set of spans of a text as they are shown; its probability is the sum over all
segmentations that are shown that way. Usually there is exactly one, unless the model's spans may begin or end
with whitespace; readings are then ordered by their most probable segmentation, and each is listed once.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.annotation import NamedSpans
from spacy_hocrf.annotation.best_readings import (
    BestReadings,
    RankedReadings,
    ScoredReading,
    ShownSpans,
)
from spacy_hocrf.annotation.whitespace import cases, spans_shown, ways_to_show
from spacy_hocrf.answers.part import Part
from spacy_hocrf.engine.alternatives import Ranked, best_segmentations, draws, ranked, sum_of_ways
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.engine.selection import joined_segments
from spacy_hocrf.types import Segments

__all__ = ["Alternatives"]


class Alternatives:
    """The readings of the Docs of a part.

    pool (BufferPool): working memory.
    """

    def __init__(self, part: Part, pool: BufferPool) -> None:
        self.potentials, self.automaton, self.scheme = part.potentials, part.automaton, part.scheme
        self.pool, self.blank, self._under = pool, part.blank, part.under
        self._cached: tuple[int, RankedReadings, frozenset[int]] | None = None  # of the last n

    def best(self, number: int, n: int, log_z: float) -> BestReadings:
        """Return the n most probable readings of a Doc. There are fewer if the Doc has fewer readings, or
        where the probability of the next one is a sum over too much whitespace. The readings of all Docs are
        computed at once.

        log_z (float): log of the sum over all segmentations of the Doc.
        """
        readings, one_by_one = self.best_of_all(n)
        if number in one_by_one:
            return self._one_by_one(number, n, log_z)
        return BestReadings(readings, number, log_z)

    def best_of_all(self, n: int) -> tuple[RankedReadings, frozenset[int]]:
        """Return the n most probable segmentations of all Docs, and the numbers of the Docs whose readings
        are different ones: spans may end with whitespace, or a segmentation breaks a rule that the part is
        decoded without.
        """
        if self._cached is None or self._cached[0] != n:
            with self.pool.lend(self.automaton) as buffers:
                best = best_segmentations(self.potentials, self.automaton, n, buffers=buffers)
            shown = best._replace(segments=self.scheme.spans(best.segments))
            readings = RankedReadings(shown, self.scheme.labels)
            docs = range(len(self.potentials.offsets) - 1)
            special = (i for i in docs if self.has_blank(i) or self._breaks_rules(readings, i))
            self._cached = n, readings, frozenset(special)
        return self._cached[1:]

    def _breaks_rules(self, readings: RankedReadings, number: int) -> bool:
        """Does one of the Doc's n best segmentations break a rule that the part is decoded without?"""
        if not self._under.incomplete:
            return False
        own_readings = BestReadings(readings, number, 0.0)
        return any(self._under.missing(reading.spans) for reading in own_readings)

    def has_blank(self, number: int) -> bool:
        """May spans of this Doc begin or end with whitespace?"""
        blank = self._blank(number)
        return blank is not None and bool(blank.any())

    def of(self, number: int, log_z: float, text: str) -> Iterator[ScoredReading]:
        """Iterate lazily over the readings of a Doc.

        log_z (float): log of the sum over all of its segmentations. text (str): its beginning, for messages.
        RAISES (ValueError): H201 if the probability is a sum over too much whitespace.
        """
        labels = self.scheme.labels
        for score, shown in self._readings(number, text):
            yield ScoredReading(shown, 0, labels, min(0.0, score - log_z))

    def _one_by_one(self, number: int, n: int, log_z: float) -> BestReadings:
        scores, spans = list[float](), list[Segments]()
        with suppress(ValueError):  # H201
            for score, shown in islice(self._readings(number, ""), n):
                scores.append(score)
                spans.append(shown)
        best = Ranked(np.array([0, len(scores)]), np.array(scores), joined_segments(spans))
        return BestReadings(RankedReadings(best, self.scheme.labels), 0, log_z)

    def _readings(self, number: int, text: str) -> Iterator[tuple[float, Segments]]:
        """Yield the readings of a Doc: log of the sum over the segmentations shown as this reading, and its
        spans.

        When a reading breaks a rule, enumeration restarts with an automaton that includes that rule.
        """
        blank, seen, rules = self._blank(number), set[ShownSpans](), set[int]()
        ranked_segments = self._ranked(number, self.automaton)
        while (scored := next(ranked_segments, None)) is not None:
            score, segments = scored
            shown = self._shown(segments, blank)
            (spans,) = map(tuple, self.scheme.named(shown))
            if spans in seen:
                continue
            broken = self._under.missing(spans) - rules
            if broken:
                rules |= broken
                ranked_segments = self._ranked(number, self._under.with_others(rules).automaton)
                continue
            seen.add(spans)
            yield score if blank is None else self.log_z(number, spans, text), shown

    def _ranked(self, number: int, automaton: Automaton) -> Iterator[tuple[float, Segments]]:
        with self.pool.lend(automaton) as buffers:
            return ranked(self.potentials.only(number), automaton, buffers=buffers)

    def drawn(self, number: int, random: np.random.Generator) -> Iterator[ShownSpans]:
        """Yield random readings of a Doc, endlessly."""
        with self.pool.lend(self.automaton) as buffers:
            potentials = self.potentials.only(number)
            drawn_segments = draws(potentials, self.automaton, random, buffers=buffers)
        blank = self._blank(number)
        for segments in drawn_segments:
            (spans,) = map(tuple, self.scheme.named(self._shown(segments, blank)))
            if not self._under.missing(spans):
                yield spans

    def log_z(self, number: int, spans: NamedSpans, text: str) -> float:
        """Return the log of the sum over the segmentations of a Doc that are shown as exactly these spans;
        -inf if there are none.

        spans (NamedSpans): sorted; without whitespace at either end. text (str): the Doc's beginning.
        RAISES (ValueError): H201
        """
        potentials = self.potentials.only(number)
        cuts, ways = ways_to_show(self.scheme, potentials.allowed, self._blank(number), spans)
        log_zs = [-np.inf]
        with self.pool.lend(self.automaton) as buffers:
            if len(ways) > 1 and self.scheme.one_token.all():
                return sum_of_ways(potentials, self.automaton, cuts, ways, buffers=buffers)
            for bits in cases(ways, text):
                case = replace(potentials, allowed=bits)
                log_zs += log_partition(case, self.automaton, buffers=buffers).tolist()
        return float(np.logaddexp.reduce(log_zs))

    def log_sums(self, spans: Sequence[NamedSpans]) -> NDArray[np.float64]:
        """Compute `log_z` of every Doc for its own spans, float64 [D], in one pass, except for Docs that can
        show them in several ways. Where there are too many ways, the sum covers only one, so it is too small.
        """
        bits, several = self.potentials.allowed.copy(), list[int]()
        bounds = pairwise(self.potentials.offsets.tolist())
        for i, (rows, (first, last)) in enumerate(zip(spans, bounds)):
            _, ways = ways_to_show(self.scheme, bits[first:last], self._blank(i), rows)
            bits[first:last] = np.concatenate([way[0] for way in ways]) if all(ways) else 0
            several += [i] if max(map(len, ways)) > 1 else []
        with self.pool.lend(self.automaton) as buffers:
            own = replace(self.potentials, allowed=bits)
            log_zs: NDArray[np.float64] = log_partition(own, self.automaton, buffers=buffers)
        for i in several:
            with suppress(ValueError):
                log_zs[i] = self.log_z(i, spans[i], "")
        return log_zs

    def _blank(self, number: int) -> NDArray[np.bool_] | None:
        if self.blank is None:
            return None
        return self.blank[slice(*self.potentials.offsets[number : number + 2].tolist())]

    def _shown(self, segments: Segments, blank: NDArray[np.bool_] | None) -> Segments:
        """Return the spans of a segmentation as they are shown, trimmed of whitespace."""
        spans = self.scheme.spans(segments)
        return spans if blank is None else spans_shown(spans, blank, np.array([0, len(blank)]))
