"""The second stage of training over an encoder, and what it may know of the texts.

An encoder soon knows its training texts by heart, and what it says of them then is no measure of what
it will say of others. So copies of the model learn beside it, each without a part of the texts, and
the second stage goes by what a copy says of the texts of its part:

    rows [T, K] = rows of the copy · H' · H⁺,    so that    rows · H = rows of the copy · H'

H [K, ·] are the weights of all heads, H' those of the copy, H⁺ is the pseudoinverse. The heads keep
the weights trust · H, and everything else is fitted beside them. Trust and sigma are those with the
lowest loss of texts that are held back from that, too; a trust of 0 is the model without its encoder,
which is asked no more.
This is stacked generalisation (Wolpert, Neural Networks 5, 1992) with one weight for the encoder.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from spacy.training import Example
from spacy.util import logger
from thinc.api import Optimizer

from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.arrays import stretches
from spacy_hocrf.learning.choice import Choice
from spacy_hocrf.learning.heldout import HELD_BACK, Fold, held_back
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.learning.likelihood import add_gradient_into
from spacy_hocrf.model.architectures import set_weights
from spacy_hocrf.model.heads import Head, listens
from spacy_hocrf.model.neural import silence
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.training.stages import RefitTrainer, StagesTrainer

__all__ = ["Copies", "begin_refit", "copies_of"]

TRUSTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
"""What the weights of the heads are multiplied by: candidates, ascending. Above 1 if the first stage was
too short.
"""

Matrix = NDArray[np.float64]
Candidate = TypeVar("Candidate", float, float | None)


class Copies:
    """Copies of a model over an encoder that learn along, each without a part of the texts.

    learner (Learner): of the model, untrained.
    number (int): of parts.
    """

    def __init__(self, learner: Learner, number: int) -> None:
        self._corpus = learner.corpus
        self._number = number
        settings = learner.structure.settings
        assert settings.encoder is not None
        self._copies = {
            part: (
                learner.without(documents, replace(settings, encoder=settings.encoder.copy())),
                documents,
            )
            for part, documents in enumerate(learner.corpus.parts(number))
            if 0 < len(documents) < len(learner.corpus.documents)
        }

    def learn(self, examples: Sequence[Example], drop: float) -> None:
        """Add the gradient of a batch to those of the copies that may see it."""
        parts = [self._corpus.part(example, self._number) for example in examples]
        for part, (copy, _) in self._copies.items():
            seen = [example for example, own in zip(examples, parts) if own != part]
            if seen:
                add_gradient_into(copy.model, copy, seen, drop)

    def finish_update(self, sgd: Optimizer) -> None:
        """Let all copies take their step."""
        for copy, _ in self._copies.values():
            copy.model.finish_update(sgd)

    def hand_over(self, learner: Learner) -> None:
        """Give every document the rows of the copy that has not seen it."""
        inverse = np.linalg.pinv(_heads(learner))
        for copy, documents in self._copies.values():
            align = _heads(copy) @ inverse  # [K, K]
            for document, rows in zip(documents, _rows(copy, documents)):
                document.rows = rows @ align


def copies_of(learner: Learner) -> Copies | None:
    """The copies that a trainer asks for, of a model with an encoder of its own; None for none.

    learner (Learner): untrained.
    """
    trainer, encoder = learner.trainer, learner.structure.settings.encoder
    if not isinstance(trainer, StagesTrainer) or encoder is None or listens(encoder):
        return None
    return Copies(learner, trainer.folds) if trainer.epochs and trainer.folds > 1 else None


def begin_refit(learner: Learner, copies: Copies | None, name: str) -> None:
    """Decide how far the encoder is trusted, and sigma if it is "auto", as the second stage begins.

    copies (Optional[Copies]): with None, heads that stay as they are keep their weights.
    name (str): of the component, for the log.
    """
    trainer = learner.trainer
    if not isinstance(trainer, RefitTrainer) or (copies is None and trainer.keeps_heads):
        return
    if copies is not None:
        copies.hand_over(learner)
    parts = held_back(learner.corpus, HELD_BACK)
    if not parts:
        return
    folds = [Fold(learner, learnt, held) for learnt, held in parts]
    heads = learner.weights[learner.heads]
    trust, sigma = _chosen(folds, heads, trainer, (1.0,) if copies is None else TRUSTS)
    weights = learner.weights
    weights[learner.heads] = trust * heads
    with learner.lock:
        set_weights(learner.model, weights)
        if not trust and learner.structure.settings.encoder is not None:
            silence(learner.structure.settings.encoder, len(_heads(learner)))
    learner.trainer = trainer.with_sigma(sigma)
    order = learner.choice.order if learner.choice is not None else None
    if sigma is not None or order is not None:
        learner.choice = Choice(sigma, order, sum(map(len, parts[0])))
    logger.info("%s: the encoder counts %g times, sigma = %s", name, trust, learner.trainer.sigma)


def _chosen(
    folds: Sequence[Fold],
    heads: NDArray[np.float64],
    trainer: RefitTrainer,
    trusts: Sequence[float],
) -> tuple[float, float | None]:
    """Trust and sigma, None if it is set, with the lowest loss of what the folds hold back: the one,
    then the other, then the first again.

    heads (float64): weights of the heads.
    trusts (Sequence[float]): candidates, ascending, as are those of the trainer.
    """
    known: dict[tuple[float, float | None], float] = {}

    def loss(trust: float, sigma: float | None) -> float:
        if (trust, sigma) not in known:
            for fold in folds:
                fold.weights[fold.heads] = trust * heads
            quick = trainer.with_sigma(sigma).quick()
            known[trust, sigma] = sum(fold.loss(quick) for fold in folds)
        return known[trust, sigma]

    sigmas: Sequence[float | None] = trainer.choices or [None]
    sigma = sigmas[len(sigmas) // 2]
    trust = _lowest(trusts, lambda trust: loss(trust, sigma))
    sigma = _lowest(sigmas, lambda sigma: loss(trust, sigma))
    return _lowest(trusts, lambda trust: loss(trust, sigma)), sigma


def _lowest(candidates: Sequence[Candidate], loss: Callable[[Candidate], float]) -> Candidate:
    """The candidate before the first one whose loss is higher."""
    best = candidates[0]
    for candidate in candidates[1:]:
        if loss(candidate) > loss(best):
            break
        best = candidate
    return best


def _heads(learner: Learner) -> Matrix:
    """The weights of all heads side by side, float64 [K, ·]."""
    scores, n_labels = learner.structure.settings.dense, learner.scheme.n_labels
    width = next(score.width for _, score in scores if isinstance(score, Head))
    return np.hstack([*learner.weights[learner.heads].reshape(-1, width, n_labels)])


def _rows(copy: Learner, documents: Sequence[Document]) -> Iterator[Matrix]:
    """What the encoder of a copy says of each document, float64 [T, K]."""
    encoder = copy.structure.settings.encoder
    assert encoder is not None
    for first, last in stretches(map(len, documents), BATCH_TOKENS):
        batch = copy.corpus.batch(documents[first:last])
        yield from np.split(encoder.predict(list(batch.docs)), batch.offsets[1:-1])
