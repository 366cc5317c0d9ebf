"""Models that have not seen some documents: how many texts decide, which are held back, and who learns the
others, to which end.

A model knows its own training data nearly by heart. Settings are chosen, and whatever is learnt on top of
its scores is learnt, from documents as they will be: such as it has not seen (stacked generalisation:
Wolpert, Neural Networks 5, 1992). Copies of a document, and those of a group, are on one side.
"""

import sys
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.engine.data_set import Shard
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.learning.corpus import Corpus
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.model.architectures import set_weights
from spacy_hocrf.training.base import Trainer
from spacy_hocrf.training.lbfgs import LBFGSTrainer

__all__ = [
    "FOLDS",
    "HELD_BACK",
    "LEAST",
    "MOST",
    "SEED",
    "Fold",
    "Sides",
    "Trained",
    "begin_near",
    "cross_fitted",
    "divided",
    "held_back",
    "judge",
    "sampled_groups",
    "train",
]

LEAST = 20
"""Groups of completely annotated documents, usually of one each. With fewer, defaults stand."""
MOST = 2_000
"""Documents that decide, chosen at random where there are more."""
TOKENS = 25
"""Of a document, on average, if a sample has as many as it may: those of a sentence."""
FEWEST = 10
"""Groups of a sample, at least, however long they are."""
FOLDS = 5
"""A model that learns from much less than the one that will be used is less sure."""
HELD_BACK = 400
"""So many documents held back are enough to learn a number from; folds beyond them are left out."""
LONG = 50
"""Tokens of a document, for what is enough: a few long ones show as much as many short ones."""
SEED = 0
SIGMA = 1.0
"""Of models by which settings are chosen for a trainer that has no prior."""

Vector = NDArray[np.float64]  # [F]
Sides = tuple[list[Document], list[Document]]  # learnt, held back


def sampled_groups(corpus: Corpus, most: int, *, least: int = 0) -> list[list[Document]]:
    """Completely annotated documents by their groups, without copies, in a random order.

    most (int): documents, at most; and so many times TOKENS tokens, unless these are FEWEST groups.
    least (int): groups of the corpus; none is returned where it has fewer.
    """
    groups = [list(dict.fromkeys(group)) for group in corpus.groups(most=sys.maxsize)]
    if len(groups) < least:
        return []
    shuffled = [groups[i] for i in np.random.default_rng(SEED).permutation(len(groups))]
    sizes = np.cumsum([len(group) for group in shuffled])
    tokens = np.cumsum([sum(map(len, group)) for group in shuffled])
    few = int(np.searchsorted(sizes, most, side="right"))
    short = int(np.searchsorted(tokens, min(TOKENS * most, sys.maxsize), side="right"))
    return shuffled[: min(few, max(short, FEWEST))]


def divided(keys: Sequence[Hashable], folds: int, seed: int) -> list[list[int]]:
    """Numbers of things in parts of nearly equally many groups, at random.

    keys (Sequence[Hashable]): of each thing; those with equal ones are a group, which is in one part.
    folds (int): number of parts, or fewer if there are fewer groups.
    """
    groups = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    folds = min(folds, len(groups))
    part = np.random.default_rng(seed).permutation(len(groups)) % max(1, folds)
    owner = part[[groups[key] for key in keys]]
    return [np.flatnonzero(owner == fold).tolist() for fold in range(folds)]


def held_back(corpus: Corpus, enough: int, least: int = LEAST) -> list[Sides]:
    """What each fold learns from and holds back, of at most MOST completely annotated documents; nothing if
    there are too few.

    enough (int): documents that all folds together hold back, or as many times LONG tokens of longer ones.
    least (int): groups of documents, at least 2.
    """
    groups = sampled_groups(corpus, MOST, least=least)
    found: list[Sides] = []
    documents = tokens = 0
    for unseen in map(set, divided(range(len(groups)), FOLDS, SEED)):
        if documents < enough and tokens < enough * LONG:
            sides = [
                [d for i, group in enumerate(groups) if (i in unseen) == side for d in group]
                for side in (False, True)
            ]
            found.append((sides[0], sides[1]))
            documents += len(sides[1])
            tokens += sum(map(len, sides[1]))
    return found


def judge(trainer: Trainer) -> LBFGSTrainer:
    """What trains models that are compared."""
    own: LBFGSTrainer | None = trainer.quick()
    return own or LBFGSTrainer(sigma=getattr(trainer, "sigma", SIGMA)).quick()


def train(model: Learner, steps: int) -> None:
    """Take so many steps of the model's trainer, or fewer if it converges."""
    for _ in range(steps):
        run = model.run
        if run is None or not run.running:
            break
        model.step(run)


