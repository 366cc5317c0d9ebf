"""What a component predicts: entities, a span group, or tags. Each target reads gold annotation and
writes predictions.

No other module in this folder writes predictions; `probabilities` writes their probabilities.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB, ENT_TYPE, TAG
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.types import Ints2d

from spacy_hocrf.annotation.annotation import UNKNOWN, Annotation, covered
from spacy_hocrf.annotation.prediction import Prediction, batch_of, decoded_spans, label_hashes
from spacy_hocrf.annotation.probabilities import (
    TAGS,
    SpanScore,
    add_scores,
    forget_scores,
    group_scores,
    has_scores,
    is_scored,
    keep_scores,
    tag_score_of,
)
from spacy_hocrf.annotation.spans import (
    CHARACTERS,
    ENT_OUTSIDE,
    alternative_groups,
    annotated_tokens,
    blocked,
    docs_with_entities,
    gold_spans,
    named,
    on_predicted,
    predicted,
    ranked_keys,
    same_tokens,
    scored,
    share_labels,
    spread_over_space,
    trimmed,
    unknown_parts,
    written_groups,
)
from spacy_hocrf.annotation.written_spans import WrittenSpans
from spacy_hocrf.features.columns import any_set, entity_columns, set_labels
from spacy_hocrf.features.tokens import TokenBatch

__all__ = [
    "EntsTarget",
    "SpansTarget",
    "TagsTarget",
    "Target",
]

ENT_COLUMNS = ("ENT_IOB", "ENT_TYPE", "ENT_KB_ID")  # they show whether there are entities

PerDoc = Sequence[Prediction]
Read = TokenBatch | None
"""The Docs as they were read, if they are unchanged since."""


class Target(Protocol):
    """Where annotation is read, and where predictions are written."""

    @property
    def place(self) -> str:
        """Where that is, as users write it."""
        ...

    @property
    def metric(self) -> str:
        """The score of `nlp.evaluate` that measures its predictions."""
        ...

    @property
    def texts_metric(self) -> str:
        """The score of `nlp.evaluate` for the share of texts that are right as a whole."""
        ...

    @property
    def answers(self) -> frozenset[str]:
        """Names of what this target writes, as in `TokenBatch.reads`; no template may read them."""
        ...

    @property
    def trims(self) -> bool:
        """Are written spans free of white space at either end?"""
        ...

    @property
    def overlapping(self) -> bool:
        """Are all spans written that are probable enough, even if they overlap?"""
        ...

    @property
    def n_best(self) -> int:
        """Number of best readings that are written besides the prediction."""
        ...

    def key(self, reference: Doc) -> bytes:
        """Return bytes that are equal for references with equal text and annotation."""
        ...

    def annotation(self, example: Example) -> Annotation:
        """Return the gold annotation on the predicted Doc's tokens."""
        ...

    @property
    def reads(self) -> tuple[str, ...]:
        """Token attributes that `presets` needs."""
        ...

    def presets(self, batch: TokenBatch) -> dict[int, Annotation]:
        """Return the annotation set by earlier components, by number of the Doc; only for Docs with some."""
        ...

    @property
    def writes_by(self) -> tuple[str, ...]:
        """Token attributes that `annotate` needs."""
        ...

    def annotate(self, docs: Sequence[Doc], predictions: PerDoc, read: Read = None) -> None:
        """Write the predictions of some Docs, besides the annotation that earlier components have set."""
        ...

    def forget(self, doc: Doc, start: int, end: int) -> None:
        """Remove what the next prediction should not keep: earlier predictions (whatever has a score, or
        everything if nothing has one), and anything on these tokens, start included and end not.
        """
        ...


