// Four doubles or eight floats at a time, and functions compiled for several instruction sets.
//
// They are GCC's and clang's vector types, which compile for any instruction set; other
// compilers get plain arrays with the same operations in the same order (SPARSVM_PLAIN_SIMD asks for
// them anywhere). Products and sums are lane by lane and never contracted, so the results do not
// depend on the instruction set.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

// Hot functions compiled for AVX2 (some for AVX-512) and the baseline; the one that suits the machine
// is chosen when the module is loaded.
//
// Nothing is contracted and the order of sums does not depend on the width, so all give the same
// bits. Functions marked SPARSVM_DISPATCH must not be templates; what they call must be
// SPARSVM_INLINE.
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

namespace sparsvm {

#if (defined(__GNUC__) || defined(__clang__)) && !defined(SPARSVM_PLAIN_SIMD)

using Simd = double __attribute__((vector_size(32)));
using SimdBits = int64_t __attribute__((vector_size(32)));
using SimdF = float __attribute__((vector_size(32)));
// In memory they may lie anywhere.
using UnalignedSimd = double __attribute__((vector_size(32), aligned(8), may_alias));
using UnalignedSimdF = float __attribute__((vector_size(32), aligned(4), may_alias));
using UnalignedHalfSimdF = float __attribute__((vector_size(16), aligned(4), may_alias));

// A value, not a place: bound to a const Simd& a place would count as aligned.
#define SPARSVM_LOAD(pointer) (::sparsvm::Simd(*reinterpret_cast<const UnalignedSimd*>(pointer)))
#define SPARSVM_STORE(pointer, value) (*reinterpret_cast<UnalignedSimd*>(pointer) = (value))
#define SPARSVM_LOADF(pointer) (::sparsvm::SimdF(*reinterpret_cast<const UnalignedSimdF*>(pointer)))
#define SPARSVM_STOREF(pointer, value) (*reinterpret_cast<UnalignedSimdF*>(pointer) = (value))

SPARSVM_INLINE void load(Simd& v, const double* from) { v = SPARSVM_LOAD(from); }

SPARSVM_INLINE void store(double* to, const Simd& v) { SPARSVM_STORE(to, v); }

// Four floats, widened.
SPARSVM_INLINE void load_widened(Simd& v, const float* from) {
  v = __builtin_convertvector(*reinterpret_cast<const UnalignedHalfSimdF*>(from), Simd);
}

SPARSVM_INLINE void store_rounded(const Simd& v, float* to) {
  *reinterpret_cast<UnalignedHalfSimdF*>(to) =
      __builtin_convertvector(v, float __attribute__((vector_size(16))));
}

SPARSVM_INLINE void keep_positive(Simd& v) { v = v > 0.0 ? v : Simd{}; }

SPARSVM_INLINE void keep_larger(Simd& v, const Simd& other) { v = v > other ? v : other; }

// Lanes of v above the bound are added up and counted.
SPARSVM_INLINE void add_above(const Simd& v, const Simd& bound, Simd& sum, Simd& count) {
  sum += v > bound ? v : Simd{};
  count += v > bound ? Simd{} + 1.0 : Simd{};
}

// Whether all lanes of all vectors are 0 or −0.
template <int P>
SPARSVM_INLINE bool all_zero(const Simd (&v)[P]) {
  SimdBits bits = {};
  for (int p = 0; p < P; ++p) bits |= reinterpret_cast<SimdBits>(v[p]);
  return (((bits[0] | bits[2]) | (bits[1] | bits[3])) << 1) == 0;
}

// v <- v times 2 to the integer in the low bits of `shifted`, which are moved into the exponent.
SPARSVM_INLINE void scale_by_power(Simd& v, const Simd& shifted) {
  v *= reinterpret_cast<Simd>((reinterpret_cast<SimdBits>(shifted) + 1023) << 52);
}

// v <- the factor of v >= 1 between 0.7 and 1.4 that is left without the power of two; its exponent.
SPARSVM_INLINE void split_power(Simd& v, Simd& exponent) {
  using Words = uint64_t __attribute__((vector_size(32)));
  constexpr uint64_t kHalfRoot = 0x3FE6A09E667F3BCD, kOne = 0x3FF0000000000000;
  constexpr double kShift = 4503599627370496.0;  // 2^52: an integer in its low bits is added
  const Words bits = reinterpret_cast<Words>(v), biased = (bits - kHalfRoot + kOne) >> 52;
  exponent =
      reinterpret_cast<Simd>(biased | reinterpret_cast<Words>(Simd{} + kShift)) - (kShift + 1023.0);
  v = reinterpret_cast<Simd>(bits + kOne - (biased << 52));
}

#else

// N numbers; every operation goes lane by lane, a scalar standing for all lanes alike.
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

using Simd = Lanes<double, 4>;
using SimdF = Lanes<float, 8>;

template <typename P, typename T>
SPARSVM_INLINE P load_pack(const T* from) {
  P out;
  std::memcpy(out.lane, from, sizeof(out.lane));
  return out;
}

#define SPARSVM_LOAD(pointer) (::sparsvm::load_pack<::sparsvm::Simd>(pointer))
#define SPARSVM_STORE(pointer, value) \
  (std::memcpy((pointer), ::sparsvm::Simd(value).lane, sizeof(::sparsvm::Simd)))
#define SPARSVM_LOADF(pointer) (::sparsvm::load_pack<::sparsvm::SimdF>(pointer))
#define SPARSVM_STOREF(pointer, value) \
  (std::memcpy((pointer), ::sparsvm::SimdF(value).lane, sizeof(::sparsvm::SimdF)))

SPARSVM_INLINE void load(Simd& v, const double* from) { v = SPARSVM_LOAD(from); }

SPARSVM_INLINE void store(double* to, const Simd& v) { SPARSVM_STORE(to, v); }

SPARSVM_INLINE void load_widened(Simd& v, const float* from) {
  v = Simd::of([&](int k) { return static_cast<double>(from[k]); });
}

SPARSVM_INLINE void store_rounded(const Simd& v, float* to) {
  for (int k = 0; k < 4; ++k) to[k] = static_cast<float>(v[k]);
}

SPARSVM_INLINE void keep_larger(Simd& v, const Simd& other) {
  v = Simd::of([&](int k) { return v.lane[k] > other.lane[k] ? v.lane[k] : other.lane[k]; });
}

SPARSVM_INLINE void add_above(const Simd& v, const Simd& bound, Simd& sum, Simd& count) {
  sum += Simd::of([&](int k) { return v.lane[k] > bound.lane[k] ? v.lane[k] : 0.0; });
  count += Simd::of([&](int k) { return v.lane[k] > bound.lane[k] ? 1.0 : 0.0; });
}

SPARSVM_INLINE void keep_positive(Simd& v) { keep_larger(v, Simd{}); }

template <int P>
SPARSVM_INLINE bool all_zero(const Simd (&v)[P]) {
  for (int p = 0; p < P; ++p) {
    for (int k = 0; k < 4; ++k) {
      if (v[p].lane[k] != 0.0) return false;
    }
  }
  return true;
}

SPARSVM_INLINE void scale_by_power(Simd& v, const Simd& shifted) {
  for (int k = 0; k < 4; ++k) {
    uint64_t bits;
    std::memcpy(&bits, &shifted.lane[k], sizeof(bits));
    bits = (bits + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof(power));
    v.lane[k] *= power;
  }
}

SPARSVM_INLINE void split_power(Simd& v, Simd& exponent) {
  constexpr int64_t kHalfRoot = 0x3FE6A09E667F3BCD;
  for (int k = 0; k < 4; ++k) {
    int64_t bits;
    std::memcpy(&bits, &v.lane[k], sizeof(bits));
    const int64_t power = (bits - kHalfRoot) >> 52;
    bits -= power << 52;
    std::memcpy(&v.lane[k], &bits, sizeof(bits));
    exponent.lane[k] = static_cast<double>(power);
  }
}

#endif

SPARSVM_INLINE void store_rounded(const Simd& v, double* to) { SPARSVM_STORE(to, v); }

// v <- exp(v) for v <= 0, to about one unit in the last place; below -700 it stays exp(-700).
SPARSVM_INLINE void exponentiate(Simd& v) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  keep_larger(v, Simd{} - 700.0);
  const Simd shifted = v * 1.4426950408889634 + kMagic;
  const Simd whole = shifted - kMagic;
  const Simd f = (v - whole * 6.93147180369123816490e-01) - whole * 1.90821492927058770002e-10;
  Simd sum = f * (1.0 / 479001600.0) + 1.0 / 39916800.0;
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

// v <- log(1 + v) for v >= 0, to about a unit in the last place (the series of fdlibm).
SPARSVM_INLINE void log_one_plus(Simd& v) {
  const Simd whole = v + 1.0;
  // What rounding has taken from 1 + v, relative to it.
  const Simd lost = (v - (whole - 1.0)) / whole;
  Simd factor = whole, exponent;
  split_power(factor, exponent);
  const Simd f = factor - 1.0, s = f / (f + 2.0), z = s * s, half = f * f * 0.5;
  Simd sum = z * 1.479819860511658591e-01 + 1.531383769920937332e-01;
  sum = sum * z + 1.818357216161805012e-01;
  sum = sum * z + 2.222219843214978396e-01;
  sum = sum * z + 2.857142874366239149e-01;
  sum = sum * z + 3.999999999940941908e-01;
  sum = sum * z + 6.666666666666735130e-01;
  const Simd low = s * (half + sum * z) + exponent * 1.90821492927058770002e-10 + lost;
  v = exponent * 6.93147180369123816490e-01 + (f - (half - low));
}

// The same number in all lanes; unlike Simd{} + value it takes no addition.
#define SPARSVM_SPREAD(value) (::sparsvm::Simd{(value), (value), (value), (value)})

SPARSVM_INLINE void add_product(Simd& sum, const Simd& a, const Simd& b) { sum += a * b; }

SPARSVM_INLINE double sum_of(const Simd& v) { return (v[0] + v[1]) + (v[2] + v[3]); }

SPARSVM_INLINE double largest_of(const Simd& v) {
  const double a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
  return a > b ? a : b;
}

SPARSVM_INLINE float sum_of(const SimdF& v) {
  return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

// -----------------------------------------------------------------
// Rows of K doubles as SIMD vectors of four.
//
// Each vector begins where the one before it ends, but the last ends where the row ends, and may repeat
// entries of its neighbour: nothing beyond a row is read or written, whatever K is. Work on a tile
// loads all its vectors before it stores one, so that what is repeated is the same twice.

// use(0), ..., use(N − 1) written out, so that arrays they index need not lie in memory.
template <int N, typename Use>
SPARSVM_INLINE void repeat(Use use) {
  [&]<int... i>(std::integer_sequence<int, i...>) SPARSVM_INLINE_LAMBDA {
    (use(std::integral_constant<int, i>{}), ...);
  }(std::make_integer_sequence<int, N>{});
}

// P vectors from `first` on, `size` entries; of fewer than four, two or three, the only vector holds N.
template <int P, int N>
struct RowTile {
  static constexpr int vectors = P;
  int64_t first, last;

  SPARSVM_INLINE RowTile(int64_t from, int64_t size)
      : first(from), last(from + (N < 4 ? 0 : size - 4)) {}

  SPARSVM_INLINE int64_t at(int p) const { return p + 1 < P ? first + 4 * p : last; }

  SPARSVM_INLINE void load(const double* row, int p, Simd& v) const {
    if constexpr (N == 4) {
      v = SPARSVM_LOAD(row + at(p));
    } else if constexpr (N == 3) {
      v = Simd{row[0], row[1], row[2], 0.0};
    } else {
      v = Simd{row[0], row[1], 0.0, 0.0};
    }
  }

  SPARSVM_INLINE void store(double* row, int p, const Simd& v) const {
    if constexpr (N == 4) {
      SPARSVM_STORE(row + at(p), v);
    } else {
      for (int l = 0; l < N; ++l) row[l] = v[l];
    }
  }

  SPARSVM_INLINE void load(const double* row, Simd (&v)[P]) const {
    repeat<P>([&](auto p) SPARSVM_INLINE_LAMBDA { load(row, p, v[p]); });
  }

  SPARSVM_INLINE void store(double* row, const Simd (&v)[P]) const {
    repeat<P>([&](auto p) SPARSVM_INLINE_LAMBDA { store(row, p, v[p]); });
  }
};

// Entries whose sums stay in registers: eight vectors of four.
inline constexpr int64_t kMostInTile = 32;

// The tiles of a row that is one.
template <typename Tile>
struct OneTile {
  Tile tile;
  template <typename Use>
  SPARSVM_INLINE void each(Use use) const {
    use(tile);
  }
};

// Those of a longer row, which differ by one entry at most.
struct ManyTiles {
  int64_t entries;
  template <typename Use>
  SPARSVM_INLINE void each(Use use) const {
    const int64_t tiles = (entries + kMostInTile - 1) / kMostInTile;
    for (int64_t t = 0, k = 0; t < tiles; ++t) {
      const int64_t size = (entries - k) / (tiles - t);
      switch ((size + 3) / 4) {  // of 33 entries the first tile has 16
        case 4: use(RowTile<4, 4>(k, size)); break;
        case 5: use(RowTile<5, 4>(k, size)); break;
        case 6: use(RowTile<6, 4>(k, size)); break;
        case 7: use(RowTile<7, 4>(k, size)); break;
        default: use(RowTile<8, 4>(k, size)); break;
      }
      k += size;
    }
  }
};

// use(tiles), once, with the tiles of rows of at least two entries.
template <typename Use>
SPARSVM_INLINE void with_tiles(int64_t entries, Use use) {
  const auto one = [&]<int P, int N>() SPARSVM_INLINE_LAMBDA {
    use(OneTile<RowTile<P, N>>{RowTile<P, N>(0, entries)});
  };
  if (entries > kMostInTile) return use(ManyTiles{entries});
  switch (entries) {
    case 2: return one.template operator()<1, 2>();
    case 3: return one.template operator()<1, 3>();
    case 4: return one.template operator()<1, 4>();
    default: break;
  }
  switch ((entries + 3) / 4) {
    case 2: return one.template operator()<2, 4>();
    case 3: return one.template operator()<3, 4>();
    case 4: return one.template operator()<4, 4>();
    case 5: return one.template operator()<5, 4>();
    case 6: return one.template operator()<6, 4>();
    case 7: return one.template operator()<7, 4>();
    default: return one.template operator()<8, 4>();
  }
}

// v += factor · Σ_e x_e B[index_e], the rows of B being K long.
template <typename Tile, typename T, typename Index>
SPARSVM_INLINE void add_row_product(const Tile& tile, const T* x, const Index& index, int64_t count,
                                    double factor, const double* B, int64_t K,
                                    Simd (&v)[Tile::vectors]) {
  for (int64_t e = 0; e < count; ++e) {
    const double value = factor * static_cast<double>(x[e]);
    const Simd scale = SPARSVM_SPREAD(value);
    const double* b = B + index[e] * K;
    repeat<Tile::vectors>([&](auto p) SPARSVM_INLINE_LAMBDA {
      Simd w;
      tile.load(b, p, w);
      add_product(v[p], scale, w);
    });
  }
}

// G[index_e] += x_e v for all entries, the rows of G being K long.
template <typename Tile, typename T, typename Index>
SPARSVM_INLINE void add_row_transposed(const Tile& tile, const T* x, const Index& index,
                                       int64_t count, const Simd (&v)[Tile::vectors], int64_t K,
                                       double* G) {
  for (int64_t e = 0; e < count; ++e) {
    const double value = static_cast<double>(x[e]);
    const Simd scale = SPARSVM_SPREAD(value);
    double* g = G + index[e] * K;
    Simd sum[Tile::vectors];
    tile.load(g, sum);
    repeat<Tile::vectors>([&](auto p) SPARSVM_INLINE_LAMBDA { add_product(sum[p], scale, v[p]); });
    tile.store(g, sum);
  }
}

}  // namespace sparsvm
