# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Four lanes: AVX2 and FMA."""

include "build.pxi"
