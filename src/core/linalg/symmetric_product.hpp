// A symmetric matrix of floats times a vector of doubles.
#pragma once

#include <cstddef>

#include "support/simd.hpp"

namespace sparsvm {

// out += factor * A x for the matrix whose entries above the diagonal are those of A (size x size,
// column-major) and whose diagonal is zero.
SPARSVM_CLONED static void add_symmetric_product(const float* A, int size, double factor,
                                                 const double* x, double* out) {
  for (int c = 1; c < size; ++c) {
    const float* column = A + static_cast<std::size_t>(c) * size;
    const double along = factor * x[c];
    Pack sum0 = {}, sum1 = {};
    int r = 0;
    for (; r + 8 <= c; r += 8) {
      Pack a0, a1;
      load_widened(a0, column + r);
      load_widened(a1, column + r + 4);
      SPARSVM_STORE(out + r, SPARSVM_LOAD(out + r) + along * a0);
      SPARSVM_STORE(out + r + 4, SPARSVM_LOAD(out + r + 4) + along * a1);
      sum0 += a0 * SPARSVM_LOAD(x + r);
      sum1 += a1 * SPARSVM_LOAD(x + r + 4);
    }
    double sum = sum_of(sum0 + sum1);
    for (; r < c; ++r) {
      out[r] += along * column[r];
      sum += column[r] * x[r];
    }
    out[c] += factor * sum;
  }
}

}  // namespace sparsvm
