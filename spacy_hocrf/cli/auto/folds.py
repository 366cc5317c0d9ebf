"""Cross-validation: each text is read by a model that has not seen it; and the choice between two settings.

The alternative to the default has a higher order, and weights for words and labels that never occur together
in training. It gets more records entirely right (project/records).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.cli.auto.estimates import Numbers, SpanCounts
from spacy_hocrf.cli.auto.reading import HeldOutPredictions, Subject, joined_held_out
from spacy_hocrf.cli.options import BestAt
from spacy_hocrf.learning.heldout import FOLDS, MAX_DOCUMENTS

__all__ = ["Division", "SettingsTrial", "divide", "read_in_folds", "tried"]

HELD = 1_000
"""Number of held-out texts that is enough; if one fold has many texts, fewer folds are read."""
GAIN = 0.02
"""Share of the default's loss by which the loss of other settings must be lower. On 46 dev parts of
project/defaults 0.01 chose one of ten others three times that was worse, once by a point of F1; 0.02 never.
"""
MIN_FOLDS = 4
"""Number of needed folds from which on all are read."""


@dataclass(frozen=True)
class Division:
    """A split of texts into FOLDS parts, of which the first `folds` are held out in turn."""

    sample: Numbers  # [n] numbers of completely annotated texts, in random order
    groups: Numbers  # [n] group of each text: a group is in one part
    others: Numbers  # numbers of partially annotated texts, from which all models learn
    folds: int

    def __iter__(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield for each fold the numbers of the training texts and of the held-out texts."""
        _, first, number = np.unique(self.groups, return_index=True, return_inverse=True)
        part = np.argsort(np.argsort(first))[number] % FOLDS  # groups by first appearance
        for k in range(self.folds):
            yield np.concatenate([self.sample[part != k], self.others]), self.sample[part == k]


def divide(complete: NDArray[np.bool_], groups: Numbers, seed: int) -> Division:
    """Split texts at random; of more than MAX_DOCUMENTS complete texts, a sample is taken.

    complete (bool [D]): is the text annotated completely?
    groups (int64 [D]): number of each text's group; a group is in one part.
    """
    shuffled = np.random.default_rng(seed).permutation(len(complete))
    sample = shuffled[complete[shuffled]][:MAX_DOCUMENTS]
    folds = -(-HELD * FOLDS // len(sample))
    return Division(
        sample, groups[sample], np.flatnonzero(~complete), FOLDS if folds >= MIN_FOLDS else folds
    )


@dataclass(frozen=True)
class SettingsTrial:
    """Results of settings on the held-out texts."""

    subject: Subject
    cost: float | None  # of `ExpectedF`; None for `Reranked`
    reading: HeldOutPredictions
    learnt: int  # mean number of training texts
    loss: float  # negative log-likelihood of the held-out texts, nats

    @property
    def counts(self) -> SpanCounts:
        """Counts of the held-out texts."""
        return self.reading.counts(self.cost).only(self.reading.held)

    def __str__(self) -> str:
        return self.subject.spell(self.cost)

    def beats(self, default: "SettingsTrial", goal: BestAt) -> bool:
        """Is the loss clearly lower, and F1, or the share of entirely right texts, not lower?"""
        one, other = self.counts, default.counts
        better = one.f >= other.f if goal is BestAt.FIELDS else one.whole.sum() >= other.whole.sum()
        return better and self.loss <= (1 - GAIN) * default.loss


def tried(subject: Subject, division: Division) -> SettingsTrial:
    """Learn the decoder's cost, and read the held-out texts."""
    cost = subject.learnt_cost()
    return SettingsTrial(subject, cost, *read_in_folds(subject, division))


def read_in_folds(
    subject: Subject, division: Division, fraction: float = 1.0
) -> tuple[HeldOutPredictions, int, float]:
    """Train a model for each fold and read its held-out texts: the predictions, the mean number of training
    texts, and the negative log-likelihood of the held-out texts in nats.

    fraction (float): share of the training texts to use.
    """
    parts, sizes, loss = list[HeldOutPredictions](), list[int](), 0.0
    for learnt, held in division:
        fewer = learnt[: max(2, round(fraction * len(learnt)))]
        fold = subject.fold(fewer, held)
        loss += fold.loss(subject.trainer)
        parts.append(subject.read(fold, held))
        sizes.append(len(fewer))
    return joined_held_out(parts), round(float(np.mean(sizes))), loss
