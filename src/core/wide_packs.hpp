// Rows of numbers, one per class, in registers of eight doubles; of four if that is enough for the last.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "clones.hpp"

#if defined(SPARSVM_WIDE)

#include <immintrin.h>

namespace sparsvm::wide {

// Everything stays in registers only if nothing of it is passed to a function that is called.
#define SPARSVM_WIDE_INLINE inline SPARSVM_WIDE __attribute__((always_inline))
#define SPARSVM_WIDE_LAMBDA SPARSVM_WIDE __attribute__((always_inline))

using Eight = __m512d;
using Four = __m256d;

/// use(0), ..., use(N − 1) written out.
template <int N, typename Use>
SPARSVM_WIDE_INLINE void repeat(Use use) {
  [&]<int... i>(std::integer_sequence<int, i...>) SPARSVM_WIDE_LAMBDA {
    (use(std::integral_constant<int, i>{}), ...);
  }(std::make_integer_sequence<int, N>{});
}

/// The same for registers of either size.
template <typename V>
inline constexpr bool is_eight = sizeof(V) == sizeof(Eight);

template <typename V>
SPARSVM_WIDE_INLINE V spread(double x) {
  if constexpr (is_eight<V>) {
    return _mm512_set1_pd(x);
  } else {
    return _mm256_set1_pd(x);
  }
}

template <typename V>
SPARSVM_WIDE_INLINE V load(const double* from) {
  if constexpr (is_eight<V>) {
    return _mm512_loadu_pd(from);
  } else {
    return _mm256_loadu_pd(from);
  }
}

template <typename V>
SPARSVM_WIDE_INLINE V load_some(__mmask8 lanes, const double* from) {
  if constexpr (is_eight<V>) {
    return _mm512_maskz_loadu_pd(lanes, from);
  } else {
    return _mm256_maskz_loadu_pd(lanes, from);
  }
}

SPARSVM_WIDE_INLINE void store(double* to, Eight v) { _mm512_storeu_pd(to, v); }
SPARSVM_WIDE_INLINE void store(double* to, Four v) { _mm256_storeu_pd(to, v); }

SPARSVM_WIDE_INLINE Eight add_product(Eight a, Eight b, Eight sum) {
  return _mm512_fmadd_pd(a, b, sum);
}
SPARSVM_WIDE_INLINE Four add_product(Four a, Four b, Four sum) {
  return _mm256_fmadd_pd(a, b, sum);
}

SPARSVM_WIDE_INLINE Eight add_some(Eight v, __mmask8 lanes, Eight by) {
  return _mm512_mask_add_pd(v, lanes, v, by);
}
SPARSVM_WIDE_INLINE Four add_some(Four v, __mmask8 lanes, Four by) {
  return _mm256_mask_add_pd(v, lanes, v, by);
}

SPARSVM_WIDE_INLINE Eight larger(Eight a, Eight b) { return _mm512_maskz_max_pd(0xFF, a, b); }
SPARSVM_WIDE_INLINE Four larger(Four a, Four b) { return _mm256_max_pd(a, b); }

SPARSVM_WIDE_INLINE __mmask8 lanes_above(Eight v, Eight bound) {
  return _mm512_cmp_pd_mask(v, bound, _CMP_GT_OQ);
}
SPARSVM_WIDE_INLINE __mmask8 lanes_above(Four v, Four bound) {
  return _mm256_cmp_pd_mask(v, bound, _CMP_GT_OQ);
}

SPARSVM_WIDE_INLINE Eight widened(Eight v) { return v; }
SPARSVM_WIDE_INLINE Eight widened(Four v) {
  return __builtin_shufflevector(v, Four{}, 0, 1, 2, 3, 4, 5, 6, 7);
}

// Halves by shuffles, since the compiler's own reductions warn about lanes they do not use.
SPARSVM_WIDE_INLINE Four low_half(Eight v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3); }
SPARSVM_WIDE_INLINE Four high_half(Eight v) { return __builtin_shufflevector(v, v, 4, 5, 6, 7); }

SPARSVM_WIDE_INLINE double sum_of(Four v) {
  const Four two = v + __builtin_shufflevector(v, v, 2, 3, 0, 1);
  return two[0] + two[1];
}
SPARSVM_WIDE_INLINE double sum_of(Eight v) { return sum_of(low_half(v) + high_half(v)); }

