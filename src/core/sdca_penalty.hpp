// The penalty of dual coordinate ascent.
#pragma once

#include <cstdint>

#include "penalty_kind.hpp"

namespace sparsvm {

using std::int64_t;

/// The penalty as the caller states it, for all d features.
struct SdcaPenalty {
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

}  // namespace sparsvm
