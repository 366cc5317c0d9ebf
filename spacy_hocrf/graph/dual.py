"""Dual decomposition: the best assignment of a generalized higher-order CRF, with an upper bound
that may prove it.

Every subproblem but the first has copies z of the cells that its patterns are about. With u their
scores, one for each copy, and the first subproblem rewarded by -Σ u over the copies of a cell, the
sum of all subproblems' maxima is an upper bound of the optimum for every u (Qian and Liu, TACL 2
(2014) §2.2, equations 4 and 6). It is convex in u; where the subproblems agree it is the optimum. A
subgradient is z - y, y being the first subproblem's choice, and the first subproblem's assignments
are the primal ones.

Step sizes: "harmonic" c / (1 + n) and "geometric" c / 2ⁿ, n being the number of times that the
bound has risen (Rush et al., EMNLP 2010); "polyak" γ (bound - primal) / |z - y|², γ falling from 1
when the bound does not (Polyak 1969).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.ascent import ascend
from spacy_hocrf.graph.decomposition import Decomposition, decompose
from spacy_hocrf.graph.elimination import best_by_elimination
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.multipliers import disagree, move
from spacy_hocrf.graph.patterns import add_up
from spacy_hocrf.graph.result import Decoding
from spacy_hocrf.graph.search import LocalSearch
from spacy_hocrf.graph.settings import HYBRID, ILP, DualSettings
from spacy_hocrf.graph.subproblems import FirstSubproblem, ForestSubproblem

__all__ = ["dual_decompose"]

DEFAULT = DualSettings()

# iterations after which a better primal is searched for, besides the last
SEARCH_AFTER = (10, 40, 150)
# of a local search; the last one takes FINAL times as many
LEAST_STEPS, STEPS_PER_VERTEX, MOST_STEPS = 500, 20, 10_000
FINAL = 3
TRIES = 64  # patterns that a last search with a given first subproblem tries
ROUNDING = 1e-9  # what bound and primal may be wrong by, as a part of them


def dual_decompose(
    instance: GraphInstance,
    settings: DualSettings = DEFAULT,
    *,
    first: FirstSubproblem | None = None,
    edges: NDArray[np.int64] | None = None,
    most_entries: int = 2**18,
) -> Decoding:
    """The best assignment that can be found, and an upper bound of all.

    instance (GraphInstance): scores of V vertices' states, and patterns.
    settings (DualSettings): which subproblems, steps and searches.
    first (Optional[FirstSubproblem]): the structure, whose own scores are added to those of the
        instance; None for a forest.
    edges (Optional[int64 [n, 2]]): the forest's pairs of vertices, none at all for independent
        vertices; None chooses a spanning forest of the heaviest.
    most_entries (int): "hybrid" decodes exactly, in one iteration, what is nearly a tree: where
        vertices can be eliminated one by one with tables of so many entries in all. 0 for never;
        nor if `first` or `edges` are given.
    RETURNS (Decoding): the first subproblem, if given, has kept what belongs to the assignment.
    RAISES (ValueError): H086 for edges that are no forest, H089 for a first subproblem of another
        graph, H090 for an integer linear program without SciPy.
    """
    if first is not None and not np.array_equal(first.offsets, instance.offsets):
        raise ValueError(
            Errors.H089.format(found=int(first.offsets[-1]), expected=int(instance.offsets[-1]))
        )
    if settings.kind == ILP:
        return _solve_ilp(instance, settings, first)
    if settings.kind == HYBRID and first is None and edges is None:
        solved = best_by_elimination(instance, most_entries)
        if solved is not None:
            return _exact(instance, *solved)
    parts = decompose(instance, settings.kind, first, edges)
    master = _Master(instance, settings, parts, is_forest=first is None)
    master.descend()
    found = master.decoding()
    if settings.fallback == ILP and not found.certificate:
        exact = _solve_ilp(instance, settings, first, master)
        found = _better(found, exact, settings.tolerance)
    return found


class _Outside(NamedTuple):
    """The patterns that the first subproblem does not have."""

    offsets: NDArray[np.int64]
    vertices: NDArray[np.int32]
    states: NDArray[np.int32]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, instance: GraphInstance, patterns: NDArray[np.int64]) -> "_Outside":
        sizes = np.diff(instance.pattern_offsets)[patterns]
        members = ranges(instance.pattern_offsets[patterns], sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(
            offsets,
            instance.vertices[members],
            instance.states[members],
            instance.weights[patterns],
        )


class _Master:
    """Multipliers, and the best bound and assignment so far."""

    def __init__(
        self,
        instance: GraphInstance,
        settings: DualSettings,
        decomposition: Decomposition,
        *,
        is_forest: bool,
    ) -> None:
        self.instance = instance
        self.settings = settings
        self.first = decomposition.first
        self._is_forest = is_forest  # so that the instance has all scores
        self.primal, self.bound = -np.inf, np.inf
        self.assignment = np.zeros(instance.n_vertices, dtype=np.int32)
        self._constant = decomposition.constant
        self._outside = _Outside.of(instance, decomposition.outside)
        subproblems = decomposition.subproblems
        self._cells = np.concatenate(
            [np.zeros(0, dtype=np.int64), *(subproblem.cells for subproblem in subproblems)]
        )
        self._vertex = (np.searchsorted(instance.offsets, self._cells, side="right") - 1).astype(
            np.int32
        )
        self._state = (self._cells - instance.offsets[self._vertex]).astype(np.int32)
        self._scores = np.zeros(len(self._cells))
        self._chosen = np.zeros(len(self._cells), dtype=np.uint8)
        self._gradient = np.zeros(len(self._cells), dtype=np.int8)
        self._rewards = instance.unary.copy()
        self.best_rewards = instance.unary.copy()  # at the lowest bound
        ends = np.cumsum([len(subproblem.cells) for subproblem in subproblems]).tolist()
        parts = [
            slice(end - len(subproblem.cells), end) for subproblem, end in zip(subproblems, ends)
        ]
        self._subproblems = [
            (subproblem.maximise, self._scores[part], self._chosen[part])
            for subproblem, part in zip(subproblems, parts)
        ]
        self._latest: bytes | None = None
        self._searched = -np.inf
        self._local: LocalSearch | None = None
        self._bounds: list[float] = []
        self._primals: list[float] = []

    @property
    def certain(self) -> bool:
        """Is the best assignment proved optimal?"""
        return self.bound - self.primal <= self.settings.tolerance

    def decoding(self) -> Decoding:
        """What has come of it."""
        assert self.bound >= self.primal - ROUNDING * (1.0 + abs(self.primal)), (
            self.bound,
            self.primal,
        )
        bounds, primals = np.array(self._bounds), np.array(self._primals)
        return Decoding(
            self.assignment,
            self.primal,
            max(self.bound, self.primal),
            self.certain,
            bounds,
            primals,
        )

    def descend(self) -> None:
        """Subgradient steps until there is a certificate, or no iteration is left."""
        settings, weights = self.settings, self._outside.weights
        size = settings.step_size
        if size is None:
            size = float(np.abs(weights).mean()) if len(weights) else 1.0
        rises, before, gamma, waited = 0, np.inf, 1.0, 0
        for iteration in range(1, settings.max_iterations + 1):
            is_last = iteration == settings.max_iterations
            bound, disagreements = self._evaluate()
            rises += bound > before
            before = bound
            waited = 0 if bound < self.bound else waited + 1
            if waited == 5:
                gamma, waited = 0.7 * gamma, 0
            if bound < self.bound:
                self.bound = bound
                np.copyto(self.best_rewards, self._rewards)
            self._bounds.append(self.bound)
            self._primals.append(self.primal)
            if settings.searches and not self.certain and (is_last or iteration in SEARCH_AFTER):
                self._search(last=is_last)
            if self.certain or not disagreements:
                break
            if settings.step_rule == "harmonic":
                length = size / (1 + rises)
            elif settings.step_rule == "geometric":
                length = size * 0.5**rises
            else:
                length = gamma * (bound - self.primal) / disagreements
            move(self._scores, self._rewards, self._cells, self._gradient, length)

    def _evaluate(self) -> tuple[float, int]:
        """The bound at the multipliers, and at how many cells the subproblems disagree; the primal
        is noted if it is new.
        """
        value, assignment = self.first.maximise(self._rewards)
        bound = value - self._constant
        for maximise, scores, chosen in self._subproblems:
            bound += maximise(scores, chosen)
        latest = assignment.tobytes()
        if latest != self._latest:
            self._latest = latest
            on = self.instance.offsets[:-1] + assignment
            primal = (
                value
                - float((self._rewards[on] - self.instance.unary[on]).sum())
                + add_up(assignment, *self._outside)
            )
            if primal > self.primal + ROUNDING * (1.0 + abs(primal)):
                # the score of a graph can be had without the rounding of the rewards
                self.primal = self.instance.score(assignment) if self._is_forest else primal
                self.assignment = assignment
                self.first.keep()
        return bound, disagree(assignment, self._vertex, self._state, self._chosen, self._gradient)

    def _search(self, *, last: bool) -> None:
        """Look near the best assignment, once for each, and at the end once more."""
        if self.primal <= self._searched and not last:
            return
        instance, assignment = self.instance, self.assignment.copy()
        if self._is_forest:
            if self._local is None:
                self._local = LocalSearch(
                    instance.offsets,
                    instance.unary,
                    instance.pattern_offsets,
                    instance.cells,
                    instance.weights,
                )
            steps = (LEAST_STEPS + STEPS_PER_VERTEX * instance.n_vertices) * (FINAL if last else 1)
            self._local.improve(assignment, min(steps, MOST_STEPS), len(self._bounds))
            primal = instance.score(assignment)
        else:
            primal, assignment = ascend(
                instance, self.first, assignment, self.primal, TRIES if last else 0
            )
        if primal > self.primal:
            self.primal, self.assignment = primal, assignment
        self._searched = self.primal


def _exact(instance: GraphInstance, value: float, assignment: NDArray[np.int32]) -> Decoding:
    """What elimination has found, as if it were the first iteration."""
    primal = instance.score(assignment)
    assert abs(value - primal) <= ROUNDING * (1.0 + abs(primal)), (value, primal)
    bound = max(value, primal)
    return Decoding(assignment, primal, bound, True, np.array([bound]), np.array([primal]))


def _solve_ilp(
    instance: GraphInstance,
    settings: DualSettings,
    first: FirstSubproblem | None,
    master: _Master | None = None,
) -> Decoding:
    """Exactly; what the multipliers at the lowest bound rule out is left out."""
    from spacy_hocrf.graph.ilp import Known, solve_ilp

    known = Known()
    if master is not None:
        rewards = master.best_rewards
        losses = (
            master.first.losses(rewards) if isinstance(master.first, ForestSubproblem) else None
        )
        known = Known(master.primal, master.bound, rewards, losses)
    return solve_ilp(instance, first=first, time_limit=settings.time_limit, known=known)


def _better(found: Decoding, exact: Decoding, tolerance: float) -> Decoding:
    """The better assignment and the lower bound of both."""
    best = max(found, exact, key=lambda each: each.primal)
    bound = min(found.bound, exact.bound)
    certificate = exact.certificate or bound - best.primal <= tolerance
    return replace(
        found,
        assignment=best.assignment,
        primal=best.primal,
        bound=max(bound, best.primal),
        certificate=certificate,
    )
