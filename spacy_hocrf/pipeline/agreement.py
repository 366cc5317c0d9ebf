"""Where annotation and a model agree by chance: how certain the model is of the label patterns there.

Let a pattern fire at place i with probability p_i. A random segmentation of the model and the annotation,
if the model is right about the p_i, both have it there with probability p_i². So the number of places
where both have it is Σ p_i² in the mean, and with Σ p_i it tells Σ p_i (1 - p_i), which the expected
count alone does not.

A random segmentation is the best one after a Gumbel noise is added to the scores of all tokens (Papandreou
and Yuille, "Perturb-and-MAP random fields", ICCV 2011): a draw of the model's where labels do not depend
on each other, and near to one else.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.pipeline.documents import Document
from spacy_hocrf.pipeline.learning import Learner
from spacy_hocrf.types import LabelPattern, Segments

__all__ = ["agreements"]

DRAWS = 3
SEED = 0


def agreements(
    model: Learner, corpus: Learner, documents: Sequence[Document], found: Collection[LabelPattern]
) -> dict[LabelPattern, float]:
    """How often the annotation and a random segmentation have a pattern at the same place, on average.

    model (Learner): has weights.
    corpus (Learner): knows the documents, which the model need not.
    documents (Sequence[Document]): completely annotated.
    found (Collection[LabelPattern]): which patterns.
    """
    lengths, counts = sorted({len(z) for z in found}), Counter[LabelPattern]()
    random, buffers = np.random.default_rng(SEED), Buffers(model.plain)
    placed = model.layout.place_weights(model.weights)
    for shard in model.shards_of(corpus.corpus.only(documents)):
        potentials, gold = shard.potentials(placed, buffers), shard.gold()
        assert gold is not None
        for _ in range(DRAWS):
            noise = random.gumbel(size=potentials.token.shape)
            drawn = replace(potentials, token=potentials.token + noise)
            both = _both(gold, viterbi(drawn, model.plain, buffers=buffers).segments)
            _count_into(counts, gold, both, lengths)
        shard.rest()
    return {pattern: counts[pattern] / DRAWS for pattern in found}


def _both(gold: Segments, drawn: Segments) -> NDArray[np.bool_]:
    """Which segments of the first the second has, too, bool [n]."""
    keys = [
        np.stack([np.repeat(np.arange(len(each.offsets) - 1), np.diff(each.offsets)), *each[1:]], 1)
        for each in (gold, drawn)
    ]
    size = 1 + np.concatenate(keys).max(axis=0, initial=0).astype(np.int64)
    first, second = (np.ravel_multi_index(tuple(key.T), tuple(size)) for key in keys)
    return np.isin(first, second)


def _count_into(
    counts: Counter[LabelPattern],
    gold: Segments,
    both: NDArray[np.bool_],
    lengths: Sequence[int],
) -> None:
    """Count the successions of so many labels whose segments are all in both."""
    for first, last in pairwise(gold.offsets.tolist()):
        labels = gold.label[first:last].tolist()
        run = 0
        for end, same in enumerate(both[first:last].tolist(), 1):
            run = run + 1 if same else 0
            for n in lengths:
                if n > run:
                    break
                counts[tuple(labels[end - n : end])] += 1
