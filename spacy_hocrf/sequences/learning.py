"""Maximum likelihood of labelled sequences with a Gaussian and a Laplace prior, by L-BFGS; and learning from
one sequence after the other.

    loss(w) = Σ_sequences [log Z(w) - score of the labels] + c1 · Σ_f |w_f| + c2 · Σ_f w_f²

which is what CRFsuite minimises with the algorithms `lbfgs` and `l2sgd` (c1 = 0), and what the
component minimises with sigma² = 1 / (2 c2). Both algorithms are L-BFGS here; with c1 above 0 it is
OWL-QN. The features are laid out and counted by the kernels of `model/`; values of attributes are
rounded to single precision there.
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
from spacy_hocrf.engine.reduction import LEAST_PARTS
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
from spacy_hocrf.types import (
    CONTINUE,
    FIRST,
    LAST,
    TOKEN,
    Observations,
    Rows,
    Segments,
    Spans,
)

__all__ = [
    "LearningSettings",
    "Progress",
    "laid_out",
    "learn",
    "learn_online",
    "model_of",
]

SHARD_ITEMS = 4_000
"""Items scored together; part of what fixes the last bit of the objective."""
ANYTHING = FIRST | CONTINUE | LAST


@dataclass(frozen=True)
class LearningSettings:
    """Prior and convergence, under the names that CRFsuite has for them.

    c1 (float): coefficient of the absolute values of the weights; above 0 most of them become 0.
    c2 (float): coefficient of the squares of the weights.
    max_iterations (int): of L-BFGS.
    num_memories (int): pairs of steps and gradients kept.
    epsilon (float): converged when ||gradient|| <= epsilon · max(1, ||weights||).
    delta, period: converged when the loss fell by no more than the part delta of itself in `period`
        iterations; a period of 0 is never over.
    max_linesearch (int): evaluations that one line search may use.
    threads (int): 1 or more; the result does not depend on it.
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
    """Where the optimiser is after an iteration."""

    iteration: int
    loss: float  # nats
    weights: NDArray[np.float64]  # [F] the optimiser's own
    gradient_norm: float  # of the pseudo-gradient if c1 is above 0; nan of an epoch
    trials: int  # evaluations of this iteration
    seconds: float  # of this iteration
    step: float = float("nan")  # of the line search


def learn(
    data: Labelled,
    features: Features,
    settings: LearningSettings,
    watch: Callable[[Progress], object] = lambda _: None,
) -> tuple[NDArray[np.float64], str]:
    """Weights of the features, float64 [F], and why the optimiser ended.

    watch (Callable): told about each iteration.
    RAISES (ValueError): H285 if the loss is not finite.
    """
    if not len(features):
        return np.zeros(0), "converged: gradient"
    precision, nothing = np.full(len(features), 2.0 * settings.c2), np.zeros(len(features))
    if settings.c1 > 0.0:  # a Laplace prior does not care which weights have a sum
        known = laid_out(data, features)
        plain = Objective(*known, precision, nothing, threads=settings.threads)
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
    """Weights of the features, float64 [F], by one update at most for each sequence.

    learner (Callable): makes what learns from shards, their layout, the automaton and weights to start from.
    epochs (int): times that it goes through all sequences.
    epsilon (float): it ends when the mean loss of an epoch is below.
    averaging (bool): average the weights over all sequences of all epochs; else it is the last ones.
    watch (Callable): told about each epoch, with the loss of all sequences.
    """
    learning = learner(*laid_out(data, features), np.zeros(len(features)))
    random, began = np.random.default_rng(0), perf_counter()
    weights, n = learning.weights, len(data.items.offsets) - 1  # empty sequences count, too
    for epoch in range(1, epochs + 1):
        learning.epoch(random.permutation(len(learning)).tolist())
        # as CRFsuite averages: the start counts, too, which is 0
        weights = learning.average * (learning.seen / (learning.seen + 1))
        weights = weights if averaging else learning.weights
        now = perf_counter()
        watch(Progress(epoch, learning.loss, weights, float("nan"), 1, now - began))
        if learning.loss < epsilon * n:
            break
        began = now
    return weights


def model_of(
    labels: Mapping[str, int],
    attributes: Mapping[str, int],
    features: Features,
    weights: NDArray[np.float64],
) -> SequenceModel:
    """The model of these features, with the weights float64 [F]."""
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
    """The data, where the weights lie, states and arcs."""
    index = _index_of(features)
    compiled = CompiledIndex(index)
    shards = list(_shards(data, compiled, Histories(index.patterns)))
    return shards, compiled, compile_automaton(index.patterns, [1] * features.n_labels)


def _tied(data: Labelled, features: Features) -> tuple[Tied, Automaton]:
    """Shards and automaton, see `laid_out`, where features that the data do not tell apart share a
    weight.
    """
    index, items = _index_of(features), data.items
    found = inseparable(index, [Rows(items.row_offsets, items.attribute, _values(items))])
    arranged, group = tie(index, found)
    shards = list(_shards(data, arranged, Histories(index.patterns)))
    automaton = compile_automaton(index.patterns, [1] * features.n_labels)
    return Tied(shards, arranged, group), automaton


