"""What features look at: templates that combine values of items and of pairs of items, at vertices,
edges and triples of the grid.

A template is a string of terms joined by "+", such as "author + names(target, source) + distance".
A term is a value at places:

    distance                  a value of pairs, of (source, target) of each vertex
    names(target, source)     the other way round
    kind(source)              a value of items
    kind(first)               at an edge: `first` and `second` are the two adjacent items, `common`
                              is the one that they share
    itself                    is the item linked to itself?
    shape                     row or column of an edge; which of six shapes a triple has

`source` and `target` are asked of every vertex of an edge or a triple, in its order. All values of a
template together are one number, a hash of 64 bits, which is a feature for each pattern of states
that the factor has.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id

from spacy_hocrf.links.errors import LinkErrors
from spacy_hocrf.links.grid import Grid, GridSection
from spacy_hocrf.links.items import Thread
from spacy_hocrf.links.values import ItemValue, PairValue

__all__ = ["ITSELF", "SHAPE", "LinkFeatures", "Term", "observe", "parsed"]

ITSELF, SHAPE = "itself", "shape"
EACH = ("source", "target")
OF_EDGES = ("first", "second", "common")
TERM = re.compile(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*")
BLOCK = "[components.*.features]"
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Of the polynomial hash; odd, its bits those of the golden ratio."""

Keys = NDArray[np.uint64]
Value = ItemValue | PairValue


class Term(NamedTuple):
    """A value at places; none for `itself` and `shape`."""

    name: str
    places: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LinkFeatures:
    """`spacy-hocrf.LinkFeatures.v1`: values, and templates that combine them.

    values (Mapping[str, Union[ItemValue, PairValue]]): what can be seen of items and of pairs, by
        the names that the templates use.
    vertices, edges, triples (Sequence[str]): templates of factors of one, two and three vertices.
    scales (Sequence[float]): value of a feature that fires, of a vertex, an edge, a triple: there
        are many more of the latter, and an update of the perceptron is the features' values.
    min_count (int): features of fewer factors of the training texts are left out.
    RAISES (ValueError): H296 for a template that cannot be read, H297 for an unknown value, H298
        for scales or a count that cannot be.
    """

    values: Mapping[str, Any]
    vertices: Sequence[str]
    edges: Sequence[str] = ()
    triples: Sequence[str] = ()
    scales: Sequence[float] = (1.0, 0.3, 0.1)
    min_count: int = 1

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            if not isinstance(value, ItemValue | PairValue):
                raise ValueError(
                    LinkErrors.H298.format(
                        name=f"values.{name}",
                        found=type(value).__name__,
                        expected="a value, such as spacy-hocrf.LinkDistance.v1",
                        block=BLOCK,
                    )
                )
        for templates, extra in ((self.vertices, ()), (self.edges, OF_EDGES), (self.triples, ())):
            for template in templates:
                _check(parsed(template), template, self.values, extra)
        right = len(self.scales) == 3 and all(0 < scale < np.inf for scale in self.scales)
        self._check("scales", self.scales, right, "three numbers above 0")
        self._check("min_count", self.min_count, self.min_count >= 1, "at least 1")

    @property
    def sections(self) -> tuple[Sequence[str], ...]:
        """Templates of vertices, edges and triples."""
        return self.vertices, self.edges, self.triples

    @property
    def reads(self) -> tuple[str, ...]:
        """The attributes of items that the values look at, each once."""
        return tuple(dict.fromkeys(name for v in self.values.values() for name in v.reads))

    def _check(self, name: str, found: Any, right: bool, expected: str) -> None:
        if not right:
            raise ValueError(
                LinkErrors.H298.format(name=name, found=found, expected=expected, block=BLOCK)
            )


def parsed(template: str) -> tuple[Term, ...]:
    """The terms of a template. RAISES (ValueError): H296."""
    terms = []
    for part in template.split("+"):
        found = TERM.fullmatch(part)
        if found is None:
            reason = "expected name, name(place) or name(place, place)"
            raise _unreadable(part, template, reason)
        places = tuple(place.strip() for place in found[2].split(",")) if found[2] else ()
        terms.append(Term(found[1], places))
    return tuple(terms)


