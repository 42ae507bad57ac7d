// Rows of numbers, one per class, in registers of eight doubles; of four if that is enough for the last.
#pragma once

#include <immintrin.h>

#include "solvers/papers/fbpd_kernels/registers.hpp"

namespace sparsvm::registers {

namespace {

using Eight = __m512d;
using Four = __m256d;

/// The same for registers of either size.
template <typename V>
inline constexpr bool is_eight = sizeof(V) == sizeof(Eight);

template <typename V>
SPARSVM_TARGET_INLINE V spread(double x) {
  if constexpr (is_eight<V>) {
    return _mm512_set1_pd(x);
  } else {
    return _mm256_set1_pd(x);
  }
}

template <typename V>
SPARSVM_TARGET_INLINE V load(const double* from) {
  if constexpr (is_eight<V>) {
    return _mm512_loadu_pd(from);
  } else {
    return _mm256_loadu_pd(from);
  }
}

template <typename V>
SPARSVM_TARGET_INLINE V load_some(__mmask8 lanes, const double* from) {
  if constexpr (is_eight<V>) {
    return _mm512_maskz_loadu_pd(lanes, from);
  } else {
    return _mm256_maskz_loadu_pd(lanes, from);
  }
}

SPARSVM_TARGET_INLINE void store(double* to, Eight v) { _mm512_storeu_pd(to, v); }
SPARSVM_TARGET_INLINE void store(double* to, Four v) { _mm256_storeu_pd(to, v); }

SPARSVM_TARGET_INLINE Eight add_product(Eight a, Eight b, Eight sum) {
  return _mm512_fmadd_pd(a, b, sum);
}
SPARSVM_TARGET_INLINE Four add_product(Four a, Four b, Four sum) {
  return _mm256_fmadd_pd(a, b, sum);
}

SPARSVM_TARGET_INLINE Eight add_some(Eight v, __mmask8 lanes, Eight by) {
  return _mm512_mask_add_pd(v, lanes, v, by);
}
SPARSVM_TARGET_INLINE Four add_some(Four v, __mmask8 lanes, Four by) {
  return _mm256_mask_add_pd(v, lanes, v, by);
}

SPARSVM_TARGET_INLINE Eight larger(Eight a, Eight b) { return _mm512_maskz_max_pd(0xFF, a, b); }
SPARSVM_TARGET_INLINE Four larger(Four a, Four b) { return _mm256_max_pd(a, b); }

SPARSVM_TARGET_INLINE __mmask8 lanes_above(Eight v, Eight bound) {
  return _mm512_cmp_pd_mask(v, bound, _CMP_GT_OQ);
}
SPARSVM_TARGET_INLINE __mmask8 lanes_above(Four v, Four bound) {
  return _mm256_cmp_pd_mask(v, bound, _CMP_GT_OQ);
}

SPARSVM_TARGET_INLINE Eight widened(Eight v) { return v; }
SPARSVM_TARGET_INLINE Eight widened(Four v) {
  return __builtin_shufflevector(v, Four{}, 0, 1, 2, 3, 4, 5, 6, 7);
}

// Halves by shuffles, since the compiler's own reductions warn about lanes they do not use.
SPARSVM_TARGET_INLINE Four low_half(Eight v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3); }
SPARSVM_TARGET_INLINE Four high_half(Eight v) { return __builtin_shufflevector(v, v, 4, 5, 6, 7); }

SPARSVM_TARGET_INLINE double sum_of(Four v) {
  const Four two = v + __builtin_shufflevector(v, v, 2, 3, 0, 1);
  return two[0] + two[1];
}
SPARSVM_TARGET_INLINE double sum_of(Eight v) { return sum_of(low_half(v) + high_half(v)); }

SPARSVM_TARGET_INLINE double largest_of(Eight v) {
  const Four four = _mm256_max_pd(low_half(v), high_half(v));
  const Four two = _mm256_max_pd(four, __builtin_shufflevector(four, four, 2, 3, 0, 1));
  return two[0] > two[1] ? two[0] : two[1];
}

/// A set of classes, a bit each, for P packs.
template <int P>
struct Classes {
  static constexpr int words = (P + 7) / 8;
  std::uint64_t word[words] = {};

