# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Eight lanes: AVX-512."""

include "build.pxi"
