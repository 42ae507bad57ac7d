// Norms and multiples of the rows of a coefficient matrix, for penalties of single features.
#pragma once

#include <cstdint>

namespace sparsvm::feature_rows {

/// sums[j] = Σ_k |V_jk| for `count` rows of K entries, added up four at a time.
void add_magnitudes(const double* V, std::int64_t count, std::int64_t K, double* sums);

/// sums[j] = Σ_k V_jk².
void add_squares(const double* V, std::int64_t count, std::int64_t K, double* sums);

/// sums[j] <- what the prox of t_j‖·‖₂ multiplies a row of squared length sums[j] by, t_j = step·omega[j].
/// Says whether squares may have left the range of doubles somewhere: there it is not to be trusted.
bool shrink_factors(double* sums, double step, const double* omega, std::int64_t count);

/// V_j <- factors[j]·V_j, without negative zeros.
void scale(double* V, std::int64_t count, std::int64_t K, const double* factors);

}  // namespace sparsvm::feature_rows
