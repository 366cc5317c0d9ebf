"""Graphs whose scores are weights of named features shared by all graphs, and learning of the weights.

    score(y; w) = Σ_events w[name] · value · [the vertices of the event have its states in y]

An event of one vertex is a unary score; an event of several is a pattern. Weights are learnt by
the largest margin (`graph.frank_wolfe`), which decodes by dual decomposition. Qian and Liu, TACL 2 (2014)
§2.1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.dual import dual_decompose
from spacy_hocrf.graph.frank_wolfe import FrankWolfe
from spacy_hocrf.graph.instance import GraphInstance, make_instance
from spacy_hocrf.graph.settings import DualSettings
from spacy_hocrf.types import SIGMA_RANGE, is_number, is_sigma, is_whole

__all__ = ["Event", "FeatureGraph", "learn_graphs"]

Event = tuple[Sequence[int], Sequence[int], str, float]
"""Vertices, their states, the name of a feature, and its value."""


@dataclass(frozen=True)
class FeatureGraph:
    """A graph with V vertices, whose states are scored by named features.

    n_states (Sequence[int]): number of states of each vertex.
    events (Sequence[Event]): occurrences of features.
    RAISES (ValueError): H085 for an event of another form.
    """

    n_states: Sequence[int]
    events: Sequence[Event]

    def __post_init__(self) -> None:
        for i, event in enumerate(self.events):
            if len(event) != 4 or not isinstance(event[2], str) or not is_number(event[3]):
                expected = "its vertices, their states, the name of a feature, and its value"
                raise ValueError(
                    Errors.H085.format(name=f"event {i}", found=event, expected=expected)
                )

    def instance(self, weights: Mapping[str, float]) -> GraphInstance:
        """Return the graph scored with these weights, for `dual_decompose`; a feature without a weight
        scores 0.

        RAISES (ValueError): as `GraphInstance.from_arrays` for events that do not fit the graph.
        """
        return self.scored([weights.get(name, 0.0) for *_, name, _ in self.events])

    def scored(
        self,
        weights: Sequence[float] | NDArray[np.float64],
        unary: NDArray[np.float64] | None = None,
    ) -> GraphInstance:
        """Return the graph with a weight for each event, and additional scores of its cells.

        unary (Optional[float64 [E]]): additional scores of the cells, vertex by vertex.
        RAISES (ValueError): H085 for an event with another number of states than of vertices, else as
            `GraphInstance.from_arrays`.
        """
        for vertices, states, name, _ in self.events:
            if len(vertices) != len(states):
                found = len(vertices), len(states)
                expected = "as many states as vertices"
                raise ValueError(
                    Errors.H085.format(name=f"an event of {name}", found=found, expected=expected)
                )
        ends = np.cumsum([0, *self.n_states]).tolist()
        scores = np.zeros(ends[-1]) if unary is None else unary
        pairs = zip(self.events, weights)
        return make_instance(
            [scores[a:b] for a, b in pairwise(ends)],
            [(vertices, states, weight * value) for (vertices, states, _, value), weight in pairs],
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features that may fire, sorted."""
        return tuple(sorted({name for *_, name, _ in self.events}))

    def counts(self, assignment: Sequence[int]) -> dict[str, float]:
        """Return the sum of the values of each feature that fires in an assignment.

        assignment (Sequence[int]): state of each vertex, [V].
        """
        counts: dict[str, float] = {}
        for vertices, states, name, value in self.events:
            if all(assignment[v] == state for v, state in zip(vertices, states)):
                counts[name] = counts.get(name, 0.0) + value
        return counts


