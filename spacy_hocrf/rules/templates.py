"""Rules about all spans of a text, as written in a config: `spacy-hocrf.AtMost.v1` and others.

Each rule is a small automaton over the labels of the spans (engine/rules.py) with a price that a reading pays
for breaking it: a number, infinity, or learnt. With finite prices these are the soft constraints of Anzaroot,
Passos, Belanger and McCallum, ICML 2014: many are generated from the labels, and useless ones get the price
0.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.rules import MAX_STATES, Rule
from spacy_hocrf.features.dollars import with_dollars
from spacy_hocrf.rules.errors import ConstraintErrors
from spacy_hocrf.types import is_whole

__all__ = [
    "DEAREST",
    "LEARNT",
    "Apart",
    "AtLeast",
    "AtMost",
    "Precedes",
    "Priced",
    "RuleTemplate",
    "Together",
    "checked_price",
    "place_of",
    "refuse_rule",
    "rules_of",
]

LEARNT = "learnt"
"""The price of rules whose price is learnt from the training corpus."""

DEAREST = 1e6
"""The largest finite price; sums with larger ones would lose digits."""


@runtime_checkable
class RuleTemplate(Protocol):
    """Makes rules about all spans of a text."""

    @property
    def name(self) -> str:
        """A name that no other template of the component has."""
        ...

    @property
    def price(self) -> float | str:
        """Price of a broken rule, nats, at least 0; "inf" if none may be broken, "learnt" to learn a separate
        price for each rule from the training corpus.
        """
        ...

    def rules(self, labels: Sequence[str]) -> Sequence[Rule]:
        """Return the rules for the labels of a model, with distinct names; their tables are over these
        labels. `kept` tells for each state whether the rule is kept if no more spans follow.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Priced:
    """Base class of the built-in templates.

    price (Union[float, str]): price for breaking one of the rules, nats; "inf" to forbid it, "learnt" to
        learn it from the training corpus.
    """

    price: Any = LEARNT

    def __post_init__(self) -> None:
        object.__setattr__(self, "price", checked_price(self.price))


@dataclass(frozen=True, kw_only=True)
class _OfLabels(Priced):
    """Makes one rule for each of some labels.

    labels (Optional[Sequence[str]]): null for all labels of the model.
    """

    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels is not None:
            if isinstance(self.labels, str) or not self.labels:
                refuse_rule("labels", repr(self.labels), "a list of labels, or null for all")
            object.__setattr__(self, "labels", with_dollars(tuple(self.labels)))

    def _name(self, number: int) -> str:
        chosen = "" if self.labels is None else f": {', '.join(self.labels)}"
        return f"{type(self).__name__}[{number}{chosen}]"

    def _rules(self, labels: Sequence[str], rule: Callable[[int], Rule]) -> list[Rule]:
        wanted = labels if self.labels is None else self.labels
        return [replace(rule(place_of(label, labels)), name=label) for label in wanted]


@dataclass(frozen=True, kw_only=True)
class AtMost(_OfLabels):
    """`spacy-hocrf.AtMost.v1`: a text has at most `most` spans of a label.

    labels (Optional[Sequence[str]]): one rule for each; null for all labels of the model.
    most (int): number of spans.
    price (Union[float, str]): price for breaking a rule, nats; "inf" to forbid it, "learnt".
    RAISES (ValueError): H214 for bad settings, H215 for a label that the model does not have.
    """

    most: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_count("most", self.most, 0)

    @property
    def name(self) -> str:
        """The kind of rule, the number, and the labels if they are given."""
        return self._name(self.most)

    def rules(self, labels: Sequence[str]) -> list[Rule]:
        """Return one rule for each label."""
        return self._rules(labels, lambda y: _counted(y, self.most, len(labels), most=True))


@dataclass(frozen=True, kw_only=True)
class AtLeast(_OfLabels):
    """`spacy-hocrf.AtLeast.v1`: a text has at least `least` spans of a label.

    labels (Optional[Sequence[str]]): one rule for each; null for all labels of the model.
    least (int): number of spans.
    price (Union[float, str]): price for breaking a rule, nats; "inf" to forbid it, "learnt".
    RAISES (ValueError): H214 for bad settings, H215 for a label that the model does not have.
    """

    least: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_count("least", self.least, 1)

    @property
    def name(self) -> str:
        """The kind of rule, the number, and the labels if they are given."""
        return self._name(self.least)

    def rules(self, labels: Sequence[str]) -> list[Rule]:
        """Return one rule for each label."""
        return self._rules(labels, lambda y: _counted(y, self.least - 1, len(labels), most=False))


