// Prices of all features by the dual: what XᵀỸ says about every unit of the penalty.
//
// XᵀỸ has d x outputs entries, often far more than the working set of features; it is computed a
// block of features at a time, and only a few numbers per unit are kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "penalty/penalty_layout.hpp"
#include "prox/row_norms.hpp"
#include "solvers/sdca/sdca_problem.hpp"
#include "support/mmap_vector.hpp"

namespace sparsvm {

class SdcaPrices {
 public:
  explicit SdcaPrices(const HingeProblem& problem)
      : problem_(problem), d_(problem.design->d()), outputs_(problem.outputs()),
        shape_(PenaltyLayout::make_shape(problem.penalty.kind, problem.penalty.l1_ratio)),
        joint_(problem.penalty.grouped() && !problem.penalty.per_class && outputs_ > 1) {
    const Penalty& penalty = problem.penalty;
    if (penalty.grouped()) {
      std::vector<unsigned char> seen(static_cast<std::size_t>(penalty.n_groups), 0);
      for (int64_t j = 0; j < d_; ++j) single_ = !seen[unit_of(j)]++ && single_;
    }
    if (!single_) {
      layout_.emplace(penalty.kind, penalty.l1_ratio, penalty.groups, penalty.n_groups,
                      penalty.per_class, penalty.omega, d_, outputs_);
    }
    values_.resize(static_cast<std::size_t>(single_ ? outputs_ : layout_->largest_block()));
  }

  /// A penalty whose dual says which features are zero.
  bool selects() const { return problem_.penalty.grouped() || problem_.penalty.ratio() > 0.0; }
  int64_t unit_of(int64_t j) const {
    return problem_.penalty.grouped() ? problem_.penalty.groups[j] : j;
  }
  int64_t units() const { return problem_.penalty.grouped() ? problem_.penalty.n_groups : d_; }

  /// Look at the pull T − XᵀỸ of all features, Ỹ being n x outputs.
  void find(const double* signed_dual) {
    norms_.assign(selects() ? static_cast<std::size_t>(units()) : 0, 0.0);
    largest_ = squares_ = conjugate_ = 0.0;
    const int64_t wide = single_ ? std::max<int64_t>(1, block_entries / outputs_) : d_;
    pull_.resize(static_cast<std::size_t>(std::min(wide, d_) * outputs_));
    std::vector<int32_t> places(static_cast<std::size_t>(problem_.design->n()), 0);
    for (int64_t first = 0; first < d_; first += wide) {
      const int64_t last = std::min(first + wide, d_);
      problem_.design->transposed_range(first, last, signed_dual, outputs_, pull_.data(),
                                        places.data());
      turn_around(first, last);
      add_squares(first, last);
      if (selects()) measure(first, last);
    }
    for (const double norm : norms_) largest_ = std::max(largest_, norm);
    if (!only_block()) pull_ = Pages<double>();
  }

  /// The dual norm of every unit in units of its bound; empty where the penalty selects nothing.
  const Pages<double>& norms() const { return norms_; }
  /// T − XᵀỸ of the listed features, m x outputs.
  void pull_of(const std::vector<int32_t>& features, const double* signed_dual,
               Pages<double>& out) const {
    out.resize(features.size() * static_cast<std::size_t>(outputs_));
    if (only_block()) {  // it is still there
      for (std::size_t a = 0; a < features.size(); ++a)
        std::copy_n(pull_.data() + features[a] * outputs_, outputs_,
                    out.data() + static_cast<int64_t>(a) * outputs_);
      return;
    }
    problem_.design->transposed_subset(features.data(), std::ssize(features), signed_dual, outputs_,
                                       out.data());
    for (std::size_t a = 0; a < features.size(); ++a) {
      for (int64_t o = 0; o < outputs_; ++o) {
        double& pull = out[a * static_cast<std::size_t>(outputs_) + static_cast<std::size_t>(o)];
        pull = (problem_.tilt ? problem_.tilt[features[a] * outputs_ + o] : 0.0) - pull;
      }
    }
  }
  double largest() const { return largest_; }
  /// Σ (pull/ω)².
  double squares() const { return squares_; }
  /// g*(pull) of the penalties with a squared part.
  double conjugate() const { return conjugate_; }

 private:
  static constexpr int64_t block_entries = int64_t{1} << 16;

  bool only_block() const { return single_ && d_ * outputs_ <= block_entries; }

  /// From XᵀỸ to T − XᵀỸ.
  void turn_around(int64_t first, int64_t last) {
    const int64_t entries = (last - first) * outputs_;
    double* pull = pull_.data();
    if (problem_.tilt) {
      const double* tilt = problem_.tilt + first * outputs_;
      for (int64_t e = 0; e < entries; ++e) pull[e] = tilt[e] - pull[e];
    } else {
      for (int64_t e = 0; e < entries; ++e) pull[e] = -pull[e];
    }
  }

  void add_squares(int64_t first, int64_t last) {
    const double ratio = problem_.penalty.ratio(), quad = problem_.penalty.quad();
    if (quad == 0.0) return;
    double excess = 0.0;
    for (int64_t j = first; j < last; ++j) {
      for (int64_t o = 0; o < outputs_; ++o) {
        const double u = std::abs(pull_[(j - first) * outputs_ + o]) / problem_.penalty.omega[j];
        const double over = std::max(u - ratio, 0.0);
        squares_ += u * u;
        excess += over * over;
      }
    }
    conjugate_ += excess / (2.0 * quad);
  }

  /// The dual norms of the units: single features from first on, or all groups.
  void measure(int64_t first, int64_t last) {
    if (single_ && joint_ && shape_.kind == BlockKind::euclidean) {
      row_squares_.resize(static_cast<std::size_t>(last - first));
      feature_rows::add_squares(pull_.data(), last - first, outputs_, row_squares_.data());
      for (int64_t j = first; j < last; ++j) {
        const double length = std::sqrt(row_squares_[static_cast<std::size_t>(j - first)]);
        norms_[unit_of(j)] = length / (shape_.l2 * problem_.penalty.omega[j]);
      }
      return;
    }
    if (single_) {
      for (int64_t j = first; j < last; ++j)
        norms_[unit_of(j)] =
            norm_of_feature(pull_.data() + (j - first) * outputs_, 1.0 / problem_.penalty.omega[j]);
      return;
    }
    const int64_t copies = joint_ ? 1 : outputs_;
    for (int64_t b = 0; b < units() * copies; ++b) {
      const int64_t size = layout_->values(b, pull_.data(), nullptr, 0.0, values_.data());
      double& norm = norms_[b / copies];
      if (size > 0) norm = std::max(norm, shape_.dual_norm(values_.data(), size));
    }
  }

  double norm_of_feature(const double* pull, double factor) {
    double most = 0.0;
    for (int64_t o = 0; o < outputs_; ++o) {
      values_[o] = pull[o] * factor;
      if (!joint_) most = std::max(most, shape_.dual_norm(values_.data() + o, 1));
    }
    return joint_ ? shape_.dual_norm(values_.data(), outputs_) : most;
  }

  HingeProblem problem_;
  int64_t d_, outputs_;
  BlockShape shape_;
  bool joint_;                           // the outputs of a unit have one norm
  bool single_ = true;                   // every unit is one feature,
  std::optional<PenaltyLayout> layout_;  // otherwise what belongs to which
  Pages<double> pull_, norms_, values_;
  std::vector<double> row_squares_;
  double largest_ = 0.0, squares_ = 0.0, conjugate_ = 0.0;
};

}  // namespace sparsvm
