"""Constraints on single texts, in a span group: "this is a title", "no name here".

Each span of the group is a constraint on its tokens; its id is the kind of constraint, "span" if empty.
What the kinds mean for a model is in answers/forbidden.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_hocrf.annotation.annotation import Annotation, TextConstraint, trim
from spacy_hocrf.annotation.spans import on_predicted
from spacy_hocrf.annotation.whitespace import with_whitespace, without_whitespace
from spacy_hocrf.features.tokens import beginning
from spacy_hocrf.rules.errors import ConstraintErrors

if TYPE_CHECKING:
    from spacy_hocrf.features.tokens import TokenBatch
    from spacy_hocrf.model.scheme import LabelScheme
    from spacy_hocrf.types import Segments

__all__ = [
    "KINDS",
    "TextConstraints",
    "add",
    "constraints_content",
    "of_annotations",
    "of_reference",
    "put",
    "read_constraints",
]

KINDS = {
    "span": "exactly this span is there, with its label",
    "not": "exactly this span is not there with its label",
    "outside": "no span has one of these tokens",
    "inside": "one span of the label has all of these tokens, and maybe more",
    "only": "spans that have one of these tokens have its label, or that of another such constraint",
}
SPAN, NOT, OUTSIDE, INSIDE, ONLY = range(len(KINDS))

NAMES = tuple(KINDS)

POSITION_BITS = 31
"""Bits for a position in a text."""


class TextConstraints(NamedTuple):
    """n constraints on the texts of a batch, text by text."""

    text: NDArray[np.int64]  # [n] number of the Doc, ascending
    start: NDArray[np.int64]  # [n] first token in the Doc
    end: NDArray[np.int64]  # [n] one past the last
    label: NDArray[np.int64]  # [n] place in the scheme's `labels`, -1 for none
    kind: NDArray[np.int64]  # [n] place in KINDS

    def only(self, chosen: NDArray[np.bool_]) -> TextConstraints:
        """Select some of the constraints. chosen (bool [n]): which."""
        return self if chosen.all() else TextConstraints(*(column[chosen] for column in self))

    def of_kind(self, kind: int) -> TextConstraints:
        """Select the constraints of one kind."""
        return self.only(self.kind == kind)

    def of_texts(self, texts: NDArray[np.int64]) -> TextConstraints:
        """Select the constraints on some of the texts, and number these texts anew.

        texts (int64 [m]): numbers of the texts, ascending.
        """
        constraints = self.only(np.isin(self.text, texts))
        return constraints._replace(text=np.searchsorted(texts, constraints.text))

    def once(self) -> TextConstraints:
        """Remove duplicates, keeping the order."""
        if len(self.text) < 2:
            return self
        _, first = np.unique(np.stack(self), axis=1, return_index=True)
        return TextConstraints(*(column[np.sort(first)] for column in self))

    def texts_without(self, spans: Segments) -> NDArray[np.int64]:
        """Return the texts, int64 [m], in which a constraint's tokens are not within one span of its label.

        spans (Segments): spans of all texts, by position; none overlap.
        """
        if not len(spans.start):
            return self.text
        text = np.repeat(np.arange(len(spans.offsets) - 1), np.diff(spans.offsets))
        # the last span of the same text that begins at the constraint's first token or before
        order = text << POSITION_BITS | spans.start
        last = np.searchsorted(order, self.text << POSITION_BITS | self.start, side="right") - 1
        within = (text[last] == self.text) & (spans.start[last] <= self.start)
        within &= (self.end <= spans.end[last]) & (spans.label[last] == self.label)
        return np.asarray(self.text[~within])

    def named(self, text: int, labels: Sequence[str]) -> list[TextConstraint]:
        """Return the constraints on one text, with names of labels and kinds.

        labels (Sequence[str]): the scheme's labels.
        """
        rows = np.stack(self[1:], axis=1)[self.text == text].tolist()
        return [
            TextConstraint(start, end, labels[label] if label >= 0 else "", NAMES[kind])
            for start, end, label, kind in rows
        ]


def read_constraints(
    batch: TokenBatch, texts: Sequence[int], key: str, scheme: LabelScheme
) -> TextConstraints:
    """Read the constraints on some Docs, stripped of white space at their ends; empty ones are dropped.

    texts (Sequence[int]): numbers of Docs that have the group, ascending.
    RAISES (ValueError): H217 for an unknown kind or label, or a span that the model cannot have.
    """
    rows = [
        (i, span.start, span.end, span.label, span.id)
        for i in texts
        for span in batch.docs[i].spans[key]
    ]
    table = np.fromiter(chain.from_iterable(rows), dtype=np.uint64, count=5 * len(rows))
    text, start, end = table.reshape(-1, 5).T[:3].astype(np.int64)
    labels, kinds = _numbers(batch, scheme.labels), {0: SPAN, **_numbers(batch, NAMES)}
    constraints = TextConstraints(
        text,
        start,
        end,
        np.fromiter((labels.get(row[3], -1) for row in rows), dtype=np.int64, count=len(rows)),
        np.fromiter((kinds.get(row[4], -1) for row in rows), dtype=np.int64, count=len(rows)),
    )
    if batch.has_blank:
        first = batch.offsets[text]
        start, end = without_whitespace(batch.blank, first + start, first + end)
        constraints = constraints._replace(start=start - first, end=end - first)
    constraints = constraints.only(constraints.start < constraints.end).once()
    if _may_be_invalid(constraints, scheme):
        for i in texts:
            _check_text(batch.docs[i], key, scheme)
    return constraints


def constraints_content(reference: Doc, key: str) -> bytes:
    """Return bytes that are equal for references with equal constraints; empty without any."""
    if key not in reference.spans:
        return b""
    rows = [(*_constraint(span), len(reference)) for span in reference.spans[key]]
    return repr(rows).encode() if rows else b""


def of_reference(example: Example, key: str) -> tuple[TextConstraint, ...]:
    """Return the constraints on an example's reference, on the predicted Doc's tokens and without white space
    at their ends; those that do not fit these tokens are dropped. A "not" constraint is repeated for all
    spans that would be shown as this one.

    RAISES (ValueError): H217 for an unknown kind, or no label.
    """
    doc = example.reference
    if key not in doc.spans:
        return ()
    constraints = []
    for span in doc.spans[key]:
        constraint = _constraint(span)
        _check_kind(doc, key, constraint)
        if constraint.kind != "outside" and not constraint.label:
            _refuse(doc, key, constraint, "has no label", "the label that it is about")
        for start, end in _aligned(example, span, constraint.kind):
            constraints.append(constraint._replace(start=start, end=end))
    return tuple(dict.fromkeys(constraints))


def of_annotations(
    scheme: LabelScheme, annotations: Sequence[Annotation]
) -> TextConstraints | None:
    """Collect the constraints of a batch of annotations, besides known spans and tokens; None without any."""
    rows = [
        (i, start, end, scheme.labels.index(label) if label else -1, NAMES.index(kind))
        for i, annotation in enumerate(annotations)
        for start, end, label, kind in annotation.constraints
    ]
    return TextConstraints(*np.array(rows, dtype=np.int64).T) if rows else None


def add(doc: Doc, key: str, constraint: TextConstraint) -> None:
    """Add a constraint to a Doc, replacing earlier ones that contradict it.

    RAISES (ValueError): H217 for an unknown kind, or tokens that are not a stretch of the text.
    """
    _check_kind(doc, key, constraint)
    start, end, label, kind = constraint
    if not 0 <= start < end <= len(doc):  # a Doc with an empty span cannot be copied
        expected = f"its first token and one past its last, of {len(doc)}"
        _refuse(doc, key, constraint, "is on no stretch of it", expected)
    kept = [
        span
        for span in (doc.spans[key] if key in doc.spans else ())
        if not _contradicts(constraint, _constraint(span))
    ]
    doc.spans[key] = [*kept, Span(doc, start, end, label, span_id=kind)]


def put(doc: Doc, key: str, constraints: Iterable[TextConstraint]) -> None:
    """Replace a Doc's constraints by these."""
    doc.spans[key] = [
        Span(doc, start, end, label, span_id=kind) for start, end, label, kind in constraints
    ]


