"""What was decoded from parts of a batch, put together again."""

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
    """Results of a batch, replaced for some of its sequences.

    others (tuple[int64 [n], Found]): numbers of sequences, ascending, and what is found for them.
    """
    kept = np.ones(len(found.possible), dtype=bool)
    for sequences, _ in others:
        kept[sequences] = False
    rest = np.flatnonzero(kept)
    numbers = [rest, *(sequences for sequences, _ in others)]
    parts = [of_sequences(found, rest)]
    parts += [other for _, other in others]
    return joined(numbers, parts)


def joined(sequences: Sequence[NDArray[np.int64]], found: Sequence[Found]) -> Found:
    """What was found for parts of a batch, together for all of it.

    sequences (Sequence[int64 [n]]): numbers of the sequences of each part, ascending.
    """
    if len(found) == 1:
        return found[0]
    numbers = np.concatenate(sequences)
    sizes, possible = np.zeros(len(numbers), dtype=np.int64), np.zeros(len(numbers), dtype=bool)
    owners = list[NDArray[np.int64]]()
    for own, each in zip(sequences, found):
        counts = np.diff(each.spans.offsets)
        sizes[own], possible[own] = counts, each.possible
        owners.append(np.repeat(own, counts))
    order = np.argsort(np.concatenate(owners), kind="stable")
    columns = [np.concatenate(some)[order] for some in zip(*(each.spans[1:] for each in found))]
    known: dict[str, Any] = {
        "scores": _in_order([each.scores for each in found], order),
        "log_partition": _in_order([each.log_partition for each in found], np.argsort(numbers)),
    }
    if isinstance(found[0], Answer):
        known["whole"] = _in_order([_whole(each) for each in found], np.argsort(numbers))
    spans = Segments(offsets_of(sizes), *columns)
    return found[0]._replace(spans=spans, possible=possible, **known)


def _in_order(
    values: Sequence[NDArray[np.float64] | None], order: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Values of several parts in another order; None if those of a part are not known."""
    known = [each for each in values if each is not None]
    return np.concatenate(known)[order] if len(known) == len(values) else None


def of_sequences(found: Found, sequences: NDArray[np.int64]) -> Found:
    """Spans of some sequences. sequences (int64 [n]): their numbers, ascending."""
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
    """P(these spans and no others), where an answer has it."""
    return found.whole if isinstance(found, Answer) else None
