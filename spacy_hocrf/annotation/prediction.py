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
    "batch_of",
    "decoded_spans",
    "label_hashes",
]

Column = NDArray[np.uint64]
Characters = Sequence[Column]

Trace = tuple[tuple[float, float], ...]
"""Lowest bound and highest score after each iteration of decoding Docs jointly; empty if the Doc was not
connected with others.
"""

NO_PLACES: Column = np.zeros(0, dtype=np.uint64)


class Prediction(NamedTuple):
    """S decoded spans of one Doc, without entities that were set before."""

    start: NDArray[np.int32]  # [S] first token
    end: NDArray[np.int32]  # [S] one past the last token
    label: NDArray[np.int32]  # [S] place in `names`
    names: tuple[str, ...]  # the labels
    scores: NDArray[np.float64] | None  # [S] probability of each, None if not computed
    # of the Docs decoded jointly with this one, in nats; None where every Doc is decoded alone
    gap: float | None = None
    # are these proved to be the best? None where every Doc is decoded alone
    certificate: bool | None = None
    trace: Trace | None = None  # bounds and scores of the iterations that found them
    alternatives: "BestReadings | None" = None  # if they are to be written
    text_probability: float | None = None  # P(exactly these spans), None if not computed

    @property
    def spans(self) -> tuple[tuple[int, int, str], ...]:
        """Start, end and label of each span."""
        labels = (self.names[y] for y in self.label.tolist())
        return tuple(zip(self.start.tolist(), self.end.tolist(), labels))


class BatchPrediction(NamedTuple):
    """Decoded spans of D Docs, one Doc after the other."""

    spans: "Segments"  # with places in `names` for labels
    names: tuple[str, ...]  # the labels
    scores: NDArray[np.float64] | None  # [n] probability of each, None if not computed
    # [D] P(exactly the spans of the Doc), None if not computed
    text_probabilities: NDArray[np.float64] | None = None


class Predictions(list[Prediction]):
    """The predictions of a batch of Docs.

    batch (BatchPrediction): the spans of all of them.
    """

    __slots__ = ("batch",)

    def __init__(self, predictions: Iterable[Prediction], batch: BatchPrediction) -> None:
        super().__init__(predictions)
        self.batch = batch


class PredictedDocs(list[Prediction]):
    """The predictions of a stream of Docs, with the batches as they were read."""

    __slots__ = ("batches", "unchanged")

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[TokenBatch, Predictions]] = []
        self.unchanged = True
        """Are the Docs unchanged since they were read? Then they need not be read again."""

    def add(self, batch: "TokenBatch", predictions: Predictions) -> None:
        """Add the predictions of the next batch."""
        self.batches.append((batch, predictions))
        self += predictions


class DecodedSpans:
    """The S decoded spans of one Doc, as a slice of those of its batch.

    Spans and rows are generated when asked for and not kept: with many of them alive, garbage collection
    takes longer than everything else, whereas it does not track arrays.

    columns (Tuple): [n] each: int32 first token, one past the last, place of the label in `hashes`; uint64
        first character, one past the last.
    first, last (int): the Doc's rows: the first, and one past the last.
    scores (Optional[float32 [n]]): probability of each; None if not computed.
    hashes (Sequence[int]): hashes of the labels, shared by all Docs of a batch.
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
        """First token, one past the last, and label hash of each span."""
        start, end, label = (column[self.first : self.last] for column in self.columns[:3])
        return zip(start.tolist(), end.tolist(), map(self.hashes.__getitem__, label.tolist()))

    def spans(self, doc: Doc) -> Iterator[Span]:
        """Yield the spans, by position."""
        return (Span(doc, *row) for row in self.rows)


def batch_of(predictions: Sequence[Prediction]) -> BatchPrediction:
    """Join predictions, whose labels may differ, into one batch. It has probabilities only if all of the
    predictions have them.
    """
    from spacy_hocrf.types import Segments

    if isinstance(predictions, Predictions):
        return predictions.batch
    names: tuple[str, ...] = tuple(
        dict.fromkeys(name for prediction in predictions for name in prediction.names)
    )
    number = {name: y for y, name in enumerate(names)}
    empty = np.zeros(0, dtype=np.int32)
    labels = (
        np.array([number[name] for name in prediction.names], dtype=np.int32)[prediction.label]
        for prediction in predictions
    )
    spans = Segments(
        np.array([0, *accumulate(len(each.label) for each in predictions)], dtype=np.int64),
        np.concatenate([empty, *(each.start for each in predictions)]).astype(np.int32),
        np.concatenate([empty, *(each.end for each in predictions)]).astype(np.int32),
        np.concatenate([empty, *labels]),
    )
    scores = [each.scores for each in predictions if each.scores is not None]
    complete = bool(scores) and len(scores) == len(predictions)
    return BatchPrediction(spans, names, np.concatenate(scores) if complete else None)


def label_hashes(docs: Sequence[Doc], names: Sequence[str]) -> list[int]:
    """Return the hashes of labels, after adding them to the Docs' StringStores, which may drop them later
    (`nlp.memory_zone`).
    """
    hashes: list[int] = []
    for store in {id(doc.vocab): doc.vocab.strings for doc in docs}.values():
        hashes = list(map(store.add, names))
    return hashes


def decoded_spans(
    prediction: BatchPrediction,
    hashes: Sequence[int],
    offsets: NDArray[np.int64],
    characters: Characters | None,
) -> Iterator[DecodedSpans]:
    """Yield the decoded spans of each Doc.

    hashes (Sequence[int]): hashes of the labels.
    offsets (int64 [D + 1]): first token of each Doc.
    characters (Optional[Sequence[uint64 [N]]]): first character (in its Doc) and length of each token; None
        if the spans' characters are not needed.
    """
    spans = prediction.spans
    character_columns = (
        (NO_PLACES, NO_PLACES) if characters is None else _characters(spans, offsets, *characters)
    )
    scores = None if prediction.scores is None else prediction.scores.astype(np.float32)
    columns = spans.start, spans.end, spans.label, *character_columns
    for first, last in pairwise(spans.offsets.tolist()):
        yield DecodedSpans(columns, first, last, scores, hashes)


def _characters(
    spans: "Segments", offsets: NDArray[np.int64], first: Column, length: Column
) -> tuple[Column, Column]:
    """First character and one past the last of all spans, uint64 [n] each."""
    start, last = spans.start, spans.end - 1
    if len(offsets) > 2:
        first_token = np.repeat(offsets[:-1], np.diff(spans.offsets))
        start, last = first_token + start, first_token + last
    return first.take(start), first.take(last) + length.take(last)
