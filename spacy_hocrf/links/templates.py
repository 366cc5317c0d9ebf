"""Feature templates of links, which combine values of items and of pairs of items.

A template is a string of terms joined by "+", such as "author + names(target, source) + distance".
A term is a value with places:

    distance                  a value of pairs, of (source, target)
    names(target, source)     the same kind of value, with source and target exchanged
    kind(source)              a value of items
    itself                    is the item linked to itself?

The values of a template are hashed together to a 64-bit number, which is a feature.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id

from spacy_hocrf.links.errors import LinkErrors
from spacy_hocrf.links.items import Thread, refuse_link
from spacy_hocrf.links.model import Keys
from spacy_hocrf.links.pairs import Pairs
from spacy_hocrf.links.values import ItemValue, PairValue

__all__ = ["ITSELF", "LinkFeatures", "Term", "observe", "parsed"]

ITSELF = "itself"
PLACES = ("source", "target")
TERM = re.compile(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*")
BLOCK = "[components.*.features]"
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Multiplier of the polynomial hash: odd, with the bits of the golden ratio."""

VALUE = "a value, such as spacy-hocrf.LinkDistance.v1"

Value = ItemValue | PairValue


class Term(NamedTuple):
    """A value with its places; `itself` has none."""

    name: str
    places: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LinkFeatures:
    """`spacy-hocrf.LinkFeatures.v1`: values, and templates that combine them.

    values (Mapping[str, Union[ItemValue, PairValue]]): values of items and of pairs, by the names that
        the templates use.
    templates (Sequence[str]): templates, which combine them to features.
    min_count (int): features that occur in fewer pairs of the training texts are left out.
    RAISES (ValueError): H296 for an invalid template, H297 for an unknown value, H298 for an object that is
        not a value, or a count below 1.
    """

    values: Mapping[str, Any]
    templates: Sequence[str]
    min_count: int = 1

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            if not isinstance(value, ItemValue | PairValue):
                refuse_link(f"values.{name}", type(value).__name__, VALUE, BLOCK)
        if not (isinstance(self.min_count, Integral) and self.min_count >= 1):
            refuse_link("min_count", repr(self.min_count), "at least 1", BLOCK)
        if isinstance(self.templates, str):
            refuse_link("templates", repr(self.templates), "a list of templates", BLOCK)
        for template in self.templates:
            _check(parsed(template), template, self.values)

    @property
    def reads(self) -> tuple[str, ...]:
        """The attributes of items that the values read, without duplicates."""
        return tuple(dict.fromkeys(name for v in self.values.values() for name in v.reads))


@lru_cache(maxsize=256)  # called for every text
def parsed(template: str) -> tuple[Term, ...]:
    """Parse a template into terms. RAISES (ValueError): H296 if it is invalid."""
    terms = []
    for part in template.split("+"):
        match = TERM.fullmatch(part)
        if match is None:
            reason = "expected name, name(place) or name(place, place)"
            raise _unreadable(part, template, reason)
        places = tuple(place.strip() for place in match[2].split(",")) if match[2] else ()
        terms.append(Term(match[1], places))
    return tuple(terms)


def observe(features: LinkFeatures, thread: Thread, pairs: Pairs) -> Keys:
    """Return the hash of each template's values for each pair, uint64 [P, K]."""
    keys = np.zeros((len(pairs.source), len(features.templates)), dtype=np.uint64)
    seen: dict[Term, Keys] = {}
    for k, template in enumerate(features.templates):
        keys[:, k] = get_string_id(template)
        for term in parsed(template):
            if term not in seen:
                seen[term] = _column(term, features.values, thread, pairs).astype(np.uint64)
            keys[:, k] = keys[:, k] * FACTOR + seen[term]
    return keys


def _column(term: Term, values: Mapping[str, Value], thread: Thread, pairs: Pairs) -> NDArray[Any]:
    """Value of a term for each pair, [P]."""
    if term.name == ITSELF:
        return np.equal(pairs.source, pairs.target)
    value = values[term.name]
    items = [getattr(pairs, place) for place in term.places or PLACES]
    if hasattr(value, "of_pairs"):  # isinstance of a protocol takes longer than most values
        return _checked(value.of_pairs(thread, *items), term.name, len(items[0]))
    column: NDArray[Any] = _checked(value.of_items(thread), term.name, len(thread))[items[0]]
    return column


def _checked(numbers: Any, name: str, size: int) -> NDArray[Any]:
    """Check the numbers of a value. RAISES (ValueError): H304 unless they are `size` whole numbers."""
    array: NDArray[Any] = np.asarray(numbers)
    if array.shape != (size,) or array.dtype.kind not in "biu":
        found = f"{array.dtype} of the extents {array.shape}"
        raise ValueError(LinkErrors.H304.format(name=name, found=found, expected=size))
    return array


def _check(terms: Sequence[Term], template: str, values: Mapping[str, Value]) -> None:
    """Check terms. RAISES (ValueError): H296 for places that a term cannot have, H297 for a value."""
    for term in terms:
        shown = f"{term.name}({', '.join(term.places)})" if term.places else term.name
        if term.name == ITSELF:
            if term.places:
                raise _unreadable(shown, template, f"'{term.name}' has no places")
            continue
        if term.name not in values:
            valid = ", ".join((ITSELF, *values))
            raise ValueError(
                LinkErrors.H297.format(template=template, found=term.name, known=valid)
            )
        for place in term.places:
            if place not in PLACES:
                valid = ", ".join(PLACES)
                raise _unreadable(shown, template, f"'{place}' is no place, but {valid} are")
        is_pair = isinstance(values[term.name], PairValue)
        if len(term.places) not in ((0, 2) if is_pair else (1,)):
            expected = "two places, or none" if is_pair else "one place, such as source"
            raise _unreadable(shown, template, f"'{term.name}' has {expected}")


def _unreadable(term: str, template: str, reason: str) -> ValueError:
    return ValueError(LinkErrors.H296.format(term=term.strip(), template=template, reason=reason))
