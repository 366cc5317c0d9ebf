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

__all__ = ["RuleSurvey", "Texts", "starts_for", "violation_bounds", "with_more"]

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


def violation_bounds(rules: Sequence[Rule], texts: Texts) -> NDArray[np.float64]:
    """Upper bounds of how much probabilities of D texts are wrong if one of n rules is left out, float64
    [D, n]: by 1 - exp(-price) times the probability that it is broken.
    """
    violations = np.ones((len(texts.survey.log_partition), len(rules)))
    for i, rule in enumerate(rules):
        weight = -np.expm1(-rule.price)
        if not weight or texts.runs:
            violations[:, i] = weight
        else:
            violations[:, i] = weight * _bound(rule, texts) + ROUNDING
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


def _bound(rule: Rule, texts: Texts) -> NDArray[np.float64]:
    """At least the probability that a rule is broken, float64 [D].

    A text enters state s at t if a segment begins there whose label leads from a state r to s, and it has
    been in r before: that is no more probable than either. With B(r, t), at least the probability that r
    was entered by a segment that had ended by t,

        P(s is entered) <= sum over t and r of min(B(r, t), P(a segment of these labels begins at t))

    and B(s, t) is at most this sum over earlier places, and the expected number of segments of all labels
    that lead to s which have begun before t and do not have t. A text that ends in s has no label behind
    which s cannot be reached any more. Nothing is said of rules whose states come again.
    """
    reach = rule.reach
    if (reach & reach.T).sum() > len(rule):
        return np.ones(len(texts.survey.log_partition))
    offsets, (labels, chance, cover) = texts.potentials.offsets, texts.survey.starts
    after = rule.after[:, labels]  # [S, n]
    before: dict[int, NDArray[np.float64]] = {0: np.ones(len(chance))}
    entered = {0: np.ones(len(offsets) - 1)}
    for state in np.argsort(-reach.sum(axis=1), kind="stable").tolist():
        sources = [
            source for source in before if source != state and (after[source] == state).any()
        ]
        if state == 0 or not sources:
            continue
        enters, leading = np.zeros(len(chance)), np.zeros(len(labels), dtype=bool)
        for source in sources:
            own = after[source] == state
            enters += np.minimum(before[source], chance[:, own].sum(axis=1))
            leading |= own
        begun = chance[:, leading].sum(axis=1)
        ended = _before(begun, offsets) - (cover[:, leading].sum(axis=1) - begun)
        before[state] = np.minimum(_before(enters, offsets), np.maximum(ended, 0.0))
        entered[state] = _by_text(np.add, enters, offsets)
    violation = np.zeros(len(offsets) - 1)
    for state in np.flatnonzero(~rule.kept).tolist():
        if state not in entered:
            continue
        apart = ~reach[after[list(entered)], state].any(axis=0)  # [n] labels behind which it is not
        shown = _by_text(np.maximum, cover[:, apart].sum(axis=1), offsets)
        violation += np.minimum(entered[state], 1.0 - shown)
    return np.clip(violation, 0.0, 1.0)


def _before(values: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum over the earlier tokens of the text, float64 [N]."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(sums[:-1] - np.repeat(sums[offsets[:-1]], np.diff(offsets)))


def _by_text(
    reduce: np.ufunc, values: NDArray[np.float64], offsets: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum or maximum over the tokens of each text, float64 [D]; 0 for one without tokens."""
    some = offsets[:-1] < offsets[1:]
    found = np.zeros(len(some))
    if some.any():
        found[some] = reduce.reduceat(values, offsets[:-1][some])
    return found
