# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Whatever vectors the compiler makes of it; setup.py compiles this for each instruction set."""

import numpy as np

__all__ = ["add_cell_counts_into", "add_cell_scores_into", "add_observed_scores_into"]

include "scores.pxi"
include "observed.pxi"
