# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sequences side by side, as many as the instruction set has lanes for; setup.py compiles this for each.

With one lane it is for what more would not pay for, for values lost in scaled space, and for any compiler.
"""

include "build.pxi"

cdef extern from "processor.h":
    int runs_avx2()
    int runs_avx512()

__all__ += ["runs"]


def runs(path):
    """Can this processor run a build? path (str): one of dispatch.PATHS."""
    if path == "avx2":
        return bool(runs_avx2())
    return path != "avx512" or bool(runs_avx512())