def _aligned(example: Example, span: Span, kind: str) -> Iterator[tuple[int, int]]:
    """Yield the places of a constraint in the predicted Doc. A constraint on all tokens of a stretch that
    does not fit them applies to the tokens within it.
    """
    doc, aligned = example.predicted, on_predicted(example, [span])
    start = end = 0
    if aligned:
        start, end = aligned[0].start, aligned[0].end
    elif kind not in ("span", "not"):
        y2x, x2y = example.alignment.y2x, example.alignment.x2y
        touched = (int(i) for i in y2x[span.start : span.end])
        inside = [
            i for i in touched if all(span.start <= int(j) < span.end for j in x2y[i : i + 1])
        ]
        start, end = min(inside, default=0), max(inside, default=-1) + 1
    start, end = trim(doc, start, end)
    if start < end and kind == "not":
        blank = np.array([token.is_space for token in doc], dtype=bool)
        yield from (each[:2] for each in with_whitespace(blank, start, end, ""))
    elif start < end:
        yield start, end


def _numbers(batch: TokenBatch, names: Sequence[str]) -> dict[int, int]:
    """Places of names, by hash."""
    return {int(batch.strings[name]): place for place, name in enumerate(names)}


def _may_be_invalid(constraints: TextConstraints, scheme: LabelScheme) -> bool:
    """Is there anything that `_check_text` might reject?"""
    text, start, end, label, kind = constraints
    invalid = (kind < 0) | ((label < 0) & (kind != OUTSIDE))
    if scheme.outside < 0:
        invalid |= kind == OUTSIDE
    if scheme.encoding in ("segments", "tags") and scheme.labels:
        most = scheme.longest[scheme.rules[label, 3]]
        invalid |= ((kind == SPAN) | (kind == INSIDE)) & (end - start > most)
    spans = np.flatnonzero(kind == SPAN)
    spans = spans[np.lexsort((start[spans], text[spans]))]
    overlap = (text[spans[1:]] == text[spans[:-1]]) & (start[spans[1:]] < end[spans[:-1]])
    return bool(invalid.any() or overlap.any())


