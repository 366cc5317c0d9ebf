# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What L-BFGS does with long vectors, in as few passes over memory as there can be.

A vector of some 100,000 weights does not stay in a core's cache, so a pass costs what it reads: what is done to a vector and the
inner product that is asked for next are one pass, block by block. Every sum is taken in one order, whatever the machine.
"""

__all__ = ["add_into", "divide_into", "dot", "remember_into", "update_curvature"]

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


def add_into(double[::1] x not None, double factor, const double[::1] y not None, const double[::1] z not None):
    """x += factor · y.

    x (float64 [F]): changed in place.
    RETURNS (float): z · x, of the new x.
    """
    assert x.shape[0] == y.shape[0] == z.shape[0]
    cdef double product = 0.0
    cdef Py_ssize_t low = 0, size
    with nogil:
        while low < x.shape[0]:
            size = min(BLOCK, x.shape[0] - low)
            _add_into(&x[low], factor, &y[low], size)
            product += _dot(&z[low], &x[low], size)
            low += size
    return product


def divide_into(double[::1] x not None, const double[::1] y not None, const double[::1] z not None):
    """x /= y, element by element.

    x (float64 [F]): changed in place.
    RETURNS (float): z · x, of the new x.
    """
    assert x.shape[0] == y.shape[0] == z.shape[0]
    cdef double product = 0.0
    cdef Py_ssize_t low = 0, size
    with nogil:
        while low < x.shape[0]:
            size = min(BLOCK, x.shape[0] - low)
            _divide_into(&x[low], &y[low], size)
            product += _dot(&z[low], &x[low], size)
            low += size
    return product


def remember_into(
    double[::1] s not None,
    double[::1] y not None,
    double step,
    const double[::1] direction not None,
    const double[::1] g not None,
    const double[::1] previous_g not None,
):
    """s = step · direction, y = g - previous_g.

    s, y (float64 [F]): overwritten.
    RETURNS (float): y · y.
    """
    assert s.shape[0] == y.shape[0] == direction.shape[0] == g.shape[0] == previous_g.shape[0]
    cdef double product = 0.0
    cdef Py_ssize_t low = 0, size
    with nogil:
        while low < s.shape[0]:
            size = min(BLOCK, s.shape[0] - low)
            _scale(&s[low], step, &direction[low], size)
            _subtract(&y[low], &g[low], &previous_g[low], size)
            product += _dot(&y[low], &y[low], size)
            low += size
    return product


def update_curvature(double[::1] e not None, const double[::1] s not None, const double[::1] y not None, double sy, double least):
    """The diagonal E of an estimate of the Hessian, after a step s along which the gradient changed by y.

        E' = κ E + y² / s·y - κ (E s)² / s·Es,   κ = y·E⁻¹y / s·y

    which is the diagonal of the BFGS update of κE, the estimate so far made as long as y is (Gilbert and Lemaréchal, Mathematical
    Programming 45 (1989), §4.2).

    e (float64 [F]): positive; changed in place.
    sy (float): s · y, positive.
    least (float): smallest element that E' may have; rounding may make less.
    """
    assert e.shape[0] == s.shape[0] == y.shape[0]
    cdef double ses = 0.0, yey = 0.0
    cdef Py_ssize_t low = 0, size
    if e.shape[0] == 0:
        return
    with nogil:
        while low < e.shape[0]:
            size = min(BLOCK, e.shape[0] - low)
            _weigh(&ses, &yey, &e[low], &s[low], &y[low], size)
            low += size
        _update(&e[0], &s[0], &y[0], yey / sy, 1.0 / sy, yey / (sy * ses), least, e.shape[0])


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


cdef void _add_into(double* x, double factor, const double* y, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] += factor * y[i]


cdef void _divide_into(double* x, const double* y, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] /= y[i]


cdef void _scale(double* x, double factor, const double* y, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] = factor * y[i]


cdef void _subtract(double* x, const double* y, const double* z, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] = y[i] - z[i]


cdef void _weigh(double* ses, double* yey, const double* e, const double* s, const double* y, Py_ssize_t size) noexcept nogil:
    """Add Σ s² e and Σ y² / e."""
    cdef double a = 0.0, b = 0.0
    cdef Py_ssize_t i
    for i in range(size):
        a += s[i] * s[i] * e[i]
        b += y[i] * y[i] / e[i]
    ses[0] += a
    yey[0] += b


cdef void _update(
    double* e, const double* s, const double* y, double kept, double gained, double lost, double least, Py_ssize_t size
) noexcept nogil:
    cdef Py_ssize_t i
    cdef double es
    for i in range(size):
        es = e[i] * s[i]
        e[i] = max(least, kept * e[i] + gained * y[i] * y[i] - lost * es * es)
