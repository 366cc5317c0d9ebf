"""Dual decomposition: the best assignment of a generalized higher-order CRF, with an upper bound
that may prove its optimality.

Every subproblem but the first has copies z of the cells that its patterns contain. With scores u, one for
each copy, and the first subproblem rewarded by -Σ u over the copies of a cell, the
sum of all subproblems' maxima is an upper bound of the optimum for every u (Qian and Liu, TACL 2
(2014) §2.2, equations 4 and 6). It is convex in u; where the subproblems agree it is the optimum. A
subgradient is z - y, y being the first subproblem's choice, and the first subproblem's assignments
are the primal ones.

Letters: V vertices, E cells, M vertex patterns, I cells of all patterns in sequence.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.ascent import ascend
from spacy_hocrf.graph.cells import add_up
from spacy_hocrf.graph.decomposition import decompose
from spacy_hocrf.graph.elimination import best_by_elimination
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.multipliers import Multipliers, Steps
from spacy_hocrf.graph.result import Decoding
from spacy_hocrf.graph.search import LocalSearch
from spacy_hocrf.graph.settings import HYBRID, DualSettings
from spacy_hocrf.graph.subproblems import Decomposition, FirstSubproblem, ForestSubproblem

__all__ = ["dual_decompose"]

DEFAULT = DualSettings()

# iterations after which a better primal is searched for, in addition to the last one
SEARCH_AFTER = (10, 40, 150)
# steps of a local search; the last one has FINAL times as many
MIN_STEPS, STEPS_PER_VERTEX, MAX_STEPS = 500, 20, 10_000
FINAL = 3
TRIES = 64  # patterns tried by the last search with a given first subproblem
ROUNDING = 1e-9  # relative rounding error of bound and primal


def dual_decompose(
    instance: GraphInstance,
    settings: DualSettings = DEFAULT,
    *,
    first: FirstSubproblem | None = None,
    edges: NDArray[np.int64] | None = None,
    most_entries: int = 2**18,
    ilp_seconds: float = 0.0,
) -> Decoding:
    """Find the best assignment possible, and an upper bound on the score of all.

    instance (GraphInstance): scores of V vertices' states, and patterns.
    settings (DualSettings): kind of subproblems, steps and searches.
    first (Optional[FirstSubproblem]): the structure, whose scores are added to those of the
        instance; None for a forest.
    edges (Optional[int64 [n, 2]]): the forest's pairs of vertices, empty for independent
        vertices; None chooses a spanning forest of the heaviest pairs.
    most_entries (int): "hybrid" decodes graphs that are nearly trees exactly, in one iteration: graphs whose
        vertices can be eliminated one by one with tables of at most this many entries in all. 0 for never;
        ignored if `first` or `edges` are given.
    ilp_seconds (float): time limit of an integer linear program, which solves exactly what has no
        certificate, unless `first` is given (extra `ilp`). 0 for none.
    RETURNS (Decoding): the assignment; the first subproblem, if given, has kept the corresponding solution.
    RAISES (ValueError): H086 for edges that do not form a forest, H089 for a first subproblem of another
        graph, H090 for an integer linear program without SciPy.
    """
    if first is not None and not np.array_equal(first.offsets, instance.offsets):
        raise ValueError(
            Errors.H089.format(found=int(first.offsets[-1]), expected=int(instance.offsets[-1]))
        )
    if settings.kind == HYBRID and first is None and edges is None:
        solved = best_by_elimination(instance, most_entries)
        if solved is not None:
            return _exact(instance, *solved)
    parts = decompose(instance, settings.kind, first, edges)
    master = _Master(instance, settings, parts, is_forest=first is None)
    master.descend()
    decoding = master.decoding()
    if first is not None or decoding.certificate or ilp_seconds <= 0:
        return decoding
    from spacy_hocrf.graph.ilp import solve_ilp

    assert isinstance(master.first, ForestSubproblem)
    return solve_ilp(instance, decoding, master.first.losses(master.best_rewards), ilp_seconds)


class _Outside(NamedTuple):
    """The patterns that the first subproblem does not have."""

    offsets: NDArray[np.int64]  # [M' + 1]
    vertices: NDArray[np.int32]  # [I']
    states: NDArray[np.int32]  # [I']
    weights: NDArray[np.float64]  # [M']

    @classmethod
    def of(cls, instance: GraphInstance, patterns: NDArray[np.int64]) -> "_Outside":
        sizes = np.diff(instance.pattern_offsets)[patterns]
        members = ranges(instance.pattern_offsets[patterns], sizes)
        return cls(
            offsets_of(sizes),
            instance.vertices[members],
            instance.states[members],
            instance.weights[patterns],
        )


class _Master:
    """The best bound and the best assignment so far, and their improvement.

    instance (GraphInstance): the graph to decode.
    settings (DualSettings): steps and searches.
    decomposition (Decomposition): the subproblems.
    is_forest (bool): is the first subproblem a forest? Then the instance has all scores.
    """

    def __init__(
        self,
        instance: GraphInstance,
        settings: DualSettings,
        decomposition: Decomposition,
        *,
        is_forest: bool,
    ) -> None:
        self.first = decomposition.first
        self.primal, self.bound = -np.inf, np.inf
        self.best_rewards = instance.unary.copy()  # [E] rewards at the lowest bound
        self._instance = instance
        self._settings = settings
        self._is_forest = is_forest
        self._assignment = np.zeros(instance.n_vertices, dtype=np.int32)  # of the best primal
        self._constant = decomposition.constant
        self._outside = _Outside.of(instance, decomposition.outside)
        self._multipliers = Multipliers(instance, decomposition.subproblems)
        self._latest: bytes | None = None  # the first subproblem's last assignment
        self._searched = -np.inf  # primal from which the last search began
        self._local: LocalSearch | None = None
        self._bounds: list[float] = []
        self._primals: list[float] = []

    @property
    def is_certain(self) -> bool:
        """Is the best assignment proved optimal?"""
        return bool(self.bound - self.primal <= self._settings.tolerance)

    def decoding(self) -> Decoding:
        """Return the best assignment so far, with its bound and the history of both."""
        lower = self.primal - ROUNDING * (1.0 + abs(self.primal))
        assert self.bound >= lower, (self.bound, self.primal)
        return Decoding(
            self._assignment,
            self.primal,
            max(self.bound, self.primal),
            self.is_certain,
            np.array(self._bounds),
            np.array(self._primals),
        )

    def descend(self) -> None:
        """Take subgradient steps until there is a certificate, or no iteration is left."""
        settings = self._settings
        steps = Steps(settings.step_rule, self._outside.weights)
        for iteration in range(1, settings.max_iterations + 1):
            is_last = iteration == settings.max_iterations
            bound, assignment = self._evaluate()
            if bound < self.bound:
                self.bound = bound
                np.copyto(self.best_rewards, self._multipliers.rewards)
            self._bounds.append(self.bound)
            self._primals.append(self.primal)
            if settings.searches and not self.is_certain and (is_last or iteration in SEARCH_AFTER):
                self._search(last=is_last)
            disagreements = self._multipliers.disagreements(assignment)
            if self.is_certain or not disagreements:
                break
            self._multipliers.step(steps.length(bound))

    def _evaluate(self) -> tuple[float, NDArray[np.int32]]:
        """Return the bound at the multipliers, and the first subproblem's assignment; update the primal
        if the assignment is new.
        """
        value, assignment = self.first.maximise(self._multipliers.rewards)
        bound = self._multipliers.bound(value - self._constant)
        latest = assignment.tobytes()
        if latest != self._latest:
            self._latest = latest
            primal = self._score(value - self.first.slack, assignment)
            if primal > self.primal + ROUNDING * (1.0 + abs(primal)):
                # the score of a graph can be computed without the rounding errors of the rewards
                self.primal = self._instance.score(assignment) if self._is_forest else primal
                self._assignment = assignment
                self.first.keep()
        return bound, assignment

    def _score(self, value: float, assignment: NDArray[np.int32]) -> float:
        """Return the score of an assignment, given its value in the first subproblem under the rewards."""
        instance, rewards = self._instance, self._multipliers.rewards
        on = instance.offsets[:-1] + assignment
        rewarded = float((rewards[on] - instance.unary[on]).sum())
        return value - rewarded + add_up(assignment, *self._outside)

    def _search(self, *, last: bool) -> None:
        """Search near the best assignment, once for each one, and at the end once more."""
        if self.primal <= self._searched and not last:
            return
        instance, assignment = self._instance, self._assignment.copy()
        if self._is_forest:
            primal = self._search_locally(assignment, last)
        else:
            tries = TRIES if last else 0
            primal, assignment = ascend(instance, self.first, assignment, self.primal, tries)
        if primal > self.primal:
            self.primal, self._assignment = primal, assignment
        self._searched = self.primal

    def _search_locally(self, assignment: NDArray[np.int32], last: bool) -> float:
        """Improve an assignment in place. RETURNS (float): its score."""
        instance = self._instance
        if self._local is None:
            self._local = LocalSearch(
                instance.offsets,
                instance.unary,
                instance.pattern_offsets,
                instance.cells,
                instance.weights,
            )
        steps = (MIN_STEPS + STEPS_PER_VERTEX * instance.n_vertices) * (FINAL if last else 1)
        self._local.improve(assignment, min(steps, MAX_STEPS), len(self._bounds))
        return instance.score(assignment)


def _exact(instance: GraphInstance, value: float, assignment: NDArray[np.int32]) -> Decoding:
    """Return the result of elimination, as if it were the first iteration."""
    primal = instance.score(assignment)
    assert abs(value - primal) <= ROUNDING * (1.0 + abs(primal)), (value, primal)
    bound = max(value, primal)
    return Decoding(assignment, primal, bound, True, np.array([bound]), np.array([primal]))
