"""Tasks for learners that are small enough to enumerate: graphs whose cells and patterns have
shared weights.
"""

from itertools import product

import numpy as np


class GraphTask:
    """N vertices with S states: a weight for each observation and state, one for equal and one for
    ascending states of each pair.

    observations (list[int]): of each vertex, 0..O-1.
    gold (tuple[int]): the right states.
    pairs (list[tuple[int, int]]): vertices that have the two patterns.
    base (array [N, S]): what is not to be learnt, the count of the last feature; None for none.
    only_patterns (bool): the observations have no features.
    slack (float): the bound is too high by this.
    blind (Callable): outputs that decoding cannot find.
    """

    def __init__(
        self,
        observations,
        gold,
        pairs,
        n_observations,
        n_states,
        base=None,
        slack=0.0,
        blind=None,
        only_patterns=False,
    ):
        self.observations, self.gold, self.pairs = observations, tuple(gold), pairs
        self.n_observations, self.n_states = n_observations, n_states
        self.base = np.zeros((len(gold), n_states)) if base is None else base
        self.slack, self.blind, self.only_patterns = slack, blind, only_patterns
        self.outputs = list(product(range(n_states), repeat=len(gold)))
        self.decoded = 0

    @property
    def n_features(self):
        return 3 if self.only_patterns else self.n_observations * self.n_states + 3

    def dense(self, output):
        counts = np.zeros(self.n_observations * self.n_states + 3)
        for observation, state in zip(self.observations, output):
            counts[observation * self.n_states + state] += 1
        for i, j in self.pairs:
            counts[-3] += output[i] == output[j]
            counts[-2] += output[i] < output[j]
        counts[-1] = sum(self.base[v, state] for v, state in enumerate(output))
        return counts[-self.n_features :]

    def counts(self, output):
        dense = self.dense(output)
        features = np.flatnonzero(dense)
        return features, dense[features]

    def loss(self, output):
        return float(sum(a != b for a, b in zip(output, self.gold)))

    def decode(self, weights, loss_weight=0.0):
        self.decoded += 1
        scores = [float(weights @ self.dense(y)) + loss_weight * self.loss(y) for y in self.outputs]
        visible = [i for i, y in enumerate(self.outputs) if self.blind is None or not self.blind(y)]
        best = max(visible, key=lambda i: scores[i])
        return self.outputs[best], scores[best], max(scores) + self.slack

    def violation(self, weights):
        right = float(weights @ self.dense(self.gold))
        return max(self.loss(y) + float(weights @ self.dense(y)) - right for y in self.outputs)


def random_tasks(seed, n_tasks=6, n_observations=3, n_states=2, noise=0.2, **settings):
    """Tasks whose right states follow the observations and each other, but for noise."""
    rng = np.random.default_rng(seed)
    tasks = []
    for _ in range(n_tasks):
        n = int(rng.integers(2, 5))
        observations = rng.integers(n_observations, size=n).tolist()
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6]
        states = [
            int(rng.integers(n_states)) if rng.random() < noise else o % n_states
            for o in observations
        ]
        base = rng.normal(size=(n, n_states))
        tasks.append(
            GraphTask(observations, states, pairs, n_observations, n_states, base, **settings)
        )
    return tasks
