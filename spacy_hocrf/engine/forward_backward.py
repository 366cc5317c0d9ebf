"""log Z, expected counts and state scores of a batch, and which kernels run on which sequences.

Sequences of similar length run side by side in the kernels of the active instruction set. Sequences
that would be alone in a group, very long ones, and those in which scaled space has lost a non-zero value run
one at a time; the last in log space.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf import dispatch
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.kernels.lattice import Graph
from spacy_hocrf.engine.kernels.protocol import EngineKernels, Lost, Memory, engine_kernels
from spacy_hocrf.engine.kernels.trees import add_to_suffixes
from spacy_hocrf.engine.problem import Constants, Problem, constants_of
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Expectations, Potentials, Scratch

__all__ = ["Buffers", "expectations", "log_partition", "log_state_scores", "plan", "run_kernels"]

SPACES = {"auto": (True, True), "scaled": (True, False), "log": (False, True)}
MAX_LEFT_OVER = 1
"""Up to this many left-over sequences run one at a time; more are faster in a group, however small it
is.
"""

MIN_TAIL = 16
"""Number of possible lengths of a label, beyond those with length scores, from which they are summed
together instead of one by one.
"""

SINGLE_BYTES = 2**26
"""Bytes of forward states, when side by side, above which sequences run one at a
time.
"""

Sequences = NDArray[np.int64]  # [n] their numbers
KernelRun = Callable[[Memory, EngineKernels, Sequences, str], Lost]


class Buffers(Scratch):
    """The workspaces of one thread and one automaton, reused from call to call.

    automaton (Automaton): states and arcs.
    """

    def __init__(self, automaton: Automaton) -> None:
        super().__init__()
        self.automaton = automaton
        self._workspaces: dict[str, Memory] = {}
        self._constants: tuple[object, object, object, Constants] | None = None

    def workspace(self, path: str) -> Memory:
        """Return the workspace for the kernels of a build."""
        if path not in self._workspaces:
            module = engine_kernels(path)
            views = module.Automaton(automaton=self.automaton, least_tail=MIN_TAIL)
            self._workspaces[path] = module.Workspace(fsa=views)
        return self._workspaces[path]

    @cached_property
    def graph(self) -> Graph:
        """States and arcs in the form that lattices read."""
        return Graph(self.automaton)

    def constants(self, potentials: Potentials) -> Constants:
        """Return the constants of scores, cached for the same read-only scores as in the last call."""
        const, pattern = potentials.const, potentials.length_pattern
        length = potentials.length_score
        cached = self._constants
        if cached and cached[0] is const and cached[1] is length and cached[2] is pattern:
            return cached[3]
        constants = constants_of(potentials, self.automaton)
        if not const.flags.writeable and not length.flags.writeable:
            self._constants = const, length, pattern, constants
        return constants


def log_partition(
    potentials: Potentials,
    automaton: Automaton,
    *,
    space: str = "auto",
    initial: NDArray[np.float64] | None = None,
    final: NDArray[np.float64] | None = None,
    among: Sequences | None = None,
    buffers: Buffers | None = None,
) -> NDArray[np.float64]:
    """Return the log of the total score of all allowed segmentations (Nguyen et al., JMLR 15, §2.3.1).

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns.
    space (str): "scaled", "log", or "auto", which uses scaled probabilities and repeats a sequence
        in log space if a non-zero value was lost. In "scaled" such a sequence gets nan.
    initial (float64 [D, P]): log alpha before the first token; by default all mass is in the empty
        history.
    final (float64 [D, P]): log beta after the last token; by default 0.
    among (Optional[int64 [n]]): numbers of the sequences to compute; None for all.
    buffers (Optional[Buffers]): buffers of this thread and automaton, for reuse.
    RETURNS (float64 [D]): log Z in nats; 0.0 for empty sequences and those that are not computed,
        -inf if no segmentation is allowed.
    RAISES (ValueError): H004, H005, H006, H009, H010 or H138 for potentials that do not fit.
    """
    buffers = buffers or Buffers(automaton)
    problem = Problem(potentials, automaton, initial, final, buffers.constants)
    result = np.zeros(len(problem.lengths))

    def run(ws: Memory, module: EngineKernels, chosen: Sequences, space: str) -> Lost:
        batch = module.Batch(problem)
        return module.log_partitions(ws=ws, batch=batch, chosen=chosen, space=space, out=result)

    result[run_kernels(run, problem, buffers, space, among)] = np.nan
    return result


def expectations(
    potentials: Potentials,
    automaton: Automaton,
    *,
    space: str = "auto",
    buffers: Buffers | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Expectations:
    """Return the expected number of times that each entry of the potentials fires (Nguyen et al., JMLR 15,
    §2.3.2).

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns.
    space (str): as in `log_partition`; a sequence that gets nan in "scaled" has no meaningful
        counts.
    buffers (Optional[Buffers]): buffers of this thread and automaton, for reuse: the next call
        overwrites the counts per token and `Expectations.row`.
    weights (Optional[float64 [D]]): factor of the counts of each sequence, 0 or more; None
        for 1.
    RETURNS (Expectations): log Z, and for each const, dense entry, row, length and span its
        expected count, which is the derivative of Σ weight · log Z with respect to it. A span's is
        the probability of that segment after that history. Sequences without an allowed segmentation
        contribute nothing.
    RAISES (ValueError): H139 for weights of another extent or below 0, else as `log_partition`.
    """
    buffers = buffers or Buffers(automaton)
    problem = Problem(potentials, automaton)
    arc, body_length = np.zeros(len(automaton.arcs)), np.zeros(problem.body_length.shape)
    extents = potentials.token.shape
    expected = Expectations(
        log_partition=np.zeros(len(problem.lengths)),
        const=np.zeros(0),
        start=None if potentials.start is None else buffers.array("start counts", extents),
        end=None if potentials.end is None else buffers.array("end counts", extents),
        token=buffers.array("token counts", extents),
        inner=None if potentials.inner is None else np.zeros(extents),  # none in a CRF
        row=buffers.zeros("row counts", potentials.row_score.shape),
        length=np.zeros(potentials.length_score.shape),
        span=np.zeros(len(potentials.span_score)),
    )
    log_weight = None
    if weights is not None:
        if np.shape(weights) != problem.lengths.shape or not np.all(np.asarray(weights) >= 0):
            expected_weights = f"{len(problem.lengths)} sequences, each with a weight of 0 or more"
            raise ValueError(Errors.H139.format(found=f"{weights=}", expected=expected_weights))
        with np.errstate(divide="ignore"):  # log 0
            log_weight = np.log(weights)

    def run(ws: Memory, module: EngineKernels, chosen: Sequences, space: str) -> Lost:
        return module.count(
            ws=ws,
            batch=module.Batch(problem),
            counts=module.Counts(expected, log_weight),
            chosen=chosen,
            space=space,
            out=expected.log_partition,
            arc=arc,
            body_length=body_length,
            edges=None,
        )

    expected.log_partition[run_kernels(run, problem, buffers, space)] = np.nan
    add_to_suffixes(arc[:, None], automaton.arc_suffix)
    add_to_suffixes(body_length, automaton.body_suffix)
    const = arc.reshape(automaton.copies, -1).sum(axis=0)[automaton.pattern_arc]
    for row, z in enumerate(potentials.length_pattern):
        if automaton.pattern_body[z] >= 0:
            expected.length[row] = body_length[automaton.pattern_body[z]]
        else:
            expected.length[row, 0] = const[z]
    return replace(expected, const=const)


def log_state_scores(
    potentials: Potentials,
    automaton: Automaton,
    *,
    space: str = "auto",
    buffers: Buffers | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log alpha and log beta of every state at every boundary of every sequence (Nguyen et al.,
    JMLR 15, §2.3).

    potentials (Potentials): log potentials of D sequences with N tokens.
    automaton (Automaton): the arcs of the same Z patterns, P states.
    space (str): as in `log_partition`.
    buffers (Optional[Buffers]): buffers of this thread and automaton, for reuse.
    RETURNS (tuple[float64 [N + D, P], float64 [N + D, P]]): sequence i has rows offsets[i] + i to
        offsets[i + 1] + i, one more than tokens. Where log alpha is -inf, log beta may be -inf too,
        whatever its true value.
    RAISES (ValueError): as `log_partition`.
    """
    problem = Problem(potentials, automaton)
    n_boundaries = len(potentials.allowed) + len(problem.lengths)
    log_alpha = np.full((n_boundaries, len(automaton.states)), -np.inf)
    log_beta = log_alpha.copy()

    def run(ws: Memory, module: EngineKernels, chosen: Sequences, space: str) -> Lost:
        return module.state_scores(
            ws=ws,
            batch=module.Batch(problem),
            chosen=chosen,
            space=space,
            log_alpha=log_alpha,
            log_beta=log_beta,
        )

    run_kernels(run, problem, buffers or Buffers(automaton), space)
    return log_alpha, log_beta


