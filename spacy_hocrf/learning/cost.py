"""The cost of a span for `ExpectedF`: how probable it must be to be shown, learnt from held-out texts.

The best cost is F* / (1 + β²), where F* is the expected F-score at the optimum; but a model is overconfident
on texts that it has learnt from, and often on others. So the training texts are split into folds, and each is
scored by a model trained on the others. The F-score there is flat around its maximum, so the best cost is a
matter of chance; its height is more reliable. The learnt cost is half-way between the best cost and that
height / (1 + β²).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray
from spacy.util import logger

from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.answers.decoders import DEFAULT_COST, ExpectedF
from spacy_hocrf.engine.probable import best_subset
from spacy_hocrf.engine.selection import joined_segments
from spacy_hocrf.learning.heldout import (
    HELD_OUT_TO_LEARN,
    Sides,
    Trained,
    begin_near,
    held_out_sides,
    train,
)
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.saving.schema import Amount
from spacy_hocrf.types import Segments

__all__ = [
    "COSTS",
    "Evidence",
    "LearntCost",
    "best_cost",
    "held_out_models",
    "learn_cost",
]

COSTS = np.arange(1, 31) / 50
"""Candidates, from 0.02 to 0.6."""
SMOOTHING_WIDTH = 2
"""The F-score of a cost is averaged over this many candidates on either side: one text should not decide."""

MIN_GROUPS = 2
"""Minimum number of groups of completely annotated documents (usually one each) to learn a cost from."""

MAX_STEPS = 40
"""Maximum number of training steps in each fold; more change the marginals little."""
MAX_SIZE_RATIO = 4
"""A corpus of more than this many times the sampled documents stays compiled in the meantime: compiling it
again, and sending it to the workers, takes long, and the memory of the folds is small in comparison.
"""


class LearntCost(Struct, frozen=True, forbid_unknown_fields=True):
    """A learnt cost, and the number of texts it was learnt from."""

    cost: Annotated[float, Meta(gt=0, lt=1)]
    documents: Amount  # number of held-out documents


@dataclass(frozen=True)
class Evidence:
    """Probable spans of held-out documents, and the number of annotated spans."""

    spans: Segments  # of D documents
    probability: NDArray[np.float64]  # [n]
    right: NDArray[np.bool_]  # [n] annotated?
    lengths: NDArray[np.int64]  # [D] tokens
    annotated: int  # number of annotated spans

    def f_score(self, cost: float, beta: float) -> float:
        """Return F_β, from 0 to 1, of the spans that `ExpectedF` chooses at this cost; 1 if nothing is
        annotated and nothing found.
        """
        chosen = best_subset(self.spans, self.probability - cost)
        weight = beta * beta
        both = weight * self.annotated + len(chosen)
        return (1 + weight) * int(self.right[chosen].sum()) / both if both else 1.0


def learn_cost(learner: Learner, decoder: ExpectedF, name: str) -> LearntCost | None:
    """Learn the cost by cross-fitting on a bounded part of the corpus.

    learner (Learner): has its corpus; not changed.
    name (str): name of the component, for the log.
    RETURNS (Optional[LearntCost]): None if there are too few completely annotated documents.
    """
    sides = held_out_sides(learner.corpus, HELD_OUT_TO_LEARN, MIN_GROUPS)
    if not sides:
        why = f"since fewer than {MIN_GROUPS} texts (or groups) are annotated completely"
        logger.info("%s: cost = %g, by default, %s", name, DEFAULT_COST, why)
        return None
    evidence = _joined(
        [_evidence(model, decoder, held_out) for model, held_out in held_out_models(learner, sides)]
    )
    documents = len(evidence.lengths)
    cost = best_cost(evidence, decoder.beta)
    logger.info(
        "%s: cost = %g, learnt from %d texts that the model had not seen; F there: %.2f (at %g: %.2f)",
        name,
        cost,
        documents,
        100 * evidence.f_score(cost, decoder.beta),
        DEFAULT_COST,
        100 * evidence.f_score(DEFAULT_COST, decoder.beta),
    )
    return LearntCost(cost, documents)


def best_cost(evidence: Evidence, beta: float) -> float:
    """Return the mean of two costs: the candidate with the highest smoothed F-score (the middle one of
    several), and the one that would be optimal if the model's probabilities were right.
    """
    scores = np.array([evidence.f_score(cost, beta) for cost in COSTS.tolist()])
    padded = np.pad(scores, SMOOTHING_WIDTH, mode="edge")
    smoothed = np.convolve(padded, np.ones(2 * SMOOTHING_WIDTH + 1), mode="valid")
    best = np.flatnonzero(smoothed >= smoothed.max() - 1e-12)
    middle = best[len(best) // 2]
    return round(float(COSTS[middle] + scores[middle] / (1 + beta * beta)) / 2, 2)


def held_out_models(
    learner: Learner, sides: Sequence[Sides]
) -> Iterator[tuple[Learner, list[Document]]]:
    """Yield a model for each fold of the corpus, with the documents that it has not seen. Models by which
    settings were chosen are reused, and the others start near them.
    """
    reusable: list[Trained] = [fold for fold in learner.folds if fold.trainer == learner.trainer]
    if sides and not reusable and len(learner.corpus) <= MAX_SIZE_RATIO * sum(map(len, sides[0])):
        learner.release()
    for learnt, held_out in sides:
        matching = (f.model for f in reusable if f.learnt == learnt and f.held_out == held_out)
        yield next(matching, None) or _trained(learner, learnt, reusable), held_out


def _trained(learner: Learner, learnt: Sequence[Document], near: Sequence[Trained]) -> Learner:
    """Train a model on some documents only, starting near others."""
    model = learner.seeing(learnt)
    begin_near(model, near)
    model.set_trainer(model.trainer.quick() or model.trainer)
    train(model, MAX_STEPS)
    return model


def _evidence(model: Learner, decoder: ExpectedF, documents: Sequence[Document]) -> Evidence:
    """Collect the probable spans of documents that a model has not seen."""
    scheme, parts = model.scheme, []
    for batch, tokens in model.corpus.batches(documents):
        inputs = model.potentials(tokens), model.automaton, scheme
        candidates = decoder.candidates(*inputs, float(COSTS[0]))
        annotated = [set(model.as_modelled(document.annotation).spans) for document in batch]
        named = scheme.named(candidates.spans)
        right = [span in gold for gold, spans in zip(annotated, named) for span in spans]
        parts.append(
            Evidence(
                candidates.spans,
                candidates.scores,
                np.array(right, dtype=bool),
                np.array([len(document) for document in batch], dtype=np.int64),
                sum(map(len, annotated)),
            )
        )
    return _joined(parts)


def _joined(parts: Sequence[Evidence]) -> Evidence:
    """Concatenate the evidence of all folds."""
    return Evidence(
        joined_segments([part.spans for part in parts]),
        np.concatenate([part.probability for part in parts]),
        np.concatenate([part.right for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        sum(part.annotated for part in parts),
    )
