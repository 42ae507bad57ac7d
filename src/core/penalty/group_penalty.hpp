// The penalty as block coordinate descent and Newton's method on its active manifold see it.
//
// A group is what coordinate descent moves at once: a group of features in all outputs, or a single
// feature where the penalty has no groups. Its coefficients are passed as F x width, feature by
// feature. Within a group the penalty is one block ("joint") or one block per output.
//
// On the manifold, coordinates that move are marked `loose`; those at the largest size of an l1/linf
// block move together ("tied"), the rest of the group stays where it is ("fixed"). What depends on the norm
// of a block is in that norm's file.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "penalty/penalty.hpp"
#include "prox/prox.hpp"

namespace sparsvm {

class GroupPenalty {
 public:
  GroupPenalty(const Penalty& penalty, int width)
      : omega_(penalty.omega), outputs_(static_cast<int>(penalty.outputs)), width_(width),
        joint_(penalty.joint()), absolute_(penalty.absolute), norm_(penalty.norm),
        square_(penalty.square), group_norm_(penalty.group_norm), shape_(penalty.shape()) {
    const bool grouped = penalty.grouped();
    sort_features(grouped ? penalty.groups : nullptr, grouped ? penalty.n_groups : penalty.d,
                  penalty.d);
    int64_t widest = 1;
    for (int64_t u = 0; u < count(); ++u) widest = std::max(widest, size(u));
    const auto cells = static_cast<std::size_t>(widest * width);
    h_.resize(cells), u_.resize(cells), o_.resize(cells), v_.resize(cells), place_.resize(cells);
    work_.reserve(widest * width);
    widest_ = widest;
  }

  static constexpr GroupBlock::Mark fixed = GroupBlock::fixed, loose = GroupBlock::loose,
                                    tied = GroupBlock::tied;

  double alpha = 1.0;

  // Penalised groups first, then one for each unpenalised feature.
  int64_t count() const { return static_cast<int64_t>(first_.size()) - 1; }
  int64_t first_free() const { return penalised_; }
  bool is_free(int64_t u) const { return u >= penalised_; }
  int64_t size(int64_t u) const { return first_[u + 1] - first_[u]; }
  const int32_t* features(int64_t u) const { return members_.data() + first_[u]; }
  std::size_t features_total() const { return members_.size(); }
  int64_t widest() const { return widest_; }
  bool selects() const { return absolute_ > 0.0 || norm_ > 0.0; }
  bool is_norm() const { return square_ == 0.0; }
  // Whether it is a sum over single weights.
  bool separable() const { return norm_ == 0.0; }
  int outputs() const { return outputs_; }
  double weight(int32_t j) const { return omega_[j]; }
  // The shares of the absolute values and of half the squares.
  double absolute() const { return absolute_; }
  double square() const { return square_; }

  // alpha * penalty of the group's coefficients.
  double value(int64_t u, const double* w) {
    if (is_free(u)) return 0.0;
    double total = 0.0;
    for_each_block(u, [&](const GroupBlock& b) {
      double sum = 0.0, squares = 0.0;
      for (std::size_t r = 0; r < b.m; ++r) {
        const double z = b.o[r] * std::abs(w[b.place[r]]);
        sum += z, squares += z * z;
      }
      total += absolute_ * sum + 0.5 * square_ * squares;
      with_own_norm([&](auto norm) {
        total += norm_ * norm_of<decltype(norm)>([&](auto visit) {
          for (std::size_t r = 0; r < b.m; ++r) visit(b.o[r] * std::abs(w[b.place[r]]));
        });
      });
    });
    return alpha * total;
  }

  // The v that minimises sum h v^2 / 2 - u v + alpha penalty(v).
  void minimise(int64_t group, const double* h, const double* u, double* v) {
    if (is_free(group)) {
      for (int64_t e = 0; e < size(group) * width_; ++e) v[e] = h[e] > 0.0 ? u[e] / h[e] : 0.0;
      return;
    }
    for_each_block(group, [&](const GroupBlock& b) {
      for (std::size_t r = 0; r < b.m; ++r) {
        h_[r] = h[b.place[r]];
        const double t = alpha * absolute_ * o_[r], x = u[b.place[r]];
        u_[r] = x > t ? x - t : x < -t ? x + t : 0.0;
      }
      if (norm_ == 0.0) {
        for (std::size_t r = 0; r < b.m; ++r) {
          v_[r] = u_[r] / (h_[r] + alpha * square_ * o_[r] * o_[r]);
        }
      }
      with_own_norm([&](auto norm) {
        norm.minimise(h_.data(), u_.data(), b.o, b.m, alpha * norm_, v_.data(), work_);
      });
      for (std::size_t r = 0; r < b.m; ++r) v[b.place[r]] = v_[r];
    });
  }

