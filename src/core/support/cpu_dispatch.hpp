// Hot functions compiled for several instruction sets; the one that suits the machine is chosen when
// the module is loaded.
//
// Nothing is contracted and the order of sums does not depend on the width, so all give the same
// bits. Functions marked SPARSVM_CLONED must not be templates; what they call must be
// SPARSVM_INLINE.
#pragma once

#include <cstdint>  // and with it whether this is glibc

#if defined(__GNUC__)
#define SPARSVM_INLINE inline __attribute__((always_inline))
#define SPARSVM_INLINE_LAMBDA __attribute__((always_inline))
// A copy of its own instead of one in every caller, for what is left over after whole packs: there
// the compiler would unroll loops of at most three rounds.
#define SPARSVM_APART __attribute__((noinline))
#define SPARSVM_PREFETCH(address) __builtin_prefetch(address)
#else
#define SPARSVM_INLINE inline
#define SPARSVM_INLINE_LAMBDA
#define SPARSVM_APART
#define SPARSVM_PREFETCH(address) ((void)(address))
#endif

// The choice needs glibc. Sanitizers instrument it although it runs before they are set up.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    defined(__GLIBC__)
#if defined(__SANITIZE_ADDRESS__)
#define SPARSVM_CLONED
#elif __GNUC__ >= 12
#define SPARSVM_CLONED __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else  // which cannot ask a machine for its level
#define SPARSVM_CLONED __attribute__((target_clones("avx2", "default")))
#endif
#if !defined(SPARSVM_PLAIN_PACKS)
// For code of its own on machines with registers of four or of eight doubles: call it only if has_four() or
// has_eight(). It may round products and sums once, as BLAS does, and is then no longer the same to the
// last bit. Sanitized, that for eight takes many minutes to compile; most of it is the same code.
#define SPARSVM_FOUR __attribute__((target("avx2,fma,bmi2")))
#if __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__)
#define SPARSVM_EIGHT __attribute__((target("arch=x86-64-v4")))
#endif
#endif
#else
#define SPARSVM_CLONED
#endif

namespace sparsvm {

#if defined(SPARSVM_FOUR)
inline bool has_four() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("bmi2");
  return has;
}
#endif

#if defined(SPARSVM_EIGHT)
inline bool has_eight() {
  static const bool has = __builtin_cpu_supports("x86-64-v4") != 0;
  return has;
}
#endif

// For code on packs of four doubles that pays where they are registers: call it only if has_packs().
#if defined(SPARSVM_FOUR)
#define SPARSVM_PACKED SPARSVM_FOUR
inline bool has_packs() { return has_four(); }
#else  // whatever they are on other machines, they are better than nothing
#define SPARSVM_PACKED
inline bool has_packs() { return true; }
#endif

}  // namespace sparsvm
