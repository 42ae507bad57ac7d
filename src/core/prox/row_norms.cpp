#include "prox/row_norms.hpp"

#include <cmath>
#include <type_traits>

#include "linalg/row_tiles.hpp"

namespace sparsvm::feature_rows {

namespace {

/// sums[j] = Σ_k of each(V_jk) for rows that fill no pack, four of them side by side.
template <int K, typename Each>
SPARSVM_INLINE void add_short_rows(const double* V, std::int64_t count, double* sums, Each each) {
  for (std::int64_t j = 0; j < count; j += 4) {
    const int rows = count - j < 4 ? static_cast<int>(count - j) : 4;
    double lanes[K][4] = {}, four[4];
    for (int l = 0; l < rows; ++l) {
      for (int k = 0; k < K; ++k) lanes[k][l] = V[(j + l) * K + k];
    }
    Pack sum = {};
    repeat<K>([&](auto k) SPARSVM_INLINE_LAMBDA {
      Pack v = SPARSVM_LOAD(lanes[k]);
      each(v);
      sum += v;
    });
    SPARSVM_STORE(four, sum);
    for (int l = 0; l < rows; ++l) sums[j + l] = four[l];
  }
}

/// The same for all rows; `each` maps a pack in place.
template <typename Each>
SPARSVM_INLINE void add_rows(const double* V, std::int64_t count, std::int64_t K, double* sums,
                             Each each) {
  if (K == 1) return add_short_rows<1>(V, count, sums, each);
  if (K == 2) return add_short_rows<2>(V, count, sums, each);
  if (K == 3) return add_short_rows<3>(V, count, sums, each);
  with_tiles<2>(K, [&](const auto& tiles) SPARSVM_INLINE_LAMBDA {
    for (std::int64_t j = 0; j < count; ++j) {
      Pack sum = {};
      tiles.each([&](const auto& tile) SPARSVM_INLINE_LAMBDA {
        constexpr int P = std::decay_t<decltype(tile)>::packs;
        Pack v[P], part;
        tile.load(V + j * K, v);
        repeat<P>([&](auto p) SPARSVM_INLINE_LAMBDA { each(v[p]); });
        tile.total(v, part);
        sum += part;
      });
      sums[j] = sum_of(sum);
    }
  });
}

}  // namespace

SPARSVM_CLONED void add_magnitudes(const double* V, std::int64_t count, std::int64_t K,
                                   double* sums) {
  add_rows(V, count, K, sums, [](Pack& v) SPARSVM_INLINE_LAMBDA {
    Pack minus = Pack{} - v;
    keep_larger(minus, v);
    v = minus;
  });
}

SPARSVM_CLONED void add_squares(const double* V, std::int64_t count, std::int64_t K, double* sums) {
  add_rows(V, count, K, sums, [](Pack& v) SPARSVM_INLINE_LAMBDA { v = v * v; });
}

SPARSVM_CLONED bool shrink_factors(double* sums, double step, const double* omega,
                                   std::int64_t count) {
  std::int64_t odd = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    const double t = step * omega[j], sum = sums[j], length = std::sqrt(sum);
    // A row too short for its square is shrunk to nothing by all but the tiniest thresholds.
    const bool too_large = !(sum < 1e300);
    const bool too_small = (sum < 1e-280) & (t > 0.0) & (t < 1e-139);
    odd += too_large | too_small;
    const double factor = length > t ? (length - t) / length : 0.0;
    sums[j] = t == 0.0 ? 1.0 : factor;
  }
  return odd > 0;
}

namespace {

template <int K>
SPARSVM_INLINE void scale_rows(double* V, std::int64_t count, const double* factors) {
  for (std::int64_t j = 0; j < count; ++j) {
    for (int k = 0; k < K; ++k) V[j * K + k] = factors[j] * V[j * K + k] + 0.0;
  }
}

}  // namespace

SPARSVM_CLONED void scale(double* V, std::int64_t count, std::int64_t K, const double* factors) {
  if (K == 3) return scale_rows<3>(V, count, factors);
  if (K == 4) return scale_rows<4>(V, count, factors);
  for (std::int64_t j = 0; j < count; ++j) {
    double* v = V + j * K;
    const double factor = factors[j];
    for (std::int64_t k = 0; k < K; ++k) v[k] = factor * v[k] + 0.0;
  }
}

}  // namespace sparsvm::feature_rows
