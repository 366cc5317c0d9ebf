"""How probably a text breaks rules about numbers of spans that nothing keeps it from breaking."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, expectations, log_partition
from spacy_hocrf.engine.memory import Count
from spacy_hocrf.engine.selection import select_sequences
from spacy_hocrf.types import Potentials

__all__ = ["risks_of"]


def risks_of(
    counts: Sequence[Count],
    potentials: Potentials,
    automaton: Automaton,
    negligible: float,
    buffers: Buffers,
) -> NDArray[np.float64]:
    """At least the probability that each of n rules is broken, of D texts, float64 [D, n].

    With k spans of a rule's labels, P(k > most) <= Σ_t P(one begins at t) but for the `most` largest;
    and where that is not negligible, <= (E[k] - P(k >= 1)) / most, since E[k] - P(k >= 1) is the sum of
    (j - 1) P(k = j) over all j > 1.
    """
    if potentials.start is None:
        potentials = replace(potentials, start=np.zeros_like(potentials.token))
    found = expectations(potentials, automaton, buffers=buffers)
    assert found.start is not None
    total = log_partition(potentials, automaton, buffers=buffers)
    risks = np.ones((len(total), len(counts)))
    for rule, count in enumerate(counts):
        if count.runs or count.least > 1 or count.most == 0:
            continue  # 1: it is remembered
        chances = found.start[:, sorted(count.labels)].sum(axis=1)
        risk = _of_more(chances, potentials.offsets, count.most)
        doubtful = np.flatnonzero((risk > negligible) | (count.least > 0))
        if len(doubtful):
            chosen = select_sequences(potentials, doubtful)
            some = _chance_of_any(chosen, automaton, count, total[doubtful], buffers)
            if count.most is not None:
                expected = np.add.reduceat(np.append(chances, 0.0), potentials.offsets[:-1])
                exact = (expected[doubtful] - some) / count.most
                risk[doubtful] = np.clip(exact, 0.0, risk[doubtful])
            if count.least:
                risk[doubtful] += 1.0 - some
        risks[:, rule] = risk
    return risks


def _of_more(
    chances: NDArray[np.float64], offsets: NDArray[np.int64], most: int | None
) -> NDArray[np.float64]:
    """Sum over the tokens of each text but for the `most` largest, float64 [D]."""
    found = np.zeros(len(offsets) - 1)
    if most is not None:
        for i, (first, last) in enumerate(pairwise(offsets.tolist())):
            found[i] = np.sort(chances[first:last])[: max(0, last - first - most)].sum()
    return found


def _chance_of_any(
    potentials: Potentials,
    automaton: Automaton,
    count: Count,
    total: NDArray[np.float64],
    buffers: Buffers,
) -> NDArray[np.float64]:
    """P(some segment has one of the labels), float64 [D].

    total (float64 [D]): log Z.
    """
    without = potentials.allowed.copy()
    without[:, sorted(count.labels)] = 0
    none = log_partition(replace(potentials, allowed=without), automaton, buffers=buffers)
    possible = ~np.isneginf(total)
    found = np.zeros(len(total))
    found[possible] = 1.0 - np.exp(none[possible] - total[possible])
    return found
