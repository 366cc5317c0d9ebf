"""How probably a text breaks rules about all of its spans that nothing keeps it from breaking."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.probable import Starts
from spacy_hocrf.engine.rules import Rule
from spacy_hocrf.types import Potentials

__all__ = [
    "AlikeRules",
    "RuleSurvey",
    "Texts",
    "alike",
    "starts_for",
    "violation_bounds",
    "with_more",
]

NEGLIGIBLE = 1e-10
"""A break of a rule that is less probable changes no number that is shown."""

ROUNDING = 1e-14
"""The largest rounding error of a bound, which is a difference."""

READ_STATES = 64
"""States of what readings remember besides what a text could break more probably than the tolerance."""


def starts_for(rules: Sequence[Rule], n_tokens: int) -> Starts:
    """Table that a search for probable spans fills in for a survey, of all labels that rules are
    about.
    """
    told = np.flatnonzero(np.any([rule.told_by for rule in rules], axis=0))
    extents = n_tokens, len(told)
    return Starts(told.astype(np.int32), np.zeros(extents), np.zeros(extents))


class RuleSurvey(NamedTuple):
    """Probabilities about D texts that a search for probable spans finds besides."""

    starts: Starts  # of the labels that rules are about
    log_partition: NDArray[np.float64]  # [D] log Z

    def of_texts(self, texts: NDArray[np.int64], offsets: NDArray[np.int64]) -> "RuleSurvey":
        """Survey of some texts.

        texts (int64 [n]): their numbers. offsets (int64 [D + 1]): tokens of all.
        """
        tokens = ranges(offsets[texts], np.diff(offsets)[texts])
        labels, chance, cover = self.starts
        return RuleSurvey(Starts(labels, chance[tokens], cover[tokens]), self.log_partition[texts])


class Texts(NamedTuple):
    """D texts that nothing keeps from breaking rules."""

    potentials: Potentials
    automaton: Automaton  # without rules
    survey: RuleSurvey
    runs: bool  # is a span all neighbours of one label, so that not every segment begins one?


class AlikeRules(NamedTuple):
    """m of n rules that have the same states and differ in the labels that lead from one to another, and in
    their prices.

    A label's column of `Rule.after` says where it leads from each state: they share K of them.
    """

    numbers: NDArray[np.int64]  # [m] among the n rules
    rule: Rule  # the first of them
    columns: NDArray[np.int32]  # [S, K]
    kinds: NDArray[np.int64]  # [m, Y] the column that each label has
    weights: NDArray[np.float64]  # [m] 1 - exp(-price)


def alike(rules: Sequence[Rule]) -> list[AlikeRules]:
    """The rules, each with those that are like it."""
    found = dict[
        tuple[bytes, bytes], tuple[list[int], NDArray[np.int32], list[NDArray[np.int64]]]
    ]()
    for i, rule in enumerate(rules):
        columns, kinds = np.unique(rule.after, axis=1, return_inverse=True)
        key = columns.tobytes(), rule.kept.tobytes()
        numbers, _, known = found.setdefault(key, ([], columns, []))
        numbers.append(i)
        known.append(kinds.reshape(-1))
    prices = np.array([rule.price for rule in rules], dtype=np.float64)
    return [
        AlikeRules(
            np.array(numbers),
            rules[numbers[0]],
            columns,
            np.stack(kinds),
            -np.expm1(-prices[numbers]),
        )
        for numbers, columns, kinds in found.values()
    ]


def violation_bounds(rules: Sequence[AlikeRules], texts: Texts) -> NDArray[np.float64]:
    """Upper bounds of how much probabilities of D texts are wrong if one of n rules is left out, float64
    [D, n]: by 1 - exp(-price) times the probability that it is broken.
    """
    violations = np.ones(
        (len(texts.survey.log_partition), sum(len(each.numbers) for each in rules))
    )
    for each in rules:
        bounds = 1.0 if texts.runs else _bounds(each, texts) + ROUNDING
        violations[:, each.numbers] = each.weights * bounds
    return violations


def with_more(
    wanted: NDArray[np.bool_],
    violations: NDArray[np.float64],
    fits: Callable[[Iterable[int], int], bool],
) -> NDArray[np.bool_]:
    """Rules that texts are to remember, and others that they break at all, the most probable ones first, as
    long as all of them have no more than READ_STATES.

    wanted (bool [D, n]), violations (float64 [D, n]): of each text and rule.
    fits (Callable): have some rules no more than so many states together?
    """
    found: NDArray[np.bool_] = wanted.copy()
    others = (violations > NEGLIGIBLE) & ~wanted
    for i in np.flatnonzero(others.any(axis=1)).tolist():
        for rule in np.argsort(-violations[i], kind="stable").tolist():
            known = np.flatnonzero(found[i]).tolist()
            if others[i, rule] and fits([*known, rule], READ_STATES):
                found[i, rule] = True
    return found


def _bounds(rules: AlikeRules, texts: Texts) -> NDArray[np.float64]:
    """At least the probability that each of m rules is broken, float64 [D, m].

    A text enters state s at t if a segment begins there whose label leads from a state r to s, and it has
    been in r before: that is no more probable than either. With B(r, t), at least the probability that r
    was entered by a segment that had ended by t,

        P(s is entered) <= sum over t and r of min(B(r, t), P(a segment of these labels begins at t))

    and B(s, t) is at most this sum over earlier places, and the expected number of segments of all labels
    that lead to s which have begun before t and do not have t. A text that ends in s has no label behind
    which s cannot be reached any more. Nothing is said of rules whose states come again.
    """
    reach, after = rules.rule.reach, rules.columns
    offsets, starts = texts.potentials.offsets, texts.survey.starts
    first = np.repeat(offsets[:-1], np.diff(offsets))  # [N] token of the text of each
    extents = len(offsets) - 1, len(rules.numbers)
    if (reach & reach.T).sum() > len(reach):
        return np.ones(extents)
    # [K, L, m] is the column of a label this one?
    kinds = rules.kinds.T[starts.labels] == np.arange(after.shape[1])[:, None, None]
    chance, cover = (values @ kinds for values in (starts.chance, starts.cover))  # [K, N, m]
    before: dict[int, NDArray[np.float64]] = {0: np.ones(chance.shape[1:])}
    entered = {0: np.ones(extents)}
    for state in np.argsort(-reach.sum(axis=1), kind="stable").tolist():
        sources = [
            source for source in before if source != state and (after[source] == state).any()
        ]
        if state == 0 or not sources:
            continue
        enters, leading = np.zeros(chance.shape[1:]), np.zeros(len(chance), dtype=bool)
        for source in sources:
            own = after[source] == state
            enters += np.minimum(before[source], chance[own].sum(axis=0))
            leading |= own
        begun = chance[leading].sum(axis=0)
        ended = _before(begun, first) - (cover[leading].sum(axis=0) - begun)
        before[state] = np.minimum(_before(enters, first), np.maximum(ended, 0.0))
        entered[state] = _by_text(np.add, enters, offsets)
    violations = np.zeros(extents)
    for state in np.flatnonzero(~rules.rule.kept).tolist():
        if state not in entered:
            continue
        apart = ~reach[after[list(entered)], state].any(axis=0)  # [K] behind which it is not
        shown = _by_text(np.maximum, cover[apart].sum(axis=0), offsets)
        violations += np.minimum(entered[state], 1.0 - shown)
    return np.clip(violations, 0.0, 1.0)


def _before(values: NDArray[np.float64], first: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums over the earlier tokens of the text, float64 [N, m].

    first (int64 [N]): number of the first token of the text of each.
    """
    sums = np.cumsum(values, axis=0) - values
    return np.asarray(sums - sums[first])


def _by_text(
    reduce: np.ufunc, values: NDArray[np.float64], offsets: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sums or maxima over the tokens of each text, float64 [D, m]; 0 for one without tokens."""
    some = offsets[:-1] < offsets[1:]
    found = np.zeros((len(some), values.shape[1]))
    if some.any():
        found[some] = reduce.reduceat(values, offsets[:-1][some], axis=0)
    return found
