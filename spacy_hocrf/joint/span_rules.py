"""Rules about all spans of a Doc, which a reading keeps or breaks: `spacy-hocrf.AtMost.v1` and the like.

A rule is one joint feature, whose value is -1 where it is broken and else 0: its weight is what breaking
it costs. The soft constraints of Anzaroot, Passos, Belanger and McCallum, ICML 2014, of which many are
made from the labels, and those of no use get the weight 0.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.memory import Memory
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.dollars import with_dollars
from spacy_hocrf.features.records import recordable
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.errors import RuleErrors
from spacy_hocrf.joint.places import PlaceSets
from spacy_hocrf.joint.templates import JointTemplate, checked_weight

__all__ = [
    "Apart",
    "AtLeast",
    "AtMost",
    "NamedRule",
    "Precedes",
    "SpanTemplate",
    "Together",
    "rules_of",
]


class NamedRule(NamedTuple):
    """A rule about the labels of a Doc's spans, from left to right."""

    name: str  # unlike that of any other rule of the template
    memory: Memory  # over the L labels of the model; `ends`: is the rule kept if the last span was this one?


@runtime_checkable
class SpanTemplate(JointTemplate, Protocol):
    """Makes rules about all spans of a Doc. It finds no places."""

    def rules(self, labels: Sequence[str]) -> Sequence[NamedRule]:
        """The rules for the labels of a model, each a joint feature."""
        ...


@dataclass(frozen=True, kw_only=True)
class _SpanRules:
    """What our templates have in common.

    weight (float): what it costs to break one of the rules, nats, until that is learnt or set; "inf"
        for rules that no reading breaks, which are not learnt.
    """

    weight: Any = 0.0

    entities: ClassVar[bool] = False
    outside: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", checked_weight(self.weight))
        if self.weight == -math.inf:
            _refuse("weight", self.weight, 'a finite number, or "inf"')

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> PlaceSets:
        """No places: the rules are about all spans."""
        none = np.zeros(0, dtype=np.int64)
        return PlaceSets(np.zeros(1, dtype=np.int64), none, none)


@dataclass(frozen=True, kw_only=True)
class _OfLabels(_SpanRules):
    """A rule about each of some labels.

    labels (Optional[Sequence[str]]): null for all of the model.
    """

    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels is not None:
            if isinstance(self.labels, str) or not self.labels:
                _refuse("labels", repr(self.labels), "a list of labels, or null for all")
            object.__setattr__(self, "labels", with_dollars(tuple(self.labels)))

    def _name(self, number: int) -> str:
        chosen = "" if self.labels is None else f": {', '.join(self.labels)}"
        return f"{type(self).__name__}[{number}{chosen}]"

    def _each(self, labels: Sequence[str], memory: Callable[[int], Memory]) -> list[NamedRule]:
        wanted = labels if self.labels is None else self.labels
        return [NamedRule(label, memory(_place(label, labels))) for label in wanted]


@recordable
@dataclass(frozen=True, kw_only=True)
class AtMost(_OfLabels):
    """`spacy-hocrf.AtMost.v1`: a Doc has so many spans of a label at most.

    labels (Optional[Sequence[str]]): one rule for each; null for all labels of the model.
    most (int): number of spans.
    weight (float): what it costs to break a rule, nats, until that is learnt or set; "inf" for never.
    RAISES (ValueError): H099 for bad settings, and for a label that the model does not have.
    """

    most: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_count("most", self.most, 0)

    @property
    def name(self) -> str:
        """The number, and the labels if they are chosen."""
        return self._name(self.most)

    def rules(self, labels: Sequence[str]) -> list[NamedRule]:
        """One for each label."""
        return self._each(labels, lambda y: _counted(y, self.most, len(labels), most=True))


@recordable
@dataclass(frozen=True, kw_only=True)
class AtLeast(_OfLabels):
    """`spacy-hocrf.AtLeast.v1`: a Doc has so many spans of a label at least.

    labels (Optional[Sequence[str]]): one rule for each; null for all labels of the model.
    least (int): number of spans.
    weight (float): what it costs to break a rule, nats, until that is learnt or set; "inf" for never.
    RAISES (ValueError): H099 for bad settings, and for a label that the model does not have.
    """

    least: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_count("least", self.least, 1)

    @property
    def name(self) -> str:
        """The number, and the labels if they are chosen."""
        return self._name(self.least)

    def rules(self, labels: Sequence[str]) -> list[NamedRule]:
        """One for each label."""
        return self._each(labels, lambda y: _counted(y, self.least - 1, len(labels), most=False))


