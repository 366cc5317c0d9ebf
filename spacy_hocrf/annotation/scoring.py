"""What is scored: spans without the white space at their ends, which no prediction has.

Annotation tools often mark the line break behind a name, too. Who finds the name has found all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from spacy_hocrf.annotation.annotation import trim

if TYPE_CHECKING:
    from spacy_hocrf.annotation.targets import Target

__all__ = ["comparable"]


def comparable(examples: Iterable[Example], target: Target) -> list[Example]:
    """Examples in which no span of the target has white space at an end; those that had none are
    themselves, the others have copies of their Docs.
    """
    return [_comparable(example, target) for example in examples]


def _comparable(example: Example, target: Target) -> Example:
    if not target.trims:
        return example
    key: str | None = getattr(target, "spans_key", None)
    x, y = example.x, example.y
    docs = _without_whitespace(x, key), _without_whitespace(y, key)
    return example if docs[0] is x and docs[1] is y else Example(*docs)


def _without_whitespace(doc: Doc, key: str | None) -> Doc:
    """The Doc, or where a span has white space at an end, a copy without it.

    key (Optional[str]): of the spans in `doc.spans`; None for `doc.ents`.
    """
    spans: Sequence[Span] = doc.ents if key is None else list(doc.spans.get(key, ()))
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
