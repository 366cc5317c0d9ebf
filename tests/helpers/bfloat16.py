"""Numbers with the range of single precision and 8 significant bits, as the pairs of L-BFGS are kept."""

import numpy as np


def bits_of(values):
    """uint16 of the nearest ones, of two the even one."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float32).astype(float))
    nearest = np.ldexp(np.rint(mantissa * 256) / 256, exponent)
    return (nearest.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def values_of(bits):
    """float64 of some bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(float)


def rounded(values):
    """The nearest ones as float64."""
    return values_of(bits_of(values))
