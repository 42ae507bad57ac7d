// Rows of numbers, one per class, in registers of four doubles.
#pragma once

#include <immintrin.h>

#include "solvers/papers/fbpd_kernels/registers.hpp"

namespace sparsvm::registers {

namespace {

using Four = __m256d;

template <typename V = Four>
SPARSVM_TARGET_INLINE V spread(double x) {
  return _mm256_set1_pd(x);
}
template <typename V = Four>
SPARSVM_TARGET_INLINE V load(const double* from) {
  return _mm256_loadu_pd(from);
}
SPARSVM_TARGET_INLINE void store(double* to, Four v) { _mm256_storeu_pd(to, v); }
SPARSVM_TARGET_INLINE Four add_product(Four a, Four b, Four sum) {
  return _mm256_fmadd_pd(a, b, sum);
}
SPARSVM_TARGET_INLINE Four larger(Four a, Four b) { return _mm256_max_pd(a, b); }

SPARSVM_TARGET_INLINE double sum_of(Four v) {
  const __m128d two = _mm256_castpd256_pd128(v) + _mm256_extractf128_pd(v, 1);
  return two[0] + two[1];
}

SPARSVM_TARGET_INLINE double largest_of(Four v) {
  const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return two[0] > two[1] ? two[0] : two[1];
}

/// A set of classes, a bit each: those of eight packs are a word, in the order that narrowing their masks
/// gives, where lanes 2 and 3 of all packs come after lanes 0 and 1 of all.
template <int P>
struct Classes {
  static constexpr int words = (P + 7) / 8;
  static constexpr unsigned half = P == 1 ? 2 : P == 2 ? 4 : 16;
  std::uint32_t word[words] = {};

  SPARSVM_TARGET_INLINE static Classes only(std::int64_t k) {
    Classes out;
    const auto at = static_cast<unsigned>(k), bit = at / 4 % 8 * 2 + at % 2 + at / 2 % 2 * half;
    for (unsigned w = 0; w < words; ++w) out.word[w] = words == 1 || at / 32 == w ? 1u << bit : 0;
    return out;
  }

  /// Word w from the masks of its packs.
  SPARSVM_TARGET_INLINE void set(int w, const Four (&mask)[8]) {
    const auto pair = [&](int p) SPARSVM_TARGET_LAMBDA {
      return _mm256_packs_epi32(_mm256_castpd_si256(mask[p]), _mm256_castpd_si256(mask[p + 1]));
    };
    const auto four = [&](int p) SPARSVM_TARGET_LAMBDA {
      return _mm256_packs_epi32(pair(p), pair(p + 2));
    };
    if constexpr (P == 1) {
      word[w] = static_cast<std::uint32_t>(_mm256_movemask_pd(mask[0]));
    } else if constexpr (P == 2) {
      word[w] = static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(pair(0))));
    } else {
      const __m256i last = P > 4 ? four(4) : _mm256_setzero_si256();
      word[w] = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_packs_epi16(four(0), last)));
    }
  }

  SPARSVM_TARGET_INLINE std::size_t count() const {
    int sum = 0;
    for (const std::uint32_t part : word) sum += __builtin_popcount(part);
    return static_cast<std::size_t>(sum);
  }

  SPARSVM_TARGET_INLINE bool operator==(const Classes& other) const {
    std::uint32_t apart = 0;
    for (int w = 0; w < words; ++w) apart |= word[w] ^ other.word[w];
    return apart == 0;
  }
};

constexpr auto make_ones() {
  std::array<double, 2 * most_classes> ones{};
  ones[most_classes] = 1.0;
  return ones;
}

constexpr auto ones = make_ones();  // one, in the middle

/// P packs.
template <int P>
struct Row {
  static constexpr int packs = P;
  template <typename>
  using Pack = Four;

  Four pack[P];
  SPARSVM_TARGET_INLINE Four& at(int p) { return pack[p]; }
};

/// Rows of whole packs.
struct PaddedRows {
  double* from;
  std::int64_t length;
  SPARSVM_TARGET_INLINE double* at(int p, std::int64_t row) const {
    return from + row * length + 4 * p;
  }
};

/// Rows of K entries, one after the other: of P packs, or of more than eight (P = 0), which are taken
/// from memory and back.
template <int P>
struct Shape {
  static constexpr bool is_long = P == 0, in_memory = is_long;
  static constexpr int width = 4, most_packs = is_long ? most_classes / 4 : P;
  static constexpr int at_once = is_long ? 8 : P;  // packs that are treated together
  using Row = registers::Row<most_packs>;
  using Set = Classes<most_packs>;
  using Padded = PaddedRows;
  struct Own {
    Set set;
    const double* one;  // at the true class, among zeros
  };

  std::int64_t K;
  int left;  // of the last pack that many lanes have classes
  __m256i tail;

  SPARSVM_TARGET_INLINE explicit Shape(std::int64_t classes)
      : K(classes), left(static_cast<int>((classes + 3) % 4 + 1)),
        tail(_mm256_cmpgt_epi64(_mm256_set1_epi64x(left), _mm256_setr_epi64x(0, 1, 2, 3))) {}

  SPARSVM_TARGET_INLINE int packs() const {
    return is_long ? static_cast<int>(K + 3) / 4 : most_packs;
  }

  /// use(p) for all packs.
  template <typename Use>
  SPARSVM_TARGET_INLINE void each(Use use) const {
    if constexpr (is_long) {
      for (int p = 0; p < packs(); ++p) use(p);
    } else {
      repeat<P>(use);
    }
  }

  /// How many entries a row of whole packs has.
  SPARSVM_TARGET_INLINE std::int64_t room() const { return 4 * packs(); }
  SPARSVM_TARGET_INLINE PaddedRows padded(double* from, std::int64_t) const {
    return {from, room()};
  }

