# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Recurrences over sequences side by side, one per lane; setup.py compiles this for each instruction set.

The build with one lane serves single sequences, log space, and compilers without vector types.
"""

include "build.pxi"

cdef extern from "processor.h":
    int runs_avx2()
    int runs_avx512()

__all__ += ["runs"]


def runs(path):
    """Whether this processor can run the build named `path` (str), one of dispatch.PATHS."""
    if path == "avx2":
        return bool(runs_avx2())
    return path != "avx512" or bool(runs_avx512())
