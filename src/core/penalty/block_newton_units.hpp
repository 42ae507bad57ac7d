// The penalty seen by block coordinate descent.
//
// A unit is what coordinate descent moves at once: a group of features in all outputs, or a single
// feature where the penalty has no groups. Blocks of coefficients are passed as F x width, feature
// by feature. Within a unit the penalty is one block ("joint") or one block per output.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "penalty/penalty_kind.hpp"
#include "prox/threshold.hpp"

namespace sparsvm {

class PenaltyUnits {
 public:
  PenaltyUnits(PenaltyKind kind, double l1_ratio, const std::int32_t* groups, std::int64_t n_groups,
               bool per_class, const double* omega, std::int64_t d, int outputs, int width)
      : kind_(kind), omega_(omega), outputs_(outputs), width_(width) {
    const bool grouped = kind == PenaltyKind::group_l2 || kind == PenaltyKind::group_linf ||
                         kind == PenaltyKind::sparse_group;
    joint_ = grouped && !per_class && outputs > 1;
    absolute_ = kind == PenaltyKind::l1                                                ? 1.0
                : kind == PenaltyKind::elasticnet || kind == PenaltyKind::sparse_group ? l1_ratio
                                                                                       : 0.0;
    group_ = kind == PenaltyKind::sparse_group ? 1.0 - l1_ratio : grouped ? 1.0 : 0.0;
    square_ = kind == PenaltyKind::l2           ? 1.0
              : kind == PenaltyKind::elasticnet ? 1.0 - l1_ratio
                                                : 0.0;
    sort_features(grouped ? groups : nullptr, grouped ? n_groups : d, d);
    std::int64_t widest = 1;
    for (std::int64_t u = 0; u < units(); ++u) widest = std::max(widest, size(u));
    const auto cells = static_cast<std::size_t>(widest * width);
    h_.resize(cells), u_.resize(cells), o_.resize(cells), v_.resize(cells), place_.resize(cells);
    work_.reserve(widest * width);
    widest_ = widest;
  }

  double alpha = 1.0;

  /// Penalised units first, then one unit for each unpenalised feature.
  std::int64_t units() const { return static_cast<std::int64_t>(first_.size()) - 1; }
  std::int64_t first_free() const { return penalised_; }
  bool is_free(std::int64_t u) const { return u >= penalised_; }
  std::int64_t size(std::int64_t u) const { return first_[u + 1] - first_[u]; }
  const std::int32_t* features(std::int64_t u) const { return members_.data() + first_[u]; }
  std::size_t features_total() const { return members_.size(); }
  std::int64_t widest() const { return widest_; }
  bool selects() const { return absolute_ > 0.0 || group_ > 0.0; }
  bool is_norm() const { return square_ == 0.0; }

  /// alpha * penalty of the unit's coefficients.
  double value(std::int64_t u, const double* w) {
    if (is_free(u)) return 0.0;
    double total = 0.0;
    for_each_block(u, [&](const std::vector<std::int32_t>& place, std::size_t m) {
      double sum = 0.0, squares = 0.0, top = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double z = o_[r] * std::fabs(w[place[r]]);
        sum += z, squares += z * z, top = std::max(top, z);
      }
      total += absolute_ * sum + 0.5 * square_ * squares;
      if (group_ > 0.0) total += group_ * (linf() ? top : std::sqrt(squares));
    });
    return alpha * total;
  }

  /// The v that minimises sum h v^2 / 2 - u v + alpha penalty(v).
  void minimise(std::int64_t unit, const double* h, const double* u, double* v) {
    if (is_free(unit)) {
      for (std::int64_t e = 0; e < size(unit) * width_; ++e) v[e] = h[e] > 0.0 ? u[e] / h[e] : 0.0;
      return;
    }
    for_each_block(unit, [&](const std::vector<std::int32_t>& place, std::size_t m) {
      for (std::size_t r = 0; r < m; ++r) {
        h_[r] = h[place[r]];
        const double t = alpha * absolute_ * o_[r], x = u[place[r]];
        u_[r] = x > t ? x - t : x < -t ? x + t : 0.0;
      }
      if (group_ == 0.0) {
        for (std::size_t r = 0; r < m; ++r) {
          v_[r] = u_[r] / (h_[r] + alpha * square_ * o_[r] * o_[r]);
        }
      } else if (linf()) {
        cut(m);
      } else {
        shrink(m);
      }
      for (std::size_t r = 0; r < m; ++r) v[place[r]] = v_[r];
    });
  }

