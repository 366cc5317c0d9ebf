"""What was decoded from parts of a batch, put together again."""

from collections.abc import Sequence
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.pipeline.decoders import Answer, Candidates
from spacy_hocrf.types import Segments

__all__ = ["gathered", "of_sequences", "with_others"]

T = TypeVar("T")
"""What is read off the sequences of a part: an `Answer`, or an array."""


def gathered(
    sequences: Sequence[NDArray[np.int64] | None], found: Sequence[T], n_sequences: int
) -> T:
    """What was read off parts, in the order of the batch: of `Answer`s one, of arrays [n] one.

    sequences (Sequence[Optional[int64 [n]]]): of each part, their numbers in the batch, ascending.
    """
    if isinstance(found[0], Answer):
        answers = cast("Sequence[Answer]", found)
        offsets, none = np.zeros(n_sequences + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
        scores = None if answers[0].scores is None else np.zeros(0)
        together = Answer(
            Segments(offsets, none, none, none), scores, np.ones(n_sequences, dtype=bool)
        )
        for own, answer in zip(sequences, answers):
            assert own is not None
            together = with_others(together, answer, own)
        return cast("T", together)
    values = np.zeros(n_sequences)
    for own, value in zip(sequences, found):
        assert own is not None
        values[own] = cast("NDArray[np.float64]", value)
    return cast("T", values)


def with_others(answer: Answer, other: Answer, sequences: NDArray[np.int64]) -> Answer:
    """An answer with another one for some of its sequences.

    sequences (int64 [n]): their numbers, ascending.
    """
    sizes = [np.diff(answer.spans.offsets), np.diff(other.spans.offsets)]
    number = [np.repeat(np.arange(len(sizes[0])), sizes[0]), np.repeat(sequences, sizes[1])]
    kept = ~np.isin(number[0], sequences)
    order = np.argsort(np.concatenate([number[0][kept], number[1]]), kind="stable")
    sizes[0][sequences] = sizes[1]
    columns = [
        np.concatenate([one[kept], two])[order]
        for one, two in zip(answer.spans[1:], other.spans[1:])
    ]
    scores = None
    if answer.scores is not None and other.scores is not None:
        scores = np.concatenate([answer.scores[kept], other.scores])[order]
    possible = answer.possible.copy()
    possible[sequences] = other.possible
    return Answer(Segments(offsets_of(sizes[0]), *columns), scores, possible)


def of_sequences(found: Candidates, sequences: NDArray[np.int64]) -> Candidates:
    """Spans of some sequences. sequences (int64 [n]): their numbers, ascending."""
    spans, scores, possible, log_z = found
    sizes = np.diff(spans.offsets)[sequences]
    chosen = ranges(spans.offsets[sequences], sizes)
    spans = Segments(offsets_of(sizes), *(column[chosen] for column in spans[1:]))
    return Candidates(spans, scores[chosen], possible[sequences], log_z[sequences])
