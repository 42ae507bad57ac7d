// The proximity operator of a whole penalty, applied to a coefficient matrix.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "penalty/penalty_kind.hpp"
#include "prox/prox.hpp"
#include "prox/row_norms.hpp"
#include "prox/simplex_batch.hpp"
#include "prox/vector_loops.hpp"

namespace sparsvm {

/// prox of step·base(ω∘W) for W of size d x K, row-major ("feature-major").
///
/// A group is a set of features; joint groups span the K outputs, per-class groups are repeated in
/// each. `apply` may be given a range of parts, so that a caller can treat them while in cache.
class PenaltyProx {
 public:
  PenaltyProx(PenaltyKind kind, double l1_ratio, std::int64_t d, std::int64_t outputs,
              const std::int32_t* groups, std::int64_t n_groups, bool per_class,
              const double* omega)
      : kind_(kind), ratio_(l1_ratio), d_(d), outputs_(outputs), per_class_(per_class),
        omega_(omega, omega + d), batch_(outputs) {
    for (double o : omega_) {
      if (!(o >= 0.0)) throw std::invalid_argument("omega must be >= 0 and not NaN.");
    }
    all_ones_ = std::all_of(omega_.begin(), omega_.end(), [](double o) { return o == 1.0; });
    if (entrywise_kind()) return;
    sort_features(groups, n_groups);
    std::int64_t widest = 0;
    for (std::int64_t g = 0; g < n_groups; ++g)
      widest = std::max(widest, first_[g + 1] - first_[g]);
    alone_ = widest <= 1;
    // Groups of one entry each: every group norm is the absolute value.
    if (alone_ && (per_class_ || outputs_ == 1)) kind_ = PenaltyKind::l1;
    const std::int64_t entries = widest * (per_class_ ? 1 : outputs_);
    work_.reserve(entries);
    gathered_.resize(static_cast<std::size_t>(entries));
    gathered_omega_.resize(static_cast<std::size_t>(entries));
  }

  /// Groups, or features where the penalty is a sum over features: what `apply` counts by.
  std::int64_t parts() const { return by_feature() ? d_ : std::ssize(first_) - 1; }
  /// The feature at which a part starts, where parts are ranges of consecutive features.
  std::int64_t start(std::int64_t part) const { return by_feature() ? part : first_[part]; }
  /// Whether every part is a range of consecutive features, in order.
  bool consecutive() const { return by_feature() || consecutive_; }

  /// V <- prox(V) on the parts [from, to); the rest of V is not touched.
  void apply(double* V, double step, std::int64_t from, std::int64_t to) {
    switch (kind_) {
      case PenaltyKind::l1: return entrywise(V, step, 0.0, from, to);
      case PenaltyKind::l2: return entrywise(V, 0.0, step, from, to);
      case PenaltyKind::elasticnet:
        return entrywise(V, step * ratio_, step * (1.0 - ratio_), from, to);
      case PenaltyKind::sparse_group:
        return groups(V, step * (1.0 - ratio_), step * ratio_, from, to);
      default: return groups(V, step, 0.0, from, to);
    }
  }
  void apply(double* V, double step) { apply(V, step, 0, parts()); }

  /// The features of a part, in ascending order.
  void members(std::int64_t part, std::vector<std::int64_t>& out) const {
    if (by_feature()) {
      out.assign(1, part);
    } else {
      out.assign(order_.begin() + first_[part], order_.begin() + first_[part + 1]);
    }
  }
  double weight(std::int64_t feature) const { return omega_[feature]; }

  /// base(ω∘V) on the parts [from, to).
  double value(const double* V, std::int64_t from, std::int64_t to) const {
    const bool entries = entrywise_kind(), sparse = kind_ == PenaltyKind::sparse_group;
    const double l1 = kind_ == PenaltyKind::l1                     ? 1.0
                      : kind_ == PenaltyKind::elasticnet || sparse ? ratio_
                                                                   : 0.0;
    const double rest = kind_ == PenaltyKind::elasticnet || sparse ? 1.0 - ratio_ : 1.0 - l1;
    double absolute = 0.0, squares = 0.0, norms = 0.0;
    const std::int64_t copies = per_class_ && !entries ? outputs_ : 1, width = outputs_ / copies;
    for (std::int64_t part = from; part < to; ++part) {
      for (std::int64_t c = 0; c < copies; ++c) {
        double sum = 0.0, top = 0.0;
        for (std::int64_t i = start(part); i < end(part); ++i) {
          const std::int64_t j = by_feature() ? i : order_[i];
          for (std::int64_t k = 0; k < width; ++k) {
            const double z = std::abs(omega_[j] * V[j * outputs_ + c + k]);
            absolute += z, sum += z * z, top = std::max(top, z);
          }
        }
        squares += sum;
        norms += kind_ == PenaltyKind::group_linf ? top : std::sqrt(sum);
      }
    }
    return l1 * absolute + rest * (entries ? 0.5 * squares : norms);
  }

