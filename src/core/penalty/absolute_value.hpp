// The norm of a single coordinate.
#pragma once

#include <cmath>
#include <cstdint>

#include "penalty/cone_state.hpp"

namespace sparsvm {

struct AbsoluteValue {
  static constexpr bool kSmooth = false, kDualOfSquares = false;

  static double join(double total, double z) { return total + z; }
  static double finish(double total) { return total; }
  static double dual_term(double g) { return std::abs(g); }
  static double dual(double sum) { return sum; }

  // radius |W| + quad/2 W²:  W = x1 - x2,  z1, z2 = radius +- (G + quad W).
  struct Cone {
    static constexpr bool kPairs = true, kCone = false, kSharedScaling = false;

    static void enter(ConeState& s, ConeBlock& b, const double* g, double mu) {
      const int64_t c = b.begin;
      s.z1[c] = b.shape.radius + g[0];
      s.z2[c] = b.shape.radius - g[0];
      // With curvature the slacks depend on W, so it enters at exactly zero.
      s.x1[c] = b.shape.quad > 0.0 ? mu / std::sqrt(s.z1[c] * s.z2[c]) : mu / s.z1[c];
      s.x2[c] = b.shape.quad > 0.0 ? s.x1[c] : mu / s.z2[c];
      s.w[c] = s.x1[c] - s.x2[c];
    }
    static void move_to(ConeState& s, ConeBlock& b, double mu, bool) { s.pairs_around(b, mu); }

    static void scale(ConeState& s, ConeBlock& b) {
      const double d1 = s.pair_scaling(b.begin);
      s.delta[b.begin] = d1 / (1.0 + b.shape.quad * d1);
    }
    static void rhs(ConeState& s, ConeBlock& b, double) {
      const int64_t c = b.begin;
      s.h[c] = (s.c1[c] / s.z1[c] - s.c2[c] / s.z2[c]) / (1.0 + b.shape.quad * s.pair_scaling(c));
    }
    static void recover(ConeState& s, ConeBlock& b, const double* dg, double) {
      const int64_t c = b.begin;
      s.pair_directions(c, dg[c] - s.shift[c] + b.shape.quad * s.dw[c]);
    }

    // The pairs carry W where they are alone, so that it never drifts from them.
    static double weight(const ConeState& s, int64_t c, double) { return s.x1[c] - s.x2[c]; }
    // g less the dual vector as the slacks have it.
    static double without_dual(const ConeState& s, const ConeBlock& b, int64_t c, double g) {
      return g - (0.5 * (s.z1[c] - s.z2[c]) - b.shape.quad * s.w[c]);
    }
    static void set_zeros(const ConeState& s, const ConeBlock& b, double scale, double* out) {
      s.zero_pairs(b, b.shape.radius, scale, out);
    }
  };
};

}  // namespace sparsvm
