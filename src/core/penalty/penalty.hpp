// A penalty as the caller states it, and its value on listed features.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "penalty/penalty_kind.hpp"

namespace sparsvm {

using std::int32_t;

using std::int64_t;

/// The penalty as the caller states it, for all d features.
struct Penalty {
  PenaltyKind kind;
  double l1_ratio;
  const int32_t* groups;
  int64_t n_groups;
  bool per_class;
  const double* omega;
  int64_t d, outputs;

  bool grouped() const {
    return kind == PenaltyKind::group_l2 || kind == PenaltyKind::group_linf ||
           kind == PenaltyKind::sparse_group;
  }
  /// Curvature of the squared part.
  double quad() const {
    if (kind == PenaltyKind::l2) return 1.0;
    return kind == PenaltyKind::elasticnet ? 1.0 - l1_ratio : 0.0;
  }
  /// Share of the absolute values.
  double ratio() const {
    switch (kind) {
      case PenaltyKind::l1: return 1.0;
      case PenaltyKind::elasticnet:
      case PenaltyKind::sparse_group: return l1_ratio;
      default: return 0.0;
    }
  }
};

/// Σ_j ω_j‖W_j‖₁ with W (m x outputs) on the listed features.
inline double absolute_sum(const Penalty& penalty, const std::vector<int32_t>& features,
                           const double* W) {
  double sum = 0.0;
  for (const int32_t j : features)
    for (int64_t k = 0; k < penalty.outputs; ++k) sum += penalty.omega[j] * std::abs(*W++);
  return sum;
}

/// The norms of ω∘W (m x outputs), summed over the groups.
inline double group_norm_sum(const Penalty& penalty, const std::vector<int32_t>& features,
                             const double* W) {
  const bool linf = penalty.kind == PenaltyKind::group_linf;
  const int64_t copies = penalty.per_class ? penalty.outputs : 1;
  std::vector<double> groups(static_cast<std::size_t>(penalty.n_groups * copies), 0.0);
  for (const int32_t j : features) {
    for (int64_t k = 0; k < penalty.outputs; ++k) {
      const double z = penalty.omega[j] * std::abs(*W++);
      double& total = groups[penalty.groups[j] * copies + (copies > 1 ? k : 0)];
      total = linf ? std::max(total, z) : total + z * z;
    }
  }
  double norms = 0.0;
  for (const double total : groups) norms += linf ? total : std::sqrt(total);
  return norms;
}

/// The penalty of W (m x outputs) on the listed features.
inline double penalty_sum(const Penalty& penalty, const std::vector<int32_t>& features,
                          const double* W) {
  const double absolute = absolute_sum(penalty, features, W);
  if (penalty.grouped()) {
    return penalty.ratio() * absolute +
           (1.0 - penalty.ratio()) * group_norm_sum(penalty, features, W);
  }
  double squares = 0.0;
  for (const int32_t j : features) {
    for (int64_t k = 0; k < penalty.outputs; ++k) {
      const double z = penalty.omega[j] * *W++;
      squares += z * z;
    }
  }
  return penalty.ratio() * absolute + 0.5 * penalty.quad() * squares;
}

}  // namespace sparsvm
