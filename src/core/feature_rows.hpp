// Norms and multiples of the rows of a coefficient matrix, for penalties of single features.
#pragma once

#include <cstdint>

namespace sparsvm::feature_rows {

/// sums[j] = Σ_k |V_jk| for `count` rows of K entries, added up four at a time.
void add_magnitudes(const double* V, std::int64_t count, std::int64_t K, double* sums);

/// sums[j] = Σ_k V_jk².
void add_squares(const double* V, std::int64_t count, std::int64_t K, double* sums);

/// V_j <- factors[j]·V_j, without negative zeros.
void scale(double* V, std::int64_t count, std::int64_t K, const double* factors);

}  // namespace sparsvm::feature_rows