  // The dual norm of the group's gradient over alpha: at most 1 where zero is optimal. For the
  // elastic net the same of its l1 part; without any selection, infinite unless g is zero.
  double dual_norm(int64_t u, const double* g) {
    if (is_free(u)) return 0.0;
    // The common cases, called for every feature: without the detour of the blocks.
    if (norm_ == 0.0 && absolute_ > 0.0) {
      double top = 0.0;
      for (int k = 0; k < outputs_; ++k) top = std::max(top, std::abs(g[k]));
      return top / (absolute_ * omega_[*features(u)] * alpha);
    }
    if (joint_ && absolute_ == 0.0 && size(u) == 1)
      return shape_.plain_dual_norm(g, outputs_) / (norm_ * omega_[*features(u)] * alpha);
    double largest = 0.0;
    for_each_block(u, [&](const GroupBlock& b) {
      const auto m = static_cast<int64_t>(b.m);
      for (std::size_t r = 0; r < b.m; ++r) u_[r] = std::abs(g[b.place[r]]) / b.o[r];
      double norm = 0.0;
      if (norm_ == 0.0)
        norm = kNever * *std::max_element(u_.begin(), u_.begin() + m);
      else if (absolute_ == 0.0)
        norm = shape_.plain_dual_norm(u_.data(), m) / norm_;
      else if (shape_.plain_dual_norm(u_.data(), m) > largest * alpha)
        norm = mixed_dual_norm(group_norm_, u_.data(), m, absolute_, norm_);
      largest = std::max(largest, norm / alpha);
    });
    return largest;
  }

  // alpha * conjugate at g / alpha of the penalties with a square.
  double conjugate(int64_t u, const double* g) {
    if (is_free(u)) return 0.0;
    double total = 0.0;
    for_each_block(u, [&](const GroupBlock& b) {
      for (std::size_t r = 0; r < b.m; ++r) {
        const double z = std::max(std::abs(g[b.place[r]]) / (alpha * o_[r]) - absolute_, 0.0);
        total += z * z;
      }
    });
    return alpha * total / (2.0 * square_);
  }

  // -------------------------------------------------------------- on the active manifold

  // The marks, and a gradient of alpha * penalty along the manifold; g is that of the loss. A
  // coordinate at the maximum that the loss pulls inwards is let loose.
  void tangent(int64_t group, const double* w, const double* g, unsigned char* mark, double* q) {
    std::fill(q, q + size(group) * width_, 0.0);
    std::fill(mark, mark + size(group) * width_, static_cast<unsigned char>(fixed));
    if (is_free(group)) {
      for (int64_t f = 0; f < size(group); ++f) {
        std::fill_n(mark + f * width_, outputs_, static_cast<unsigned char>(loose));
      }
      return;
    }
    for_each_block(group, [&](const GroupBlock& b) {
      const auto zero = [&](int32_t e) { return w[e] == 0.0; };
      if (selects() && std::all_of(b.place, b.place + b.m, zero)) return;
      for (std::size_t r = 0; r < b.m; ++r) {
        const double x = w[b.place[r]], o = b.o[r];
        if (x == 0.0 && absolute_ > 0.0) continue;
        mark[b.place[r]] = loose;
        q[b.place[r]] = alpha * (absolute_ * std::copysign(o, x) + square_ * o * o * x);
      }
      with_own_norm([&](auto norm) { norm.tangent(b, w, g, alpha * norm_, mark, q); });
    });
  }

  // Whether group norms bend the penalty across their blocks, and whether coordinates are tied.
  bool bends() const { return shape_.smooth(); }
  bool ties() const { return norm_ > 0.0 && !shape_.smooth(); }
  // Whether it has any curvature on the manifold.
  bool curved() const { return square_ > 0.0 || bends(); }
  // Whether the curvature of the penalty is the same for all outputs of a feature and none of them
  // is ever held at zero alone.
  bool alike() const { return absolute_ == 0.0 && !ties() && (joint_ || norm_ == 0.0); }
  // Whether a group is one block, otherwise one per output.
  bool joint() const { return joint_; }

  // The curvature of alpha * penalty on the manifold: diag(straight) - ring ring' in each block.
  void curvature(int64_t group, const double* w, const unsigned char* mark, double* straight,
                 double* ring) {
    std::fill(straight, straight + size(group) * width_, 0.0);
    std::fill(ring, ring + size(group) * width_, 0.0);
    if (is_free(group)) return;
    for_each_block(group, [&](const GroupBlock& b) {
      for (std::size_t r = 0; r < b.m && square_ > 0.0; ++r)
        if (mark[b.place[r]] != fixed) straight[b.place[r]] = b.o[r] * b.o[r] * (alpha * square_);
      with_own_norm([&](auto norm) { norm.curvature(b, w, alpha * norm_, mark, straight, ring); });
    });
  }

  // The tied part of a preconditioner: along the manifold tied coordinates are one variable.
  void precondition_ties(int64_t group, const double* w, const unsigned char* mark, const double* h,
                         const double* r, double* z) {
    if (is_free(group)) return;
    for_each_block(group, [&](const GroupBlock& b) {
      double slope = 0.0, stiffness = 0.0;
      for (std::size_t e = 0; e < b.m; ++e) {
        if (mark[b.place[e]] != tied) continue;
        slope += std::copysign(1.0 / o_[e], w[b.place[e]]) * r[b.place[e]];
        stiffness += h[b.place[e]] / (o_[e] * o_[e]);
      }
      for (std::size_t e = 0; e < b.m && stiffness > 0.0; ++e) {
        if (mark[b.place[e]] != tied) continue;
        z[b.place[e]] = std::copysign(1.0 / o_[e], w[b.place[e]]) * slope / stiffness;
      }
    });
  }

