// A penalty as the caller states it; its value, its dual norm, and the norm of one of its blocks.
//
// Every built-in penalty is, in z = ω∘W, a sum of three terms,
//
//   absolute ‖z‖₁ + square/2 ‖z‖² + norm Σ_g N(z_g)   (with one of the norms of norms.hpp),
//
// and `penalty_term` gives their factors by name. Solvers read the factors and the block's shape; what
// depends on the norm of a group is in that norm's file.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "penalty/block.hpp"
#include "penalty/norms.hpp"

namespace sparsvm {

class Design;

inline bool BlockShape::smooth() const {
  return with_norm(norm, [](auto kind) { return kind.kSmooth; });
}

inline bool BlockShape::sums_squares() const {
  return absolute == 0.0 && with_norm(norm, [](auto kind) { return kind.kDualOfSquares; });
}

inline bool BlockShape::shared_scaling() const {
  return absolute == 0.0 &&
         with_norm(norm, [](auto kind) { return decltype(kind)::Cone::kSharedScaling; });
}

inline bool BlockShape::exceeds(const double* g, int64_t size, double theta) const {
  const BlockShape s = for_size(size);
  return with_norm(s.norm, [&](auto kind) {
    double sum = 0.0;
    for (int64_t c = 0; c < size; ++c)
      sum += kind.dual_term(std::max(std::abs(g[c]) - theta * s.absolute, 0.0));
    return !(kind.dual(sum) <= theta * s.radius);
  });
}

inline double BlockShape::least_sum(double theta) const {
  return with_norm(norm, [&](auto kind) { return kind.dual_term(theta * radius); });
}

inline double BlockShape::plain_dual_norm(const double* g, int64_t size) const {
  return with_norm(norm, [&](auto kind) {
    double sum = 0.0;
    for (int64_t c = 0; c < size; ++c) sum += kind.dual_term(g[c]);
    return kind.dual(sum);
  });
}

inline double BlockShape::dual_norm(const double* g, int64_t size) const {
  const BlockShape s = for_size(size);
  if (s.absolute > 0.0) return mixed_dual_norm(s.norm, g, size, s.absolute, s.radius);
  return s.plain_dual_norm(g, size) / s.radius;
}

// absolute ‖w‖₁ + radius N(w) is at least absolute ‖w‖₁ and (absolute + radius) N(w).
inline double BlockShape::norm_bound(const double* g, int64_t size) const {
  if (absolute == 0.0) return dual_norm(g, size);
  double largest = 0.0;
  for (int64_t c = 0; c < size; ++c) largest = std::max(largest, std::abs(g[c]));
  const double plain = plain_dual_norm(g, size) / (absolute + radius);
  // Written so that NaN stays.
  return absolute * plain > largest ? largest / absolute : plain;
}

// The factors of the three terms.
struct PenaltyTerm {
  double absolute = 0.0, square = 0.0, norm = 0.0;
  GroupNorm group_norm = GroupNorm::none;

  bool grouped() const { return norm > 0.0; }
  // Whether the penalty has kinks at zero, which select features.
  bool selects() const { return absolute > 0.0 || norm > 0.0; }
  // The norm of a block. A penalty that selects nothing has none.
  BlockShape shape() const;
};

// The factors of a penalty by name; throws if there is none of that name.
PenaltyTerm penalty_term(const std::string& name, double l1_ratio);

// The penalty for all d features.
struct Penalty : PenaltyTerm {
  const int32_t* groups;
  int64_t n_groups;
  bool per_class;
  const double* omega;
  int64_t d, outputs;

  // Whether a block holds all outputs of its features.
  bool joint() const { return grouped() && !per_class && outputs > 1; }
  // Whether each feature is a group of its own, also where there are no groups.
  bool single_features() const;
  // The same penalty; where every group has one entry, its norm is the absolute value.
  Penalty simplified() const;
};

// The penalty of W (m x outputs) on the listed features.
double penalty_sum(const Penalty& penalty, const std::vector<int32_t>& features, const double* W);

// The value at W (d x outputs), with sums that do not lose digits: for few weights, where
// PenaltyTerms.value would spend its time in two dozen calls of NumPy.
double penalty_value(const Penalty& penalty, const double* W);

// The entries scale·|XᵀY|_jo + error_o·‖X_j‖ (d x outputs): a gradient with a bound of its rounding.
struct GradientBound {
  const Design* design;
  const double* Y;  // n x outputs
  double scale;
  const double* error;         // outputs
  const double* column_norms;  // d
};

// out_j: the dual norm of each feature's entries, 0 if it is unpenalised. One block of features is
// held at a time, since XᵀY may be larger than sparse data.
void feature_dual_norms(const Penalty& penalty, const GradientBound& bound, double* out);

// The dual norm of all entries under a group norm, in one pass over the data. A NaN stays one.
double largest_dual_norm(const Penalty& penalty, const GradientBound& bound);

}  // namespace sparsvm
