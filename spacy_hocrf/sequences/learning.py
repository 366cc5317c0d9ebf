"""Maximum likelihood of labelled sequences with a Gaussian and a Laplace prior, by L-BFGS; and online
learning.

    loss(w) = Σ_sequences [log Z(w) - score of the labels] + c1 · Σ_f |w_f| + c2 · Σ_f w_f²

CRFsuite minimises the same function with the algorithms `lbfgs` and `l2sgd` (c1 = 0), and the
component with sigma² = 1 / (2 c2). Here both algorithms are L-BFGS; with c1 above 0 it is
OWL-QN. The features are compiled and counted by the kernels of `model/`, which round values of attributes
to single precision.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import stretches
from spacy_hocrf.engine.automaton import Automaton, compile_automaton
from spacy_hocrf.engine.lbfgs import LBFGS
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.engine.owlqn import OWLQN, pseudo_gradient
from spacy_hocrf.engine.reduction import MIN_PARTS
from spacy_hocrf.engine.tying import Tied, TiedObjective
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.segments import TransitionTemplate
from spacy_hocrf.features.table import ObservationTable
from spacy_hocrf.features.templates import Observing, Template
from spacy_hocrf.model.compiled import CompiledBatch
from spacy_hocrf.model.compiled_shard import CompiledShard
from spacy_hocrf.model.histories import Histories
from spacy_hocrf.model.placement import CompiledIndex
from spacy_hocrf.model.tying import inseparable, tie
from spacy_hocrf.sequences.dataset import Labelled, sequences_at
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.features import Features
from spacy_hocrf.sequences.items import Items
from spacy_hocrf.sequences.model import SequenceModel
from spacy_hocrf.sequences.online import AveragedPerceptron
from spacy_hocrf.types import CONTINUE, FIRST, LAST, TOKEN, Observations, Rows, Segments, Spans

__all__ = [
    "LearningSettings",
    "Progress",
    "laid_out",
    "learn",
    "learn_online",
    "sequence_model",
]

SHARD_ITEMS = 4_000
"""Items per shard; the size affects the last bit of the objective."""
MAX_MEMORIES, MAX_PERIOD = 1_000, 2**31 - 1
"""Larger settings are read as these: no run has so many iterations, and memory is reserved for each pair."""
ANYTHING = FIRST | CONTINUE | LAST


@dataclass(frozen=True)
class LearningSettings:
    """Prior and convergence, with CRFsuite's names.

    c1 (float): coefficient of the absolute values of the weights; above 0 most of them become 0.
    c2 (float): coefficient of the squares of the weights.
    max_iterations (int): most iterations of L-BFGS.
    num_memories (int): number of pairs of steps and gradients that are kept, 1,000 at most.
    epsilon (float): converged when ||gradient|| <= epsilon · max(1, ||weights||).
    delta, period: converged when the loss fell by at most the fraction delta of itself in `period`
        iterations; a period of 0 disables the test.
    max_linesearch (int): most evaluations in one line search; the first may use more, since the scale of the
        weights is not known yet.
    threads (int): at least 1; the result does not depend on it.
    """

    c1: float = 0.0
    c2: float = 1.0
    max_iterations: int = 2**31 - 1
    num_memories: int = 6
    epsilon: float = 1e-5
    period: int = 10
    delta: float = 1e-5
    max_linesearch: int = 20
    threads: int = 1


class Progress(NamedTuple):
    """State of the optimiser after an iteration."""

    iteration: int
    loss: float  # nats
    weights: NDArray[np.float64]  # [F] the optimiser's array
    gradient_norm: float  # norm of the pseudo-gradient if c1 is above 0; nan for an epoch
    trials: int  # evaluations in this iteration
    seconds: float  # duration of this iteration
    step: float = float("nan")  # step of the line search


def learn(
    data: Labelled,
    features: Features,
    settings: LearningSettings,
    watch: Callable[[Progress], object] = lambda _: None,
) -> tuple[NDArray[np.float64], str, float]:
    """Learn the weights of the features. Return them, float64 [F], why the optimiser stopped, and the loss.

    watch (Callable): called after each iteration.
    RAISES (ValueError): H285 if the loss is not finite.
    """
    precision, nothing = np.full(len(features), 2.0 * settings.c2), np.zeros(len(features))
    if settings.c1 > 0.0:  # under a Laplace prior, weights that are tied need not be equal
        problem = laid_out(data, features)
        plain = Objective(*problem, precision, nothing, threads=settings.threads)
        return _minimise(plain, len(features), settings, watch, lambda weights: weights)
    tied, automaton = _tied(data, features)
    sums = Objective(
        tied.shards,
        tied.layout,
        automaton,
        tied.precision(precision),
        tied.sums(nothing),
        threads=settings.threads,
    )
    objective = tied.objective(sums)
    return _minimise(objective, len(tied), settings, watch, lambda v: tied.outside(v))


def learn_online(
    data: Labelled,
    features: Features,
    watch: Callable[[Progress], object] = lambda _: None,
    *,
    learner: Callable[..., AveragedPerceptron] = AveragedPerceptron,
    epochs: int = 100,
    epsilon: float = 0.0,
    averaging: bool = True,
) -> NDArray[np.float64]:
    """Learn the weights of the features, float64 [F], with at most one update per sequence.

    learner (Callable): makes a learner from shards, their layout, the automaton and initial weights.
    epochs (int): number of passes over all sequences.
    epsilon (float): stop when the mean loss of an epoch is below this.
    averaging (bool): average the weights over all sequences of all epochs; otherwise return the last ones.
    watch (Callable): called after each epoch, with the loss of all sequences.
    """
    learning = learner(*laid_out(data, features), np.zeros(len(features)))
    random, began = np.random.default_rng(0), perf_counter()
    weights, n = learning.weights, len(data.items.offsets) - 1  # empty sequences count, too
    for epoch in range(1, epochs + 1):
        learning.epoch(random.permutation(len(learning)).tolist())
        # like CRFsuite, include the initial weights, which are 0, in the average
        weights = learning.average * (learning.seen / (learning.seen + 1))
        weights = weights if averaging else learning.weights
        now = perf_counter()
        watch(Progress(epoch, learning.loss, weights, float("nan"), 1, now - began))
        if learning.loss < epsilon * n:
            break
        began = now
    return weights


def sequence_model(
    labels: Mapping[str, int],
    attributes: Mapping[str, int],
    features: Features,
    weights: NDArray[np.float64],
) -> SequenceModel:
    """Make a model of these features, with the weights float64 [F]."""
    n = len(features.pattern)
    return SequenceModel(
        labels=tuple(labels),
        attributes=dict(attributes),
        feature_offsets=features.offsets,
        feature_pattern=features.pattern,
        feature_weight=weights[:n].copy(),
        patterns=features.patterns,
        pattern_weight=weights[n:].copy(),
    )


def laid_out(
    data: Labelled, features: Features
) -> tuple[list[CompiledShard], CompiledIndex, Automaton]:
    """Compile the data to shards; return them with the layout of weights and the automaton."""
    index = _index_of(features)
    compiled = CompiledIndex(index)
    shards = list(_shards(data, compiled, Histories(index.patterns)))
    return shards, compiled, compile_automaton(index.patterns, [1] * features.n_labels)


def _tied(data: Labelled, features: Features) -> tuple[Tied, Automaton]:
    """Like `laid_out`, but features that the data cannot tell apart share a
    weight.
    """
    index, items = _index_of(features), data.items
    representative = inseparable(index, [Rows(items.row_offsets, items.attribute, _values(items))])
    arranged, group = tie(index, representative)
    shards = list(_shards(data, arranged, Histories(index.patterns)))
    automaton = compile_automaton(index.patterns, [1] * features.n_labels)
    return Tied(shards, arranged, group), automaton


def _values(items: Items) -> NDArray[np.float32] | None:
    """Values of attributes for training. RAISES (ValueError): H285 for one beyond single precision."""
    if items.value is None:
        return None
    most = max(items.value.max(initial=0.0), -items.value.min(initial=0.0))
    if most > np.finfo(np.float32).max:
        raise ValueError(SequenceErrors.H285.format(status=f"{most}, as single precision"))
    return items.value.astype(np.float32)


def _optimiser(
    objective: Objective | TiedObjective, n: int, settings: LearningSettings
) -> LBFGS | OWLQN:
    """Make the optimiser for a function of n weights, starting at 0."""
    start = np.zeros(n)
    convergence: dict[str, Any] = {
        "memory": min(settings.num_memories, MAX_MEMORIES),
        "gradient_tolerance": settings.epsilon,
        "improvement_tolerance": settings.delta if settings.period else -math.inf,
        "improvement_period": min(int(settings.period), MAX_PERIOD),
        "max_line_search": settings.max_linesearch,
    }
    if settings.c1 > 0.0:
        return OWLQN(start, settings.c1, **convergence)
    curvature = objective.curvature
    return LBFGS(start, threads=settings.threads, curvature=curvature, **convergence)


def _minimise(
    objective: Objective | TiedObjective,
    n: int,
    settings: LearningSettings,
    watch: Callable[[Progress], object],
    outside: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> tuple[NDArray[np.float64], str, float]:
    """Minimise a function of n variables; return the weights, why the optimiser stopped, and the value.

    outside (Callable): returns the weights, float64 [F], for a point.
    RAISES (ValueError): H285 if the loss is not finite.
    """
    optimiser = _optimiser(objective, n, settings)
    began, before = perf_counter(), 0
    while optimiser.status == "running" and optimiser.iterations < settings.max_iterations:
        step = optimiser.step
        accepted = optimiser.tell(*objective(optimiser.x))
        if accepted and optimiser.iterations:
            now, trials = perf_counter(), optimiser.evaluations - before
            gradient = pseudo_gradient(optimiser.best_x, optimiser.best_g, settings.c1)
            norm, weights = float(np.linalg.norm(gradient)), outside(optimiser.best_x)
            numbers = optimiser.iterations, optimiser.best_f, weights, norm, trials, now - began
            watch(Progress(*numbers, step=step))
        if accepted:
            began, before = perf_counter(), optimiser.evaluations
    if optimiser.status.startswith("failed"):
        raise ValueError(SequenceErrors.H285.format(status=optimiser.status))
    status = optimiser.status if optimiser.status != "running" else "stopped: max_iterations"
    return outside(optimiser.best_x), status, optimiser.best_f


@dataclass(frozen=True)
class _AttributeTemplate(Observing):
    """The attributes of items, by their numbers."""

    order: int
    name: str = "ATTRIBUTE"
    part: int = TOKEN
    width: int = 1


def _index_of(features: Features) -> FeatureIndex:
    """Convert the features to the index that `CompiledIndex` compiles: each attribute, and each order of
    patterns, is an observation.
    """
    n_labels, n_attributes = features.n_labels, len(features.offsets) - 1
    singles = [(y,) for y in range(n_labels)]
    order_of = np.array([len(z) - 1 for z in (*singles, *features.patterns)], dtype=np.int64)
    order = order_of[features.pattern]
    orders, transitions = np.unique(order), np.unique(order_of[n_labels:])
    templates: list[Template] = [_AttributeTemplate(k) for k in orders.tolist() or [0]]
    templates += [TransitionTemplate(k) for k in transitions.tolist()]
    index = FeatureIndex((*singles, *features.patterns), templates)
    # the rows of the table: each attribute, seen by observer 0, and an observer for each order of patterns
    observers = 1 + np.arange(len(transitions))
    rows = np.zeros((n_attributes + len(observers), 2), dtype=np.uint64)
    rows[:n_attributes, 1] = np.arange(n_attributes)
    rows[n_attributes:, 0] = observers
    index.table = ObservationTable.from_rows(rows)
    of_transition = np.searchsorted(transitions, order_of[n_labels:])
    n = np.bincount(of_transition, minlength=len(transitions))
    index.feature_offsets = np.append(features.offsets, len(order) + np.cumsum(n))
    first = len(templates) - len(transitions)
    template = np.append(np.searchsorted(orders, order), first + of_transition)
    index.feature_template = template.astype(np.int32)
    numbers = n_labels + np.arange(len(features.patterns))
    index.feature_pattern = np.append(features.pattern, numbers).astype(np.int32)
    return index


def _shards(
    data: Labelled, compiled: CompiledIndex, histories: Histories
) -> Iterator[CompiledShard]:
    """Yield parts of the data, with sequences of similar length together."""
    lengths = np.diff(data.items.offsets)
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    size = _shard_size(int(lengths.sum()))
    for first, last in stretches(lengths[order].tolist(), size):
        yield _compiled(sequences_at(data, order[first:last]), compiled, histories)


def _shard_size(items: int) -> int:
    """Number of items per shard: makes a multiple of MIN_PARTS shards, unless one is enough."""
    rounds = -(-items // (SHARD_ITEMS * MIN_PARTS))
    return items if items <= SHARD_ITEMS else -(-items // (rounds * MIN_PARTS))


def _compiled(data: Labelled, compiled: CompiledIndex, histories: Histories) -> CompiledShard:
    """Compile labelled sequences to a shard."""
    items = data.items
    places, n_items = np.zeros(0, dtype=np.int64), len(data.label)
    observations = Observations(
        offsets=items.offsets,
        tokens=Rows(items.row_offsets, items.attribute, _values(items)),
        spans=Spans(places, places, places.astype(np.int32), None),
    )
    allowed = np.full((n_items, compiled.n_labels), ANYTHING, dtype=np.uint8)
    one_token = np.ones(compiled.n_labels, dtype=bool)
    # place of each item in its sequence, where its segment starts
    place = np.arange(n_items) - np.repeat(items.offsets[:-1], np.diff(items.offsets))
    start = place.astype(np.int32)
    return CompiledShard(
        CompiledBatch(compiled, observations, allowed, one_token),
        None,
        Segments(items.offsets, start, start + np.int32(1), data.label),
        histories,
        1,
        range(len(items.offsets) - 1),
    )
