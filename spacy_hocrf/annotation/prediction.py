"""What a component predicts for a Doc, and its spans as tokens and characters."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span

if TYPE_CHECKING:
    from spacy_hocrf.annotation.best_readings import BestReadings
    from spacy_hocrf.features.tokens import TokenBatch
    from spacy_hocrf.types import Segments

__all__ = [
    "BatchPrediction",
    "DecodedSpans",
    "PredictedDocs",
    "Prediction",
    "Predictions",
    "Trace",
    "decoded_spans",
    "joined",
    "label_hashes",
]

Column = NDArray[np.uint64]
Characters = Sequence[Column]

Trace = tuple[tuple[float, float], ...]
"""Of the Docs that were decoded together: the lowest bound and the highest score after each iteration; none
where nothing connects the Doc with others.
"""

NO_PLACES: Column = np.zeros(0, dtype=np.uint64)


class Prediction(NamedTuple):
    """Decoded spans of one Doc, without those that were there before; S of them."""

    start: NDArray[np.int32]  # [S] first token
    end: NDArray[np.int32]  # [S] one past the last token
    label: NDArray[np.int32]  # [S] place in `names`
    names: tuple[str, ...]  # the labels
    scores: NDArray[np.float64] | None  # [S] probability of each, None if nobody asked
    # of the Docs decoded together with this one, nats; None where every Doc is decoded alone
    gap: float | None = None
    # are these proved to be decoded best? None where every Doc is decoded alone
    certificate: bool | None = None
    trace: Trace | None = None  # how these came, iteration by iteration
    alternatives: "BestReadings | None" = None  # if they are to be written
    whole: float | None = None  # P(these spans and no others), None if nobody asked

    @property
    def spans(self) -> tuple[tuple[int, int, str], ...]:
        """Start, end and label of each span."""
        labels = (self.names[y] for y in self.label.tolist())
        return tuple(zip(self.start.tolist(), self.end.tolist(), labels))


class BatchPrediction(NamedTuple):
    """Decoded spans of D Docs, one Doc after the other."""

    spans: "Segments"  # with places in `names` for labels
    names: tuple[str, ...]  # the labels
    scores: NDArray[np.float64] | None  # [n] probability of each, None if nobody asked
    # [D] P(the spans of the Doc and no others), None if nobody asked
    whole: NDArray[np.float64] | None = None


class Predictions(list[Prediction]):
    """The predictions of a batch of Docs.

    together (BatchPrediction): their spans.
    """

    __slots__ = ("together",)

    def __init__(self, each: Iterable[Prediction], together: BatchPrediction) -> None:
        super().__init__(each)
        self.together = together


class PredictedDocs(list[Prediction]):
    """The predictions of some Docs, batch after batch, and what was read of the Docs meanwhile."""

    __slots__ = ("batches", "unchanged")

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[TokenBatch, Predictions]] = []
        self.unchanged = True
        """Has nobody had the Docs since? Then nothing need be read again."""

    def add(self, batch: "TokenBatch", predictions: Predictions) -> None:
        """Add the predictions of the next batch."""
        self.batches.append((batch, predictions))
        self += predictions


class DecodedSpans:
    """The decoded spans of one Doc, S of them, among those of its batch.

    Spans and rows are made one after the other when they are asked for, and gone at once: with many at
    the same time the garbage collector takes longer than all the rest. It knows nothing of arrays.

    columns (Tuple): [n] each: int32 first token, one past the last, place of the label in `hashes`; uint64
        first character, one past the last.
    first, last (int): which of the n are the Doc's: the first, and one past the last.
    scores (Optional[float32 [n]]): probability of each; None if nobody asked.
    hashes (Sequence[int]): of the labels; one for all Docs of a batch.
    """

    __slots__ = ("columns", "first", "hashes", "last", "scores")

    def __init__(
        self,
        columns: tuple[NDArray[Any], ...],
        first: int,
        last: int,
        scores: NDArray[np.float32] | None,
        hashes: Sequence[int],
    ) -> None:
        self.columns, self.first, self.last = columns, first, last
        self.scores, self.hashes = None if scores is None else scores[first:last], hashes

    @property
    def rows(self) -> Iterator[tuple[int, int, int]]:
        """First token, one past the last, and hash of the label of each."""
        start, end, label = (column[self.first : self.last] for column in self.columns[:3])
        return zip(start.tolist(), end.tolist(), map(self.hashes.__getitem__, label.tolist()))

    def spans(self, doc: Doc) -> Iterator[Span]:
        """The spans, by position."""
        return (Span(doc, *row) for row in self.rows)


def joined(predictions: Sequence[Prediction]) -> BatchPrediction:
    """The spans of all predictions; they may have labels of their own. Only if all have probabilities has
    the whole some.
    """
    from spacy_hocrf.types import Segments

    if isinstance(predictions, Predictions):
        return predictions.together
    names: tuple[str, ...] = tuple(
        dict.fromkeys(name for each in predictions for name in each.names)
    )
    number = {name: y for y, name in enumerate(names)}
    none = np.zeros(0, dtype=np.int32)
    labels = (
        np.array([number[name] for name in each.names], dtype=np.int32)[each.label]
        for each in predictions
    )
    spans = Segments(
        np.array([0, *accumulate(len(each.label) for each in predictions)], dtype=np.int64),
        np.concatenate([none, *(each.start for each in predictions)]).astype(np.int32),
        np.concatenate([none, *(each.end for each in predictions)]).astype(np.int32),
        np.concatenate([none, *labels]),
    )
    scores = [each.scores for each in predictions if each.scores is not None]
    known = bool(scores) and len(scores) == len(predictions)
    return BatchPrediction(spans, names, np.concatenate(scores) if known else None)


def label_hashes(docs: Sequence[Doc], names: Sequence[str]) -> list[int]:
    """The hashes of labels, which are then in the Docs' StringStores; these may forget them later
    (`nlp.memory_zone`).
    """
    hashes: list[int] = []
    for store in {id(doc.vocab): doc.vocab.strings for doc in docs}.values():
        hashes = list(map(store.add, names))
    return hashes


def decoded_spans(
    found: BatchPrediction,
    hashes: Sequence[int],
    offsets: NDArray[np.int64],
    characters: Characters | None,
) -> Iterator[DecodedSpans]:
    """The decoded spans Doc by Doc.

    hashes (Sequence[int]): of the labels.
    offsets (int64 [D + 1]): first token of each Doc.
    characters (Optional[Sequence[uint64 [N]]]): first character and length of each token, counted from
        its Doc's beginning; None if nobody asks for those of the spans.
    """
    spans = found.spans
    places = (
        (NO_PLACES, NO_PLACES) if characters is None else _characters(spans, offsets, *characters)
    )
    scores = None if found.scores is None else found.scores.astype(np.float32)
    columns = spans.start, spans.end, spans.label, *places
    for first, last in pairwise(spans.offsets.tolist()):
        yield DecodedSpans(columns, first, last, scores, hashes)


def _characters(
    spans: "Segments", offsets: NDArray[np.int64], first: Column, length: Column
) -> tuple[Column, Column]:
    """First character and one past the last of all spans, uint64 [n] each."""
    start, last = spans.start, spans.end - 1
    if len(offsets) > 2:
        base = np.repeat(offsets[:-1], np.diff(spans.offsets))
        start, last = base + start, base + last
    return first.take(start), first.take(last) + length.take(last)