  /// The dual norm of the unit's gradient over alpha: at most 1 where zero is optimal. For the
  /// elastic net the same of its l1 part; without any selection, infinite unless g is zero.
  double dual_norm(std::int64_t u, const double* g) {
    if (is_free(u)) return 0.0;
    if (joint_ && kind_ == PenaltyKind::group_l2 && size(u) == 1) {
      // The common case, called for every feature: without the detour of the blocks.
      double squares = 0.0;
      for (int k = 0; k < outputs_; ++k) squares += g[k] * g[k];
      return std::sqrt(squares) / (omega_[*features(u)] * alpha);
    }
    double largest = 0.0;
    for_each_block(u, [&](const std::vector<std::int32_t>& place, std::size_t m) {
      double sum = 0.0, squares = 0.0, top = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double z = std::fabs(g[place[r]]) / o_[r];
        u_[r] = z;
        sum += z, squares += z * z, top = std::max(top, z);
      }
      double norm = top;
      if (group_ > 0.0) norm = linf() ? sum : std::sqrt(squares);
      if (absolute_ > 0.0 && group_ > 0.0)
        norm = norm > largest * alpha ? mixed_norm(m) : 0.0;
      else if (group_ == 0.0)
        norm = absolute_ > 0.0 ? norm / absolute_ : norm * 1e300;
      largest = std::max(largest, norm / alpha);
    });
    return largest;
  }

  /// alpha * conjugate at g / alpha of the penalties with a square.
  double conjugate(std::int64_t u, const double* g) {
    if (is_free(u)) return 0.0;
    double total = 0.0;
    for_each_block(u, [&](const std::vector<std::int32_t>& place, std::size_t m) {
      for (std::size_t r = 0; r < m; ++r) {
        const double z = std::max(std::fabs(g[place[r]]) / (alpha * o_[r]) - absolute_, 0.0);
        total += z * z;
      }
    });
    return alpha * total / (2.0 * square_);
  }

 protected:
  bool linf() const { return kind_ == PenaltyKind::group_linf; }

  void sort_features(const std::int32_t* groups, std::int64_t n_groups, std::int64_t d) {
    std::vector<std::int64_t> count(static_cast<std::size_t>(n_groups) + 1, 0);
    std::int64_t free_features = 0;
    for (std::int64_t j = 0; j < d; ++j) {
      if (omega_[j] > 0.0)
        ++count[(groups ? groups[j] : j) + 1];
      else
        ++free_features;
    }
    first_.assign(1, 0);
    std::vector<std::int64_t> next(static_cast<std::size_t>(n_groups), 0);
    for (std::int64_t g = 0; g < n_groups; ++g) {
      next[g] = first_.back();
      if (count[g + 1] > 0) first_.push_back(first_.back() + count[g + 1]);
    }
    penalised_ = static_cast<std::int64_t>(first_.size()) - 1;
    members_.resize(static_cast<std::size_t>(d));
    std::int64_t last = first_.back();
    for (std::int64_t f = 0; f < free_features; ++f) first_.push_back(first_.back() + 1);
    for (std::int64_t j = 0; j < d; ++j) {
      const std::int64_t at = omega_[j] > 0.0 ? next[groups ? groups[j] : j]++ : last++;
      members_[at] = static_cast<std::int32_t>(j);
    }
  }

  /// visit(places, m): the coordinates of each block of the unit, with their omega in o_.
  template <typename Visit>
  void for_each_block(std::int64_t unit, Visit visit) {
    const std::int64_t F = size(unit);
    const std::int32_t* members = features(unit);
    const bool whole = joint_ || group_ == 0.0;
    const int blocks = whole ? 1 : outputs_, wide = whole ? outputs_ : 1;
    for (int b = 0; b < blocks; ++b) {
      std::size_t m = 0;
      for (std::int64_t f = 0; f < F; ++f) {
        const double o = omega_[members[f]];
        for (int k = b; k < b + wide; ++k, ++m) {
          place_[m] = static_cast<std::int32_t>(f * width_ + k);
          o_[m] = o;
        }
      }
      visit(place_, m);
    }
  }

  /// The group norm: v = u t / (h t + a o^2) with t = |o v|, the root of a scalar equation on which
  /// Newton's method climbs from below (the inverse of the norm is concave in t).
  void shrink(std::size_t m) {
    const double a = alpha * group_;
    double squares = 0.0, steepest = 0.0;
    for (std::size_t r = 0; r < m; ++r) {
      const double y = u_[r] / o_[r];
      squares += y * y;
      steepest = std::max(steepest, h_[r] / (o_[r] * o_[r]));
    }
    if (!(squares > a * a)) {
      std::fill_n(v_.begin(), m, 0.0);
      return;
    }
    double t = (std::sqrt(squares) - a) / steepest;
    for (int pass = 0; pass < 50; ++pass) {
      double norm = 0.0, slope = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double oo = o_[r] * o_[r], below = 1.0 / (h_[r] * t + a * oo);
        const double part = o_[r] * u_[r] * below;
        norm += part * part;
        slope += part * part * h_[r] * below;
      }
      const double root = std::sqrt(norm), move = norm * (root - 1.0) / slope;
      if (!(move > 0.0)) break;
      t += move;
      if (move <= 1e-11 * t) break;
    }
    for (std::size_t r = 0; r < m; ++r) v_[r] = u_[r] * t / (h_[r] * t + a * o_[r] * o_[r]);
  }

  /// The largest size: v = u / h cut at level / o, with sum h (o |u| / h - level)_+ / o^2 = a.
  void cut(std::size_t m) {
    const double a = alpha * group_;
    double sum = 0.0;
    double *z = work_.values(), *cost = work_.costs();
    for (std::size_t r = 0; r < m; ++r) {
      sum += std::fabs(u_[r]) / o_[r];
      z[r] = o_[r] * std::fabs(u_[r]) / h_[r];
      cost[r] = h_[r] / (o_[r] * o_[r]);
    }
    if (!(sum > a)) {
      std::fill_n(v_.begin(), m, 0.0);
      return;
    }
    const double level = threshold(z, cost, static_cast<std::int64_t>(m), -a, 0.0, 0.0, work_);
    for (std::size_t r = 0; r < m; ++r) {
      const double size = std::fabs(u_[r]) / h_[r];
      v_[r] = std::copysign(o_[r] * size > level ? level / o_[r] : size, u_[r]);
    }
  }

  /// sparse_group: the c with |(u_ - absolute c)_+| = group c, from below.
  double mixed_norm(std::size_t m) const {
    double c = 0.0;
    for (std::size_t r = 0; r < m; ++r) c = std::max(c, u_[r]);
    for (int pass = 0; pass < 100; ++pass) {
      double squares = 0.0, sum = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double z = std::max(u_[r] - absolute_ * c, 0.0);
        squares += z * z, sum += z;
      }
      const double length = std::sqrt(squares);
      const double rate = group_ + (length > 0.0 ? absolute_ * sum / length : 0.0);
      const double move = (length - group_ * c) / rate;
      if (!(move > 0.0)) break;
      c += move;
      if (move <= 4e-16 * c) break;
    }
    return c;
  }

  PenaltyKind kind_;
  const double* omega_;
  int outputs_, width_;
  bool joint_ = false;
  double absolute_, group_, square_;
  std::int64_t penalised_ = 0, widest_ = 1;
  std::vector<std::int64_t> first_;
  std::vector<std::int32_t> members_, place_;
  std::vector<double> h_, u_, o_, v_;
  ProxScratch work_;
};

}  // namespace sparsvm
