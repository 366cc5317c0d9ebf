# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Four lanes: AVX2 and FMA."""

import numpy as np

from libc.math cimport INFINITY, exp, isfinite, log

__all__ = ["WIDTH", "Batch", "Chain", "Counts", "Workspace", "count", "log_partitions", "state_scores", "viterbi"]

include "recursion.pxi"
include "forward_backward.pxi"
include "viterbi.pxi"

WIDTH = LANES
