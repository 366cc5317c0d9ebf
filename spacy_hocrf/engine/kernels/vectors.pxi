# The vector operations of L-BFGS on F weights, in as few passes over memory as possible.
#
# Such vectors do not fit a core's cache, so the cost of a pass is the memory that it reads. Whatever
# can be computed from a block of the vectors is computed while the block is in the cache; a pass ends
# only where the next step needs a sum over whole vectors.
#
# The m pairs (s, y) are stored block by block: bfloat16 [K, m, B] has the m rows of one block of B
# elements next to each other, with zeros beyond F. A bfloat16 has the range of single precision and 8
# significant bits; products are computed in double precision. A pass reads a quarter of the memory
# that pairs of doubles would take.
#
# A function works on chunks low..high-1, each a fixed number of blocks, and writes the sums of each
# chunk, which the caller adds in their order: results do not depend on which thread has which chunks.

def dot(
    double[:, ::1] sums not None,
    Py_ssize_t low,
    Py_ssize_t high,
    Py_ssize_t chunk,
    const double[::1] x not None,
    const double[::1] y not None,
):
    """x · y; the sum is finite only if x and y are.

    sums (float64 [chunks, 1]): gets the sums of chunks low..high-1.
    chunk (int): elements of a chunk.
    x, y (float64 [F]): two vectors.
    """
    assert x.shape[0] == y.shape[0] <= chunk * sums.shape[0] and 0 <= low <= high <= sums.shape[0]
    cdef Py_ssize_t c
    with nogil:
        for c in range(low, high):
            sums[c, 0] = _dot(&x[c * chunk], &y[c * chunk], min(chunk, x.shape[0] - c * chunk))


def move_into(
    double[:, ::1] sums not None,
    Py_ssize_t low,
    Py_ssize_t high,
    Py_ssize_t chunk,
    double[::1] x not None,
    const double[::1] start not None,
    double step,
    const double[::1] direction not None,
):
    """x = start + step · direction, for chunks low..high-1 of `chunk` elements.

    sums (float64 [chunks, 1]): gets x · x of each chunk.
    x (float64 [F]): overwritten.
    """
    assert x.shape[0] == start.shape[0] == direction.shape[0] <= chunk * sums.shape[0]
    assert 0 <= low <= high <= sums.shape[0]
    cdef Py_ssize_t c, i, begin, end, size
    with nogil:
        for c in range(low, high):
            sums[c, 0] = 0.0
            begin, end = c * chunk, min((c + 1) * chunk, x.shape[0])
            while begin < end:
                size = min(BLOCK, end - begin)
                _move_into(&x[begin], &start[begin], step, &direction[begin], size)
                sums[c, 0] += _dot(&x[begin], &x[begin], size)
                begin += size