  /// A row whose lanes without a class have what they should wherever each() does not reach them.
  SPARSVM_TARGET_INLINE static Row blank() {
    Row v;
    for (Four& pack : v.pack) pack = spread(below_all);
    return v;
  }

  SPARSVM_TARGET_INLINE Four load_pack(const double* row, int p) const {
    return p + 1 < packs() ? load(row + 4 * p) : _mm256_maskload_pd(row + 4 * p, tail);
  }

  /// The end of a row lane by lane: to store under a mask takes AMD's processors 18 instructions.
  SPARSVM_TARGET_INLINE void store_pack(double* row, int p, Four v) const {
    double* to = row + 4 * p;
    if (p + 1 < packs() || left == 4) return store(to, v);
    if (left == 1) return _mm_store_sd(to, _mm256_castpd256_pd128(v));
    _mm_storeu_pd(to, _mm256_castpd256_pd128(v));
    if (left == 3) _mm_store_sd(to + 2, _mm256_extractf128_pd(v, 1));
  }

  SPARSVM_TARGET_INLINE void store_row(double* row, Row& v) const {
    each([&](auto p) SPARSVM_TARGET_LAMBDA { store_pack(row, p, v.at(p)); });
  }

  /// row = v = made(p) for all packs.
  template <typename Make>
  SPARSVM_TARGET_INLINE void store_made(double* row, Row& v, Make made) const {
    each([&](auto p) SPARSVM_TARGET_LAMBDA {
      const Four now = made(p);
      v.at(p) = now;
      if (is_long) store_pack(row, p, now);
    });
    if (!is_long) store_row(row, v);
  }

  SPARSVM_TARGET_INLINE void clear_row(double* row) const {
    each([&](auto p) SPARSVM_TARGET_LAMBDA { store_pack(row, p, Four{}); });
  }

  SPARSVM_TARGET_INLINE void add_pack(double* row, int p, Four v) const {
    store_pack(row, p, load_pack(row, p) + v);
  }

  SPARSVM_TARGET_INLINE void add_row(double* row, Row& v) const {
    each([&](auto p) SPARSVM_TARGET_LAMBDA { add_pack(row, p, v.at(p)); });
  }

  SPARSVM_TARGET_INLINE static Own own(std::int64_t y) {
    return {Set::only(y), ones.data() + most_classes - y};
  }

  /// v + `by` at the true class.
  SPARSVM_TARGET_INLINE static Four add_own(Four v, int p, const Own& own, double by) {
    return add_product(load(own.one + 4 * p), spread(by), v);
  }

  /// The entry of the true class less the largest of the others.
  SPARSVM_TARGET_INLINE double slack_of(Row& v, const Own& own) const {
    Four others = spread(below_all), its = {};
    each([&](auto p) SPARSVM_TARGET_LAMBDA {
      const Four here = load(own.one + 4 * p);
      others = larger(others, add_product(here, spread(below_all), v.at(p)));
      its = add_product(here, v.at(p), its);
    });
    return sum_of(its) - largest_of(others);
  }

  SPARSVM_TARGET_INLINE Set find_above(Row& v, double theta) const {
    Set above;
    for (int w = 0; 8 * w < packs(); ++w) {
      Four mask[8] = {};
      repeat<at_once>([&](auto p) SPARSVM_TARGET_LAMBDA {
        mask[p] = _mm256_cmp_pd(v.at(8 * w + p), spread(theta), _CMP_GT_OQ);
      });
      above.set(w, mask);
    }
    return above;
  }

  /// Σ_k (v_k − bound)₊.
  SPARSVM_TARGET_INLINE double excess_of(Row& v, double bound) const {
    constexpr int turns = at_once > 1 ? 2 : 1;  // a sum waits three cycles for its last addition
    Four sum[turns] = {};
    for (int w = 0; 8 * w < packs(); ++w) {
      repeat<at_once>([&](auto p) SPARSVM_TARGET_LAMBDA {
        sum[p % turns] += larger(v.at(8 * w + p) - spread(bound), Four{});
      });
    }
    return sum_of(turns > 1 ? sum[0] + sum[turns - 1] : sum[0]);
  }

  /// What is above the bound, and by how much together; a row in memory is read once for both.
  SPARSVM_TARGET_INLINE Set measure(Row& v, double bound, double& excess) const {
    if constexpr (!is_long) {
      excess = excess_of(v, bound);
      return find_above(v, bound);
    }
    Four sum[2] = {};
    Set above;
    for (int w = 0; 8 * w < packs(); ++w) {
      Four mask[8] = {};
      repeat<at_once>([&](auto p) SPARSVM_TARGET_LAMBDA {
        const Four part = v.at(8 * w + p);
        sum[p % 2] += larger(part - spread(bound), Four{});
        mask[p] = _mm256_cmp_pd(part, spread(bound), _CMP_GT_OQ);
      });
      above.set(w, mask);
    }
    excess = sum_of(sum[0] + sum[1]);
    return above;
  }

  /// use(p) for the packs that have a class of one of the sets.
  template <typename Use>
  SPARSVM_TARGET_INLINE static void each_used(const Set& a, const Set& b, Use use) {
    std::uint64_t packs = 0;  // every other bit, of all words: only one loop ends unforeseen
    for (int w = 0; w < Set::words; ++w) {
      std::uint32_t bits = a.word[w] | b.word[w];
      bits |= bits >> 16;
      packs |= std::uint64_t{(bits | bits >> 1) & 0x5555} << (16 * w);
    }
    for (; packs != 0; packs &= packs - 1) use(__builtin_ctzll(packs) / 2);
  }
};

}  // namespace

}  // namespace sparsvm::registers