@dataclass(frozen=True)
class EntsTarget:
    """`doc.ents`, with their probabilities.

    scores_key (Optional[str]): key of the probabilities, see `doc._.hocrf_scores`; null writes none.
    overwrite (bool): ignore existing entities, instead of keeping them and decoding the rest given them.
    n_best (int): number of readings that are written to `doc.spans[scores_key_1]` and so on.
    keeps_own (bool): keep existing entities even if a component has predicted them with such probabilities.
    spans (bool): write the same spans to `doc.spans[scores_key]`, with their probabilities.
    """

    scores_key: str | None
    overwrite: bool
    n_best: int = 0
    keeps_own: bool = True
    spans: bool = False
    trims = True
    overlapping = False
    place = "doc.ents"
    metric = "ents_f"
    texts_metric = "hocrf_texts_acc"

    @property
    def answers(self) -> frozenset[str]:
        groups = written_groups(self.scores_key, self.n_best)
        return frozenset({"ENT_TYPE", "ENT_IOB", "ENT_ID", "ENT_KB_ID", *groups})

    def key(self, reference: Doc) -> bytes:
        return reference.to_array(["ORTH", "SPACY", "ENT_IOB", "ENT_TYPE"]).tobytes()

    def annotation(self, example: Example) -> Annotation:
        if same_tokens(example) and example.y.has_annotation("ENT_IOB"):
            spans = named(example.y.ents)
            missing = example.y.to_array(ENT_IOB) != ENT_OUTSIDE
            return Annotation(spans, missing & ~covered(spans, len(missing)))
        share_labels(example.x, example.y.ents)
        ents, tags = example.get_aligned_ents_and_ner()
        unknown = np.array([tag is None for tag in tags], dtype=bool)
        if unknown.any() and not unknown.all():
            spread_over_space(example, unknown)
        return Annotation(trimmed(example.x, ents), unknown)

    @property
    def reads(self) -> tuple[str, ...]:
        return () if self.overwrite else ("ENT_IOB", "ENT_TYPE")

    def presets(self, batch: TokenBatch) -> dict[int, Annotation]:
        if self.overwrite:
            return {}
        iob, kind = batch.column("ENT_IOB"), batch.column("ENT_TYPE")
        if not (any_set(iob) or any_set(kind)):
            return {}
        annotated = annotated_tokens(iob, kind)
        presets = {}
        for i in np.unique(batch.sequence[annotated]).tolist():
            doc, tokens = batch.docs[i], slice(*batch.offsets[i : i + 2].tolist())
            own = set() if self.keeps_own else predicted(doc, self.scores_key)
            presets[i] = Annotation(named(doc.ents), ~annotated[tokens]).without(own)
        return presets

    @property
    def writes_by(self) -> tuple[str, ...]:
        return ENT_COLUMNS if self.scores_key is None else (*CHARACTERS, *ENT_COLUMNS)

    def annotate(self, docs: Sequence[Doc], predictions: PerDoc, read: Read = None) -> None:
        key, merged = self.scores_key, batch_of(predictions)
        batch = TokenBatch(docs) if read is None else read
        batch.prefetch(self.writes_by)
        with_entities = docs_with_entities(docs, *map(batch.column, ENT_COLUMNS))
        hashes = label_hashes(docs, merged.names)
        entities = entity_columns(batch.offsets, merged.spans, np.array(hashes, dtype=np.uint64))
        characters = None if key is None else [*map(batch.column, CHARACTERS)]
        decoded = decoded_spans(merged, hashes, batch.offsets, characters)
        bounds = pairwise(batch.offsets.tolist())
        for i, (doc, spans, (first, last)) in enumerate(zip(docs, decoded, bounds)):
            if i in with_entities:
                self._set_beside(doc, spans.spans(doc))
            elif first < last:  # as `doc.set_ents` would, at an eighth of its cost
                doc.from_array([ENT_IOB, ENT_TYPE], cast(Ints2d, entities[first:last]))
            if key is not None and spans.scores is not None:
                old_scores = forget_scores(doc, key)
                if i in with_entities and not old_scores:
                    old_scores = group_scores(doc, key)
                keep_scores(doc, key, spans, merged.names, also_none=i in with_entities)
                if self.spans:
                    doc.spans[key] = scored(doc, key, spans)
                elif len(doc.spans) and is_scored(doc.spans.get(key)):
                    del doc.spans[key]  # of an earlier prediction
                if old_scores:
                    self._add_scores(doc, key, old_scores)
            if self.n_best:
                _set_alternatives(doc, ranked_keys(key, self.n_best), predictions[i])

    def forget(self, doc: Doc, start: int, end: int) -> None:
        ours, ents = predicted(doc, self.scores_key), zip(doc.ents, named(doc.ents))
        others = [span for span, row in ents if row not in ours]
        elsewhere = [span for span in others if span.end <= start or end <= span.start]
        kept = elsewhere if has_scores(doc, self.scores_key) else []
        doc.set_ents(kept, blocked=blocked(doc))

    def _set_beside(self, doc: Doc, spans: Iterable[Span]) -> None:
        kept, none = ([], []) if self.overwrite else (list(doc.ents), blocked(doc))
        doc.set_ents(sorted([*kept, *spans], key=attrgetter("start")), blocked=none)

    def _add_scores(self, doc: Doc, key: str, scores: Iterable[SpanScore]) -> None:
        """Add scores of entities that still exist; scores already in the table take precedence."""
        ents = {(ent.start_char, ent.end_char, ent.label_): ent for ent in doc.ents}
        rows = add_scores(doc, key, (row for row in scores if row[:3] in ents))
        if self.spans:
            spans = [ents[row[:3]] for row in rows]
            attrs = {"scores": np.array([row.score for row in rows], np.float32), "hocrf": True}
            doc.spans[key] = WrittenSpans(doc, name=key, spans=spans, attrs=attrs)


