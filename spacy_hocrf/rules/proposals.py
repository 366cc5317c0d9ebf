"""Proposes a grammar that nearly all of some texts satisfy, learnt from the labels of their spans.

It is a chain of factors such as (journal | booktitle)?, each of one or more labels. Let a → b if some text
has a before b: labels that reach each other form one factor, factors are put in an order that → allows, and
counts give the operator of each, "?", "+", "*" or none (CRX of Bex, Neven, Schwentick and Vansummeren, ACM
TODS 35, 2010). Unordered factors are also merged if no text has them together, or one of them twice. To allow
a few texts to break the grammar, texts with the rarest deviations are left out first: labels in an order that
other texts reverse, then a repeated factor, then a missing one.

A label that occurs anywhere merges all labels around it into one factor. So the grammar names only some
labels, and the others may be anywhere: labels are added one at a time, always the most informative one. With
p(n) the probability that n independent labels, as frequent as in the texts, satisfy the grammar, it gives
-log2 p(n) bits about a text of n spans.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.rules import Rule
from spacy_hocrf.rules.grammar import Grammar

__all__ = ["ProposedGrammar", "propose_grammar"]

MIN_BITS = 0.05
"""Bits per text that each additional label must contribute on average."""
UNQUOTED = re.compile(r'[^\s()|?*+"]+')
"""A label that needs no quotes."""
OPERATORS = {(True, True): "", (False, True): "?", (True, False): "+", (False, False): "*"}
"""Operator by whether a factor occurs at least once, and at most once."""
MIN_PROBABILITY = 1e-300
"""Lower bound of the probability of satisfying a grammar."""

Sentence = tuple[str, ...]
"""The sequence of labels of a text's spans."""


@dataclass(frozen=True)
class ProposedGrammar:
    """A grammar that most of some texts satisfy."""

    expression: str  # for `Grammar` with other labels anywhere; "" if no label has a fixed place
    bits: float  # information about a text, on average
    kept: float  # share of the texts that satisfy it
    # label sequences of texts that break it, with their number; most frequent first
    broken: tuple[tuple[Sentence, int], ...]


@dataclass(frozen=True)
class _Texts:
    """n kinds of texts that differ in their spans; Y labels."""

    size: NDArray[np.int64]  # [n] number of texts of this kind
    count: NDArray[np.int64]  # [n, Y] number of spans
    order: NDArray[np.bool_]  # [n, Y, Y] is one of the first label before one of the second?

    def where(self, rows: NDArray[np.bool_]) -> "_Texts":
        """Return a selection of the texts, bool [n]."""
        return _Texts(self.size[rows], self.count[rows], self.order[rows])

    def of(self, labels: Sequence[int]) -> "_Texts":
        """Return the texts with the spans of some labels only."""
        return _Texts(self.size, self.count[:, labels], self.order[:, labels][:, :, labels])


def propose_grammar(sentences: Sequence[Sentence], share: float = 0.99) -> ProposedGrammar:
    """Find the most informative grammar among those that nearly all of some texts satisfy.

    sentences (Sequence[Tuple[str, ...]]): the sequence of labels of each text's spans.
    share (float): minimum share of the texts that satisfy the grammar, above 0.
    """
    kinds, total = Counter(sentences), len(sentences)
    spare = total - ceil(share * total - 1e-9)
    labels = sorted({label for sentence in kinds for label in sentence})
    texts = _texts_of(kinds, labels)
    frequency = texts.size @ texts.count
    lengths = np.bincount(texts.count.sum(axis=1), texts.size).astype(np.float64)
    remaining = {y for y, label in enumerate(labels) if label and '"' not in label}
    named, best, best_gain = list[int](), ProposedGrammar("", 0.0, 1.0, ()), 0.0
    while remaining:
        trials = list[tuple[float, int, str]]()
        for y in sorted(remaining):
            chosen = sorted([*named, y])
            expression = _expression(texts.of(chosen), [labels[i] for i in chosen], spare)
            if expression:
                trials.append((_bits(_rule(expression, labels), lengths, frequency), y, expression))
        if not trials:
            break
        bits, y, expression = max(trials)
        remaining.remove(y)
        named.append(y)
        gain = bits - MIN_BITS * len(named)
        if gain > best_gain:
            best, best_gain = ProposedGrammar(expression, bits, 1.0, ()), gain
    if not best.expression:
        return best
    rule = _rule(best.expression, labels)
    broken = Counter(
        {kind: n for kind, n in kinds.items() if not rule.keeps(map(labels.index, kind))}
    )
    kept = (total - broken.total()) / total
    return replace(best, kept=kept, broken=tuple(broken.most_common()))


