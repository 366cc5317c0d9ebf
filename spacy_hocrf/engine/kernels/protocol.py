"""What every build of the engine's kernels offers; the builds differ in width and in nothing else.

Nothing in a build checks an index, so what is called here has been checked before (`Problem`), and
is called with keywords, of which mypy checks the names and types.
"""

from typing import NamedTuple, NewType, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf import dispatch
from spacy_hocrf.engine import automaton as compiled
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.types import Expectations

__all__ = [
    "AskedSegments",
    "AutomatonViews",
    "BatchViews",
    "CountViews",
    "Edges",
    "EngineKernels",
    "Lost",
    "Memory",
    "SpanSearch",
    "Starts",
    "engine_kernels",
]

AutomatonViews = NewType("AutomatonViews", object)
BatchViews = NewType("BatchViews", object)
CountViews = NewType("CountViews", object)
Memory = NewType("Memory", object)
Lost = tuple[list[int], bool]
"""Sequences in which a value was lost, and whether some score is not finite."""

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class AskedSegments(NamedTuple):
    """m segments of D sequences by sequence and start, whose probabilities are to be found."""

    offsets: Numbers  # [D + 1] of each sequence
    segments: Numbers  # [m, 3] start, end and label
    probability: Floats  # [m] gets the answers; 0 stays where a sequence has no segmentation


class Starts(NamedTuple):
    """How probably a segment of each of n labels begins at each of N tokens, and how probably one has it."""

    labels: NDArray[np.int32]  # [n]
    chance: Floats  # [N, n] zeros, that become the probabilities
    # [N, n] the same; of a long sequence a little less, where a segment begins in another window
    cover: Floats


class Edges(NamedTuple):
    """alpha or beta at n boundaries of D sequences, each times e to the power of its scale.

    Of the second axis, 0 and 1 have alpha at the n boundaries up to the first and up to the last
    boundary of a sequence's own part, 2 and 3 beta at those from there on.
    """

    values: Floats  # [D, 4, n, P]
    scales: Floats  # [D, 4, n]


class SpanSearch(Protocol):
    """A search for probable spans: the question, and the spans found so far."""

    def found(self) -> tuple[Numbers, Floats]:
        """Sequence, start, end and rule, int64 [n, 4], in that order, and probability, float64 [n]."""
        ...


class EngineKernels(Protocol):
    """A build: views of what is read, the memory to work in, and the recurrences.

    `chosen`, int64 [n], are sequence numbers; LANES of them are processed side by side, in this
    order. `space` is "scaled" or, in the build `single` alone, "log". `edges` get alpha and beta
    where the own part of each sequence begins and ends. Arrays that are overwritten belong to all D
    sequences of the batch; those of other sequences than the chosen ones stay as they are.
    """

    WIDTH: int

    def Automaton(self, automaton: compiled.Automaton, least_tail: int) -> AutomatonViews: ...

    def Batch(self, problem: Problem) -> BatchViews: ...

    def Counts(self, expected: Expectations, log_weight: Floats | None) -> CountViews: ...

    def Workspace(self, fsa: AutomatonViews) -> Memory: ...

    def Probable(
        self,
        ws: Memory,
        least: float,
        rules: NDArray[np.int32],
        asked: AskedSegments | None,
        starts: Starts | None,
    ) -> SpanSearch: ...

    def log_partitions(
        self, ws: Memory, batch: BatchViews, chosen: Numbers, space: str, out: Floats
    ) -> Lost:
        """log Z into `out`, float64 [D]."""
        ...

    def count(
        self,
        ws: Memory,
        batch: BatchViews,
        counts: CountViews,
        chosen: Numbers,
        space: str,
        out: Floats,
        arc: Floats,
        body_length: Floats,
        edges: Edges | None,
    ) -> Lost:
        """log Z into `out`, float64 [D], and expected counts: those of tokens, rows and spans into
        `counts`, those of arcs, float64 [C], and of bodies by length, float64 [K, M], are added.
        """
        ...

    def state_scores(
        self,
        ws: Memory,
        batch: BatchViews,
        chosen: Numbers,
        space: str,
        log_alpha: Floats,
        log_beta: Floats,
    ) -> Lost:
        """Log alpha and log beta at every boundary, into float64 [N + D, P]."""
        ...

    def probable_spans(
        self,
        ws: Memory,
        batch: BatchViews,
        chosen: Numbers,
        space: str,
        probable: SpanSearch,
        out: Floats,
        rows: int,
        edges: Edges | None,
    ) -> Lost:
        """The probable spans into `probable`, and log Z into `out`, float64 [D].

        rows: number of tokens of a long sequence that are processed at a time; 0 for all. If above 0, every
            label has a limit, none has a tail, and there are no spans.
        """
        ...

    def viterbi(
        self,
        ws: Memory,
        batch: BatchViews,
        chosen: Numbers,
        segments: NDArray[np.int32],
        counts: Numbers,
        scores: Floats,
        edges: Edges | None,
    ) -> bool:
        """The best segments into `segments`, int32 [N, 3], the last one of a sequence first; how many,
        int64 [D]; the score, float64 [D]. RETURNS: whether some score is not finite.
        """
        ...


def engine_kernels(path: str) -> EngineKernels:
    """The engine's kernels of a build. path (str): one of `dispatch.PATHS`."""
    return cast(EngineKernels, dispatch.kernels(path))
