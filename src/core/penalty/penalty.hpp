// A penalty as the caller states it; its value, its dual norm, and the norm of one of its blocks.
//
// Every built-in penalty is, in z = ω∘W, a sum of three terms,
//
//   absolute ‖z‖₁ + square/2 ‖z‖² + norm Σ_g ‖z_g‖   (Euclidean or maximum norm of each group),
//
// and `penalty_term` gives their factors by name. Solvers read the factors and the block's shape; what
// depends on the norm of a group is in this room.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace sparsvm {

class Design;

enum class GroupNorm : uint8_t { none, euclidean, maximum };
enum class BlockKind : uint8_t { absolute, maximum, euclidean, sparse };

// The norm of one block, and its dual.
struct BlockShape {
  BlockKind kind = BlockKind::absolute;
  double l1 = 1.0;    // radius of the absolute part
  double l2 = 1.0;    // radius of the Euclidean part
  double quad = 0.0;  // curvature of the absolute part (elastic net)

  // Of the dual norm of a sparse block: beyond what any threshold on it tells apart.
  static constexpr int kMostBisections = 60;
  static constexpr double kBisectionEnd = 1e-12;

  // A block of one coordinate is an absolute value whatever the norm.
  BlockShape for_size(int64_t size) const {
    if (size > 1 || kind == BlockKind::absolute) return *this;
    const double radius = kind == BlockKind::sparse      ? l1 + l2
                          : kind == BlockKind::euclidean ? l2
                                                         : 1.0;
    return {BlockKind::absolute, radius, 0.0, quad};
  }

  bool euclidean() const { return kind == BlockKind::euclidean; }
  bool maximum() const { return kind == BlockKind::maximum; }
  // Single coordinates, without a norm of groups.
  bool single() const { return kind == BlockKind::absolute; }
  // Zeros inside a block may be left out of it only where its norm allows them one by one.
  bool separable() const { return kind == BlockKind::sparse; }

  // Is the dual norm of g greater than theta?
  bool exceeds(const double* g, int64_t size, double theta) const {
    const BlockShape s = for_size(size);
    double sum = 0.0;
    switch (s.kind) {
      case BlockKind::absolute: return !(std::abs(g[0]) <= theta * s.l1);
      case BlockKind::maximum:
        for (int64_t c = 0; c < size; ++c) sum += std::abs(g[c]);
        return !(sum <= theta);
      case BlockKind::euclidean:
        for (int64_t c = 0; c < size; ++c) sum += g[c] * g[c];
        return !(std::sqrt(sum) <= theta * s.l2);
      case BlockKind::sparse:
        for (int64_t c = 0; c < size; ++c) {
          const double a = std::max(std::abs(g[c]) - theta * s.l1, 0.0);
          sum += a * a;
        }
        return !(std::sqrt(sum) <= theta * s.l2);
    }
    return true;
  }

  // The dual norm of g can exceed theta only if the sum over its coordinates is at least this: of
  // |g_c|, or of the squares of |g_c| (of what is left of it beyond theta * l1 if sparse).
  double least_sum(double theta) const {
    const bool linear = kind == BlockKind::absolute || kind == BlockKind::maximum;
    return linear ? theta * l1 : theta * l2 * theta * l2;
  }

  // The dual norm of g; if sparse by bisection on `exceeds`, accurate to 1e-12, used where a few
  // blocks matter.
  double dual_norm(const double* g, int64_t size) const {
    const BlockShape s = for_size(size);
    if (s.kind == BlockKind::euclidean) {
      double sum = 0.0;
      for (int64_t c = 0; c < size; ++c) sum += g[c] * g[c];
      return std::sqrt(sum) / s.l2;
    }
    double hi = 0.0;
    for (int64_t c = 0; c < size; ++c) hi += std::abs(g[c]);
    if (s.kind == BlockKind::absolute) return hi / s.l1;
    if (s.kind == BlockKind::maximum) return hi;
    hi /= std::max(s.l1, s.l2);
    double lo = 0.0;
    for (int it = 0; it < kMostBisections && hi - lo > kBisectionEnd * hi; ++it) {
      const double mid = 0.5 * (lo + hi);
      (exceeds(g, size, mid) ? lo : hi) = mid;
    }
    return hi;
  }

  // An upper bound of the dual norm that takes no search: the norm itself unless sparse, where
  // l1 |w|_1 + l2 |w|_2 is at least l1 |w|_1 and (l1 + l2) |w|_2.
  double norm_bound(const double* g, int64_t size) const {
    if (kind != BlockKind::sparse) return dual_norm(g, size);
    double largest = 0.0, squares = 0.0;
    for (int64_t c = 0; c < size; ++c) {
      largest = std::max(largest, std::abs(g[c]));
      squares += g[c] * g[c];
    }
    const double euclidean = std::sqrt(squares) / (l1 + l2);
    // Written so that NaN stays.
    return l1 * euclidean > largest ? largest / l1 : euclidean;
  }
};

// The factors of the three terms.
struct PenaltyTerm {
  double absolute = 0.0, square = 0.0, norm = 0.0;
  GroupNorm group_norm = GroupNorm::none;

  bool grouped() const { return norm > 0.0; }
  bool maximum() const { return group_norm == GroupNorm::maximum; }
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
