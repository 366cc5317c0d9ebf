"""Spans that earlier components have predicted for a batch of Docs, as arrays, and their scores."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span

from spacy_hocrf.errors import Errors

__all__ = ["LaidSpans", "entities", "laid", "scores_of"]

INSIDE, BEGINNING = 1, 3
"""Values of ENT_IOB."""


class LaidSpans(NamedTuple):
    """S spans of a batch of Docs; tokens are counted across the batch."""

    start: NDArray[np.int64]  # [S] first token
    end: NDArray[np.int64]  # [S] one past the last token
    label: NDArray[np.uint64]  # [S] StringStore hash


def laid(groups: Sequence[Sequence[Span]], offsets: NDArray[np.int64]) -> LaidSpans:
    """Return the spans of D Docs as arrays, in order; empty ones stay, with start == end.

    offsets (int64 [D + 1]): first token of each Doc.
    """
    base = np.repeat(offsets[:-1], [len(spans) for spans in groups])
    start = np.array([span.start for spans in groups for span in spans], dtype=np.int64)
    end = np.array([span.end for spans in groups for span in spans], dtype=np.int64)
    label = np.array([span.label for spans in groups for span in spans], dtype=np.uint64)
    return LaidSpans(base + start, base + end, label)


def entities(iob: NDArray[np.uint64], kind: NDArray[np.uint64]) -> LaidSpans:
    """Return the entities that the columns ENT_IOB and ENT_TYPE of N tokens encode.

    Every entity begins with a token that says so, also at the beginning of a Doc; a beginning without a
    type is not an entity.
    """
    start = np.flatnonzero((iob == BEGINNING) & (kind != 0))
    goes_on = np.append(iob == INSIDE, False)
    # first token after each entity
    stops = np.flatnonzero(~goes_on)
    end = stops[np.searchsorted(stops, start, side="right")]
    return LaidSpans(start, end, kind[start])


def scores_of(doc: Doc, key: str, name: Callable[[Doc], str]) -> NDArray[np.float64]:
    """Return the scores of the spans of `doc.spans[key]`, float64 [S]: its `attrs["scores"]`.

    name (Callable[[Doc], str]): names a Doc in messages.
    RAISES (ValueError): H181 if there are none, or not as many finite numbers as spans. A group
        without spans needs none, and a missing group has no spans.
    """
    if key not in doc.spans:
        return np.zeros(0)
    group = doc.spans[key]
    attribute = group.attrs.get("scores")
    array: NDArray[Any] = np.zeros(0) if attribute is None else np.asarray(attribute)
    if array.shape == (len(group),) and (array.dtype.kind in "biuf" or not len(group)):
        scores = array.astype(np.float64)
        if np.isfinite(scores).all():
            return scores
    found = "none" if attribute is None else ascii(attribute)[:60]
    text = Errors.H181.format(key=key, text=name(doc), found=found, expected=len(group))
    raise ValueError(text)