@dataclass(frozen=True, kw_only=True)
class _OfPairs(_SpanRules):
    """A rule about each of some pairs of different labels.

    pairs (Optional[Sequence[Sequence[str]]]): null for all of the model.
    """

    pairs: Sequence[Sequence[str]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pairs is not None:
            right = not isinstance(self.pairs, str) and len(self.pairs) > 0
            if not right or not all(map(_is_pair, self.pairs)):
                _refuse("pairs", repr(self.pairs), "pairs of different labels, or null for all")
            object.__setattr__(self, "pairs", with_dollars(tuple(map(tuple, self.pairs))))

    @property
    def name(self) -> str:
        """The kind, and the pairs if they are chosen."""
        chosen = [] if self.pairs is None else [f"{a} & {b}" for a, b in self.pairs]
        return type(self).__name__ + (f"[{', '.join(chosen)}]" if chosen else "")

    def rules(self, labels: Sequence[str]) -> list[NamedRule]:
        """One for each pair."""
        wanted = list(permutations(labels, 2)) if self.pairs is None else self.pairs
        return [
            NamedRule(f"{a} & {b}", self._memory(_place(a, labels), _place(b, labels), len(labels)))
            for a, b in wanted
        ]

    def _memory(self, one: int, other: int, n_labels: int) -> Memory:
        raise NotImplementedError


@recordable
@dataclass(frozen=True, kw_only=True)
class Precedes(_OfPairs):
    """`spacy-hocrf.Precedes.v1`: no span of the second label comes before one of the first.

    pairs (Optional[Sequence[Sequence[str]]]): of labels, one rule for each; null for all ordered pairs.
    weight (float): what it costs to break a rule, nats, until that is learnt or set; "inf" for never.
    RAISES (ValueError): H099 for bad settings, and for a label that the model does not have.
    """

    def _memory(self, one: int, other: int, n_labels: int) -> Memory:
        """States: 1, the second has come; 2, and then the first."""
        after = _staying(3, n_labels)
        after[0, other] = 1
        after[1, one] = 2
        return Memory(after, np.array([True, True, False]))


@recordable
@dataclass(frozen=True, kw_only=True)
class Together(_OfPairs):
    """`spacy-hocrf.Together.v1`: a Doc with a span of the first label has one of the second.

    pairs (Optional[Sequence[Sequence[str]]]): of labels, one rule for each; null for all ordered pairs.
    weight (float): what it costs to break a rule, nats, until that is learnt or set; "inf" for never.
    RAISES (ValueError): H099 for bad settings, and for a label that the model does not have.
    """

    def _memory(self, one: int, other: int, n_labels: int) -> Memory:
        """States: 1, only the first has come; 2, the second has."""
        after = _staying(3, n_labels)
        after[0, one] = 1
        after[:2, other] = 2
        return Memory(after, np.array([True, False, True]))


@recordable
@dataclass(frozen=True, kw_only=True)
class Apart(_OfPairs):
    """`spacy-hocrf.Apart.v1`: no Doc has spans of both labels.

    pairs (Optional[Sequence[Sequence[str]]]): of labels, one rule for each; null for all pairs.
    weight (float): what it costs to break a rule, nats, until that is learnt or set; "inf" for never.
    RAISES (ValueError): H099 for bad settings, and for a label that the model does not have.
    """

    def rules(self, labels: Sequence[str]) -> list[NamedRule]:
        """One for each pair, in either order."""
        found = super().rules(labels)
        if self.pairs is not None:
            return found
        order = list(permutations(range(len(labels)), 2))
        return [rule for (one, other), rule in zip(order, found) if one < other]

    def _memory(self, one: int, other: int, n_labels: int) -> Memory:
        """States: 1, only the first has come; 2, only the second; 3, both."""
        after = _staying(4, n_labels)
        after[:, one] = [1, 1, 3, 3]
        after[:, other] = [2, 3, 2, 3]
        return Memory(after, np.array([True, True, True, False]))


def rules_of(template: Any, labels: Sequence[str]) -> Sequence[NamedRule] | None:
    """The rules of a template for some labels; None for a template that finds places.

    RAISES (ValueError): H311 for a memory that does not fit the labels.
    """
    if not isinstance(template, SpanTemplate):
        return None
    rules = template.rules(labels)
    for name, memory in rules:
        after, ends = memory.after, memory.ends
        right = after.ndim == 2 and after.shape == (len(ends), len(labels)) and len(ends) > 0
        if not right or after.min(initial=0) < 0 or after.max(initial=0) >= len(ends):
            found = f"{after.tolist()} with {len(ends)} states"
            known = dict(template=template.name, rule=name, found=found, n_labels=len(labels))
            raise ValueError(RuleErrors.H311.format(**known))
    return rules


def _staying(n_states: int, n_labels: int) -> NDArray[np.int32]:
    """Every state is left for itself, int32 [n_states, n_labels]."""
    return np.repeat(np.arange(n_states, dtype=np.int32)[:, None], n_labels, axis=1)


def _counted(label: int, number: int, n_labels: int, *, most: bool) -> Memory:
    """States: how many have come, up to number + 1; kept with so many at most, or with more."""
    after = _staying(number + 2, n_labels)
    after[:, label] = np.minimum(np.arange(1, number + 3), number + 1)
    few = np.arange(number + 2) <= number
    return Memory(after, few if most else ~few)


def _place(label: str, labels: Sequence[str]) -> int:
    if label not in labels:
        _refuse("labels", repr(label), f"one of {', '.join(labels)}")
    return labels.index(label)


def _is_pair(pair: Any) -> bool:
    texts = not isinstance(pair, str) and all(isinstance(label, str) for label in pair)
    return texts and len(pair) == 2 and pair[0] != pair[1]


def _check_count(name: str, found: Any, least: int) -> None:
    if type(found) is not int or found < least:
        _refuse(name, repr(found), f"a whole number of at least {least}")


def _refuse(name: str, found: Any, expected: str) -> None:
    raise ValueError(Errors.H099.format(name=name, found=found, expected=expected))
