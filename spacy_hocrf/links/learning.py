"""Learning of links: L-BFGS on the exact likelihood of the links in all texts seen.

With q the annotated probabilities of pairs, 1 for a link or 1/n for each of n links of one choice, the
negative log-likelihood and its derivative are

    f(w) = Σ over choices of log(1 + Σ exp s) - Σ over pairs of q s + w · w / (2 sigma²)
    df/dw = Σ over pairs of (P - q) f(i, j) + w / sigma²

which is convex. The sum is over all texts, so that batches do not change the result. A text is recognised
by its contents and by its features, which are computed each time, since comparing Docs as bytes takes longer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.lbfgs import LBFGS
from spacy_hocrf.links.model import Choices, LinkModel, normalized
from spacy_hocrf.types import Vector

__all__ = ["LinkLearner", "LinkObjective", "Text"]

MEMORY, TOLERANCE = 30, 1e-6
"""Pairs that L-BFGS keeps; it has converged when the objective decreases by less than this fraction of
itself in ten iterations.
"""


class Text(NamedTuple):
    """The P pairs of a thread, in the form that the model learns from."""

    rows: NDArray[np.int32]  # [P, K] feature of each template, F for an unknown one
    choices: Choices  # [C + 1]
    shares: Vector  # [P] annotated probabilities


class LinkObjective:
    """The penalised negative log-likelihood of texts, in nats.

    texts (Sequence[Text]): at least one text.
    sigma (float): standard deviation of the weights' Gaussian prior.
    """

    def __init__(self, texts: Sequence[Text], sigma: float) -> None:
        self._rows = np.concatenate([text.rows for text in texts])
        self._shares = np.concatenate([text.shares for text in texts])
        self._choices = offsets_of(np.concatenate([np.diff(text.choices) for text in texts]))
        self._precision = sigma**-2.0

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Return value and gradient at these weights, float64 [F]."""
        scores = np.append(weights, 0.0)[self._rows].sum(axis=1)
        total, probabilities = normalized(scores, self._choices)
        value = total.sum() - scores @ self._shares + self._precision / 2 * (weights @ weights)
        away = np.repeat(probabilities - self._shares, self._rows.shape[1])
        counts = np.bincount(self._rows.ravel(), away, minlength=len(weights) + 1)
        return float(value), counts[:-1] + self._precision * weights


class LinkLearner:
    """The texts that a component learns from, each as its features, and the state of the optimisation.

    model (LinkModel): the initial model.
    sigma (float): standard deviation of the weights' Gaussian prior.
    """

    def __init__(self, model: LinkModel, sigma: float) -> None:
        self.model = model
        self._sigma = sigma
        # by the contents of their Docs: different texts with these contents, and the number of copies of each
        self._texts: dict[tuple[bytes, ...], list[tuple[Text, int]]] = {}
        self._docs: set[bytes] = set()
        self._begun: tuple[LinkObjective, LBFGS] | None = None

    def is_part(self, contents: tuple[bytes, ...]) -> bool:
        """Are these Docs part of a known group that a batch has cut?"""
        return contents not in self._texts and self._docs.issuperset(contents)

    def add(self, contents: tuple[bytes, ...], text: Text, *, initial: bool = False) -> None:
        """Add a text, unless it is known.

        contents (tuple[bytes, ...]): as from `annotation.contents`.
        initial (bool): is this part of the initial corpus, in which equal texts are copies? Later on, an
            equal text is the same one; and one with the same contents but new features, as other components
            have changed its Docs, replaces the oldest text with these contents.
        """
        texts = self._texts.setdefault(contents, [])
        place = next((k for k, (earlier, _) in enumerate(texts) if _equal(earlier, text)), None)
        copies = 1
        if initial and place is not None:
            copies += texts.pop(place)[1]
        elif place is not None:
            return
        elif not initial and texts:
            copies = texts.pop(0)[1]
        texts.append((text, copies))
        self._docs.update(contents)
        self._begun = None

    @property
    def loss(self) -> float:
        """The objective at the current weights; 0 without a text."""
        begun = self._run()
        return 0.0 if begun is None else begun[1].best_f

    def step(self) -> None:
        """Take one iteration on all texts; do nothing without texts, or at the optimum."""
        begun = self._run()
        if begun is None:
            return
        objective, optimiser = begun
        accepted = False
        while optimiser.status == "running" and not accepted:
            accepted = optimiser.tell(*objective(optimiser.x))
        self.model = self.model._replace(weights=optimiser.best_x.copy())

    def _run(self) -> tuple[LinkObjective, LBFGS] | None:
        """The objective of the current texts, and an L-BFGS run from the current weights."""
        if self._begun is None and self._texts:
            texts = [pair for several in self._texts.values() for pair in several]
            every = [text for text, copies in texts for _ in range(copies)]
            objective = LinkObjective(every, self._sigma)
            weights = self.model.weights
            optimiser = LBFGS(weights, memory=MEMORY, improvement_tolerance=TOLERANCE)
            optimiser.tell(*objective(optimiser.x))
            self._begun = objective, optimiser
        return self._begun


def _equal(one: Text, other: Text) -> bool:
    return all(np.array_equal(one[k], other[k]) for k in range(len(one)))
