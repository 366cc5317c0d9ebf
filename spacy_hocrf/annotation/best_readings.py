"""The best readings of a text: as the decoder finds them, and as users and span groups get them."""

from collections.abc import Sequence
from functools import cached_property
from math import exp
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.alternatives import Ranked
from spacy_hocrf.types import Segments

__all__ = [
    "BestReadings",
    "Columns",
    "RankedReadings",
    "ReadingSet",
    "ScoredReading",
    "ScoredSpan",
    "ShownSpans",
]

ShownSpans = tuple[tuple[int, int, str], ...]


class ScoredSpan(NamedTuple):
    """A span and its probability."""

    start: int  # first token
    end: int  # one past the last token
    label: str
    probability: float


class ScoredReading:
    """All spans of a text in one reading of it, and the probability of exactly these.

    The spans are made anew on each access: if those of many texts were kept, garbage collection would take
    longer than everything else.

    log_probability (float): log P(exactly these spans), in nats.
    """

    __slots__ = ("_labels", "_number", "_spans", "log_probability")

    def __init__(
        self, spans: Segments, number: int, labels: tuple[str, ...], log_probability: float
    ) -> None:
        self._spans, self._number, self._labels = spans, number, labels
        self.log_probability = log_probability

    @property
    def spans(self) -> ShownSpans:
        """First token, one past the last, and label of each span, by position."""
        first, last = self._spans.offsets[self._number : self._number + 2].tolist()
        start, end, label = (column[first:last].tolist() for column in self._spans[1:])
        return tuple(zip(start, end, map(self._labels.__getitem__, label)))

    @property
    def probability(self) -> float:
        """P(exactly these spans)."""
        return exp(self.log_probability)

    def __repr__(self) -> str:
        return f"ScoredReading(spans={self.spans}, log_probability={self.log_probability})"


class ReadingSet(list[ScoredReading]):
    """Readings of a text, the most probable one first, as `reading.set` gives them.

    complete (bool): are these all readings that were asked for? If not, no guarantee holds for the set.
    """

    complete = True


class RankedReadings:
    """The best readings of D Docs, and their spans as they are shown.

    ranked (Ranked): readings with their spans in the place of segments.
    """

    def __init__(self, ranked: Ranked, labels: tuple[str, ...]) -> None:
        self.offsets, self.scores, self.spans = ranked
        self.labels = labels

    @cached_property
    def bounds(self) -> list[int]:
        """First span of each reading, and one past the last."""
        bounds: list[int] = self.spans.offsets.tolist()
        return bounds


class Columns(NamedTuple):
    """n readings of a Doc and their spans, m in all, reading after reading."""

    bounds: list[int]  # [n + 1] spans of each reading
    start: NDArray[np.int32]  # [m] first token
    end: NDArray[np.int32]  # [m] one past the last
    label: NDArray[np.int32]  # [m] place in the labels
    log_probability: list[float]  # [n]


class BestReadings(Sequence[ScoredReading]):
    """The best readings of one Doc, the best one first.

    number (int): place of the Doc among those whose readings were found.
    log_z (float): log of the total score of its segmentations.

    labels (tuple[str, …]): the model's labels.
    """

    def __init__(self, readings: RankedReadings, number: int, log_z: float) -> None:
        self._readings, self._log_z, self.labels = readings, log_z, readings.labels
        self._places = range(*readings.offsets[number : number + 2].tolist())

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, rank: int) -> ScoredReading: ...

    @overload
    def __getitem__(self, rank: slice) -> list[ScoredReading]: ...

    def __getitem__(self, rank: int | slice) -> ScoredReading | list[ScoredReading]:
        if isinstance(rank, slice):
            return [self[i] for i in range(len(self))[rank]]
        place = self._places[rank]
        log_p = min(0.0, float(self._readings.scores[place]) - self._log_z)
        return ScoredReading(self._readings.spans, place, self.labels, log_p)

    def columns(self) -> Columns:
        """All readings as columns of spans, which for many readings is faster than one by one."""
        first, last = self._places.start, self._places.stop
        bounds = self._readings.bounds[first : last + 1]
        i, j = bounds[0], bounds[-1]
        _, start, end, label = self._readings.spans
        scores = self._readings.scores[first:last].tolist()
        logs = [min(0.0, score - self._log_z) for score in scores]
        return Columns([bound - i for bound in bounds], start[i:j], end[i:j], label[i:j], logs)
