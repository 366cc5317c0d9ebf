"""Prepares examples for scoring: strips white space from the ends of spans, which predictions never have;
and counts texts that are right as a whole.

Annotation tools often include the line break after a name. Finding the name counts as finding all of it.

A text is right as a whole if all of its spans are found, and no others: a record with one wrong field has
to be corrected by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from spacy_hocrf.annotation.annotation import UNKNOWN, trim
from spacy_hocrf.annotation.spans import named, same_tokens, share_labels

if TYPE_CHECKING:
    from spacy_hocrf.annotation.targets import Target

__all__ = ["comparable", "count_whole", "is_fully_annotated"]


def comparable(examples: Iterable[Example], target: Target) -> list[Example]:
    """Return examples in which no span of the target has white space at an end; examples without such spans
    as they are, others with copies of their Docs.
    """
    return [_comparable(example, target) for example in examples]


def count_whole(examples: Iterable[Example], target: Target) -> tuple[int, int]:
    """Count the texts that are right as a whole, and those that could be: the texts that have tokens and are
    annotated completely.

    examples (Iterable[Example]): as `comparable` returns them.
    """
    is_right = _tags if target.place == "token.tag" else _spans
    key: str | None = getattr(target, "spans_key", None)
    complete = [eg for eg in examples if is_fully_annotated(eg.y, target.place, key)]
    return sum(is_right(eg, key) for eg in complete), len(complete)


def is_fully_annotated(doc: Doc, place: str, key: str | None) -> bool:
    """Does a Doc have tokens, all of which, except for white space, are annotated?

    place (str): place of the target, or of a scorer. key (Optional[str]): key of spans in `doc.spans`.
    """
    if key is not None:
        return len(doc) > 0 and key in doc.spans and not doc.spans[key].attrs.get(UNKNOWN)
    attr = "TAG" if place == "token.tag" else "ENT_IOB"
    values = doc.to_array([attr, "IS_SPACE"])
    return len(doc) > 0 and doc.has_annotation(attr) and bool(values.any(axis=1).all())


def _spans(example: Example, key: str | None) -> bool:
    """Are the predicted spans exactly the annotated ones?"""
    predicted, annotated = (_spans_of(doc, key) for doc in (example.x, example.y))
    aligned = predicted
    if not same_tokens(example):
        share_labels(example.y, predicted)
        aligned = example.get_aligned_spans_x2y(predicted, allow_overlap=True)
    return len(aligned) == len(predicted) and {*named(aligned)} == {*named(annotated)}


def _tags(example: Example, key: str | None) -> bool:
    """Does every token have the annotated tag?"""
    return bool([token.tag_ for token in example.x] == example.get_aligned("TAG", as_string=True))


def _spans_of(doc: Doc, key: str | None) -> Sequence[Span]:
    """Spans of `doc.spans[key]`, or of `doc.ents`."""
    return doc.ents if key is None else list(doc.spans.get(key, ()))


def _comparable(example: Example, target: Target) -> Example:
    if not target.trims:
        return example
    key: str | None = getattr(target, "spans_key", None)
    x, y = example.x, example.y
    docs = _without_whitespace(x, key), _without_whitespace(y, key)
    return example if docs[0] is x and docs[1] is y else Example(*docs)


def _without_whitespace(doc: Doc, key: str | None) -> Doc:
    """Return the Doc, or if a span has white space at an end, a copy in which the white space is stripped.

    key (Optional[str]): key of the spans in `doc.spans`; None for `doc.ents`.
    """
    spans = _spans_of(doc, key)
    if not any(span[0].is_space or span[-1].is_space for span in spans if len(span)):
        return doc
    copy, places = doc.copy(), [trim(doc, span.start, span.end) for span in spans]
    kept = [
        Span(copy, start, end, span.label, kb_id=span.kb_id, span_id=span.id)
        for span, (start, end) in zip(spans, places)
        if start < end
    ]
    if key is not None:
        copy.spans[key] = SpanGroup(copy, name=key, attrs=doc.spans[key].attrs, spans=kept)
        return copy
    cut = [
        Span(copy, i, j)
        for span, (start, end) in zip(spans, places)
        for i, j in ((span.start, start), (max(start, end), span.end))
        if i < j
    ]
    copy.set_ents(kept, outside=cut, default="unmodified")
    return copy