def _check_text(doc: Doc, key: str, scheme: LabelScheme) -> None:
    """Check the constraints on a text. RAISES (ValueError): H217 as `read_constraints`."""
    constraints = []
    for span in doc.spans[key]:
        start, end = trim(doc, span.start, span.end)
        if start < end:
            constraints.append(_constraint(span)._replace(start=start, end=end))
    for constraint in constraints:
        _check(doc, key, constraint, scheme)
    spans = sorted({constraint for constraint in constraints if constraint.kind == "span"})
    for one, other in pairwise(spans):
        if other.start < one.end:
            overlap = f"overlaps {one.label} on tokens {one.start} to {one.end}"
            expected = "spans that can be there together"
            _refuse(doc, key, other, f"({other.label}) {overlap}", expected)


def _contradicts(new: TextConstraint, old: TextConstraint) -> bool:
    """Does a new constraint contradict an old one, so that it replaces it?"""
    if {new.kind, old.kind} == {"span", "not"}:
        return new[:3] == old[:3]
    overlap = new.start < old.end and old.start < new.end
    replaced = {"span": ("span", "outside"), "inside": ("outside",), "outside": ("span", "inside")}
    return overlap and old.kind in replaced.get(new.kind, ())


def _constraint(span: Span) -> TextConstraint:
    return TextConstraint(span.start, span.end, span.label_, span.id_ or "span")


def _check(doc: Doc, key: str, constraint: TextConstraint, scheme: LabelScheme) -> None:
    _check_kind(doc, key, constraint)
    start, end, label, kind = constraint
    if kind != "outside" and label not in scheme.labels:
        known = ", ".join(scheme.labels)
        _refuse(doc, key, constraint, f"has the label '{label}'", f"one of {known}")
    if kind == "outside" and scheme.outside < 0:
        _refuse(doc, key, constraint, "wants text in no span", "a model that has seen such text")
    if kind in ("span", "inside") and not scheme.can_have([(start, end, label)]):
        _refuse(doc, key, constraint, "is longer than a span of the model may be", "fewer tokens")


def _check_kind(doc: Doc, key: str, constraint: TextConstraint) -> None:
    if constraint.kind not in KINDS:
        kinds = ", ".join(KINDS)
        _refuse(doc, key, constraint, f"is of the kind '{constraint.kind}'", f"one of {kinds}")


def _refuse(doc: Doc, key: str, constraint: TextConstraint, found: str, expected: str) -> NoReturn:
    where = {"start": constraint.start, "end": constraint.end, "text": beginning(doc), "key": key}
    raise ValueError(ConstraintErrors.H217.format(**where, found=found, expected=expected))
