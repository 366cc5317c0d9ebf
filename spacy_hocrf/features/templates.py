"""Templates: what is observed at a segment.

A template says at which part of a segment it looks (its first token, its last, every token, …), how
many labels of history its features see (`order`), and, for a batch of Docs, where it finds which
attribute values: its events. An event is an occurrence of an observation; together with a label pattern of
order + 1 labels, an observation is a feature.

Your own template is an object with the members of `Template`; register the function that makes it under
`@misc`. Nguyen et al., JMLR 15 (2014) §3.2 call the parts "on the segment's boundary",
"on all words" and so on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.columns import spread_lists
from spacy_hocrf.features.flags import FLAGS
from spacy_hocrf.features.ngrams import affixes, infixes
from spacy_hocrf.features.tokens import EDGE, NUMBERS, TokenBatch, check_attribute
from spacy_hocrf.types import END, INNER, START, TOKEN

__all__ = [
    "AttributeTemplate",
    "Events",
    "FlagTemplate",
    "Found",
    "NgramTemplate",
    "Observing",
    "PositionTemplate",
    "RealTemplate",
    "Template",
    "parse_term",
    "spell",
    "spelled",
    "template_name",
]

PARTS = {"start": START, "end": END, "tokens": TOKEN, "inner": INNER}


class Events(NamedTuple):
    """Occurrences of a template's observations in a batch of N tokens."""

    # [n] token of the batch; for a template on whole segments, their first token
    token: NDArray[np.int64]
    values: NDArray[np.uint64]  # [n, A] attribute values that make the observation
    weight: NDArray[np.float32] | None = None  # [n] value of the observation, None for 1
    # [n] one past the last token, for a template on whole segments
    end: NDArray[np.int64] | None = None


class Found(NamedTuple):
    """Observations by their numbers in a table."""

    ids: NDArray[np.int32]  # [n] observation, -1 for an unknown one
    token: NDArray[np.int64]  # [n] token of the batch
    weight: NDArray[np.float32] | None  # [n] None if all are 1


@runtime_checkable
class Template(Protocol):
    """Members that every template has. It may also have `attributes` and `describe`, as in `Observing`;
    by default it declares no attributes, and values are shown as strings.
    """

    @property
    def name(self) -> str:
        """Name, unique among the model's templates; its features are shown under it."""
        ...

    @property
    def part(self) -> int:
        """START, END, TOKEN, INNER, SPAN, LENGTH or CONST of `spacy_hocrf.api`: the segment's first token,
        its last, every token, every one but the first, the whole segment, its length, its mere presence.
        """
        ...

    @property
    def order(self) -> int:
        """Number of earlier segments whose labels the features see."""
        ...

    @property
    def width(self) -> int:
        """Number A of attribute values in an observation."""
        ...

    def events(self, batch: TokenBatch) -> Events:
        """Return the occurrences in a batch; never called for LENGTH and CONST templates.

        batch (TokenBatch): N tokens of `batch.docs`; `batch.column("NORM")` is one attribute of all of
            them, uint64 [N].
        RETURNS (Events): occurrences in any order, several at a token if you like. A value is a number,
            such as a hash. What does not fit the template or the batch is H130.
        """
        ...


class Observing:
    """Base of this package's templates. LENGTH and CONST templates need no events."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """Token attributes that it reads of every Doc."""
        return ()

    def events(self, batch: TokenBatch) -> Events:
        return Events(np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.uint64))

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        """Return an observation's values as a string."""
        return spelled(values, strings)


@dataclass(frozen=True)
class AttributeTemplate(Observing):
    """Attributes of tokens at fixed offsets from the observed one, observed together."""

    terms: tuple[tuple[str, int], ...]  # (attribute, offset)
    part: int = TOKEN
    order: int = 0

    @property
    def name(self) -> str:
        terms = "|".join(f"{attribute}[{offset}]" for attribute, offset in self.terms)
        return template_name(terms, self.part, self.order)

    @property
    def width(self) -> int:
        return len(self.terms)

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(attribute for attribute, _ in self.terms)

    def events(self, batch: TokenBatch) -> Events:
        columns, present = [], np.ones(len(batch), dtype=bool)
        for attribute, offset in self.terms:
            values, exists = batch.shifted(attribute, offset)
            columns.append(values)
            present &= exists
        return Events(np.flatnonzero(present), np.stack(columns, axis=1)[present])

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        return "|".join(
            _spell_of(attribute, value, strings)
            for (attribute, _), value in zip(self.terms, values)
        )


