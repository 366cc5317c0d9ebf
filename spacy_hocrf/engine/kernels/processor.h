/* Which instruction sets the processor and the operating system support. */

#ifndef HOCRF_PROCESSOR_H
#define HOCRF_PROCESSOR_H

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))

static int runs_avx2(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int runs_avx512(void) {
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#else

static int runs_avx2(void) { return 0; }
static int runs_avx512(void) { return 0; }

#endif

#endif
