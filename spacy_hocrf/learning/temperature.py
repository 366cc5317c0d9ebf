"""Temperature scaling: how much more, or less, confident a model should be.

With all scores multiplied by s = 1 / T, the loss on annotated held-out texts,

    loss(s) = log Z(s) - log Z(s, annotation),    d loss / d s = Σ φ · (E[count] - E[count | annotation]),

is minimal where the probabilities are right on average (Platt scaling with one parameter, as Guo et al., ICML
2017, §4.2, here for a structured model). The scores are linear in the features' weights, so s is multiplied
into these. Prices of rules and joint weights are not in this loss, and stay as they are. (On references with
learnt prices, this lowered the loss under the rules by 0.3 to 1.8 nats a text; dividing the prices, too, made
a difference of -0.03 to 0.11.)
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

MAX_LOG_SCALE = 20.0
"""Largest absolute logarithm of a scale that is tried: beyond it, scores or their products overflow."""

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
"""Names of the scores in `Potentials`, and of their counts in `Expectations`."""


@dataclass(frozen=True)
class HeldOut:
    """D annotated texts that a model has not seen.

    potentials (Potentials): log potentials of the texts.
    observed (uint8 [N, Y]): bits that agree with the annotation.
    """

    potentials: Potentials
    observed: NDArray[np.uint8]
    automaton: Automaton

    def __len__(self) -> int:
        """Number of texts D."""
        return len(self.potentials.offsets) - 1

    @classmethod
    def of(cls, learner: Learner, examples: Sequence[Example]) -> "HeldOut":
        """Select the examples whose annotation the model can represent; others tell nothing about the
        temperature.

        RAISES (ValueError): H220 if there are none.
        """
        annotated = [
            (example.predicted, learner.as_modelled(learner.gold.target.annotation(example)))
            for example in examples
        ]
        labels = {*learner.scheme.labels}
        annotated = [pair for pair in annotated if labels.issuperset(pair[1].labels)]
        if not annotated:
            raise ValueError(TemperatureErrors.H220.format(found=len(examples)))
        docs, annotations = zip(*annotated)
        batch = TokenBatch(docs)
        potentials = learner.potentials(batch)
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
        """Return the loss in nats per token, and its derivative.

        scale (float): factor of all scores.
        """
        potentials = self.potentials
        scores = {name: getattr(potentials, name) for name in SCORES}
        scores = {name: score for name, score in scores.items() if score is not None}
        losses, counts = negative_log_likelihood(
            potentials.scaled(scale), Observed(self.observed), self.automaton
        )
        slope = sum((score * getattr(counts, SCORES[name])).sum() for name, score in scores.items())
        tokens = max(1, int(potentials.offsets[-1]))
        return float(losses.sum()) / tokens, float(slope) / tokens

    def temperature(self) -> float:
        """Return the most probable temperature. Its logarithm has a standard normal prior: on texts that are
        read without an error, the likelihood alone would make the model infinitely confident.
        """
        tokens = max(1, int(self.potentials.offsets[-1]))
        optimiser = LBFGS(np.zeros(1))
        while optimiser.status == "running":
            (x,) = optimiser.x.tolist()
            if abs(x) > MAX_LOG_SCALE:
                optimiser.tell(np.inf, optimiser.x)  # the line search turns back
                continue
            loss, slope = self.loss(exp(x))
            optimiser.tell(loss + x**2 / (2 * tokens), np.array([slope * exp(x) + x / tokens]))
        return float(np.exp(-optimiser.best_x[0]))
