// The penalty as block coordinate descent and Newton's method on its active manifold see it.
//
// A group is what coordinate descent moves at once: a group of features in all outputs, or a single
// feature where the penalty has no groups. Its coefficients are passed as F x width, feature by
// feature. Within a group the penalty is one block ("joint") or one block per output.
//
// On the manifold, coordinates that move are marked `loose`; those at the largest size of an l1/linf
// block move together ("tied"), the rest of the group stays where it is ("fixed").
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
        joint_(penalty.joint()), linf_(penalty.maximum()), absolute_(penalty.absolute),
        norm_(penalty.norm), square_(penalty.square) {
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

  enum Mark : unsigned char { fixed, loose, tied };

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
    for_each_block(u, [&](const std::vector<int32_t>& place, std::size_t m) {
      double sum = 0.0, squares = 0.0, top = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double z = o_[r] * std::abs(w[place[r]]);
        sum += z, squares += z * z, top = std::max(top, z);
      }
      total += absolute_ * sum + 0.5 * square_ * squares;
      if (norm_ > 0.0) total += norm_ * (linf_ ? top : std::sqrt(squares));
    });
    return alpha * total;
  }

  // The v that minimises sum h v^2 / 2 - u v + alpha penalty(v).
  void minimise(int64_t group, const double* h, const double* u, double* v) {
    if (is_free(group)) {
      for (int64_t e = 0; e < size(group) * width_; ++e) v[e] = h[e] > 0.0 ? u[e] / h[e] : 0.0;
      return;
    }
    for_each_block(group, [&](const std::vector<int32_t>& place, std::size_t m) {
      for (std::size_t r = 0; r < m; ++r) {
        h_[r] = h[place[r]];
        const double t = alpha * absolute_ * o_[r], x = u[place[r]];
        u_[r] = x > t ? x - t : x < -t ? x + t : 0.0;
      }
      if (norm_ == 0.0) {
        for (std::size_t r = 0; r < m; ++r) {
          v_[r] = u_[r] / (h_[r] + alpha * square_ * o_[r] * o_[r]);
        }
      } else if (linf_) {
        cut(m);
      } else {
        shrink(m);
      }
      for (std::size_t r = 0; r < m; ++r) v[place[r]] = v_[r];
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
    if (joint_ && bends() && absolute_ == 0.0 && size(u) == 1) {
      double squares = 0.0;
      for (int k = 0; k < outputs_; ++k) squares += g[k] * g[k];
      return std::sqrt(squares) / (omega_[*features(u)] * alpha);
    }
    double largest = 0.0;
    for_each_block(u, [&](const std::vector<int32_t>& place, std::size_t m) {
      double sum = 0.0, squares = 0.0, top = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double z = std::abs(g[place[r]]) / o_[r];
        u_[r] = z;
        sum += z, squares += z * z, top = std::max(top, z);
      }
      double norm = top;
      if (norm_ > 0.0) norm = linf_ ? sum : std::sqrt(squares);
      if (absolute_ > 0.0 && norm_ > 0.0)
        norm = norm > largest * alpha ? mixed_norm(m) : 0.0;
      else if (norm_ == 0.0)
        norm = absolute_ > 0.0 ? norm / absolute_ : norm * kNever;
      largest = std::max(largest, norm / alpha);
    });
    return largest;
  }

  // alpha * conjugate at g / alpha of the penalties with a square.
  double conjugate(int64_t u, const double* g) {
    if (is_free(u)) return 0.0;
    double total = 0.0;
    for_each_block(u, [&](const std::vector<int32_t>& place, std::size_t m) {
      for (std::size_t r = 0; r < m; ++r) {
        const double z = std::max(std::abs(g[place[r]]) / (alpha * o_[r]) - absolute_, 0.0);
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
    for_each_block(group, [&](const std::vector<int32_t>& place, std::size_t m) {
      double squares = 0.0, top = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double z = o_[r] * std::abs(w[place[r]]);
        squares += z * z, top = std::max(top, z);
      }
      if (top == 0.0 && selects()) return;
      const double length = std::sqrt(squares);
      int ties = 0;
      for (std::size_t r = 0; r < m; ++r) {
        const double x = w[place[r]], o = o_[r];
        if (linf_) {
          const bool tie = o * std::abs(x) >= top * (1.0 - kTie) && x * g[place[r]] <= 0.0;
          mark[place[r]] = tie ? tied : loose;
          ties += tie;
          continue;
        }
        if (x == 0.0 && absolute_ > 0.0) continue;
        mark[place[r]] = loose;
        q[place[r]] = alpha * (absolute_ * std::copysign(o, x) + square_ * o * o * x);
        if (norm_ > 0.0) q[place[r]] += alpha * norm_ * o * o * x / length;
      }
      // Where all are pulled inwards the maximum itself falls.
      if (linf_ && ties == 0) {
        for (std::size_t r = 0; r < m; ++r) {
          if (o_[r] * std::abs(w[place[r]]) < top * (1.0 - kTie)) continue;
          mark[place[r]] = tied;
          ++ties;
        }
      }
      for (std::size_t r = 0; r < m && linf_; ++r) {
        if (mark[place[r]] == tied) q[place[r]] = alpha * std::copysign(o_[r], w[place[r]]) / ties;
      }
    });
  }

  // Whether group norms bend the penalty across their blocks, and whether coordinates are tied.
  bool bends() const { return norm_ > 0.0 && !linf_; }
  bool ties() const { return linf_; }
  // Whether it has any curvature on the manifold.
  bool curved() const { return square_ > 0.0 || bends(); }
  // Whether the curvature of the penalty is the same for all outputs of a feature and none of them
  // is ever held at zero alone.
  bool alike() const { return absolute_ == 0.0 && !linf_ && (joint_ || norm_ == 0.0); }
  // Whether a group is one block, otherwise one per output.
  bool joint() const { return joint_; }

  // The curvature of alpha * penalty on the manifold: diag(straight) - ring ring' in each block.
  void curvature(int64_t group, const double* w, const unsigned char* mark, double* straight,
                 double* ring) {
    std::fill(straight, straight + size(group) * width_, 0.0);
    std::fill(ring, ring + size(group) * width_, 0.0);
    if (is_free(group) || linf_ || (square_ == 0.0 && norm_ == 0.0)) return;
    for_each_block(group, [&](const std::vector<int32_t>& place, std::size_t m) {
      double squares = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double z = o_[r] * w[place[r]];
        squares += z * z;
      }
      const double length = std::sqrt(squares);
      const double bend = norm_ > 0.0 && length > 0.0 ? alpha * norm_ / length : 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        if (mark[place[r]] == fixed) continue;
        const double oo = o_[r] * o_[r];
        straight[place[r]] = oo * (alpha * square_ + bend);
        if (bend > 0.0) ring[place[r]] = oo * w[place[r]] * std::sqrt(bend) / length;
      }
    });
  }

  // The tied part of a preconditioner: along the manifold tied coordinates are one variable.
  void precondition_ties(int64_t group, const double* w, const unsigned char* mark, const double* h,
                         const double* r, double* z) {
    if (is_free(group)) return;
    for_each_block(group, [&](const std::vector<int32_t>& place, std::size_t m) {
      double slope = 0.0, stiffness = 0.0;
      for (std::size_t e = 0; e < m; ++e) {
        if (mark[place[e]] != tied) continue;
        slope += std::copysign(1.0 / o_[e], w[place[e]]) * r[place[e]];
        stiffness += h[place[e]] / (o_[e] * o_[e]);
      }
      for (std::size_t e = 0; e < m && stiffness > 0.0; ++e) {
        if (mark[place[e]] != tied) continue;
        z[place[e]] = std::copysign(1.0 / o_[e], w[place[e]]) * slope / stiffness;
      }
    });
  }

  // Number the variables that the tied coordinates of each block make up, from `next` on, and how
  // far each of them moves; returns the next number.
  int number_ties(int64_t group, const double* w, const unsigned char* mark, int next,
                  int* variable, double* factor) {
    if (is_free(group)) return next;
    for_each_block(group, [&](const std::vector<int32_t>& place, std::size_t m) {
      bool any = false;
      for (std::size_t r = 0; r < m; ++r) {
        if (mark[place[r]] != tied) continue;
        variable[place[r]] = next;
        factor[place[r]] = std::copysign(1.0 / o_[r], w[place[r]]);
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
    for_each_block(group, [&](const std::vector<int32_t>& place, std::size_t m) {
      double top = 0.0, rise = 0.0, along = 0.0, squares = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double x = w[place[r]], s = step[place[r]], o = o_[r];
        along += o * o * x * s, squares += o * o * x * x;
        if (o * std::abs(x) > top) top = o * std::abs(x), rise = o * std::copysign(s, x * s);
        if (absolute_ > 0.0) add(std::abs(x), x * s < 0.0 ? std::abs(s) : 0.0);
      }
      if (norm_ == 0.0) return;
      if (!linf_) return add(squares, -along);
      add(top, -rise);
      for (std::size_t r = 0; r < m; ++r) {
        const double x = o_[r] * w[place[r]], s = o_[r] * step[place[r]];
        add(top - x, s - rise);
        add(top + x, -s - rise);
      }
    });
  }

  // Cut a step at the kinks it would cross: a coefficient or group that would change its sign (or
  // turn around) goes to zero, one that would outgrow its tied maximum joins it.
  void cut_at_kinks(int64_t group, const double* w, double* step) {
    if (is_free(group) || !selects()) return;
    for_each_block(group, [&](const std::vector<int32_t>& place, std::size_t m) {
      double top = 0.0, moved = 0.0, along = 0.0, squares = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double x = w[place[r]], s = step[place[r]], o = o_[r];
        along += o * o * x * (x + s), squares += o * o * x * x;
        if (o * std::abs(x) > top)
          top = o * std::abs(x), moved = o * std::copysign(1.0, x) * (x + s);
      }
      const bool gone = norm_ > 0.0 && (linf_ ? moved <= 0.0 : along <= 0.0) && squares > 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double x = w[place[r]];
        double& s = step[place[r]];
        if (gone || (absolute_ > 0.0 && x != 0.0 && x * (x + s) <= 0.0)) {
          s = -x;
        } else if (linf_ && o_[r] * std::abs(x + s) > moved) {
          s = std::copysign(moved / o_[r], x + s) - x;
        }
      }
    });
  }

 private:
  // Settings. Relative differences of sizes below the first are rounding; relative steps at which Newton's
  // method has a root of a prox and a dual norm, which takes a handful of them; what any gradient is
  // worth where nothing selects.
  static constexpr double kTie = 1e-12, kRootEnd = 1e-11, kNormEnd = 4e-16, kNever = 1e300;
  static constexpr int kMostPasses = 100;

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

  // visit(places, m): the coordinates of each block of the group, with their omega in o_.
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
      visit(place_, m);
    }
  }

  // The group norm: v = u t / (h t + a o^2) with t = |o v|, the root of a scalar equation on which
  // Newton's method climbs from below (the inverse of the norm is concave in t).
  void shrink(std::size_t m) {
    const double a = alpha * norm_;
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
    for (int pass = 0; pass < kMostPasses; ++pass) {
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
      if (move <= kRootEnd * t) break;
    }
    for (std::size_t r = 0; r < m; ++r) v_[r] = u_[r] * t / (h_[r] * t + a * o_[r] * o_[r]);
  }

  // The largest size: v = u / h cut at level / o, with sum h (o |u| / h - level)_+ / o^2 = a.
  void cut(std::size_t m) {
    const double a = alpha * norm_;
    double sum = 0.0;
    double *z = work_.values(), *cost = work_.costs();
    for (std::size_t r = 0; r < m; ++r) {
      sum += std::abs(u_[r]) / o_[r];
      z[r] = o_[r] * std::abs(u_[r]) / h_[r];
      cost[r] = h_[r] / (o_[r] * o_[r]);
    }
    if (!(sum > a)) {
      std::fill_n(v_.begin(), m, 0.0);
      return;
    }
    const double level = threshold(z, cost, static_cast<int64_t>(m), -a, 0.0, 0.0, work_);
    for (std::size_t r = 0; r < m; ++r) {
      const double size = std::abs(u_[r]) / h_[r];
      v_[r] = std::copysign(o_[r] * size > level ? level / o_[r] : size, u_[r]);
    }
  }

  // sparse_group: the c with |(u_ - absolute c)_+| = group c, from below.
  double mixed_norm(std::size_t m) const {
    double c = 0.0;
    for (std::size_t r = 0; r < m; ++r) c = std::max(c, u_[r]);
    for (int pass = 0; pass < kMostPasses; ++pass) {
      double squares = 0.0, sum = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double z = std::max(u_[r] - absolute_ * c, 0.0);
        squares += z * z, sum += z;
      }
      const double length = std::sqrt(squares);
      const double rate = norm_ + (length > 0.0 ? absolute_ * sum / length : 0.0);
      const double move = (length - norm_ * c) / rate;
      if (!(move > 0.0)) break;
      c += move;
      if (move <= kNormEnd * c) break;
    }
    return c;
  }

  const double* omega_;
  int outputs_, width_;
  bool joint_, linf_;
  double absolute_, norm_, square_;
  int64_t penalised_ = 0, widest_ = 1;
  std::vector<int64_t> first_;
  std::vector<int32_t> members_, place_;
  std::vector<double> h_, u_, o_, v_;
  ProxScratch work_;
};

}  // namespace sparsvm
