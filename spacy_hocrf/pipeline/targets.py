"""What a component predicts: entities, a span group, or tags. Each target reads gold annotation and
writes predictions.

In this folder, this file alone writes Docs.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB, ENT_TYPE, TAG
from spacy.strings import StringStore
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import filter_spans
from thinc.types import Ints2d

from spacy_hocrf.features.columns import any_set, entity_columns, set_labels
from spacy_hocrf.features.tokens import TokenBatch, beginning
from spacy_hocrf.pipeline.annotation import Annotation
from spacy_hocrf.pipeline.spans import (
    ENT_BEGIN,
    ENT_OUTSIDE,
    TAG_SCORES,
    DecodedSpans,
    alternative_groups,
    blocked,
    named,
    predicted,
    same_tokens,
    scored,
    spread_over_space,
    trimmed,
)
from spacy_hocrf.warnings import Warnings

if TYPE_CHECKING:
    from spacy_hocrf.pipeline.alternatives import BestReadings

__all__ = [
    "EntsTarget",
    "Prediction",
    "SpansTarget",
    "TagsTarget",
    "Target",
]


class Prediction(NamedTuple):
    """Decoded spans of one Doc, without those that were there before; S of them."""

    start: NDArray[np.int32]  # [S] first token
    end: NDArray[np.int32]  # [S] one past the last token
    label: NDArray[np.int32]  # [S] place in `names`
    names: tuple[str, ...]  # the labels
    scores: NDArray[np.float64] | None  # [S] probability of each, None if nobody asked
    # of the Docs decoded together with this one, nats; None where every Doc is decoded alone
    gap: float | None = None
    # are these proved to be decoded best? None where every Doc is decoded alone
    certificate: bool | None = None
    alternatives: "BestReadings | None" = None  # if they are to be written

    @property
    def spans(self) -> tuple[tuple[int, int, str], ...]:
        """Start, end and label of each span."""
        labels = (self.names[y] for y in self.label.tolist())
        return tuple(zip(self.start.tolist(), self.end.tolist(), labels))


class Target(Protocol):
    """Where the annotation is, and where the predictions go."""

    @property
    def place(self) -> str:
        """Where that is, in the users' words."""
        ...

    @property
    def metric(self) -> str:
        """The score of `nlp.evaluate` that tells how right its predictions are."""
        ...

    @property
    def answers(self) -> frozenset[str]:
        """What this target writes, in the words of `TokenBatch.reads`; no template may read it."""
        ...

    @property
    def trims(self) -> bool:
        """Is there no white space at either end of what it writes?"""
        ...

    @property
    def overlapping(self) -> bool:
        """Are all spans written that are probable enough, also where they overlap?"""
        ...

    @property
    def n_best(self) -> int:
        """So many of the best readings are written besides."""
        ...

    def key(self, reference: Doc) -> bytes:
        """Equal for references with equal text and annotation."""
        ...

    def annotation(self, example: Example) -> Annotation:
        """The gold annotation on the predicted Doc's tokens."""
        ...

    @property
    def reads(self) -> tuple[str, ...]:
        """Token attributes that `presets` needs."""
        ...

    def presets(self, batch: TokenBatch) -> dict[int, Annotation]:
        """What earlier components have set, by the numbers of the Docs in which they have set
        anything.
        """
        ...

    def annotate(self, docs: Sequence[Doc], predictions: Sequence[Prediction]) -> None:
        """Write the predictions of some Docs, beside what earlier components have set."""
        ...

    def forget(self, doc: Doc) -> None:
        """Take back what was predicted, so that the next prediction does not keep it: what has a
        score, or everything if nothing has one.
        """
        ...


