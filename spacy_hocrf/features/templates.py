"""Templates: what is observed at a segment.

A template says at which part of a segment it looks (its first token, its last, every token, …), how
many labels of history its features see (`order`), and, for a batch of Docs, which attribute values
it finds where: its events. An event is an observation's occurrence; with a label pattern of order +
1 labels an observation becomes a feature.

A template of your own is an object with the members of `Template`; register the function that makes
it under `@misc`. Unless it looks at whole segments, it may have a method `find` too (`Finder`), as
some of ours have. Nguyen et al., JMLR 15 (2014) §3.2 call the parts "on the segment's boundary",
"on all words" and so on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore
from spacy.tokens import Span

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.columns import spread, spread_lists
from spacy_hocrf.features.ngrams import affixes, infixes
from spacy_hocrf.features.table import ObservationTable
from spacy_hocrf.features.tokens import EDGE, NUMBERS, TokenBatch, check_attribute
from spacy_hocrf.types import CONST, END, INNER, LENGTH, SPAN, START, TOKEN

__all__ = [
    "AttributeTemplate",
    "Events",
    "Finder",
    "Found",
    "GazetteerTemplate",
    "LengthTemplate",
    "NgramTemplate",
    "PositionTemplate",
    "RealTemplate",
    "Template",
    "TextTemplate",
    "TransitionTemplate",
    "parse_term",
    "spell",
]

PARTS = {"start": START, "end": END, "tokens": TOKEN, "inner": INNER}
PLACE_NAMES = ("alone", "first", "inside", "last")


class Events(NamedTuple):
    """Occurrences of a template's observations in a batch of N tokens."""

    # [n] token of the batch; first token of the segment for a template on whole segments
    token: NDArray[np.int64]
    values: NDArray[np.uint64]  # [n, A] attribute values that make the observation
    weight: NDArray[np.float32] | None = None  # [n] real value of the observation, None for 1
    # [n] one past the last token, for a template on whole segments
    end: NDArray[np.int64] | None = None


class Found(NamedTuple):
    """Observations that are known, by their numbers in a table."""

    ids: NDArray[np.int32]  # [n] observation, -1 for none
    # [n] token of the batch, None if there is one id for each of its N tokens
    token: NDArray[np.int64] | None
    weight: NDArray[np.float32] | None  # [n] None for 1


class Template(Protocol):
    """What every template has."""

    @property
    def name(self) -> str:
        """Unique among the model's templates; features are shown under it."""
        ...

    @property
    def part(self) -> int:
        """START, END, TOKEN, INNER, SPAN, LENGTH or CONST of `spacy_hocrf.types`."""
        ...

    @property
    def order(self) -> int:
        """Number of earlier segments whose labels the features see."""
        ...

    @property
    def width(self) -> int:
        """Attribute values in an observation (A)."""
        ...

    def events(self, batch: TokenBatch) -> Events:
        """Occurrences in a batch; never asked of LENGTH and CONST templates."""
        ...


class Finder(Template, Protocol):
    """A template, not on whole segments, that can tell the known observations without the detour
    over rows of values.
    """

    def find(self, batch: TokenBatch, table: ObservationTable, number: int) -> Found:
        """What `events` and the table give together.

        table (ObservationTable): holds the observations of this template under `number`.
        """
        ...


class _Positional:
    """What the templates below have in common. LENGTH and CONST are known without a Doc."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """Token attributes that are read of every Doc."""
        return ()

    def events(self, batch: TokenBatch) -> Events:
        return Events(np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.uint64))

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        """An observation's values in words."""
        return "|".join(spell(value, strings) for value in values)


@dataclass(frozen=True)
class AttributeTemplate(_Positional):
    """Attributes of tokens at fixed offsets from the observed one, taken together."""

    terms: tuple[tuple[str, int], ...]  # (attribute, offset)
    part: int = TOKEN
    order: int = 0

    @property
    def name(self) -> str:
        terms = "|".join(f"{attribute}[{offset}]" for attribute, offset in self.terms)
        return _name(terms, self.part, self.order)

    @property
    def width(self) -> int:
        return len(self.terms)

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(attribute for attribute, _ in self.terms)

    def events(self, batch: TokenBatch) -> Events:
        columns, present = [], np.ones(len(batch), dtype=bool)
        for attribute, offset in self.terms:
            values, there = batch.shifted(attribute, offset)
            columns.append(values)
            present &= there
        return Events(np.flatnonzero(present), np.stack(columns, axis=1)[present])

    def find(self, batch: TokenBatch, table: ObservationTable, number: int) -> Found:
        if self.width > 1:
            columns = np.stack([batch.column(attribute) for attribute, _ in self.terms])
            shifts = np.array([shift for _, shift in self.terms], dtype=np.int64)
            return Found(
                table.lookup_shifted(number, columns, shifts, int(EDGE), batch.offsets), None, None
            )
        attribute, shift = self.terms[0]
        values, codes = batch.distinct(attribute)
        ids = table.lookup(number, np.append(values, EDGE).reshape(-1, 1))
        return Found(spread(ids, ids[-1], codes, batch.offsets, shift), None, None)

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        numbers = (
            attribute in NUMBERS and value != EDGE
            for (attribute, _), value in zip(self.terms, values)
        )
        return "|".join(
            str(value) if number else spell(value, strings)
            for number, value in zip(numbers, values)
        )


