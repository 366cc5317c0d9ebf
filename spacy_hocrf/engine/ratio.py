"""Expected share of tokens with a label: a constraint on unknown text, if only spans are annotated.

If the only annotation of texts is where some spans are, the likelihood is highest if everything is a
span. To prevent that, the number of tokens that the model expects in spans, T(w), among N tokens is tied to
an expected share rho:

    penalty(w) = lambda N (rho - T(w) / N)²

(Effland and Collins, TACL 2021, use the absolute value beyond a margin. A square is smooth; and the
likelihood always draws T(w) to the upper end of a margin.) Its gradient requires the covariance of
the number of tokens in spans with the count of each feature. Let log Z(w, e) be that of scores which are
larger by e at each token of a label that counts; then, up to O(e²),

    T(w) = [Σ log Z(w, e) - Σ log Z(w, -e)] / 2e,    ∂T/∂w = [E(counts; w, e) - E(counts; w, -e)] / 2e

where the latter is the exact gradient of the former, so that an optimiser finds no inconsistency.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.data_set import Compiled, Layout, Shard
from spacy_hocrf.engine.forward_backward import Buffers, expectations
from spacy_hocrf.engine.reduction import ShardSum
from spacy_hocrf.types import Vector

__all__ = ["TILT", "Ratio", "RatioPenalty", "expected_tokens"]

TILT = 1e-4
"""The e above: its square is negligible beside T(w), and so is the rounding error of log Z divided by e."""


@dataclass(frozen=True)
class Ratio:
    """A share of the tokens that is expected to have a label.

    labels (bool [Y]): the engine labels that count.
    share (float): rho. weight (float): lambda, in nats per token.
    """

    labels: NDArray[np.bool_]
    share: float
    weight: float

    def penalty(self, expected: float, tokens: int) -> tuple[float, float]:
        """Return value in nats, and slope in the expected number of tokens, given N > 0 tokens."""
        beyond = expected / tokens - self.share
        return self.weight * tokens * beyond * beyond, 2 * self.weight * beyond


class RatioPenalty:
    """The penalty of one share, over texts with incomplete annotation.

    shards (Sequence[Shard]): these texts. tokens (int): N, copies included.
    layout (Layout): how the shards arrange weights. automaton (Automaton): states and arcs of all shards.
    threads (int): at least 1.
    """

    def __init__(
        self,
        ratio: Ratio,
        shards: Sequence[Shard],
        tokens: int,
        layout: Layout,
        automaton: Automaton,
        threads: int,
    ) -> None:
        self._ratio, self._tokens = ratio, tokens
        loss = partial(expected_tokens, ratio.labels)
        self._sum = ShardSum(shards, loss, layout, automaton, threads)

    def add_into(self, gradient: Vector, weights: Vector) -> float:
        """Add the gradient at these weights, both float64 [F]. RETURNS (float): value in nats."""
        slopes = np.zeros(len(gradient))
        expected = self._sum.add_into(slopes, weights)
        value, slope = self._ratio.penalty(expected, self._tokens)
        gradient += slope * slopes
        return value

    def release(self) -> None:
        """Free memory that the next evaluation allocates again."""
        self._sum.release()


def expected_tokens(
    labels: NDArray[np.bool_],
    shard: Compiled,
    placed: Any,
    automaton: Automaton,
    buffers: Buffers,
    counts: Any,
) -> float:
    """Return the expected number of tokens of a shard with some labels, annotation aside; add its gradient.

    labels (bool [Y]): the labels that count.
    """
    potentials = shard.potentials(placed, buffers)
    token, tilt = potentials.token, TILT * labels
    log_z: list[Vector] = []
    for sign in (1.0, -1.0):
        tilted = replace(potentials, token=token + sign * tilt)
        expected = expectations(tilted, automaton, buffers=buffers)
        shard.add_counts_into(expected, sign * shard.copies / (2 * TILT), counts)
        log_z.append(expected.log_partition)
    return shard.copies * float((log_z[0] - log_z[1]).sum()) / (2 * TILT)
