// The penalty seen by Newton's method on its active manifold.
//
// Coordinates that move are marked `loose`; those at the largest size of an l1/linf block move
// together ("tied"), the rest of the unit stays where it is ("fixed").
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "penalty/block_newton_units.hpp"

namespace sparsvm {

class UnitPenalty : public PenaltyUnits {
 public:
  using PenaltyUnits::PenaltyUnits;

  enum Mark : unsigned char { fixed, loose, tied };

  /// The marks, and a gradient of alpha * penalty along the manifold; g is that of the loss. A
  /// coordinate at the maximum that the loss pulls inwards is let loose.
  void tangent(std::int64_t unit, const double* w, const double* g, unsigned char* mark,
               double* q) {
    std::fill(q, q + size(unit) * width_, 0.0);
    std::fill(mark, mark + size(unit) * width_, static_cast<unsigned char>(fixed));
    if (is_free(unit)) {
      for (std::int64_t f = 0; f < size(unit); ++f) {
        std::fill_n(mark + f * width_, outputs_, static_cast<unsigned char>(loose));
      }
      return;
    }
    for_each_block(unit, [&](const std::vector<std::int32_t>& place, std::size_t m) {
      double squares = 0.0, top = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double z = o_[r] * std::fabs(w[place[r]]);
        squares += z * z, top = std::max(top, z);
      }
      if (top == 0.0 && selects()) return;
      const double length = std::sqrt(squares);
      int ties = 0;
      for (std::size_t r = 0; r < m; ++r) {
        const double x = w[place[r]], o = o_[r];
        if (linf()) {
          const bool tie = o * std::fabs(x) >= top * (1.0 - kTie) && x * g[place[r]] <= 0.0;
          mark[place[r]] = tie ? tied : loose;
          ties += tie;
          continue;
        }
        if (x == 0.0 && absolute_ > 0.0) continue;
        mark[place[r]] = loose;
        q[place[r]] = alpha * (absolute_ * std::copysign(o, x) + square_ * o * o * x);
        if (group_ > 0.0) q[place[r]] += alpha * group_ * o * o * x / length;
      }
      // Where all are pulled inwards the maximum itself falls.
      if (linf() && ties == 0) {
        for (std::size_t r = 0; r < m; ++r) {
          if (o_[r] * std::fabs(w[place[r]]) < top * (1.0 - kTie)) continue;
          mark[place[r]] = tied;
          ++ties;
        }
      }
      for (std::size_t r = 0; r < m && linf(); ++r) {
        if (mark[place[r]] == tied) q[place[r]] = alpha * std::copysign(o_[r], w[place[r]]) / ties;
      }
    });
  }

  /// Whether group norms bend the penalty across their blocks, and whether coordinates are tied.
  bool bends() const { return group_ > 0.0 && !linf(); }
  bool ties() const { return linf(); }
  /// Whether it has any curvature on the manifold.
  bool curved() const { return square_ > 0.0 || bends(); }
  /// Whether the curvature of the penalty is the same for all outputs of a feature and none of them
  /// is ever held at zero alone.
  bool alike() const { return absolute_ == 0.0 && !linf() && (joint_ || group_ == 0.0); }
  /// Whether a unit is one block, otherwise one per output.
  bool joint() const { return joint_; }

  /// The curvature of alpha * penalty on the manifold: diag(straight) - ring ring' in each block.
  void curvature(std::int64_t unit, const double* w, const unsigned char* mark, double* straight,
                 double* ring) {
    std::fill(straight, straight + size(unit) * width_, 0.0);
    std::fill(ring, ring + size(unit) * width_, 0.0);
    if (is_free(unit) || linf() || (square_ == 0.0 && group_ == 0.0)) return;
    for_each_block(unit, [&](const std::vector<std::int32_t>& place, std::size_t m) {
      double squares = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double z = o_[r] * w[place[r]];
        squares += z * z;
      }
      const double length = std::sqrt(squares);
      const double bend = group_ > 0.0 && length > 0.0 ? alpha * group_ / length : 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        if (mark[place[r]] == fixed) continue;
        const double oo = o_[r] * o_[r];
        straight[place[r]] = oo * (alpha * square_ + bend);
        if (bend > 0.0) ring[place[r]] = oo * w[place[r]] * std::sqrt(bend) / length;
      }
    });
  }

  /// The tied part of a preconditioner: along the manifold tied coordinates are one variable.
  void precondition_ties(std::int64_t unit, const double* w, const unsigned char* mark,
                         const double* h, const double* r, double* z) {
    if (is_free(unit)) return;
    for_each_block(unit, [&](const std::vector<std::int32_t>& place, std::size_t m) {
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

  /// Number the variables that the tied coordinates of each block make up, from `next` on, and how
  /// far each of them moves; returns the next number.
  int number_ties(std::int64_t unit, const double* w, const unsigned char* mark, int next,
                  int* variable, double* factor) {
    if (is_free(unit)) return next;
    for_each_block(unit, [&](const std::vector<std::int32_t>& place, std::size_t m) {
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

  /// Append the fractions of the step, between 0 and 1, at which it meets the kinks that
  /// cut_at_kinks would cut it at.
  void kinks(std::int64_t unit, const double* w, const double* step, std::vector<double>& times) {
    if (is_free(unit) || !selects()) return;
    const auto add = [&](double way, double speed) {
      if (speed > way && way > 0.0) times.push_back(way / speed);
    };
    for_each_block(unit, [&](const std::vector<std::int32_t>& place, std::size_t m) {
      double top = 0.0, rise = 0.0, along = 0.0, squares = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double x = w[place[r]], s = step[place[r]], o = o_[r];
        along += o * o * x * s, squares += o * o * x * x;
        if (o * std::fabs(x) > top) top = o * std::fabs(x), rise = o * std::copysign(s, x * s);
        if (absolute_ > 0.0) add(std::fabs(x), x * s < 0.0 ? std::fabs(s) : 0.0);
      }
      if (group_ == 0.0) return;
      if (!linf()) return add(squares, -along);
      add(top, -rise);
      for (std::size_t r = 0; r < m; ++r) {
        const double x = o_[r] * w[place[r]], s = o_[r] * step[place[r]];
        add(top - x, s - rise);
        add(top + x, -s - rise);
      }
    });
  }

  /// Cut a step at the kinks it would cross: a coefficient or group that would change its sign (or
  /// turn around) goes to zero, one that would outgrow its tied maximum joins it.
  void cut_at_kinks(std::int64_t unit, const double* w, double* step) {
    if (is_free(unit) || !selects()) return;
    for_each_block(unit, [&](const std::vector<std::int32_t>& place, std::size_t m) {
      double top = 0.0, moved = 0.0, along = 0.0, squares = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double x = w[place[r]], s = step[place[r]], o = o_[r];
        along += o * o * x * (x + s), squares += o * o * x * x;
        if (o * std::fabs(x) > top)
          top = o * std::fabs(x), moved = o * std::copysign(1.0, x) * (x + s);
      }
      const bool gone = group_ > 0.0 && (linf() ? moved <= 0.0 : along <= 0.0) && squares > 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double x = w[place[r]];
        double& s = step[place[r]];
        if (gone || (absolute_ > 0.0 && x != 0.0 && x * (x + s) <= 0.0)) {
          s = -x;
        } else if (linf() && o_[r] * std::fabs(x + s) > moved) {
          s = std::copysign(moved / o_[r], x + s) - x;
        }
      }
    });
  }

 private:
  static constexpr double kTie = 1e-12;
};

}  // namespace sparsvm