@dataclass(frozen=True)
class EntsTarget:
    """`doc.ents`, with the same spans and their probabilities in `doc.spans[scores_key]`.

    scores_key (Optional[str]): null writes no probabilities.
    overwrite (bool): ignore entities that are there already, instead of keeping them and decoding
        around them.
    n_best (int): so many readings are written to `doc.spans[scores_key_1]` and so on.
    keeps_own (bool): are entities that `doc.spans[scores_key]` has as predicted set before, too?
    """

    scores_key: str | None
    overwrite: bool
    n_best: int = 0
    keeps_own: bool = True
    trims = True
    overlapping = False
    place = "doc.ents"
    metric = "ents_f"

    @property
    def answers(self) -> frozenset[str]:
        groups = _groups(self.scores_key, self.n_best)
        return frozenset({"ENT_TYPE", "ENT_IOB", "ENT_ID", "ENT_KB_ID", *groups})

    def key(self, reference: Doc) -> bytes:
        return reference.to_array(["ORTH", "SPACY", "ENT_IOB", "ENT_TYPE"]).tobytes()

    def annotation(self, example: Example) -> Annotation:
        if same_tokens(example) and example.y.has_annotation("ENT_IOB"):
            spans = named(example.y.ents)
            missing = example.y.to_array(ENT_IOB) != ENT_OUTSIDE
            for start, end, _ in spans:
                missing[start:end] = False
            return Annotation(spans, missing)
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
        if not any(map(any_set, map(batch.column, self.reads))):
            return {}
        known = _annotated(batch)
        found = {}
        for i in np.unique(batch.sequence[known]).tolist():
            doc, tokens = batch.docs[i], slice(*batch.offsets[i : i + 2].tolist())
            own = set() if self.keeps_own else predicted(doc, self.scores_key)
            found[i] = Annotation(named(doc.ents), ~known[tokens]).without(own)
        return found

    def annotate(self, docs: Sequence[Doc], predictions: Sequence[Prediction]) -> None:
        before, found = self._before(docs), _found(docs, predictions)
        for i, (doc, prediction, spans) in enumerate(zip(docs, predictions, found)):
            if i in before:
                self._set_beside(doc, spans)
            elif len(doc):  # as `doc.set_ents` would, at an eighth of its cost
                columns = entity_columns(len(doc), spans.rows)
                doc.from_array([ENT_IOB, ENT_TYPE], cast(Ints2d, columns))
            if self.scores_key is not None and prediction.scores is not None:
                doc.spans[self.scores_key] = scored(doc, self.scores_key, spans, prediction.scores)
            _set_alternatives(doc, _ranked(self.scores_key, self.n_best), prediction)

    def forget(self, doc: Doc) -> None:
        ours, ents = predicted(doc, self.scores_key), zip(doc.ents, named(doc.ents))
        known = bool(self.scores_key) and self.scores_key in doc.spans
        kept = [span for span, row in ents if known and row not in ours]
        doc.set_ents(kept, blocked=blocked(doc))

    def _before(self, docs: Sequence[Doc]) -> set[int]:
        """Numbers of the Docs in which earlier components have set anything."""
        batch, attributes = TokenBatch(docs), ("ENT_IOB", "ENT_TYPE", "ENT_KB_ID")
        batch.prefetch(attributes)
        if not any(map(any_set, map(batch.column, attributes))):
            return set()
        known = _annotated(batch) | (batch.column("ENT_KB_ID") != 0)
        return set(batch.sequence[known].tolist())

    def _set_beside(self, doc: Doc, found: Iterable[Span]) -> None:
        kept = [] if self.overwrite else list(doc.ents)
        doc.set_ents(
            sorted([*kept, *found], key=attrgetter("start")),
            blocked=[] if self.overwrite else blocked(doc),
        )


@dataclass(frozen=True)
class SpansTarget:
    """`doc.spans[spans_key]`, with the probabilities in its `attrs["scores"]`.

    overlapping (bool): all spans that are as probable as the threshold, instead of those that the decoder
        chooses.
    n_best (int): so many readings are written to `doc.spans[spans_key_1]` and so on.
    """

    spans_key: str
    overlapping: bool = False
    n_best: int = 0
    trims = True
    reads = ()

    @property
    def place(self) -> str:
        return f"doc.spans['{self.spans_key}']"

    @property
    def metric(self) -> str:
        return f"spans_{self.spans_key}_f"

    @property
    def answers(self) -> frozenset[str]:
        return frozenset(_groups(self.spans_key, self.n_best))

    def key(self, reference: Doc) -> bytes:
        spans = reference.spans[self.spans_key] if self.spans_key in reference.spans else None
        annotated = None if spans is None else named(spans)
        return reference.to_array(["ORTH", "SPACY"]).tobytes() + repr(annotated).encode()

    def annotation(self, example: Example) -> Annotation:
        unknown = np.zeros(len(example.x), dtype=bool)
        if self.spans_key not in example.y.spans:
            return Annotation((), ~unknown)
        gold = list(example.y.spans[self.spans_key])
        chosen = filter_spans(gold)
        if len(chosen) < len(gold):
            text = beginning(example.y)
            warnings.warn(
                Warnings.W003.format(key=self.spans_key, found=len(gold) - len(chosen), text=text),
                stacklevel=2,
            )
        aligned = (
            chosen
            if same_tokens(example)
            else example.get_aligned_spans_y2x(chosen, allow_overlap=False)
        )
        if len(aligned) < len(chosen):
            for span in chosen:
                if not example.get_aligned_spans_y2x([span]):
                    tokens = example.alignment.y2x[span.start : span.end]
                    unknown[min(tokens, default=0) : max(tokens, default=-1) + 1] = True
            for span in aligned:
                unknown[span.start : span.end] = False
        return Annotation(trimmed(example.x, aligned), unknown)

    def presets(self, batch: TokenBatch) -> dict[int, Annotation]:
        return {}

    def annotate(self, docs: Sequence[Doc], predictions: Sequence[Prediction]) -> None:
        for doc, prediction, spans in zip(docs, predictions, _found(docs, predictions)):
            doc.spans[self.spans_key] = scored(doc, self.spans_key, spans, prediction.scores)
            _set_alternatives(doc, _ranked(self.spans_key, self.n_best), prediction)

    def forget(self, doc: Doc) -> None:
        """Nothing to do: the next prediction replaces the group."""


