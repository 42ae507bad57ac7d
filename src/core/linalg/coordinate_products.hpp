// Products of a working set's coordinates, each a gathered column and a class, with arrays of one
// column per class: where a class has few of the gathered columns, less work than all of them.
#pragma once

#include <cstdint>

#include "support/simd.hpp"

namespace sparsvm {

SPARSVM_INLINE double single_product(const double* x, const double* y, std::int64_t n) {
  Pack low = {}, high = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    low += SPARSVM_LOAD(x + i) * SPARSVM_LOAD(y + i);
    high += SPARSVM_LOAD(x + i + 4) * SPARSVM_LOAD(y + i + 4);
  }
  double sum = sum_of(low + high);
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

// out[c] = X[:, column[c]] . Y[:, cls[c]], both with n rows, column-major. Neighbours of one class, as
// the coordinates of a block are, share what is loaded of Y.
SPARSVM_CLONED static void coordinate_products(const double* X, std::int64_t n,
                                               const std::int32_t* column, const std::int32_t* cls,
                                               std::int64_t count, const double* Y, double* out) {
  std::int64_t c = 0;
  for (; c + 4 <= count; c += 4) {
    if (cls[c] != cls[c + 3] || cls[c] != cls[c + 1] || cls[c] != cls[c + 2]) {
      for (int s = 0; s < 4; ++s)
        out[c + s] = single_product(X + column[c + s] * n, Y + cls[c + s] * n, n);
      continue;
    }
    const double *y = Y + cls[c] * n, *x0 = X + column[c] * n, *x1 = X + column[c + 1] * n,
                 *x2 = X + column[c + 2] * n, *x3 = X + column[c + 3] * n;
    Pack s0 = {}, s1 = {}, s2 = {}, s3 = {};
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      const Pack v = SPARSVM_LOAD(y + i);
      s0 += SPARSVM_LOAD(x0 + i) * v;
      s1 += SPARSVM_LOAD(x1 + i) * v;
      s2 += SPARSVM_LOAD(x2 + i) * v;
      s3 += SPARSVM_LOAD(x3 + i) * v;
    }
    double t0 = sum_of(s0), t1 = sum_of(s1), t2 = sum_of(s2), t3 = sum_of(s3);
    for (; i < n; ++i) {
      t0 += x0[i] * y[i];
      t1 += x1[i] * y[i];
      t2 += x2[i] * y[i];
      t3 += x3[i] * y[i];
    }
    out[c] = t0;
    out[c + 1] = t1;
    out[c + 2] = t2;
    out[c + 3] = t3;
  }
  for (; c < count; ++c) out[c] = single_product(X + column[c] * n, Y + cls[c] * n, n);
}

}  // namespace sparsvm
