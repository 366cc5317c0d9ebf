# What every build of these kernels is made of, whatever its width.

import numpy as np

from libc.math cimport INFINITY, exp, isfinite, log

__all__ = [
    "WIDTH",
    "Batch",
    "Chain",
    "Counts",
    "Workspace",
    "combine_into",
    "count",
    "dot",
    "log_partitions",
    "move_into",
    "penalise_into",
    "remember_into",
    "solve_into",
    "state_scores",
    "viterbi",
]

include "recursion.pxi"
include "forward_backward.pxi"
include "vectors.pxi"
include "viterbi.pxi"

WIDTH = LANES
