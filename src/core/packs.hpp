// Four doubles or eight floats at a time, and the dispatch of hot loops on the processor at hand.
//
// The packs are GCC's and clang's vector types, which compile for any instruction set. Products and
// sums are lane by lane and never contracted, so the results do not depend on the instruction set.
// Functions marked SPARSVM_CLONED must not be templates; what they call must be SPARSVM_INLINE.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__GNUC__)
#define SPARSVM_INLINE inline __attribute__((always_inline))
#else
#define SPARSVM_INLINE inline
#endif

// Sanitizers instrument the resolver, which runs before they are set up.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    !defined(__SANITIZE_ADDRESS__)
#define SPARSVM_CLONED __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define SPARSVM_CLONED
#endif

namespace sparsvm {

#if defined(__GNUC__)

using Pack = double __attribute__((vector_size(32)));
using PackBits = std::int64_t __attribute__((vector_size(32)));
using PackF = float __attribute__((vector_size(32)));
// In memory they may lie anywhere.
using LoosePack = double __attribute__((vector_size(32), aligned(8), may_alias));
using LoosePackF = float __attribute__((vector_size(32), aligned(4), may_alias));

#define SPARSVM_LOAD(pointer) (*reinterpret_cast<const LoosePack*>(pointer))
#define SPARSVM_STORE(pointer, value) (*reinterpret_cast<LoosePack*>(pointer) = (value))
#define SPARSVM_LOADF(pointer) (*reinterpret_cast<const LoosePackF*>(pointer))
#define SPARSVM_STOREF(pointer, value) (*reinterpret_cast<LoosePackF*>(pointer) = (value))

SPARSVM_INLINE void keep_positive(Pack& v) { v = v > 0.0 ? v : Pack{}; }

SPARSVM_INLINE void keep_larger(Pack& v, const Pack& other) { v = v > other ? v : other; }

/// v <- exp(v) for v <= 0, to about one unit in the last place; below -700 it stays exp(-700).
SPARSVM_INLINE void exponentiate(Pack& v) {
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const Pack low = Pack{} - 700.0;
  v = v > low ? v : low;
  const Pack shifted = v * 1.4426950408889634 + magic;
  const Pack whole = shifted - magic;
  const Pack f = (v - whole * 6.93147180369123816490e-01) - whole * 1.90821492927058770002e-10;
  Pack sum = f * (1.0 / 479001600.0) + 1.0 / 39916800.0;
  sum = sum * f + 1.0 / 3628800.0;
  sum = sum * f + 1.0 / 362880.0;
  sum = sum * f + 1.0 / 40320.0;
  sum = sum * f + 1.0 / 5040.0;
  sum = sum * f + 1.0 / 720.0;
  sum = sum * f + 1.0 / 120.0;
  sum = sum * f + 1.0 / 24.0;
  sum = sum * f + 1.0 / 6.0;
  sum = sum * f + 0.5;
  sum = sum * f + 1.0;
  sum = sum * f + 1.0;
  // The low bits of `shifted` are the integer; moved into the exponent they are the power of two.
  const PackBits power = (reinterpret_cast<PackBits>(shifted) + 1023) << 52;
  v = sum * reinterpret_cast<Pack>(power);
}

#else
#error "sparsvm's native code needs the vector types of GCC or clang (on Windows: clang-cl)."
#endif

SPARSVM_INLINE double sum_of(const Pack& v) { return (v[0] + v[1]) + (v[2] + v[3]); }

SPARSVM_INLINE double largest_of(const Pack& v) {
  const double a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
  return a > b ? a : b;
}

SPARSVM_INLINE float sum_of(const PackF& v) {
  return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

}  // namespace sparsvm