def run_kernels(
    run: KernelRun, problem: Problem, buffers: Buffers, space: str, among: Sequences | None = None
) -> list[int]:
    """Run a kernel on all sequences, or `among` some. RETURNS (list[int]): sequences in which a value was
    lost for good.
    """
    if space not in SPACES:
        raise ValueError(Errors.H010.format(found=space, expected=", ".join(SPACES)))
    scaled, logs = SPACES[space]
    lost = list(range(len(problem.lengths))) if among is None else among.tolist()
    if scaled and problem.scalable:
        lost = []
        for path, planned in plan(problem):
            chosen = planned if among is None else planned[np.isin(planned, among)]
            workspace = buffers.workspace(path)
            lost_here, not_finite = run(workspace, engine_kernels(path), chosen, "scaled")
            lost += lost_here
            if not_finite:
                problem.check_tokens()
    if logs and lost:
        workspace, numbers = buffers.workspace("single"), np.array(lost, dtype=np.int64)
        _, not_finite = run(workspace, engine_kernels("single"), numbers, "log")
        if not_finite:
            problem.check_tokens()
        lost = []
    return lost


def plan(problem: Problem) -> list[tuple[str, NDArray[np.int64]]]:
    """Plan which sequences run in which build, in what order: groups of similar length, and single
    ones.

    RETURNS (list[tuple[str, int64 [n]]]): build and sequence numbers; all but the last group of a
        build are full.
    """
    path = dispatch.active()
    if path in problem.plans:
        return problem.plans[path]
    if len(problem.lengths) == 1:
        return [("single", np.zeros(1, dtype=np.int64))]
    order = np.argsort(-problem.lengths, kind="stable")
    width = engine_kernels(path).WIDTH
    row = (len(problem.automaton.states) + len(problem.automaton.open_target)) * 8 * width
    large = int(np.searchsorted(-problem.lengths[order] * row, -SINGLE_BYTES, side="right"))
    left_over = (len(order) - large) % width
    together = len(order) - (left_over if left_over <= MAX_LEFT_OVER else 0)
    groups = [
        (path, order[large:together]),
        ("single", np.concatenate([order[:large], order[together:]])),
    ]
    problem.plans[path] = [(name, chosen) for name, chosen in groups if len(chosen)]
    return problem.plans[path]
