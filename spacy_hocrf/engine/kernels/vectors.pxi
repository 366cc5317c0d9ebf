# What L-BFGS does with vectors of F weights, in as few passes over memory as there can be.
#
# Such a vector does not stay in a core's cache, so a pass costs what it reads. Everything that can be done with a block of the
# vectors is done while the block is there; a pass ends only where all of it must be known before the next step.
#
# The m pairs lie block by block: float32 [K, m, B], all rows of one block of B elements side by side, zeros beyond F. They are kept
# in single precision, which halves what is read, and multiplied in double precision.
#
# A pass works on chunks low..high-1 of a fixed number of blocks, and gives the sums of each chunk, to be added in their order: the
# result does not depend on how the chunks are shared out among threads.

cdef extern from "lanes.h" nogil:
    lanes widen(const float* x)
    double total(lanes x)

cdef extern from *:
    """
    typedef double *__restrict hocrf_own;
    typedef float *__restrict hocrf_own_floats;
    """
    ctypedef double* own "hocrf_own"  # nothing else points there, so that loops over it become vector instructions
    ctypedef float* own_floats "hocrf_own_floats"

cdef enum:
    BLOCK = 512  # elements of every vector that are worked on together: with those of all pairs they stay in a near cache

cdef struct Pairs:
    float* s
    float* y
    Py_ssize_t blocks, capacity  # K and m
    const int* rows  # those in use, oldest first
    Py_ssize_t count


