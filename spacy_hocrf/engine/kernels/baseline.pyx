# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Two lanes: SSE2, which every x86-64 has, or NEON."""

include "build.pxi"
