// The Euclidean norm of a block: all that solvers ask of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "penalty/block.hpp"
#include "prox/prox.hpp"

namespace sparsvm {

struct EuclideanNorm {
  static constexpr const char* kName = "l1/l2";
  static constexpr bool kSmooth = true, kDualOfSquares = true;
  // Settings. Relative steps at which Newton's method has a root of a prox and a dual norm, which takes a
  // handful of them.
  static constexpr double kRootEnd = 1e-11, kNormEnd = 4e-16;
  static constexpr int kMostPasses = 100;

  // -------------------------------------------------------------- norm, dual norm, prox

  // N(z) = finish(join(... join(0, |z_1|) ..., |z_m|)).
  static double join(double total, double z) { return total + z * z; }
  static double finish(double total) { return std::sqrt(total); }
  static double norm(const double* z, int64_t n) { return norm2(z, n); }
  // N*(g) = dual(Σ_c dual_term(g_c)).
  static double dual_term(double g) { return g * g; }
  static double dual(double sum) { return std::sqrt(sum); }

  // The dual norm of absolute ‖·‖₁ + radius N at |g|: the c with N*((|g| - absolute c)_+) = radius c, from
  // below.
  static double mixed_dual(const double* g, int64_t n, double absolute, double radius) {
    double c = 0.0;
    for (int64_t r = 0; r < n; ++r) c = std::max(c, std::abs(g[r]) / (absolute + radius));
    for (int pass = 0; pass < kMostPasses; ++pass) {
      double squares = 0.0, sum = 0.0;
      for (int64_t r = 0; r < n; ++r) {
        const double z = std::max(std::abs(g[r]) - absolute * c, 0.0);
        squares += z * z, sum += z;
      }
      const double length = std::sqrt(squares);
      const double rate = radius + (length > 0.0 ? absolute * sum / length : 0.0);
      const double move = (length - radius * c) / rate;
      if (move != move) return move;
      if (!(move > 0.0)) break;
      c += move;
      if (move <= kNormEnd * c) break;
    }
    return c;
  }

  static void prox(const double* v, int64_t n, double t, double* out, ProxScratch&) {
    prox_group_l2(v, n, t, out);
  }
  static void prox_weighted(const double* v, const double* omega, int64_t n, double t, double* out,
                            ProxScratch&) {
    prox_group_l2_weighted(v, omega, n, t, out);
  }

  // N(to) - N(from) by the differences, each(visit) giving from and to.
  template <typename Each>
  static double change(double before, double after, Each each) {
    if (before + after == 0.0) return after - before;
    double sum = 0.0;
    each([&](double from, double to) { sum += (to - from) * (to + from); });
    return sum / (before + after);
  }

  // -------------------------------------------------------------- coordinate descent

  // The v that minimises Σ h v²/2 - u v + a N(o∘v): v = u t / (h t + a o²) with t = |o v|, the root of a
  // scalar equation on which Newton's method climbs from below (the inverse of the norm is concave in t).
  static void minimise(const double* h, const double* u, const double* o, std::size_t m, double a,
                       double* v, ProxScratch&) {
    double squares = 0.0, steepest = 0.0;
    for (std::size_t r = 0; r < m; ++r) {
      const double y = u[r] / o[r];
      squares += y * y;
      steepest = std::max(steepest, h[r] / (o[r] * o[r]));
    }
    if (!(squares > a * a)) {
      std::fill_n(v, m, 0.0);
      return;
    }
    double t = (std::sqrt(squares) - a) / steepest;
    for (int pass = 0; pass < kMostPasses; ++pass) {
      double total = 0.0, slope = 0.0;
      for (std::size_t r = 0; r < m; ++r) {
        const double oo = o[r] * o[r], below = 1.0 / (h[r] * t + a * oo);
        const double part = o[r] * u[r] * below;
        total += part * part;
        slope += part * part * h[r] * below;
      }
      const double root = std::sqrt(total), move = total * (root - 1.0) / slope;
      if (!(move > 0.0)) break;
      t += move;
      if (move <= kRootEnd * t) break;
    }
    for (std::size_t r = 0; r < m; ++r) v[r] = u[r] * t / (h[r] * t + a * o[r] * o[r]);
  }

  // Adds a gradient of a N along the manifold. Coordinates that move are marked; none are tied.
  static void tangent(const GroupBlock& b, const double* w, const double*, double a,
                      unsigned char* mark, double* q) {
    const double length = length_of(b, w);
    for (std::size_t r = 0; r < b.m; ++r)
      if (mark[b.place[r]] != GroupBlock::fixed)
        q[b.place[r]] += a * b.o[r] * b.o[r] * w[b.place[r]] / length;
  }

  // The curvature of a N there: diag(straight) - ring ring'.
  static void curvature(const GroupBlock& b, const double* w, double a, const unsigned char* mark,
                        double* straight, double* ring) {
    const double length = length_of(b, w);
    if (!(length > 0.0)) return;
    const double bend = a / length;
    for (std::size_t r = 0; r < b.m; ++r) {
      if (mark[b.place[r]] == GroupBlock::fixed) continue;
      const double oo = b.o[r] * b.o[r];
      straight[b.place[r]] = oo * bend;
      ring[b.place[r]] = oo * w[b.place[r]] * std::sqrt(bend) / length;
    }
  }

