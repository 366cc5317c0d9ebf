"""The exact high-order semi-CRF as first subproblem: best segmentations of some sequences, with
rewards for the states of vertices on them.

Rewards are potentials of the semi-CRF (`joint.rewards`), so Viterbi remains exact. In Qian and Liu, TACL 2
(2014) §3.3 this part is a chain.

Extents: D sequences, Y labels; V vertices, namely V_s of segments, V_t of tokens and V_l of labels in this
order; E cells.
"""

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.viterbi import Best, viterbi
from spacy_hocrf.errors import Errors
from spacy_hocrf.joint.rewards import RewardedPotentials
from spacy_hocrf.joint.vertices import Vertices
from spacy_hocrf.rules.search import BoundedBest, RuledSearch
from spacy_hocrf.types import Potentials

__all__ = ["SegmentationSubproblem"]


class SegmentationSubproblem:
    """The best segmentations of D sequences, as a `FirstSubproblem` that scores them by the
    potentials.

    potentials (Potentials): log potentials of the D sequences.
    automaton (Automaton): the arcs of the same patterns.
    vertices (Vertices): vertices to whose states rewards refer.
    buffers (Optional[Buffers]): buffers of this thread and automaton, for reuse.
    search (Optional[RuledSearch]): search for D sequences under rules whose violation has a price.
    RAISES (ValueError): H092 for a segment vertex that is longer than every limit, H093 for a
        sequence without an allowed segmentation, or as `viterbi` for potentials that do not fit.
    """

    def __init__(
        self,
        potentials: Potentials,
        automaton: Automaton,
        vertices: Vertices,
        buffers: Buffers | None = None,
        search: RuledSearch | None = None,
    ) -> None:
        self._vertices = vertices
        self._rewarded = RewardedPotentials(potentials, automaton.limits, vertices)
        self.potentials = potentials
        self.automaton = automaton
        self._buffers = buffers or Buffers(automaton)
        self._search = search
        self._last: Best | BoundedBest = self._decode()
        self._best = self._last
        for i in np.flatnonzero(np.isneginf(self._last.scores))[:1].tolist():
            tokens = int(potentials.offsets[i + 1] - potentials.offsets[i])
            raise ValueError(Errors.H093.format(sequence=i, tokens=tokens))

    @property
    def offsets(self) -> NDArray[np.int64]:
        """First cell of each vertex, int64 [V + 1]."""
        return self._vertices.offsets

    @property
    def slack(self) -> float:
        """How far the last bound lies above the score of its segmentation, see
        `FirstSubproblem.slack`; above 0 if there are too many rules to find the best segmentations exactly.
        """
        last = self._last
        return float((last.bounds - last.scores).sum()) if isinstance(last, BoundedBest) else 0.0

    @property
    def best(self) -> Best | BoundedBest:
        """The segmentations that were kept, with their scores under the rewards at that time; before that,
        the best without rewards.
        """
        return self._best

    def maximise(self, rewards: NDArray[np.float64]) -> tuple[float, NDArray[np.int32]]:
        """Find the highest score of segmentations of all sequences, rewards included, and the states of the
        vertices in them.

        rewards (float64 [E]): added to the score for every cell that is chosen; finite.
        RETURNS (tuple[float, int32 [V]]): the score in nats, or an upper bound of it, see `slack`; and the
            state of each vertex. Ties are always broken in the same way.
        RAISES (ValueError): H006 for rewards that are not finite.
        """
        constant = self._rewarded.put(rewards)
        self._last = self._decode()
        states = self._vertices.states_in(self._last.segments)
        return float(self._last.scores.sum()) + self.slack + constant, states

    def spread(self) -> float:
        """Return the largest difference between the scores of two segmentations of all sequences, in nats."""
        high, low = (
            viterbi(potentials, self.automaton, buffers=self._buffers).scores.sum()
            for potentials in (self.potentials, self.potentials.scaled(-1.0))
        )
        return float(high + low)

    def keep(self) -> None:
        """Keep the last segmentations as the best so far."""
        self._best = self._last

    def _decode(self) -> Best | BoundedBest:
        if self._search is not None:
            return self._search.best(self._rewarded.potentials, self.automaton, self._buffers)
        return viterbi(self._rewarded.potentials, self.automaton, buffers=self._buffers)
