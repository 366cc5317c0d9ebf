"""What is known of training texts: the annotation at a component's target, and constraints on single
texts, which are partial annotation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spacy.tokens import Doc
from spacy.training import Example

from spacy_hocrf.annotation import teachers
from spacy_hocrf.annotation.annotation import Annotation, TextConstraint
from spacy_hocrf.annotation.targets import Target
from spacy_hocrf.annotation.text_constraints import constraints_content, of_reference

__all__ = ["Gold"]


@dataclass(frozen=True)
class Gold:
    """Reads what is known of training texts.

    target (Target): where their annotation is.
    constraints_key (Optional[str]): key of the span group with their constraints; None reads none.
    positives_only (bool): tokens outside the annotated spans are unknown, unless a teacher covers them.
    teachers (Sequence[str]): keys of the span groups that tell what the annotation leaves open.
    alone (Optional[Sequence[str]]): labels that alone are annotated: tokens outside all spans, teachers'
        spans included, are unknown, and have none of these labels. None if all labels are annotated.
    """

    target: Target
    constraints_key: str | None = None
    positives_only: bool = False
    teachers: Sequence[str] = ()
    alone: Sequence[str] | None = None

    @property
    def places(self) -> str:
        """Where annotation is looked for, as users write it."""
        return " or ".join(
            [self.target.place, *(f"doc.spans['{teacher}']" for teacher in self.teachers)]
        )

    def key(self, reference: Doc) -> bytes:
        """Return bytes that are equal for references with equal text, annotation and constraints."""
        annotation, key = self.target.key(reference), self.constraints_key
        if self.teachers:
            annotation += teachers.content(reference, self.teachers)
        return annotation if key is None else annotation + constraints_content(reference, key)

    def annotation(self, example: Example) -> Annotation:
        """Return the annotation of the reference, on the predicted Doc's tokens.

        RAISES (ValueError): H217 for a constraint of an unknown kind, or without a label; H535 or H536 for
            invalid spans of a teacher.
        """
        annotation, key = self.target.annotation(example), self.constraints_key
        if self.positives_only:
            annotation = annotation.positives
        constraints = () if key is None else of_reference(example, key)
        if constraints:
            annotation = _with_constraints(annotation, constraints)
        if self.teachers:
            annotation = teachers.taught(example, annotation, self.teachers)
        return annotation if self.alone is None else annotation.positives


def _with_constraints(annotation: Annotation, constraints: Sequence[TextConstraint]) -> Annotation:
    """Add constraints to an annotation: kinds "span" and "outside" become known spans and tokens, unless they
    contradict what is known already.
    """
    spans, unknown, others = (
        list(annotation.spans),
        annotation.unknown.copy(),
        list[TextConstraint](),
    )
    for constraint in constraints:
        start, end, label, kind = constraint
        if kind == "span" and (start, end, label) in spans:
            continue
        if kind == "span" and unknown[start:end].all():
            spans.append((start, end, label))
        elif kind != "outside" or any(a < end and start < b for a, b, _ in spans):
            others.append(constraint)
            continue
        unknown[start:end] = False
    return replace(
        annotation, spans=tuple(sorted(spans)), unknown=unknown, constraints=tuple(others)
    )
