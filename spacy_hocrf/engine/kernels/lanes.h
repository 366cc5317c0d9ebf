/* A vector with one double per lane, each lane a sequence of its own, and the operations that the recurrences need.

   HOCRF_LANES, set in setup.py, depends on the instruction set: 8 lanes for AVX-512, 4 for AVX2, 2 for NEON, 1 for single
   sequences and for compilers without vector types. A comparison returns `flags`: all bits set in the lanes where it holds,
   none elsewhere. */

#ifndef HOCRF_LANES_H
#define HOCRF_LANES_H

#include <math.h>
#include <string.h>

#if HOCRF_LANES > 1 && !defined(__GNUC__)
#error "More than one lane needs the vector types of GCC or Clang"
#endif

enum { LANES = HOCRF_LANES };

/* A bfloat16 number, the upper half of a float's bits, as a double. */
static inline double widened(unsigned short x) {
    unsigned int bits = (unsigned int)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* x rounded to the nearest bfloat16 number, ties to even; infinite beyond the largest. */
static inline unsigned short narrowed(double x) {
    float value = (float)x;
    unsigned int bits;
    memcpy(&bits, &value, sizeof bits);
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#if HOCRF_LANES == 1

typedef double lanes;
typedef long long flags;

static inline lanes splat(double x) { return x; }
static inline lanes widen(const unsigned short *x) { return widened(*x); }
static inline double total(lanes x) { return x; }
static inline flags as_flags(lanes x) { flags f; memcpy(&f, &x, sizeof f); return f; }
static inline lanes as_lanes(flags f) { lanes x; memcpy(&x, &f, sizeof x); return x; }
static inline flags less(lanes a, lanes b) { return -(long long)(a < b); }
static inline flags at_least(lanes a, lanes b) { return -(long long)(a >= b); }
static inline flags differ(lanes a, lanes b) { return -(long long)(a != b); }
static inline int any(flags f) { return f != 0; }
static inline lanes choose(flags f, lanes a, lanes b) { return f ? a : b; }
static inline lanes larger(lanes a, lanes b) { return a > b ? a : b; }
static inline lanes smaller(lanes a, lanes b) { return a < b ? a : b; }
static inline lanes lanes_exp(lanes x) { return exp(x); }

#else

#if HOCRF_LANES > 2
#include <immintrin.h>
#endif

typedef double lanes __attribute__((vector_size(8 * HOCRF_LANES), aligned(8), may_alias));
typedef long long flags __attribute__((vector_size(8 * HOCRF_LANES), aligned(8), may_alias));

static inline lanes splat(double x) {
#if HOCRF_LANES == 8
    return (lanes){x, x, x, x, x, x, x, x};
#elif HOCRF_LANES == 4
    return (lanes){x, x, x, x};
#else
    return (lanes){x, x};
#endif
}

typedef float floats __attribute__((vector_size(4 * HOCRF_LANES), may_alias));
typedef unsigned int words __attribute__((vector_size(4 * HOCRF_LANES), may_alias));
typedef unsigned short halves __attribute__((vector_size(2 * HOCRF_LANES), aligned(2), may_alias));

/* LANES bfloat16 numbers as doubles. */
static inline lanes widen(const unsigned short *x) {
    words bits = __builtin_convertvector(*(const halves *)x, words) << 16;
    return __builtin_convertvector((floats)bits, lanes);
}

/* The sum of all lanes; the upper half is added to the lower one until one lane is left. */
static inline double total(lanes x) {
    double sum[LANES];
    memcpy(sum, &x, sizeof x);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) sum[i] += sum[i + half];
    return sum[0];
}

static inline flags as_flags(lanes x) { return (flags)x; }
static inline lanes as_lanes(flags f) { return (lanes)f; }
static inline flags less(lanes a, lanes b) { return a < b; }
static inline flags at_least(lanes a, lanes b) { return a >= b; }
static inline flags differ(lanes a, lanes b) { return a != b; }

static inline int any(flags f) {
#if HOCRF_LANES == 8
    return _mm512_test_epi64_mask((__m512i)f, (__m512i)f) != 0;
#elif HOCRF_LANES == 4
    return !_mm256_testz_si256((__m256i)f, (__m256i)f);
#else
    return (f[0] | f[1]) != 0;
#endif
}

static inline lanes choose(flags f, lanes a, lanes b) { return (lanes)(((flags)a & f) | ((flags)b & ~f)); }

/* The larger of the two, lane by lane; b if one of them is nan. */
static inline lanes larger(lanes a, lanes b) {
#if HOCRF_LANES == 8
    return (lanes)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif HOCRF_LANES == 4
    return (lanes)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
    return choose(a > b, a, b);
#endif
}

/* The smaller of the two, lane by lane; b if one of them is nan. */
static inline lanes smaller(lanes a, lanes b) {
#if HOCRF_LANES == 8
    return (lanes)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif HOCRF_LANES == 4
    return (lanes)_mm256_min_pd((__m256d)a, (__m256d)b);
#else
    return choose(a < b, a, b);
#endif
}

/* e^x to about one unit in the last place: x = k ln 2 + r with |r| <= ln 2 / 2, e^r by its Taylor series to the 13th power, whose
   remainder is below 5e-18, and 2^k by adding k to the exponent's bits. 0 below -708 and infinite above 709; nan stays nan. */
static inline lanes lanes_exp(lanes x) {
    const lanes shift = splat(6755399441055744.0); /* 1.5 * 2^52: x + shift has x, rounded to an integer, in its low bits */
    lanes held = smaller(splat(709.0), larger(splat(-708.0), x)); /* x comes second, so that nan stays nan */
    lanes t = held * splat(1.4426950408889634074) + shift;
    lanes k = t - shift;
    lanes r = held - k * splat(6.93147180369123816490e-01) - k * splat(1.90821492927058770002e-10);
    lanes r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    lanes low = (splat(1.0) + r) + r2 * (splat(1.0 / 2) + r * splat(1.0 / 6));
    lanes mid = (splat(1.0 / 24) + r * splat(1.0 / 120)) + r2 * (splat(1.0 / 720) + r * splat(1.0 / 5040));
    lanes high = (splat(1.0 / 40320) + r * splat(1.0 / 362880)) + r2 * (splat(1.0 / 3628800) + r * splat(1.0 / 39916800));
    lanes top = splat(1.0 / 479001600) + r * splat(1.0 / 6227020800.0);
    lanes value = low + r4 * mid + r8 * (high + r4 * top);
#if HOCRF_LANES == 8
    value = (lanes)_mm512_maskz_scalef_pd(_mm512_cmp_pd_mask((__m512d)x, _mm512_set1_pd(-708.0), _CMP_NLT_UQ), (__m512d)value,
                                          (__m512d)k);
#else
    value = (lanes)((flags)value + ((flags)t << 52));
    value = choose(x < splat(-708.0), splat(0.0), value);
#endif
    return choose(x > splat(709.0), splat(INFINITY), value);
}

#endif

/* The exponent e of a normal x > 0, with 2^e <= x < 2^(e+1); 0 for x = 0. */
static inline lanes exponent(lanes x) {
    const flags magic = as_flags(splat(6755399441055744.0)); /* 1.5 * 2^52, whose low bits can hold an integer */
    lanes e = as_lanes(((as_flags(x) >> 52) - 1023) + magic) - splat(6755399441055744.0);
    return choose(less(splat(0.0), x), e, splat(0.0));
}

/* 2^e for an integer -1022 <= e <= 1023. Multiplying by it is exact. */
static inline lanes power_of_two(lanes e) {
    return as_lanes((as_flags(e + splat(6755399441055744.0)) + 1023) << 52);
}

/* log(e^a + e^b), lane by lane; log 0 + x = x, and -inf - -inf is nan. */
static inline lanes log_add(lanes a, lanes b) {
    double high[LANES], low[LANES];
    lanes sum = choose(less(b, a), a, b), lesser = choose(less(b, a), b, a);
    memcpy(high, &sum, sizeof sum);
    memcpy(low, &lesser, sizeof sum);
    for (int i = 0; i < LANES; i++)
        if (low[i] > -INFINITY) high[i] += log1p(exp(low[i] - high[i]));
    memcpy(&sum, high, sizeof sum);
    return sum;
}

#endif