def observe(
    features: LinkFeatures, thread: Thread, grid: Grid, order: int
) -> tuple[tuple[Keys, ...], tuple[GridSection, ...]]:
    """Observations of the templates: for the factors of each section, uint64 [n, templates].

    order (int): 1 for vertices alone, 2 for the 2D grid, 3 for the 3-wise one.
    RETURNS: the numbers, and the sections of the grid that they are of.
    """
    sections = grid.sections(order)
    found = []
    for section, templates in zip(sections, features.sections):
        view = _View(features.values, thread, grid, section)
        keys = [view.keys(template) for template in templates]
        none = np.zeros((len(section.vertices), 0), dtype=np.uint64)
        found.append(np.stack(keys, axis=1) if keys else none)
    return tuple(found), sections


class _View:
    """The values at the factors of one section; each term is looked at once."""

    def __init__(
        self, values: Mapping[str, Value], thread: Thread, grid: Grid, section: GridSection
    ) -> None:
        self._values = values
        self._thread = thread
        self._shape = section.shape
        self._items = {
            "source": grid.source[section.vertices],
            "target": grid.target[section.vertices],
        }
        self._items |= {name: getattr(section, name)[:, None] for name in OF_EDGES}
        self._seen: dict[Term, list[Keys]] = {}

    def keys(self, template: str) -> Keys:
        """One number for all values of a template, uint64 [n]."""
        key = np.full(len(self._shape), get_string_id(template), dtype=np.uint64)
        for term in parsed(template):
            if term not in self._seen:
                self._seen[term] = list(self._columns(term).T.astype(np.uint64))
            for column in self._seen[term]:
                key = key * FACTOR + column
        return key

    def _columns(self, term: Term) -> NDArray[Any]:
        """Values of a term, [n, vertices of the factor] or [n, 1]."""
        if term.name == SHAPE:
            return self._shape[:, None]
        if term.name == ITSELF:
            is_loop: NDArray[Any] = self._items["source"] == self._items["target"]
            return is_loop
        value = self._values[term.name]
        places = term.places or EACH
        items = [self._items[place] for place in places]
        if isinstance(value, PairValue):
            a, b = np.broadcast_arrays(*items)
            found = value.of_pairs(self._thread, a.ravel(), b.ravel())
            return _checked(found, term.name, a.size).reshape(a.shape)
        found = _checked(value.of_items(self._thread), term.name, len(self._thread))
        at_places: NDArray[Any] = found[items[0]]
        return at_places


def _checked(found: Any, name: str, size: int) -> NDArray[Any]:
    """RAISES (ValueError): H304 for anything but so many whole numbers."""
    array: NDArray[Any] = np.asarray(found)
    if array.shape != (size,) or array.dtype.kind not in "biu":
        shown = f"{array.dtype} of the extents {array.shape}"
        raise ValueError(LinkErrors.H304.format(name=name, found=shown, expected=size))
    return array


def _check(
    terms: Sequence[Term], template: str, values: Mapping[str, Value], extra: Sequence[str]
) -> None:
    """RAISES (ValueError): H296 for places that a term cannot have, H297 for an unknown value."""
    for term in terms:
        shown = f"{term.name}({', '.join(term.places)})" if term.places else term.name
        if term.name in (ITSELF, SHAPE):
            if term.places:
                raise _unreadable(shown, template, f"'{term.name}' has no places")
            continue
        if term.name not in values:
            known = ", ".join((ITSELF, SHAPE, *values))
            raise ValueError(
                LinkErrors.H297.format(template=template, found=term.name, known=known)
            )
        for place in term.places:
            if place not in (*EACH, *extra):
                known = ", ".join((*EACH, *extra))
                raise _unreadable(shown, template, f"'{place}' is no place here, but {known} are")
        is_pair = isinstance(values[term.name], PairValue)
        if len(term.places) not in ((0, 2) if is_pair else (1,)):
            expected = "two places, or none" if is_pair else "one place, such as source"
            raise _unreadable(shown, template, f"'{term.name}' has {expected}")


def _unreadable(term: str, template: str, reason: str) -> ValueError:
    return ValueError(LinkErrors.H296.format(term=term.strip(), template=template, reason=reason))
