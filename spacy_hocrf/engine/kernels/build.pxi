# The parts of every build of the engine's kernels, whatever its number of lanes.

import numpy as np

from libc.math cimport INFINITY, exp, isfinite, log

__all__ = [
    "WIDTH",
    "Automaton",
    "Batch",
    "Counts",
    "Probable",
    "Workspace",
    "combine_into",
    "count",
    "dot",
    "log_partitions",
    "move_into",
    "penalise_into",
    "probable_spans",
    "remember_into",
    "solve_into",
    "state_scores",
    "viterbi",
]

include "semiring.pxi"
include "views.pxi"
include "workspace.pxi"
include "load.pxi"
include "lift.pxi"
include "lost.pxi"
include "segments.pxi"
include "forward.pxi"
include "enter.pxi"
include "leave.pxi"
include "tails.pxi"
include "backward.pxi"
include "open.pxi"
include "arcs.pxi"
include "rests.pxi"
include "counts.pxi"
include "edges.pxi"
include "inference.pxi"
include "probable.pxi"
include "probable_segments.pxi"
include "probable_runs.pxi"
include "windows.pxi"
include "viterbi.pxi"
include "products.pxi"
include "vectors.pxi"

WIDTH = LANES
