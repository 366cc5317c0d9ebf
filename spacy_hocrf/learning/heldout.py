"""Held-out models: how many texts are held out, how they are split into folds, and training on the others.

A model knows its training data nearly by heart. So settings are chosen, and anything on top of its scores is
learnt, from documents that resemble future ones: those that it has not seen (stacked generalisation: Wolpert,
Neural Networks 5, 1992). Copies of a document, and documents of one group, are always on the same side.
"""

import sys
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.learning.corpus import Corpus
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.model.architectures import set_weights
from spacy_hocrf.training.base import Trainer
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.types import Vector

__all__ = [
    "FOLDS",
    "HELD_OUT_TO_LEARN",
    "MAX_DOCUMENTS",
    "MIN_GROUPS",
    "SEED",
    "Fold",
    "Sides",
    "Trained",
    "begin_near",
    "comparison_trainer",
    "cross_fitted",
    "divided",
    "held_out_sides",
    "sampled_groups",
    "train",
]

MIN_GROUPS = 20
"""Minimum number of groups of completely annotated documents (usually one each); below, defaults apply."""
MAX_DOCUMENTS = 2_000
"""Maximum number of documents that decide; sampled at random if there are more."""
MEAN_TOKENS = 25
"""Average tokens per document in a full sample: those of a sentence."""
MIN_SAMPLED_GROUPS = 10
"""Minimum number of groups in a sample, however long they are."""
FOLDS = 5
"""Number of folds; a model trained on much less data than the final one is less confident."""
HELD_OUT_TO_LEARN = 400
"""Number of held-out documents that is enough to learn a number from; further folds are left out."""
TOKENS_AS_DOCUMENT = 50
"""Tokens that count as one document: a few long documents show as much as many short ones."""
SEED = 0
SIGMA_WITHOUT_PRIOR = 1.0
"""Sigma of models by which settings are chosen for a trainer that has no prior."""

Sides = tuple[list[Document], list[Document]]  # for training, held out


def sampled_groups(corpus: Corpus, most: int, *, least: int = 0) -> list[list[Document]]:
    """Return completely annotated documents by group, without copies, in random order.

    most (int): maximum number of documents, and of MEAN_TOKENS times that many tokens, but at least
        MIN_SAMPLED_GROUPS groups.
    least (int): return nothing if the corpus has fewer groups than this.
    """
    groups = [list(dict.fromkeys(group)) for group in corpus.groups(most=sys.maxsize)]
    if len(groups) < least:
        return []
    shuffled = [groups[i] for i in np.random.default_rng(SEED).permutation(len(groups))]
    sizes = np.cumsum([len(group) for group in shuffled])
    tokens = np.cumsum([sum(map(len, group)) for group in shuffled])
    n_by_documents = int(np.searchsorted(sizes, most, side="right"))
    n_by_tokens = int(np.searchsorted(tokens, min(MEAN_TOKENS * most, sys.maxsize), side="right"))
    return shuffled[: min(n_by_documents, max(n_by_tokens, MIN_SAMPLED_GROUPS))]


def divided(keys: Sequence[Hashable], folds: int, seed: int) -> list[list[int]]:
    """Split item numbers at random into parts with nearly equal numbers of groups.

    keys (Sequence[Hashable]): group key of each item; a group is never divided.
    folds (int): number of parts, or fewer if there are fewer groups.
    """
    groups = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    folds = min(folds, len(groups))
    part = np.random.default_rng(seed).permutation(len(groups)) % max(1, folds)
    owner = part[[groups[key] for key in keys]]
    return [np.flatnonzero(owner == fold).tolist() for fold in range(folds)]


def held_out_sides(corpus: Corpus, enough: int, least: int = MIN_GROUPS) -> list[Sides]:
    """Return training and held-out documents of each fold, out of at most MAX_DOCUMENTS that are completely
    annotated; empty if there are too few.

    enough (int): number of documents to hold out in all folds, or that many times TOKENS_AS_DOCUMENT tokens.
    least (int): minimum number of groups, at least 2.
    """
    groups = sampled_groups(corpus, MAX_DOCUMENTS, least=least)
    folds: list[Sides] = []
    documents = tokens = 0
    for unseen in map(set, divided(range(len(groups)), FOLDS, SEED)):
        if documents < enough and tokens < enough * TOKENS_AS_DOCUMENT:
            sides = [
                [d for i, group in enumerate(groups) if (i in unseen) == side for d in group]
                for side in (False, True)
            ]
            folds.append((sides[0], sides[1]))
            documents += len(sides[1])
            tokens += sum(map(len, sides[1]))
    return folds