def dot(
    double[:, ::1] sums not None,
    Py_ssize_t low,
    Py_ssize_t high,
    Py_ssize_t chunk,
    const double[::1] x not None,
    const double[::1] y not None,
):
    """x · y, finite only if x and y are.

    sums (float64 [chunks, 1]): of each chunk.
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
    """x = start + step · direction.

    sums (float64 [chunks, 1]): x · x.
    x (float64 [F]): overwritten.
    """
    assert x.shape[0] == start.shape[0] == direction.shape[0] <= chunk * sums.shape[0] and 0 <= low <= high <= sums.shape[0]
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
    float[:, :, ::1] s not None,
    float[:, :, ::1] y not None,
    const int[::1] rows not None,
    Py_ssize_t newest,
    double step,
    const double[::1] direction not None,
    const double[::1] g not None,
    double[::1] previous_g not None,
    const double[::1] e not None,
):
    """The newest pair, s = step · direction and y = g - previous_g, its products with all pairs, and theirs with the gradient.

    sums (float64 [chunks, 4 + 2 rows]): y·y, Σ e s², Σ y²/e and g·g; then for every row i of `rows` s_i·g and s_i·y.
    s, y (float32 [K, m, B]): the pairs.
    rows (int32 [rows]): those in use.
    newest (int): the row to overwrite, -1 for none: then the products with y are 0.
    previous_g (float64 [F]): overwritten with g.
    """
    assert g.shape[0] == previous_g.shape[0] == direction.shape[0] == e.shape[0] <= chunk * sums.shape[0]
    assert 0 <= low <= high <= sums.shape[0] and sums.shape[1] == 4 + 2 * rows.shape[0] and chunk % BLOCK == 0
    cdef Pairs pairs = _pairs(s, y, rows)
    cdef Py_ssize_t c, b, begin, size, i
    with nogil:
        for c in range(low, high):
            for i in range(sums.shape[1]):
                sums[c, i] = 0.0
            for b in range(c * (chunk // BLOCK), min((c + 1) * (chunk // BLOCK), pairs.blocks)):
                begin = b * BLOCK
                size = min(BLOCK, g.shape[0] - begin)
                sums[c, 3] += _dot(&g[begin], &g[begin], size)
                if newest < 0:
                    for i in range(pairs.count):
                        sums[c, 4 + 2 * i] += _product(_row(pairs, pairs.s, b, pairs.rows[i]), &g[begin], size)
                else:
                    _make_pair(pairs, b, newest, step, &direction[begin], &g[begin], &previous_g[begin], size)
                    _multiply_pair(&sums[c, 0], pairs, b, newest, &g[begin], &e[begin], size)
                _copy_into(&previous_g[begin], &g[begin], size)


def solve_into(
    double[:, ::1] sums not None,
    Py_ssize_t low,
    Py_ssize_t high,
    Py_ssize_t chunk,
    double[::1] out not None,
    const double[::1] g not None,
    float[:, :, ::1] s not None,
    float[:, :, ::1] y not None,
    const int[::1] rows not None,
    const double[::1] factors not None,
    double[::1] e not None,
    double kept,
    double gained,
    double lost,
    double least,
):
    """out = E⁻¹ (Σ factors_i y_i - g), with E renewed before: kept · e + gained · y² - lost · (e s)², s and y the newest pair's.

    sums (float64 [chunks, rows]): y_i · out.
    out (float64 [F]): overwritten.
    s, y, rows: as in `remember_into`, the newest one last, and at least one.
    factors (float64 [rows]): one for each of `rows`.
    e (float64 [F]): positive; changed in place.
    least (float): smallest element that E may have; rounding may make less.
    """
    assert g.shape[0] == out.shape[0] == e.shape[0] <= chunk * sums.shape[0] and chunk % BLOCK == 0
    assert 0 <= low <= high <= sums.shape[0] and sums.shape[1] == rows.shape[0] == factors.shape[0] > 0
    cdef Pairs pairs = _pairs(s, y, rows)
    cdef Py_ssize_t c, b, begin, size, i, newest = rows[rows.shape[0] - 1]
    cdef double* sum
    with nogil:
        for c in range(low, high):
            sum = &sums[c, 0]
            for i in range(pairs.count):
                sum[i] = 0.0
            for b in range(c * (chunk // BLOCK), min((c + 1) * (chunk // BLOCK), pairs.blocks)):
                begin = b * BLOCK
                size = min(BLOCK, g.shape[0] - begin)
                _renew(&e[begin], _row(pairs, pairs.s, b, newest), _row(pairs, pairs.y, b, newest), kept, gained, lost, least, size)
                _negate_into(&out[begin], &g[begin], size)
                _combine(&out[begin], pairs, pairs.y, &factors[0], b, size)
                _divide(&out[begin], &e[begin], size)
                for i in range(pairs.count):
                    sum[i] += _product(_row(pairs, pairs.y, b, pairs.rows[i]), &out[begin], size)


def combine_into(
    double[:, ::1] sums not None,
    Py_ssize_t low,
    Py_ssize_t high,
    Py_ssize_t chunk,
    double[::1] out not None,
    float[:, :, ::1] s not None,
    const int[::1] rows not None,
    const double[::1] factors not None,
    const double[::1] g not None,
):
    """out += Σ factors_i s_i.

    sums (float64 [chunks, 1]): g · out, of the new out.
    out (float64 [F]): changed in place.
    s, rows, factors: as in `solve_into`.
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
    double[:, ::1] gradients not None,
    const double[::1] weights not None,
    const double[::1] precision not None,
    const double[::1] mean not None,
    const double[::1] counts not None,
):
    """gradients[0] = Σ gradients + precision · (weights - mean) - counts, element by element.

    sums (float64 [chunks, 2]): Σ precision (weights - mean)², and weights · counts.
    gradients (float64 [n, F]): what is to be added, row after row; the first one is overwritten.
    """
    assert gradients.shape[1] == weights.shape[0] == precision.shape[0] == mean.shape[0] == counts.shape[0]
    assert gradients.shape[0] > 0 and weights.shape[0] <= chunk * sums.shape[0] and sums.shape[1] == 2
    assert 0 <= low <= high <= sums.shape[0]
    cdef Py_ssize_t c, begin, size, F = weights.shape[0]
    with nogil:
        for c in range(low, high):
            begin = c * chunk
            size = min(chunk, F - begin)
            _penalise_into(
                &sums[c, 0],
                &gradients[0, begin],
                gradients.shape[0],
                F,
                &weights[begin],
                &precision[begin],
                &mean[begin],
                &counts[begin],
                size,
            )


cdef Pairs _pairs(float[:, :, ::1] s, float[:, :, ::1] y, const int[::1] rows):
    cdef Pairs pairs
    assert s.shape[0] == y.shape[0] and s.shape[1] == y.shape[1] and s.shape[2] == y.shape[2] == BLOCK
    pairs.s = &s[0, 0, 0] if s.shape[0] else NULL
    pairs.y = &y[0, 0, 0] if y.shape[0] else NULL
    pairs.blocks, pairs.capacity = s.shape[0], s.shape[1]
    pairs.rows = &rows[0] if rows.shape[0] else NULL
    pairs.count = rows.shape[0]
    return pairs


cdef inline float* _row(Pairs pairs, float* arrays, Py_ssize_t block, Py_ssize_t row) noexcept nogil:
    return arrays + (block * pairs.capacity + row) * BLOCK


cdef double _dot(const double* x, const double* y, Py_ssize_t size) noexcept nogil:
    """Four chains of additions, since one waits for itself."""
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


cdef double _product(const float* x, const double* y, Py_ssize_t size) noexcept nogil:
    """x · y in double precision."""
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
        rest += x[i] * y[i]
        i += 1
    return total((a + b) + (c + d)) + rest