def _values(items: Items) -> NDArray[np.float32] | None:
    """What training multiplies weights by. RAISES (ValueError): H285 for what single precision has not."""
    if items.value is None:
        return None
    most = max(items.value.max(initial=0.0), -items.value.min(initial=0.0))
    if most > np.finfo(np.float32).max:
        raise ValueError(SequenceErrors.H285.format(status=f"{most}, as single precision"))
    return items.value.astype(np.float32)


def _optimiser(
    objective: Objective | TiedObjective, n: int, settings: LearningSettings
) -> LBFGS | OWLQN:
    """That of a function of n weights, from 0 on."""
    start = np.zeros(n)
    convergence: dict[str, Any] = {
        "memory": settings.num_memories,
        "gradient_tolerance": settings.epsilon,
        "improvement_tolerance": settings.delta if settings.period else -math.inf,
        "improvement_period": settings.period,
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
) -> tuple[NDArray[np.float64], str]:
    """The weights at the minimum of a function of n variables, and why the optimiser ended.

    outside (Callable): the weights, float64 [F], that a point stands for.
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
            known = optimiser.iterations, optimiser.best_f, weights, norm, trials, now - began
            watch(Progress(*known, step=step))
        if accepted:
            began, before = perf_counter(), optimiser.evaluations
    if optimiser.status.startswith("failed"):
        raise ValueError(SequenceErrors.H285.format(status=optimiser.status))
    ended = optimiser.status != "running"
    return outside(optimiser.best_x), optimiser.status if ended else "stopped: max_iterations"


@dataclass(frozen=True)
class _AttributeTemplate(Observing):
    """The attributes of items, by their numbers."""

    order: int
    name: str = "ATTRIBUTE"
    part: int = TOKEN
    width: int = 1


def _index_of(features: Features) -> FeatureIndex:
    """The features as `CompiledIndex` lays them out: each attribute, and each order of patterns, is an
    observation.
    """
    n_labels, n_attributes = features.n_labels, len(features.offsets) - 1
    singles = [(y,) for y in range(n_labels)]
    order_of = np.array([len(z) - 1 for z in (*singles, *features.patterns)], dtype=np.int64)
    order = order_of[features.pattern]
    seen, transitions = np.unique(order), np.unique(order_of[n_labels:])
    templates: list[Template] = [_AttributeTemplate(k) for k in seen.tolist() or [0]]
    templates += [TransitionTemplate(k) for k in transitions.tolist()]
    index = FeatureIndex((*singles, *features.patterns), templates)
    observers = 1 + np.arange(len(transitions))
    rows = np.zeros((n_attributes + len(observers), 2), dtype=np.uint64)
    rows[:n_attributes, 1] = np.arange(n_attributes)
    rows[n_attributes:, 0] = observers
    index.table = ObservationTable.from_rows(rows)
    of_transition = np.searchsorted(transitions, order_of[n_labels:])
    n = np.bincount(of_transition, minlength=len(transitions))
    index.feature_offsets = np.append(features.offsets, len(order) + np.cumsum(n))
    first = len(templates) - len(transitions)
    template = np.append(np.searchsorted(seen, order), first + of_transition)
    index.feature_template = template.astype(np.int32)
    numbers = n_labels + np.arange(len(features.patterns))
    index.feature_pattern = np.append(features.pattern, numbers).astype(np.int32)
    return index


def _shards(
    data: Labelled, compiled: CompiledIndex, histories: Histories
) -> Iterator[CompiledShard]:
    """Parts of the data, sequences of similar length together."""
    lengths = np.diff(data.items.offsets)
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    size = _shard_size(int(lengths.sum()))
    for first, last in stretches(lengths[order].tolist(), size):
        yield _compiled(sequences_at(data, order[first:last]), compiled, histories)


def _shard_size(items: int) -> int:
    """Items of each shard: a multiple of LEAST_PARTS shards, unless one is enough."""
    rounds = -(-items // (SHARD_ITEMS * LEAST_PARTS))
    return items if items <= SHARD_ITEMS else -(-items // (rounds * LEAST_PARTS))


def _compiled(data: Labelled, compiled: CompiledIndex, histories: Histories) -> CompiledShard:
    """Labelled sequences as the objective sees them."""
    items = data.items
    places, n_items = np.zeros(0, dtype=np.int64), len(data.label)
    observations = Observations(
        offsets=items.offsets,
        tokens=Rows(items.row_offsets, items.attribute, _values(items)),
        spans=Spans(places, places, places.astype(np.int32), None),
    )
    allowed = np.full((n_items, compiled.n_labels), ANYTHING, dtype=np.uint8)
    one_token = np.ones(compiled.n_labels, dtype=bool)
    inside = np.arange(n_items) - np.repeat(items.offsets[:-1], np.diff(items.offsets))
    start = inside.astype(np.int32)
    return CompiledShard(
        CompiledBatch(compiled, observations, allowed, one_token),
        None,
        Segments(items.offsets, start, start + np.int32(1), data.label),
        histories,
        1,
        range(len(items.offsets) - 1),
    )
