// Sums over the rows of a coefficient matrix, for the dual norms of single features.
#pragma once

#include <cstdint>

namespace sparsvm {

using std::int64_t;

/// sums[j] = Σ_k V_jk² for `count` rows of K entries, added up four at a time.
void sum_row_squares(const double* V, int64_t count, int64_t K, double* sums);

}  // namespace sparsvm