@dataclass(frozen=True, kw_only=True)
class _OfPairs(Priced):
    """Makes one rule for each of some pairs of different labels.

    pairs (Optional[Sequence[Sequence[str]]]): null for all pairs of the model's labels.
    """

    pairs: Sequence[Sequence[str]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pairs is not None:
            right = not isinstance(self.pairs, str) and len(self.pairs) > 0
            if not right or not all(map(_is_pair, self.pairs)):
                refuse_rule("pairs", repr(self.pairs), "pairs of different labels, or null for all")
            object.__setattr__(self, "pairs", with_dollars(tuple(map(tuple, self.pairs))))

    @property
    def name(self) -> str:
        """The kind of rule, and the pairs if they are given."""
        chosen = [] if self.pairs is None else [f"{a} & {b}" for a, b in self.pairs]
        return type(self).__name__ + (f"[{', '.join(chosen)}]" if chosen else "")

    def rules(self, labels: Sequence[str]) -> list[Rule]:
        """Return one rule for each pair."""
        wanted = list(permutations(labels, 2)) if self.pairs is None else self.pairs
        return [
            replace(
                self._rule(place_of(a, labels), place_of(b, labels), len(labels)), name=f"{a} & {b}"
            )
            for a, b in wanted
        ]

    def _rule(self, one: int, other: int, n_labels: int) -> Rule:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Precedes(_OfPairs):
    """`spacy-hocrf.Precedes.v1`: no span of the second label comes before one of the first.

    pairs (Optional[Sequence[Sequence[str]]]): pairs of labels, one rule for each; null for all ordered pairs.
    price (Union[float, str]): price for breaking a rule, nats; "inf" to forbid it, "learnt".
    RAISES (ValueError): H214 for bad settings, H215 for a label that the model does not have.
    """

    def _rule(self, one: int, other: int, n_labels: int) -> Rule:
        """States: 0, neither has come, or the first only; 1, the second has come; 2, then the first."""
        after = _staying(3, n_labels)
        after[0, other] = 1
        after[1, one] = 2
        return Rule(after, np.array([True, True, False]))


@dataclass(frozen=True, kw_only=True)
class Together(_OfPairs):
    """`spacy-hocrf.Together.v1`: a text with a span of the first label also has one of the second.

    pairs (Optional[Sequence[Sequence[str]]]): pairs of labels, one rule for each; null for all ordered pairs.
    price (Union[float, str]): price for breaking a rule, nats; "inf" to forbid it, "learnt".
    RAISES (ValueError): H214 for bad settings, H215 for a label that the model does not have.
    """

    def _rule(self, one: int, other: int, n_labels: int) -> Rule:
        """States: 0, neither has come; 1, only the first; 2, the second."""
        after = _staying(3, n_labels)
        after[0, one] = 1
        after[:2, other] = 2
        return Rule(after, np.array([True, False, True]))


@dataclass(frozen=True, kw_only=True)
class Apart(_OfPairs):
    """`spacy-hocrf.Apart.v1`: no text has spans of both labels.

    pairs (Optional[Sequence[Sequence[str]]]): pairs of labels, one rule for each; null for all pairs.
    price (Union[float, str]): price for breaking a rule, nats; "inf" to forbid it, "learnt".
    RAISES (ValueError): H214 for bad settings, H215 for a label that the model does not have.
    """

    def rules(self, labels: Sequence[str]) -> list[Rule]:
        """Return one rule for each unordered pair."""
        rules = super().rules(labels)
        if self.pairs is not None:
            return rules
        order = list(permutations(range(len(labels)), 2))
        return [rule for (one, other), rule in zip(order, rules) if one < other]

    def _rule(self, one: int, other: int, n_labels: int) -> Rule:
        """States: 0, neither has come; 1, only the first; 2, only the second; 3, both."""
        after = _staying(4, n_labels)
        after[:, one] = [1, 1, 3, 3]
        after[:, other] = [2, 3, 2, 3]
        return Rule(after, np.array([True, True, True, False]))


def rules_of(template: RuleTemplate, labels: Sequence[str]) -> list[Rule]:
    """Return the rules of a template for some labels, their names prefixed with the template's name; prices
    to be learnt are 0 for now.

    RAISES (ValueError): H214 for an invalid price, H591 for what are no rules with names of their own, H311
        for a table that does not fit the labels.
    """
    checked = checked_price(template.price)
    price = 0.0 if isinstance(checked, str) else checked
    returned: Any = template.rules(labels)
    rules: list[Any] = list(returned) if isinstance(returned, Iterable) else [returned]
    names = [rule.name if isinstance(rule, Rule) else None for rule in rules]
    if None in names or len({*names}) < len(names):
        found = repr(returned if None in names else names)[:60]
        raise ValueError(ConstraintErrors.H591.format(template=template.name, found=found))
    return [
        replace(_checked_rule(rule, template, labels), price=price, name=f"{template.name}, {name}")
        for rule, name in zip(rules, names)
    ]


def place_of(label: str, labels: Sequence[str]) -> int:
    """Return the index of a label among those of a model. RAISES (ValueError): H215 for an unknown one."""
    if label not in labels:
        raise ValueError(ConstraintErrors.H215.format(found=label, known=", ".join(labels)))
    return labels.index(label)


def checked_price(price: Any) -> float | str:
    """Check a price and return it as a number or "learnt". RAISES (ValueError): H214 for anything else."""
    if price == LEARNT:
        return LEARNT
    try:
        number = math.nan if isinstance(price, bool) else float(price)
    except (OverflowError, TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= DEAREST and number != math.inf:
        refuse_rule("price", repr(price), f'a number from 0 to {DEAREST:g}, "inf" or "{LEARNT}"')
    return number


def refuse_rule(name: str, found: Any, expected: str) -> NoReturn:
    """Reject a setting. RAISES (ValueError): H214, always."""
    raise ValueError(ConstraintErrors.H214.format(name=name, found=found, expected=expected))


def _checked_rule(rule: Rule, template: RuleTemplate, labels: Sequence[str]) -> Rule:
    """Return a rule with arrays of the types of `Rule`. RAISES (ValueError): H311 if they do not fit."""
    after, kept = np.asarray(rule.after), np.asarray(rule.kept)
    fits = kept.ndim == 1 and 0 < len(kept) <= MAX_STATES and kept.dtype.kind in "biu"
    fits = fits and after.shape == (len(kept), len(labels))
    fits = fits and (after.dtype.kind in "iu" or not after.size)
    if not fits or after.min(initial=0) < 0 or after.max(initial=0) >= len(kept):
        table = f"{after.tolist()} and kept = {kept.tolist()}"
        where = dict(template=template.name, rule=rule.name, found=table, n_labels=len(labels))
        raise ValueError(ConstraintErrors.H311.format(**where))
    return replace(rule, after=after.astype(np.int32), kept=kept.astype(bool))


def _staying(n_states: int, n_labels: int) -> NDArray[np.int32]:
    """Return a table in which no label changes the state, int32 [n_states, n_labels]."""
    return np.repeat(np.arange(n_states, dtype=np.int32)[:, None], n_labels, axis=1)


def _counted(label: int, number: int, n_labels: int, *, most: bool) -> Rule:
    """States: number of spans of the label, up to number + 1; kept with at most `number`, or with more."""
    after = _staying(number + 2, n_labels)
    after[:, label] = np.minimum(np.arange(1, number + 3), number + 1)
    few = np.arange(number + 2) <= number
    return Rule(after, few if most else ~few)


def _is_pair(pair: Any) -> bool:
    texts = not isinstance(pair, str) and all(isinstance(label, str) for label in pair)
    return texts and len(pair) == 2 and pair[0] != pair[1]


def _check_count(name: str, found: Any, least: int) -> None:
    if not is_whole(found) or found < least:
        refuse_rule(name, repr(found), f"a whole number of at least {least}")
