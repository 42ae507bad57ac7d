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

// What a proximal step found; every vector has one entry per coordinate.
struct ManifoldPoint {
  enum : unsigned char { inactive, single, tied };
  struct Curved {  // δ (I - ẑẑᵀ) over the active coordinates of a block
    std::vector<int64_t> member;
    std::vector<double> direction;
    double delta;
  };
  struct Tie {  // coordinates that move together, with their signs
    std::vector<int64_t> member;
    std::vector<double> sign;
  };
  std::vector<double> plus, off, pull, delta;
  std::vector<unsigned char> state;
  std::vector<Curved> curved;
  std::vector<Tie> ties;

  void reset(std::size_t count) {
    for (auto* values : {&plus, &off, &pull, &delta}) values->assign(count, 0.0);
    state.assign(count, inactive);
    curved.clear();
    ties.clear();
  }
};

class PenaltyManifold {
 public:
  explicit PenaltyManifold(const PenaltyTerm& term)
      : l1_(term.absolute), group_(term.norm), quad_(term.square), linf_(term.maximum()) {}

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
    for (int64_t b = 0; b < blocks.size(); ++b) {
      const double before = block_norm(blocks, b, from), after = block_norm(blocks, b, to);
      if (linf_ || before + after == 0.0) {
        total += group_ * (after - before);
        continue;
      }
      double sum = 0.0;
      for (int64_t m = blocks.first[b]; m < blocks.first[b + 1]; ++m) {
        sum += squares(from[blocks.member[m]], to[blocks.member[m]]);
      }
      total += group_ * sum / (before + after);
    }
    return total;
  }

  // Whether the dual norm of block b at the slope g exceeds theta; never where it is quadratic.
  bool exceeds(const BlockList& blocks, int64_t b, const double* g, double theta) const {
    double sum = 0.0;
    const bool linf = linf_;
    for (int64_t m = blocks.first[b]; m < blocks.first[b + 1]; ++m) {
      const double rest = std::abs(g[blocks.member[m]]) - theta * l1_;
      if (rest > 0.0) sum += linf ? rest : rest * rest;
    }
    if (!grouped()) return sum > 0.0;
    return (linf ? sum : std::sqrt(sum)) > theta * group_;
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
    const bool linf = linf_;
    if (linf) {
      prox_group_linf(moved_.data(), count, t * group_, moved_.data(), work_);
    } else if (grouped()) {
      prox_group_l2(moved_.data(), count, t * group_, moved_.data());
    }
    for (int64_t m = 0; m < count; ++m) {
      const int64_t e = member[m];
      out.plus[e] = moved_[m];
      out.off[e] = 0.0;
      out.state[e] = moved_[m] != 0.0 || linf || (quad_ > 0.0 && l1_ == 0.0)
                         ? ManifoldPoint::single
                         : ManifoldPoint::inactive;
      if (out.state[e] == ManifoldPoint::inactive) out.off[e] = -Z[e];
      out.pull[e] = std::copysign(l1_, moved_[m]) + quad_ * moved_[m];
      out.delta[e] = quad_;
    }
    if (!grouped()) return;
    const double length = linf ? top_of(count) : norm2(moved_.data(), count);
    if (!(length > 0.0)) {
      for (int64_t m = 0; m < count; ++m) drop(member[m], Z, out);
    } else if (linf) {
      tie(member, count, Z, length, out);
    } else {
      curve(member, count, length, out);
    }
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
    double sum = 0.0, top = 0.0;
    for (int64_t m = blocks.first[b]; m < blocks.first[b + 1]; ++m) {
      const double size = std::abs(Z[blocks.member[m]]);
      sum += size * size;
      top = std::max(top, size);
    }
    return linf_ ? top : std::sqrt(sum);
  }

  double top_of(int64_t count) const {
    double top = 0.0;
    for (int64_t m = 0; m < count; ++m) top = std::max(top, std::abs(moved_[m]));
    return top;
  }

  static void drop(int64_t e, const double* Z, ManifoldPoint& out) {
    out.state[e] = ManifoldPoint::inactive;
    out.off[e] = -Z[e];
  }

  void curve(const int64_t* member, int64_t count, double length, ManifoldPoint& out) const {
    ManifoldPoint::Curved block;
    block.delta = group_ / length;
    for (int64_t m = 0; m < count; ++m) {
      if (moved_[m] == 0.0 && l1_ > 0.0) continue;
      const int64_t e = member[m];
      out.state[e] = ManifoldPoint::single;
      out.pull[e] += group_ * moved_[m] / length;
      out.delta[e] += block.delta;
      block.member.push_back(e);
      block.direction.push_back(moved_[m] / length);
    }
    out.curved.push_back(std::move(block));
  }

  static void settle(const ManifoldPoint::Tie& tie, const double* Z, ManifoldPoint& out) {
    // Across the tie: the part of Z⁺ - Z orthogonal to its direction.
    double along = 0.0;
    const auto size = static_cast<double>(tie.member.size());
    for (std::size_t m = 0; m < tie.member.size(); ++m) {
      along += tie.sign[m] * (out.plus[tie.member[m]] - Z[tie.member[m]]);
    }
    for (std::size_t m = 0; m < tie.member.size(); ++m) {
      const int64_t e = tie.member[m];
      out.off[e] = out.plus[e] - Z[e] - tie.sign[m] * along / size;
      out.pull[e] = tie.sign[m] / size;
      out.state[e] = ManifoldPoint::tied;
    }
  }

  void tie(const int64_t* member, int64_t count, const double* Z, double top, ManifoldPoint& out) {
    ManifoldPoint::Tie found;
    for (int64_t m = 0; m < count; ++m) {
      out.pull[member[m]] = 0.0;
      if (std::abs(moved_[m]) < top) continue;
      found.member.push_back(member[m]);
      found.sign.push_back(std::copysign(1.0, moved_[m]));
    }
    if (found.member.size() == 1) {
      out.pull[found.member[0]] = found.sign[0];
      return;
    }
    settle(found, Z, out);
    out.ties.push_back(std::move(found));
  }

  double l1_, group_, quad_;
  bool linf_;
  std::vector<double> moved_;
  ProxScratch work_;
};

}  // namespace sparsvm
