"""Items, which are linked, and their attributes, for Docs that are read together.

An *item* is a span, a sentence, an entity or a whole Doc. A *thread* has the items of one Doc or, in
order, of all Docs of a group; items are numbered from 0 throughout the thread.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.features.tokens import ATTRIBUTES, NUMBERS, TokenBatch, beginning
from spacy_hocrf.links.errors import LinkErrors

__all__ = [
    "DocItems",
    "EntItems",
    "Item",
    "ItemFinder",
    "SentenceItems",
    "SpanItems",
    "Thread",
    "check_item_attribute",
    "refuse_link",
    "registered",
]

Codes = NDArray[np.uint64]

TERM = re.compile(r"(?P<name>[A-Z_]+)(?:\[(?P<place>0|-1)\])?")
MISSING = np.uint64(0)
"""Code of a missing value; the only string with this code is the empty one."""


class Item(NamedTuple):
    """An item: a stretch of tokens in a Doc."""

    doc: int  # number of the Doc in the thread
    start: int
    end: int
    label: str = ""


@runtime_checkable
class ItemFinder(Protocol):
    """Finds the items of a Doc: `[components.*.items]`."""

    def find(self, doc: Doc) -> Sequence[tuple[int, int, str]]:
        """Return first token, one past the last, and label of each item, in order."""
        ...

    @property
    def place(self) -> str:
        """Where the items are, for messages."""
        ...


@dataclass(frozen=True)
class SpanItems:
    """`spacy-hocrf.SpanItems.v1`: the spans of `doc.spans[spans_key]`, in the group's order; none
    if the group is missing.
    """

    spans_key: str = "sc"

    @property
    def place(self) -> str:
        """The span group that items are read from."""
        return f"doc.spans['{self.spans_key}']"

    def find(self, doc: Doc) -> list[tuple[int, int, str]]:
        """The spans of a Doc."""
        group = doc.spans.get(self.spans_key) if len(doc.spans) else None
        return [] if group is None else [(s.start, s.end, s.label_) for s in group]


@dataclass(frozen=True)
class EntItems:
    """Registered as `spacy-hocrf.EntItems.v1`: items are the entities."""

    place = "doc.ents"

    def find(self, doc: Doc) -> list[tuple[int, int, str]]:
        """The entities of a Doc."""
        return [(s.start, s.end, s.label_) for s in doc.ents]


@dataclass(frozen=True)
class SentenceItems:
    """`spacy-hocrf.SentenceItems.v1`: the sentences; none if there are no sentence boundaries."""

    place = "doc.sents"

    def find(self, doc: Doc) -> list[tuple[int, int, str]]:
        """The sentences of a Doc."""
        annotated = doc.has_annotation("SENT_START")
        return [(s.start, s.end, "") for s in doc.sents] if annotated else []


@dataclass(frozen=True)
class DocItems:
    """`spacy-hocrf.DocItems.v1`: each Doc is one item, to be linked with others of its group."""

    place = "the Docs"

    def find(self, doc: Doc) -> list[tuple[int, int, str]]:
        """One item, the whole Doc."""
        return [(0, len(doc), "")]


class Thread:
    """The N items of some Docs, and columns of their attributes, each read once.

    docs (Sequence[Doc]): Docs of one group, in order; at least one.
    finder (ItemFinder): finds their items.
    """

    def __init__(self, docs: Sequence[Doc], finder: ItemFinder) -> None:
        self.docs = docs
        items_of = [finder.find(doc) for doc in docs]
        self.items = [Item(d, *item) for d, items in enumerate(items_of) for item in items]
        self.firsts: NDArray[np.int64] = offsets_of([len(items) for items in items_of])
        """Number of the first item of each Doc, followed by N; int64 [D + 1]."""
        self.are_docs = isinstance(finder, DocItems)
        """Are the items whole Docs?"""
        self._batch = TokenBatch(docs)
        self._codes: dict[str, Codes] = {}
        self._values: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def ends(self) -> list[tuple[int, int, int]]:
        """For each item the number of its Doc, its first character and one past its last, which also identify
        it if tokens differ.
        """
        places = [(s.start_char, s.end_char) if len(s) else (0, 0) for s in self._spans]
        return [(item.doc, *place) for item, place in zip(self.items, places)]

    @property
    def text(self) -> str:
        """The beginning of the first Doc, for messages."""
        return beginning(self.docs[0])

    def values(self, name: str) -> list[Any]:
        """Return an extension attribute of every item: the span's, or if spans have no attribute of this
        name, its Doc's.
        """
        if name not in self._values:
            spans = not self.are_docs and Span.has_extension(name)
            holders: Any = self._spans if spans else [self.docs[item.doc] for item in self.items]
            self._values[name] = [holder._.get(name) for holder in holders]
        return self._values[name]

    def codes(self, attribute: str) -> Codes:
        """Return a code for the value of an attribute of each item, uint64 [N]; 0 if missing."""
        if attribute not in self._codes:
            self._codes[attribute] = self._read(attribute)
        return self._codes[attribute]

    def listed(self, attribute: str) -> tuple[NDArray[np.int64], Codes]:
        """Return the distinct values of each item: those of its tokens, or the elements of a list-valued
        extension attribute.

        RETURNS (tuple[int64 [n], uint64 [n]]): item and code of each value, ascending by both.
        RAISES (ValueError): H305 for an extension attribute that is not a list of strings.
        """
        if attribute.startswith("_."):
            items, codes = self._lists(attribute[2:])
        else:
            column = self._batch.column(attribute)
            items = np.repeat(np.arange(len(self)), self.lengths)
            codes = column[ranges(self._tokens, self.lengths)]
        order = np.lexsort((codes, items))
        items, codes = items[order], codes[order]
        new = np.ones(len(items), dtype=bool)
        new[1:] = (np.diff(items) != 0) | (codes[1:] != codes[:-1])
        return items[new], codes[new]

    def words(self, number: int) -> bytes:
        """Return bytes that identify the words of one of the Docs."""
        first, end = self._batch.offsets[number : number + 2]
        return self._batch.column("ORTH")[first:end].tobytes()

    def says(self, attribute: str) -> int:
        """Count the items that have a value of an attribute."""
        if attribute.startswith("_."):
            return sum(value not in (None, "") for value in self.values(attribute[2:]))
        return len(self)

    @cached_property
    def _spans(self) -> list[Span]:
        return [self.docs[item.doc][item.start : item.end] for item in self.items]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each item, int64 [N]."""
        return np.array([item.end - item.start for item in self.items], dtype=np.int64)

    @cached_property
    def _tokens(self) -> NDArray[np.int64]:
        """First token of each item in the batch, int64 [N]."""
        places = [(item.doc, item.start) for item in self.items]
        doc, start = np.array(places, dtype=np.int64).reshape(-1, 2).T
        first: NDArray[np.int64] = self._batch.offsets[doc] + start
        return first

    def wrong_value(self, attribute: str, found: Any, expected: str, value: str) -> ValueError:
        """Make the error H305 for an extension attribute of an item.

        value (str): the kind of link values that read it.
        """
        names = {"attribute": attribute, "value": value, "text": self.text}
        text = LinkErrors.H305.format(**names, found=repr(found)[:60], expected=expected)
        return ValueError(text)

    def _lists(self, name: str) -> tuple[NDArray[np.int64], Codes]:
        lists = self.values(name)
        for value in lists:
            strings = isinstance(value, list | tuple | set | frozenset)
            if value is not None and not (strings and all(isinstance(s, str) for s in value)):
                raise self.wrong_value(
                    f"_.{name}", value, "a list of strings", "that compares lists"
                )
        pairs = [(i, get_string_id(s)) for i, strings in enumerate(lists) for s in strings or ()]
        items = np.array([i for i, _ in pairs], dtype=np.int64)
        return items, np.array([code for _, code in pairs], dtype=np.uint64)

    def _read(self, attribute: str) -> Codes:
        if attribute.startswith("_."):
            return np.array([_code(value) for value in self.values(attribute[2:])], dtype=np.uint64)
        if attribute == "LABEL":
            return np.array([get_string_id(item.label) for item in self.items], dtype=np.uint64)
        if attribute == "LENGTH":
            return np.array([_code(n) for n in self.lengths.tolist()], dtype=np.uint64)
        term = TERM.fullmatch(attribute)
        assert term is not None, attribute
        column, first = self._batch.column(term["name"]), self._tokens
        if term["place"] is None:
            return self._texts(column, spelt=term["name"] not in NUMBERS)
        codes = np.zeros(len(self), dtype=np.uint64)
        nonempty = self.lengths > 0
        place = first if term["place"] == "0" else first + self.lengths - 1
        codes[nonempty] = column[place[nonempty]] + np.uint64(term["name"] in NUMBERS)
        return codes

    def _texts(self, column: Codes, *, spelt: bool) -> Codes:
        """Codes of the values of all tokens in each item, joined by spaces."""
        strings = self._batch.strings
        words = [strings[c] if spelt else str(c) for c in column.tolist()] if len(self) else []
        ends = zip(self._tokens.tolist(), self.lengths.tolist())
        texts = [" ".join(words[first : first + n]) for first, n in ends]
        return np.array([get_string_id(text) for text in texts], dtype=np.uint64)


def check_item_attribute(attribute: str) -> None:
    """Check an attribute. RAISES (ValueError): H300 if items have no such attribute."""
    term = TERM.fullmatch(attribute)
    is_own = attribute in {"LABEL", "LENGTH"} or (attribute.startswith("_.") and attribute[2:])
    if not is_own and (term is None or term["name"] not in ATTRIBUTES):
        hint = " (an extension attribute is '_.name')" if attribute.startswith("_") else ""
        raise ValueError(LinkErrors.H300.format(found=attribute, hint=hint))


def registered(name: str) -> None:
    """Register an extension attribute of this name for spans and Docs, unless one of them has it."""
    if not Span.has_extension(name) and not Doc.has_extension(name):
        Span.set_extension(name, default=None)
        Doc.set_extension(name, default=None)


def _code(value: Any) -> int:
    """Code of a value, 0 for None; a number and its digits have the same code."""
    return 0 if value is None else int(get_string_id(str(value)))


def refuse_link(name: str, found: Any, expected: str, block: str) -> NoReturn:
    """Reject a setting of a config block. RAISES (ValueError): H298, always."""
    where = {"name": name, "block": block}
    raise ValueError(LinkErrors.H298.format(**where, found=found, expected=expected))
