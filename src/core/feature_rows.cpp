#include "feature_rows.hpp"

#include <cmath>
#include <type_traits>

#include "row_tiles.hpp"

namespace sparsvm::feature_rows {

namespace {

/// sums[j] = Σ_k of each(V_jk), which maps a pack in place.
template <typename Each>
SPARSVM_INLINE void add_rows(const double* V, std::int64_t count, std::int64_t K, double* sums,
                             Each each) {
  if (K == 1) {
    for (std::int64_t j = 0; j < count; ++j) {
      Pack v = {V[j], 0.0, 0.0, 0.0};
      each(v);
      sums[j] = v[0];
    }
    return;
  }
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

SPARSVM_CLONED void scale(double* V, std::int64_t count, std::int64_t K, const double* factors) {
  for (std::int64_t j = 0; j < count; ++j) {
    double* v = V + j * K;
    const double factor = factors[j];
    for (std::int64_t k = 0; k < K; ++k) v[k] = factor * v[k] + 0.0;
  }
}

}  // namespace sparsvm::feature_rows
