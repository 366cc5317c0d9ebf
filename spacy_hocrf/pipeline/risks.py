"""How probably a text breaks rules about numbers of spans that nothing keeps it from breaking."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, log_partition
from spacy_hocrf.engine.memory import Count
from spacy_hocrf.engine.probable import Starts
from spacy_hocrf.engine.selection import select_sequences
from spacy_hocrf.types import Potentials

__all__ = ["Survey", "risks_of", "starts_for"]


def starts_for(counts: Sequence[Count], n_tokens: int) -> Starts:
    """What a search for probable spans fills in for a survey."""
    labels = sorted({label for count in counts for label in count.labels})
    return Starts(np.array(labels, dtype=np.int32), np.zeros((n_tokens, len(labels))))


BASES = (4.0, 64.0)
"""u of E[u^k]: where many more may come than do, and where a few less."""


class Survey(NamedTuple):
    """What a search for probable spans tells of D texts besides."""

    starts: Starts  # of the labels that rules are about
    log_partition: NDArray[np.float64]  # [D] log Z

    def of_texts(self, texts: NDArray[np.int64], offsets: NDArray[np.int64]) -> "Survey":
        """Of some texts.

        texts (int64 [n]): their numbers. offsets (int64 [D + 1]): tokens of all.
        """
        tokens = ranges(offsets[texts], np.diff(offsets)[texts])
        starts = self.starts._replace(chance=self.starts.chance[tokens])
        return Survey(starts, self.log_partition[texts])

    def chances(self, counts: Sequence[Count]) -> NDArray[np.float64]:
        """P(a segment of a rule's labels begins at the token), float64 [N, n]."""
        labels, chance = self.starts
        return np.stack(
            [chance[:, np.isin(labels, sorted(each.labels))].sum(axis=1) for each in counts], axis=1
        )


def risks_of(
    counts: Sequence[Count],
    potentials: Potentials,
    automaton: Automaton,
    survey: Survey,
    negligible: float,
    buffers: Buffers,
    *,
    closely: bool,
) -> NDArray[np.float64]:
    """At least the probability that each of n rules is broken, of D texts, float64 [D, n].

    With k spans of a rule's labels, P(k > most) <= Σ_t P(one begins at t) but for the `most` largest,
    and P(k < 1) <= 1 - P(one begins at t) for any t. Where the first is not negligible and several may
    come, P(k > most) <= E[u^k] / u^(most + 1) for any u > 1 (Chernoff).

    closely (bool): what is not negligible then is looked at again: P(k >= 1) is computed, and
        P(k > most) <= (E[k] - P(k >= 1)) / most, since E[k] - P(k >= 1) is the sum of (j - 1) P(k = j)
        over all j > 1.
    """
    risks = np.ones((len(survey.log_partition), len(counts)))
    for rule, count in enumerate(counts):
        if _unknown(count):
            continue  # it is remembered
        known = potentials, automaton, survey, negligible, buffers
        expected, more, fewer = _bounds(count, *known)
        doubtful = np.flatnonzero(more + fewer > negligible)
        if closely and len(doubtful):
            some = _chance_of_any(potentials, automaton, count, survey, doubtful, buffers)
            if count.most is not None:
                exact = (expected[doubtful] - some) / count.most
                more[doubtful] = np.clip(exact, 0.0, more[doubtful])
            if count.least:
                fewer[doubtful] = 1.0 - some
        risks[:, rule] = more + fewer
    return risks


def _unknown(count: Count) -> bool:
    """Can nothing be said but that the probability is 1 at most?"""
    return count.runs or count.least > 1 or count.most == 0


def _bounds(
    count: Count,
    potentials: Potentials,
    automaton: Automaton,
    survey: Survey,
    negligible: float,
    buffers: Buffers,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Expected number of spans; at least the probabilities of too many, and of too few. float64 [D] each"""
    chances = survey.chances([count])[:, 0]
    expected = _by_text(np.add, chances, potentials)
    more, fewer = np.zeros(len(expected)), np.zeros(len(expected))
    if count.most is not None:
        more = _of_more(chances, potentials, count.most, expected, negligible)
        large = np.flatnonzero(more > negligible)
        if count.most > 1 and len(large):
            rare = _chance_of_more(potentials, automaton, count, survey, large, buffers)
            more[large] = np.minimum(more[large], rare)
    if count.least:
        fewer = 1.0 - _by_text(np.maximum, chances, potentials)
    return expected, more, fewer


def _by_text(
    reduce: np.ufunc, chances: NDArray[np.float64], potentials: Potentials
) -> NDArray[np.float64]:
    """Sum or maximum over the tokens of each text, float64 [D]; 0 for one without tokens."""
    offsets = potentials.offsets
    some = offsets[:-1] < offsets[1:]
    found = np.zeros(len(some))
    if some.any():
        found[some] = reduce.reduceat(chances, offsets[:-1][some])
    return found


def _of_more(
    chances: NDArray[np.float64],
    potentials: Potentials,
    most: int,
    expected: NDArray[np.float64],
    negligible: float,
) -> NDArray[np.float64]:
    """Sum over the tokens of each text but for the `most` largest, float64 [D]; of all of them where that
    is negligible.

    expected (float64 [D]): of all of them.
    """
    if most == 1:
        return np.maximum(expected - _by_text(np.maximum, chances, potentials), 0.0)
    found, offsets = expected.copy(), potentials.offsets
    for i in np.flatnonzero(expected > negligible).tolist():
        found[i] = np.sort(chances[offsets[i] : offsets[i + 1]])[:-most].sum()
    return np.asarray(found)


def _chance_of_any(
    potentials: Potentials,
    automaton: Automaton,
    count: Count,
    survey: Survey,
    texts: NDArray[np.int64],
    buffers: Buffers,
) -> NDArray[np.float64]:
    """P(some segment has one of the labels) of some texts, float64 [n].

    texts (int64 [n]): their numbers, ascending.
    """
    chosen, total = select_sequences(potentials, texts), survey.log_partition[texts]
    without = chosen.allowed.copy()
    without[:, sorted(count.labels)] = 0
    none = log_partition(replace(chosen, allowed=without), automaton, buffers=buffers)
    possible = ~np.isneginf(total)
    found = np.zeros(len(total))
    found[possible] = 1.0 - np.exp(none[possible] - total[possible])
    return found


def _chance_of_more(
    potentials: Potentials,
    automaton: Automaton,
    count: Count,
    survey: Survey,
    texts: NDArray[np.int64],
    buffers: Buffers,
) -> NDArray[np.float64]:
    """At least P(more than `most` segments have one of the labels) of some texts, float64 [n].

    E[u^k] = Z' / Z, with Z' of log potentials in which each segment of the labels has log u more.

    texts (int64 [n]): their numbers, ascending.
    """
    assert count.most is not None
    chosen, total = select_sequences(potentials, texts), survey.log_partition[texts]
    least = np.zeros(len(texts))
    for u in BASES:
        const = chosen.const.copy()
        const[sorted(count.labels)] += np.log(u)
        raised = log_partition(replace(chosen, const=const), automaton, buffers=buffers)
        with np.errstate(invalid="ignore"):
            bound = raised - total - (count.most + 1) * np.log(u)
        least = np.fmin(least, bound)
    return np.exp(least)
