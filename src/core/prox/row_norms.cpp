#include "prox/row_norms.hpp"

#include <algorithm>
#include <type_traits>

#include "linalg/row_tiles.hpp"

namespace sparsvm {

namespace {

/// The sums of rows that fill no vector, four of them side by side.
template <int K>
SPARSVM_INLINE void sum_short_rows(const double* V, int64_t count, double* sums) {
  for (int64_t j = 0; j < count; j += 4) {
    const int rows = count - j < 4 ? static_cast<int>(count - j) : 4;
    double lanes[K][4] = {}, four[4];
    for (int l = 0; l < rows; ++l) {
      for (int k = 0; k < K; ++k) lanes[k][l] = V[(j + l) * K + k];
    }
    Simd sum = {};
    repeat<K>([&](auto k) SPARSVM_INLINE_LAMBDA {
      const Simd v = SPARSVM_LOAD(lanes[k]);
      sum += v * v;
    });
    SPARSVM_STORE(four, sum);
    for (int l = 0; l < rows; ++l) sums[j + l] = four[l];
  }
}

}  // namespace

SPARSVM_DISPATCH void sum_row_squares(const double* V, int64_t count, int64_t K, double* sums) {
  if (K == 0) {
    std::fill_n(sums, count, 0.0);
    return;
  }
  if (K == 1) return sum_short_rows<1>(V, count, sums);
  if (K == 2) return sum_short_rows<2>(V, count, sums);
  if (K == 3) return sum_short_rows<3>(V, count, sums);
  with_tiles<2>(K, [&](const auto& tiles) SPARSVM_INLINE_LAMBDA {
    for (int64_t j = 0; j < count; ++j) {
      Simd sum = {};
      tiles.each([&](const auto& tile) SPARSVM_INLINE_LAMBDA {
        constexpr int P = std::decay_t<decltype(tile)>::vectors;
        Simd v[P], part;
        tile.load(V + j * K, v);
        repeat<P>([&](auto p) SPARSVM_INLINE_LAMBDA { v[p] = v[p] * v[p]; });
        tile.total(v, part);
        sum += part;
      });
      sums[j] = sum_of(sum);
    }
  });
}

}  // namespace sparsvm
