// A penalty as the caller states it; its value, its dual norm, its prox, and the norm of one of its blocks.
//
// Every built-in penalty is, in z = ω∘W, a sum of at most two of three terms, of which the last two
// exclude each other,
//
//   absolute ‖z‖₁ + square/2 ‖z‖² + norm Σ_g N(z_g)   (with one of the norms of norms.hpp),
//
// and `penalty_term` gives their factors by name. Solvers read the factors and the block's shape; what
// depends on the norm of a group is in that norm's file.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penalty/block.hpp"
#include "penalty/norms.hpp"
#include "prox/prox.hpp"

namespace sparsvm {

class Design;

// The members j of each group of(j), ascending: those of group g are list[first[g]] ... list[first[g + 1] - 1].
// Members of a negative group are left out.
template <typename Of, typename Member>
void list_by_group(int64_t members, int64_t groups, Of of, std::vector<int64_t>& first,
                   std::vector<Member>& list) {
  first.assign(static_cast<std::size_t>(groups) + 1, 0);
  for (int64_t j = 0; j < members; ++j)
    if (of(j) >= 0) ++first[of(j) + 1];
  for (int64_t g = 0; g < groups; ++g) first[g + 1] += first[g];
  list.resize(static_cast<std::size_t>(first[groups]));
  std::vector<int64_t> next(first.begin(), first.end() - 1);
  for (int64_t j = 0; j < members; ++j)
    if (of(j) >= 0) list[next[of(j)]++] = static_cast<Member>(j);
}

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

// prox of step·base(ω∘W) for W of size d x K, row-major ("feature-major").
//
// A group is a set of features; joint groups span the K outputs, per-class groups are repeated in
// each. The penalty is a sum over parts, which are groups, or features where each stands alone.
class PenaltyProx {
 public:
  // Takes copies of the penalty's arrays.
  explicit PenaltyProx(const Penalty& penalty);

  // Whether each part is one feature.
  bool by_feature() const { return by_feature_; }
  int64_t parts() const { return by_feature_ ? d_ : std::ssize(first_) - 1; }

  // V <- prox(V), everywhere or on the parts [from, to); the rest of V is not touched.
  void apply(double* V, double step) { apply(V, step, 0, parts()); }
  void apply(double* V, double step, int64_t from, int64_t to);

  // base(ω∘V) on the parts [from, to).
  double value(const double* V, int64_t from, int64_t to) const;

  // The features of a part, in ascending order.
  void members(int64_t part, std::vector<int64_t>& out) const {
    out.assign(begin(part), begin(part + 1));
  }
  double weight(int64_t feature) const { return omega_[feature]; }

 private:
  const int64_t* begin(int64_t part) const {
    return order_.data() + (by_feature_ ? part : first_[part]);
  }
  void soften(double* V, double shrink, double damp, int64_t from, int64_t to) const;
  void shrink_groups(double* V, double step, int64_t from, int64_t to);
  void shrink_group(double* v, const int64_t* features, int64_t size, int64_t width, double step);

  PenaltyTerm term_;
  int64_t d_, outputs_;
  bool per_class_;
  bool by_feature_ = true;
  std::vector<double> omega_;
  // The features of group g are order_[first_[g] .. first_[g + 1]).
  std::vector<int64_t> first_, order_;
  std::vector<double> gathered_, gathered_omega_;
  ProxScratch work_;
};

// Weights W are d x outputs, row-major.
struct ProxTerm {
  std::function<void(double* W, double step)> prox;  // W <- prox of step·penalty at W
  std::function<double(const double* W)> value;      // penalty(W)
};

inline ProxTerm built_in_term(const Penalty& p) {
  const auto prox = std::make_shared<PenaltyProx>(p);
  return {[prox](double* W, double step) { prox->apply(W, step); },
          [prox](const double* W) { return prox->value(W, 0, prox->parts()); }};
}

}  // namespace sparsvm
