"""Counts for scores: correct, predicted and annotated items of every document, label by label.

An item is a label with its tokens, without white space at either end of a span. There is a scorer for
each place where a Doc has items. They count as a component's `score` does, so that F1 is the one that
`spacy evaluate` prints.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB, TAG
from spacy.tokens import Doc, Span

from spacy_hocrf.annotation import scoring
from spacy_hocrf.annotation.spans import trimmed
from spacy_hocrf.cli.errors import CommandErrors

__all__ = [
    "Counts",
    "EntsScorer",
    "Item",
    "Scorer",
    "SpansScorer",
    "TagsScorer",
    "count_items",
    "counts_by_label",
    "is_complete",
]

Item = tuple[str, int, int]  # label, first token, one past the last token


class Scorer(Protocol):
    """Reads the items of a Doc from one place: doc.ents, doc.spans or tags."""

    @property
    def place(self) -> str:
        """Where the items are, in the users' words."""
        ...

    def annotated(self, doc: Doc) -> bool:
        """Is the Doc annotated at all? If not, it is not scored."""
        ...

    def items(self, doc: Doc) -> set[Item]:
        """The items of a Doc."""
        ...

    def unknown(self, doc: Doc) -> NDArray[np.bool_] | None:
        """Tokens with unknown annotation, bool [T]; None for none. Predictions there do not count."""
        ...


class EntsScorer:
    """Counts spans of `doc.ents`."""

    place = "doc.ents"

    def annotated(self, doc: Doc) -> bool:
        return doc.has_annotation("ENT_IOB")

    def items(self, doc: Doc) -> set[Item]:
        return _items_of(doc, doc.ents)

    def unknown(self, doc: Doc) -> NDArray[np.bool_] | None:
        unknown: NDArray[np.bool_] = doc.to_array(ENT_IOB) == 0
        return unknown


@dataclass(frozen=True)
class SpansScorer:
    """Counts spans of `doc.spans[key]`, which may overlap."""

    key: str

    @property
    def place(self) -> str:
        return f"doc.spans['{self.key}']"

    def annotated(self, doc: Doc) -> bool:
        return self.key in doc.spans

    def items(self, doc: Doc) -> set[Item]:
        return _items_of(doc, list(doc.spans[self.key])) if self.key in doc.spans else set()

    def unknown(self, doc: Doc) -> NDArray[np.bool_] | None:
        return None


class TagsScorer:
    """Counts `token.tag` of every token. F1 is the accuracy, unless a tag such as "O" is ignored."""

    place = "token.tag"

    def annotated(self, doc: Doc) -> bool:
        return doc.has_annotation("TAG")

    def items(self, doc: Doc) -> set[Item]:
        return {(token.tag_, token.i, token.i + 1) for token in doc if token.tag}

    def unknown(self, doc: Doc) -> NDArray[np.bool_] | None:
        unknown: NDArray[np.bool_] = doc.to_array(TAG) == 0
        return unknown


@dataclass(frozen=True)
class Counts:
    """Numbers of items in D documents, by L labels, for S systems."""

    labels: tuple[str, ...]
    correct: NDArray[np.int32]  # [S, D, L]
    predicted: NDArray[np.int32]  # [S, D, L]
    gold: NDArray[np.int32]  # [D, L]
    complete: NDArray[np.bool_] | None = None  # [D] annotated completely? None: all are

    def whole(self) -> NDArray[np.bool_]:
        """Which of the n completely annotated documents each system has entirely right, with all annotated
        items and no others: bool [S, n].
        """
        counts = (self.correct, self.predicted, self.gold)
        correct, predicted, gold = (count.sum(axis=-1) for count in counts)
        every = slice(None) if self.complete is None else self.complete
        same: NDArray[np.bool_] = (correct == predicted) & (correct == gold)
        return same[:, every]


def count_items(
    scorer: Scorer,
    systems: Sequence[Sequence[Doc]],
    gold: Sequence[Doc],
    *,
    labels: Collection[str] = (),
    ignore: Collection[str] = (),
) -> Counts:
    """Count the items that some systems have predicted in the same documents.

    systems (Sequence[Sequence[Doc]]): their predictions, on the tokens of the annotation.
    gold (Sequence[Doc]): the annotation.
    labels (Collection[str]): count these only; by default all.
    ignore (Collection[str]): labels that do not count.
    RETURNS (Counts): labels in alphabetical order.
    RAISES (ValueError): H072 for a label that does not occur.
    """
    predicted, annotated = _items(scorer, systems, gold)
    occurring = {label for docs in (annotated, *predicted) for doc in docs for label, _, _ in doc}
    unknown = sorted({*labels, *ignore} - occurring)
    if unknown:
        raise ValueError(
            CommandErrors.H072.format(
                label=unknown[0], place=scorer.place, known=", ".join(sorted(occurring))
            )
        )
    names = tuple(sorted((set(labels) or occurring) - set(ignore)))
    correct = [[a & b for a, b in zip(system, annotated)] for system in predicted]
    return Counts(
        names,
        np.stack([counts_by_label(system, names) for system in correct]),
        np.stack([counts_by_label(system, names) for system in predicted]),
        counts_by_label(annotated, names),
        np.array([is_complete(scorer, doc) for doc in gold], dtype=bool),
    )


def is_complete(scorer: Scorer, doc: Doc) -> bool:
    """Is the document annotated completely, so that it is scored as a whole text?"""
    return scoring.is_fully_annotated(doc, scorer.place, getattr(scorer, "key", None))


def _items_of(doc: Doc, spans: Sequence[Span]) -> set[Item]:
    return {(label, start, end) for start, end, label in trimmed(doc, spans)}


def _items(
    scorer: Scorer, systems: Sequence[Sequence[Doc]], gold: Sequence[Doc]
) -> tuple[list[list[set[Item]]], list[set[Item]]]:
    """Collect the items that count, of every system and of the annotation."""
    predicted: list[list[set[Item]]] = [[] for _ in systems]
    annotated: list[set[Item]] = []
    for doc, *predictions in zip(gold, *systems, strict=True):
        is_annotated = scorer.annotated(doc)
        unknown = scorer.unknown(doc) if is_annotated else None
        annotated.append(scorer.items(doc) if is_annotated else set())
        for items, prediction in zip(predicted, predictions):
            kept = scorer.items(prediction) if is_annotated else set()
            if unknown is not None and unknown.any():
                kept = {item for item in kept if not unknown[item[1] : item[2]].any()}
            items.append(kept)
    return predicted, annotated


def counts_by_label(
    documents: Sequence[Collection[Item]], names: Sequence[str]
) -> NDArray[np.int32]:
    """Count the items of each label, int32 [D, L]."""
    column = {name: i for i, name in enumerate(names)}
    table = np.zeros((len(documents), len(names)), dtype=np.int32)
    for row, items in zip(table, documents):
        for label, number in Counter(label for label, _, _ in items).items():
            if label in column:
                row[column[label]] = number
    return table