def cross_fitted(
    learner: Learner,
    groups: Sequence[Sequence[Document]],
    *,
    folds: int,
    seed: int,
    steps: int,
    rest: bool = True,
) -> Iterator[tuple[Learner, list[int]]]:
    """Local models, each with the groups that it has not seen; one model at a time is in memory.

    learner (Learner): knows the corpus; its own training rests.
    groups (Sequence[Sequence[Document]]): documents of the corpus, each in one group; a group is
        not divided, and those that a document's own group connects are in one fold.
    folds (int): number of models, at least 2; no more than groups.
    seed (int): of the division, at random into parts of nearly equal numbers of groups.
    steps (int): of the trainer, or fewer if it converges.
    rest (bool): all models see the documents that are in no group; else none does.
    YIELDS (tuple[Learner, list[int]]): a trained model, and the numbers of its groups.
    """
    learner.rest()
    own = (group[0].group for group in groups)
    keys = [(key is None, number if key is None else key) for number, key in enumerate(own)]
    for unseen in divided(keys, folds, seed):
        documents = [document for number in unseen for document in groups[number]]
        if rest:
            model = learner.without(documents)
        else:
            unseen_too = set(documents)
            seen = [d for group in groups for d in group if d not in unseen_too]
            model = learner.seeing(seen)
        train(model, steps)
        yield model, unseen


class Trained(NamedTuple):
    """A model of some documents, to be used beside that of the component."""

    model: Learner
    trainer: Trainer  # the optimum of whose objective its weights are near
    learnt: Sequence[Document]
    held_back: Sequence[Document]


class Fold:
    """A model without some documents, and these documents.

    learner (Learner): knows the corpus.
    learnt (Sequence[Document]): what the model learns from.
    held_back (Sequence[Document]): other documents, completely annotated.
    below (Optional[Fold]): the same with a smaller model; training begins at its weights, else at 0.
    settings (Any): of the model, where they are not the learner's.

    weights (float64 [F]): where training has come to.
    """

    def __init__(
        self,
        learner: Learner,
        learnt: Sequence[Document],
        held_back: Sequence[Document],
        below: "Fold | None" = None,
        **settings: Any,
    ) -> None:
        self._learner = learner.seeing(learnt, **settings)
        self._documents = learnt, held_back
        self._view = self._learner.view()
        unseen = learner.corpus.only(held_back)
        self._held_back = self._learner.shards_of(unseen)
        self.weights = self._view.weights
        if below is not None:
            self.go_on_from(below)

    @property
    def model(self) -> Learner:
        """What predicts with these weights."""
        set_weights(self._learner.model, self.weights)
        return self._learner

    def trained(self, trainer: Trainer, weights: Vector) -> Trained:
        """The model with weights that it had, float64 [F], near what some trainer would find."""
        self.weights = weights
        self.rest()
        return Trained(self.model, trainer, *self._documents)

    def rest(self) -> None:
        """Give back memory that the next training takes again."""
        self._view = self._learner.view()
        for shard in self._held_back:
            shard.rest()

    def go_on_from(self, other: "Fold") -> None:
        """Take the weights that another model has; those of features that it has not are 0."""
        self.weights = _weights_in(self._learner, other._learner, other.weights)

    def train(self, trainer: LBFGSTrainer) -> None:
        """Train on from the weights there are."""
        run = trainer.begin(self._view._replace(weights=self.weights))
        while run.running:
            run.step()
        self.weights = run.weights.copy()

    def loss(self, trainer: LBFGSTrainer) -> float:
        """Train on from the weights there are.

        RETURNS (float): minus the log-likelihood of the documents held back, each times its weight, in nats.
        """
        self.train(trainer)
        return self._likelihood(self._held_back, trainer.n_threads)(self.weights)[0]

    def _likelihood(self, shards: Sequence[Shard], threads: int) -> Objective:
        """The objective of some documents, without a prior."""
        nothing, known = np.zeros(len(self.weights)), (self._view.layout, self._view.automaton)
        return Objective(shards, *known, nothing, nothing, threads=threads)


def begin_near(learner: Learner, folds: Sequence[Trained]) -> None:
    """Let training begin at what folds have learnt of the corpus, by which settings were chosen: the mean of
    their weights, 0 where a fold does not know a feature.

    Only where the optimum is the same: that of the likelihood, every token of the corpus known.
    """
    known = all(document.complete for document in learner.corpus.documents)
    if not (folds and known and learner.trainer.exact):
        return
    found = [_weights_in(learner, fold.model, fold.model.weights) for fold in folds]
    set_weights(learner.model, np.mean(found, axis=0))


def _weights_in(learner: Learner, other: Learner, weights: Vector) -> Vector:
    """The weights of another model for the features of this one, 0 for those that it has not."""
    places = learner.structure.found_in(other.structure)
    found: Vector = np.append(weights, 0.0)[places]  # place -1 is the last
    return found