  SPARSVM_TARGET_INLINE static Classes only(std::int64_t k) {
    Classes out;
    for (int w = 0; w < words; ++w) {
      out.word[w] = words == 1 || k / 64 == w ? std::uint64_t{1} << (k % 64) : 0;
    }
    return out;
  }
  SPARSVM_TARGET_INLINE void add(int p, __mmask8 lanes) {
    word[p / 8] |= std::uint64_t{lanes} << (p % 8 * 8);
  }
  SPARSVM_TARGET_INLINE __mmask8 lanes(int p) const {
    return static_cast<__mmask8>(word[p / 8] >> (p % 8 * 8));
  }
  SPARSVM_TARGET_INLINE std::size_t count() const {
    int sum = 0;
    for (const std::uint64_t part : word) sum += __builtin_popcountll(part);
    return static_cast<std::size_t>(sum);
  }
  SPARSVM_TARGET_INLINE bool operator==(const Classes& other) const {
    std::uint64_t apart = 0;
    for (int w = 0; w < words; ++w) apart |= word[w] ^ other.word[w];
    return apart == 0;
  }
};

template <bool eight>
struct EightIf {
  using type = Eight;
};
template <>
struct EightIf<false> {
  using type = Four;
};

template <int p>
using Index = std::integral_constant<int, p>;

/// A row of up to 8F + 4H classes.
template <int F, bool H>
struct Row {
  static constexpr int packs = F + H;
  template <typename P>
  using Pack = typename EightIf<(P::value < F)>::type;

  Eight full[F > 0 ? F : 1];
  Four half;

  template <int p>
  SPARSVM_TARGET_INLINE auto& at(Index<p>) {
    if constexpr (p < F) {
      return full[p];
    } else {
      return half;
    }
  }
};

/// Rows of whole registers, each of which lies in one cache line: the last halves are apart.
template <int F, bool H>
struct PaddedRows {
  double *from, *half;

  template <int p>
  SPARSVM_TARGET_INLINE double* at(Index<p>, std::int64_t row) const {
    return p < F ? from + row * (8 * F) + 8 * p : half + row * 4;
  }
};

/// Rows of K entries, one after the other.
template <int F, bool H>
struct Shape {
  static constexpr int width = 8, packs = F + H, most_packs = packs;
  static constexpr bool is_long = packs > 4, in_memory = false;
  using Row = registers::Row<F, H>;
  using Set = Classes<packs>;
  using Padded = PaddedRows<F, H>;
  struct Own {
    Set set;
  };
  template <int p>
  using Pack = typename EightIf<(p < F)>::type;

  std::int64_t K;
  __mmask8 tail;
  __m512i end;  // where the entries at the end of a row are in its last two packs

  SPARSVM_TARGET_INLINE explicit Shape(std::int64_t classes)
      : K(classes), tail(static_cast<__mmask8>(0xFF >> (8 * packs - classes))),
        end(_mm512_add_epi64(
            _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
            _mm512_set1_epi64(classes - last_at - (packs > 1 ? 8 * (packs - 2) : 0)))) {}

  /// use(p) for all packs.
  template <typename Use>
  SPARSVM_TARGET_INLINE static void each(Use use) {
    repeat<packs>(use);
  }

  /// How many entries a row of whole packs has.
  SPARSVM_TARGET_INLINE static constexpr std::int64_t room() { return 8 * F + 4 * H; }
  SPARSVM_TARGET_INLINE static Padded padded(double* from, std::int64_t rows) {
    return {from, from + 8 * F * rows};
  }

  SPARSVM_TARGET_INLINE static Row blank() { return Row{}; }

  template <int p>
  SPARSVM_TARGET_INLINE auto load_pack(const double* row, Index<p>) const {
    if constexpr (p + 1 < packs) {
      return load<Pack<p>>(row + 8 * p);
    } else {
      return load_some<Pack<p>>(tail, row + 8 * p);
    }
  }

  /// The last pack ends where the row ends, and repeats what the one before it has: a store of a part
  /// of a pack keeps the load of the row behind it waiting.
  SPARSVM_TARGET_INLINE void store_row(double* row, Row& v) const {
    if constexpr (packs > 1) {
      repeat<packs - 1>([&](auto p) SPARSVM_TARGET_LAMBDA { store(row + 8 * p, v.at(p)); });
      const Eight last =
          _mm512_permutex2var_pd(v.at(Index<packs - 2>{}), end, widened(v.at(Index<packs - 1>{})));
      if constexpr (H) {
        store(row + K - 4, low_half(last));
      } else {
        store(row + K - 8, last);
      }
    } else if constexpr (F == 1) {
      store(row, low_half(v.full[0]));
      store(row + K - 4, low_half(_mm512_maskz_permutexvar_pd(0xFF, end, v.full[0])));
    } else {
      const Eight last = _mm512_maskz_permutexvar_pd(0xFF, end, widened(v.half));
      _mm_storeu_pd(row, __builtin_shufflevector(v.half, v.half, 0, 1));
      _mm_storeu_pd(row + K - 2, __builtin_shufflevector(last, last, 0, 1));
    }
  }

