"""Temperature: how much surer, or less sure, a model should be.

With all scores multiplied by s = 1 / T the loss of annotated texts that the model has not seen,

    loss(s) = log Z(s) - log Z(s, annotation),    d loss / d s = Σ φ · (E[count] - E[count | annotation]),

has its minimum where the probabilities are right on average (Platt scaling with one parameter, as Guo et
al., ICML 2017, §4.2, of a structured model). The scores are linear in the weights, so that s is taken into
these, and nothing else of the model changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np
from numpy.typing import NDArray
from spacy.training import Example

from spacy_hocrf.annotation.annotation import constrain_batch
from spacy_hocrf.annotation.errors import TemperatureErrors
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forbidden import Observed
from spacy_hocrf.engine.lbfgs import LBFGS
from spacy_hocrf.engine.selection import select_sequences
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.learning.likelihood import negative_log_likelihood
from spacy_hocrf.types import Potentials

__all__ = ["HeldOut"]

FARTHEST = 20.0
"""Logarithm of a scale beyond which nobody looks: scores that large are not finite, or their products."""

SCORES = {
    "const": "const",
    "token": "token",
    "row_score": "row",
    "length_score": "length",
    "span_score": "span",
    "start": "start",
    "end": "end",
    "inner": "inner",
}
"""The scores in `Potentials`, and their counts in `Expectations`."""


@dataclass(frozen=True)
class HeldOut:
    """Annotated texts that a model has not seen, D of them.

    potentials (Potentials): of the texts.
    observed (uint8 [N, Y]): bits of what agrees with the annotation.
    """

    potentials: Potentials
    observed: NDArray[np.uint8]
    automaton: Automaton

    def __len__(self) -> int:
        """Number of texts D."""
        return len(self.potentials.offsets) - 1

    @classmethod
    def of(cls, learner: Learner, examples: Sequence[Example]) -> "HeldOut":
        """Examples that some reading of the model agrees with; others say nothing of temperatures.

        RAISES (ValueError): H220 if there is none.
        """
        read = [
            (example.predicted, learner.as_modelled(learner.gold.target.annotation(example)))
            for example in examples
        ]
        known = {*learner.scheme.labels}
        read = [(doc, found) for doc, found in read if known.issuperset(found.labels)]
        if not read:
            raise ValueError(TemperatureErrors.H220.format(found=len(examples)))
        docs, annotations = zip(*read)
        batch = TokenBatch(docs)
        structure = learner.structure
        compiled = structure.compile(structure.observe(batch), learner.allowed(batch))
        potentials = compiled.potentials(learner.snapshot().placed)
        observed = constrain_batch(
            learner.scheme, potentials.allowed, potentials.offsets, annotations
        )
        losses, _ = negative_log_likelihood(potentials, Observed(observed), learner.automaton)
        readable = np.flatnonzero(np.isfinite(losses) & (np.diff(potentials.offsets) > 0))
        if not len(readable):
            raise ValueError(TemperatureErrors.H220.format(found=len(examples)))
        bits = select_sequences(replace(potentials, allowed=observed), readable)
        return cls(select_sequences(potentials, readable), bits.allowed, learner.automaton)

    def loss(self, scale: float) -> tuple[float, float]:
        """Nats a token, and the derivative.

        scale (float): what all scores are multiplied by.
        """
        potentials = self.potentials
        scores = {name: getattr(potentials, name) for name in SCORES}
        scores = {name: score for name, score in scores.items() if score is not None}
        losses, counts = negative_log_likelihood(
            replace(potentials, **{name: score * scale for name, score in scores.items()}),
            Observed(self.observed),
            self.automaton,
        )
        slope = sum((score * getattr(counts, SCORES[name])).sum() for name, score in scores.items())
        tokens = max(1, int(potentials.offsets[-1]))
        return float(losses.sum()) / tokens, float(slope) / tokens

    def temperature(self) -> float:
        """The most probable temperature. Its logarithm has a standard normal prior: of texts that are read
        without an error, the likelihood alone would make the model infinitely sure.
        """
        tokens = max(1, int(self.potentials.offsets[-1]))
        optimiser = LBFGS(np.zeros(1))
        while optimiser.status == "running":
            (x,) = optimiser.x.tolist()
            if abs(x) > FARTHEST:
                optimiser.tell(np.inf, optimiser.x)  # the line search turns back
                continue
            loss, slope = self.loss(exp(x))
            optimiser.tell(loss + x**2 / (2 * tokens), np.array([slope * exp(x) + x / tokens]))
        return float(np.exp(-optimiser.best_x[0]))