  // Number the variables that the tied coordinates of each block make up, from `next` on, and how
  // far each of them moves; returns the next number.
  int number_ties(int64_t group, const double* w, const unsigned char* mark, int next,
                  int* variable, double* factor) {
    if (is_free(group)) return next;
    for_each_block(group, [&](const GroupBlock& b) {
      bool any = false;
      for (std::size_t r = 0; r < b.m; ++r) {
        if (mark[b.place[r]] != tied) continue;
        variable[b.place[r]] = next;
        factor[b.place[r]] = std::copysign(1.0 / o_[r], w[b.place[r]]);
        any = true;
      }
      next += any;
    });
    return next;
  }

  // Append the fractions of the step, between 0 and 1, at which it meets the kinks that
  // cut_at_kinks would cut it at.
  void kinks(int64_t group, const double* w, const double* step, std::vector<double>& times) {
    if (is_free(group) || !selects()) return;
    const auto add = [&](double way, double speed) {
      if (speed > way && way > 0.0) times.push_back(way / speed);
    };
    for_each_block(group, [&](const GroupBlock& b) {
      for (std::size_t r = 0; r < b.m && absolute_ > 0.0; ++r) {
        const double x = w[b.place[r]], s = step[b.place[r]];
        add(std::abs(x), x * s < 0.0 ? std::abs(s) : 0.0);
      }
      with_own_norm([&](auto norm) { norm.kinks(b, w, step, add); });
    });
  }

  // Cut a step at the kinks it would cross: a coefficient or group that would change its sign (or
  // turn around) goes to zero, one that would outgrow its tied maximum joins it.
  void cut_at_kinks(int64_t group, const double* w, double* step) {
    if (is_free(group) || !selects()) return;
    for_each_block(group, [&](const GroupBlock& b) {
      bool gone = false;
      with_own_norm([&](auto norm) { gone = norm.cut(b, w, step); });
      for (std::size_t r = 0; r < b.m; ++r) {
        const double x = w[b.place[r]];
        double& s = step[b.place[r]];
        if (gone || (absolute_ > 0.0 && x != 0.0 && x * (x + s) <= 0.0)) s = -x;
      }
    });
  }

 private:
  // Setting. What any gradient is worth where nothing selects.
  static constexpr double kNever = 1e300;

  void sort_features(const int32_t* groups, int64_t n_groups, int64_t d) {
    std::vector<int64_t> count(static_cast<std::size_t>(n_groups) + 1, 0);
    int64_t free_features = 0;
    for (int64_t j = 0; j < d; ++j) {
      if (omega_[j] > 0.0)
        ++count[(groups ? groups[j] : j) + 1];
      else
        ++free_features;
    }
    first_.assign(1, 0);
    std::vector<int64_t> next(static_cast<std::size_t>(n_groups), 0);
    for (int64_t g = 0; g < n_groups; ++g) {
      next[g] = first_.back();
      if (count[g + 1] > 0) first_.push_back(first_.back() + count[g + 1]);
    }
    penalised_ = static_cast<int64_t>(first_.size()) - 1;
    members_.resize(static_cast<std::size_t>(d));
    int64_t last = first_.back();
    for (int64_t f = 0; f < free_features; ++f) first_.push_back(first_.back() + 1);
    for (int64_t j = 0; j < d; ++j) {
      const int64_t at = omega_[j] > 0.0 ? next[groups ? groups[j] : j]++ : last++;
      members_[at] = static_cast<int32_t>(j);
    }
  }

  // visit(block) for each block of the group.
  template <typename Visit>
  void for_each_block(int64_t group, Visit visit) {
    const int64_t F = size(group);
    const int32_t* members = features(group);
    const bool whole = joint_ || norm_ == 0.0;
    const int blocks = whole ? 1 : outputs_, wide = whole ? outputs_ : 1;
    for (int b = 0; b < blocks; ++b) {
      std::size_t m = 0;
      for (int64_t f = 0; f < F; ++f) {
        const double o = omega_[members[f]];
        for (int k = b; k < b + wide; ++k, ++m) {
          place_[m] = static_cast<int32_t>(f * width_ + k);
          o_[m] = o;
        }
      }
      visit(GroupBlock{place_.data(), o_.data(), m});
    }
  }

  // use(the group norm), if there is one.
  template <typename Use>
  void with_own_norm(Use use) const {
    if (norm_ > 0.0) with_group_norm(group_norm_, use);
  }

  const double* omega_;
  int outputs_, width_;
  bool joint_;
  double absolute_, norm_, square_;
  GroupNorm group_norm_;
  BlockShape shape_;
  int64_t penalised_ = 0, widest_ = 1;
  std::vector<int64_t> first_;
  std::vector<int32_t> members_, place_;
  std::vector<double> h_, u_, o_, v_;
  ProxScratch work_;
};

}  // namespace sparsvm
