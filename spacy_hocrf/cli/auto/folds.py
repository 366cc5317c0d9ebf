"""Texts in folds, each read by a model that has not seen it; and the choice between two settings by that.

Beside the default stands one other: a longer memory, and weights for words and labels that training never
shows together. With it more records are right as a whole (project/records).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.cli.auto.estimates import Numbers, SpanCounts
from spacy_hocrf.cli.auto.reading import HeldOutPredictions, Subject, joined
from spacy_hocrf.cli.options import BestAt
from spacy_hocrf.learning.heldout import FOLDS, MOST

__all__ = ["Division", "SettingsTrial", "divide", "read_in_folds", "tried"]

HELD = 1_000
"""Texts that are held back, at least, where there are so many: then fewer folds will do."""
GAIN = 0.02
"""Of the default's loss: by so much must that of the other settings be lower. On 46 dev parts of
project/defaults 0.01 chose one of ten others three times that was worse, once by a point of F1; 0.02 never.
"""
MANY = 4
"""Where so many folds are needed, all of them are read."""


@dataclass(frozen=True)
class Division:
    """Texts in FOLDS parts, of which some are held back."""

    sample: Numbers  # [n] numbers of complete texts, at random
    groups: Numbers  # [n] of each: a group is in one part
    others: Numbers  # of texts that are annotated in part: all models learn from them
    folds: int

    def __iter__(self) -> Iterator[tuple[Numbers, Numbers]]:
        """For each fold, the texts to learn from and those held back."""
        _, first, number = np.unique(self.groups, return_index=True, return_inverse=True)
        part = np.argsort(np.argsort(first))[number] % FOLDS  # groups as they appear
        for k in range(self.folds):
            yield np.concatenate([self.sample[part != k], self.others]), self.sample[part == k]


def divide(complete: NDArray[np.bool_], groups: Numbers, seed: int) -> Division:
    """Divide texts at random; of many, some.

    complete (bool [D]): is the text annotated completely?
    groups (int64 [D]): number of each text's group, of which all is in one part.
    """
    shuffled = np.random.default_rng(seed).permutation(len(complete))
    sample = shuffled[complete[shuffled]][:MOST]
    folds = -(-HELD * FOLDS // len(sample))
    return Division(
        sample, groups[sample], np.flatnonzero(~complete), FOLDS if folds >= MANY else folds
    )


@dataclass(frozen=True)
class SettingsTrial:
    """Settings on the texts held back."""

    subject: Subject
    cost: float | None  # of `ExpectedF`; None for `Reranked`
    reading: HeldOutPredictions
    learnt: int  # texts that each model has learnt from, on average
    loss: float  # minus the log-likelihood, nats

    @property
    def counts(self) -> SpanCounts:
        """Counts of the texts that were held back."""
        return self.reading.counts(self.cost).only(self.reading.held)

    def __str__(self) -> str:
        return self.subject.spell(self.cost)

    def beats(self, default: "SettingsTrial", goal: BestAt) -> bool:
        """Is the annotation clearly more probable, and F1, or the share of whole texts, no lower?"""
        one, other = self.counts, default.counts
        better = one.f >= other.f if goal is BestAt.FIELDS else one.whole.sum() >= other.whole.sum()
        return better and self.loss <= (1 - GAIN) * default.loss


def tried(subject: Subject, division: Division) -> SettingsTrial:
    """Learn the decoder's cost, and read all that is held back."""
    cost = subject.learnt_cost()
    return SettingsTrial(subject, cost, *read_in_folds(subject, division))


def read_in_folds(
    subject: Subject, division: Division, fraction: float = 1.0
) -> tuple[HeldOutPredictions, int, float]:
    """What models say of the texts held back; from how many texts each has learnt, on average; and minus the
    log-likelihood of those held back, nats.

    fraction (float): of the texts that there are to learn from.
    """
    parts, sizes, loss = list[HeldOutPredictions](), list[int](), 0.0
    for learnt, held in division:
        fewer = learnt[: max(2, round(fraction * len(learnt)))]
        fold = subject.fold(fewer, held)
        loss += fold.loss(subject.trainer)
        parts.append(subject.read(fold, fewer, held))
        sizes.append(len(fewer))
    return joined(parts), round(float(np.mean(sizes))), loss
