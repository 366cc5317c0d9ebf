"""What a component predicts: entities, a span group, or tags. Each target reads gold annotation and writes predictions.

This file alone writes Docs.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.util import filter_spans

from spacy_hocrf.errors import Warnings
from spacy_hocrf.pipeline.annotation import Annotation, runs, trim

__all__ = ["EntsTarget", "Prediction", "SpansTarget", "TagsTarget", "Target", "span_score"]

ENT_INSIDE, ENT_MISSING, ENT_OUTSIDE, ENT_BEGIN = 1, 0, 2, 3
"""Values of `token.ent_iob`; the beginning of no type is spaCy's "blocked"."""


@dataclass(frozen=True)
class Prediction:
    """Decoded spans of one Doc, without those that were there before."""

    spans: tuple[tuple[int, int, str], ...]  # start, end, label
    scores: NDArray[np.float64] | None  # [spans] probability of each, None if nobody asked


class Target(Protocol):
    """Where the annotation is, and where the predictions go."""

    @property
    def place(self) -> str:
        """Where that is, in the users' words."""
        ...

    @property
    def answers(self) -> frozenset[str]:
        """What this target writes, in the words of `TokenBatch.reads`; no template may read it."""
        ...

    @property
    def trims(self) -> bool:
        """Is there no white space at either end of what it writes?"""
        ...

    def key(self, reference: Doc) -> bytes:
        """Equal for references with equal text and annotation."""
        ...

    def annotation(self, example: Example) -> Annotation:
        """The gold annotation on the predicted Doc's tokens."""
        ...

    def preset(self, doc: Doc) -> Annotation | None:
        """What earlier components have set, None for nothing."""
        ...

    def annotate(self, doc: Doc, prediction: Prediction) -> None:
        """Write a prediction, beside what earlier components have set."""
        ...


@dataclass(frozen=True)
class EntsTarget:
    """`doc.ents`, with the same spans and their probabilities in `doc.spans[scores_key]`.

    scores_key (Optional[str]): null writes no probabilities.
    overwrite (bool): ignore entities that are there already, instead of keeping them and decoding around them.
    """

    scores_key: str | None
    overwrite: bool
    trims = True
    place = "doc.ents"

    @property
    def answers(self) -> frozenset[str]:
        return frozenset({"ENT_TYPE", "ENT_IOB", "ENT_ID", "ENT_KB_ID", f"spans:{self.scores_key}"})

    def key(self, reference: Doc) -> bytes:
        return reference.to_array(["ORTH", "SPACY", "ENT_IOB", "ENT_TYPE"]).tobytes()

    def annotation(self, example: Example) -> Annotation:
        ents, tags = example.get_aligned_ents_and_ner()
        unknown = np.array([tag is None for tag in tags], dtype=bool)
        if unknown.any() and not unknown.all():
            _spread_over_space(example, unknown)
        return Annotation(_trimmed(example.x, ents), unknown)

    def preset(self, doc: Doc) -> Annotation | None:
        if self.overwrite or not len(doc):
            return None
        iob, kind = doc.to_array(["ENT_IOB", "ENT_TYPE"]).T
        unknown = (kind == 0) & (iob != ENT_BEGIN)
        return None if unknown.all() else Annotation(_named(doc.ents), unknown)

    def annotate(self, doc: Doc, prediction: Prediction) -> None:
        found = [Span(doc, start, end, label=label) for start, end, label in prediction.spans]
        if len(doc):
            kept = [] if self.overwrite else list(doc.ents)
            doc.set_ents(sorted([*kept, *found], key=_start), blocked=[] if self.overwrite else _blocked(doc))
        if self.scores_key is not None and prediction.scores is not None:
            doc.spans[self.scores_key] = _scored(doc, self.scores_key, found, prediction.scores)


@dataclass(frozen=True)
class SpansTarget:
    """`doc.spans[spans_key]`, with the probabilities in its `attrs["scores"]`."""

    spans_key: str
    trims = True

    @property
    def place(self) -> str:
        return f"doc.spans['{self.spans_key}']"

    @property
    def answers(self) -> frozenset[str]:
        return frozenset({f"spans:{self.spans_key}"})

    def key(self, reference: Doc) -> bytes:
        spans = reference.spans[self.spans_key] if self.spans_key in reference.spans else None
        named = None if spans is None else _named(spans)
        return reference.to_array(["ORTH", "SPACY"]).tobytes() + repr(named).encode()

    def annotation(self, example: Example) -> Annotation:
        unknown = np.zeros(len(example.x), dtype=bool)
        if self.spans_key not in example.y.spans:
            return Annotation((), ~unknown)
        gold = list(example.y.spans[self.spans_key])
        chosen = filter_spans(gold)
        if len(chosen) < len(gold):
            text = example.y.text[:60]
            warnings.warn(Warnings.W003.format(key=self.spans_key, found=len(gold) - len(chosen), text=text), stacklevel=2)
        aligned = example.get_aligned_spans_y2x(chosen, allow_overlap=False)
        if len(aligned) < len(chosen):
            for span in chosen:
                if not example.get_aligned_spans_y2x([span]):
                    tokens = example.alignment.y2x[span.start : span.end]
                    unknown[min(tokens, default=0) : max(tokens, default=-1) + 1] = True
            for span in aligned:
                unknown[span.start : span.end] = False
        return Annotation(_trimmed(example.x, aligned), unknown)

    def preset(self, doc: Doc) -> Annotation | None:
        return None

    def annotate(self, doc: Doc, prediction: Prediction) -> None:
        found = [Span(doc, start, end, label=label) for start, end, label in prediction.spans]
        doc.spans[self.spans_key] = _scored(doc, self.spans_key, found, prediction.scores)


