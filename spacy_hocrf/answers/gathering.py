"""Joining answers that were decoded for parts of a batch."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.answers.decoders import Answer, Candidates
from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.types import Segments

__all__ = ["Result", "gathered", "of_sequences", "with_others"]

Result = TypeVar("Result", Answer, Candidates)


def with_others(result: Result, *others: tuple[NDArray[np.int64], Result]) -> Result:
    """Replace the results of some sequences of a batch.

    others (tuple[int64 [n], Result]): ascending numbers of sequences, and their new results.
    """
    parts: list[tuple[NDArray[np.int64], Result]] = [(np.arange(len(result.possible)), result)]
    parts += others
    return gathered(parts)


def gathered(parts: Sequence[tuple[NDArray[np.int64], Result]]) -> Result:
    """Join results for parts of a batch into results for the whole batch.

    parts (Sequence[tuple[int64 [n], Result]]): ascending numbers of the sequences of each part, and their
        results; if a sequence is in several parts, the last one counts.
    """
    if len(parts) == 1:
        return parts[0][1]
    results = [result for _, result in parts]
    # where each sequence is among those of all parts, one part after the other
    numbers = np.concatenate([own for own, _ in parts])
    place = np.zeros(int(numbers.max()) + 1, dtype=np.int64)
    place[numbers] = np.arange(len(numbers))
    # where each of its spans is among the spans of all parts
    sizes = np.concatenate([np.diff(each.spans.offsets) for each in results])
    span_place = ranges((np.cumsum(sizes) - sizes)[place], sizes[place])
    columns = (np.concatenate(parts) for parts in zip(*(each.spans[1:] for each in results)))
    fields: dict[str, Any] = {
        "spans": Segments(offsets_of(sizes[place]), *(column[span_place] for column in columns)),
        "scores": _in_order([each.scores for each in results], span_place),
        "possible": np.concatenate([each.possible for each in results])[place],
        "log_partition": _in_order([each.log_partition for each in results], place),
    }
    if isinstance(results[0], Answer):
        chances = [_text_probabilities(each) for each in results]
        fields["text_probabilities"] = _in_order(chances, place)
    return results[0]._replace(**fields)


def _in_order(
    values: Sequence[NDArray[np.float64] | None], order: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Concatenate the values of several parts and reorder them; None if they are missing for one part."""
    present = [each for each in values if each is not None]
    return np.concatenate(present)[order] if len(present) == len(values) else None


def of_sequences(result: Result, sequences: NDArray[np.int64]) -> Result:
    """Return the results of some sequences. sequences (int64 [n]): their numbers, ascending."""
    spans, scores, log_z = result.spans, result.scores, result.log_partition
    sizes = np.diff(spans.offsets)[sequences]
    span_place = ranges(spans.offsets[sequences], sizes)
    chances = _text_probabilities(result)
    return result._replace(
        spans=Segments(offsets_of(sizes), *(column[span_place] for column in spans[1:])),
        scores=None if scores is None else scores[span_place],
        possible=result.possible[sequences],
        log_partition=None if log_z is None else log_z[sequences],
        **({} if chances is None else {"text_probabilities": chances[sequences]}),
    )


def _text_probabilities(result: Answer | Candidates) -> NDArray[np.float64] | None:
    """Return P(exactly these spans) of each sequence, if this is an answer that has it."""
    return result.text_probabilities if isinstance(result, Answer) else None
