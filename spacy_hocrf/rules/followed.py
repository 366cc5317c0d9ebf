"""The rules about all spans of a text that an automaton follows, out of all rules of a model.

Texts are decoded with only the rules that they could break. Code that looks at less probable readings than
the tolerance allows starts again with the rules that such a reading breaks.
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
    plain (Automaton): the model's automaton without rules about all spans.
    numbers (tuple[int, ...]): the rules that are followed, ascending.
    """

    rules: CompiledRules
    plain: Automaton
    numbers: Numbers = ()

    @cached_property
    def automaton(self) -> Automaton:
        """Automaton that follows the rules. RAISES (ValueError): H219 if they have too many joint states."""
        return self.on(self.plain) if self.numbers else self.plain

    def on(self, automaton: Automaton) -> Automaton:
        """Return the product of another automaton without rules and the rules that are followed."""
        return self.rules.product(automaton, self.numbers)

    def with_others(self, others: Iterable[int]) -> "FollowedRules":
        """Follow other rules as well. RAISES (ValueError): H219 if that takes too many states."""
        return replace(self, numbers=self.rules.together(self.numbers, others))

    def missing(self, spans: Sequence[tuple[int, int, str]]) -> set[int]:
        """Return the numbers of the hard rules that these spans break and that are not followed.

        spans (Sequence[tuple[int, int, str]]): start, end and label of all spans of a text, sorted.
        """
        if not self.incomplete:
            return set()
        return self.rules.broken_hard(spans) - set(self.numbers)

    def break_probabilities(self, potentials: Potentials) -> dict[str, float]:
        """Return P(the rule is broken) in one text for each rule of the model, by name: E[b_r].

        RAISES (ValueError): H219 if a rule and those that are followed have too many joint states.
        """
        rules = self.rules.rules
        return {rule.name: self._break_probability(potentials, i) for i, rule in enumerate(rules)}

    def costs(self, segments: Segments) -> dict[str, float]:
        """Return the prices that a segmentation pays for followed rules that it breaks, nats, by name."""
        if not self.numbers:
            return {}
        (broken,), rules = self.rules.broken_segments(segments), self.rules.rules
        return {rules[i].name: rules[i].price for i in self.numbers if broken[i]}

    def expected_cost(self, potentials: Potentials) -> float:
        """Return the expected price that a text pays for the rules that are followed, nats."""
        prices = self.rules.prices
        priced = [i for i in self.numbers if 0 < prices[i] < np.inf]
        return sum(float(prices[i]) * self._break_probability(potentials, i) for i in priced)

    @cached_property
    def incomplete(self) -> bool:
        """Is there a hard rule that is not followed?"""
        return bool(np.delete(self.rules.hard, list(self.numbers)).any())

    def _break_probability(self, potentials: Potentials, rule: int) -> float:
        """Return P(the rule is broken) in one text; it and the rules that are followed have their prices."""
        numbers = self.rules.together(self.numbers, {rule})
        product = self.rules.product(self.plain, numbers)
        broken = self.rules.joined(numbers).broken[product.state_copy, numbers.index(rule)]
        final = np.where(broken, -np.inf, 0.0 if product.final is None else product.final)
        kept = log_partition(potentials, product, final=final[None])[0]
        log_kept = min(0.0, kept - log_partition(potentials, product)[0])
        return float(0.0 - np.expm1(log_kept))  # not -0.0 for a rule that is never broken