@dataclass(frozen=True)
class NgramTemplate(Observing):
    """Letter n-grams of an attribute's string: prefixes, suffixes, or all n-grams inside."""

    attribute: str
    kind: str  # "prefix", "suffix" or "inside"
    size: int
    part: int = TOKEN
    order: int = 0
    width: int = 1

    @property
    def name(self) -> str:
        return template_name(f"{self.attribute}:{self.kind}{self.size}", self.part, self.order)

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)

    def events(self, batch: TokenBatch) -> Events:
        words, codes = batch.distinct(self.attribute)
        text, offsets = batch.texts(self.attribute)
        if self.kind == "inside":
            firsts, values = infixes(text, offsets, self.size)
            word = np.repeat(np.arange(len(words)), np.diff(firsts))
            order = np.lexsort((values, word))
            word, values = word[order], values[order]
            once = np.ones(len(word), dtype=bool)  # each n-gram of a word counts once
            once[1:] = (np.diff(word) != 0) | (values[1:] != values[:-1])
            word, values = word[once], values[once]
        else:
            values = affixes(text, offsets, self.size, self.kind == "suffix")
            word = np.flatnonzero(values)  # 0 for a string that is too short
            values = values[word]
        if batch.learn:
            strings, hashes = batch.strings, words.tolist()
            for i in word[[value not in strings for value in values.tolist()]].tolist():
                for ngram in self._ngrams(strings[hashes[i]]):
                    batch.intern(ngram)
        token, entry = spread_lists(np.searchsorted(word, np.arange(len(words) + 1)), codes)
        return Events(token, values[entry].reshape(-1, 1))

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
class FlagTemplate(Observing):
    """One observation for each flag that is true of a token."""

    flags: tuple[str, ...]  # of FLAGS
    offset: int = 0
    part: int = TOKEN
    order: int = 0
    width: int = 1

    @property
    def name(self) -> str:
        return template_name(f"FLAG[{self.offset}]", self.part, self.order)

    @property
    def attributes(self) -> tuple[str, ...]:
        return ("FLAGS",)

    def events(self, batch: TokenBatch) -> Events:
        bits, _ = batch.shifted("FLAGS", self.offset)
        bits = np.where(bits == EDGE, np.uint64(0), bits)
        places = np.array([FLAGS.index(flag) for flag in self.flags], dtype=np.uint64)
        token, number = np.nonzero((bits[:, None] >> places) & np.uint64(1))
        return Events(token, number.astype(np.uint64).reshape(-1, 1))

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        return self.flags[values[0]]


@dataclass(frozen=True)
class PositionTemplate(Observing):
    """In which of `bins` equal parts of its Doc a token is."""

    bins: int
    part: int = TOKEN
    order: int = 0
    width: int = 1

    @property
    def name(self) -> str:
        return template_name(f"POSITION/{self.bins}", self.part, self.order)

    def events(self, batch: TokenBatch) -> Events:
        tokens = np.arange(len(batch))
        first, last = batch.offsets[:-1][batch.sequence], batch.offsets[1:][batch.sequence]
        bins = (tokens - first) * self.bins // np.maximum(last - first, 1)
        return Events(tokens, bins.astype(np.uint64).reshape(-1, 1))

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        return str(values[0])


@dataclass(frozen=True)
class RealTemplate(Observing):
    """One real-valued observation per dimension of an array; zeros are left out."""

    source: str  # "tensor", "vector" or "_.name"
    offset: int
    part: int = TOKEN
    order: int = 0
    width: int = 1

    @property
    def name(self) -> str:
        return template_name(f"{self.source}[{self.offset}]", self.part, self.order)

    def events(self, batch: TokenBatch) -> Events:
        tokens = [np.zeros(0, dtype=np.int64)]
        dimensions = [np.zeros(0, dtype=np.int64)]
        weights = [np.zeros(0)]
        for rows, first in zip(batch.real(self.source), batch.offsets):
            position, dimension = np.nonzero(rows)
            inside = (position - self.offset >= 0) & (position - self.offset < len(rows))
            position, dimension = position[inside], dimension[inside]
            tokens.append(first + position - self.offset)
            dimensions.append(dimension)
            weights.append(rows[position, dimension])
        token = np.concatenate(tokens)
        order = np.argsort(token, kind="stable")
        values = np.concatenate(dimensions).astype(np.uint64).reshape(-1, 1)
        return Events(
            token[order], values[order], np.concatenate(weights).astype(np.float32)[order]
        )

    def describe(self, values: Sequence[int], strings: StringStore) -> str:
        return str(values[0])


TERM = re.compile(
    r"^(?P<attribute>_\.[^\s\[\]]+|[A-Za-z_][A-Za-z_0-9.]*)(?:\[(?P<offset>[+-]?\d+)\])?$"
)


def parse_term(term: str) -> tuple[str, int]:
    """Split a term into attribute and offset: "NORM[-1]" is ("NORM", -1), "SHAPE" is ("SHAPE", 0).

    RAISES (ValueError): H026 for bad syntax, H023 or H024 for an unknown attribute.
    """
    match = TERM.match(term)
    if match is None:
        raise ValueError(Errors.H026.format(term=term))
    check_attribute(match["attribute"])
    return match["attribute"], int(match["offset"] or 0)


def spell(value: int, strings: StringStore) -> str:
    """Return the string that a value stands for, or the number if the store does not have it."""
    if value == EDGE:
        return "<edge>"
    try:
        return str(strings[int(value)])
    except KeyError:
        return str(value)


def spelled(values: Sequence[int], strings: StringStore) -> str:
    """Return the strings that the values of an observation stand for, joined by "|"."""
    return "|".join(spell(value, strings) for value in values)


def _spell_of(attribute: str, value: int, strings: StringStore) -> str:
    """A token attribute's value as a string."""
    if attribute == "FLAGS" and value != EDGE:
        return "+".join(flag for bit, flag in enumerate(FLAGS) if value >> bit & 1) or "no flag"
    number = attribute in NUMBERS and value != EDGE
    return str(value) if number else spell(value, strings)


def template_name(text: str, part: int, order: int) -> str:
    """Return the name of a template: a prefix for its part and a suffix for its order, unless default."""
    place = {START: "start:", END: "end:", INNER: "inner:"}.get(part, "")
    return f"{place}{text}" + (f"@{order}" if order else "")