@dataclass(frozen=True)
class NgramTemplate(_Positional):
    """Letter n-grams of an attribute's string: prefixes, suffixes, or all inside ones."""

    attribute: str
    kind: str  # "prefix", "suffix" or "inside"
    size: int
    part: int = TOKEN
    order: int = 0
    width: int = 1

    @property
    def name(self) -> str:
        return _name(f"{self.attribute}:{self.kind}{self.size}", self.part, self.order)

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)

    def events(self, batch: TokenBatch) -> Events:
        tokens, values = batch.map_strings(self.attribute, self._ngrams)
        return Events(tokens, values.reshape(-1, 1))

    def find(self, batch: TokenBatch, table: ObservationTable, number: int) -> Found:
        text, offsets = batch.texts(self.attribute)
        _, codes = batch.distinct(self.attribute)
        if self.kind != "inside":
            ids = table.lookup(
                number, affixes(text, offsets, self.size, self.kind == "suffix").reshape(-1, 1)
            )
            return Found(ids[codes], None, None)
        firsts, values = infixes(text, offsets, self.size)
        ids = table.lookup(number, values.reshape(-1, 1))
        word = np.repeat(np.arange(len(offsets) - 1), np.diff(firsts))
        # an n-gram counts once, however often the word has it
        once = np.unique((word * len(table) + ids)[ids >= 0])
        word, ids = once // max(1, len(table)), (once % max(1, len(table))).astype(np.int32)
        token, entry = spread_lists(np.searchsorted(word, np.arange(len(offsets))), codes)
        return Found(ids[entry], token, None)

    def _ngrams(self, string: str) -> Sequence[str]:
        n = self.size
        if len(string) < n:
            return ()
        if self.kind == "prefix":
            return (string[:n],)
        if self.kind == "suffix":
            return (string[-n:],)
        return sorted({string[i : i + n] for i in range(len(string) - n + 1)})


@dataclass(frozen=True)
class PositionTemplate(_Positional):
    """Where in its Doc a token stands, in equal parts."""

    bins: int
    part: int = TOKEN
    order: int = 0
    width: int = 1

    @property
    def name(self) -> str:
        return _name(f"POSITION/{self.bins}", self.part, self.order)

    def events(self, batch: TokenBatch) -> Events:
        tokens = np.arange(len(batch))
        first, last = batch.offsets[:-1][batch.sequence], batch.offsets[1:][batch.sequence]
        bins = (tokens - first) * self.bins // np.maximum(last - first, 1)
        return Events(tokens, bins.astype(np.uint64).reshape(-1, 1))

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        return str(values[0])


@dataclass(frozen=True)
class RealTemplate(_Positional):
    """One real-valued observation per dimension of an array; zeros are left out."""

    source: str  # "tensor", "vector" or "_.name"
    offset: int
    part: int = TOKEN
    order: int = 0
    width: int = 1

    @property
    def name(self) -> str:
        return _name(f"{self.source}[{self.offset}]", self.part, self.order)

    def events(self, batch: TokenBatch) -> Events:
        tokens = [np.zeros(0, dtype=np.int64)]
        dimensions = [np.zeros(0, dtype=np.int64)]
        weights = [np.zeros(0)]
        for rows, first in zip(batch.real(self.source), batch.offsets):
            here, dimension = np.nonzero(rows)
            inside = (here - self.offset >= 0) & (here - self.offset < len(rows))
            here, dimension = here[inside], dimension[inside]
            tokens.append(first + here - self.offset)
            dimensions.append(dimension)
            weights.append(rows[here, dimension])
        token = np.concatenate(tokens)
        order = np.argsort(token, kind="stable")
        values = np.concatenate(dimensions).astype(np.uint64).reshape(-1, 1)
        return Events(
            token[order], values[order], np.concatenate(weights).astype(np.float32)[order]
        )

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        return str(values[0])


