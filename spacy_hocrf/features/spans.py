"""`spacy-hocrf.Spans.v1`: how a segment relates to the spans that an earlier component has predicted, and to
their scores.

Overlap requires no enumeration of segments: a segment [u, v) shares tokens with the span [s, e) if it
begins in it, s ≤ u < e, or if the span begins inside it, u < s < v. Both are observations of a
token, at the start of a segment and after it, and exclude each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore

from spacy_hocrf.arrays import ranges
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.config import check_order
from spacy_hocrf.features.groups import LaidSpans, entities
from spacy_hocrf.features.templates import Events, Observing, spell, template_name
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.types import END, INNER, SPAN, START, TOKEN

__all__ = ["SpanTemplate", "make_spans"]

PARTS_OF = {
    "MATCH": (SPAN,),
    "START": (START,),
    "END": (END,),
    "OVERLAP": (START, INNER),
    "TOKENS": (TOKEN,),
}
"""Parts of a segment at which each observation of `make_spans` is made."""

PLACES = ("inside", "first", "last", "alone")
"""Place of a token in a span; the index is 1 if it is the first, plus 2 if it is the last."""

SCORES = ("bins", "value")


@dataclass(frozen=True)
class SpanTemplate(Observing):
    """One kind of observation of spans that an earlier component has predicted: their labels, with the
    token's place for TOKENS, and the bin of the score.
    """

    source: str  # "ents", or "spans.KEY"
    what: str  # one of PARTS_OF
    part: int
    order: int = 0
    bins: tuple[float, ...] = ()  # lowest score of each bin but the first; empty ignores scores
    weighted: bool = False  # is the score the observation's weight?

    @property
    def key(self) -> str | None:
        """The span group that is read, None for doc.ents."""
        return None if self.source == "ents" else self.source.partition(".")[2]

    @property
    def name(self) -> str:
        how = "|bins" if self.bins else "|score" if self.weighted else ""
        where = "ENTS" if self.key is None else f"SPANS.{self.key}"
        return template_name(f"{where}:{self.what}{how}", self.part, self.order)

    @property
    def width(self) -> int:
        return 1 + (self.what == "TOKENS") + bool(self.bins)

    @property
    def attributes(self) -> tuple[str, ...]:
        return ("ENT_IOB", "ENT_TYPE") if self.key is None else ()

    def events(self, batch: TokenBatch) -> Events:
        spans = self._spans(batch)
        entry, token = _tokens(self.what, self.part, spans)
        end = spans.end[entry] if self.part == SPAN else token
        columns = [token.astype(np.uint64), end.astype(np.uint64), spans.label[entry]]
        if self.what == "TOKENS":
            place = (token == spans.start[entry]) + 2 * (token == spans.end[entry] - 1)
            columns.append(place.astype(np.uint64))
        scores = self._scores(batch)[entry]
        if self.bins:
            columns.append(np.searchsorted(self.bins, scores, side="right").astype(np.uint64))
        # spans of one label may overlap
        rows, same = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        highest = np.full(len(rows), -np.inf)
        np.maximum.at(highest, same.ravel(), scores)
        return Events(
            rows[:, 0].astype(np.int64),
            rows[:, 2:],
            highest.astype(np.float32) if self.weighted else None,
            rows[:, 1].astype(np.int64) if self.part == SPAN else None,
        )

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        """The label, the place, and the lowest score of the bin."""
        remaining = list(values[1:])
        place = [PLACES[remaining.pop(0)]] if self.what == "TOKENS" else []
        bins = [f"≥{self.bins[b - 1]:g}" if b else f"<{self.bins[0]:g}" for b in remaining]
        return "|".join([spell(values[0], strings), *place, *bins])

    def _spans(self, batch: TokenBatch) -> LaidSpans:
        if self.key is not None:
            return batch.laid_spans(self.key)
        return entities(batch.column("ENT_IOB"), batch.column("ENT_TYPE"))

    def _scores(self, batch: TokenBatch) -> NDArray[np.float64]:
        """Score of each span, float64 [S]; zeros if the template does not use scores."""
        if self.key is not None and (self.bins or self.weighted):
            return batch.laid_scores(self.key)
        return np.zeros(len(self._spans(batch).label))


def make_spans(
    source: str,
    what: Sequence[str] = ("MATCH", "START", "END", "TOKENS"),
    scores: Sequence[str] = (),
    bins: Sequence[float] = (0.5, 0.9, 0.99),
    order: int = 0,
) -> list[SpanTemplate]:
    """`spacy-hocrf.Spans.v1`: observes the spans that an earlier component has predicted, with its labels.

    source (str): "ents" for doc.ents, or "spans.KEY" for doc.spans[KEY]; a Doc without that group
        has no such spans.
    what (Sequence[str]): any of "MATCH" for a segment that is one of the spans, "START" and "END"
        for one that starts, or ends, where one of them does, "OVERLAP" for one that shares tokens with
        one of them, and "TOKENS" for a token's place in one.
    scores (Sequence[str]): additional use of scores, from the group's `attrs["scores"]`: "bins"
        for a weight per bin, "value" for one weight that is multiplied by the score.
    bins (Sequence[float]): lowest score of each bin but the first, ascending.
    order (int): earlier segments whose labels the features see.
    RETURNS (list[SpanTemplate]): one template per entry of `what`, two for "OVERLAP", and as many
        again for each entry of `scores`.
    RAISES (ValueError): H030, H032, H037, H180 or H183; at training or prediction H181 for scores
        that are missing.
    """
    if source != "ents" and not (source.startswith("spans.") and len(source) > len("spans.")):
        raise ValueError(Errors.H180.format(found=source))
    if source == "ents" and scores:
        raise ValueError(Errors.H180.format(found=source))
    if not what:
        raise ValueError(Errors.H030.format(name="what"))
    for names, valid in ((what, PARTS_OF), (scores, SCORES)):
        for entry in names:
            if entry not in valid:
                raise ValueError(Errors.H037.format(found=entry, known=", ".join(valid)))
    check_order(order)
    lowest = tuple(map(float, bins))
    ascend = all(low < high for low, high in pairwise(lowest))
    if not lowest or not ascend or not np.isfinite(lowest).all():
        raise ValueError(Errors.H183.format(found=list(bins)))
    return [
        SpanTemplate(source, entry, part, order, *read)
        for entry in what
        for part in PARTS_OF[entry]
        for read in _readings(scores, lowest)
    ]


def _readings(
    scores: Sequence[str], bins: tuple[float, ...]
) -> Iterator[tuple[tuple[float, ...], bool]]:
    """`bins` and `weighted` of each template: without scores, and for each entry of `scores`."""
    yield (), False
    if "bins" in scores:
        yield bins, False
    if "value" in scores:
        yield (), True


def _tokens(what: str, part: int, spans: LaidSpans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return at which tokens spans are observed.

    RETURNS (tuple[int64 [n], int64 [n]]): the number of a span, and a token.
    """
    nonempty = np.flatnonzero(spans.start < spans.end)  # empty spans are nowhere
    if what == "TOKENS" or (what == "OVERLAP" and part == START):
        lengths = (spans.end - spans.start)[nonempty]
        return np.repeat(nonempty, lengths), ranges(spans.start[nonempty], lengths)
    return nonempty, spans.end[nonempty] - 1 if what == "END" else spans.start[nonempty]
