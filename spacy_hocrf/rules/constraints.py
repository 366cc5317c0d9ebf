"""`spacy-hocrf.Constraints.v1`: constraints on the spans of every text, and their prices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from spacy_hocrf.features.dollars import with_dollars
from spacy_hocrf.rules.ends import EDGE
from spacy_hocrf.rules.templates import LEARNT, AtLeast, AtMost, RuleTemplate, refuse_rule

__all__ = ["Constraints"]

TRAINING = ("none", "successions", "all")


@dataclass(frozen=True)
class Constraints:
    """`spacy-hocrf.Constraints.v1`: constraints on the spans of every text.

    forbidden (Sequence[Sequence[str]]): pairs of labels; no span of the second label may begin where one of
        the first ends. "O" is text in no span; "" is the beginning of the text when it is the first of a
        pair, and its end when it is the second.
    required (Sequence[Sequence[str]]): pairs of labels; where a span of the first label ends, one of the
        second must begin.
    at_most, at_least (Optional[Mapping[str, int]]): number of spans of a label in a text; short for `rules`
        of the kinds `AtMost.v1` and `AtLeast.v1` with `price = "inf"`.
    rules (Optional[Mapping[str, RuleTemplate]]): further rules about all spans of a text, by the names of the
        config blocks, each with its price.
    tolerance (float): maximum error of predicted scores; 0 makes them exact. A text that breaks rules with
        less probability than this is decoded without them. Predictions never break a rule with price "inf".
        Readings follow more rules, see `violations.with_more`.
    spans_key (str): key of `doc.spans` for the constraints of single texts.
    training (str): the constraints that training observes: "none", "successions" (forbidden and required) or
        "all" (also the rules with price "inf").
    RAISES (ValueError): H214 for invalid settings.
    """

    forbidden: Sequence[Sequence[str]] = ()
    required: Sequence[Sequence[str]] = ()
    at_most: Mapping[str, int] | None = None
    at_least: Mapping[str, int] | None = None
    rules: Mapping[str, Any] | None = None
    tolerance: float = 0.01
    spans_key: str = "hocrf_constraints"
    training: str = "successions"

    def __post_init__(self) -> None:
        for name in ("forbidden", "required"):
            for pair in getattr(self, name):
                if not _is_pair(pair):
                    refuse_rule(name, pair, 'pairs of labels, "" for the edge of the text')
            pairs = with_dollars(tuple(map(tuple, getattr(self, name))))
            object.__setattr__(self, name, pairs)
        for name in ("at_most", "at_least"):
            for label, number in (getattr(self, name) or {}).items():
                if type(number) is not int or number < 0:
                    refuse_rule(name, {label: number}, "whole numbers of spans by label")
        for label, least in (self.at_least or {}).items():
            most = (self.at_most or {}).get(label)
            if most is not None and most < least:
                found = f"{least} of {label!r} at least, {most} at most"
                refuse_rule("at_most", found, "no fewer than at_least")
        if type(self.tolerance) not in (int, float) or not 0 <= self.tolerance < 1:
            refuse_rule("tolerance", self.tolerance, "a number of at least 0 and below 1")
        if not isinstance(self.spans_key, str) or not self.spans_key:
            refuse_rule("spans_key", self.spans_key, "a key of doc.spans")
        if self.training not in TRAINING:
            refuse_rule("training", self.training, f"one of {', '.join(TRAINING)}")
        names = set[str]()
        for key, template in (self.rules or {}).items():
            if not isinstance(template, RuleTemplate):
                found = type(template).__name__
                refuse_rule(
                    f"rules.{key}", found, "a template of rules, such as spacy-hocrf.AtMost.v1"
                )
            if not isinstance(template.name, str) or not template.name:
                refuse_rule(f"rules.{key}", repr(template.name), "a template with a name, a string")
            if template.name in names:
                refuse_rule(f"rules.{key}", template.name, "no rules that another block has")
            names.add(template.name)

    @property
    def labels(self) -> list[str]:
        """All labels named in the settings, except in `rules`."""
        pairs = [label for pair in (*self.forbidden, *self.required) for label in pair]
        counted = [*(self.at_most or {}), *(self.at_least or {})]
        return [*(label for label in pairs if label != EDGE), *dict.fromkeys(counted)]

    @cached_property
    def templates(self) -> tuple[RuleTemplate, ...]:
        """Templates of all rules about the spans of a text."""
        most, least = (self.at_most or {}), (self.at_least or {})
        counted = [AtMost(labels=[y], most=n, price=inf) for y, n in most.items()]
        more = [AtLeast(labels=[y], least=n, price=inf) for y, n in least.items() if n]
        return (*counted, *more, *(self.rules or {}).values())

    @cached_property
    def learnt(self) -> bool:
        """Is the price of any rule learnt?"""
        return any(template.price == LEARNT for template in self.templates)

    @cached_property
    def in_training(self) -> bool:
        """Does training observe any constraint?"""
        if self.training == "all" and any(template.price == inf for template in self.templates):
            return True
        return self.training != "none" and bool(self.forbidden or self.required)

    @cached_property
    def empty(self) -> bool:
        """Are there no constraints but those of single texts?"""
        return not self.labels and not self.templates


def _is_pair(pair: Any) -> bool:
    """Is it a pair of labels, at most one of which is the edge of the text?"""
    return (
        isinstance(pair, Sequence)
        and not isinstance(pair, str)
        and len(pair) == 2
        and all(isinstance(label, str) for label in pair)
        and any(label != EDGE for label in pair)
    )
