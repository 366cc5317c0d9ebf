"""Cross-fitting: every document scored by a local model that has not seen it, trained like the one
that will be used.

A model knows its own training data nearly by heart. Whatever is learnt on top of its scores must be
learnt from scores as they will be on new documents, else there is nothing left to learn (stacked
generalisation: Wolpert, Neural Networks 5, 1992).
"""

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from spacy_hocrf.pipeline.corpus import Corpus
from spacy_hocrf.pipeline.documents import Document
from spacy_hocrf.pipeline.learning import Learner

__all__ = ["FEWEST", "TOKENS", "cross_fitted", "divided", "sampled_groups"]


TOKENS = 25
"""Of a document, on average, if a sample has as many as it may: those of a sentence."""
FEWEST = 10
"""Groups of a sample, at least, however long they are."""


def sampled_groups(corpus: Corpus, most: int, seed: int, *, least: int = 0) -> list[list[Document]]:
    """Completely annotated documents by their groups, without copies, in a random order.

    most (int): documents, at most; and so many times TOKENS tokens, unless these are FEWEST groups.
    least (int): groups of the corpus; none is returned where it has fewer.
    """
    groups = [list(dict.fromkeys(group)) for group in corpus.groups(most=sys.maxsize)]
    if len(groups) < least:
        return []
    shuffled = [groups[i] for i in np.random.default_rng(seed).permutation(len(groups))]
    sizes = np.cumsum([len(group) for group in shuffled])
    tokens = np.cumsum([sum(map(len, group)) for group in shuffled])
    few = int(np.searchsorted(sizes, most, side="right"))
    short = int(np.searchsorted(tokens, min(TOKENS * most, sys.maxsize), side="right"))
    return shuffled[: min(few, max(short, FEWEST))]


def divided(groups: int, folds: int, seed: int) -> list[list[int]]:
    """Numbers of groups in parts of nearly equal size, at random.

    folds (int): number of parts; no more than groups.
    """
    part = np.random.default_rng(seed).permutation(groups) % min(folds, groups)
    return [np.flatnonzero(part == fold).tolist() for fold in range(min(folds, groups))]


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
        not divided.
    folds (int): number of models, at least 2; no more than groups.
    seed (int): of the division, at random into parts of nearly equal numbers of groups.
    steps (int): of the trainer, or fewer if it converges.
    rest (bool): all models see the documents that are in no group; else none does.
    YIELDS (tuple[Learner, list[int]]): a trained model, and the numbers of its groups.
    """
    learner.rest()
    for unseen in divided(len(groups), folds, seed):
        documents = [document for number in unseen for document in groups[number]]
        if rest:
            model = learner.without(documents)
        else:
            unseen_too = set(documents)
            seen = [d for group in groups for d in group if d not in unseen_too]
            model = learner.seeing(seen)
        for _ in range(steps):
            run = model.run
            if run is None or not run.running:
                break
            model.step()
        yield model, unseen
