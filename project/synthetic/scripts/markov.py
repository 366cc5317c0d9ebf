"""Random Markov models of order k whose states emit points, and sequences drawn from them (Ye et
al., NIPS 2009, §4.1).

After each of the n^k histories r states may follow, with probabilities uniform on [0, 1] and then
normalized. State y emits m numbers, normal around μ_y with standard deviation σ; each μ_yj is
uniform on [0, 1]. The first k states of a sequence are uniform.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Generator:
    """A Markov model; a history of states y_1 … y_k, oldest first, has the number y_1 n^(k-1) + … +
    y_k.
    """

    order: int  # k
    following: NDArray[np.int64]  # [n^k, r] the states that may follow, all different
    probability: NDArray[np.float64]  # [n^k, r] of each of them
    mean: NDArray[np.float64]  # [n, m]

    @property
    def states(self) -> int:
        """Number of states n."""
        return len(self.mean)


@dataclass(frozen=True)
class Sample:
    """Sequences of one length, without a scale of the noise as yet."""

    states: NDArray[np.int64]  # [N, T]
    noise: NDArray[np.float64]  # [N, T, m] standard normal

    def first(self, count: int) -> "Sample":
        """The first sequences."""
        return Sample(self.states[:count], self.noise[:count])


def make_generator(
    random: np.random.Generator,
    order: int,
    *,
    states: int = 5,
    following: int = 2,
    numbers: int = 3,
) -> Generator:
    """A random model of order k = `order`, with n = `states`, r = `following` and m = `numbers`."""
    histories = states**order
    chosen = np.stack([random.permutation(states)[:following] for _ in range(histories)])
    probability = random.uniform(size=(histories, following))
    return Generator(
        order,
        chosen,
        probability / probability.sum(axis=1, keepdims=True),
        random.uniform(size=(states, numbers)),
    )


def draw(random: np.random.Generator, generator: Generator, count: int, length: int = 20) -> Sample:
    """Draw sequences of `length` states, the first k of them uniformly."""
    k, n = generator.order, generator.states
    states = np.zeros((count, length), dtype=np.int64)
    states[:, :k] = random.integers(n, size=(count, k))
    for t in range(k, length):
        history = number_of(states[:, t - k : t], n)
        bounds = np.cumsum(generator.probability[history], axis=1)
        choice = (random.uniform(size=(count, 1)) >= bounds[:, :-1]).sum(axis=1)
        states[:, t] = generator.following[history, choice]
    return Sample(states, random.standard_normal((count, length, generator.mean.shape[1])))


def observe(generator: Generator, sample: Sample, sigma: float) -> NDArray[np.float64]:
    """What the states emit at this standard deviation, float64 [N, T, m]."""
    return generator.mean[sample.states] + sigma * sample.noise


def most_likely_states(
    generator: Generator, observations: NDArray[np.float64], sigma: float
) -> NDArray[np.int64]:
    """The most likely state at each position, given all observations and the model that they were
    drawn from; int64 [N, T].

    Nothing that knows less can expect to be right more often. Forward and backward pass over
    histories of k states (T ≥ k).
    """
    k, n = generator.order, generator.states
    count, length, _ = observations.shape
    # [N, T, n]
    distances = ((observations[:, :, None, :] - generator.mean) ** 2).sum(axis=3) / (2 * sigma**2)
    emission = np.exp(distances.min(axis=2, keepdims=True) - distances)
    histories = np.arange(n**k)
    target = (histories[:, None] % n ** (k - 1)) * n + generator.following  # [n^k, r]
    alpha = np.zeros((length, count, n**k))  # alpha[t]: the history that ends at t
    alpha[k - 1] = np.prod(
        [emission[:, t, digit(histories, k - 1 - t, n)] for t in range(k)], axis=0
    )
    alpha[k - 1] /= alpha[k - 1].sum(axis=1, keepdims=True)
    for t in range(k, length):
        for i in range(target.shape[1]):
            np.add.at(alpha[t].T, target[:, i], (alpha[t - 1] * generator.probability[:, i]).T)
        alpha[t] *= emission[:, t, histories % n]
        alpha[t] /= alpha[t].sum(axis=1, keepdims=True)
    beta = np.ones((count, n**k))
    states = np.zeros((count, length), dtype=np.int64)
    for t in range(length - 1, k - 2, -1):
        if t < length - 1:
            arriving = beta * emission[:, t + 1, histories % n]
            beta = sum(
                arriving[:, target[:, i]] * generator.probability[:, i]
                for i in range(target.shape[1])
            )
            beta /= beta.sum(axis=1, keepdims=True)
        posterior = alpha[t] * beta
        # the first k states are told by the first history
        for back in range(k if t == k - 1 else 1):
            mass = np.stack(
                [posterior[:, digit(histories, back, n) == y].sum(axis=1) for y in range(n)], axis=1
            )
            states[:, t - back] = mass.argmax(axis=1)
    return states


def number_of(states: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Numbers of histories, int64 [N], from their states [N, k]."""
    powers = n ** np.arange(states.shape[1] - 1, -1, -1)
    return states @ powers


def digit(histories: NDArray[np.int64], back: int, n: int) -> NDArray[np.int64]:
    """The state of each history that is `back` positions before its last."""
    return histories // n**back % n


def count_exclusive(
    one: NDArray[np.int64], other: NDArray[np.int64], length: int = 5
) -> tuple[int, int, int]:
    """Patterns of `length` states in `one`, beside `other`.

    one, other (int64 [·, T]): sequences of states.
    RETURNS (tuple[int, int, int]): how many are in `one` only, how many it has, and how often the
        most frequent of the former is.
    """
    counts, elsewhere = pattern_counts(one, length), pattern_counts(other, length)
    exclusive = [count for pattern, count in counts.items() if pattern not in elsewhere]
    return len(exclusive), len(counts), max(exclusive, default=0)


def pattern_counts(states: NDArray[np.int64], length: int) -> dict[tuple[int, ...], int]:
    """How often each pattern of `length` states occurs."""
    windows = np.lib.stride_tricks.sliding_window_view(states, length, axis=1).reshape(-1, length)
    patterns, counts = np.unique(windows, axis=0, return_counts=True)
    return {tuple(pattern): count for pattern, count in zip(patterns.tolist(), counts.tolist())}