def learn_graphs(
    graphs: Sequence[FeatureGraph],
    annotated: Sequence[Sequence[int]],
    *,
    sigma: float = 1.0,
    epochs: int = 100,
    nonnegative: Iterable[str] = (),
    settings: DualSettings | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Learn weights with which the annotated states of each graph score higher than all others, by the number
    of vertices that are wrong in these.

    graphs (Sequence[FeatureGraph]): the training graphs.
    annotated (Sequence[Sequence[int]]): the right state of each vertex of each graph.
    sigma (float): standard deviation of the weights' Gaussian prior, from 1e-9 to 1e9.
    epochs (int): most passes over the graphs; learning ends when the objective is proved to be within one
        per cent of the optimum.
    nonnegative (Iterable[str]): names of features whose weights must not be below 0.
    settings (Optional[DualSettings]): how graphs are decoded; None for the default.
    seed (int): seed of the order of the graphs.
    RETURNS (dict[str, float]): weights by name, for `FeatureGraph.instance`. `srsly.write_json` saves them.
    RAISES (ValueError): H107 for sigma, epochs or seed out of range, or annotation that does not fit; H082 to
        H085 for events that do not fit their graph.
    """
    names = sorted({name for graph in graphs for name in graph.names})
    _check("sigma", sigma, is_sigma(sigma), SIGMA_RANGE)
    for name, value, least in (("epochs", epochs, 1), ("seed", seed, 0)):
        expected = f"a whole number, at least {least}"
        _check(name, value, is_whole(value) and value >= least, expected)
    named = not isinstance(nonnegative, str)  # a string is iterable, but its letters are not names
    _check("nonnegative", nonnegative, named, "a list of names")
    _check(
        "annotation", len(annotated), len(annotated) == len(graphs), f"that of {len(graphs)} graphs"
    )
    number = {name: i for i, name in enumerate(names)}
    settings = settings or DualSettings()
    tasks = [_GraphTask(*pair, number, settings) for pair in zip(graphs, annotated)]
    kept = np.isin(names, list(nonnegative))
    learner = FrankWolfe(tasks, np.full(len(names), sigma**2), nonnegative=kept, seed=seed)
    learner.learn(epochs)
    return dict(zip(names, learner.weights.tolist()))


class _GraphTask:
    """A graph with its annotation as a learning task: a `graph.learning.Task`."""

    def __init__(
        self,
        graph: FeatureGraph,
        gold: Sequence[int],
        number: Mapping[str, int],
        settings: DualSettings,
    ) -> None:
        fits = len(gold) == len(graph.n_states) and all(
            is_whole(state) and 0 <= state < n for state, n in zip(gold, graph.n_states)
        )
        _check("annotation", list(gold), fits, f"a state of each vertex, of {list(graph.n_states)}")
        self._graph, self._number, self._settings = graph, number, settings
        self._features = np.array([number[name] for *_, name, _ in graph.events], dtype=np.int64)
        right = np.cumsum([0, *graph.n_states])[:-1] + np.array(gold, dtype=np.int64)
        self._wrong = np.ones(int(sum(graph.n_states)))  # [E] loss of each cell
        self._wrong[right] = 0.0
        self.gold = np.array(gold, dtype=np.int32)

    def decode(
        self, weights: NDArray[np.float64], loss_weight: float = 0.0
    ) -> tuple[NDArray[np.int32], float, float]:
        """Return an assignment with a high score, the score, and an upper bound."""
        instance = self._graph.scored(weights[self._features], loss_weight * self._wrong)
        decoding = dual_decompose(instance, self._settings)
        return decoding.assignment, decoding.primal, decoding.bound

    def counts(self, output: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the features that fire, and their counts."""
        counts = self._graph.counts(output.tolist())
        features = np.array([self._number[name] for name in counts], dtype=np.int32)
        return features, np.array(list(counts.values()), dtype=np.float64)

    def loss(self, output: NDArray[np.int32]) -> float:
        """Return the number of vertices with a wrong state."""
        return float((output != self.gold).sum())


def _check(name: str, found: object, right: bool, expected: str) -> None:
    if not right:
        raise ValueError(Errors.H107.format(name=name, found=found, expected=expected))
