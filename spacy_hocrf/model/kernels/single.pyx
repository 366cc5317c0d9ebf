# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One number at a time, or whatever the compiler makes of it: any platform."""

import numpy as np

__all__ = ["add_cell_counts_into", "add_cell_scores_into"]

include "scores.pxi"