  // add(way, speed) for the kinks of N that the step meets after a part way / speed of itself.
  template <typename Add>
  static void kinks(const GroupBlock& b, const double* w, const double* step, Add add) {
    double along = 0.0, squares = 0.0;
    for (std::size_t r = 0; r < b.m; ++r) {
      const double x = w[b.place[r]], s = step[b.place[r]], o = b.o[r];
      along += o * o * x * s, squares += o * o * x * x;
    }
    add(squares, -along);
  }

  // Cuts a step at the kinks it would cross. Returns whether the block would turn around.
  static bool cut(const GroupBlock& b, const double* w, double* step) {
    double along = 0.0, squares = 0.0;
    for (std::size_t r = 0; r < b.m; ++r) {
      const double x = w[b.place[r]], s = step[b.place[r]], o = b.o[r];
      along += o * o * x * (x + s), squares += o * o * x * x;
    }
    return along <= 0.0 && squares > 0.0;
  }

  // -------------------------------------------------------------- the smooth piece around a point

  // What radius N adds to a point of the manifold: z has the block's coordinates there, which are the
  // entries member[0 .. n) of the point, and the norm `length` > 0. Zeros stay where `sparse`.
  static void add_piece(const double* z, const int64_t* member, int64_t n, double length,
                        double radius, bool sparse, const double*, ManifoldPoint& out) {
    ManifoldPoint::Curved block;
    block.delta = radius / length;
    for (int64_t m = 0; m < n; ++m) {
      if (z[m] == 0.0 && sparse) continue;
      const int64_t e = member[m];
      out.pull[e] += radius * z[m] / length;
      out.delta[e] += block.delta;
      block.member.push_back(e);
      block.direction.push_back(z[m] / length);
    }
    out.curved.push_back(std::move(block));
  }

  // -------------------------------------------------------------- dual coordinate ascent

  // W = γ(1 − level/‖v‖)v for one feature of K outputs, where that is not zero.
  struct Rows {
    static constexpr RowForm kForm = RowForm::scaled;

    static bool in_use(double size, double level) { return size > level * level; }
    static double factor(double size, double level) { return 1.0 - level / std::sqrt(size); }

    // u <- W'(V) u.
    static void slope(const SdcaRow& row, int64_t K, double* u) {
      const double part = row.level / std::sqrt(row.size);
      double along = 0.0;
      for (int64_t k = 0; k < K; ++k) along += row.v[k] * u[k];
      along *= part / row.size;
      for (int64_t k = 0; k < K; ++k) u[k] = row.gain * ((1.0 - part) * u[k] + along * row.v[k]);
    }
    // The mean of the diagonal of W'(V).
    static double mean_slope(const SdcaRow& row, int64_t K) {
      const double part = row.level / std::sqrt(row.size);
      return row.gain * (1.0 - part + part / static_cast<double>(K));
    }
    // ‖W/γ‖².
    static double squares(const SdcaRow& row, int64_t) {
      const double over = std::sqrt(row.size) - row.level;
      return over * over;
    }
  };

  // -------------------------------------------------------------- the interior point

  // radius ‖W‖:  (t, W) and (radius, v = G) in the second-order cone.
  struct Cone {
    static constexpr bool kPairs = false, kCone = true, kSharedScaling = true;

    static void enter(ConeState& s, ConeBlock& b, const double* g, double mu) {
      std::copy(g, g + (b.end - b.begin), s.v.begin() + b.begin);
      s.enter_cone(b, mu);
    }
    static void move_to(ConeState& s, ConeBlock& b, double mu, bool known) {
      s.cone_around(b, mu, known);
    }
    static void scale(ConeState& s, ConeBlock& b) {
      s.scale_cone(b);
      for (int64_t c = b.begin; c < b.end; ++c) s.delta[c] = b.eta2;
      b.kappa = 2.0 * b.eta2;
    }
    static void rhs(ConeState& s, ConeBlock& b, double tau) {
      s.rhs_cone(b, tau);
      for (int64_t c = b.begin; c < b.end; ++c) s.h[c] = s.a2[c];
    }
    static void recover(ConeState& s, ConeBlock& b, const double* dg, double) {
      for (int64_t c = b.begin; c < b.end; ++c) s.dv[c] = dg[c] - s.shift[c];
      b.dt = s.cone_radius_direction(b);
    }
    static double weight(const ConeState& s, int64_t c, double step) {
      return s.w[c] + step * s.dw[c];
    }
    static double without_dual(const ConeState& s, const ConeBlock&, int64_t c, double g) {
      return g - s.v[c];
    }
    static void set_zeros(const ConeState& s, const ConeBlock& b, double scale, double* out) {
      s.zero_cone(b, scale, out);
    }
  };

  // absolute ‖W‖₁ + radius ‖W‖:  both, G = u + v,  z1, z2 = absolute +- u,  ‖v‖ <= radius.
  struct MixedCone {
    static constexpr bool kPairs = true, kCone = true, kSharedScaling = false;

