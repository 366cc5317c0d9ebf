"""Span groups that stay correct when tokens of their Doc are merged or split.

spaCy does not update span groups then. A span beyond the last token makes `to_bytes`, `copy`, `to_json`,
displacy and multiprocessing `nlp.pipe` fail (E035); other spans silently cover different tokens.
"""

from collections.abc import Iterator, Sequence
from struct import pack, unpack
from typing import Any, NamedTuple, cast

import numpy as np
import srsly
from numpy.typing import NDArray
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc, Span, SpanGroup

from spacy_hocrf.annotation.prediction import DecodedSpans

__all__ = ["WrittenSpans", "edges"]

ROW_FORMAT = ">QQQllll"
"""Format of a `_Row` in `SpanGroup.to_bytes`."""


class _Row(NamedTuple):
    """The fields of a span in a SpanGroup."""

    span_id: int
    kb_id: int
    label: int
    start: int
    end: int
    start_char: int
    end_char: int


class WrittenSpans(SpanGroup):
    """A span group that identifies spans by their characters. Spans that no longer begin and end at token
    boundaries are dropped, and their scores, too.

    Decoded spans are made on first access, which most Docs never see.

    doc (Doc): the Doc that has the spans.
    name (str): key of `doc.spans`.
    spans (Union[DecodedSpans, Sequence[Span]]): the spans.
    attrs (Dict[str, Any]): attrs of the group; "scores" has one score per span.
    part (Optional[Tuple[int, int]]): range of the decoded spans: the first, and one past the last.
    """

    # the decoded columns themselves: DecodedSpans or a slice would be objects for the garbage collector
    __slots__ = ("_columns", "_first", "_hashes", "_last", "_starts")

    def __init__(
        self,
        doc: Doc,
        *,
        name: str,
        spans: DecodedSpans | list[Span],
        attrs: dict[str, Any],
        part: tuple[int, int] | None = None,
    ) -> None:
        self._columns: tuple[NDArray[Any], ...] | None = None
        if isinstance(spans, DecodedSpans):
            super().__init__(doc, name=name, attrs=attrs)
            self._columns, self._hashes = spans.columns, spans.hashes
            self._first, self._last = part or (spans.first, spans.last)
        else:
            super().__init__(doc, name=name, attrs=attrs, spans=spans)
        # first characters of the tokens, uint64 [T], when the spans were last aligned
        self._starts: NDArray[np.uint64] | None = None

    def __len__(self) -> int:
        self._follow_count()
        return super().__len__()

    def __getitem__(self, i: int) -> Span:
        self._follow_count()
        return super().__getitem__(i)

    def __setitem__(self, i: int, span: Span) -> None:
        self._follow()
        super().__setitem__(i, span)  # type: ignore[misc]

    def __delitem__(self, i: int) -> None:
        self._follow()
        super().__delitem__(i)  # type: ignore[misc]

    def __iter__(self) -> Iterator[Span]:
        self._follow()
        return super().__iter__()

    def append(self, span: Span) -> None:
        """Append a span, see `SpanGroup.append`."""
        self._follow()
        super().append(span)

    def to_bytes(self) -> bytes:
        """Serialise the group, see `SpanGroup.to_bytes`."""
        self._follow()
        return super().to_bytes()

    def copy(self, doc: Doc | None = None) -> "WrittenSpans":
        """Copy the group, see `SpanGroup.copy`; the copy follows its own Doc."""
        self._follow()
        copied = super().copy(doc)
        return WrittenSpans(copied.doc, name=copied.name, spans=list(copied), attrs=copied.attrs)

    def _concat(self, other: Any, *, inplace: bool = False) -> SpanGroup:
        self._follow()
        copied: SpanGroup = super()._concat(other, inplace=inplace)  # type: ignore[misc]
        return copied

    def _follow_count(self) -> None:
        """Realign the spans if the number of tokens has changed."""
        doc = self._living_doc()
        if doc is None or self._starts is None or len(self._starts) != len(doc):
            self._follow()

    def _follow(self) -> None:
        """Realign the spans with the current tokens."""
        doc = self._living_doc()
        if doc is None:
            self._fill(self._rows())
            return
        starts, ends = edges(doc)
        if self._starts is not None and np.array_equal(self._starts, starts):
            return
        rows = self._rows()
        placed = _placed(rows, starts.tolist(), ends.tolist())
        if None in placed and len(self.attrs.get("scores", ())) == len(rows):
            kept = [row is not None for row in placed]
            self.attrs["scores"] = np.asarray(self.attrs["scores"])[kept]
        self._fill([row for row in placed if row is not None])
        self._starts = starts

    def _living_doc(self) -> Doc | None:
        """The Doc; None once it is gone."""
        try:
            return self.doc
        except RuntimeError:  # E865
            return None

    def _fill(self, rows: Sequence[_Row]) -> None:
        """Replace the spans of the group."""
        doc, self._columns = self._living_doc(), None
        if doc is not None and not super().__len__():
            for row in rows:
                span = Span(
                    doc, row.start, row.end, row.label, kb_id=row.kb_id, span_id=row.span_id
                )
                super().append(span)
            return
        spans, attrs = [pack(ROW_FORMAT, *row) for row in rows], self.attrs
        self.from_bytes(srsly.msgpack_dumps({"name": self.name, "attrs": {}, "spans": spans}))
        self.attrs = attrs

    def _rows(self) -> list[_Row]:
        """The spans, as they were last aligned."""
        if self._columns is not None:
            own = slice(self._first, self._last)
            start, end, label, first, last = (column[own].tolist() for column in self._columns)
            hashes = map(self._hashes.__getitem__, label)
            return [_Row(0, 0, *row) for row in zip(hashes, start, end, first, last)]
        attrs, self.attrs = self.attrs, {}
        spans = srsly.msgpack_loads(super().to_bytes())["spans"]
        self.attrs = attrs
        return [_Row(*unpack(ROW_FORMAT, span)) for span in spans]


def _placed(rows: Sequence[_Row], starts: Sequence[int], ends: Sequence[int]) -> list[_Row | None]:
    """Return the spans on the tokens with their characters, None for spans that do not fit the tokens.

    starts, ends (Sequence[int]): first character, and one past the last, of each token.
    """
    n, placed = len(starts), list[_Row | None]()
    first, last = dict(zip(starts, range(n))), dict(zip(ends, range(1, n + 1)))
    for row in rows:
        start, end = first.get(row.start_char, n), last.get(row.end_char, 0)
        placed.append(row._replace(start=start, end=end) if start < end else None)
    return placed


def edges(doc: Doc) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """First character, and one past the last, of each token, uint64 [T] each."""
    columns = cast("NDArray[np.uint64]", doc.to_array([IDX, LENGTH]))
    start, length = columns.reshape(-1, 2).T
    return start, start + length
