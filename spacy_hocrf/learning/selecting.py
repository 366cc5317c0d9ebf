"""Label patterns one by one: a model grows by those that promise most, as long as they pay.

It begins with the single labels. The candidates are the pairs of labels that the training texts have,
and patterns that are one label longer than what there is. All of them at once are put into a lattice,
where they have the weight 0, and one evaluation there gives the exact expected count of each. With how
certain the model is of it (`agreements`) that tells the likelihood that it promises
(`training/gains.py`), which it shares with what it brings along: a pattern comes with its first labels
and its last ones. Those that promise most are added, at most as many as there
are; training goes on at the weights that there are, and so on until hardly a candidate promises enough, or
none keeps its promise, or there are as many patterns as there may be.

All that is asked of texts that the weights were not learnt from: one half of the corpus judges the model
of the other half, and the other way round. On the texts that it was learnt from a model of many
features knows the labels already, and no pattern promises anything.

This is the active set of Vieira, Cotterell and Eisner, "Speed-accuracy tradeoffs in tagging with
variable-order CRFs and structured sparsity", EMNLP 2016, where a pattern is added whose derivative
exceeds the penalty of its group; here it is one whose likelihood does.
"""

import sys
import warnings
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import islice, pairwise
from math import inf
from typing import Any

import numpy as np
from spacy.util import logger

from spacy_hocrf.annotation.annotation import known_segments
from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.engine.alternatives import draws
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.learning.heldout import LEAST, SEED, Fold, divided, judge, sampled_groups
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.learning.survey import histories_of
from spacy_hocrf.model.pattern_choice import COUNTS
from spacy_hocrf.model.structure import Settings
from spacy_hocrf.saving.schema import LIMITS
from spacy_hocrf.training.base import Trainer
from spacy_hocrf.training.gains import gains_of
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.patterns import longer_patterns, parts_of, select_patterns
from spacy_hocrf.types import LabelPattern
from spacy_hocrf.warnings import Warnings

__all__ = ["Growth", "agreements", "select"]

HALVES = 2
FEW = 0.01
"""Of the patterns that there are: so few more are not worth a training."""
DRAWS = 3
"""Random segmentations of each text."""


class Growth:
    """Models of both halves of a corpus, which grow together.

    learner (Learner): knows the corpus, and has no features yet; it is left as it is.
    groups (Sequence[Sequence[Document]]): completely annotated documents of the corpus, which are
        divided; the others are in both halves.
    trainer (LBFGSTrainer): trains the models.
    order (Optional[int]): that they may have; None for that of their patterns.

    selected (tuple[LabelPattern, ...]): patterns of two or more labels that they have.
    """

    def __init__(
        self,
        learner: Learner,
        groups: Sequence[Sequence[Document]],
        trainer: LBFGSTrainer,
        order: int | None,
    ) -> None:
        self._learner, self._trainer = learner, trainer
        self._settings: dict[str, Any] = {} if order is None else {"order": order}
        complete = {document for group in groups for document in group}
        rest = [d for d in learner.corpus.documents if d not in complete]
        parts = [
            [document for number in numbers for document in groups[number]]
            for numbers in divided(range(len(groups)), HALVES, SEED)
        ]
        self._halves = [([*learnt, *rest], held) for learnt, held in zip(parts, parts[::-1])]
        self.selected: tuple[LabelPattern, ...] = ()
        self._models: list[Fold | None] = [None] * len(self._halves)
        self.take(())

    @property
    def _trained(self) -> list[Fold]:
        return [model for model in self._models if model is not None]

    @property
    def n_labels(self) -> int:
        """Number of labels Y."""
        return self._trained[0].model.scheme.n_labels

    def labels(self) -> list[list[int]]:
        """Labels of touching segments of the complete documents."""
        scheme = self._trained[0].model.scheme
        segments = (
            np.array(known_segments(scheme, document.annotation), dtype=np.int32).reshape(-1, 3)
            for _, held in self._halves
            for document in held
        )
        return [*histories_of(segments)]

    def take(self, patterns: Collection[LabelPattern]) -> None:
        """Have these patterns, with the weights that there are."""
        self._models = [
            Fold(self._learner, learnt, held, model, selected=tuple(patterns), **self._settings)
            for (learnt, held), model in zip(self._halves, self._models)
        ]
        self.selected = _longer(self._trained[0].model.structure.patterns)

    def loss(self) -> float:
        """Train on. RETURNS (float): the loss of each half for the model of the other one, in nats."""
        return sum(model.loss(self._trainer) for model in self._trained)

    def gains(self, found: Collection[LabelPattern]) -> dict[LabelPattern, float]:
        """What each of some patterns promises, in nats.

        found (Collection[LabelPattern]): that are not selected, but all that they begin and end with is.
        """
        documents = self._learner.corpus.documents
        every = (*self.selected, *found)
        wide = Fold(self._learner, documents, (), selected=every, **self._settings)
        index = wide.model.structure.index
        observed, expected, agreed = np.zeros((3, len(wide.weights)))
        for model, (_, held) in zip(self._trained, self._halves):
            wide.go_on_from(model)
            counts = wide.counts(held, self._trainer)
            observed += counts[0]
            expected += counts[1]
            both = agreements(model.model, self._learner, held, found)
            by_pattern = np.array([both.get(pattern, 0.0) for pattern in index.patterns])
            agreed[: len(index)] += by_pattern[index.feature_pattern]
        gains = gains_of(observed, expected, self._trainer.precision(wide.model), agreed)[
            : len(index)
        ]
        # observations of one template add up, but templates look at the same segments
        total = np.zeros((len(index.templates), len(index.patterns)))
        np.add.at(total, (index.feature_template, index.feature_pattern), gains)
        promised = dict(zip(index.patterns, total.max(axis=0, initial=0.0).tolist()))
        return {pattern: promised[pattern] for pattern in found}