@dataclass(frozen=True)
class SpansTarget:
    """`doc.spans[spans_key]`, with probabilities in its `attrs["scores"]`.

    overlapping (bool): write all spans with a probability of at least the threshold, instead of those that
        the decoder chooses.
    n_best (int): number of readings that are written to `doc.spans[spans_key_1]` and so on.
    """

    spans_key: str
    overlapping: bool = False
    n_best: int = 0
    trims = True
    reads = ()
    writes_by = CHARACTERS

    @property
    def place(self) -> str:
        return f"doc.spans['{self.spans_key}']"

    @property
    def metric(self) -> str:
        return f"spans_{self.spans_key}_f"

    @property
    def texts_metric(self) -> str:
        return f"spans_{self.spans_key}_texts_acc"

    @property
    def answers(self) -> frozenset[str]:
        return frozenset(written_groups(self.spans_key, self.n_best))

    def key(self, reference: Doc) -> bytes:
        spans = reference.spans[self.spans_key] if self.spans_key in reference.spans else None
        annotated = None if spans is None else (named(spans), spans.attrs.get(UNKNOWN))
        return reference.to_array(["ORTH", "SPACY"]).tobytes() + repr(annotated).encode()

    def annotation(self, example: Example) -> Annotation:
        unknown = np.zeros(len(example.x), dtype=bool)
        if self.spans_key not in example.y.spans:
            return Annotation((), ~unknown)
        group, chosen = example.y.spans[self.spans_key], gold_spans(example.y, self.spans_key)
        aligned, lost = chosen, unknown_parts(example.y, self.spans_key)
        if not same_tokens(example):
            aligned = on_predicted(example, chosen)
        if len(aligned) < len(chosen):
            missing = (span for span in chosen if not on_predicted(example, [span]))
            lost = [*lost, *((span.start, span.end) for span in missing)]
        for start, end in lost:
            tokens = example.alignment.y2x[start:end]
            unknown[min(tokens, default=0) : max(tokens, default=-1) + 1] = True
        for span in aligned if lost else ():
            unknown[span.start : span.end] = False
        left_out = len(group) - len(chosen)
        return Annotation(trimmed(example.x, aligned), unknown, left_out=left_out)

    def presets(self, batch: TokenBatch) -> dict[int, Annotation]:
        return {}

    def annotate(self, docs: Sequence[Doc], predictions: PerDoc, read: Read = None) -> None:
        key, merged = self.spans_key, batch_of(predictions)
        batch = TokenBatch(docs) if read is None else read
        batch.prefetch(self.writes_by)
        arguments = merged, label_hashes(docs, merged.names), batch.offsets
        decoded = decoded_spans(*arguments, [*map(batch.column, CHARACTERS)])
        for doc, prediction, spans in zip(docs, predictions, decoded):
            forget_scores(doc, key)
            keep_scores(doc, key, spans, merged.names)
            doc.spans[key] = scored(doc, key, spans)
            if self.n_best:
                _set_alternatives(doc, ranked_keys(key, self.n_best), prediction)

    def forget(self, doc: Doc, start: int, end: int) -> None:
        """Nothing to do: the next prediction replaces the group."""


