// Values and dual norms of penalties, as certificates need them.
#pragma once

#include "design/design.hpp"
#include "penalty/penalty.hpp"

namespace sparsvm {

/// The value of a convex penalty at W (d x outputs), with sums that do not lose digits: for few
/// weights, where PenaltyTerms.value would spend its time in two dozen calls of NumPy.
double penalty_value(const Penalty& penalty, const double* W);

/// The entries scale·|XᵀY|_jo + error_o·‖X_j‖ (d x outputs): a gradient with a bound of its rounding.
struct GradientBound {
  const Design* design;
  const double* Y;  // n x outputs
  double scale;
  const double* error;         // outputs
  const double* column_norms;  // d
};

/// out_j: the dual norm of each feature's entries, 0 if it is unpenalised. One block of features is
/// held at a time, since XᵀY may be larger than sparse data.
void feature_dual_norms(const Penalty& penalty, const GradientBound& bound, double* out);

/// The dual norm of all entries under a group norm, in one pass over the data. A NaN stays one.
double largest_dual_norm(const Penalty& penalty, const GradientBound& bound);

}  // namespace sparsvm