def remember_into(
    double[:, ::1] sums not None,
    Py_ssize_t low,
    Py_ssize_t high,
    Py_ssize_t chunk,
    half[:, :, ::1] s not None,
    half[:, :, ::1] y not None,
    const int[::1] rows not None,
    Py_ssize_t newest,
    double step,
    const double[::1] direction not None,
    const double[::1] g not None,
    double[::1] previous_g not None,
    const double[:, ::1] e not None,
):
    """Store the newest pair, s = step · direction and y = g - previous_g, and multiply it with all pairs,
    and those with the gradient, for chunks low..high-1 of `chunk` elements.

    sums (float64 [chunks, 1 + 3 D + 2 rows]): gets g·g; for each diagonal y·y, Σ e s² and Σ y²/e; then
        for each row i of `rows` s_i·g and s_i·y.
    s, y (uint16 [K, m, B]): the pairs, as the bits of bfloat16 numbers; row `newest` is overwritten.
    rows (int32 [rows]): the rows in use.
    newest (int): row of the new pair; -1 stores none and leaves the sums with y at 0.
    previous_g (float64 [F]): overwritten with g.
    e (float64 [D, F]): one or more diagonals.
    """
    cdef Py_ssize_t c, b, begin, size, i, first = 1 + 3 * e.shape[0]
    assert g.shape[0] == previous_g.shape[0] == direction.shape[0] == e.shape[1] <= chunk * sums.shape[0]
    assert 0 <= low <= high <= sums.shape[0] and chunk % BLOCK == 0
    assert sums.shape[1] == first + 2 * rows.shape[0]
    cdef Pairs pairs = _pairs(s, y, rows)
    cdef double* sum
    cdef half* s_row
    with nogil:
        for c in range(low, high):
            sum = &sums[c, 0]
            for i in range(sums.shape[1]):
                sum[i] = 0.0
            for b in range(c * (chunk // BLOCK), min((c + 1) * (chunk // BLOCK), pairs.blocks)):
                begin = b * BLOCK
                size = min(BLOCK, g.shape[0] - begin)
                sum[0] += _dot(&g[begin], &g[begin], size)
                if newest < 0:
                    for i in range(pairs.count):
                        s_row = _row(pairs, pairs.s, b, pairs.rows[i])
                        sum[first + 2 * i] += _product(s_row, &g[begin], size)
                else:
                    _make_pair(pairs, b, newest, step, &direction[begin], &g[begin], &previous_g[begin], size)
                    _multiply_pair(sum + 1, pairs, b, newest, &g[begin], e, size)
                _copy_into(&previous_g[begin], &g[begin], size)


def solve_into(
    double[:, ::1] sums not None,
    Py_ssize_t low,
    Py_ssize_t high,
    Py_ssize_t chunk,
    double[::1] out not None,
    const double[::1] g not None,
    half[:, :, ::1] s not None,
    half[:, :, ::1] y not None,
    const int[::1] rows not None,
    const double[::1] factors not None,
    double[:, ::1] e not None,
    const double[:, ::1] renewal not None,
    const double[::1] shares not None,
):
    """out = E⁻¹ (Σ factors_i y_i - g) for chunks low..high-1 of `chunk` elements. E⁻¹ is the weighted mean of
    the inverses of D diagonals, which are updated first with the newest pair:
    e = max(kept · e + gained · y² - lost · (e s)², least).

    sums (float64 [chunks, rows]): gets y_i · out for each row i of `rows`.
    out (float64 [F]): overwritten.
    s, y (uint16 [K, m, B]): the pairs, as in `remember_into`.
    rows (int32 [rows]), factors (float64 [rows]): one or more rows in use, the newest one last.
    e (float64 [D, F]): the diagonals, all positive; changed in place.
    renewal (float64 [D, 4]): kept, gained, lost and least; `least` only guards against rounding.
    shares (float64 [D]): weights of the mean; they sum to 1.
    """
    assert g.shape[0] == out.shape[0] == e.shape[1] <= chunk * sums.shape[0] and chunk % BLOCK == 0
    assert e.shape[0] == renewal.shape[0] == shares.shape[0] > 0 and renewal.shape[1] == 4
    assert 0 <= low <= high <= sums.shape[0] and sums.shape[1] == rows.shape[0] == factors.shape[0] > 0
    cdef Pairs pairs = _pairs(s, y, rows)
    cdef Py_ssize_t c, b, begin, size, i, newest = rows[rows.shape[0] - 1]
    cdef double* sum
    cdef half* s_row
    cdef half* y_row
    with nogil:
        for c in range(low, high):
            sum = &sums[c, 0]
            for i in range(pairs.count):
                sum[i] = 0.0
            for b in range(c * (chunk // BLOCK), min((c + 1) * (chunk // BLOCK), pairs.blocks)):
                begin = b * BLOCK
                size = min(BLOCK, g.shape[0] - begin)
                s_row, y_row = _row(pairs, pairs.s, b, newest), _row(pairs, pairs.y, b, newest)
                for i in range(e.shape[0]):
                    _renew(&e[i, begin], s_row, y_row, &renewal[i, 0], size)
                _negate_into(&out[begin], &g[begin], size)
                _combine(&out[begin], pairs, pairs.y, &factors[0], b, size)
                if e.shape[0] == 1:
                    _divide(&out[begin], &e[0, begin], size)
                else:
                    _divide_by_mean(&out[begin], e, begin, &shares[0], size)
                for i in range(pairs.count):
                    sum[i] += _product(_row(pairs, pairs.y, b, pairs.rows[i]), &out[begin], size)


def combine_into(
    double[:, ::1] sums not None,
    Py_ssize_t low,
    Py_ssize_t high,
    Py_ssize_t chunk,
    double[::1] out not None,
    half[:, :, ::1] s not None,
    const int[::1] rows not None,
    const double[::1] factors not None,
    const double[::1] g not None,
):
    """out += Σ factors_i s_i, for chunks low..high-1 of `chunk` elements.

    sums (float64 [chunks, 1]): gets g · out, with the new `out`.
    out (float64 [F]): changed in place.
    s (uint16 [K, m, B]), rows (int32 [rows]), factors (float64 [rows]): as in `solve_into`.
    """
    assert g.shape[0] == out.shape[0] <= chunk * sums.shape[0] and chunk % BLOCK == 0
    assert 0 <= low <= high <= sums.shape[0] and rows.shape[0] == factors.shape[0] > 0
    cdef Pairs pairs = _pairs(s, s, rows)
    cdef Py_ssize_t c, b, begin, size
    with nogil:
        for c in range(low, high):
            sums[c, 0] = 0.0
            for b in range(c * (chunk // BLOCK), min((c + 1) * (chunk // BLOCK), pairs.blocks)):
                begin = b * BLOCK
                size = min(BLOCK, g.shape[0] - begin)
                _combine(&out[begin], pairs, pairs.s, &factors[0], b, size)
                sums[c, 0] += _dot(&g[begin], &out[begin], size)


def penalise_into(
    double[:, ::1] sums not None,
    Py_ssize_t low,
    Py_ssize_t high,
    Py_ssize_t chunk,
    double[::1] gradient not None,
    const double[::1] weights not None,
    const double[::1] precision not None,
    const double[::1] mean not None,
    const double[::1] counts not None,
):
    """gradient += precision · (weights - mean) - counts, for chunks low..high-1 of `chunk` elements.

    sums (float64 [chunks, 2]): gets Σ precision (weights - mean)² and weights · counts.
    gradient (float64 [F]): changed in place.
    precision, mean (float64 [F] or [chunk]): with [chunk], every chunk uses the same values.
    """
    assert gradient.shape[0] == weights.shape[0] == counts.shape[0] <= chunk * sums.shape[0]
    assert (precision.shape[0] == chunk or precision.shape[0] == weights.shape[0])
    assert (mean.shape[0] == chunk or mean.shape[0] == weights.shape[0])
    assert 0 <= low <= high <= sums.shape[0] and sums.shape[1] == 2
    cdef Py_ssize_t c, begin, size, F = weights.shape[0]
    with nogil:
        for c in range(low, high):
            begin = c * chunk
            size = min(chunk, F - begin)
            _penalise_into(
                &sums[c, 0],
                &gradient[begin],
                &weights[begin],
                &precision[begin if precision.shape[0] == F else 0],
                &mean[begin if mean.shape[0] == F else 0],
                &counts[begin],
                size,
            )