SPARSVM_WIDE_INLINE double largest_of(Eight v) {
  const Four four = _mm256_max_pd(low_half(v), high_half(v));
  const Four two = _mm256_max_pd(four, __builtin_shufflevector(four, four, 2, 3, 0, 1));
  return two[0] > two[1] ? two[0] : two[1];
}

template <bool eight>
struct PackOf {
  using type = Eight;
};
template <>
struct PackOf<false> {
  using type = Four;
};

/// A row of up to 8F + 4H classes.
template <int F, bool H>
struct Row {
  static constexpr int packs = F + H, room = 8 * F + 4 * H;
  Eight full[F > 0 ? F : 1];
  Four half;

  template <int p>
  SPARSVM_WIDE_INLINE auto& at() {
    if constexpr (p < F) {
      return full[p];
    } else {
      return half;
    }
  }
  template <int p>
  using Pack = typename PackOf<(p < F)>::type;
};

/// Rows of whole registers, each of which lies in one cache line: the last halves are apart.
template <int F, bool H>
struct PaddedRows {
  double *full, *half;

  SPARSVM_WIDE_INLINE PaddedRows(double* room, std::int64_t rows)
      : full(room), half(room + 8 * F * rows) {}

  template <int p>
  SPARSVM_WIDE_INLINE double* at(std::int64_t row) const {
    return p < F ? full + row * (8 * F) + 8 * p : half + row * 4;
  }
};

/// Rows of K entries one after the other.
template <int F, bool H>
struct PlainRows {
  std::int64_t K;
  __mmask8 tail;
  __m512i end;  // where the entries at the end of a row are in its last two packs

  SPARSVM_WIDE_INLINE explicit PlainRows(std::int64_t classes)
      : K(classes), tail(static_cast<__mmask8>(0xFF >> (8 * (F + H) - classes))),
        end(_mm512_add_epi64(
            _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
            _mm512_set1_epi64(classes - last_at - (F + H > 1 ? 8 * (F + H - 2) : 0)))) {}

  template <int p>
  SPARSVM_WIDE_INLINE auto load_pack(const double* row) const {
    using V = typename Row<F, H>::template Pack<p>;
    if constexpr (p + 1 < F + H) {
      return load<V>(row + 8 * p);
    } else {
      return load_some<V>(tail, row + 8 * p);
    }
  }

  /// The last pack ends where the row ends, and repeats what the one before it has: a store of a part
  /// of a pack keeps the load of the row behind it waiting.
  SPARSVM_WIDE_INLINE void store_row(double* row, Row<F, H>& v) const {
    if constexpr (F + H > 1) {
      repeat<F + H - 1>([&](auto p)
                            SPARSVM_WIDE_LAMBDA { store(row + 8 * p, v.template at<p>()); });
      const Eight last = _mm512_permutex2var_pd(v.template at<F + H - 2>(), end,
                                                widened(v.template at<F + H - 1>()));
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

  /// row += v.
  SPARSVM_WIDE_INLINE void add_row(double* row, Row<F, H>& v) const {
    Row<F, H> sum;
    repeat<F + H>([&](auto p) SPARSVM_WIDE_LAMBDA {
      sum.template at<p>() = load_pack<p>(row) + v.template at<p>();
    });
    store_row(row, sum);
  }

  /// The same for one pack.
  template <int p, typename V>
  SPARSVM_WIDE_INLINE void add_pack(double* row, V v) const {
    if constexpr (p + 1 < F + H) {
      store(row + 8 * p, load_pack<p>(row) + v);
    } else if constexpr (is_eight<V>) {
      _mm512_mask_storeu_pd(row + 8 * p, tail, load_pack<p>(row) + v);
    } else {
      _mm256_mask_storeu_pd(row + 8 * p, tail, load_pack<p>(row) + v);
    }
  }

  /// How many entries the last store of a row has.
  static constexpr std::int64_t last_at = F + H > 1 ? (H ? 4 : 8) : F == 1 ? 4 : 2;
};

}  // namespace sparsvm::wide

#endif
