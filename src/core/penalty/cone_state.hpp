// The variables of the interior point's blocks, and the two cones that norms are written in.
//
// Positive pairs (x, z) with x z -> mu, and the second-order cone with (t, W) and (radius, v) in it, under
// Nesterov-Todd scaling. Which of them a block has, and how they depend on W and G, is its norm's:
// norm_*.hpp and norms.hpp have the functions that ConeBlocks calls for each block.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "penalty/block.hpp"

namespace sparsvm {

struct ConeBlock {
  BlockShape shape;
  int64_t begin = 0, end = 0;
  bool pairs = false, cone = false;
  double t = 0.0, dt = 0.0, ht = 0.0, kappa = 0.0, eta2 = 0.0, w0 = 0.0;
  // Scaled directions, scaled point and terms of a cone: their radial parts.
  double dx0 = 0.0, ds0 = 0.0, l0 = 0.0, term0 = 0.0;
};

struct ConeState {
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  // Determinants below this part of the square they are a difference of are rounding.
  static constexpr double kLeastDeterminant = 1e-32;

  // Per coordinate: weight, the Newton data, and the dual residual.
  std::vector<double> w, delta, vec, h, dw, shift;
  // v: vector part of the cone dual; x, z: the positive pairs; c1, c2: their complementarity
  // targets; a1, a2: right-hand sides of the pair and cone parts; w1: vector part of the NT scaling
  // point.
  std::vector<double> v, dv, x1, x2, z1, z2, dx1, dx2, dz1, dz2, c1, c2, a1, a2, w1;
  // Terms of the pairs and the vector parts of those of the cones; scaled point and directions.
  std::vector<double> term1, term2, term, l, sdx, sds;

  std::array<std::vector<double>*, 27> arrays() {
    return {&w,   &delta, &vec, &h,  &dw, &shift, &v,  &dv, &x1,  &x2,  &z1,    &z2,    &dx1, &dx2,
            &dz1, &dz2,   &c1,  &c2, &a1, &a2,    &w1, &l,  &sdx, &sds, &term1, &term2, &term};
  }

  // -------------------------------------------------------------- pairs

  double pair_scaling(int64_t c) const { return x1[c] / z1[c] + x2[c] / z2[c]; }
  void pair_directions(int64_t c, double dz) {
    dz1[c] = dz;
    dz2[c] = -dz;
    dx1[c] = (c1[c] - x1[c] * dz) / z1[c];
    dx2[c] = (c2[c] + x2[c] * dz) / z2[c];
  }
  // The primal slacks of W = x1 - x2, at least the mu / dual slack of their own.
  void pairs_around(const ConeBlock& b, double mu) {
    for (int64_t c = b.begin; c < b.end; ++c) {
      x1[c] = std::max(mu / z1[c], mu / z2[c] + w[c]);
      x2[c] = x1[c] - w[c];
    }
  }
  // Zero where complementarity says that W = x1 - x2 is.
  void zero_pairs(const ConeBlock& b, double radius, double scale, double* out) const {
    for (int64_t c = b.begin; c < b.end; ++c)
      if (std::max(x1[c], x2[c]) * scale < std::min(z1[c], z2[c]) / radius) out[c] = 0.0;
  }

  // -------------------------------------------------------------- second-order cones

  double dot(const ConeBlock& b, const std::vector<double>& one,
             const std::vector<double>& other) const {
    double sum = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) sum += one[c] * other[c];
    return sum;
  }
  // The central point for the dual vector v.
  void enter_cone(ConeBlock& b, double mu) {
    const double norm = std::sqrt(dot(b, v, v)), radius = b.shape.radius;
    const double f = mu / ((radius - norm) * (radius + norm));
    b.t = f * radius;
    for (int64_t c = b.begin; c < b.end; ++c) w[c] = -f * v[c];
  }
  // The radius t of given weights where its own barrier has the slope that the norm costs. (Read off the dual
  // slacks, t would come out as three times itself.)
  void cone_around(ConeBlock& b, double mu, bool known) {
    const double half = 0.5 * mu / b.shape.radius;
    b.t = known ? half + std::sqrt(half * half + dot(b, w, w))
                : mu / (b.shape.radius - std::sqrt(dot(b, v, v)));
  }
  void zero_cone(const ConeBlock& b, double scale, double* out) const {
    if (b.t * scale < 1.0 - std::sqrt(dot(b, v, v)) / b.shape.radius)
      std::fill(out + b.begin, out + b.end, 0.0);
  }
  void scale_cone(ConeBlock& b);
  void rhs_cone(ConeBlock& b, double tau);
  // dt of the cone from dw. Reading it off dv instead, dt = ht - 2 eta2 w0 (w1 . dv), multiplies
  // the rounding of dv by |w1|^2, which grows like 1/mu, and throws (t, W) out of the cone.
  double cone_radius_direction(const ConeBlock& b) const;
  // The directions where point and dual are the same l: T^-1 dx and T ds.
  void scale_directions(ConeBlock& b);
  // Largest a with (t, w) + a (dt, dw) in the cone.
  static double cone_step(double t, double dt, const double* w, const double* dw, int64_t size);
};

}  // namespace sparsvm