@dataclass(frozen=True)
class TagsTarget:
    """`token.tag` of every token, and its probability for `token._.hocrf_score`.

    overwrite (bool): replace tags that are there already; otherwise they stay, and the others are
        decoded around them.
    """

    overwrite: bool
    n_best = 0
    trims = False  # white space has a tag like everything else
    overlapping = False
    place = "token.tag"
    metric = "tag_acc"

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
        found = {}
        for i in np.unique(batch.sequence[tags != 0]).tolist():
            here = tags[batch.offsets[i] : batch.offsets[i + 1]]
            spans = tuple((int(t), int(t) + 1, strings[int(here[t])]) for t in np.flatnonzero(here))
            found[i] = Annotation(spans, here == 0)
        return found

    def annotate(self, docs: Sequence[Doc], predictions: Sequence[Prediction]) -> None:
        for doc, prediction, found in zip(docs, predictions, _found(docs, predictions)):
            if len(doc):
                tags = cast("NDArray[np.uint64]", doc.to_array(TAG))
                set_labels(tags, found.rows)
                doc.from_array([TAG], cast(Ints2d, tags))
            doc.user_data.pop(TAG_SCORES, None)
            if prediction.scores is not None:
                scores = np.full(len(doc), np.nan, dtype=np.float32)
                scores[prediction.start] = prediction.scores
                doc.user_data[TAG_SCORES] = scores

    def forget(self, doc: Doc) -> None:
        scores = doc.user_data.pop(TAG_SCORES, None)
        tags = cast("NDArray[np.uint64]", doc.to_array(TAG))
        if len(doc):
            tags[np.isfinite(scores) if scores is not None else slice(None)] = 0
            doc.from_array([TAG], cast(Ints2d, tags))


def _annotated(batch: TokenBatch) -> NDArray[np.bool_]:
    """Is each token in an entity, or declared to be in none? bool [N]"""
    blocked = np.equal(batch.column("ENT_IOB"), ENT_BEGIN)
    return np.logical_or(batch.column("ENT_TYPE"), blocked)


def _found(docs: Sequence[Doc], predictions: Sequence[Prediction]) -> Iterator[DecodedSpans]:
    """The decoded spans Doc by Doc; their labels are then in the Docs' StringStores, which may forget
    them later (`nlp.memory_zone`).
    """
    known: StringStore | None = None
    names: tuple[str, ...] = ()
    hashes = list[int]()
    for doc, prediction in zip(docs, predictions):
        if doc.vocab.strings is not known or prediction.names is not names:
            known, names = doc.vocab.strings, prediction.names
            hashes = [known.add(name) for name in names]
        labels = [hashes[y] for y in prediction.label.tolist()]
        yield DecodedSpans(doc, prediction.start.tolist(), prediction.end.tolist(), labels)


def _groups(key: str | None, n: int) -> list[str]:
    return [f"spans:{name}" for name in (key, *_ranked(key, n))]


def _ranked(key: str | None, n: int) -> list[str]:
    return [f"{key}_{rank}" for rank in range(1, n + 1)]


def _set_alternatives(doc: Doc, keys: Sequence[str], prediction: Prediction) -> None:
    """A span group for each of the best readings; what is left of an earlier prediction goes."""
    for key in filter(doc.spans.__contains__, keys) if keys else ():
        del doc.spans[key]
    for group in alternative_groups(doc, keys, prediction.alternatives) if keys else ():
        doc.spans[group.name] = group