def _texts_of(kinds: Counter[Sentence], labels: Sequence[str]) -> _Texts:
    n, m = len(kinds), len(labels)
    count = np.zeros((n, m), dtype=np.int64)
    first, last = np.full((n, m), np.inf), np.full((n, m), -np.inf)
    place = {label: y for y, label in enumerate(labels)}
    for i, sentence in enumerate(kinds):
        for at, label in enumerate(sentence):
            y = place[label]
            count[i, y] += 1
            first[i, y], last[i, y] = min(first[i, y], at), at
    size = np.fromiter(kinds.values(), np.int64, n)
    return _Texts(size, count, first[:, :, None] < last[:, None, :])


def _expression(texts: _Texts, labels: Sequence[str], spare: int) -> str:
    """Return the chain that all texts but at most `spare` satisfy."""
    for find in (_disorders, _repeats, _lacks):
        while True:
            affected = find(texts)
            sizes = texts.size @ affected
            affected, sizes = affected[:, sizes > 0], sizes[sizes > 0]
            if not len(sizes) or sizes.min() > spare:
                break
            spare -= sizes.min()
            texts = texts.where(~affected[:, sizes.argmin()])
    names = np.array([y if UNQUOTED.fullmatch(y) else f'"{y}"' for y in labels])
    factors = _chain(texts)
    return " ".join(
        (f"({' | '.join(names[mine])})" if mine.sum() > 1 else str(names[mine][0]))
        + OPERATORS[bool(counts.min() > 0), bool(counts.max() <= 1)]
        for mine, counts in zip(factors.T, (texts.count @ factors).T)
        if counts.any()
    )


def _disorders(texts: _Texts) -> NDArray[np.bool_]:
    """Which texts have two labels in an order that others reverse? bool [n, k] for k such pairs."""
    there = texts.order.any(axis=0)
    both = np.asarray(there & there.T & (np.eye(*there.shape) == 0))
    return texts.order[:, both]


def _repeats(texts: _Texts) -> NDArray[np.bool_]:
    """Which texts have each factor twice or more? bool [n, k]"""
    return np.asarray(texts.count @ _chain(texts) > 1)


def _lacks(texts: _Texts) -> NDArray[np.bool_]:
    """Which texts lack each factor? bool [n, k]"""
    counts = texts.count @ _chain(texts)
    return np.asarray((counts == 0) & counts.any(axis=0))


def _chain(texts: _Texts) -> NDArray[np.bool_]:
    """Return the factors in order, bool [Y, k]: does a factor contain the label?"""
    factor = np.eye(texts.count.shape[1], dtype=bool)
    before = texts.order.any(axis=0) | factor
    while True:
        counts = texts.count @ factor  # spans per text and factor
        reach = factor.T @ before @ factor
        for _ in range(len(before).bit_length()):
            reach = reach @ reach
        mergeable = np.triu(reach & reach.T, 1)
        if not mergeable.any():
            once, present = counts.max(axis=0) == 1, counts > 0
            never_together = ~(reach | reach.T | (present.T @ present))
            mergeable = np.triu(never_together & once & once[:, None], 1)
        if not mergeable.any():
            return factor[:, np.argsort(reach.sum(axis=0), kind="stable")]  # by predecessors
        size = texts.size @ counts
        i, j = max(np.argwhere(mergeable).tolist(), key=lambda pair: int(size[pair].sum()))
        factor[:, i] |= factor[:, j]
        factor = np.delete(factor, j, axis=1)


def _rule(expression: str, labels: Sequence[str]) -> Rule:
    [rule] = Grammar(expression=expression).rules(labels)
    return rule


def _bits(rule: Rule, lengths: NDArray[np.float64], frequency: NDArray[np.int64]) -> float:
    """Return the information that the grammar gives about a text, in bits, on average.

    lengths (float64 [n]): number of texts with 0, 1, … spans. frequency (int64 [Y]): spans of each label.
    """
    step = np.zeros((len(rule), len(rule)))  # probability of a state after another one
    np.add.at(step, (np.arange(len(rule))[:, None], rule.after), frequency / frequency.sum())
    bits, state = 0.0, np.eye(len(rule))[0]
    for n in lengths:
        bits -= n * log2(max(float(state[rule.kept].sum()), MIN_PROBABILITY))
        state = state @ step
    return float(bits / lengths.sum())
