"""What teachers predict for training texts: spans with scores, in span groups of the reference.

Probabilities of several teachers are averaged. Of all distributions over the readings of a text in which each
span has its probability, the one of largest entropy is learnt (`annotation.log_odds`).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from spacy_hocrf.annotation.annotation import (
    CERTAIN,
    UNKNOWN,
    Annotation,
    SoftSpan,
    covered,
    most_probable,
    trim,
)
from spacy_hocrf.annotation.errors import TeacherErrors
from spacy_hocrf.annotation.spans import named, on_predicted, same_tokens, unknown_parts
from spacy_hocrf.features.tokens import beginning

__all__ = ["check_teachers", "content", "taught"]


class _TeacherSpans(NamedTuple):
    """What one teacher predicts for a text."""

    spans: dict[tuple[int, int, str], float]  # start, end, label
    unknown: NDArray[np.bool_]  # [T]


def taught(example: Example, annotation: Annotation, keys: Sequence[str]) -> Annotation:
    """Fill the unknown tokens of an annotation with what teachers predict. Parts of the text that a teacher
    leaves open stay unknown; then only the most probable of its other spans count, as if annotated.

    annotation (Annotation): on the predicted Doc's tokens. keys (Sequence[str]): keys of the span groups.
    RAISES (ValueError): H535 for a score that is no probability, or a span without one; H536 for two spans
        that overlap, both of which are certain.
    """
    if annotation.complete:
        return annotation
    teachers = [_spans_of_teacher(example, key) for key in keys if key in example.reference.spans]
    if not teachers:
        return annotation
    scores = dict[tuple[int, int, str], float]()
    for teacher in teachers:
        for span, score in teacher.spans.items():
            scores[span] = scores.get(span, 0.0) + score / len(teachers)
    gaps = annotation.unknown
    in_gaps = [
        SoftSpan(*span, p) for span, p in sorted(scores.items()) if gaps[slice(*span[:2])].all()
    ]
    certain = [span for span in in_gaps if span.score > CERTAIN]
    _check(example.predicted, certain)
    known = covered(certain, len(gaps))
    soft = [span for span in in_gaps if span.score and not known[span.start : span.end].any()]
    likely = [span[:3] for span in (*certain, *most_probable(soft))]
    unknown = np.logical_or.reduce([teacher.unknown for teacher in teachers]) & gaps
    unknown &= ~covered(likely, len(gaps))
    spans, left_out = tuple(sorted([*annotation.spans, *likely])), annotation.left_out
    if unknown.any() or annotation.constraints:
        return Annotation(spans, unknown, annotation.constraints, left_out)
    return Annotation(spans, unknown, left_out=left_out, soft=tuple(soft))


def check_teachers(keys: Any, place: str, name: str) -> None:
    """Check the setting `teachers`. RAISES (ValueError): H537 unless these are keys of other span groups.

    place (str): where the annotation is, as in `Target.place`. name (str): name of the component.
    """
    named = isinstance(keys, list | tuple) and all(isinstance(key, str) and key for key in keys)
    if not named or len({*keys}) < len(keys) or place in [f"doc.spans['{key}']" for key in keys]:
        raise ValueError(TeacherErrors.H537.format(found=keys, name=name))


def content(reference: Doc, keys: Sequence[str]) -> bytes:
    """Return bytes that are equal for references with equal predictions of teachers; empty without any."""
    groups = [reference.spans[key] for key in keys if key in reference.spans]
    scores = [np.asarray(group.attrs.get("scores", ()), dtype=object) for group in groups]
    rows = [
        (named(group), own.tolist(), group.attrs.get(UNKNOWN)) for group, own in zip(groups, scores)
    ]
    return repr(rows).encode() if rows else b""


def _spans_of_teacher(example: Example, key: str) -> _TeacherSpans:
    """Read what one teacher predicts, on the predicted Doc's tokens."""
    doc, group = example.predicted, example.reference.spans[key]
    spans = list(group)
    stored = group.attrs.get("scores", [1.0] * len(spans))
    where = {"key": key, "text": beginning(doc)}
    try:
        scores = np.asarray([*stored], dtype=np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        text = TeacherErrors.H535.format(found=f"the scores {ascii(stored)[:60]}", **where)
        raise ValueError(text) from error
    if scores.shape != (len(spans),):
        found = f"{scores.size} scores of {len(spans)} spans"
        raise ValueError(TeacherErrors.H535.format(found=found, **where))
    if bad := [p for p in scores.tolist() if not 0.0 <= p <= 1.0]:
        raise ValueError(TeacherErrors.H535.format(found=f"the score {bad[0]}", **where))
    unknown, scores_of_spans = np.zeros(len(doc), dtype=bool), dict[tuple[int, int, str], float]()
    same, y2x = same_tokens(example), example.alignment.y2x
    for start, end in unknown_parts(example.reference, key):
        unknown[_touched(y2x[start:end])] = True
    for span, score in zip(spans, scores.tolist()):
        if not span.label_:
            raise ValueError(
                TeacherErrors.H535.format(found=f"'{span.text}' without a label", **where)
            )
        aligned = [span] if same else on_predicted(example, [span], overlap=True)
        if not aligned:
            unknown[_touched(y2x[span.start : span.end])] = True
            continue
        start, end = trim(doc, aligned[0].start, aligned[0].end)
        if start < end:
            place = start, end, span.label_
            scores_of_spans[place] = max(score, scores_of_spans.get(place, 0.0))
    return _TeacherSpans(scores_of_spans, unknown)


def _touched(tokens: NDArray[np.int32]) -> slice:
    return slice(min(tokens, default=0), max(tokens, default=-1) + 1)


def _check(doc: Doc, certain: Sequence[SoftSpan]) -> None:
    """Check certain spans. RAISES (ValueError): H536 if two overlap."""
    for one, other in pairwise(certain):
        if other.start < one.end:
            spans = " and ".join(
                f"'{doc[each.start : each.end]}' ({each.label})" for each in (one, other)
            )
            raise ValueError(TeacherErrors.H536.format(spans=spans, text=beginning(doc)))