cdef void _add_products(double* sums, const float* s, const double* g, const double* y, Py_ssize_t size) noexcept nogil:
    """Add s · g and s · y."""
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
        sg += s[i] * g[i]
        sy += s[i] * y[i]
        i += 1
    sums[0] += total(a + c) + sg
    sums[1] += total(b + d) + sy


cdef void _multiply_pair(
    double* sums, Pairs pairs, Py_ssize_t block, Py_ssize_t newest, const double* g, const double* e, Py_ssize_t size
) noexcept nogil:
    """Add the products of the newest pair, and all s_i · g."""
    cdef double y[BLOCK]
    cdef Py_ssize_t i
    _widen_into(y, _row(pairs, pairs.y, block, newest), size)
    _weigh(sums, _row(pairs, pairs.s, block, newest), y, e, size)
    for i in range(pairs.count):
        _add_products(sums + 4 + 2 * i, _row(pairs, pairs.s, block, pairs.rows[i]), g, y, size)


cdef void _weigh(double* sums, const float* s, const double* y, const double* e, Py_ssize_t size) noexcept nogil:
    """Add y · y, Σ e s² and Σ y² / e."""
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
        sums[1] += <double> s[i] * s[i] * e[i]
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
    cdef own_floats s = _row(pairs, pairs.s, block, row), y = _row(pairs, pairs.y, block, row)
    cdef Py_ssize_t i
    for i in range(size):
        s[i] = <float> (step * direction[i])
        y[i] = <float> (g[i] - previous_g[i])


cdef void _penalise_into(
    double* sums,
    double* g,
    Py_ssize_t rows,
    Py_ssize_t apart,
    const double* weights,
    const double* precision,
    const double* mean,
    const double* counts,
    Py_ssize_t size,
) noexcept nogil:
    """The rows of gradients are so many elements apart."""
    cdef lanes square = splat(0.0), score = square, distance, slope, w, count, all
    cdef double squares = 0.0, scores = 0.0, d
    cdef Py_ssize_t i = 0, n
    while i + LANES <= size:
        w, count = (<const lanes*> (weights + i))[0], (<const lanes*> (counts + i))[0]
        distance = w - (<const lanes*> (mean + i))[0]
        slope = (<const lanes*> (precision + i))[0] * distance
        square += slope * distance
        score += w * count
        all = (<lanes*> (g + i))[0]
        for n in range(1, rows):
            all += (<lanes*> (g + n * apart + i))[0]
        (<lanes*> (g + i))[0] = all + slope - count
        i += LANES
    while i < size:
        d = weights[i] - mean[i]
        squares += precision[i] * d * d
        scores += weights[i] * counts[i]
        for n in range(1, rows):
            g[i] += g[n * apart + i]
        g[i] = g[i] + precision[i] * d - counts[i]
        i += 1
    sums[0] = total(square) + squares
    sums[1] = total(score) + scores


cdef void _renew(
    own e, const float* s, const float* y, double kept, double gained, double lost, double least, Py_ssize_t size
) noexcept nogil:
    cdef Py_ssize_t i
    cdef double es, new
    for i in range(size):
        es = e[i] * s[i]
        new = kept * e[i] + gained * (<double> y[i] * y[i]) - lost * es * es
        e[i] = new if new > least else least


cdef void _combine(own x, Pairs pairs, float* arrays, const double* factors, Py_ssize_t block, Py_ssize_t size) noexcept nogil:
    """x += Σ factor · row, four rows at a time: x is written once for four that are read. A row that is missing is 0 · the last."""
    cdef Py_ssize_t j, k
    cdef const float* row[4]
    cdef double factor[4]
    for j in range(0, pairs.count, 4):
        for k in range(4):
            row[k] = _row(pairs, arrays, block, pairs.rows[min(j + k, pairs.count - 1)])
            factor[k] = factors[j + k] if j + k < pairs.count else 0.0
        _add_four(x, row[0], row[1], row[2], row[3], factor, size)


cdef void _add_four(
    own x, const float* a, const float* b, const float* c, const float* d, const double* factor, Py_ssize_t size
) noexcept nogil:
    cdef Py_ssize_t i
    cdef double k = factor[0], m = factor[1], n = factor[2], o = factor[3]
    for i in range(size):
        x[i] = x[i] + k * a[i] + m * b[i] + n * c[i] + o * d[i]


cdef void _move_into(own x, const double* start, double step, const double* direction, Py_ssize_t size) noexcept nogil:
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


cdef void _widen_into(own x, const float* y, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] = y[i]


cdef void _divide(own x, const double* y, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        x[i] /= y[i]
