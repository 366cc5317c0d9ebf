"""What a component predicts for a Doc, and its spans as tokens and characters."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore
from spacy.tokens import Doc, Span

if TYPE_CHECKING:
    from spacy_hocrf.pipeline.alternatives import BestReadings
    from spacy_hocrf.types import Segments

__all__ = ["BatchPrediction", "DecodedSpans", "Prediction", "Trace", "decoded_spans"]

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


class DecodedSpans:
    """The decoded spans of one Doc, S of them.

    Spans and rows are made one after the other when they are asked for, and gone at once: with many at
    the same time the garbage collector takes longer than all the rest. It knows nothing of arrays.

    columns (Tuple): [S] each: int32 first token, one past the last, place of the label in `hashes`; uint64
        first character, one past the last.
    scores (Optional[float32 [S]]): probability of each; None if nobody asked.
    hashes (Sequence[int]): of the labels; one for all Docs of a batch.
    """

    __slots__ = ("columns", "hashes", "scores")

    def __init__(
        self,
        columns: tuple[NDArray[Any], ...],
        scores: NDArray[np.float32] | None,
        hashes: Sequence[int],
    ) -> None:
        self.columns, self.scores, self.hashes = columns, scores, hashes

    @property
    def rows(self) -> Iterator[tuple[int, int, int]]:
        """First token, one past the last, and hash of the label of each."""
        start, end, label, _, _ = self.columns
        return zip(start.tolist(), end.tolist(), map(self.hashes.__getitem__, label.tolist()))

    def spans(self, doc: Doc) -> Iterator[Span]:
        """The spans, by position."""
        return (Span(doc, *row) for row in self.rows)


def decoded_spans(
    docs: Sequence[Doc], predictions: Sequence[Prediction], characters: Characters | None
) -> Iterator[DecodedSpans]:
    """The decoded spans Doc by Doc; their labels are then in the Docs' StringStores, which may forget
    them later (`nlp.memory_zone`).

    characters (Optional[Sequence[uint64 [N]]]): first character and length of each token, counted from
        its Doc's beginning; None if nobody asks for those of the spans.
    """
    known: StringStore | None = None
    names: tuple[str, ...] = ()
    hashes = list[int]()
    first, last = NO_PLACES, NO_PLACES
    if characters is not None:
        first, last = _characters(docs, predictions, *characters)
    scores = _scores(predictions)
    bounds = pairwise(accumulate((len(each.label) for each in predictions), initial=0))
    for doc, found, (i, j) in zip(docs, predictions, bounds):
        if doc.vocab.strings is not known or found.names is not names:
            known, names = doc.vocab.strings, found.names
            hashes = [known.add(name) for name in names]
        columns = found.start, found.end, found.label, first[i:j], last[i:j]
        yield DecodedSpans(columns, None if scores is None else scores[i:j], hashes)


def _characters(
    docs: Sequence[Doc], predictions: Sequence[Prediction], first: Column, length: Column
) -> tuple[Column, Column]:
    """First character and one past the last of all spans, uint64 [S] each."""
    if len(docs) == 1:
        start, last = predictions[0].start, predictions[0].end - 1
    else:
        offsets = np.array([0, *accumulate(map(len, docs))], dtype=np.int64)
        base = np.repeat(offsets[:-1], [len(each.label) for each in predictions])
        start = base + np.concatenate([base[:0], *(each.start for each in predictions)])
        last = base + np.concatenate([base[:0], *(each.end for each in predictions)]) - 1
    return first.take(start), first.take(last) + length.take(last)


def _scores(predictions: Sequence[Prediction]) -> NDArray[np.float32] | None:
    """The probabilities of all spans, if all predictions have some."""
    if len(predictions) == 1:
        scores = predictions[0].scores
        return None if scores is None else scores.astype(np.float32)
    found = [each.scores for each in predictions if each.scores is not None]
    if not found or len(found) < len(predictions):
        return None
    return np.concatenate(found).astype(np.float32)
