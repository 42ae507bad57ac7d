// The smooth piece on which a penalty acts near a point, for Newton steps.
//
// Coordinates are Z = ω∘W, in which every penalty is unweighted. A proximal step
//
//     Z⁺ = prox_t(Z - t g)
//
// decides which coordinates are active and what the penalty is around Z⁺: on its manifold it is
// smooth with gradient v and Hessian M = diag(δ) - Σ_b δ_b ẑ_b ẑ_bᵀ. The generalised Jacobian of the
// prox is (I + t M)⁻¹ on the tangent space of that manifold and zero across it, so that the Newton
// equation of the prox residual, (I - P (I - t H)) D = Z⁺ - Z, becomes
//
//     D = Z⁺ - Z                                across the manifold ("off"),
//     (M + H) D = -(g + v) + M (Z⁺ - Z) - H off  along it.
//
//   l1, elasticnet, l2   single coordinates; v = ρ sign + (1-ρ) Z⁺, δ = 1-ρ
//   l1/l2                whole blocks; v = ẑ, δ = 1/‖Z⁺‖
//   l1/linf              in a block, the coordinates of largest size move together (a tie), v = s/|C|
//   sparse_group         the non-zero coordinates of a block; v = ρ sign + (1-ρ) ẑ, δ = (1-ρ)/‖Z⁺‖
//
// What a norm adds is its `add_piece` (norm_*.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "penalty/penalty.hpp"
#include "prox/prox.hpp"

namespace sparsvm {

// A list of blocks of coordinates, coordinates of block b being member[first[b] .. first[b+1]).
struct BlockList {
  std::vector<int64_t> first{0}, member;
  int64_t size() const { return static_cast<int64_t>(first.size()) - 1; }
};

class PenaltyManifold {
 public:
  explicit PenaltyManifold(const PenaltyTerm& term)
      : l1_(term.absolute), group_(term.norm), quad_(term.square), norm_(term.group_norm) {}

  bool grouped() const { return group_ > 0.0; }
  // Whether the penalty has kinks at zero, which select features.
  bool selects() const { return grouped() || l1_ > 0.0; }

  double value(const BlockList& blocks, const double* Z) const {
    double total = 0.0;
    for (const int64_t e : blocks.member) {
      total += l1_ * std::abs(Z[e]) + 0.5 * quad_ * Z[e] * Z[e];
    }
    if (!grouped()) return total;
    for (int64_t b = 0; b < blocks.size(); ++b) total += group_ * block_norm(blocks, b, Z);
    return total;
  }

  // value(to) - value(from), exact to the rounding of to - from: the difference of the values
  // themselves knows nothing about the last steps, which are shorter than their rounding.
  double change(const BlockList& blocks, const double* from, const double* to) const {
    double total = 0.0;
    for (const int64_t e : blocks.member) {
      total += l1_ * (std::abs(to[e]) - std::abs(from[e])) + 0.5 * quad_ * squares(from[e], to[e]);
    }
    if (!grouped()) return total;
    with_group_norm(norm_, [&](auto norm) {
      for (int64_t b = 0; b < blocks.size(); ++b) {
        const double before = block_norm(blocks, b, from), after = block_norm(blocks, b, to);
        total += group_ * norm.change(before, after, [&](auto visit) {
          for (int64_t m = blocks.first[b]; m < blocks.first[b + 1]; ++m)
            visit(from[blocks.member[m]], to[blocks.member[m]]);
        });
      }
    });
    return total;
  }

  // The proximal step from Z along -g in block b with step t, and the manifold around it.
  void step(const BlockList& blocks, int64_t b, const double* Z, const double* g, double t,
            ManifoldPoint& out) {
    const int64_t from = blocks.first[b], count = blocks.first[b + 1] - from;
    const int64_t* member = blocks.member.data() + from;
    moved_.resize(static_cast<std::size_t>(count));
    work_.reserve(count);
    for (int64_t m = 0; m < count; ++m) {
      const int64_t e = member[m];
      moved_[m] = soft(Z[e] - t * g[e], t * l1_) / (1.0 + t * quad_);
    }
    const auto shrink = [&](auto norm) {
      norm.prox(moved_.data(), count, t * group_, moved_.data(), work_);
    };
    if (grouped()) with_group_norm(norm_, shrink);
    for (int64_t m = 0; m < count; ++m) {
      const int64_t e = member[m];
      const bool active = moved_[m] != 0.0 || l1_ == 0.0;
      out.plus[e] = moved_[m];
      out.state[e] = active ? ManifoldPoint::single : ManifoldPoint::inactive;
      out.off[e] = active ? 0.0 : -Z[e];
      out.pull[e] = std::copysign(l1_, moved_[m]) + quad_ * moved_[m];
      out.delta[e] = quad_;
    }
    if (!grouped()) return;
    with_group_norm(norm_, [&](auto norm) {
      const double length = norm.norm(moved_.data(), count);
      if (length > 0.0)
        return norm.add_piece(moved_.data(), member, count, length, group_, l1_ > 0.0, Z, out);
      for (int64_t m = 0; m < count; ++m) {
        out.state[member[m]] = ManifoldPoint::inactive;
        out.off[member[m]] = -Z[member[m]];
      }
    });
  }

  // Where Z left the orthant (or half-space) of the manifold's point, the optimum is at zero.
  void project(const BlockList& blocks, const ManifoldPoint& point, double* Z) const {
    if (l1_ > 0.0) {
      for (const int64_t e : blocks.member) {
        if (Z[e] * point.plus[e] <= 0.0) Z[e] = 0.0;
      }
    }
    if (!grouped()) return;
    for (int64_t b = 0; b < blocks.size(); ++b) {
      double along = 0.0;
      for (int64_t m = blocks.first[b]; m < blocks.first[b + 1]; ++m) {
        along += Z[blocks.member[m]] * point.plus[blocks.member[m]];
      }
      if (along > 0.0) continue;
      for (int64_t m = blocks.first[b]; m < blocks.first[b + 1]; ++m) Z[blocks.member[m]] = 0.0;
    }
  }

  // Leave a block where it is.
  static void freeze(const BlockList& blocks, int64_t b, const double* Z, ManifoldPoint& out) {
    for (int64_t m = blocks.first[b]; m < blocks.first[b + 1]; ++m) {
      const int64_t e = blocks.member[m];
      out.plus[e] = Z[e];
      out.off[e] = 0.0;
      out.state[e] = ManifoldPoint::inactive;
    }
  }

 private:
  // b² - a².
  static double squares(double a, double b) { return (b - a) * (b + a); }

  double block_norm(const BlockList& blocks, int64_t b, const double* Z) const {
    return with_group_norm(norm_, [&](auto norm) {
      return norm_of<decltype(norm)>([&](auto visit) {
        for (int64_t m = blocks.first[b]; m < blocks.first[b + 1]; ++m)
          visit(std::abs(Z[blocks.member[m]]));
      });
    });
  }

  double l1_, group_, quad_;
  GroupNorm norm_;
  std::vector<double> moved_;
  ProxScratch work_;
};

}  // namespace sparsvm