  /// row = v = made(p) for all packs.
  template <typename Make>
  SPARSVM_TARGET_INLINE void store_made(double* row, Row& v, Make made) const {
    each([&](auto p) SPARSVM_TARGET_LAMBDA { v.at(p) = made(p); });
    store_row(row, v);
  }

  SPARSVM_TARGET_INLINE void clear_row(double* row) const {
    Row zero = {};
    store_row(row, zero);
  }

  /// row += v.
  SPARSVM_TARGET_INLINE void add_row(double* row, Row& v) const {
    Row sum;
    each([&](auto p) SPARSVM_TARGET_LAMBDA { sum.at(p) = load_pack(row, p) + v.at(p); });
    store_row(row, sum);
  }

  /// The same for one pack.
  template <int p, typename V>
  SPARSVM_TARGET_INLINE void add_pack(double* row, Index<p> at, V v) const {
    if constexpr (p + 1 < packs) {
      store(row + 8 * p, load_pack(row, at) + v);
    } else if constexpr (is_eight<V>) {
      _mm512_mask_storeu_pd(row + 8 * p, tail, load_pack(row, at) + v);
    } else {
      _mm256_mask_storeu_pd(row + 8 * p, tail, load_pack(row, at) + v);
    }
  }

  SPARSVM_TARGET_INLINE static Own own(std::int64_t y) { return {Set::only(y)}; }

  /// v + `by` at the true class.
  template <int p, typename V>
  SPARSVM_TARGET_INLINE static V add_own(V v, Index<p>, const Own& own, double by) {
    return add_some(v, own.set.lanes(p), spread<V>(by));
  }

  /// The entry of the true class less the largest of the others.
  SPARSVM_TARGET_INLINE static double slack_of(Row& v, const Own& own) {
    Eight others = spread<Eight>(below_all), its = others;
    each([&](auto p) SPARSVM_TARGET_LAMBDA {
      const __mmask8 here = own.set.lanes(p);
      const auto rest = static_cast<__mmask8>((p < F ? 0xFF : 0x0F) & ~here);
      const Eight part = widened(v.at(p));
      others = _mm512_mask_max_pd(others, rest, others, part);
      its = _mm512_mask_max_pd(its, here, its, part);
    });
    return largest_of(its) - largest_of(others);
  }

  SPARSVM_TARGET_INLINE static Set find_above(Row& v, double theta) {
    Set above;
    each([&](auto p)
             SPARSVM_TARGET_LAMBDA { above.add(p, lanes_above(v.at(p), spread<Pack<p>>(theta))); });
    return above;
  }

  /// Σ_k (v_k − bound)₊.
  SPARSVM_TARGET_INLINE static double excess_of(Row& v, double bound) {
    Pack<0> sum = {};
    each([&](auto p) SPARSVM_TARGET_LAMBDA {
      using V = Pack<p>;
      const V part = larger(v.at(p) - spread<V>(bound), V{});
      if constexpr (F == 0) {
        sum = part;
      } else {
        sum += widened(part);
      }
    });
    return sum_of(sum);
  }

  /// What is above the bound, and by how much together.
  SPARSVM_TARGET_INLINE static Set measure(Row& v, double bound, double& excess) {
    excess = excess_of(v, bound);
    return find_above(v, bound);
  }

  /// use(p) for the packs that have a class of one of the sets.
  template <typename Use>
  SPARSVM_TARGET_INLINE static void each_used(const Set& a, const Set& b, Use use) {
    each([&](auto p) SPARSVM_TARGET_LAMBDA {
      if ((a.lanes(p) | b.lanes(p)) != 0) use(p);
    });
  }

  /// How many entries the last store of a row has.
  static constexpr std::int64_t last_at = packs > 1 ? (H ? 4 : 8) : F == 1 ? 4 : 2;
};

}  // namespace

}  // namespace sparsvm::registers
