"""Values of one item, and of pairs of items: `[components.*.features.values.*]`.

A value is a whole number for each item, or for each pair (a, b) of items; templates combine values
(`templates.py`). Any object with the members of `ItemValue` or `PairValue`, made by a function
registered under @misc, can be used.

Letters: N items of a thread, n pairs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.links.items import MISSING, Thread, check_item_attribute, refuse_link
from spacy_hocrf.types import is_number

__all__ = [
    "Addressed",
    "Attribute",
    "Distance",
    "ItemValue",
    "Latest",
    "Names",
    "Number",
    "PairValue",
    "Same",
    "Shared",
]

Items = NDArray[np.int64]

BLOCK = "[components.*.features.values]"


@runtime_checkable
class ItemValue(Protocol):
    """A property of each item, as a number."""

    @property
    def reads(self) -> Sequence[str]:
        """The attributes of items that it reads."""
        ...

    def of_items(self, thread: Thread) -> NDArray[Any]:
        """Return whole numbers, one for each of N items."""
        ...


@runtime_checkable
class PairValue(Protocol):
    """A property of an item a in relation to an item b, as a number."""

    @property
    def reads(self) -> Sequence[str]:
        """The attributes of items that it reads."""
        ...

    def of_pairs(self, thread: Thread, a: Items, b: Items) -> NDArray[Any]:
        """Return whole numbers, one for each of n pairs.

        a, b (int64 [n]): numbers of items, which may be the same.
        """
        ...


class _Reading:
    """Base of values that read one attribute, or two."""

    attr: str

    def __post_init__(self) -> None:
        for attribute in self.reads:
            check_item_attribute(attribute)

    @property
    def reads(self) -> tuple[str, ...]:
        """Attributes of items that the value is computed from."""
        names: str | None = getattr(self, "names", None)
        return (self.attr,) if names is None else (names, self.attr)


@dataclass(frozen=True)
class Attribute(_Reading):
    """`spacy-hocrf.LinkAttribute.v1`: the value of an attribute of the item.

    attr (str): "LABEL", "LENGTH" (tokens), "LOWER" (the whole item), "LOWER[0]", "LOWER[-1]" (its
        first or last token) or any other token attribute, or "_.name".
    """

    attr: str

    def of_items(self, thread: Thread) -> NDArray[np.uint64]:
        """Codes, 0 for a missing value."""
        return thread.codes(self.attr)


@dataclass(frozen=True)
class Number(_Reading):
    """`spacy-hocrf.LinkNumber.v1`: the bin of a number of the item.

    attr (str): "LENGTH", or "_.name".
    bins (Sequence[float]): lower limit of each bin but the first; ascending.
    """

    attr: str
    bins: Sequence[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attr != "LENGTH" and not self.attr.startswith("_."):
            refuse_link("attr of LinkNumber", self.attr, "LENGTH, or '_.name' of a number", BLOCK)
        _check_bins(self.bins, "LinkNumber")

    def of_items(self, thread: Thread) -> NDArray[np.int64]:
        """Number of the bin; 0 for a missing value. RAISES (ValueError): H305 if it is not a number."""
        if self.attr == "LENGTH":
            return np.digitize(thread.lengths, self.bins)
        values = thread.values(self.attr[2:])
        for value in values:
            number = isinstance(value, bool) or (is_number(value) and math.isfinite(value))
            if value is not None and not number:
                raise thread.wrong_value(self.attr, value, "a number", "LinkNumber")
        numbers = np.array([value or 0.0 for value in values], dtype=np.float64)
        return np.digitize(numbers, self.bins)


@dataclass(frozen=True)
class Addressed(_Reading):
    """`spacy-hocrf.LinkAddressed.v1`: does the item name nobody (0), somebody with an earlier item (1), or
    only others (2)?

    names (str): an extension attribute with a list of names.
    attr (str): attribute with the name of an item, such as its author.
    """

    names: str
    attr: str

    def of_items(self, thread: Thread) -> NDArray[np.int64]:
        """0, 1 or 2."""
        items, codes = thread.listed(self.names)
        values = thread.codes(self.attr)
        distinct, first = np.unique(values, return_index=True)  # first item of each
        place = np.minimum(np.searchsorted(distinct, codes), len(distinct) - 1)
        before = (distinct[place] == codes) & (first[place] < items) if len(distinct) else codes > 0
        result = np.zeros(len(thread), dtype=np.int64)
        result[items] = 2
        result[items[before]] = 1
        return result


@dataclass(frozen=True)
class Distance:
    """`spacy-hocrf.LinkDistance.v1`: the bin of the number of items from b to a; negative if a comes
    before b.

    bins (Sequence[int]): lower limit of each bin but the first, which has the item itself; ascending.
    """

    bins: Sequence[float] = (1, 2, 3, 4, 5, 7, 10)
    reads = ()

    def __post_init__(self) -> None:
        _check_bins(self.bins, "LinkDistance")

    def of_pairs(self, thread: Thread, a: Items, b: Items) -> NDArray[Any]:
        """Number of the bin, negative if b comes later."""
        bins: NDArray[Any] = np.digitize(np.abs(a - b), self.bins)
        signed: NDArray[Any] = bins * np.sign(a - b)
        return signed


@dataclass(frozen=True)
class Same(_Reading):
    """`spacy-hocrf.LinkSame.v1`: do both have the same value of an attribute?

    attr (str): as in `LinkAttribute.v1`.
    """

    attr: str

    def of_pairs(self, thread: Thread, a: Items, b: Items) -> NDArray[np.bool_]:
        """True for equal values; false for missing ones."""
        codes = thread.codes(self.attr)
        same: NDArray[np.bool_] = (codes[a] == codes[b]) & (codes[a] != MISSING)
        return same


@dataclass(frozen=True)
class Shared(_Reading):
    """`spacy-hocrf.LinkShared.v1`: the bin of the number of values that the lists of both share.

    attr (str): a token attribute, for the words of the items, or "_.name" with a list of strings.
    bins (Sequence[int]): lower limit of each bin but the first; ascending.
    """

    attr: str = "LOWER"
    bins: Sequence[float] = (1, 2, 3)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attr in {"LABEL", "LENGTH"} or "[" in self.attr:
            expected = "a token attribute, or '_.name' of a list"
            refuse_link("attr of LinkShared", self.attr, expected, BLOCK)
        _check_bins(self.bins, "LinkShared")

    def of_pairs(self, thread: Thread, a: Items, b: Items) -> NDArray[np.int64]:
        """Number of the bin; 0 for an item paired with itself."""
        items, codes = thread.listed(self.attr)
        counts = _in_common(items, codes, len(thread), a, b)
        return np.where(a == b, 0, np.digitize(counts, self.bins))


@dataclass(frozen=True)
class Names(_Reading):
    """`spacy-hocrf.LinkNames.v1`: does a name b?

    names (str): an extension attribute of a with a list of names.
    attr (str): attribute with the name of b, such as its author.
    """

    names: str
    attr: str

    def of_pairs(self, thread: Thread, a: Items, b: Items) -> NDArray[np.bool_]:
        """False if a has no list, or b no value."""
        items, codes = thread.listed(self.names)
        values = thread.codes(self.attr)
        distinct, numbers = np.unique(np.concatenate([codes, values]), return_inverse=True)
        # an item and a code as one number: the codes in each list, and the code of b for each pair
        listed_keys = items * len(distinct) + numbers.ravel()[: len(items)]
        pair_keys = a * len(distinct) + numbers.ravel()[len(items) :][b]
        is_named: NDArray[np.bool_] = np.isin(pair_keys, listed_keys) & (values[b] != MISSING)
        return is_named


@dataclass(frozen=True)
class Latest(_Reading):
    """`spacy-hocrf.LinkLatest.v1`: of the items with b's value on b's side of a, is b the nearest to a?

    attr (str): as in `LinkAttribute.v1`; true if b has no value.
    """

    attr: str

    def of_pairs(self, thread: Thread, a: Items, b: Items) -> NDArray[np.bool_]:
        """True if no item between the two has the value of b."""
        codes = thread.codes(self.attr)
        order = np.argsort(codes, kind="stable")
        after = np.full(len(codes), len(codes), dtype=np.int64)  # next item of the value
        before = np.full(len(codes), -1, dtype=np.int64)
        repeated = np.flatnonzero((codes[order][1:] == codes[order][:-1]) & (codes[order][1:] != 0))
        after[order[repeated]], before[order[repeated + 1]] = order[repeated + 1], order[repeated]
        return np.where(a >= b, after[b] >= a, before[b] <= a)


def _check_bins(bins: Sequence[float], name: str) -> None:
    are_numbers = len(bins) and all(map(is_number, bins))
    if not are_numbers or not all(x < y for x, y in pairwise(bins)):
        refuse_link(f"bins of {name}", list(bins), "numbers, ascending, one at least", BLOCK)


def _in_common(
    items: Items, codes: NDArray[np.uint64], n_items: int, a: Items, b: Items
) -> NDArray[np.int64]:
    """Number of codes that two items share, int64 [n].

    items, codes: as from `Thread.listed`; a pair shares the codes of a that b has, too.
    """
    distinct, numbers = np.unique(codes, return_inverse=True)
    item_keys = items * max(1, len(distinct)) + numbers.ravel()  # ascending
    # the codes of a for each pair, and whether b has them
    counts = np.bincount(items, minlength=n_items)
    first = np.cumsum(counts) - counts
    n_codes = counts[a]
    pair = np.repeat(np.arange(len(a)), n_codes)
    keys = b[pair] * max(1, len(distinct)) + numbers.ravel()[ranges(first[a], n_codes)]
    place = np.minimum(np.searchsorted(item_keys, keys), max(0, len(item_keys) - 1))
    shared = item_keys[place] == keys if len(item_keys) else np.zeros(0, dtype=bool)
    return np.bincount(pair[shared], minlength=len(a))
