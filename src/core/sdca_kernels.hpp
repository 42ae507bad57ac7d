// The inner loops of dual coordinate ascent: sums of scaled rows, and rows minus multiples.
//
// Eight outputs at a time stay in registers while the rows of a sample pass by; a row's eight
// doubles are one cache line. Measured on the 20 newsgroups (l2, 56436 features, 20 classes): a sweep
// takes about 0.6 of what plain loops took.
#pragma once

#include <cmath>
#include <cstdint>

#include "clones.hpp"
#include "prox.hpp"

namespace sparsvm::kernels {

/// s += Σ_e weight[e] · (row[e] of V, shrunk at level[e] if `shrink`), for `count` rows of K.
template <bool shrink>
SPARSVM_INLINE void add_rows(const double* V, std::int64_t K, const std::int32_t* row,
                             const double* weight, const double* level, std::int64_t count,
                             double* s) {
  std::int64_t k = 0;
  for (; k + 8 <= K; k += 8) {
    double sum[8];
    for (int c = 0; c < 8; ++c) sum[c] = s[k + c];
    for (std::int64_t e = 0; e < count; ++e) {
      const double* v = V + row[e] * K + k;
      const double w = weight[e];
      if constexpr (shrink) {
        const double t = level[e];
        for (int c = 0; c < 8; ++c) sum[c] += w * soft(v[c], t);
      } else {
        for (int c = 0; c < 8; ++c) sum[c] += w * v[c];
      }
    }
    for (int c = 0; c < 8; ++c) s[k + c] = sum[c];
  }
  for (; k + 2 <= K; k += 2) {
    double sum[2] = {s[k], s[k + 1]};
    for (std::int64_t e = 0; e < count; ++e) {
      const double* v = V + row[e] * K + k;
      for (int c = 0; c < 2; ++c) sum[c] += weight[e] * (shrink ? soft(v[c], level[e]) : v[c]);
    }
    s[k] = sum[0], s[k + 1] = sum[1];
  }
  if (k < K) {
    double sum = s[k];
    for (std::int64_t e = 0; e < count; ++e) {
      const double v = V[row[e] * K + k];
      sum += weight[e] * (shrink ? soft(v, level[e]) : v);
    }
    s[k] = sum;
  }
}

SPARSVM_CLONED inline void add_scaled_rows(const double* V, std::int64_t K, const std::int32_t* row,
                                           const double* weight, std::int64_t count, double* s) {
  add_rows<false>(V, K, row, weight, nullptr, count, s);
}
SPARSVM_CLONED inline void add_shrunk_rows(const double* V, std::int64_t K, const std::int32_t* row,
                                           const double* weight, const double* level,
                                           std::int64_t count, double* s) {
  add_rows<true>(V, K, row, weight, level, count, s);
}

/// What is kept about a row of V to tell quickly that it shrinks to zero.
enum class RowSize { most, sum, squares };

/// V_j −= x_e Δᵀ on the listed outputs, for the features j = index[e]; size follows, `most` as a
/// bound from above.
template <RowSize kind, typename T>
void subtract_rows(double* V, std::int64_t K, double* size, const T* x, const std::int32_t* index,
                   std::int64_t count, const double* delta, const std::int32_t* moved,
                   std::int64_t n_moved) {
  for (std::int64_t e = 0; e < count; ++e) {
    const std::int64_t j = index[e];
    double* v = V + j * K;
    const double weight = static_cast<double>(x[e]);
    double bound = size[j];
    for (std::int64_t c = 0; c < n_moved; ++c) {
      const double step = weight * delta[c], old = v[moved[c]], now = old - step;
      v[moved[c]] = now;
      if constexpr (kind == RowSize::squares) {
        bound -= step * (old + now);
      } else if constexpr (kind == RowSize::sum) {
        bound += std::abs(now) - std::abs(old);
      } else {
        bound = std::abs(now) > bound ? std::abs(now) : bound;
      }
    }
    size[j] = bound;
  }
}

}  // namespace sparsvm::kernels