@dataclass(frozen=True)
class TagsTarget:
    """`token.tag` of every token, and its probability for `token._.hocrf_score`.

    overwrite (bool): replace existing tags; otherwise they stay, and the other tags are decoded given them.
    """

    overwrite: bool
    n_best = 0
    trims = False  # white space has a tag like everything else
    overlapping = False
    place = "token.tag"
    metric = "tag_acc"
    texts_metric = "tag_texts_acc"
    writes_by = ("TAG",)

    @property
    def answers(self) -> frozenset[str]:
        return frozenset({"TAG"})

    def key(self, reference: Doc) -> bytes:
        return reference.to_array(["ORTH", "SPACY", "TAG"]).tobytes()

    def annotation(self, example: Example) -> Annotation:
        if same_tokens(example):
            numbers, strings = example.y.to_array(TAG).tolist(), example.y.vocab.strings
            spans = tuple((i, i + 1, strings[number]) for i, number in enumerate(numbers) if number)
            return Annotation(spans, np.array([not number for number in numbers], dtype=bool))
        tags = example.get_aligned("TAG", as_string=True)
        spans = tuple((i, i + 1, tag) for i, tag in enumerate(tags) if tag)
        return Annotation(spans, np.array([not tag for tag in tags], dtype=bool))

    @property
    def reads(self) -> tuple[str, ...]:
        return () if self.overwrite else ("TAG",)

    def presets(self, batch: TokenBatch) -> dict[int, Annotation]:
        if self.overwrite:
            return {}
        tags, strings = batch.column("TAG"), batch.strings
        presets = {}
        for i in np.unique(batch.sequence[tags != 0]).tolist():
            own = tags[batch.offsets[i] : batch.offsets[i + 1]]
            spans = tuple((int(t), int(t) + 1, strings[int(own[t])]) for t in np.flatnonzero(own))
            presets[i] = Annotation(spans, own == 0)
        return presets

    def annotate(self, docs: Sequence[Doc], predictions: PerDoc, read: Read = None) -> None:
        merged = batch_of(predictions)
        batch = TokenBatch(docs) if read is None else read
        batch.prefetch(self.writes_by)
        hashes, characters = label_hashes(docs, merged.names), None
        if merged.scores is not None:
            batch.prefetch(CHARACTERS)
            characters = [*map(batch.column, CHARACTERS)]
        tags = batch.column("TAG").copy()
        set_labels(tags, batch.offsets, merged.spans, np.array(hashes, dtype=np.uint64))
        decoded = decoded_spans(merged, hashes, batch.offsets, characters)
        for doc, spans, (first, last) in zip(docs, decoded, pairwise(batch.offsets.tolist())):
            if first < last:
                doc.from_array([TAG], cast(Ints2d, tags[first:last]))
            old_scores = forget_scores(doc, TAGS)
            keep_scores(doc, TAGS, spans, merged.names)
            if old_scores:
                add_scores(doc, TAGS, old_scores)

    def forget(self, doc: Doc, start: int, end: int) -> None:
        ours = [tag_score_of(token) is not None for token in doc]
        tags = cast("NDArray[np.uint64]", doc.to_array(TAG))
        forget_scores(doc, TAGS)
        if len(doc):
            tags[ours if any(ours) else slice(None)] = 0
            tags[start:end] = 0
            doc.from_array([TAG], cast(Ints2d, tags))


def _set_alternatives(doc: Doc, keys: Sequence[str], prediction: Prediction) -> None:
    """Write a span group for each of the best readings; delete those left over from an earlier prediction."""
    readings, groups = prediction.alternatives, doc.spans
    hashes = label_hashes([doc], prediction.names)
    for group in alternative_groups(doc, keys, readings, hashes) if readings else ():
        groups[group.name] = group
    for key in filter(groups.__contains__, keys[len(readings or ()) :]):
        del groups[key]
