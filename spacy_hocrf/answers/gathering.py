"""Joining answers that were decoded for parts of a batch."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.answers.decoders import Answer, Candidates
from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.types import Segments

__all__ = ["Found", "joined", "of_sequences", "with_others"]

Found = TypeVar("Found", Answer, Candidates)


def with_others(found: Found, *others: tuple[NDArray[np.int64], Found]) -> Found:
    """Replace the results of some sequences of a batch.

    others (tuple[int64 [n], Found]): ascending numbers of sequences, and their new results.
    """
    numbers, parts = [np.arange(len(found.possible))], [found]
    for own, each in others:
        numbers.append(own)
        parts.append(each)
    return joined(numbers, parts)


def joined(sequences: Sequence[NDArray[np.int64]], found: Sequence[Found]) -> Found:
    """Join results for parts of a batch into results for the whole batch.

    sequences (Sequence[int64 [n]]): ascending numbers of the sequences of each part; if a sequence is in
        several parts, the last one counts.
    """
    if len(found) == 1:
        return found[0]
    numbers = np.concatenate(sequences)
    place = np.zeros(int(numbers.max()) + 1, dtype=np.int64)
    place[numbers] = np.arange(len(numbers))
    sizes = np.concatenate([np.diff(each.spans.offsets) for each in found])
    chosen = ranges((np.cumsum(sizes) - sizes)[place], sizes[place])
    columns = [np.concatenate(some)[chosen] for some in zip(*(each.spans[1:] for each in found))]
    known: dict[str, Any] = {
        "scores": _in_order([each.scores for each in found], chosen),
        "log_partition": _in_order([each.log_partition for each in found], place),
    }
    if isinstance(found[0], Answer):
        known["whole"] = _in_order([_whole(each) for each in found], place)
    spans, possible = Segments(offsets_of(sizes[place]), *columns), [e.possible for e in found]
    return found[0]._replace(spans=spans, possible=np.concatenate(possible)[place], **known)


def _in_order(
    values: Sequence[NDArray[np.float64] | None], order: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Concatenate the values of several parts and reorder them; None if they are missing for one part."""
    known = [each for each in values if each is not None]
    return np.concatenate(known)[order] if len(known) == len(values) else None


def of_sequences(found: Found, sequences: NDArray[np.int64]) -> Found:
    """Return the results of some sequences. sequences (int64 [n]): their numbers, ascending."""
    spans, scores, log_z, whole = found.spans, found.scores, found.log_partition, _whole(found)
    sizes = np.diff(spans.offsets)[sequences]
    chosen = ranges(spans.offsets[sequences], sizes)
    known = {} if whole is None else {"whole": whole[sequences]}
    return found._replace(
        spans=Segments(offsets_of(sizes), *(column[chosen] for column in spans[1:])),
        scores=None if scores is None else scores[chosen],
        possible=found.possible[sequences],
        log_partition=None if log_z is None else log_z[sequences],
        **known,
    )


def _whole(found: Answer | Candidates) -> NDArray[np.float64] | None:
    """Return P(exactly these spans) of each sequence, if this is an answer that has it."""
    return found.whole if isinstance(found, Answer) else None