@dataclass(frozen=True)
class TextTemplate(_Positional):
    """The segment's text: its tokens' values of one attribute, in order, for segments of at most
    `longest` tokens.
    """

    attribute: str
    longest: int
    order: int = 0
    part: int = SPAN

    @property
    def name(self) -> str:
        return _name(f"TEXT.{self.attribute}", self.part, self.order)

    @property
    def width(self) -> int:
        return self.longest

    def events(self, batch: TokenBatch) -> Events:
        column = batch.column(self.attribute)
        last = batch.offsets[1:][batch.sequence]
        starts, ends, values = [], [], []
        for length in range(1, self.longest + 1):
            start = np.flatnonzero(np.arange(len(batch)) + length <= last)
            text = np.zeros((len(start), self.longest), dtype=np.uint64)
            for i in range(length):
                text[:, i] = column[start + i]
            starts.append(start)
            ends.append(start + length)
            values.append(text)
        return Events(np.concatenate(starts), np.concatenate(values), None, np.concatenate(ends))

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        """The tokens; a value of 0 is no token, or one without this attribute."""
        return " ".join(
            str(v) if self.attribute in NUMBERS else spell(v, strings)
            for v in np.trim_zeros(values, "b")
        )


@dataclass(frozen=True)
class GazetteerTemplate(_Positional):
    """Spans of `doc.spans[key]`: a segment that is such a span (part SPAN), or a token's place in
    one (part TOKEN).
    """

    key: str
    part: int
    order: int = 0
    width: int = 2

    @property
    def name(self) -> str:
        return _name(
            f"SPANS.{self.key}" + (":tokens" if self.part == TOKEN else ""), self.part, self.order
        )

    def events(self, batch: TokenBatch) -> Events:
        rows: list[tuple[int, int, int, int]] = []
        for spans, first in zip(batch.span_groups(self.key), batch.offsets):
            for span in spans:
                if self.part == SPAN:
                    rows.append((first + span.start, first + span.end, int(span.label), 0))
                else:
                    rows += [
                        (first + i, first + i + 1, int(span.label), _place(i, span))
                        for i in range(span.start, span.end)
                    ]
        rows = sorted(set(rows))
        token = np.array([row[0] for row in rows], dtype=np.int64)
        values = np.array([row[2:] for row in rows], dtype=np.uint64).reshape(-1, 2)
        end = np.array([row[1] for row in rows], dtype=np.int64)
        return Events(token, values, None, end if self.part == SPAN else None)

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        label = spell(values[0], strings)
        return label if self.part == SPAN else f"{label}|{PLACE_NAMES[values[1]]}"


@dataclass(frozen=True)
class LengthTemplate(_Positional):
    """The segment's length in bins; `bins` are the smallest lengths of each, ascending from 1."""

    bins: tuple[int, ...]
    order: int = 0
    part: int = LENGTH
    width: int = 1

    @property
    def name(self) -> str:
        return _name("LENGTH", self.part, self.order)

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        low, above = self.bins[values[0]], self.bins[values[0] + 1 :][:1]
        return (
            f"{low}-{above[0] - 1}"
            if above and above[0] > low + 1
            else str(low)
            if above
            else f"{low}+"
        )


@dataclass(frozen=True)
class TransitionTemplate(_Positional):
    """No observation at all: the label pattern alone. At order 0 it is the label's bias."""

    order: int
    number: int = 0  # tells apart two that are meant to be two features
    part: int = CONST
    width: int = 0

    @property
    def name(self) -> str:
        return _name(
            "LABELS" if not self.number else f"LABELS.{self.number}", self.part, self.order
        )


TERM = re.compile(r"^(?P<attribute>(?:_\.)?[A-Za-z_][A-Za-z_0-9.]*?)(?:\[(?P<offset>[+-]?\d+)\])?$")


def parse_term(term: str) -> tuple[str, int]:
    """An attribute and an offset: "NORM[-1]" is ("NORM", -1), "SHAPE" is ("SHAPE", 0).

    RAISES (ValueError): H026 for bad syntax, H023 or H024 for an unknown attribute.
    """
    match = TERM.match(term)
    if match is None:
        raise ValueError(Errors.H026.format(term=term))
    check_attribute(match["attribute"])
    return match["attribute"], int(match["offset"] or 0)


def spell(value: int, strings: StringStore) -> str:
    """The string that a value stands for, its number if the store has lost it."""
    if value == EDGE:
        return "<edge>"
    try:
        return str(strings[int(value)])
    except KeyError:
        return str(value)


def _name(text: str, part: int, order: int) -> str:
    place = {START: "start:", END: "end:", INNER: "inner:"}.get(part, "")
    return f"{place}{text}" + (f"@{order}" if order else "")


def _place(token: int, span: Span) -> int:
    """Number of the place in PLACE_NAMES."""
    if len(span) == 1:
        return 0
    return 1 if token == span.start else 3 if token == span.end - 1 else 2
