"""Products of binary variables as quadratic forms with extra variables (Qian and Liu, TACL 2 (2014)
appendix A, equations 7 to 9).

Each extra variable u contributes max over u in {0, 1} of u · (slope Σ x_i - threshold). With K
variables x:

    (7)  Π x_i                            one extra variable,  slope 1, threshold K - 1
    (8)  Σ_{i<j} x_i x_j - Π x_i, K = 3   one extra variable,  slope 1, threshold 1
    (9)  Σ_{i<j} x_i x_j - Π x_i, K > 3   one with slope 2 and threshold 3, and K - 4 with slope 1 and thresholds 3, 4, …, K - 2
"""

from typing import NamedTuple

__all__ = ["Extra", "pairs_less_product", "product"]


class Extra(NamedTuple):
    """One extra variable."""

    slope: int
    threshold: int


def product(size: int) -> tuple[Extra, ...]:
    """Π x_i of this many variables, equation 7; at least 2."""
    return (Extra(1, size - 1),)


def pairs_less_product(size: int) -> tuple[Extra, ...]:
    """Σ_{i<j} x_i x_j - Π x_i of this many variables, equations 8 and 9; at least 3."""
    if size == 3:
        return (Extra(1, 1),)
    return (Extra(2, 3), *(Extra(1, j + 2) for j in range(1, size - 3)))
