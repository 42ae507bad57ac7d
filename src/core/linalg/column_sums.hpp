// Weighted sums of a few columns each, as the Newton system of the interior point is made of.
#pragma once

#include <cstdint>
#include <vector>

#include "support/simd.hpp"

namespace sparsvm {

// Which columns go into each sum, and their factors: sum r has the terms [first[r], first[r + 1]).
struct ColumnSums {
  std::vector<std::int32_t> column;
  std::vector<double> factor;
  std::vector<std::int64_t> first;

  std::int64_t count() const { return static_cast<std::int64_t>(first.size()) - 1; }
  void clear() {
    column.clear();
    factor.clear();
    first.assign(1, 0);
  }
  void add(std::int32_t c, double f) {
    column.push_back(c);
    factor.push_back(f);
  }
  void close() { first.push_back(static_cast<std::int64_t>(column.size())); }
};

// out (n x count) from X (n x m), both column-major. All terms of a few rows are added up in
// registers: with a pass over the rows for each term this took a sixth of an iteration.
template <typename T>
SPARSVM_INLINE void add_up_columns(const ColumnSums& sums, const double* X, std::int64_t n,
                                   T* out) {
  const std::int32_t* column = sums.column.data();
  const double* factor = sums.factor.data();
  for (std::int64_t r = 0; r < sums.count(); ++r, out += n) {
    const std::int64_t first = sums.first[static_cast<std::size_t>(r)];
    const std::int64_t last = sums.first[static_cast<std::size_t>(r) + 1];
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
      Pack low = {}, high = {};
      for (std::int64_t t = first; t < last; ++t) {
        const double* x = X + column[t] * n + i;
        low += factor[t] * SPARSVM_LOAD(x);
        high += factor[t] * SPARSVM_LOAD(x + 4);
      }
      store_rounded(low, out + i);
      store_rounded(high, out + i + 4);
    }
    for (; i < n; ++i) {
      double sum = 0.0;
      for (std::int64_t t = first; t < last; ++t) sum += factor[t] * X[column[t] * n + i];
      out[i] = static_cast<T>(sum);
    }
  }
}

SPARSVM_CLONED static void form_column_sums(const ColumnSums& sums, const double* X, std::int64_t n,
                                            double* out) {
  add_up_columns(sums, X, n, out);
}
SPARSVM_CLONED static void form_column_sums(const ColumnSums& sums, const double* X, std::int64_t n,
                                            float* out) {
  add_up_columns(sums, X, n, out);
}

}  // namespace sparsvm
