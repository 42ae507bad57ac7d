// Four doubles or eight floats at a time.
//
// The packs are GCC's and clang's vector types, which compile for any instruction set; other
// compilers get plain arrays with the same operations in the same order (SPARSVM_PLAIN_PACKS asks for
// them anywhere). Products and sums are lane by lane and never contracted, so the results do not
// depend on the instruction set.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "support/cpu_dispatch.hpp"

namespace sparsvm {

#if (defined(__GNUC__) || defined(__clang__)) && !defined(SPARSVM_PLAIN_PACKS)

using Pack = double __attribute__((vector_size(32)));
using PackBits = std::int64_t __attribute__((vector_size(32)));
using PackF = float __attribute__((vector_size(32)));
// In memory they may lie anywhere.
using LoosePack = double __attribute__((vector_size(32), aligned(8), may_alias));
using LoosePackF = float __attribute__((vector_size(32), aligned(4), may_alias));
using LooseHalfPackF = float __attribute__((vector_size(16), aligned(4), may_alias));

// A value, not a place: bound to a const Pack& a place would count as aligned.
#define SPARSVM_LOAD(pointer) (::sparsvm::Pack(*reinterpret_cast<const LoosePack*>(pointer)))
#define SPARSVM_STORE(pointer, value) (*reinterpret_cast<LoosePack*>(pointer) = (value))
#define SPARSVM_LOADF(pointer) (::sparsvm::PackF(*reinterpret_cast<const LoosePackF*>(pointer)))
#define SPARSVM_STOREF(pointer, value) (*reinterpret_cast<LoosePackF*>(pointer) = (value))

SPARSVM_INLINE void load(Pack& v, const double* from) { v = SPARSVM_LOAD(from); }

SPARSVM_INLINE void store(double* to, const Pack& v) { SPARSVM_STORE(to, v); }

/// Four floats, widened.
SPARSVM_INLINE void load_widened(Pack& v, const float* from) {
  v = __builtin_convertvector(*reinterpret_cast<const LooseHalfPackF*>(from), Pack);
}

SPARSVM_INLINE void store_rounded(const Pack& v, float* to) {
  *reinterpret_cast<LooseHalfPackF*>(to) =
      __builtin_convertvector(v, float __attribute__((vector_size(16))));
}

SPARSVM_INLINE void keep_positive(Pack& v) { v = v > 0.0 ? v : Pack{}; }

SPARSVM_INLINE void keep_larger(Pack& v, const Pack& other) { v = v > other ? v : other; }

SPARSVM_INLINE void keep_smaller(Pack& v, const Pack& other) { v = v < other ? v : other; }

/// v <- v + by in the lanes where a = b.
SPARSVM_INLINE void add_where_equal(Pack& v, const Pack& a, const Pack& b, const Pack& by) {
  v += a == b ? by : Pack{};
}

/// Lanes of v above the bound are added up and counted.
SPARSVM_INLINE void add_above(const Pack& v, const Pack& bound, Pack& sum, Pack& count) {
  sum += v > bound ? v : Pack{};
  count += v > bound ? Pack{} + 1.0 : Pack{};
}

/// Whether all lanes of all packs are 0 or −0.
template <int P>
SPARSVM_INLINE bool all_zero(const Pack (&v)[P]) {
  PackBits bits = {};
  for (int p = 0; p < P; ++p) bits |= reinterpret_cast<PackBits>(v[p]);
  return (((bits[0] | bits[2]) | (bits[1] | bits[3])) << 1) == 0;
}

/// v <- v times 2 to the integer in the low bits of `shifted`, which are moved into the exponent.
SPARSVM_INLINE void scale_by_power(Pack& v, const Pack& shifted) {
  v *= reinterpret_cast<Pack>((reinterpret_cast<PackBits>(shifted) + 1023) << 52);
}

/// Lanes of two packs, those of the second counting from four.
#if defined(__clang__) || __GNUC__ >= 12
#define SPARSVM_PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define SPARSVM_PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, PackBits{i, j, k, l})
#endif

/// Four packs as the rows of a square, turned into its columns.
SPARSVM_INLINE void transpose(Pack (&v)[4]) {
  const Pack a = SPARSVM_PICK(v[0], v[1], 0, 4, 2, 6), b = SPARSVM_PICK(v[0], v[1], 1, 5, 3, 7);
  const Pack c = SPARSVM_PICK(v[2], v[3], 0, 4, 2, 6), d = SPARSVM_PICK(v[2], v[3], 1, 5, 3, 7);
  v[0] = SPARSVM_PICK(a, c, 0, 1, 4, 5);
  v[1] = SPARSVM_PICK(b, d, 0, 1, 4, 5);
  v[2] = SPARSVM_PICK(a, c, 2, 3, 6, 7);
  v[3] = SPARSVM_PICK(b, d, 2, 3, 6, 7);
}

#if defined(SPARSVM_EIGHT)

/// Eight doubles, for functions marked SPARSVM_EIGHT.
using WidePack = double __attribute__((vector_size(64)));
using LooseWidePack = double __attribute__((vector_size(64), aligned(8), may_alias));

SPARSVM_INLINE void load(WidePack& v, const double* from) {
  v = *reinterpret_cast<const LooseWidePack*>(from);
}

SPARSVM_INLINE void spread(WidePack& v, double value) {
  v = WidePack{value, value, value, value, value, value, value, value};
}

SPARSVM_INLINE void store(double* to, const WidePack& v) {
  *reinterpret_cast<LooseWidePack*>(to) = v;
}

// Written out because GCC makes a comparison and a selection of v > other ? v : other.
SPARSVM_INLINE void keep_positive(WidePack& v) {
  asm("vmaxpd %1, %0, %0" : "+v"(v) : "v"(WidePack{}));
}

SPARSVM_INLINE void keep_smaller(WidePack& v, const WidePack& other) {
  asm("vminpd %1, %0, %0" : "+v"(v) : "v"(other));
}

SPARSVM_INLINE void add_where_equal(WidePack& v, const WidePack& a, const WidePack& b,
                                    const WidePack& by) {
  v = a == b ? v + by : v;
}

SPARSVM_INLINE void keep_larger(WidePack& v, const WidePack& other) {
  asm("vmaxpd %1, %0, %0" : "+v"(v) : "v"(other));
}

SPARSVM_INLINE void add_above(const WidePack& v, const WidePack& bound, WidePack& sum,
                              WidePack& count) {
  sum += v > bound ? v : WidePack{};
  count += v > bound ? WidePack{} + 1.0 : WidePack{};
}

/// sum <- sum + a·b, rounded once: as the products of BLAS, unlike those of other packs.
SPARSVM_INLINE void add_product(WidePack& sum, const WidePack& a, const WidePack& b) {
  asm("vfmadd231pd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

/// sum <- sum + a by the unit for products, where that for sums is busy.
SPARSVM_INLINE void add_aside(WidePack& sum, const WidePack& a, const WidePack& one) {
  add_product(sum, a, one);
}

SPARSVM_INLINE double sum_of(const WidePack& v) {
  return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

#endif

#else

/// N numbers; every operation goes lane by lane, a scalar standing for all lanes alike.
template <typename T, int N>
struct Lanes {
  T lane[N] = {};

  SPARSVM_INLINE T operator[](int k) const { return lane[k]; }

  template <typename Operation>
  SPARSVM_INLINE static Lanes of(Operation operation) {
    Lanes out;
    for (int k = 0; k < N; ++k) out.lane[k] = operation(k);
    return out;
  }

  friend SPARSVM_INLINE Lanes operator+(const Lanes& a, const Lanes& b) {
    return of([&](int k) { return a.lane[k] + b.lane[k]; });
  }
  friend SPARSVM_INLINE Lanes operator+(const Lanes& a, T b) {
    return of([&](int k) { return a.lane[k] + b; });
  }
  friend SPARSVM_INLINE Lanes operator-(const Lanes& a, const Lanes& b) {
    return of([&](int k) { return a.lane[k] - b.lane[k]; });
  }
  friend SPARSVM_INLINE Lanes operator-(const Lanes& a, T b) {
    return of([&](int k) { return a.lane[k] - b; });
  }
  friend SPARSVM_INLINE Lanes operator*(const Lanes& a, const Lanes& b) {
    return of([&](int k) { return a.lane[k] * b.lane[k]; });
  }
  friend SPARSVM_INLINE Lanes operator*(const Lanes& a, T b) {
    return of([&](int k) { return a.lane[k] * b; });
  }
  friend SPARSVM_INLINE Lanes operator*(T a, const Lanes& b) { return b * a; }
  friend SPARSVM_INLINE Lanes operator/(const Lanes& a, const Lanes& b) {
    return of([&](int k) { return a.lane[k] / b.lane[k]; });
  }
  SPARSVM_INLINE Lanes& operator+=(const Lanes& other) { return *this = *this + other; }
  SPARSVM_INLINE Lanes& operator*=(T factor) { return *this = *this * factor; }
};

using Pack = Lanes<double, 4>;
using PackF = Lanes<float, 8>;

template <typename P, typename T>
SPARSVM_INLINE P load_pack(const T* from) {
  P out;
  std::memcpy(out.lane, from, sizeof(out.lane));
  return out;
}

#define SPARSVM_LOAD(pointer) (::sparsvm::load_pack<::sparsvm::Pack>(pointer))
#define SPARSVM_STORE(pointer, value) \
  (std::memcpy((pointer), ::sparsvm::Pack(value).lane, sizeof(::sparsvm::Pack)))
#define SPARSVM_LOADF(pointer) (::sparsvm::load_pack<::sparsvm::PackF>(pointer))
#define SPARSVM_STOREF(pointer, value) \
  (std::memcpy((pointer), ::sparsvm::PackF(value).lane, sizeof(::sparsvm::PackF)))

SPARSVM_INLINE void load(Pack& v, const double* from) { v = SPARSVM_LOAD(from); }

SPARSVM_INLINE void store(double* to, const Pack& v) { SPARSVM_STORE(to, v); }

SPARSVM_INLINE void load_widened(Pack& v, const float* from) {
  v = Pack::of([&](int k) { return static_cast<double>(from[k]); });
}

SPARSVM_INLINE void store_rounded(const Pack& v, float* to) {
  for (int k = 0; k < 4; ++k) to[k] = static_cast<float>(v[k]);
}

SPARSVM_INLINE void keep_larger(Pack& v, const Pack& other) {
  v = Pack::of([&](int k) { return v.lane[k] > other.lane[k] ? v.lane[k] : other.lane[k]; });
}

SPARSVM_INLINE void keep_smaller(Pack& v, const Pack& other) {
  v = Pack::of([&](int k) { return v.lane[k] < other.lane[k] ? v.lane[k] : other.lane[k]; });
}

SPARSVM_INLINE void add_where_equal(Pack& v, const Pack& a, const Pack& b, const Pack& by) {
  v += Pack::of([&](int k) { return a.lane[k] == b.lane[k] ? by.lane[k] : 0.0; });
}

SPARSVM_INLINE void add_above(const Pack& v, const Pack& bound, Pack& sum, Pack& count) {
  sum += Pack::of([&](int k) { return v.lane[k] > bound.lane[k] ? v.lane[k] : 0.0; });
  count += Pack::of([&](int k) { return v.lane[k] > bound.lane[k] ? 1.0 : 0.0; });
}

SPARSVM_INLINE void keep_positive(Pack& v) { keep_larger(v, Pack{}); }

template <int P>
SPARSVM_INLINE bool all_zero(const Pack (&v)[P]) {
  for (int p = 0; p < P; ++p) {
    for (int k = 0; k < 4; ++k) {
      if (v[p].lane[k] != 0.0) return false;
    }
  }
  return true;
}

SPARSVM_INLINE void transpose(Pack (&v)[4]) {
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < i; ++k) std::swap(v[i].lane[k], v[k].lane[i]);
  }
}

SPARSVM_INLINE void scale_by_power(Pack& v, const Pack& shifted) {
  for (int k = 0; k < 4; ++k) {
    std::uint64_t bits;
    std::memcpy(&bits, &shifted.lane[k], sizeof(bits));
    bits = (bits + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof(power));
    v.lane[k] *= power;
  }
}

#endif

SPARSVM_INLINE void store_rounded(const Pack& v, double* to) { SPARSVM_STORE(to, v); }

/// v <- exp(v) for v <= 0, to about one unit in the last place; below -700 it stays exp(-700).
SPARSVM_INLINE void exponentiate(Pack& v) {
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  keep_larger(v, Pack{} - 700.0);
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
  scale_by_power(sum, shifted);
  v = sum;
}

/// The same number in all lanes; unlike Pack{} + value it takes no addition.
#define SPARSVM_SPREAD(value) (::sparsvm::Pack{(value), (value), (value), (value)})

SPARSVM_INLINE void spread(Pack& v, double value) { v = SPARSVM_SPREAD(value); }

SPARSVM_INLINE void add_product(Pack& sum, const Pack& a, const Pack& b) { sum += a * b; }

SPARSVM_INLINE void add_aside(Pack& sum, const Pack& a, const Pack&) { sum += a; }

SPARSVM_INLINE double sum_of(const Pack& v) { return (v[0] + v[1]) + (v[2] + v[3]); }

SPARSVM_INLINE double largest_of(const Pack& v) {
  const double a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
  return a > b ? a : b;
}

SPARSVM_INLINE float sum_of(const PackF& v) {
  return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

}  // namespace sparsvm
