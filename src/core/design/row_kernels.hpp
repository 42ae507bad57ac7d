// The inner loops of dual coordinate ascent: sums of scaled rows, and rows minus multiples.
//
// Sums of up to twenty outputs stay in registers while the rows of a sample pass by.
#pragma once

#include <cmath>
#include <cstdint>

#include "prox/prox.hpp"
#include "support/cpu_dispatch.hpp"
#include "support/simd.hpp"

namespace sparsvm::kernels {

/// s += Σ_e weight[e] · (row[e] of V, shrunk at level[e] if `shrink`), for `count` rows of K, on
/// the outputs k ... k + 4·vectors − 1.
template <bool shrink, int vectors, typename T>
SPARSVM_INLINE void add_packs(const double* V, int64_t K, int64_t k, const int32_t* row,
                              const T* weight, const double* level, int64_t count, double* s) {
  Simd sum[vectors];
  for (int c = 0; c < vectors; ++c) sum[c] = SPARSVM_LOAD(s + k + 4 * c);
  for (int64_t e = 0; e < count; ++e) {
    const double* v = V + row[e] * K + k;
    const double w = static_cast<double>(weight[e]);
    for (int c = 0; c < vectors; ++c) {
      Simd term = SPARSVM_LOAD(v + 4 * c);
      if constexpr (shrink) {
        // v − t beyond t, v + t below −t, 0 between.
        Simd over = term - level[e], under = Simd{} - term - level[e];
        keep_positive(over);
        keep_positive(under);
        term = over - under;
      }
      sum[c] += term * w;
    }
  }
  for (int c = 0; c < vectors; ++c) SPARSVM_STORE(s + k + 4 * c, sum[c]);
}

/// The same for all outputs: the rows are read once for every 20 of them.
template <bool shrink, typename T>
SPARSVM_INLINE void add_rows(const double* V, int64_t K, const int32_t* row, const T* weight,
                             const double* level, int64_t count, double* s) {
  int64_t k = 0;
  for (; k + 20 <= K; k += 20) add_packs<shrink, 5>(V, K, k, row, weight, level, count, s);
  for (; k + 8 <= K; k += 8) add_packs<shrink, 2>(V, K, k, row, weight, level, count, s);
  for (; k + 4 <= K; k += 4) add_packs<shrink, 1>(V, K, k, row, weight, level, count, s);
  for (; k < K; ++k) {
    double sum = s[k];
    for (int64_t e = 0; e < count; ++e) {
      const double v = V[row[e] * K + k];
      sum += static_cast<double>(weight[e]) * (shrink ? soft(v, level[e]) : v);
    }
    s[k] = sum;
  }
}

SPARSVM_DISPATCH inline void add_scaled_rows(const double* V, int64_t K, const int32_t* row,
                                             const double* weight, int64_t count, double* s) {
  add_rows<false>(V, K, row, weight, nullptr, count, s);
}
SPARSVM_DISPATCH inline void add_scaled_rows(const double* V, int64_t K, const int32_t* row,
                                             const float* weight, int64_t count, double* s) {
  add_rows<false>(V, K, row, weight, nullptr, count, s);
}
SPARSVM_DISPATCH inline void add_shrunk_rows(const double* V, int64_t K, const int32_t* row,
                                             const double* weight, const double* level,
                                             int64_t count, double* s) {
  add_rows<true>(V, K, row, weight, level, count, s);
}

/// V_j −= gain_j x_e Δᵀ on the listed outputs, for the features j = index[e]; no gain stands for 1.
template <typename T>
void subtract_scaled_rows(double* V, int64_t K, const double* gain, const T* x,
                          const int32_t* index, int64_t count, const double* delta,
                          const int32_t* moved, int64_t n_moved) {
  for (int64_t e = 0; e < count; ++e) {
    double* v = V + index[e] * K;
    const double weight = static_cast<double>(x[e]) * (gain ? gain[index[e]] : 1.0);
    for (int64_t c = 0; c < n_moved; ++c) v[moved[c]] -= weight * delta[c];
  }
}

/// What is kept about a row of V to tell quickly that it shrinks to zero.
enum class RowSize { most, sum, squares };

/// V_j −= x_e Δᵀ on the listed outputs, for the features j = index[e]; size follows, `most` as a
/// bound from above.
template <RowSize kind, typename T>
void subtract_rows(double* V, int64_t K, double* size, const T* x, const int32_t* index,
                   int64_t count, const double* delta, const int32_t* moved, int64_t n_moved) {
  for (int64_t e = 0; e < count; ++e) {
    const int64_t j = index[e];
    double* v = V + j * K;
    const double weight = static_cast<double>(x[e]);
    double bound = size[j];
    for (int64_t c = 0; c < n_moved; ++c) {
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
