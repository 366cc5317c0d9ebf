"""Reading and writing spans of a Doc, shared by all targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import exp
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IS_SPACE, ORTH
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.util import filter_spans

from spacy_hocrf.annotation.annotation import UNKNOWN, runs, trim
from spacy_hocrf.annotation.errors import AnnotationErrors
from spacy_hocrf.annotation.prediction import DecodedSpans
from spacy_hocrf.annotation.probabilities import group_scores, span_scores
from spacy_hocrf.annotation.written_spans import WrittenSpans, edges
from spacy_hocrf.features.columns import any_set
from spacy_hocrf.features.tokens import beginning

if TYPE_CHECKING:
    from spacy_hocrf.annotation.best_readings import BestReadings

__all__ = [
    "CHARACTERS",
    "ENT_BEGIN",
    "ENT_OUTSIDE",
    "alternative_groups",
    "annotated_places",
    "annotated_tokens",
    "blocked",
    "docs_with_entities",
    "gold_spans",
    "named",
    "on_predicted",
    "predicted",
    "ranked_keys",
    "row_of",
    "same_tokens",
    "scored",
    "share_labels",
    "spread_over_space",
    "trimmed",
    "unknown_parts",
    "words_of",
    "written_groups",
]

ENT_BEGIN = 3  # `token.ent_iob` of a first token; together with no type it means "blocked" in spaCy

ENT_OUTSIDE = 2
"""`token.ent_iob` of a token that is known to be in no entity."""

CHARACTERS = ("IDX", "LENGTH")
"""Attributes that give the characters of a token."""


def gold_spans(doc: Doc, key: str) -> list[Span]:
    """Return the annotated spans of a group, except those that overlap longer ones.

    RAISES (ValueError): H242 for a span without a label.
    """
    annotated = list(doc.spans[key])
    for span in annotated:
        if not span.label:
            text = AnnotationErrors.H242.format(key=key, found=span.text, text=beginning(doc))
            raise ValueError(text)
    chosen: list[Span] = filter_spans(annotated)
    return chosen


def unknown_parts(doc: Doc, key: str) -> list[tuple[int, int]]:
    """Return the parts of a text that a span group declares unknown: first token, one past the last.

    RAISES (ValueError): H538 if they are not such parts.
    """
    parts = list[tuple[int, int]]()
    stored = doc.spans[key].attrs.get(UNKNOWN, ())
    try:
        for part in stored:
            start, end = map(index, part)
            if not 0 <= start <= end <= len(doc):
                raise ValueError
            parts.append((start, end))
    except (TypeError, ValueError):
        where = {"key": key, "text": beginning(doc), "expected": len(doc)}
        text = AnnotationErrors.H538.format(found=ascii(stored)[:60], **where)
        raise ValueError(text) from None
    return parts


def annotated_places(doc: Doc) -> list[str]:
    """Where the Doc has spans, named as in `Target.place`."""
    groups = [f"doc.spans['{key}']" for key, spans in doc.spans.items() if len(spans)]
    return (["doc.ents"] if doc.ents else []) + groups


def scored(doc: Doc, key: str, spans: DecodedSpans) -> WrittenSpans:
    """Make a span group of decoded spans, with their probabilities if there are any."""
    scores = spans.scores
    attrs: dict[str, Any] = {} if scores is None else {"scores": scores, "hocrf": True}
    return WrittenSpans(doc, name=key, spans=spans, attrs=attrs)


def predicted(doc: Doc, key: str | None) -> set[tuple[int, int, str]]:
    """Entities with a probability from a component of this package; empty without a key."""
    if key is None:
        return set()
    scored_spans = {row[:3] for row in (*span_scores(doc, key), *group_scores(doc, key))}
    ents = ((ent, (ent.start_char, ent.end_char, ent.label_)) for ent in doc.ents)
    return {(ent.start, ent.end, ent.label_) for ent, row in ents if row in scored_spans}


def alternative_groups(
    doc: Doc, keys: Sequence[str], readings: BestReadings, hashes: Sequence[int]
) -> Iterator[WrittenSpans]:
    """Yield a span group for each reading, with `probability` and `log_probability` as its `attrs`.

    keys (Sequence[str]): names, at least one per reading. hashes (Sequence[int]): of the model's labels.
    """
    bounds, start, end, label, log_probabilities = readings.columns()
    first, last = edges(doc)
    columns = start, end, label, first.take(start), last.take(end - 1)
    spans = DecodedSpans(columns, 0, len(start), None, hashes)
    for name, part, log_p in zip(keys, pairwise(bounds), log_probabilities):
        attrs = {"probability": exp(log_p), "log_probability": log_p}
        yield WrittenSpans(doc, name=name, spans=spans, attrs=attrs, part=part)


def ranked_keys(key: str | None, n: int) -> list[str]:
    """Names of the span groups of the best readings."""
    return [f"{key}_{rank}" for rank in range(1, n + 1)]


def written_groups(key: str | None, n: int) -> list[str]:
    """The span group of a component and those of the best readings, named as in `TokenBatch.reads`."""
    return [f"spans:{name}" for name in (key, *ranked_keys(key, n))]


def named(spans: Sequence[Span] | SpanGroup) -> tuple[tuple[int, int, str], ...]:
    """First token, one past the last, and label of each span."""
    return tuple((span.start, span.end, span.label_) for span in spans)


def row_of(span: Span | tuple[int, int, str]) -> tuple[int, int, str]:
    """Return first token, one past the last, and label of a span given by a user.

    RAISES (ValueError): H569 for anything but a Span or such a tuple.
    """
    if isinstance(span, Span):
        return span.start, span.end, span.label_
    try:
        start, end, label = span
        if not isinstance(label, str):
            raise TypeError
        return index(start), index(end), label
    except (TypeError, ValueError):
        text = AnnotationErrors.H569.format(kind=type(span).__name__, found=ascii(span)[:60])
        raise ValueError(text) from None


def trimmed(doc: Doc, spans: Sequence[Span]) -> tuple[tuple[int, int, str], ...]:
    """Sorted rows as from `named`, without white space at either end; spans of nothing but white space are
    left out.
    """
    within = ((*trim(doc, span.start, span.end), span.label_) for span in spans)
    return tuple(sorted((start, end, label) for start, end, label in within if start < end))


def words_of(doc: Doc) -> list[str]:
    """Texts of the tokens, each with its trailing white space."""
    return [token.text_with_ws for token in doc]


def same_tokens(example: Example) -> bool:
    """Do both Docs have the same tokens, so that no alignment is needed? False for white space tokens, which
    spaCy's alignment leaves out.
    """
    x, y = example.x, example.y
    return (
        len(x) == len(y)
        and np.array_equal(x.to_array(ORTH), y.to_array(ORTH))
        and not x.to_array(IS_SPACE).any()
    )


def on_predicted(example: Example, spans: Sequence[Span], *, overlap: bool = False) -> list[Span]:
    """Return spans of the reference on the predicted Doc's tokens, without those that do not fit them.

    overlap (bool): keep spans that overlap others.
    """
    share_labels(example.predicted, spans)
    aligned: list[Span] = example.get_aligned_spans_y2x(spans, allow_overlap=overlap)
    return aligned


def share_labels(doc: Doc, spans: Iterable[Span]) -> None:
    """Add the labels of another Doc's spans to a Doc's vocabulary."""
    for label in {span.label_ for span in spans}:
        doc.vocab.strings.add(label)


def spread_over_space(example: Example, unknown: NDArray[np.bool_]) -> None:
    """Mark unannotated white space as unknown if the tokens on both sides are, since an entity may go
    across it.

    (`get_aligned_ents_and_ner` says that it is in no entity.)
    """
    outside = [iob == ENT_OUTSIDE for iob in example.get_aligned("ENT_IOB")]
    open_space = np.array([token.is_space for token in example.x]) & ~np.array(outside, dtype=bool)
    for start, end in runs(open_space):
        if start > 0 and end < len(unknown) and unknown[start - 1] and unknown[end]:
            unknown[start:end] = True


def annotated_tokens(iob: NDArray[np.uint64], kind: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Is each token in an entity, or declared to be in none? (bool [N])"""
    return np.logical_or(kind, np.equal(iob, ENT_BEGIN))


def docs_with_entities(docs: Sequence[Doc], *columns: NDArray[np.uint64]) -> set[int]:
    """Numbers of the Docs in which earlier components have set entities, or ruled them out.

    columns (uint64 [N] each): ENT_IOB, ENT_TYPE and ENT_KB_ID of all tokens.
    """
    if not any(map(any_set, columns)):
        return set()
    iob, kind, kb_id = columns
    sequence = np.repeat(np.arange(len(docs)), [len(doc) for doc in docs])
    return set(sequence[annotated_tokens(iob, kind) | (kb_id != 0)].tolist())


def blocked(doc: Doc) -> list[Span]:
    """Tokens that an earlier component has declared to be in no entity."""
    iob, kind = doc.to_array(["ENT_IOB", "ENT_TYPE"]).T
    return [Span(doc, start, end) for start, end in runs((kind == 0) & (iob == ENT_BEGIN))]
