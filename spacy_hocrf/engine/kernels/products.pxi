# Sums, products and updates of one block or chunk of vectors; vectors.pxi loops over whole vectors.

ctypedef unsigned short half  # the bits of a bfloat16 number

cdef extern from "lanes.h" nogil:
    lanes widen(const half* x)
    double total(lanes x)
    double widened(half x)
    half narrowed(double x)

cdef extern from *:
    """
    typedef double *__restrict hocrf_own;
    typedef unsigned short *__restrict hocrf_own_halves;
    """
    # pointers without aliases, so that the compiler can vectorise loops that write through them
    ctypedef double* own "hocrf_own"
    ctypedef half* own_halves "hocrf_own_halves"

cdef enum:
    BLOCK = 2048  # elements of a block, chosen so that the block of all vectors and pairs stays in the cache

cdef struct Pairs:
    half* s
    half* y
    Py_ssize_t blocks, capacity  # K and m
    const int* rows  # the rows in use, oldest first
    Py_ssize_t count


cdef Pairs _pairs(half[:, :, ::1] s, half[:, :, ::1] y, const int[::1] rows):
    cdef Pairs pairs
    assert s.shape[0] == y.shape[0] and s.shape[1] == y.shape[1] and s.shape[2] == y.shape[2] == BLOCK
    pairs.s = &s[0, 0, 0] if s.shape[0] else NULL
    pairs.y = &y[0, 0, 0] if y.shape[0] else NULL
    pairs.blocks, pairs.capacity = s.shape[0], s.shape[1]
    pairs.rows = &rows[0] if rows.shape[0] else NULL
    pairs.count = rows.shape[0]
    return pairs


cdef inline half* _row(Pairs pairs, half* arrays, Py_ssize_t block, Py_ssize_t row) noexcept nogil:
    """Pointer to a row of a block of pairs.s or pairs.y."""
    return arrays + (block * pairs.capacity + row) * BLOCK


cdef double _dot(const double* x, const double* y, Py_ssize_t size) noexcept nogil:
    """x · y with four sums side by side, since each addition to a sum waits for the one before."""
    cdef lanes a = splat(0.0), b = a, c = a, d = a
    cdef Py_ssize_t i = 0
    cdef double rest = 0.0
    while i + 4 * LANES <= size:
        a += (<const lanes*> (x + i))[0] * (<const lanes*> (y + i))[0]
        b += (<const lanes*> (x + i + LANES))[0] * (<const lanes*> (y + i + LANES))[0]
        c += (<const lanes*> (x + i + 2 * LANES))[0] * (<const lanes*> (y + i + 2 * LANES))[0]
        d += (<const lanes*> (x + i + 3 * LANES))[0] * (<const lanes*> (y + i + 3 * LANES))[0]
        i += 4 * LANES
    while i < size:
        rest += x[i] * y[i]
        i += 1
    return total((a + b) + (c + d)) + rest


cdef double _product(const half* x, const double* y, Py_ssize_t size) noexcept nogil:
    """x · y of bfloat16 and float64 numbers, in double precision."""
    cdef lanes a = splat(0.0), b = a, c = a, d = a
    cdef Py_ssize_t i = 0
    cdef double rest = 0.0
    while i + 4 * LANES <= size:
        a += widen(x + i) * (<const lanes*> (y + i))[0]
        b += widen(x + i + LANES) * (<const lanes*> (y + i + LANES))[0]
        c += widen(x + i + 2 * LANES) * (<const lanes*> (y + i + 2 * LANES))[0]
        d += widen(x + i + 3 * LANES) * (<const lanes*> (y + i + 3 * LANES))[0]
        i += 4 * LANES
    while i < size:
        rest += widened(x[i]) * y[i]
        i += 1
    return total((a + b) + (c + d)) + rest


cdef void _add_products(
    double* sums, const half* s, const double* g, const double* y, Py_ssize_t size
) noexcept nogil:
    """Add s · g to sums[0] and s · y to sums[1]."""
    cdef lanes a = splat(0.0), b = a, c = a, d = a, x
    cdef Py_ssize_t i = 0
    cdef double sg = 0.0, sy = 0.0
    while i + 2 * LANES <= size:
        x = widen(s + i)
        a += x * (<const lanes*> (g + i))[0]
        b += x * (<const lanes*> (y + i))[0]
        x = widen(s + i + LANES)
        c += x * (<const lanes*> (g + i + LANES))[0]
        d += x * (<const lanes*> (y + i + LANES))[0]
        i += 2 * LANES
    while i < size:
        sg += widened(s[i]) * g[i]
        sy += widened(s[i]) * y[i]
        i += 1
    sums[0] += total(a + c) + sg
    sums[1] += total(b + d) + sy


cdef void _multiply_pair(
    double* sums,
    Pairs pairs,
    Py_ssize_t block,
    Py_ssize_t newest,
    const double* g,
    const double[:, ::1] e,
    Py_ssize_t size,
) noexcept nogil:
    """Add y·y, Σ e s² and Σ y²/e of the newest pair for each diagonal, then s_i·g and s_i·y for each pair."""
    cdef double y[BLOCK]
    cdef Py_ssize_t i
    _widen_into(y, _row(pairs, pairs.y, block, newest), size)
    for i in range(e.shape[0]):
        _weigh(sums, _row(pairs, pairs.s, block, newest), y, &e[i, block * BLOCK], size)
        sums += 3
    for i in range(pairs.count):
        _add_products(sums + 2 * i, _row(pairs, pairs.s, block, pairs.rows[i]), g, y, size)


