"""Spans of a Doc as all targets read and write them, and the probabilities that are kept beside
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, repeat
from math import exp
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IS_SPACE, ORTH
from spacy.tokens import Doc, Span, SpanGroup, Token
from spacy.training import Example

from spacy_hocrf.pipeline.annotation import runs, trim

if TYPE_CHECKING:
    from spacy_hocrf.pipeline.alternatives import BestReadings

__all__ = [
    "ENT_BEGIN",
    "ENT_OUTSIDE",
    "TAG_SCORES",
    "CountedSpans",
    "DecodedSpans",
    "alternative_groups",
    "blocked",
    "named",
    "predicted",
    "register_scores",
    "same_tokens",
    "score_of",
    "scored",
    "spread_over_space",
    "tag_score_of",
    "trimmed",
    "words_of",
]

ENT_BEGIN = 3  # `token.ent_iob` of a first token; the beginning of no type is spaCy's "blocked"

ENT_OUTSIDE = 2
"""Value of `token.ent_iob` of a token that is known to be in no entity."""

TAG_SCORES = "hocrf_tag_scores"
"""Where `doc.user_data` has the probabilities of its tags, float32 [T], nan where there is none."""


class CountedSpans(Protocol):
    """What a span group is made from."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Span]: ...


class DecodedSpans:
    """The decoded spans of one Doc.

    Spans and rows are made one after the other when they are asked for, and gone at once: with many at
    the same time the garbage collector takes longer than all the rest.

    start, end (Sequence[int]): first token, and one past the last, of each.
    label (Sequence[int]): hash of the label of each.
    """

    def __init__(
        self, doc: Doc, start: Sequence[int], end: Sequence[int], label: Sequence[int]
    ) -> None:
        self._doc, self._start, self._end, self._label = doc, start, end, label

    @property
    def rows(self) -> Iterator[tuple[int, int, int]]:
        """First token, one past the last, and hash of the label of each."""
        return zip(self._start, self._end, self._label)

    def __len__(self) -> int:
        return len(self._label)

    def __iter__(self) -> Iterator[Span]:
        return map(Span, repeat(self._doc), self._start, self._end, self._label)


def score_of(span: Span) -> float | None:
    """Probability of a span that a component of ours has predicted: `span._.hocrf_score`; None for
    any other span.
    """
    for group in span.doc.spans.values():
        if "hocrf" in group.attrs:
            place = _find(group, span)
            if place is not None:
                return float(group.attrs["scores"][place])
    return None


def register_scores() -> None:
    """Let spans and tokens have `_.hocrf_score`."""
    if not Span.has_extension("hocrf_score"):
        Span.set_extension("hocrf_score", getter=score_of)
    if not Token.has_extension("hocrf_score"):
        Token.set_extension("hocrf_score", getter=tag_score_of)


def tag_score_of(token: Token) -> float | None:
    """Probability of a tag that a component of ours has predicted: `token._.hocrf_score`; None for any
    other token.
    """
    scores = token.doc.user_data.get(TAG_SCORES)
    if scores is None or len(scores) != len(token.doc) or np.isnan(scores[token.i]):
        return None
    return float(scores[token.i])


def scored(
    doc: Doc, key: str, spans: CountedSpans, scores: NDArray[np.float64] | None
) -> SpanGroup:
    """A span group in which `score_of` finds the probabilities of its spans.

    scores (Optional[float64 [S]]): the probabilities; None for a group without.
    """
    attrs: dict[str, Any] = (
        {} if scores is None else {"scores": scores.astype(np.float32), "hocrf": True}
    )
    return SpanGroup(doc, name=key, spans=cast("list[Span]", spans), attrs=attrs)


def predicted(doc: Doc, key: str | None) -> set[tuple[int, int, str]]:
    """Spans that a component of ours has predicted, with their probabilities; none without a key."""
    group = doc.spans.get(key) if key is not None else None
    return set() if group is None or "hocrf" not in group.attrs else set(named(group))


def alternative_groups(
    doc: Doc, keys: Sequence[str], readings: BestReadings | None
) -> Iterator[SpanGroup]:
    """Span groups of readings, with `probability` and `log_probability` as their `attrs`.

    keys (Sequence[str]): their names, at least as many.
    """
    if readings is None:
        return
    found = readings.columns()
    places = dict(zip(found.key, range(len(found.key))))  # most spans are in most of the readings
    start, end, label, names = found.start, found.end, found.label, readings.labels
    known = {key: Span(doc, start[i], end[i], names[label[i]]) for key, i in places.items()}
    bounds = pairwise(found.bounds)
    for name, (i, j), log_p in zip(keys, bounds, found.log_probability):
        attrs = {"probability": exp(log_p), "log_probability": log_p}
        spans = list(map(known.__getitem__, found.key[i:j]))
        yield SpanGroup(doc, name=name, spans=spans, attrs=attrs)


def named(spans: Sequence[Span] | SpanGroup) -> tuple[tuple[int, int, str], ...]:
    """First token, one past the last, and label of each span."""
    return tuple((span.start, span.end, span.label_) for span in spans)


def trimmed(doc: Doc, spans: Sequence[Span]) -> tuple[tuple[int, int, str], ...]:
    """As `named`, sorted and without white space at either end; spans of nothing else are left out."""
    within = ((*trim(doc, span.start, span.end), span.label_) for span in spans)
    return tuple(sorted((start, end, label) for start, end, label in within if start < end))


def words_of(doc: Doc) -> list[str]:
    """Tokens, each with the white space behind it."""
    return [token.text_with_ws for token in doc]


def same_tokens(example: Example) -> bool:
    """Do both Docs have the same tokens, so that no alignment is needed? spaCy's does not know
    white space.
    """
    x, y = example.x, example.y
    return (
        len(x) == len(y)
        and np.array_equal(x.to_array(ORTH), y.to_array(ORTH))
        and not x.to_array(IS_SPACE).any()
    )


def spread_over_space(example: Example, unknown: NDArray[np.bool_]) -> None:
    """White space that the annotation leaves open is unknown between unknown tokens, since an
    entity may go across it.

    (`get_aligned_ents_and_ner` says that it is in no entity.)
    """
    known = [iob == ENT_OUTSIDE for iob in example.get_aligned("ENT_IOB")]
    open_space = np.array([token.is_space for token in example.x]) & ~np.array(known, dtype=bool)
    for start, end in runs(open_space):
        if start > 0 and end < len(unknown) and unknown[start - 1] and unknown[end]:
            unknown[start:end] = True


def _find(group: SpanGroup, span: Span) -> int | None:
    """Place of an equal span in a group sorted by start."""
    low, high = 0, len(group)
    while low < high:
        middle = (low + high) // 2
        if group[middle].start < span.start:
            low = middle + 1
        else:
            high = middle
    while low < len(group) and group[low].start == span.start:  # several, if they overlap
        if named([group[low]]) == named([span]):
            return low
        low += 1
    return None


def blocked(doc: Doc) -> list[Span]:
    """Tokens that an earlier component has declared to be in no entity."""
    iob, kind = doc.to_array(["ENT_IOB", "ENT_TYPE"]).T
    return [Span(doc, start, end) for start, end in runs((kind == 0) & (iob == ENT_BEGIN))]
