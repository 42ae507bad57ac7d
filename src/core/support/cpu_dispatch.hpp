// Hot functions compiled for AVX2 (some for AVX-512) and the baseline; the one that suits the machine
// is chosen when the module is loaded.
//
// Nothing is contracted and the order of sums does not depend on the width, so all give the same
// bits. Functions marked SPARSVM_DISPATCH must not be templates; what they call must be
// SPARSVM_INLINE.
#pragma once

#include <cstdint>  // and with it whether this is glibc

#if defined(__GNUC__)
#define SPARSVM_INLINE inline __attribute__((always_inline))
#define SPARSVM_INLINE_LAMBDA __attribute__((always_inline))
// A copy of its own instead of one in every caller, for what is left over after whole SIMD vectors: there
// the compiler would unroll loops of at most three rounds.
#define SPARSVM_APART __attribute__((noinline))
#define SPARSVM_PREFETCH(address) __builtin_prefetch(address)
#else
#define SPARSVM_INLINE inline
#define SPARSVM_INLINE_LAMBDA
#define SPARSVM_APART
#define SPARSVM_PREFETCH(address) ((void)(address))
#endif

// The choice needs glibc. Sanitizers instrument it although it runs before they are set up. With
// vectors of four doubles AVX-512 has only more registers to offer: dense products gain a tenth by
// them, other kernels nothing.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define SPARSVM_DISPATCH __attribute__((target_clones("avx2", "default")))
#if __GNUC__ >= 12  // older ones cannot ask a machine for its level
#define SPARSVM_DISPATCH_AVX512 __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define SPARSVM_DISPATCH_AVX512 SPARSVM_DISPATCH
#endif
#else
#define SPARSVM_DISPATCH
#define SPARSVM_DISPATCH_AVX512
#endif