    // G is split where the dual norm c of the whole block is attained: u = clip(G, absolute c), v = G - u.
    static void enter(ConeState& s, ConeBlock& b, const double* g, double mu) {
      const double absolute = b.shape.absolute;
      const double cap = absolute * mixed_dual(g, b.end - b.begin, absolute, b.shape.radius);
      for (int64_t c = b.begin; c < b.end; ++c)
        s.v[c] = g[c - b.begin] - std::clamp(g[c - b.begin], -cap, cap);
      s.enter_cone(b, mu);
      for (int64_t c = b.begin; c < b.end; ++c) {
        const double u = g[c - b.begin] - s.v[c];
        s.z1[c] = absolute + u;
        s.z2[c] = absolute - u;
      }
      s.pairs_around(b, mu);
    }
    static void move_to(ConeState& s, ConeBlock& b, double mu, bool known) {
      s.pairs_around(b, mu);
      s.cone_around(b, mu, known);
    }

    // D = (D1^-1 + D2^-1)^-1 with D1 the diagonal of the pairs and D2 = eta2 (I + 2 w1 w1'); written so
    // that nothing cancels.
    static void scale(ConeState& s, ConeBlock& b) {
      s.scale_cone(b);
      double weighted = 0.0;
      for (int64_t c = b.begin; c < b.end; ++c) {
        const double d1 = s.pair_scaling(c);
        s.delta[c] = d1 * (b.eta2 / (d1 + b.eta2));
        s.vec[c] = s.delta[c] * s.w1[c];
        weighted += s.w1[c] * s.w1[c] * (b.eta2 / (d1 + b.eta2));
      }
      b.kappa = (2.0 / b.eta2) / (1.0 + 2.0 * weighted);
    }

    static void rhs(ConeState& s, ConeBlock& b, double tau) {
      s.rhs_cone(b, tau);
      double along = 0.0;
      const double f = 2.0 * s.dot(b, s.w1, s.a2) / (1.0 + 2.0 * s.dot(b, s.w1, s.w1));
      for (int64_t c = b.begin; c < b.end; ++c) {
        s.a1[c] = s.c1[c] / s.z1[c] - s.c2[c] / s.z2[c];
        s.h[c] = s.a1[c] / s.pair_scaling(c) + (s.a2[c] - f * s.w1[c]) / b.eta2;
        along += s.vec[c] * s.h[c];
      }
      for (int64_t c = b.begin; c < b.end; ++c)
        s.h[c] = s.delta[c] * s.h[c] + b.kappa * along * s.vec[c];
    }

    // Splits dG = du + dv between the pairs and the cone by solving (D1 + D2) du = a1 - a2 + D2 dG with
    // D2 = eta2 (I + 2 w1 w1'). Reading du off dw = a1 - D1 du instead cancels where D1 is tiny, which
    // stalled the iterations at a relative gap of 1e-7.
    static void recover(ConeState& s, ConeBlock& b, const double* dg, double) {
      double top = 0.0, bottom = 1.0;
      for (int64_t c = b.begin; c < b.end; ++c) {
        const double d1 = s.pair_scaling(c), e = s.w1[c] / (d1 + b.eta2);
        s.dv[c] = d1 * (dg[c] - s.shift[c]) - s.a1[c] + s.a2[c];
        top += 2.0 * b.eta2 * e * s.dv[c];
        bottom += 2.0 * b.eta2 * e * s.w1[c];
      }
      for (int64_t c = b.begin; c < b.end; ++c) {
        const double d1 = s.pair_scaling(c), g = dg[c] - s.shift[c];
        const double along = s.w1[c] * (top / bottom);
        if (d1 > b.eta2) {
          s.pair_directions(c, (s.a1[c] - s.dw[c]) / d1);
          s.dv[c] = g - s.dz1[c];
        } else {
          s.pair_directions(c, (s.a1[c] - s.a2[c] + b.eta2 * g + along) / (d1 + b.eta2));
          s.dv[c] = (s.dv[c] - along) / (d1 + b.eta2);
          s.dw[c] = s.a1[c] - d1 * s.dz1[c];
        }
      }
      b.dt = s.cone_radius_direction(b);
    }

    static double weight(const ConeState& s, int64_t c, double step) {
      return s.w[c] + step * s.dw[c];
    }
    static double without_dual(const ConeState& s, const ConeBlock&, int64_t c, double g) {
      return g - s.v[c] - 0.5 * (s.z1[c] - s.z2[c]);
    }
    static void set_zeros(const ConeState& s, const ConeBlock& b, double scale, double* out) {
      s.zero_cone(b, scale, out);
      s.zero_pairs(b, b.shape.absolute, scale, out);
    }
  };

 private:
  static double length_of(const GroupBlock& b, const double* w) {
    double squares = 0.0;
    for (std::size_t r = 0; r < b.m; ++r) {
      const double z = b.o[r] * std::abs(w[b.place[r]]);
      squares += z * z;
    }
    return std::sqrt(squares);
  }
};

}  // namespace sparsvm
