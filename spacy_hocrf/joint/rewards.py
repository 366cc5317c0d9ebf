"""Log potentials with rewards for the states of vertices. The rewards become scores that the potentials of a
semi-CRF have anyway: r[y] - r[Y] of a whole segment, r[y] of a token, and r[0] - r[1] of a token with one
label. So every exact algorithm for the semi-CRF remains exact (Nguyen et al., JMLR 15 (2014) §2.4).

Extents: N tokens, Y labels; V vertices, V_s of segments, V_t of tokens and V_l of labels in this order;
E cells.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.joint.vertices import Vertices
from spacy_hocrf.types import Potentials

__all__ = ["RewardedPotentials"]


class RewardedPotentials:
    """The log potentials of some sequences, prepared for rewards.

    potentials (Potentials): potentials without rewards; they are not changed.
    limits (int32 [Y]): longest segment of each label, 0 for any length.
    vertices (Vertices): vertices on the same sequences, to whose states rewards refer.
    RAISES (ValueError): H092 for a segment vertex that is longer than every limit.
    """

    def __init__(
        self, potentials: Potentials, limits: NDArray[np.int32], vertices: Vertices
    ) -> None:
        assert np.array_equal(vertices.tokens_of, potentials.offsets)
        lengths = vertices.end_token - vertices.first_token
        reachable = (limits == 0) | (lengths[:, None] <= limits)  # [V_s, Y]
        for v in np.flatnonzero(~reachable.any(axis=1))[:1].tolist():
            _, start, end = vertices.segments[v].tolist()
            raise ValueError(
                Errors.H092.format(vertex=v, start=start, end=end, limit=int(limits.max()))
            )
        self._n_labels, self._labels = vertices.n_labels, vertices.labels[:, 2]
        # [n] in [V_s, Y]; a label whose limit forbids the length gets no span
        self._rewarded = np.flatnonzero(reachable)
        ends, n_segments = vertices.offsets[1:], len(vertices.segments)
        self._n_tokens = len(vertices.tokens)
        self.absent = ends[:n_segments] - 1  # int64 [V_s] cells of "this segment is not there"
        # int64 [V_l] cells of "the token has another label"
        self.without = ends[n_segments + self._n_tokens :] - 1
        tokens = np.concatenate([vertices.token, vertices.labelled_token])
        self._token, place = np.unique(tokens, return_inverse=True)  # [n] tokens without duplicates
        self._token_place = place.ravel()[: self._n_tokens]  # [V_t]
        self._label_place = place.ravel()[self._n_tokens :]  # [V_l]
        self._token_score = potentials.token[self._token]
        self.potentials = self._with_spans(potentials, vertices)  # include the latest rewards

    def put(self, rewards: NDArray[np.float64]) -> float:
        """Add rewards to the potentials, replacing earlier rewards.

        rewards (float64 [E]): rewards of the cells; finite.
        RETURNS (float): constant that all segmentations have in common and the potentials omit, nats.
        """
        return self._reward_segments(rewards) + self._reward_tokens(rewards)

    def _with_spans(self, potentials: Potentials, vertices: Vertices) -> Potentials:
        """Insert a span for each label of each segment vertex into the potentials, keeping their order."""
        vertex, label = np.divmod(self._rewarded, self._n_labels)
        start = np.concatenate([potentials.span_start, vertices.first_token[vertex]])
        end = np.concatenate([potentials.span_end, vertices.end_token[vertex]])
        order = np.lexsort((end, start))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        self._span_place = place[len(potentials.span_score) :]
        return replace(
            potentials,
            token=potentials.token.copy(),
            span_start=start[order],
            span_end=end[order],
            span_pattern=np.concatenate([potentials.span_pattern, label.astype(np.int32)])[order],
            span_score=np.concatenate([potentials.span_score, np.zeros(len(vertex))])[order],
        )

    def _reward_segments(self, rewards: NDArray[np.float64]) -> float:
        """Put rewards on spans. RETURNS (float): the part common to all segmentations."""
        n_segments, n_labels = len(self.absent), self._n_labels
        if not n_segments:
            return 0.0
        rows = rewards[: n_segments * (n_labels + 1)].reshape(n_segments, n_labels + 1)
        absent = rows[:, n_labels:]
        more = (rows[:, :n_labels] - absent).ravel()
        self.potentials.span_score[self._span_place] = more[self._rewarded]
        return float(absent.sum())

    def _reward_tokens(self, rewards: NDArray[np.float64]) -> float:
        """Put rewards on tokens. RETURNS (float): the part common to all segmentations."""
        if not len(self._token):
            return 0.0
        first = len(self.absent) * (self._n_labels + 1)
        end = first + self._n_tokens * self._n_labels
        score = self._token_score.copy()
        score[self._token_place] += rewards[first:end].reshape(-1, self._n_labels)
        without = rewards[self.without]
        score[self._label_place, self._labels] += rewards[self.without - 1] - without
        self.potentials.token[self._token] = score
        return float(without.sum())