@dataclass(frozen=True)
class TagsTarget:
    """`token.tag` of every token.

    overwrite (bool): replace tags that are there already; otherwise they stay, and the others are decoded around them.
    """

    overwrite: bool
    trims = False  # white space has a tag like everything else
    place = "token.tag"

    @property
    def answers(self) -> frozenset[str]:
        return frozenset({"TAG"})

    def key(self, reference: Doc) -> bytes:
        return reference.to_array(["ORTH", "SPACY", "TAG"]).tobytes()

    def annotation(self, example: Example) -> Annotation:
        tags = example.get_aligned("TAG", as_string=True)
        spans = tuple((i, i + 1, tag) for i, tag in enumerate(tags) if tag)
        return Annotation(spans, np.array([not tag for tag in tags], dtype=bool))

    def preset(self, doc: Doc) -> Annotation | None:
        if self.overwrite or not doc.has_annotation("TAG"):
            return None
        spans = tuple((token.i, token.i + 1, token.tag_) for token in doc if token.tag)
        return Annotation(spans, np.array([token.tag == 0 for token in doc], dtype=bool))

    def annotate(self, doc: Doc, prediction: Prediction) -> None:
        for start, end, label in prediction.spans:
            for i in range(start, end):
                doc[i].tag_ = label


def span_score(span: Span) -> float | None:
    """Probability of a span that a component of ours has predicted: `span._.hocrf_score`; None for any other span."""
    for group in span.doc.spans.values():
        if "hocrf" in group.attrs:
            place = _find(group, span)
            if place is not None:
                return float(group.attrs["scores"][place])
    return None


def _find(group: SpanGroup, span: Span) -> int | None:
    """Place of an equal span in a group sorted by start."""
    low, high = 0, len(group)
    while low < high:
        middle = (low + high) // 2
        if group[middle].start < span.start:
            low = middle + 1
        else:
            high = middle
    if low < len(group) and _named([group[low]]) == _named([span]):
        return low
    return None


def _scored(doc: Doc, key: str, spans: Sequence[Span], scores: NDArray[np.float64] | None) -> SpanGroup:
    """A span group in which `span_score` finds its spans."""
    attrs: dict[str, Any] = {} if scores is None else {"scores": scores.astype(np.float32), "hocrf": True}
    return SpanGroup(doc, name=key, spans=spans, attrs=attrs)


def _named(spans: Sequence[Span] | SpanGroup) -> tuple[tuple[int, int, str], ...]:
    return tuple((span.start, span.end, span.label_) for span in spans)


def _start(span: Span) -> int:
    return int(span.start)


def _trimmed(doc: Doc, spans: Sequence[Span]) -> tuple[tuple[int, int, str], ...]:
    trimmed = ((*trim(doc, span.start, span.end), span.label_) for span in spans)
    return tuple(sorted((start, end, label) for start, end, label in trimmed if start < end))


def _blocked(doc: Doc) -> list[Span]:
    """Tokens that an earlier component has declared to be in no entity."""
    iob, kind = doc.to_array(["ENT_IOB", "ENT_TYPE"]).T
    return [Span(doc, start, end) for start, end in runs((kind == 0) & (iob == ENT_BEGIN))]


def _spread_over_space(example: Example, unknown: NDArray[np.bool_]) -> None:
    """White space that the annotation leaves open is unknown between unknown tokens, since an entity may go across it.

    (`get_aligned_ents_and_ner` says that it is in no entity.)
    """
    known = [iob == ENT_OUTSIDE for iob in example.get_aligned("ENT_IOB")]
    open_space = np.array([token.is_space for token in example.x]) & ~np.array(known, dtype=bool)
    for start, end in runs(open_space):
        if start > 0 and end < len(unknown) and unknown[start - 1] and unknown[end]:
            unknown[start:end] = True
