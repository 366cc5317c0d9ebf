"""Bounds on the probability that a text, decoded without rules about all of its spans, breaks them."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.kernels.violations import bound_violations
from spacy_hocrf.engine.probable import Starts
from spacy_hocrf.engine.rules import Rule
from spacy_hocrf.types import Potentials

__all__ = [
    "RuleGroup",
    "RuleSurvey",
    "Texts",
    "grouped",
    "starts_for",
    "violation_bounds",
    "with_more",
]

NEGLIGIBLE = 1e-10
"""A violation less probable than this changes no digit that is shown."""

ROUNDING = 1e-14
"""The largest rounding error of a bound, which is a difference."""

READ_STATES = 64
"""Joint states that readings may use for rules beyond those that the tolerance requires."""


def starts_for(rules: Sequence[Rule], n_tokens: int) -> Starts:
    """Allocate the table of span starts that a search for probable spans fills in for a survey, for all
    labels that rules are about.
    """
    labels = np.flatnonzero(np.any([rule.told_by for rule in rules], axis=0))
    shape = n_tokens, len(labels)
    return Starts(labels.astype(np.int32), np.zeros(shape), np.zeros(shape))


class RuleSurvey(NamedTuple):
    """By-products of a search for probable spans in D texts, from which violations are bounded."""

    starts: Starts  # for the labels that rules are about
    log_partition: NDArray[np.float64]  # [D] log Z

    def of_texts(self, texts: NDArray[np.int64], offsets: NDArray[np.int64]) -> "RuleSurvey":
        """Return the survey of some texts.

        texts (int64 [n]): their numbers. offsets (int64 [D + 1]): token offsets of all texts.
        """
        tokens = ranges(offsets[texts], np.diff(offsets)[texts])
        labels, chance, cover = self.starts
        return RuleSurvey(Starts(labels, chance[tokens], cover[tokens]), self.log_partition[texts])


class Texts(NamedTuple):
    """D texts decoded without rules."""

    potentials: Potentials
    automaton: Automaton  # without rules
    survey: RuleSurvey
    runs: bool  # are spans runs of neighbours with one label, so that not every segment begins one?


class RuleGroup(NamedTuple):
    """m of n rules that have the same states and differ only in the labels of their transitions and in their
    prices.

    A label's column of `Rule.after` gives the next state from each state; the rules share K distinct columns.
    The tables are arguments of `bound_violations`.
    """

    numbers: NDArray[np.int64]  # [m] indices of the n rules
    kinds: NDArray[np.int64]  # [m, Y] index of each label's column
    by_state: NDArray[np.int32]  # [moves, 4]
    by_kind: NDArray[np.int32]  # [moves, 4]
    apart: NDArray[np.uint8]  # [K, S]
    broken: NDArray[np.uint8]  # [S]
    weights: NDArray[np.float64]  # [m] 1 - exp(-price)


def grouped(rules: Sequence[Rule]) -> list[RuleGroup]:
    """Group the rules by their states and columns."""
    groups = dict[tuple[bytes, bytes], tuple[list[int], list[NDArray[np.int64]]]]()
    for i, rule in enumerate(rules):
        columns, kinds = np.unique(rule.after, axis=1, return_inverse=True)
        numbers, rows = groups.setdefault((columns.tobytes(), rule.kept.tobytes()), ([], []))
        numbers.append(i)
        rows.append(kinds.reshape(-1))
    return [_group(rules, np.array(numbers), np.stack(rows)) for numbers, rows in groups.values()]


def _group(
    rules: Sequence[Rule], numbers: NDArray[np.int64], kinds: NDArray[np.int64]
) -> RuleGroup:
    rule, prices = rules[numbers[0]], np.array([rules[i].price for i in numbers])
    after, reachable = np.unique(rule.after, axis=1), rule.reach[0]
    # the moves from states that can be reached to other states
    source, kind = np.nonzero((after != np.arange(len(rule))[:, None]) & reachable[:, None])
    target = after[source, kind]
    by_state, by_kind = _moves(source, target, kind), _moves(kind, target, source)
    apart = ~rule.reach[after[reachable]].any(axis=0)
    broken = ~rule.kept & reachable
    tables = by_state, by_kind, apart.astype(np.uint8), broken.astype(np.uint8)
    return RuleGroup(numbers, kinds, *tables, -np.expm1(-prices))


def _moves(*columns: NDArray[np.int64]) -> NDArray[np.int32]:
    """Sort moves, and mark the last one of each group with equal first two numbers: int32 [n, 4]."""
    moves = np.stack(columns, axis=1)[np.lexsort(columns[::-1])]
    last = np.append((moves[1:, :2] != moves[:-1, :2]).any(axis=1), True)[: len(moves)]
    return np.column_stack([moves, last]).astype(np.int32)


def violation_bounds(groups: Sequence[RuleGroup], texts: Texts) -> NDArray[np.float64]:
    """Return upper bounds on the error of the probabilities of D texts when one of n rules is left out,
    float64 [D, n]: (1 - exp(-price)) · P(the rule is broken).
    """
    offsets, starts = texts.potentials.offsets, texts.survey.starts
    violations = np.ones((len(offsets) - 1, sum(len(group.numbers) for group in groups)))
    for group in groups:
        if not texts.runs:
            kinds = np.ascontiguousarray(group.kinds[:, starts.labels])
            tables = group.by_state, group.by_kind, group.apart, group.broken
            bounds = bound_violations(offsets, starts.chance, starts.cover, kinds, *tables)
            violations[:, group.numbers] = np.clip(bounds, 0.0, 1.0) + ROUNDING
        violations[:, group.numbers] *= group.weights
    return violations


def with_more(
    wanted: NDArray[np.bool_],
    violations: NDArray[np.float64],
    fits: Callable[[Iterable[int], int], bool],
) -> NDArray[np.bool_]:
    """Add, for each text, further rules that it may break at all, the most probable violations first, as long
    as all its rules have at most READ_STATES joint states.

    wanted (bool [D, n]), violations (float64 [D, n]): for each text and rule.
    fits (Callable): do some rules have at most this many joint states?
    """
    chosen: NDArray[np.bool_] = wanted.copy()
    others = (violations > NEGLIGIBLE) & ~wanted
    for i in np.flatnonzero(others.any(axis=1)).tolist():
        for rule in np.argsort(-violations[i], kind="stable").tolist():
            own = np.flatnonzero(chosen[i]).tolist()
            if others[i, rule] and fits([*own, rule], READ_STATES):
                chosen[i, rule] = True
    return chosen
