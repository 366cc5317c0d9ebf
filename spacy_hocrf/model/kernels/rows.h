/* Sums rows of weights, and adds counts to rows. Up to MAX_VECTORS vectors of columns at a time are kept in registers during the loop
   over a token's rows, so that each row is read once and each sum is written once.

   Row r, begin <= r < end, starts at placed[step * short_rows[r]], or placed[step * rows[r]] if short_rows is NULL, and has
   `width` columns, a multiple of 8. `values` is NULL if all values are 1. */

#ifndef HOCRF_ROWS_H
#define HOCRF_ROWS_H

#include <stddef.h>

#include "lanes.h"

enum { MAX_VECTORS = 8 };

/* Functions that are compiled for each number n of vectors, for short and long rows, and with and without values: an array of
   vectors is kept in registers only if its length is a constant. */
#ifdef __GNUC__
#define HOCRF_EACH static inline __attribute__((always_inline))
#else
#define HOCRF_EACH static __forceinline
#endif

HOCRF_EACH ptrdiff_t place_of(const unsigned short *short_rows, const int *rows, ptrdiff_t r) {
    return short_rows ? short_rows[r] : rows[r];
}

/* sums[y] = Σ_r value_r row_r[y]; four rows at a time, so that fewer additions depend on one another. */
HOCRF_EACH void sum_block(double *sums, const double *placed, const unsigned short *short_rows, const int *rows, ptrdiff_t step,
                          const float *values, ptrdiff_t r, ptrdiff_t end, const int n) {
    lanes total[MAX_VECTORS];
    for (int y = 0; y < n; y++) total[y] = splat(0.0);
    for (; r + 4 <= end; r += 4) {
        const lanes *a = (const lanes *)(placed + step * place_of(short_rows, rows, r));
        const lanes *b = (const lanes *)(placed + step * place_of(short_rows, rows, r + 1));
        const lanes *c = (const lanes *)(placed + step * place_of(short_rows, rows, r + 2));
        const lanes *d = (const lanes *)(placed + step * place_of(short_rows, rows, r + 3));
        if (values) {
            lanes i = splat(values[r]), j = splat(values[r + 1]), k = splat(values[r + 2]), m = splat(values[r + 3]);
            for (int y = 0; y < n; y++) total[y] += (i * a[y] + j * b[y]) + (k * c[y] + m * d[y]);
        } else {
            for (int y = 0; y < n; y++) total[y] += (a[y] + b[y]) + (c[y] + d[y]);
        }
    }
    for (; r < end; r++) {
        const lanes *row = (const lanes *)(placed + step * place_of(short_rows, rows, r));
        if (values) {
            lanes value = splat(values[r]);
            for (int y = 0; y < n; y++) total[y] += value * row[y];
        } else {
            for (int y = 0; y < n; y++) total[y] += row[y];
        }
    }
    for (int y = 0; y < n; y++) ((lanes *)sums)[y] = total[y];
}

/* row_r[y] += value_r counts[y] */
HOCRF_EACH void count_block(const double *counts, double *placed, const unsigned short *short_rows, const int *rows,
                            ptrdiff_t step, const float *values, ptrdiff_t r, ptrdiff_t end, const int n) {
    lanes count[MAX_VECTORS];
    for (int y = 0; y < n; y++) count[y] = ((const lanes *)counts)[y];
    for (; r < end; r++) {
        lanes *row = (lanes *)(placed + step * place_of(short_rows, rows, r));
        if (values) {
            lanes value = splat(values[r]);
            for (int y = 0; y < n; y++) row[y] += value * count[y];
        } else {
            for (int y = 0; y < n; y++) row[y] += count[y];
        }
    }
}

#define HOCRF_BY_NUMBER(n, block, ...)        \
    switch (n) {                              \
    case 1: block(__VA_ARGS__, 1); break;     \
    case 2: block(__VA_ARGS__, 2); break;     \
    case 3: block(__VA_ARGS__, 3); break;     \
    case 4: block(__VA_ARGS__, 4); break;     \
    case 5: block(__VA_ARGS__, 5); break;     \
    case 6: block(__VA_ARGS__, 6); break;     \
    case 7: block(__VA_ARGS__, 7); break;     \
    default: block(__VA_ARGS__, MAX_VECTORS); \
    }

#define HOCRF_BY_KIND(block, columns, placed)                                                           \
    if (short_rows && !values) {                                                                        \
        HOCRF_BY_NUMBER(n, block, columns, placed, short_rows, NULL, step, NULL, begin, end)            \
    } else if (short_rows) {                                                                            \
        HOCRF_BY_NUMBER(n, block, columns, placed, short_rows, NULL, step, values, begin, end)          \
    } else if (!values) {                                                                               \
        HOCRF_BY_NUMBER(n, block, columns, placed, NULL, rows, step, NULL, begin, end)                  \
    } else {                                                                                            \
        HOCRF_BY_NUMBER(n, block, columns, placed, NULL, rows, step, values, begin, end)                \
    }

static void sum_rows(double *sums, ptrdiff_t width, const double *placed, const unsigned short *short_rows, const int *rows,
                     ptrdiff_t step, const float *values, ptrdiff_t begin, ptrdiff_t end) {
    for (; width > 0; width -= MAX_VECTORS * LANES, sums += MAX_VECTORS * LANES, placed += MAX_VECTORS * LANES) {
        ptrdiff_t n = width / LANES;
        HOCRF_BY_KIND(sum_block, sums, placed)
    }
}

static void count_rows(const double *counts, ptrdiff_t width, double *placed, const unsigned short *short_rows, const int *rows,
                       ptrdiff_t step, const float *values, ptrdiff_t begin, ptrdiff_t end) {
    for (; width > 0; width -= MAX_VECTORS * LANES, counts += MAX_VECTORS * LANES, placed += MAX_VECTORS * LANES) {
        ptrdiff_t n = width / LANES;
        HOCRF_BY_KIND(count_block, counts, placed)
    }
}

#endif
