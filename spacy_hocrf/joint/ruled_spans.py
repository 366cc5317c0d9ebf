"""The spans with the largest expected F-score where breaking a rule about all spans of a Doc has a price.

With prices w, and b_r(y) = 1 where a reading y breaks rule r, else 0,

    P(y | Doc) = exp((score(y) - Σ_r w_r b_r(y)) / T) / Z,

and a span has the probability of all readings that have it. The sums are over the best readings by
their scores alone. T is the temperature that was learnt with the prices: joint/likelihood.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.alternatives import best_segmentations
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, log_partition
from spacy_hocrf.engine.probable import Starts
from spacy_hocrf.joint.remembered import SpanRules
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.pipeline.blanks import without_blanks
from spacy_hocrf.pipeline.decoders import Blank, Candidates, ExpectedF
from spacy_hocrf.types import Potentials, Segments

__all__ = ["READINGS", "RuledReadings", "RuledSpans", "ruled_readings"]

READINGS = 200
"""Best readings of a text that are summed over."""


class RuledReadings(NamedTuple):
    """m readings of a text by falling score."""

    scores: NDArray[np.float64]  # [m] nats
    segments: Segments
    broken: NDArray[np.bool_]  # [m, n] rules that each breaks


def ruled_readings(
    potentials: Potentials,
    automaton: Automaton,
    rules: SpanRules,
    readings: int,
    buffers: Buffers | None = None,
) -> Iterator[RuledReadings]:
    """The best readings of each text without rules, and the rules that they break.

    readings (int): so many of each text, or all of them.
    """
    found = best_segmentations(potentials, automaton, readings, buffers=buffers)
    for first, last in pairwise(found.offsets.tolist()):
        bounds = found.segments.offsets[first : last + 1]
        inside = slice(int(bounds[0]), int(bounds[-1]))
        columns = (column[inside] for column in found.segments[1:])
        segments = Segments(bounds - bounds[0], *columns)
        yield RuledReadings(found.scores[first:last], segments, rules.broken(segments))


@dataclass(frozen=True, kw_only=True)
class RuledSpans(ExpectedF):
    """An `ExpectedF` with n rules.

    prices (float64 [n]): what breaking each costs, nats, finite.
    temperature (float): that scores and prices are divided by.
    """

    rules: SpanRules = field(compare=False)
    prices: NDArray[np.float64] = field(compare=False)
    temperature: float = 1.0

    @classmethod
    def around(
        cls, decoder: ExpectedF, rules: SpanRules, prices: NDArray[np.float64], temperature: float
    ) -> RuledSpans:
        """A decoder with rules; both share their memory."""
        found = cls(
            beta=decoder.beta,
            cost=decoder.cost,
            rules=rules,
            prices=prices,
            temperature=temperature,
        )
        object.__setattr__(found, "_pool", decoder.pool)
        return found

    def candidates(
        self,
        potentials: Potentials,
        automaton: Automaton,
        scheme: LabelScheme,
        least: float,
        blank: Blank = None,
        starts: Starts | None = None,
    ) -> Candidates:
        """All spans of at least this probability under the rules, as they are shown.

        Arguments: as `ExpectedF.candidates`; there are no starts. RETURNS (Candidates): log Z is that without
        rules.
        """
        assert starts is None
        blanks = None if blank is None else np.split(blank, potentials.offsets[1:-1])
        rows, chances, counts = list[NDArray[np.int64]](), list[NDArray[np.float64]](), list[int]()
        with self.pool.lend(automaton) as buffers:
            total = log_partition(potentials, automaton, buffers=buffers)
            known = potentials, automaton, self.rules, READINGS
            for i, text in enumerate(ruled_readings(*known, buffers)):
                spans = scheme.spans(text.segments)
                own, chance = _probable(
                    spans, self._shares(text), None if blanks is None else blanks[i]
                )
                likely = chance >= least
                rows.append(own[:, likely])
                chances.append(chance[likely])
                counts.append(int(likely.sum()))
        start, end, label = np.concatenate(rows, axis=1).astype(np.int32)
        spans = Segments(offsets_of(counts), start, end, label)
        return Candidates(spans, np.concatenate(chances), total > -np.inf, total)

    def _shares(self, text: RuledReadings) -> NDArray[np.float64]:
        """Probabilities of the readings of a text under the rules, float64 [m]."""
        values = (text.scores - text.broken @ self.prices) / self.temperature
        shares = np.exp(values - values.max(initial=-np.inf))
        return np.asarray(shares / shares.sum())


def _probable(
    spans: Segments, shares: NDArray[np.float64], blank: Blank
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What is shown of the spans of m readings of a text, each once, and its probability.

    shares (float64 [m]): of the readings. blank (Optional[bool [T]]): white space at their ends is not shown.
    RETURNS (tuple[int64 [3, n], float64 [n]]): start, end and label, in this order, and probabilities.
    """
    start, end = spans.start.astype(np.int64), spans.end.astype(np.int64)
    if blank is not None:
        start, end = without_blanks(blank, start, end)
    rows = np.stack([start, end, spans.label])
    owner = np.repeat(shares, np.diff(spans.offsets))
    some = start < end
    found, number = np.unique(rows[:, some], axis=1, return_inverse=True)
    chances = np.bincount(number.reshape(-1), owner[some], found.shape[1])
    return found, np.minimum(chances, 1.0)
