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
from spacy_hocrf.pipeline.annotation import Annotation, trim

__all__ = ["EntsTarget", "Prediction", "SpansTarget", "TagsTarget", "Target"]


@dataclass(frozen=True)
class Prediction:
    """Decoded spans of one Doc."""

    spans: tuple[tuple[int, int, str], ...]  # start, end, label
    scores: NDArray[np.float64] | None  # [spans] probability of each, None if nobody asked
    preset: tuple[tuple[int, int, str], ...] = ()  # spans that were there before


class Target(Protocol):
    """Where the annotation is, and where the predictions go."""

    attribute: str | None
    """Token attribute that holds the annotation; no template may read it."""

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
        """Write a prediction."""
        ...


@dataclass(frozen=True)
class EntsTarget:
    """`doc.ents`, with the same spans and their probabilities in `doc.spans[scores_key]`.

    scores_key (Optional[str]): null writes no probabilities.
    overwrite (bool): ignore entities that are there already, instead of keeping them and decoding around them.
    """

    scores_key: str | None
    overwrite: bool
    attribute: str | None = "ENT_TYPE"

    def key(self, reference: Doc) -> bytes:
        return reference.to_array(["ORTH", "SPACY", "ENT_IOB", "ENT_TYPE"]).tobytes()

    def annotation(self, example: Example) -> Annotation:
        ents, tags = example.get_aligned_ents_and_ner()
        unknown = np.array([tag is None for tag in tags], dtype=bool)
        return Annotation(_trimmed(example.x, ents), unknown)

    def preset(self, doc: Doc) -> Annotation | None:
        if self.overwrite or not doc.has_annotation("ENT_IOB"):
            return None
        blocked = [token.ent_iob == 3 and token.ent_type == 0 for token in doc]
        unknown = np.array([token.ent_type == 0 for token in doc], dtype=bool) & ~np.array(blocked, dtype=bool)
        if unknown.all():
            return None
        return Annotation(tuple((ent.start, ent.end, ent.label_) for ent in doc.ents), unknown)

    def annotate(self, doc: Doc, prediction: Prediction) -> None:
        found = [Span(doc, start, end, label=label) for start, end, label in prediction.spans]
        kept = [ent for ent in doc.ents if (ent.start, ent.end, ent.label_) in prediction.preset]
        doc.set_ents(sorted([*kept, *found], key=lambda span: span.start))
        if self.scores_key is not None and prediction.scores is not None:
            doc.spans[self.scores_key] = _scored(doc, self.scores_key, found, prediction.scores)


@dataclass(frozen=True)
class SpansTarget:
    """`doc.spans[spans_key]`, with the probabilities in its `attrs["scores"]`."""

    spans_key: str
    attribute: str | None = None

    def key(self, reference: Doc) -> bytes:
        spans = reference.spans[self.spans_key] if self.spans_key in reference.spans else None
        named = [(span.start, span.end, span.label_) for span in spans] if spans is not None else None
        return reference.to_array(["ORTH", "SPACY"]).tobytes() + repr(named).encode()

    def annotation(self, example: Example) -> Annotation:
        if self.spans_key not in example.y.spans:
            return Annotation((), np.ones(len(example.x), dtype=bool))
        gold = list(example.y.spans[self.spans_key])
        chosen = filter_spans(gold)
        if len(chosen) < len(gold):
            text = example.y.text[:60]
            warnings.warn(Warnings.W003.format(key=self.spans_key, found=len(gold) - len(chosen), text=text), stacklevel=2)
        aligned = example.get_aligned_spans_y2x(chosen, allow_overlap=False)
        unknown = np.zeros(len(example.x), dtype=bool)
        if len(aligned) < len(chosen):
            texts = [(span.label, span.text.strip()) for span in aligned]
            for span in chosen:
                if (span.label, span.text.strip()) not in texts:
                    unknown[example.alignment.y2x[span.start : span.end]] = True
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
    attribute: str | None = "TAG"

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


def _trimmed(doc: Doc, spans: Sequence[Span]) -> tuple[tuple[int, int, str], ...]:
    trimmed = ((*trim(doc, span.start, span.end), span.label_) for span in spans)
    return tuple(sorted((start, end, label) for start, end, label in trimmed if start < end))


def _scored(doc: Doc, key: str, spans: Sequence[Span], scores: NDArray[np.float64] | None) -> SpanGroup:
    attrs: dict[str, Any] = {} if scores is None else {"scores": scores.astype(np.float32)}
    return SpanGroup(doc, name=key, spans=spans, attrs=attrs)
