// Products of dense rows with matrices of K columns, read where they lie.
//
// A few outputs are bound by memory: gathering the rows first, as BLAS needs it of floats, centred or
// permuted data, took three times as long on 38 x 228000.
#pragma once

#include <cstdint>

#include "design/design.hpp"

namespace sparsvm {

/// More outputs than this take BLAS less time, gathering included.
constexpr int64_t kFewOutputs = 10;

/// G ((last − first) x K) = X[:, first:last]ᵀ Y, or G += it; every entry is summed in the order of the
/// samples, of which those without a share are not read.
void transposed_product(const DenseRows<float>& X, int64_t first, int64_t last, const double* Y,
                        int64_t K, bool add, double* G);
void transposed_product(const DenseRows<double>& X, int64_t first, int64_t last, const double* Y,
                        int64_t K, bool add, double* G);

/// S (n x K) = X[:, first:last] W, or S += it; every row is summed alike, whatever its neighbours are.
void row_product(const DenseRows<float>& X, int64_t first, int64_t last, const double* W, int64_t K,
                 bool add, double* S);
void row_product(const DenseRows<double>& X, int64_t first, int64_t last, const double* W,
                 int64_t K, bool add, double* S);

/// out (d) = the sum of the squares of each column, in the order of the samples.
void column_squares(const DenseRows<float>& X, int64_t d, double* out);
void column_squares(const DenseRows<double>& X, int64_t d, double* out);

}  // namespace sparsvm
