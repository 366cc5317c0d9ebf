"""Records of what the templates read from a Doc, in a twentieth of its memory.

Features are extracted again whenever features are added, so what they are extracted from must outlive
the Docs, which belong to the caller and may change. Only for this package's templates it is known what
they read, and that it is the same for every Doc.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore
from spacy.tokens import Doc, Span

from spacy_hocrf.features.items import ItemTemplate
from spacy_hocrf.features.pieces import PiecesTemplate
from spacy_hocrf.features.segments import LengthTemplate, TextTemplate, TransitionTemplate
from spacy_hocrf.features.spans import SpanTemplate
from spacy_hocrf.features.templates import (
    AttributeTemplate,
    FlagTemplate,
    NgramTemplate,
    PositionTemplate,
    RealTemplate,
)
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.features.vectors import Vectors

__all__ = [
    "RECORDABLE",
    "Record",
    "RecordedBatch",
    "RecordedSpan",
    "are_recordable",
    "record",
    "recordable",
]

RECORDABLE: set[type] = {
    AttributeTemplate,
    FlagTemplate,
    ItemTemplate,
    LengthTemplate,
    NgramTemplate,
    PiecesTemplate,
    PositionTemplate,
    RealTemplate,
    SpanTemplate,
    TextTemplate,
    TransitionTemplate,
    Vectors,
}
"""Classes of templates and dense scores; see `recordable`."""

AnyTemplate = TypeVar("AnyTemplate", bound=type)


@dataclass(frozen=True, slots=True)
class RecordedSpan:
    """A span of a span group, with the fields that templates read."""

    start: int
    end: int
    label: int  # StringStore hash

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Record:
    """The attributes read from a Doc of T tokens, sorted by name."""

    tokens: int  # T
    columns: bytes  # T values of each token attribute, one attribute after the other
    # for each span group, None if it is missing
    spans: tuple[tuple[RecordedSpan, ...] | None, ...]
    scores: tuple[NDArray[np.floating[Any]], ...]  # [S] for the spans of groups, float32 or float64
    # [T, ·] float32, or float64 if that would lose precision
    real: tuple[NDArray[np.floating[Any]], ...]

    def __len__(self) -> int:
        """Number of tokens."""
        return self.tokens


class RecordedBatch(TokenBatch):
    """A batch made of records, concatenated.

    records (Sequence[Record]): records of D Docs.
    reads (Sequence[str]): what was read of each of them, named as in `TokenBatch.reads`.
    strings (StringStore): store with the values' strings.
    learn (bool): as in `TokenBatch`.
    """

    def __init__(
        self,
        records: Sequence[Record],
        reads: Iterable[str],
        strings: StringStore,
        *,
        learn: bool = False,
    ) -> None:
        super().__init__((), learn=learn)
        self.offsets = np.cumsum([0, *map(len, records)], dtype=np.int64)
        self._records = records
        self._attributes, self._groups, self._scored, self._sources = _by_kind(reads)
        self._strings = strings

    @cached_property
    def strings(self) -> StringStore:
        """The store with the values' strings."""
        return self._strings

    def prefetch(self, attributes: Iterable[str]) -> None:
        """Concatenate the columns of several attributes."""
        for name in attributes:
            if name not in self._columns:
                self._read(name)

    def span_groups(self, key: str) -> list[list[Span]]:
        """Recorded spans of `doc.spans[key]`, for each Doc."""
        self.reads.add(f"spans:{key}")
        place = self._groups.index(key)
        return [cast(list[Span], list(record.spans[place] or ())) for record in self._records]

    def has_group(self, key: str) -> bool:
        """Did some Doc have `doc.spans[key]`?"""
        place = self._groups.index(key)
        return any(record.spans[place] is not None for record in self._records)

    def span_scores(self, key: str) -> list[NDArray[np.float64]]:
        """Recorded scores of the spans of `doc.spans[key]`, float64 [S] for each Doc."""
        self.reads.add(f"scores:{key}")
        place = self._scored.index(key)
        return [record.scores[place].astype(np.float64) for record in self._records]

    def real(self, source: str) -> list[NDArray[np.float64]]:
        """An array for every token of each Doc, float64 [T, A]."""
        self.reads.add(f"real:{source}")
        place = self._sources.index(source)
        return [record.real[place].astype(np.float64) for record in self._records]

    def _read(self, attribute: str) -> NDArray[np.uint64]:
        kind, place = _type_of(attribute), self._attributes.index(attribute)
        begin = sum(_type_of(name).itemsize for name in self._attributes[:place])
        end = begin + kind.itemsize
        values = b"".join(
            record.columns[begin * record.tokens : end * record.tokens] for record in self._records
        )
        self._columns[attribute] = np.frombuffer(values, dtype=kind).astype(np.uint64)
        return self._columns[attribute]


def recordable(template: AnyTemplate) -> AnyTemplate:
    """Declare that a class of templates reads Docs only by the methods of `TokenBatch`, and the same
    of every Doc. Subclasses are not included.
    """
    RECORDABLE.add(template)
    return template


def are_recordable(templates: Iterable[Any]) -> bool:
    """Is it known what these templates read? Templates by users, and subclasses of this package's templates,
    may look at the Docs.
    """
    return all(type(template) in RECORDABLE for template in templates)


def record(doc: Doc, reads: Iterable[str]) -> tuple[Record, bytes]:
    """Read a Doc into a record.

    reads (Iterable[str]): what to read, named as in `TokenBatch.reads`.
    RETURNS (tuple[Record, bytes]): the record, and the Doc's fingerprint.
    RAISES (ValueError): H025 or H027 for arrays that cannot be read, H181 for scores.
    """
    batch = TokenBatch([doc], learn=True)
    attributes, groups, scored, sources = _by_kind(reads)
    batch.prefetch(attributes)
    columns = b"".join(batch.column(name).astype(_type_of(name)).tobytes() for name in attributes)
    spans = (
        tuple(RecordedSpan(s.start, s.end, s.label) for s in batch.span_groups(key)[0])
        if batch.has_group(key)
        else None
        for key in groups
    )
    scores = (_compact(batch.span_scores(key)[0]) for key in scored)
    real = (_compact(batch.real(source)[0]) for source in sources)
    recorded = Record(len(doc), columns, tuple(spans), tuple(scores), tuple(real))
    return recorded, batch.fingerprint(sorted(reads))


def _by_kind(reads: Iterable[str]) -> tuple[list[str], ...]:
    """Names of attributes, of span groups, of those with scores, and of arrays, each sorted."""
    names, kinds = sorted(reads), ("spans:", "scores:", "real:")
    keys = ([name[len(kind) :] for name in names if name.startswith(kind)] for kind in kinds)
    return [name for name in names if not name.startswith(kinds)], *keys


def _type_of(attribute: str) -> np.dtype[np.unsignedinteger[Any]]:
    """Smallest type that can hold the values of an attribute."""
    if attribute.startswith(("IS_", "LIKE_")):
        return np.dtype(np.uint8)
    return np.dtype(np.uint16 if attribute == "FLAGS" else np.uint64)


def _compact(array: NDArray[np.float64]) -> NDArray[np.floating[Any]]:
    small = array.astype(np.float32)
    return small if (small == array).all() else array