def comparison_trainer(trainer: Trainer) -> LBFGSTrainer:
    """Return the trainer for models that are compared."""
    quick: LBFGSTrainer | None = trainer.quick()
    return quick or LBFGSTrainer(sigma=getattr(trainer, "sigma", SIGMA_WITHOUT_PRIOR)).quick()


def train(model: Learner, steps: int) -> None:
    """Take up to this many steps of the model's trainer, until it converges."""
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
) -> Iterator[tuple[Learner, list[int]]]:
    """Train local models one after the other and yield each with the groups that it has not seen; only one
    model is in memory at a time. All of them see the documents that are in no group.

    learner (Learner): has the corpus; its own training releases memory.
    groups (Sequence[Sequence[Document]]): disjoint groups of documents of the corpus; a group is not divided,
        and groups connected by their documents' own group are in one fold.
    folds (int): number of models, at least 2, at most the number of groups.
    seed (int): seed of the random division into parts with nearly equal numbers of groups.
    steps (int): maximum number of steps of the trainer.
    YIELDS (tuple[Learner, list[int]]): a trained model, and the numbers of its groups.
    """
    learner.release()
    group_keys = (group[0].group for group in groups)
    keys = [(key is None, number if key is None else key) for number, key in enumerate(group_keys)]
    for unseen in divided(keys, folds, seed):
        model = learner.without(document for number in unseen for document in groups[number])
        train(model, steps)
        yield model, unseen


class Trained(NamedTuple):
    """A model trained on some documents, to be used beside the component's own."""

    model: Learner
    trainer: Trainer  # whose optimum its weights are near
    learnt: Sequence[Document]
    held_out: Sequence[Document]


class Fold:
    """A model trained without some documents, and these documents.

    learner (Learner): has the corpus.
    learnt (Sequence[Document]): training documents.
    held_out (Sequence[Document]): held-out documents, completely annotated.
    below (Optional[Fold]): the fold of a smaller model, whose weights training starts from; else from 0.
    settings (Any): settings of the model that differ from the learner's.

    documents (tuple[Sequence[Document], Sequence[Document]]): `learnt` and `held_out`.
    weights (float64 [F]): current weights.
    """

    def __init__(
        self,
        learner: Learner,
        learnt: Sequence[Document],
        held_out: Sequence[Document],
        below: "Fold | None" = None,
        **settings: Any,
    ) -> None:
        self._learner = learner.seeing(learnt, **settings)
        self.documents = learnt, held_out
        self._view = self._learner.view()
        unseen = learner.corpus.only(held_out)
        self._held_out = self._learner.shards_of(unseen)
        self.weights = self._view.weights
        if below is not None:
            self.weights = _mapped_weights(self._learner, below._learner, below.weights)

    @property
    def model(self) -> Learner:
        """The model with the current weights."""
        set_weights(self._learner.model, self.weights)
        return self._learner

    def trained(self, trainer: Trainer, weights: Vector) -> Trained:
        """Return the model with earlier weights, float64 [F], which are near the trainer's optimum."""
        self.weights = weights
        self.release()
        return Trained(self.model, trainer, *self.documents)

    def release(self) -> None:
        """Release memory that the next training allocates again."""
        self._view = self._learner.view()
        for shard in self._held_out:
            shard.release()

    def train(self, trainer: LBFGSTrainer) -> None:
        """Continue training from the current weights."""
        run = trainer.begin(self._view._replace(weights=self.weights))
        while run.running:
            run.step()
        self.weights = run.weights.copy()

    def loss(self, trainer: LBFGSTrainer) -> float:
        """Continue training from the current weights and return the held-out loss.

        RETURNS (float): minus the log-likelihood of the held-out documents, multiplied by their weights, in
            nats.
        """
        self.train(trainer)
        zeros, model = np.zeros(len(self.weights)), (self._view.layout, self._view.automaton)
        likelihood = Objective(self._held_out, *model, zeros, zeros, threads=trainer.n_threads)
        return likelihood(self.weights)[0]


def begin_near(learner: Learner, folds: Sequence[Trained]) -> None:
    """Initialise the weights with the mean of the weights of folds by which settings were chosen (0 where a
    fold lacks a feature).

    Only where the optimum does not depend on the start: that of the likelihood, with every token annotated.
    """
    complete = all(document.complete for document in learner.corpus.documents)
    if not (folds and complete and learner.trainer.exact):
        return
    weights = [_mapped_weights(learner, fold.model, fold.model.weights) for fold in folds]
    set_weights(learner.model, np.mean(weights, axis=0))


def _mapped_weights(learner: Learner, other: Learner, weights: Vector) -> Vector:
    """Map another model's weights to the features of this one; 0 for features that it lacks."""
    places = learner.structure.found_in(other.structure)
    mapped: Vector = np.append(weights, 0.0)[places]  # place -1 is the last
    return mapped
