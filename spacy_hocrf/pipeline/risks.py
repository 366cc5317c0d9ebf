"""How probably a text breaks rules about numbers of spans that nothing keeps it from breaking."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, log_partition
from spacy_hocrf.engine.memory import Count
from spacy_hocrf.engine.probable import Starts
from spacy_hocrf.types import Potentials

__all__ = ["Survey", "Texts", "risks_of", "starts_for", "with_more"]


def starts_for(counts: Sequence[Count], n_tokens: int) -> Starts:
    """What a search for probable spans fills in for a survey."""
    labels = sorted({label for count in counts for label in count.labels})
    extents = n_tokens, len(labels)
    return Starts(np.array(labels, dtype=np.int32), np.zeros(extents), np.zeros(extents))


BASES = (64.0, 4.0)
"""u of E[u^k]: where a few more may come than do, and where many more."""

NEGLIGIBLE = 1e-9
"""A break of a rule that is less probable changes no number that is shown."""

READ_STATES = 64
"""States of what readings remember besides what a text could break more probably than the tolerance."""

WORTH_A_LOOK = 5.0
"""Times what is negligible: of the risks with a larger bound, hardly any is negligible."""


class Survey(NamedTuple):
    """What a search for probable spans tells of D texts besides."""

    starts: Starts  # of the labels that rules are about
    log_partition: NDArray[np.float64]  # [D] log Z

    def of_texts(self, texts: NDArray[np.int64], offsets: NDArray[np.int64]) -> "Survey":
        """Of some texts.

        texts (int64 [n]): their numbers. offsets (int64 [D + 1]): tokens of all.
        """
        tokens = ranges(offsets[texts], np.diff(offsets)[texts])
        labels, chance, cover = self.starts
        return Survey(Starts(labels, chance[tokens], cover[tokens]), self.log_partition[texts])

    def chances(self, counts: Sequence[Count]) -> NDArray[np.float64]:
        """P(a segment of a rule's labels begins at the token), float64 [N, n]."""
        return self._sums(counts, self.starts.chance)

    def covers(self, counts: Sequence[Count]) -> NDArray[np.float64]:
        """At most P(a segment of a rule's labels has the token), float64 [N, n]."""
        return self._sums(counts, self.starts.cover)

    def _sums(self, counts: Sequence[Count], values: NDArray[np.float64]) -> NDArray[np.float64]:
        own = (np.isin(self.starts.labels, sorted(each.labels)) for each in counts)
        return np.stack([values[:, labels].sum(axis=1) for labels in own], axis=1)


class Texts(NamedTuple):
    """D texts that nothing keeps from breaking rules about numbers of spans."""

    potentials: Potentials
    automaton: Automaton  # without a memory
    survey: Survey
    buffers: Buffers  # of the automaton


def risks_of(
    counts: Sequence[Count], texts: Texts, negligible: float, *, closely: bool
) -> NDArray[np.float64]:
    """At least the probability that each of n rules is broken, of D texts, float64 [D, n].

    With k spans of a rule's labels, P(k >= 1) >= P(one has t) for any t, hence P(k < 1) <= 1 - P(one
    has t). E[k] - P(k >= 1) is the sum of (j - 1) P(k = j) over all j > 1, hence P(k > most) <=
    (E[k] - P(one has t)) / most. Where several may come, P(k > most) <= Σ_t P(one begins at t) but for
    the `most` largest, and <= E[u^k] / u^(most + 1) for any u > 1 (Chernoff).

    closely (bool): what is not negligible then, but not far from it, is looked at again, with P(k >= 1)
        itself.
    """
    risks = np.ones((len(texts.survey.log_partition), len(counts)))
    for rule, count in enumerate(counts):
        if _unknown(count):
            continue  # it is remembered
        expected, more, fewer = _bounds(count, texts, negligible)
        risk = more + fewer
        unclear = np.flatnonzero((risk > negligible) & (risk <= WORTH_A_LOOK * negligible))
        if closely and len(unclear):
            some = _chance_of_any(count, texts, unclear)
            if count.most is not None:
                exact = (expected[unclear] - some) / count.most
                more[unclear] = np.clip(exact, 0.0, more[unclear])
            if count.least:
                fewer[unclear] = 1.0 - some
            risk[unclear] = (more + fewer)[unclear]
        risks[:, rule] = risk
    return risks


def with_more(
    wanted: NDArray[np.bool_], risks: NDArray[np.float64], states: Callable[[list[int]], int]
) -> NDArray[np.bool_]:
    """Rules that texts are to remember, and others that they break at all, the riskiest first, as long as
    all of them have no more than READ_STATES.

    wanted (bool [D, n]), risks (float64 [D, n]): of each text and rule.
    states (Callable): how many states the memory of some rules has.
    """
    found: NDArray[np.bool_] = wanted.copy()
    others = (risks > NEGLIGIBLE) & ~wanted
    for i in np.flatnonzero(others.any(axis=1)).tolist():
        for rule in np.argsort(-risks[i], kind="stable").tolist():
            known = np.flatnonzero(found[i]).tolist()
            if others[i, rule] and states([*known, rule]) <= READ_STATES:
                found[i, rule] = True
    return found


def _unknown(count: Count) -> bool:
    """Can nothing be said but that the probability is 1 at most?"""
    return count.runs or count.least > 1 or count.most == 0


def _bounds(
    count: Count, texts: Texts, negligible: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Expected number of spans; at least the probabilities of too many, and of too few. float64 [D] each"""
    chances, covers = texts.survey.chances([count])[:, 0], texts.survey.covers([count])[:, 0]
    expected = _by_text(np.add, chances, texts.potentials)
    some = _by_text(np.maximum, covers, texts.potentials)  # at most P(k >= 1)
    more, fewer = np.zeros(len(expected)), np.zeros(len(expected))
    if count.most is not None:
        more = np.maximum(expected - some, 0.0) / count.most
    if count.most is not None and count.most > 1:
        large = np.flatnonzero(more > negligible)
        others = _but_most(chances, texts.potentials, count.most, large)
        more[large] = np.minimum(more[large], others)
        for u in BASES:
            large = np.flatnonzero(more > negligible)
            if len(large) and u ** -(count.most + 1) < negligible:  # E[u^k] is at least 1
                rare = _chance_of_more(count.labels, count.most, texts, large, u)
                more[large] = np.minimum(more[large], rare)
    if count.least:
        fewer = np.maximum(1.0 - some, 0.0)
    return expected, more, fewer


def _by_text(
    reduce: np.ufunc, values: NDArray[np.float64], potentials: Potentials
) -> NDArray[np.float64]:
    """Sum or maximum over the tokens of each text, float64 [D]; 0 for one without tokens."""
    offsets = potentials.offsets
    some = offsets[:-1] < offsets[1:]
    found = np.zeros(len(some))
    if some.any():
        found[some] = reduce.reduceat(values, offsets[:-1][some])
    return found


def _but_most(
    chances: NDArray[np.float64], potentials: Potentials, most: int, numbers: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum over the tokens of some texts but for the `most` largest of each, float64 [n].

    numbers (int64 [n]): of the texts.
    """
    offsets = potentials.offsets.tolist()
    found = [np.sort(chances[offsets[i] : offsets[i + 1]])[:-most].sum() for i in numbers.tolist()]
    return np.array(found, dtype=np.float64)


def _chance_of_any(count: Count, texts: Texts, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """P(some segment has one of a rule's labels) of some texts, float64 [n].

    numbers (int64 [n]): of the texts, ascending.
    """
    potentials, automaton, survey, buffers = texts
    without = potentials.allowed.copy()
    without[:, sorted(count.labels)] = 0
    barred = replace(potentials, allowed=without)
    none = log_partition(barred, automaton, among=numbers, buffers=buffers)[numbers]
    total = survey.log_partition[numbers]
    possible = ~np.isneginf(total)
    found = np.zeros(len(total))
    found[possible] = 1.0 - np.exp(none[possible] - total[possible])
    return found


def _chance_of_more(
    labels: Collection[int], most: int, texts: Texts, numbers: NDArray[np.int64], u: float
) -> NDArray[np.float64]:
    """At least P(more than `most` segments have one of the labels) of some texts, float64 [n].

    E[u^k] = Z' / Z, with Z' of log potentials in which each segment of the labels has log u more.

    numbers (int64 [n]): of the texts, ascending.
    """
    potentials, automaton, survey, buffers = texts
    const = potentials.const.copy()
    const[sorted(labels)] += np.log(u)
    more = replace(potentials, const=const)
    raised = log_partition(more, automaton, among=numbers, buffers=buffers)[numbers]
    with np.errstate(invalid="ignore"):
        bound = raised - survey.log_partition[numbers] - (most + 1) * np.log(u)
    return np.asarray(np.exp(np.fmin(bound, 0.0)))
