"""Constraints compiled for one model: forbidden transitions, and rules over the labels of its segments.

Forbidden transitions are structural zeros of the automaton, and of the first and last token. Rules about all
spans are followed where a text could break them (violations.py): on its probable paths (engine/ruled.py), or
with an automaton that remembers their states (engine/rules.py).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton, compile_automaton
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.engine.kernels.violations import last_states
from spacy_hocrf.engine.ruled import RuleTables
from spacy_hocrf.engine.rules import JoinedRules, Rule, joined_rules, product_of, side_by_side
from spacy_hocrf.locks import new_lock
from spacy_hocrf.model.scheme import OUTSIDE, LabelScheme
from spacy_hocrf.rules.constraints import Constraints
from spacy_hocrf.rules.ends import Ends, Successions, follows
from spacy_hocrf.rules.errors import ConstraintErrors
from spacy_hocrf.rules.templates import LEARNT, checked_price, refuse_rule, rules_of
from spacy_hocrf.rules.violations import RuleGroup, Texts, grouped, violation_bounds, with_more
from spacy_hocrf.types import LabelPattern, Segments

__all__ = ["MAX_JOINT_STATES", "CompiledRules", "Numbers", "checked_prices"]

MAX_JOINT_STATES = 1024
"""Maximum number of states of several rules together; enough for ten labels that may occur at most once."""
ROUNDING = 1e-9  # of a sum of probabilities

MAX_CACHED_STATES = 8192
"""Total number of states of the product automata that are cached for further texts."""

MAX_CACHED_TABLES = 4096
"""Number of sets of rules whose joint table is cached."""

MAX_MORE_RULES = 2
"""A cached product also serves texts that need up to this many rules fewer."""

Numbers = tuple[int, ...]
"""Numbers of some rules, ascending."""

Sets = list[tuple[Numbers, NDArray[np.int64]]]
"""Sets of rules, each with the numbers of its texts; no text is in two sets."""


class CompiledRules:
    """Constraints, compiled for one model.

    constraints (Constraints): the settings. carried (Collection[LabelPattern]): the model's carried patterns.
    learnt (Optional[Mapping[str, float]]): learnt prices by rule name; a learnable rule without one costs
        nothing.

    model_automaton (Automaton): the model's automaton.
    scheme (LabelScheme): the model's labels, with the forbidden transitions.
    automaton (Automaton): the model's automaton with the forbidden transitions, without rules about all
        spans.
    rules (Sequence[Rule]): n rules about all spans, over the Y labels of segments.
    prices (float64 [n]): price of each rule, nats. hard (bool [n]): must the rule be kept? learnable (bool
        [n])
    successions (Successions): which labels may follow one another.
    warned_of_presets, warned_of_states (bool): has a warning been given about preset entities that break the
        constraints, and about a text that could break too many rules at once?
    RAISES (ValueError): H215 for a label that the model does not have, H311 for a rule whose table does not
        fit the labels.
    """

    def __init__(
        self,
        constraints: Constraints,
        scheme: LabelScheme,
        automaton: Automaton,
        carried: Collection[LabelPattern],
        learnt: Mapping[str, float] | None = None,
    ) -> None:
        for label in constraints.labels:
            if label not in (*scheme.labels, OUTSIDE):
                known = ", ".join(scheme.labels)
                raise ValueError(ConstraintErrors.H215.format(found=label, known=known))
        self.constraints, self.carried = constraints, carried
        self.successions = Successions.of(scheme, constraints.forbidden, constraints.required)
        self.scheme, self.automaton, self.model_automaton = scheme, automaton, automaton
        if self.successions.forbidden:
            pairs = sorted(self.successions.forbidden)
            forbidden = tuple(dict.fromkeys((*scheme.forbidden, *pairs)))
            self.scheme = replace(scheme, forbidden=forbidden)
            self.automaton = self.compile(automaton.patterns)
        self._span_rules = list[Rule]()  # over labels of spans
        learnable = list[bool]()
        for template in constraints.templates:
            own = rules_of(template, scheme.labels)
            self._span_rules += own
            learnable += [template.price == LEARNT] * len(own)
        self.learnable = np.array(learnable, dtype=bool)
        self.learnt: Mapping[str, float] = {} if learnt is None else learnt
        self._span_rules = [
            replace(rule, price=self.learnt.get(rule.name, 0.0)) if learns else rule
            for rule, learns in zip(self._span_rules, learnable)
        ]
        self.rules = [_over_segments(rule, scheme) for rule in self._span_rules]
        self.prices = np.array([rule.price for rule in self.rules], dtype=np.float64)
        self.hard = np.isinf(self.prices)
        self._label_tables = _SideBySide(*side_by_side(self._span_rules, len(scheme.labels)))
        self._segment_tables = _SideBySide(*side_by_side(self.rules, scheme.n_labels))
        self._joined: dict[Numbers, JoinedRules | None] = {}
        self._products: dict[Numbers, Automaton] = {}
        self._lock = new_lock()
        self.warned_of_presets = self.warned_of_states = False

    @cached_property
    def groups(self) -> list[RuleGroup]:
        """The rules, grouped by those that differ only in their labels."""
        return grouped(self.rules)

    @cached_property
    def tables(self) -> RuleTables:
        """The rules in the form that the search of probable paths takes."""
        return RuleTables.of(self.rules, self.scheme.n_labels)

    def at_no_price(self) -> "CompiledRules":
        """Return rules that may all be broken, for texts that cannot keep them."""
        free = copy(self)
        free.prices, free.hard = np.zeros_like(self.prices), np.zeros_like(self.hard)
        free._products = {}
        return free

    def compile(self, patterns: Sequence[LabelPattern]) -> Automaton:
        """Compile an automaton with other patterns, without rules about all spans."""
        limits, forbidden = self.scheme.limits, self.scheme.forbidden
        return compile_automaton(patterns, limits, forbidden=forbidden, carried=self.carried)

    def may_break(self, texts: Texts) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the texts that could break rules, and bounds of all violations, float64 [D, n]."""
        tolerance = self.constraints.tolerance
        violations = violation_bounds(self.groups, texts)
        sums = violations.sum(axis=1)
        # P(a rule is broken | all are kept) <= P(one is broken) / P(all are kept)
        return np.flatnonzero(~(sums <= tolerance * (1.0 - sums))), violations

    def rule_sets(
        self, texts: Texts, *, exactly: bool = False, most: int | None = None
    ) -> tuple[Sets, NDArray[np.int64]]:
        """Return sets of rules that texts could break, each with the numbers of the texts that have to follow
        exactly these rules, ascending; and the texts that could break more rules than fit together, int64
        [m], ascending: the error of their scores may exceed the tolerance.

        exactly (bool): add further rules, see `with_more`.
        most (Optional[int]): maximum number of joint states; None for MAX_JOINT_STATES.
        """
        tolerance, sequences = self.constraints.tolerance, len(texts.survey.log_partition)
        violations = violation_bounds(self.groups, texts)
        # P(a rule is broken | others are kept) <= P(it is broken) / P(the others are kept)
        kept, chosen = np.ones(sequences), np.zeros(violations.shape, dtype=bool)
        while True:
            with np.errstate(divide="ignore", invalid="ignore"):
                relative = np.where(violations > 0, violations / kept[:, None], 0.0)
            before, chosen = chosen, self._probably_broken(relative, most)
            # P(the chosen ones are kept) is at least 1 - their violations
            own, others = ((violations * rules).sum(axis=1) for rules in (chosen, ~chosen))
            unclear = others > tolerance * np.maximum(0.0, 1.0 - own)
            new = np.flatnonzero(unclear & (chosen != before).any(axis=1))
            if not len(new):
                missing = np.where(chosen, 0.0, relative).sum(axis=1)
                inexact = np.flatnonzero(missing > tolerance * (1.0 + ROUNDING))
                chosen = with_more(chosen, relative, self.fits) if exactly else chosen
                return self._sharing(chosen), inexact
            kept[new] = self._kept_probability(texts, new, chosen)

    def joined(self, rules: Numbers) -> JoinedRules:
        """Return the joint table of some rules. RAISES (ValueError): H219 if it has too many states."""
        table = self._join(rules)
        if table is None:
            raise ValueError(ConstraintErrors.H219.format(most=MAX_JOINT_STATES))
        return table

    def product(self, automaton: Automaton, rules: Numbers) -> Automaton:
        """Return an automaton that also remembers the states of some rules, at their prices.

        RAISES (ValueError): H219 if that takes too many states.
        """
        if not rules:
            return automaton
        with self._lock:
            table = self.joined(rules)
            if automaton is not self.automaton:
                return product_of(automaton, table, self.prices[list(rules)])
            if rules not in self._products:
                product = product_of(automaton, table, self.prices[list(rules)])
                cached = self._products.values()
                while cached and sum(p.copies for p in cached) + len(table) > MAX_CACHED_STATES:
                    self._products.pop(next(iter(self._products)))
                self._products[rules] = product
            return self._products[rules]

    def together(self, rules: Iterable[int], others: Iterable[int]) -> Numbers:
        """Return the union of two sets of rules. RAISES (ValueError): H219 if it has too many states."""
        union = tuple(sorted({*rules, *others}))
        if not self.fits(union):
            raise ValueError(ConstraintErrors.H219.format(most=MAX_JOINT_STATES))
        return union

    def fits(self, rules: Iterable[int], most: int | None = None) -> bool:
        """Do some rules have at most this many joint states? None is MAX_JOINT_STATES."""
        most = MAX_JOINT_STATES if most is None else most
        numbers = tuple(sorted(rules))
        if prod(len(self.rules[i]) for i in numbers) <= most:
            return True
        table = self._join(numbers)
        return table is not None and len(table) <= most

    def broken(self, spans: Segments, lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rules do the spans of D texts break? bool [D, n + 1]: one column per rule; the last one is
        for forbidden transitions.

        spans (Segments): non-overlapping spans; their labels are indices into the scheme's `labels`.
        lengths (int64 [D]): number of tokens of each text.
        """
        broken = np.zeros((len(lengths), len(self.rules) + 1), dtype=bool)
        broken[:, :-1] = self._label_tables.broken(spans)
        if not self.successions.allowed.all():
            broken[:, -1] = ~follows(self.successions.allowed, spans, lengths)
        return broken

    def excluding(self, label: str) -> str | None:
        """Return the strict rule, in words, that no text with a span of the label can keep; None if there is
        none.
        """
        y, paths = self.scheme.labels.index(label), self.successions.allowed
        for rule in self._span_rules:
            if rule.dead[rule.after[rule.reach[0], y]].all():
                return f"the rule '{rule.name}'"
        for _ in range(len(paths).bit_length()):
            paths = paths | (paths @ paths)  # of up to twice as many labels
        edge = len(paths) - 1
        return None if paths[edge, y] and paths[y, edge] else "what is forbidden and required"

    def broken_segments(self, segments: Segments) -> NDArray[np.bool_]:
        """Which rules do D segmentations break? bool [D, n]"""
        return self._segment_tables.broken(segments)

    def broken_of(self, spans: Sequence[tuple[int, int, str]], length: int) -> NDArray[np.bool_]:
        """Which rules do the spans of one text break? bool [n + 1], columns as in `broken`.

        spans (Sequence[tuple[int, int, str]]): sorted, without overlaps. length (int): tokens of the text.
        """
        return np.asarray(self.broken(self.scheme.numbered([spans]), np.array([length]))[0])

    def broken_hard(self, spans: Sequence[tuple[int, int, str]]) -> set[int]:
        """Return the hard rules that the spans of a text break; spans are sorted and do not overlap."""
        return set(np.flatnonzero(self.broken_of(spans, 0)[:-1] & self.hard).tolist())

    def _join(self, rules: Numbers) -> JoinedRules | None:
        """Return the joint table of some rules; None if it has too many states."""
        with self._lock:
            if rules not in self._joined:
                if len(self._joined) >= MAX_CACHED_TABLES:
                    self._joined = {}
                some = [self.rules[i] for i in rules]
                self._joined[rules] = joined_rules(some, self.scheme.n_labels, MAX_JOINT_STATES)
            return self._joined[rules]

    def _sharing(self, wanted: NDArray[np.bool_]) -> Sets:
        """Group texts by the rules that they follow: the wanted ones, plus a few more where that lets many
        texts share a set or use a cached product.

        wanted (bool [D, n]): rules of each text.
        """
        with self._lock:
            sets = list(self._products)
        texts = dict[Numbers, list[NDArray[np.int64]]]()
        for rules, own in sorted(_texts_by_rules(wanted), key=lambda row: -len(row[0])):
            supersets = (other for other in sets if set(rules) <= set(other))
            small = [other for other in supersets if len(other) <= len(rules) + MAX_MORE_RULES]
            shared = min(small, key=len, default=rules) if rules else ()
            texts.setdefault(shared, []).append(own)
            sets.append(shared)
        return [(rules, np.sort(np.concatenate(texts[rules]))) for rules in sorted(texts)]

    def _kept_probability(
        self, texts: Texts, numbers: NDArray[np.int64], rules: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return E[exp(-price of the broken rules)] of some texts, float64 [n].

        numbers (int64 [n]): of the texts, ascending. rules (bool [D, n]): rules of each of all texts.
        """
        chances = np.zeros(len(numbers))
        for own_rules, places in _texts_by_rules(rules[numbers]):
            own = numbers[places]
            product = self.product(texts.automaton, own_rules)
            log_z = log_partition(texts.potentials, product, among=own)[own]
            total = texts.survey.log_partition[own]
            possible = ~np.isneginf(total)
            log_z[possible] -= total[possible]
            chances[places] = np.exp(log_z)
        return chances

    def _probably_broken(
        self, violations: NDArray[np.float64], most: int | None
    ) -> NDArray[np.bool_]:
        """Select the rules to remember for each text, bool [D, n]: all but the least probable violations
        whose sum stays within the tolerance, as far as their joint states fit.

        violations (float64 [D, n]): bound for each text and rule.
        """
        order = np.argsort(violations, axis=1, kind="stable")
        texts = np.arange(len(violations))[:, None]
        chosen = np.zeros(violations.shape, dtype=bool)
        sums = np.cumsum(violations[texts, order], axis=1)
        chosen[texts, order] = sums > self.constraints.tolerance
        if self.fits(np.flatnonzero(chosen.any(axis=0)).tolist(), most):
            return chosen
        for i in np.flatnonzero(chosen.any(axis=1)).tolist():
            rules = [rule for rule in order[i].tolist() if chosen[i, rule]]
            chosen[i, rules[: len(rules) - self._fitting(rules[::-1], most)]] = False
        return chosen

    def _fitting(self, rules: Sequence[int], most: int | None) -> int:
        """Return how many rules, counted from the first, fit together; by doubling, then bisection."""
        fit, fail = 0, 1
        while self.fits(rules[:fail], most):
            fit, fail = fail, min(2 * fail, len(rules))
            if fit == fail:
                return fit
        while fail - fit > 1:
            middle = (fit + fail) // 2
            fit, fail = (middle, fail) if self.fits(rules[:middle], most) else (fit, middle)
        return fit


def checked_prices(rules: CompiledRules, prices: Mapping[str, Any]) -> dict[str, float]:
    """Check prices for some of the rules with learnt prices, by rule name.

    RAISES (ValueError): H214 for an unknown rule, or a price that is no finite number.
    """
    learnable = [rule.name for rule, learns in zip(rules.rules, rules.learnable) if learns]
    checked = {}
    for name, price in prices.items():
        if name not in learnable:
            refuse_rule("rule_prices", repr(name), f"one of {', '.join(learnable) or 'no rule'}")
        number = checked_price(price)
        if isinstance(number, str) or number == np.inf:
            refuse_rule("rule_prices", repr(price), "a finite number")
        checked[name] = float(number)
    return checked


def _texts_by_rules(wanted: NDArray[np.bool_]) -> Sets:
    """Group texts that want exactly the same rules. wanted (bool [D, n]): rules of each text."""
    with_rules = wanted.any(axis=1)
    sets: Sets = [] if with_rules.all() else [((), np.flatnonzero(~with_rules))]
    texts = np.flatnonzero(with_rules)
    while len(texts):
        rules = wanted[texts[0]]
        same = (wanted[texts] == rules).all(axis=1)
        sets.append((tuple(np.flatnonzero(rules).tolist()), texts[same]))
        texts = texts[~same]
    return sets


def _over_segments(rule: Rule, scheme: LabelScheme) -> Rule:
    """Translate a rule over the labels of spans into one over the Y labels of the segments that encode them.
    Only the segment that begins a span changes the state. With "io", where a span is a run of neighbours with
    the same label, the states also remember the last label.
    """
    states = np.arange(len(rule))
    after = np.repeat(states[:, None], scheme.n_labels, axis=1).astype(np.int32)
    for label, name in enumerate(scheme.labels):
        after[:, Ends(scheme).firsts(name)] = rule.after[:, label][:, None]
    if scheme.encoding != "io":
        return replace(rule, after=after)
    changing = np.flatnonzero((after != states[:, None]).any(axis=0))
    # a state with "io" is a pair of a state and the last label: one that changes states, or any other
    sides = len(changing) + 1
    last = np.zeros(scheme.n_labels, dtype=np.int64)
    last[changing] = 1 + np.arange(len(changing))
    table = np.zeros((len(rule), sides, scheme.n_labels), dtype=np.int32)
    table[:] = after[:, None, :] * sides + last
    for side, label in enumerate(changing.tolist(), 1):
        table[:, side, label] = states * sides + side
    tables = table.reshape(-1, scheme.n_labels), np.repeat(rule.kept, sides)
    return replace(rule, after=tables[0], kept=tables[1])


class _SideBySide(NamedTuple):
    """Tables of n rules over Y labels, stacked and padded to S states."""

    after: NDArray[np.int32]  # [n, S, Y]
    kept: NDArray[np.bool_]  # [n, S]

    def broken(self, spans: Segments) -> NDArray[np.bool_]:
        """Which rules do the label sequences of D texts break? bool [D, n]"""
        state = last_states(spans.offsets, spans.label, self.after)
        return ~self.kept[np.arange(len(self.kept)), state]
