# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What L-BFGS does with long vectors, in as few passes over memory as there can be.

A vector of some 100,000 weights does not stay in a core's cache, so a pass costs what it reads. All inner products that one
iteration needs are taken in one pass, block by block; the direction, a linear combination of the same vectors, in another.
Every sum is taken in one order, whatever the machine.
"""

__all__ = ["add_multiples_into", "dot", "products_into"]

cdef Py_ssize_t BLOCK = 256  # elements of every vector that are worked on together: 2 KB


def dot(const double[::1] x not None, const double[::1] y not None):
    """x · y, finite only if x and y are.

    x, y (float64 [F]): two vectors.
    RETURNS (float): the inner product.
    """
    assert x.shape[0] == y.shape[0]
    cdef double result
    if x.shape[0] == 0:
        return 0.0
    with nogil:
        result = _dot(&x[0], &y[0], x.shape[0])
    return result


def products_into(
    double[:, ::1] out not None,
    const double[:, ::1] s not None,
    const double[:, ::1] y not None,
    Py_ssize_t rows,
    Py_ssize_t newest,
    const double[::1] g not None,
):
    """out[k] = s[k]·g, y[k]·g, s[k]·y[newest], y[k]·y[newest], y[k]·s[newest] for the first `rows` rows k.

    out (float64 [m, 5]): changed in place.
    s, y (float64 [m, F]): L-BFGS's pairs.
    rows (int): how many of them are in use.
    newest (int): the row that the last three are taken with.
    g (float64 [F]): the gradient.
    """
    assert s.shape[0] == y.shape[0] >= rows and s.shape[1] == y.shape[1] == g.shape[0]
    assert out.shape[0] >= rows and out.shape[1] == 5 and 0 <= newest < s.shape[0]
    cdef Py_ssize_t F = g.shape[0], k, low, size
    with nogil:
        for k in range(rows):
            out[k, 0] = out[k, 1] = out[k, 2] = out[k, 3] = out[k, 4] = 0.0
        low = 0
        while low < F:
            size = min(BLOCK, F - low)
            for k in range(rows):
                _add_products_into(&out[k, 0], &s[k, low], &y[k, low], &g[low], &y[newest, low], &s[newest, low], size)
            low += BLOCK


def add_multiples_into(
    double[::1] out not None,
    const double[:, ::1] s not None,
    const double[::1] s_factor not None,
    const double[:, ::1] y not None,
    const double[::1] y_factor not None,
    Py_ssize_t rows,
):
    """out += Σ s_factor[k] s[k] + y_factor[k] y[k] over the first `rows` rows k.

    out (float64 [F]): changed in place.
    s, y (float64 [m, F]): L-BFGS's pairs.
    s_factor, y_factor (float64 [m]): a number for each row.
    """
    assert s.shape[0] == y.shape[0] >= rows and s.shape[1] == y.shape[1] == out.shape[0]
    assert s_factor.shape[0] >= rows and y_factor.shape[0] >= rows
    cdef Py_ssize_t F = out.shape[0], k, low, size
    with nogil:
        low = 0
        while low < F:
            size = min(BLOCK, F - low)
            for k in range(rows):
                _add_two_into(&out[low], s_factor[k], &s[k, low], y_factor[k], &y[k, low], size)
            low += BLOCK


cdef double _dot(const double* x, const double* y, Py_ssize_t size) noexcept nogil:
    """Four chains of additions, since one waits for itself."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef Py_ssize_t i = 0
    while i + 4 <= size:
        a += x[i] * y[i]
        b += x[i + 1] * y[i + 1]
        c += x[i + 2] * y[i + 2]
        d += x[i + 3] * y[i + 3]
        i += 4
    while i < size:
        a += x[i] * y[i]
        i += 1
    return (a + b) + (c + d)


cdef void _add_products_into(
    double* out,
    const double* s,
    const double* y,
    const double* g,
    const double* new_y,
    const double* new_s,
    Py_ssize_t size,
) noexcept nogil:
    cdef double sg = 0.0, yg = 0.0, sy = 0.0, yy = 0.0, ys = 0.0
    cdef Py_ssize_t i
    for i in range(size):
        sg += s[i] * g[i]
        yg += y[i] * g[i]
        sy += s[i] * new_y[i]
        yy += y[i] * new_y[i]
        ys += y[i] * new_s[i]
    out[0] += sg
    out[1] += yg
    out[2] += sy
    out[3] += yy
    out[4] += ys


cdef void _add_two_into(
    double* out, double a, const double* x, double b, const double* y, Py_ssize_t size
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        out[i] += a * x[i] + b * y[i]
