# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One sequence at a time: for what lanes would not pay for, for values lost in scaled space, and for any compiler."""

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
    "runs",
    "solve_into",
    "state_scores",
    "viterbi",
]

cdef extern from "processor.h":
    int runs_avx2()
    int runs_avx512()

include "recursion.pxi"
include "forward_backward.pxi"
include "vectors.pxi"
include "viterbi.pxi"

WIDTH = LANES


def runs(path):
    """Can this processor run a build? path (str): one of dispatch.PATHS."""
    if path == "avx2":
        return bool(runs_avx2())
    return path != "avx512" or bool(runs_avx512())
