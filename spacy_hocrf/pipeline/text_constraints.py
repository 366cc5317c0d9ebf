"""Constraints on single texts, in a span group: "this is a title", "no name here".

Each span of the group is a constraint on its tokens; its id says of which kind, and an empty one is
"span". They become structural zeros of the text's log potentials.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span

from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.pipeline.annotation import Annotation, constrain, trim
from spacy_hocrf.pipeline.errors import ConstraintErrors
from spacy_hocrf.types import FIRST, START, LabelPattern, Potentials

__all__ = [
    "KINDS",
    "Barred",
    "TextConstraint",
    "add",
    "barred",
    "bits_of",
    "read",
    "with_any",
    "without",
]

KINDS = {
    "span": "exactly this span is there, with its label",
    "not": "exactly this span is not there with its label",
    "outside": "no span has one of these tokens",
    "inside": "one span of the label has all of these tokens, and maybe more",
    "only": "spans that have one of these tokens have its label, or that of another such constraint",
}


class TextConstraint(NamedTuple):
    """A constraint on tokens [start, end) of a text."""

    start: int
    end: int
    label: str
    kind: str  # of KINDS


class Barred(NamedTuple):
    """Labels of consecutive segments that must not be, the last of which is [start, end)."""

    start: int
    end: int
    pattern: LabelPattern

    def is_label(self, scheme: LabelScheme) -> bool:
        """Is it one label of one token, in a model whose segments have one token?"""
        return scheme.encoding != "segments" and len(self.pattern) == 1


def with_any(docs: Sequence[Doc], key: str) -> list[int]:
    """Numbers of the Docs that have constraints, or the group for them."""
    return [i for i, doc in enumerate(docs) if key in doc.spans]


def read(doc: Doc, key: str, scheme: LabelScheme) -> list[TextConstraint]:
    """The constraints of a Doc, without white space at their ends.

    RAISES (ValueError): H217 for an unknown kind or label, or a span that the model cannot have.
    """
    found = []
    for span in doc.spans[key]:
        start, end = trim(doc, span.start, span.end)
        if start < end:
            found.append(TextConstraint(start, end, span.label_, span.id_ or "span"))
    for constraint in found:
        _check(doc, key, constraint, scheme)
    taken = np.zeros(len(doc), dtype=bool)
    for constraint in found:
        if constraint.kind == "span":
            if taken[constraint.start : constraint.end].any():
                other = "a stretch that no other span constraint overlaps"
                _refuse(doc, key, constraint, "overlaps another one", other)
            taken[constraint.start : constraint.end] = True
    return found


def add(doc: Doc, key: str, constraint: TextConstraint) -> None:
    """Add a constraint to a Doc, in the place of those that it takes back.

    RAISES (ValueError): H217 for an unknown kind.
    """
    _check_kind(doc, key, constraint)
    kept = [
        span
        for span in (doc.spans[key] if key in doc.spans else ())
        if not _takes_back(constraint, _constraint(span))
    ]
    start, end, label, kind = constraint
    doc.spans[key] = [*kept, Span(doc, start, end, label, span_id=kind)]


def _takes_back(new: TextConstraint, old: TextConstraint) -> bool:
    """Can both not be, as a later word on the same tokens?"""
    if {new.kind, old.kind} == {"span", "not"}:
        return new[:3] == old[:3]
    overlap = new.start < old.end and old.start < new.end
    replaced = {"span": ("span", "outside"), "inside": ("outside",), "outside": ("span", "inside")}
    return overlap and old.kind in replaced.get(new.kind, ())


def _constraint(span: Span) -> TextConstraint:
    return TextConstraint(span.start, span.end, span.label_, span.id_ or "span")


def bits_of(
    scheme: LabelScheme, bits: NDArray[np.uint8], constraints: Sequence[TextConstraint]
) -> NDArray[np.uint8]:
    """Bits of the segmentations that keep all constraints, but for those of the kind "not".

    bits (uint8 [T, Y]): what is allowed anyway; not changed.
    """
    spans = sorted((c.start, c.end, c.label) for c in constraints if c.kind == "span")
    kept: NDArray[np.uint8] = bits.copy()
    if spans:
        unknown = np.ones(len(bits), dtype=bool)
        for start, end, _ in spans:
            unknown[start:end] = False
        kept &= constrain(scheme, bits, Annotation(tuple(spans), unknown))
    only: dict[tuple[int, int], set[int]] = {}
    for start, end, label, kind in constraints:
        if kind in ("span", "not"):
            continue
        inside = set() if kind == "outside" else set(_labels(scheme, label))
        if kind == "outside":
            kept[start:end, _others(scheme, {scheme.outside})] = 0
        elif kind == "only":
            only.setdefault((start, end), set()).update(inside)
        elif kind == "inside":
            kept[start:end, _others(scheme, inside)] = 0
            if scheme.encoding == "segments":
                kept[start + 1 : end] &= ~np.uint8(FIRST)
            elif scheme.encoding in ("bio", "bieso"):
                going_on = set(scheme.continuing(label))
                kept[start + 1 : end, _others(scheme, going_on)] = 0
    for (start, end), labels in only.items():
        kept[start:end, _others(scheme, labels | {scheme.outside})] = 0
    return kept


def barred(
    scheme: LabelScheme, text: tuple[int, int], span: tuple[int, int, str]
) -> Iterator[Barred]:
    """What must not be so that a span of a text is not there, whatever else is.

    text (tuple[int, int]): the text's first token in the batch, and one past its last; places that
        are returned are in the batch, too.
    """
    start, end, label = span
    if scheme.encoding == "tags" and end - start > 1:
        return  # there is none
    path = tuple(segment.label for segment in scheme.encode_span(start, end, label))
    start, end = text[0] + start, text[0] + end
    if scheme.encoding == "segments":
        yield Barred(start, end, path)
        return
    on = scheme.continuing(label) if scheme.encoding in ("io", "bio") else []
    others = [(y,) for y in range(scheme.n_labels) if y not in on]
    before = others if scheme.encoding == "io" and start > text[0] else [()]
    behind = others if on and end < text[1] else [()]
    for first, last in product(before, behind):
        at = end if last else end - 1
        yield Barred(at, at + 1, (*first, *path, *last))


def without(
    potentials: Potentials, unwanted: Iterable[Barred], patterns: Sequence[LabelPattern]
) -> Potentials:
    """The potentials of a batch with structural zeros; positions are counted over the batch.

    patterns (Sequence[LabelPattern]): of the potentials, with those that are barred at their end.
    """
    number = {pattern: z for z, pattern in enumerate(patterns)}
    zeros = sorted(unwanted, key=lambda each: (each.start, each.end))
    rows = [zero for zero in zeros if len(zero.pattern) > 1]
    spans = [zero for zero in zeros if len(zero.pattern) == 1]
    starts, ends, labels = _columns([(span.start, span.end, span.pattern[0]) for span in spans])
    places = np.searchsorted(potentials.span_start, starts, side="right")
    tokens, _, chosen = _columns([(row.start, row.end, number[row.pattern]) for row in rows])
    behind = potentials.row_offsets[tokens + 1]
    more = np.searchsorted(tokens, np.arange(len(potentials.allowed) + 1))
    return replace(
        potentials,
        const=np.append(potentials.const, np.zeros(len(patterns) - len(potentials.const))),
        row_offsets=potentials.row_offsets + more,
        row_part=np.insert(potentials.row_part, behind, np.uint8(START)),
        row_pattern=np.insert(potentials.row_pattern, behind, chosen.astype(np.int32)),
        row_score=np.insert(potentials.row_score, behind, -np.inf),
        span_start=np.insert(potentials.span_start, places, starts),
        span_end=np.insert(potentials.span_end, places, ends),
        span_pattern=np.insert(potentials.span_pattern, places, labels.astype(np.int32)),
        span_score=np.insert(potentials.span_score, places, -np.inf),
    )


def _columns(rows: Sequence[tuple[int, int, int]]) -> NDArray[np.int64]:
    """int64 [3, n]"""
    return np.ascontiguousarray(np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def _labels(scheme: LabelScheme, label: str) -> list[int]:
    """The engine's labels that tokens of such a span may have."""
    number = scheme.labels.index(label)
    return [
        y for y in range(scheme.n_labels) if y != scheme.outside and scheme.user_label(y) == number
    ]


def _others(scheme: LabelScheme, labels: set[int]) -> list[int]:
    return [y for y in range(scheme.n_labels) if y not in labels]


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


def _refuse(doc: Doc, key: str, constraint: TextConstraint, found: str, expected: str) -> None:
    from spacy_hocrf.features.tokens import beginning

    raise ValueError(
        ConstraintErrors.H217.format(
            start=constraint.start,
            end=constraint.end,
            text=beginning(doc),
            found=found,
            expected=expected,
            key=key,
        )
    )
