# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Scores of observations, and gradients from counts; setup.py compiles this for each instruction set."""

import numpy as np

__all__ = ["add_cell_counts_into", "add_cell_scores_into", "add_observed_scores_into"]

include "scores.pxi"
include "observed.pxi"
