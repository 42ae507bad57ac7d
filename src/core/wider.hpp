// Kernels compiled twice, for wide registers and for any machine.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    defined(__GLIBC__)
// The results are the same to the last bit, since nothing is contracted and the order of sums does
// not depend on the width.
#define SPARSVM_WIDER __attribute__((target_clones("avx2", "default")))
#define SPARSVM_INLINE inline __attribute__((always_inline))
#else
#define SPARSVM_WIDER
#define SPARSVM_INLINE inline
#endif
