// The dual norm of |XᵀY|·scale + error under a group norm, for certificates on dense data: what
// PenaltyTerms.dual_norm does in a dozen passes over arrays of all coefficients, in one over the data.
#pragma once

#include <cmath>
#include <cstdint>

#include "design/design.hpp"
#include "penalty/penalty_layout.hpp"

namespace sparsvm {

/// Y is n x outputs; error[o]·column_norms[j] is added to the entry (j, o) before it is divided by
/// its weight. A NaN stays one.
inline double largest_dual_norm(const Design& design, const PenaltyLayout& layout, const double* Y,
                                int64_t outputs, double scale, const double* error,
                                const double* column_norms) {
  return layout.largest_norm([&](int64_t first, int64_t last, double* G) {
    if (last - first == design.d())
      design.transposed(Y, outputs, G);
    else
      design.transposed_range(first, last, Y, outputs, G);
    for (int64_t j = first; j < last; ++j)
      for (int64_t o = 0; o < outputs; ++o, ++G)
        *G = std::abs(*G) * scale + error[o] * column_norms[j];
  });
}

}  // namespace sparsvm