def select(
    learner: Learner, trainer: Trainer, order: int | None, name: str
) -> tuple[LabelPattern, ...]:
    """Select label patterns by what they add to the likelihood of texts held back.

    learner (Learner): knows its corpus, and has no features yet; it is left as it is.
    trainer (Trainer): the component's, with its sigma.
    order (Optional[int]): of the longest pattern that may be; None for no limit.
    name (str): of the component, for the log.
    RETURNS (tuple[LabelPattern, ...]): of two or more labels, shortest first; with each come its
        first labels and its last ones.
    """
    settings = learner.structure.settings
    assert settings.greedy is not None
    groups = sampled_groups(learner.corpus, sys.maxsize)
    if len(groups) < LEAST:
        warnings.warn(Warnings.W034.format(name=name, found=len(groups), least=LEAST), stacklevel=2)
        least: dict[str, Any] = {} if order is None else {"order": order}
        seen = learner.seeing(learner.corpus.documents, patterns=COUNTS, **least)
        return _longer(seen.structure.patterns)
    growth = Growth(learner, groups, judge(trainer), order)
    texts, kept, lowest = growth.labels(), growth.selected, inf
    most = _most(texts, growth.n_labels, order, settings)
    while True:
        loss = growth.loss()
        found = f"{len(growth.selected)} label patterns of two or more labels"
        logger.info("%s: %s, loss of texts held back %.6g", name, found, loss)
        if loss > lowest:
            return kept
        kept, lowest = growth.selected, loss
        counts = settings.min_pattern_counts
        candidates = longer_patterns(texts, {*kept}, order, counts)
        added = _best(growth.gains(candidates), {*kept}, settings.greedy.gain)
        added = added[: min(most - len(kept), max(growth.n_labels, len(kept)))]
        if len(added) <= FEW * len(kept):
            return kept
        growth.take([*kept, *added])


def agreements(
    model: Learner, corpus: Learner, documents: Sequence[Document], found: Collection[LabelPattern]
) -> dict[LabelPattern, float]:
    """How often the annotation and a random segmentation have a pattern at the same place, on average.

    Let a pattern fire at place i with probability p_i. A random segmentation of the model and the annotation,
    if the model is right about the p_i, both have it there with probability p_i². So this is Σ p_i² on
    average, and with Σ p_i it tells Σ p_i (1 - p_i), which the expected count alone does not.

    model (Learner): has weights.
    corpus (Learner): knows the documents, which the model need not.
    documents (Sequence[Document]): completely annotated.
    found (Collection[LabelPattern]): which patterns.
    """
    lengths, counts = {len(z) for z in found}, defaultdict[LabelPattern, float](float)
    random, buffers = np.random.default_rng(SEED), Buffers(model.plain)
    placed = model.layout.place_weights(model.weights)
    for shard in model.shards_of(corpus.corpus.only(documents)):
        compiled = shard.compiled
        potentials, gold = compiled.potentials(placed, buffers), compiled.gold()
        segments = [*zip(*(column.tolist() for column in gold[1:]))]
        weights = np.ones(len(gold.offsets) - 1) if compiled.weights is None else compiled.weights
        for number, (first, last) in enumerate(pairwise(gold.offsets.tolist())):
            labels = tuple(gold.label[first:last].tolist())
            random_ones = draws(potentials.only(number), model.plain, random, buffers=buffers)
            for drawn in islice(random_ones, DRAWS):
                there = {*zip(*(column.tolist() for column in drawn[1:]))}
                same = [segment in there for segment in segments[first:last]]
                for n in lengths:
                    ends = (end for end in range(n, len(same) + 1) if all(same[end - n : end]))
                    for end in ends:
                        counts[labels[end - n : end]] += weights[number]
        shard.rest()
    return {pattern: counts[pattern] / DRAWS for pattern in found}


def _most(
    texts: Sequence[Sequence[int]], n_labels: int, order: int | None, settings: Settings
) -> int:
    """How many patterns of two or more labels there may be."""
    if settings.greedy is None or settings.greedy.share is None:
        return sys.maxsize
    most, counts = LIMITS["label patterns"].most, settings.min_pattern_counts
    every = select_patterns(texts, n_labels, order, min_counts=counts, most=most)
    return max(0, int(settings.greedy.share * len(every)) - n_labels)


def _longer(patterns: Sequence[LabelPattern]) -> tuple[LabelPattern, ...]:
    """Patterns of two or more labels."""
    return tuple(pattern for pattern in patterns if len(pattern) > 1)


def _best(
    gains: Mapping[LabelPattern, float], known: Collection[LabelPattern], least: float
) -> list[LabelPattern]:
    """Patterns that promise enough, with what else they bring along, those that promise most first.

    gains (Mapping[LabelPattern, float]): of each candidate, to be shared by all that is new with it.
    known (Collection[LabelPattern]): those that are there.
    """
    new = {z: [part for part in parts_of(z) if part not in known] for z in gains}
    shares = {z: gains[z] / len(new[z]) for z in gains}
    enough = sorted((-share, z) for z, share in shares.items() if share >= least)
    return [*dict.fromkeys(part for _, z in enough for part in sorted(new[z], key=len))]
