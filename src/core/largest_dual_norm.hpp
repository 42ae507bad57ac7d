// The dual norm of |XᵀY|·scale + error under a group norm, for certificates on dense data: what
// PenaltyTerms.dual_norm does in a dozen passes over arrays of all coefficients.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "design.hpp"
#include "penalty_layout.hpp"

namespace sparsvm {

/// Y is n x outputs; error[o]·column_norms[j] is added to the entry (j, o) before it is divided by
/// its weight. A NaN stays one.
inline double largest_dual_norm(const Design& design, const PenaltyLayout& layout, const double* Y,
                                int64_t outputs, double scale, const double* error,
                                const double* column_norms) {
  const int64_t d = design.d();
  std::vector<double> G(static_cast<std::size_t>(d * outputs)), norms;
  design.transposed(Y, outputs, G.data());
  for (int64_t j = 0; j < d; ++j)
    for (int64_t o = 0; o < outputs; ++o) {
      double& g = G[static_cast<std::size_t>(j * outputs + o)];
      g = std::abs(g) * scale + error[o] * column_norms[j];
    }
  layout.dual_norms(G.data(), norms);
  double largest = 0.0;
  for (const double norm : norms) largest = larger(largest, norm);
  return largest;
}

}  // namespace sparsvm