cdef void _weigh(
    double* sums, const half* s, const double* y, const double* e, Py_ssize_t size
) noexcept nogil:
    """Add y · y to sums[0], Σ e s² to sums[1] and Σ y² / e to sums[2]."""
    cdef lanes yy = splat(0.0), ses = yy, yey = yy, x, z, w
    cdef Py_ssize_t i = 0
    cdef double rest
    while i + LANES <= size:
        x, z, w = widen(s + i), (<const lanes*> (y + i))[0], (<const lanes*> (e + i))[0]
        z = z * z
        yy += z
        ses += x * x * w
        yey += z / w
        i += LANES
    sums[0] += total(yy)
    sums[1] += total(ses)
    sums[2] += total(yey)
    while i < size:
        rest = y[i] * y[i]
        sums[0] += rest
        sums[1] += widened(s[i]) * widened(s[i]) * e[i]
        sums[2] += rest / e[i]
        i += 1


cdef void _make_pair(
    Pairs pairs,
    Py_ssize_t block,
    Py_ssize_t row,
    double step,
    const double* direction,
    const double* g,
    const double* previous_g,
    Py_ssize_t size,
) noexcept nogil:
    """s = step · direction and y = g - previous_g, rounded to bfloat16."""
    cdef own_halves s = _row(pairs, pairs.s, block, row), y = _row(pairs, pairs.y, block, row)
    cdef Py_ssize_t i
    for i in range(size):
        s[i] = narrowed(step * direction[i])
        y[i] = narrowed(g[i] - previous_g[i])


cdef void _penalise_into(
    double* sums,
    double* g,
    const double* weights,
    const double* precision,
    const double* mean,
    const double* counts,
    Py_ssize_t size,
) noexcept nogil:
    """Do one chunk of `penalise_into`, whose two sums are written to `sums`."""
    cdef lanes square = splat(0.0), score = square, distance, slope, w, count
    cdef double squares = 0.0, scores = 0.0, d
    cdef Py_ssize_t i = 0
    while i + LANES <= size:
        w, count = (<const lanes*> (weights + i))[0], (<const lanes*> (counts + i))[0]
        distance = w - (<const lanes*> (mean + i))[0]
        slope = (<const lanes*> (precision + i))[0] * distance
        square += slope * distance
        score += w * count
        (<lanes*> (g + i))[0] = (<lanes*> (g + i))[0] + slope - count
        i += LANES
    while i < size:
        d = weights[i] - mean[i]
        squares += precision[i] * d * d
        scores += weights[i] * counts[i]
        g[i] = g[i] + precision[i] * d - counts[i]
        i += 1
    sums[0] = total(square) + squares
    sums[1] = total(score) + scores


cdef void _renew(
    own e,
    const half* s,
    const half* y,
    const double* renewal,
    Py_ssize_t size,
) noexcept nogil:
    """e = max(kept · e + gained · y² - lost · (e s)², least)"""
    cdef double kept = renewal[0], gained = renewal[1], lost = renewal[2], least = renewal[3]
    cdef Py_ssize_t i
    cdef double es, change, new
    for i in range(size):
        es, change = e[i] * widened(s[i]), widened(y[i])
        new = kept * e[i] + gained * (change * change) - lost * es * es
        e[i] = new if new > least else least


cdef void _divide_by_mean(
    own x, const double[:, ::1] e, Py_ssize_t begin, const double* shares, Py_ssize_t size
) noexcept nogil:
    """x = x Σ_d shares_d / e_d: divide by the weighted harmonic mean of the diagonals."""
    cdef double inverse[BLOCK]
    cdef const double* row
    cdef Py_ssize_t d, i
    for i in range(size):
        inverse[i] = 0.0
    for d in range(e.shape[0]):
        row = &e[d, begin]
        for i in range(size):
            inverse[i] += shares[d] / row[i]
    for i in range(size):
        x[i] *= inverse[i]


cdef void _combine(
    own x, Pairs pairs, half* arrays, const double* factors, Py_ssize_t block, Py_ssize_t size
) noexcept nogil:
    """x += Σ factor · row, four rows at a time, so that x is read and written once for four rows. Rows
    missing from the last four are the last row times 0.
    """
    cdef Py_ssize_t j, k
    cdef const half* row[4]
    cdef double factor[4]
    for j in range(0, pairs.count, 4):
        for k in range(4):
            row[k] = _row(pairs, arrays, block, pairs.rows[min(j + k, pairs.count - 1)])
            factor[k] = factors[j + k] if j + k < pairs.count else 0.0
        _add_four(x, row[0], row[1], row[2], row[3], factor, size)


cdef void _add_four(
    own x,
    const half* a,
    const half* b,
    const half* c,
    const half* d,
    const double* factor,
    Py_ssize_t size,
) noexcept nogil:
    """x += factor[0] a + factor[1] b + factor[2] c + factor[3] d"""
    cdef Py_ssize_t i
    cdef double k = factor[0], m = factor[1], n = factor[2], o = factor[3]
    for i in range(size):
        x[i] = (
            x[i] + k * widened(a[i]) + m * widened(b[i]) + n * widened(c[i]) + o * widened(d[i])
        )


cdef void _move_into(
    own x, const double* start, double step, const double* direction, Py_ssize_t size
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] = start[i] + step * direction[i]


cdef void _negate_into(own x, const double* y, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] = -y[i]


cdef void _copy_into(own x, const double* y, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] = y[i]


cdef void _widen_into(own x, const half* y, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] = widened(y[i])


cdef void _divide(own x, const double* y, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] /= y[i]