 private:
  std::int64_t end(std::int64_t part) const { return by_feature() ? part + 1 : first_[part + 1]; }
  bool entrywise_kind() const {
    return kind_ == PenaltyKind::l1 || kind_ == PenaltyKind::l2 || kind_ == PenaltyKind::elasticnet;
  }
  bool by_feature() const { return alone_ || entrywise_kind(); }

  void sort_features(const std::int32_t* groups, std::int64_t n_groups) {
    first_.assign(static_cast<std::size_t>(n_groups) + 1, 0);
    for (std::int64_t j = 0; j < d_; ++j) {
      if (groups[j] < 0 || groups[j] >= n_groups) {
        throw std::invalid_argument("groups[" + std::to_string(j) + "] is " +
                                    std::to_string(groups[j]) + ", outside 0 .. " +
                                    std::to_string(n_groups - 1) + ".");
      }
      ++first_[groups[j] + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    consecutive_ = std::is_sorted(groups, groups + d_);
    order_.resize(static_cast<std::size_t>(d_));
    std::vector<std::int64_t> next(first_.begin(), first_.end() - 1);
    for (std::int64_t j = 0; j < d_; ++j) order_[next[groups[j]]++] = j;
    even_.resize(static_cast<std::size_t>(n_groups));
    for (std::int64_t g = 0; g < n_groups; ++g) {
      bool even = true;
      for (std::int64_t i = first_[g]; i < first_[g + 1]; ++i) {
        even = even && omega_[order_[i]] == omega_[order_[first_[g]]];
      }
      even_[g] = even;
    }
  }

  /// Soft thresholding by shrink·ω_j, then division by 1 + damp·ω_j².
  void entrywise(double* V, double shrink, double damp, std::int64_t from, std::int64_t to) const {
    if (all_ones_) {
      flat::soften(V + from * outputs_, shrink, 1.0 + damp, (to - from) * outputs_);
      return;
    }
    for (std::int64_t j = from; j < to; ++j) {
      const double t = shrink * omega_[j], below = 1.0 + damp * omega_[j] * omega_[j];
      double* v = V + j * outputs_;
      for (std::int64_t k = 0; k < outputs_; ++k) v[k] = soft(v[k], t) / below;
    }
  }

  /// Soft thresholding by shrink·ω_j, then the prox of the group norm. The composition is the prox
  /// of the sum because the second keeps signs and zeros, hence the subgradients of the first.
  void groups(double* V, double step, double shrink, std::int64_t from, std::int64_t to) {
    if (shrink > 0.0 && (alone_ || (consecutive_ && all_ones_))) {
      entrywise(V, shrink, 0.0, start(from), start(to));
    } else if (shrink > 0.0) {
      for (std::int64_t i = start(from); i < start(to); ++i) {
        entrywise(V, shrink, 0.0, order_[i], order_[i] + 1);
      }
    }
    if (!alone_) return wide_groups(V, step, from, to);
    norms_.resize(static_cast<std::size_t>(to - from));
    if (kind_ == PenaltyKind::group_linf) return clip_features(V, step, from, to);
    shrink_features(V, step, from, to);
  }

  /// prox of step·ω_j‖·‖₂ of single features, as prox_group_l2.
  void shrink_features(double* V, double step, std::int64_t from, std::int64_t to) {
    double *factors = norms_.data(), *v = V + from * outputs_;
    feature_rows::add_squares(v, to - from, outputs_, factors);
    if (feature_rows::shrink_factors(factors, step, omega_.data() + from, to - from)) {
      for (std::int64_t j = from; j < to; ++j, v += outputs_) {
        prox_group_l2(v, outputs_, step * omega_[j], v);
      }
      return;
    }
    feature_rows::scale(v, to - from, outputs_, factors);
  }

  /// prox of step·ω_j‖·‖_∞ of single features. Most rows vanish, which a sum tells; the levels of
  /// the others are found side by side.
  void clip_features(double* V, double step, std::int64_t from, std::int64_t to) {
    constexpr int lanes = SimplexBatch::lanes;
    double *rows[lanes] = {}, sums[lanes] = {};
    int waiting = 0;
    feature_rows::add_magnitudes(V + from * outputs_, to - from, outputs_, norms_.data());
    for (std::int64_t j = from; j < to; ++j) {
      double& stays = norms_[static_cast<std::size_t>(j - from)];
      const double t = step * omega_[j], sum = stays;
      stays = t == 0.0 || !(sum <= t) ? 1.0 : 0.0;
      if (t == 0.0 || sum <= t) continue;
      double* v = V + j * outputs_;
      if (outputs_ > SimplexBatch::longest) {
        prox_group_linf(v, outputs_, t, v, work_);
      } else {
        rows[waiting] = v, sums[waiting] = sum, batch_.mass()[waiting] = t;
        if (++waiting < lanes) continue;
        batch_.clip(rows, sums, waiting);
        waiting = 0;
      }
    }
    if (waiting > 0) batch_.clip(rows, sums, waiting);
    // Short rows that vanish one by one take longer than a product with 0 or 1 for all.
    feature_rows::scale(V + from * outputs_, to - from, outputs_, norms_.data());
  }

  void wide_groups(double* V, double step, std::int64_t from, std::int64_t to) {
    for (std::int64_t g = from; g < to; ++g) {
      const std::int64_t size = first_[g + 1] - first_[g];
      if (size == 0) continue;
      const std::int64_t* features = order_.data() + first_[g];
      const std::int64_t copies = per_class_ ? outputs_ : 1, width = per_class_ ? 1 : outputs_;
      const bool in_place = features[size - 1] - features[0] == size - 1 && copies == 1;
      for (std::int64_t c = 0; c < copies; ++c) {
        if (in_place) {
          shrink_group(V + features[0] * outputs_, g, features, size, width, step);
        } else {
          gather(V + c, features, size, width);
          shrink_group(gathered_.data(), g, features, size, width, step);
          scatter(V + c, features, size, width);
        }
      }
    }
  }

  void shrink_group(double* v, std::int64_t g, const std::int64_t* features, std::int64_t size,
                    std::int64_t width, double step) {
    const bool linf = kind_ == PenaltyKind::group_linf;
    const std::int64_t n = size * width;
    if (even_[g]) {
      const double t = step * omega_[features[0]];
      if (t == 0.0) return;
      if (linf) {
        prox_group_linf(v, n, t, v, work_);
      } else {
        prox_group_l2(v, n, t, v);
      }
      return;
    }
    double* o = gathered_omega_.data();
    for (std::int64_t i = 0; i < size; ++i) {
      std::fill(o + i * width, o + (i + 1) * width, omega_[features[i]]);
    }
    if (linf) {
      prox_group_linf_weighted(v, o, n, step, v, work_);
    } else {
      prox_group_l2_weighted(v, o, n, step, v);
    }
  }

  void gather(const double* V, const std::int64_t* features, std::int64_t size,
              std::int64_t width) {
    for (std::int64_t i = 0; i < size; ++i) {
      const double* v = V + features[i] * outputs_;
      for (std::int64_t k = 0; k < width; ++k) gathered_[i * width + k] = v[k];
    }
  }

  void scatter(double* V, const std::int64_t* features, std::int64_t size,
               std::int64_t width) const {
    for (std::int64_t i = 0; i < size; ++i) {
      double* v = V + features[i] * outputs_;
      for (std::int64_t k = 0; k < width; ++k) v[k] = gathered_[i * width + k];
    }
  }

  PenaltyKind kind_;
  double ratio_;
  std::int64_t d_, outputs_;
  bool per_class_, all_ones_ = false, consecutive_ = true;
  bool alone_ = false;  // every feature is a group of its own
  std::vector<double> omega_;
  std::vector<std::int64_t> first_,
      order_;                        // features of group g: order_[first_[g] .. first_[g+1])
  std::vector<unsigned char> even_;  // whether ω is one value in the group
  std::vector<double> gathered_, gathered_omega_;
  std::vector<double> norms_;  // of the features being treated, if each is a group
  ProxScratch work_;
  SimplexBatch batch_;
};

}  // namespace sparsvm
