"""What was decoded from parts of a batch, put together again."""

from collections.abc import Sequence
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.pipeline.decoders import Answer, Candidates
from spacy_hocrf.types import Segments

__all__ = ["Found", "gathered", "of_sequences", "with_others"]

T = TypeVar("T")
"""What is read off the sequences of a part: an `Answer`, or an array."""

Found = TypeVar("Found", Answer, Candidates)


def gathered(
    sequences: Sequence[NDArray[np.int64] | None], found: Sequence[T], n_sequences: int
) -> T:
    """What was read off parts, in the order of the batch: of `Answer`s one, of arrays [n] one.

    sequences (Sequence[Optional[int64 [n]]]): of each part, their numbers in the batch, ascending.
    """
    owners = [own for own in sequences if own is not None]
    assert len(owners) == len(found)
    if isinstance(found[0], Answer):
        return cast("T", _joined(owners, cast("Sequence[Answer]", found)))
    values = np.zeros(n_sequences)
    for own, value in zip(owners, found):
        values[own] = cast("NDArray[np.float64]", value)
    return cast("T", values)


def with_others(answer: Answer, other: Answer, sequences: NDArray[np.int64]) -> Answer:
    """An answer with another one for some of its sequences.

    sequences (int64 [n]): their numbers, ascending.
    """
    kept = np.ones(len(answer.possible), dtype=bool)
    kept[sequences] = False
    rest = np.flatnonzero(kept)
    return _joined([rest, sequences], [of_sequences(answer, rest), other])


def _joined(sequences: Sequence[NDArray[np.int64]], answers: Sequence[Answer]) -> Answer:
    """Answers for sequences of a batch, together for all of it.

    sequences (Sequence[int64 [n]]): those of each answer.
    """
    numbers = np.concatenate(sequences)
    sizes, possible = np.zeros(len(numbers), dtype=np.int64), np.zeros(len(numbers), dtype=bool)
    owners = list[NDArray[np.int64]]()
    for own, answer in zip(sequences, answers):
        counts = np.diff(answer.spans.offsets)
        sizes[own], possible[own] = counts, answer.possible
        owners.append(np.repeat(own, counts))
    order = np.argsort(np.concatenate(owners), kind="stable")
    columns = [
        np.concatenate(each)[order] for each in zip(*(answer.spans[1:] for answer in answers))
    ]
    known = [answer.scores for answer in answers if answer.scores is not None]
    scores = np.concatenate(known)[order] if len(known) == len(answers) else None
    return Answer(Segments(offsets_of(sizes), *columns), scores, possible)


def of_sequences(found: Found, sequences: NDArray[np.int64]) -> Found:
    """Spans of some sequences. sequences (int64 [n]): their numbers, ascending."""
    spans, scores, log_z = found.spans, found.scores, found.log_partition
    sizes = np.diff(spans.offsets)[sequences]
    chosen = ranges(spans.offsets[sequences], sizes)
    return found._replace(
        spans=Segments(offsets_of(sizes), *(column[chosen] for column in spans[1:])),
        scores=None if scores is None else scores[chosen],
        possible=found.possible[sequences],
        log_partition=None if log_z is None else log_z[sequences],
    )
