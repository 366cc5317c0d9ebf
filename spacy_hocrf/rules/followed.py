"""The rules about all spans of a text that an automaton follows, of all those that a model has.

Texts are read with as few rules as they could break. Whoever looks further than the tolerance does, at
improbable readings, starts again with those that such a reading breaks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.rules.compiled import CompiledRules, Numbers
from spacy_hocrf.types import Potentials, Segments

__all__ = ["FollowedRules"]


@dataclass(frozen=True)
class FollowedRules:
    """Some rules of a model, and the automaton that follows them.

    rules (CompiledRules): all rules of the model.
    plain (Automaton): of the model, without rules about all spans.
    numbers (tuple[int, ...]): the rules that are followed, ascending.
    """

    rules: CompiledRules
    plain: Automaton
    numbers: Numbers = ()

    @cached_property
    def automaton(self) -> Automaton:
        """RAISES (ValueError): H219 if the rules have too many states together."""
        return self.on(self.plain) if self.numbers else self.plain

    def on(self, automaton: Automaton) -> Automaton:
        """Another automaton without rules, times the rules that are followed."""
        return self.rules.remembering(automaton, self.numbers)[1]

    def with_others(self, others: Iterable[int]) -> "FollowedRules":
        """These rules and others. RAISES (ValueError): H219 if that takes too many states."""
        return replace(self, numbers=self.rules.together(self.numbers, others))

    def missing(self, spans: Sequence[tuple[int, int, str]]) -> set[int]:
        """Numbers of the rules that must be kept and are not followed, though these spans break them.

        spans (Sequence[tuple[int, int, str]]): start, end and label of all spans of a text, sorted.
        """
        if not self.incomplete:
            return set()
        return self.rules.must_keep(spans) - set(self.numbers)

    def chances_of_breaks(self, potentials: Potentials) -> dict[str, float]:
        """P(a rule is broken) in one text, for each rule of the model, by its name: E[b_r].

        RAISES (ValueError): H219 if a rule and those that are followed have too many states together.
        """
        rules = self.rules.rules
        return {rule.name: self._chance(potentials, i) for i, rule in enumerate(rules)}

    def costs(self, segments: Segments) -> dict[str, float]:
        """What one segmentation pays for the rules that are followed and that it breaks, nats, by name."""
        if not self.numbers:
            return {}
        (broken,), rules = self.rules.broken_segments(segments), self.rules.rules
        return {rules[i].name: rules[i].price for i in self.numbers if broken[i]}

    def expected_cost(self, potentials: Potentials) -> float:
        """What one text pays on average for the rules that are followed, nats."""
        prices = self.rules.prices
        some = [i for i in self.numbers if 0 < prices[i] < np.inf]
        return sum(float(prices[i]) * self._chance(potentials, i) for i in some)

    @cached_property
    def incomplete(self) -> bool:
        """Is there a rule that must be kept and is not followed?"""
        return bool(np.delete(self.rules.hard, list(self.numbers)).any())

    def _chance(self, potentials: Potentials, rule: int) -> float:
        """P(the rule is broken) in one text where the rules that are followed have their prices, and it has
        its own.
        """
        numbers = self.rules.together(self.numbers, {rule})
        memory, product = self.rules.remembering(self.plain, numbers)
        assert memory is not None
        broken = memory.broken[product.state_copy, numbers.index(rule)]
        final = np.where(broken, -np.inf, 0.0 if product.final is None else product.final)
        kept = log_partition(potentials, product, final=final[None])[0]
        return float(-np.expm1(min(0.0, kept - log_partition(potentials, product)[0])))
