"""Joint templates, which find places that should agree: `[components.*.joint.features.*]`.

A joint template searches a batch of Docs in groups for sets of places within one group. That all
places of a set have one label, or each its own state, is a *joint feature* of the template: it has one
weight, whichever places they are. Qian and Liu, TACL 2 (2014) §4.1.1.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.records import recordable
from spacy_hocrf.features.tokens import TokenBatch, check_attribute
from spacy_hocrf.joint.places import PlaceSets, joined_sets, pairs, repeated
from spacy_hocrf.types import is_number, is_whole

__all__ = [
    "HEAVIEST",
    "IdenticalPhrases",
    "JointTemplate",
    "check_templates",
    "checked_weight",
    "places_of",
    "refuse_joint",
    "states_of",
]


HEAVIEST = 1e6
"""The largest finite weight: with larger ones, sums have fewer correct digits than bounds are proved to."""


@runtime_checkable
class JointTemplate(Protocol):
    """Finds places that should agree.

    With a member `states` (Sequence[str]) it has one feature, that the places of a set have these states, one
    for each: see `stated.Pattern`. Then `outside` is ignored.
    """

    @property
    def name(self) -> str:
        """Unique name among the templates of the model."""
        ...

    @property
    def outside(self) -> bool:
        """Is there also a feature for places that are completely unlabelled?"""
        ...

    @property
    def weight(self) -> float:
        """Initial weight of its features, until they are learnt or set, nats; infinite ones stay."""
        ...

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> PlaceSets:
        """Return sets of places; invalid ones are H120.

        batch (TokenBatch): D Docs, which may be of several groups.
        groups (int64 [D]): number of each Doc's group, ascending; a set must be in one group.
        """
        ...


@recordable
@dataclass(frozen=True, kw_only=True)
class IdenticalPhrases:
    """`spacy-hocrf.IdenticalPhrases.v1`: two places with the same phrase are both entities of one label.
    There is one feature per label.

    attr (str): token attribute in which identical phrases must agree, token by token.
    min_length, max_length (int): number of tokens in a phrase.
    max_pairs (int): most pairs of each phrase in a group, the nearest first; neighbours are paired in
        any case.
    skip_stopwords (bool): leave out phrases that end with a stop word, or begin or end with
        punctuation.
    outside (bool): add a feature for both places being unlabelled.
    weight (float): initial weight of these features, until they are learnt or set, nats.
    RAISES (ValueError): H023 or H024 for a bad attribute, H099 for a number out of range.
    """

    attr: str = "LOWER"
    min_length: int = 1
    max_length: int = 3
    skip_stopwords: bool = True
    outside: bool = False
    weight: float = 0.0
    max_pairs: int = 20

    def __post_init__(self) -> None:
        check_attribute(self.attr)
        if not (is_number(self.weight) and abs(self.weight) <= HEAVIEST):
            refuse_joint(
                "weight", repr(self.weight), f"a number from -{HEAVIEST:g} to {HEAVIEST:g}"
            )
        bounds = {"min_length": 1, "max_length": self.min_length, "max_pairs": 1}
        for name, bound in bounds.items():
            value = getattr(self, name)
            if not (is_whole(value) and value >= bound):
                refuse_joint(name, repr(value), f"at least {bound}")

    @property
    def name(self) -> str:
        """Name made of the kind of template and its phrases."""
        return f"{type(self).__name__}[{self.attr},{self.min_length}-{self.max_length}]"

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> PlaceSets:
        """Return sets of places with one phrase, in Docs of one group."""
        lengths = range(self.min_length, self.max_length + 1)
        repeats = repeated(batch, groups, self.attr, lengths, skip_stopwords=self.skip_stopwords)
        return joined_sets([pairs(phrases, self.max_pairs) for phrases in repeats])


def checked_weight(weight: Any) -> float:
    """Return a weight, which may be "inf" or "-inf". RAISES (ValueError): H099 if it is not a number."""
    try:
        number = math.nan if isinstance(weight, bool) else float(weight)
    except (OverflowError, TypeError, ValueError):
        number = math.nan
    if math.isnan(number) or HEAVIEST < abs(number) < math.inf:
        expected = f'a number from -{HEAVIEST:g} to {HEAVIEST:g}, "inf" or "-inf"'
        refuse_joint("weight", repr(weight), expected)
    return number


def refuse_joint(name: str, found: Any, expected: str) -> NoReturn:
    """Reject a setting. RAISES (ValueError): H099, always."""
    raise ValueError(Errors.H099.format(name=name, found=found, expected=expected))


def check_templates(templates: Iterable[Any]) -> tuple[JointTemplate, ...]:
    """Check the templates of one component.

    RAISES (ValueError): H096 if there is none, H097 for an object that is not a joint template, H098 if two
        have the same name, H099 for a name, a weight or states of another kind.
    """
    checked: dict[str, JointTemplate] = {}
    for template in templates:
        if not isinstance(template, JointTemplate):
            raise ValueError(Errors.H097.format(found=type(template).__name__))
        checked_weight(template.weight)
        states = getattr(template, "states", None) or ("none",)
        if isinstance(states, str) or not all(isinstance(state, str) for state in states):
            refuse_joint("states", repr(states), "a list of strings")
        if not isinstance(template.name, str) or not template.name:
            refuse_joint("name", repr(template.name), "a string that is not empty")
        if template.name in checked:
            raise ValueError(Errors.H098.format(name=template.name))
        checked[template.name] = template
    if not checked:
        raise ValueError(Errors.H096)
    return tuple(checked.values())


def places_of(template: JointTemplate, batch: TokenBatch, groups: NDArray[np.int64]) -> PlaceSets:
    """Return the sets of places that a template finds in a batch, checked.

    groups (int64 [D]): number of each Doc's group, ascending.
    RAISES (ValueError): H120 for invalid sets: places outside the batch, in two Docs, in two groups or
        overlapping, or a single place; for sets of another size than the number of states; and for what are
        no PlaceSets of whole numbers.
    """
    found, states = template.find(batch, groups), states_of(template)
    columns = [np.asarray(getattr(found, name, None)) for name in ("offsets", "start", "end")]
    if any(c.ndim != 1 or not (c.dtype.kind in "iu" or not c.size) for c in columns):
        kind = f"{type(found).__name__} without vectors of whole numbers"
        raise ValueError(Errors.H120.format(template=template.name, reason=kind))
    places = PlaceSets(*(column.astype(np.int64) for column in columns))
    reason = _wrong(places, batch, groups)
    if reason is None and states is not None and (np.diff(places.offsets) != len(states)).any():
        sizes = ", ".join(map(str, np.unique(np.diff(places.offsets)).tolist()))
        reason = f"sets of {sizes} places, and {len(states)} states"
    if reason is not None:
        raise ValueError(Errors.H120.format(template=template.name, reason=reason))
    return places


def states_of(template: JointTemplate) -> tuple[str, ...] | None:
    """Return the states of a template that has a state for each place; None for any other template."""
    states = getattr(template, "states", None)
    return None if states is None else tuple(states)


def _wrong(places: PlaceSets, batch: TokenBatch, groups: NDArray[np.int64]) -> str | None:
    """Describe what is wrong with sets of places, for a message; None if nothing is."""
    offsets, start, end = places.offsets, places.start, places.end
    sizes, ends = np.diff(offsets), [*offsets[:1].tolist(), *offsets[-1:].tolist()]
    if ends != [0, len(start)] or len(start) != len(end) or (sizes < 2).any():
        return "sets of fewer than two places"
    if not len(start):
        return None
    if start.min() < 0 or end.max() > len(batch) or (start >= end).any():
        return f"places outside the batch of {len(batch)} tokens"
    if (batch.sequence[start] != batch.sequence[end - 1]).any():
        return "places that reach into the next Doc"
    if (np.diff(groups[batch.sequence[start]])[np.diff(places.number) == 0] != 0).any():
        return "sets of places in several groups"
    order = np.lexsort((start, places.number))
    over = start[order[1:]] < end[order[:-1]]
    if (over & (np.diff(places.number) == 0)).any():
        return "places that overlap"
    return None
