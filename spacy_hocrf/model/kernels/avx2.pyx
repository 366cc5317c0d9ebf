# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""AVX2 and FMA."""

import numpy as np

__all__ = ["add_cell_counts_into", "score_cells_into"]

include "scores.pxi"
