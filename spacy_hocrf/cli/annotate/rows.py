"""Predictions of a component for a Doc, as rows with character offsets."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_hocrf.annotation.identity import id_of, meta_of
from spacy_hocrf.annotation.probabilities import TAGS, span_scores
from spacy_hocrf.annotation.targets import EntsTarget, SpansTarget, TagsTarget, Target
from spacy_hocrf.cli.annotate.formats import ACCEPTED, PROBABILITY

if TYPE_CHECKING:
    from spacy_hocrf.answers.reading import Reading

__all__ = [
    "Rows",
    "SpanArrays",
    "acceptance_in",
    "candidates_in",
    "readings_in",
    "spans_in",
    "text_row",
]

DIGITS = 6
"""Decimal digits of probabilities."""
PLACE = ("start", "end", "label")

Rows = list[dict[str, Any]]


class SpanArrays(NamedTuple):
    """S spans of D texts in arrays, equivalent to the rows of `spans_in`."""

    bounds: NDArray[np.int64]  # [D + 1] first span of each text
    start: NDArray[np.int64]  # [S] first character
    end: NDArray[np.int64]  # [S] one past the last
    label: NDArray[np.int32]  # [S] place in `names`
    names: tuple[str, ...]
    scores: NDArray[np.float64] | None  # [S] probabilities, rounded to float32 as in Docs

    def rows(self) -> list[Rows]:
        """Convert the spans to rows, a list for each text."""
        labels = (self.names[label] for label in self.label.tolist())
        # float32 times a million is exact, and NumPy rounds halves as Python does
        scores = repeat(None) if self.scores is None else np.round(self.scores, DIGITS).tolist()
        rows = [
            {"start": start, "end": end, "label": label, "score": score}
            for start, end, label, score in zip(
                self.start.tolist(), self.end.tolist(), labels, scores
            )
        ]
        return [rows[i:j] for i, j in pairwise(self.bounds.tolist())]


def spans_in(doc: Doc, target: Target) -> Rows:
    """Rows of the entities, spans or tags of a component, each with its probability, or None."""
    rows: Iterable[tuple[int, int, str]]
    if isinstance(target, TagsTarget):
        key: str | None = TAGS
        rows = ((token.idx, token.idx + len(token), token.tag_) for token in doc)
    elif isinstance(target, SpansTarget):
        key = target.spans_key
        rows = ((span.start_char, span.end_char, span.label_) for span in doc.spans[key])
    else:
        key = target.scores_key if isinstance(target, EntsTarget) else None
        rows = ((ent.start_char, ent.end_char, ent.label_) for ent in doc.ents)
    scored = () if key is None else span_scores(doc, key)
    scores = {row[:3]: _rounded(row.score) for row in scored}
    return [{**dict(zip(PLACE, row)), "score": scores.get(row)} for row in rows]


def text_row(doc: Doc, field: str) -> dict[str, Any]:
    """Make a row of a Doc's text, with `id` and `meta` if it has them (`doc._.hocrf_id`)."""
    identity = {"id": id_of(doc), "meta": meta_of(doc)}
    return {**{name: value for name, value in identity.items() if value}, field: doc.text}


def acceptance_in(doc: Doc) -> dict[str, Any]:
    """Fields for the probability that the whole text is right, and whether it is accepted unread."""
    return {PROBABILITY: _rounded(doc._.hocrf_probability), ACCEPTED: doc._.hocrf_accepted}


def readings_in(reading: Reading, n: int) -> Rows:
    """Rows of the n best readings, or of all if there are fewer, with probability and spans."""
    return [
        {
            "probability": _rounded(best.probability),
            "spans": [_characters(reading.doc, *span) for span in best.spans],
        }
        for best in reading.best(n)
    ]


def candidates_in(reading: Reading, at_least: float) -> Rows:
    """Rows of all spans of at least this probability, which may overlap."""
    return [
        {**_characters(reading.doc, *span[:3]), "score": _rounded(span.probability)}
        for span in reading.spans(at_least)
    ]


def _characters(doc: Doc, start: int, end: int, label: str) -> dict[str, Any]:
    span = doc[start:end]
    return dict(zip(PLACE, (span.start_char, span.end_char, label)))


def _rounded(probability: float) -> float:
    return round(probability, DIGITS)
