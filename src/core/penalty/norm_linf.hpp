// The maximum norm of a block: all that solvers ask of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "penalty/block.hpp"
#include "prox/prox.hpp"

namespace sparsvm {

struct MaximumNorm {
  static constexpr const char* kName = "l1/linf";
  static constexpr bool kSmooth = false, kDualOfSquares = false;
  // Settings. Relative differences of sizes below the first are rounding; Newton's and bisection steps to
  // the central point of a block, which take a handful, and their relative accuracy: a start needs little.
  static constexpr double kTie = 1e-12, kNewtonEnd = 1e-14, kBisectionEnd = 1e-3;
  static constexpr int kMostNewton = 50, kMostBisections = 100;

  // -------------------------------------------------------------- norm, dual norm, prox

  static double join(double total, double z) { return std::max(total, z); }
  static double finish(double total) { return total; }
  static double norm(const double* z, int64_t n) {
    double top = 0.0;
    for (int64_t c = 0; c < n; ++c) top = std::max(top, std::abs(z[c]));
    return top;
  }
  static double dual_term(double g) { return std::abs(g); }
  static double dual(double sum) { return sum; }

  static void prox(const double* v, int64_t n, double t, double* out, ProxScratch& work) {
    prox_group_linf(v, n, t, out, work);
  }
  static void prox_weighted(const double* v, const double* omega, int64_t n, double t, double* out,
                            ProxScratch& work) {
    prox_group_linf_weighted(v, omega, n, t, out, work);
  }

  template <typename Each>
  static double change(double before, double after, Each) {
    return after - before;
  }

  // -------------------------------------------------------------- coordinate descent

  // v = u / h cut at level / o, with sum h (o |u| / h - level)_+ / o^2 = a.
  static void minimise(const double* h, const double* u, const double* o, std::size_t m, double a,
                       double* v, ProxScratch& work) {
    double sum = 0.0;
    double *z = work.values(), *cost = work.costs();
    for (std::size_t r = 0; r < m; ++r) {
      sum += std::abs(u[r]) / o[r];
      z[r] = o[r] * std::abs(u[r]) / h[r];
      cost[r] = h[r] / (o[r] * o[r]);
    }
    if (!(sum > a)) {
      std::fill_n(v, m, 0.0);
      return;
    }
    const double level = threshold(z, cost, static_cast<int64_t>(m), -a, 0.0, 0.0, work);
    for (std::size_t r = 0; r < m; ++r) {
      const double size = std::abs(u[r]) / h[r];
      v[r] = std::copysign(o[r] * size > level ? level / o[r] : size, u[r]);
    }
  }

  // The coordinates of largest size are tied and share the slope, but for those that the gradient g of the
  // loss pulls inwards. Where all are pulled inwards the maximum itself falls.
  static void tangent(const GroupBlock& b, const double* w, const double* g, double a,
                      unsigned char* mark, double* q) {
    const double top = largest(b, w).size;
    const auto tie = [&](bool inwards) {
      int ties = 0;
      for (std::size_t r = 0; r < b.m; ++r) {
        const double x = w[b.place[r]];
        if (b.o[r] * std::abs(x) < top * (1.0 - kTie) || !(inwards || x * g[b.place[r]] <= 0.0))
          continue;
        mark[b.place[r]] = GroupBlock::tied;
        ++ties;
      }
      return ties;
    };
    int ties = tie(false);
    if (ties == 0) ties = tie(true);
    for (std::size_t r = 0; r < b.m; ++r)
      if (mark[b.place[r]] == GroupBlock::tied)
        q[b.place[r]] = a * std::copysign(b.o[r], w[b.place[r]]) / ties;
  }

  static void curvature(const GroupBlock&, const double*, double, const unsigned char*, double*,
                        double*) {}

  template <typename Add>
  static void kinks(const GroupBlock& b, const double* w, const double* step, Add add) {
    const Largest top = largest(b, w);
    const double rise = top.place < 0 ? 0.0 : top.sign * top.o * step[top.place];
    add(top.size, -rise);
    for (std::size_t r = 0; r < b.m; ++r) {
      const double x = b.o[r] * w[b.place[r]], s = b.o[r] * step[b.place[r]];
      add(top.size - x, s - rise);
      add(top.size + x, -s - rise);
    }
  }

  // A coordinate that would outgrow the maximum joins it.
  static bool cut(const GroupBlock& b, const double* w, double* step) {
    const Largest top = largest(b, w);
    const bool zero = top.place < 0;
    const double moved = zero ? 0.0 : top.sign * top.o * (w[top.place] + step[top.place]);
    if (moved <= 0.0 && !zero) return true;
    for (std::size_t r = 0; r < b.m; ++r) {
      const double x = w[b.place[r]];
      double& s = step[b.place[r]];
      if (b.o[r] * std::abs(x + s) > moved) s = std::copysign(moved / b.o[r], x + s) - x;
    }
    return false;
  }

  // -------------------------------------------------------------- the smooth piece around a point

  // The coordinates of largest size move together, with one slope; off: the part of Z⁺ - Z orthogonal to
  // their direction.
  static void add_piece(const double* z, const int64_t* member, int64_t n, double length,
                        double radius, bool, const double* Z, ManifoldPoint& out) {
    ManifoldPoint::Tie tie;
    double along = 0.0;
    for (int64_t m = 0; m < n; ++m) {
      if (std::abs(z[m]) < length) continue;
      tie.member.push_back(member[m]);
      tie.sign.push_back(std::copysign(1.0, z[m]));
      along += tie.sign.back() * (z[m] - Z[member[m]]);
    }
    const auto size = static_cast<double>(tie.member.size());
    for (std::size_t m = 0; m < tie.member.size(); ++m)
      out.pull[tie.member[m]] = radius * tie.sign[m] / size;
    if (tie.member.size() == 1) return;
    for (std::size_t m = 0; m < tie.member.size(); ++m) {
      const int64_t e = tie.member[m];
      out.off[e] = out.plus[e] - Z[e] - tie.sign[m] * along / size;
      out.state[e] = ManifoldPoint::tied;
    }
    out.ties.push_back(std::move(tie));
  }

  // -------------------------------------------------------------- dual coordinate ascent

  // W = γ (v clipped at T) for one feature of K outputs: entries beyond T move together, as T does.
  struct Rows {
    static constexpr RowForm kForm = RowForm::clipped;

    static bool in_use(double size, double level) { return size > level; }
    static double factor(double, double) { return 1.0; }

    static void slope(const SdcaRow& row, int64_t K, double* u) {
      double together = 0.0, count = 0.0;
      for (int64_t k = 0; k < K; ++k) {
        if (!(std::abs(row.v[k]) > row.cut)) continue;
        together += row.v[k] > 0.0 ? u[k] : -u[k];
        count += 1.0;
      }
      together *= row.gain / std::max(count, 1.0);
      for (int64_t k = 0; k < K; ++k)
        u[k] = std::abs(row.v[k]) > row.cut ? (row.v[k] > 0.0 ? together : -together)
                                            : row.gain * u[k];
    }
    static double mean_slope(const SdcaRow& row, int64_t K) {
      double rank = 1.0;
      for (int64_t k = 0; k < K; ++k) rank += std::abs(row.v[k]) > row.cut ? 0.0 : 1.0;
      return row.gain * rank / static_cast<double>(K);
    }
    static double squares(const SdcaRow& row, int64_t K) {
      double sum = 0.0;
      for (int64_t k = 0; k < K; ++k) {
        const double size = std::min(std::abs(row.v[k]), row.cut);
        sum += size * size;
      }
      return sum;
    }
  };

  // -------------------------------------------------------------- the interior point

  // max_j |W_j| (of radius 1):  x1, x2 = t -+ W,  z1 - z2 = -G,  sum(z1 + z2) = 1.
  struct Cone {
    static constexpr bool kPairs = true, kCone = false, kSharedScaling = false;

    // z1 + z2 = theta + sqrt(theta^2 + g^2) =: s with theta = mu/t makes all products equal to mu;
    // theta is the root of sum(s) = 1.
    static void enter(ConeState& s, ConeBlock& b, const double* g, double mu) {
      const int64_t size = b.end - b.begin;
      double sum = 0.0;
      for (int64_t c = 0; c < size; ++c) sum += std::abs(g[c]);
      // The sum is convex in theta and too large at this one, so that Newton's steps stay above the
      // root.
      double theta = (1.0 - sum) / static_cast<double>(size);
      for (int it = 0; it < kMostNewton; ++it) {
        double total = -1.0, slope = 0.0;
        for (int64_t c = 0; c < size; ++c) {
          const double root = std::sqrt(theta * theta + g[c] * g[c]);
          total += theta + root;
          slope += 1.0 + theta / root;
        }
        const double step = total / slope;
        theta -= step;
        if (!(step > kNewtonEnd * theta)) break;
      }
      for (int64_t c = 0; c < size; ++c) {
        const int64_t i = b.begin + c;
        const double both = theta + std::sqrt(theta * theta + g[c] * g[c]);
        // (both - |g|)/2 without cancellation: both^2 - g^2 = 2 theta both.
        const double small = theta * both / (both + std::abs(g[c])), large = small + std::abs(g[c]);
        s.z1[i] = g[c] > 0.0 ? small : large;
        s.z2[i] = g[c] > 0.0 ? large : small;
        s.x1[i] = mu / s.z1[i];
        s.x2[i] = mu / s.z2[i];
        s.w[i] = 0.5 * (s.x2[i] - s.x1[i]);
      }
    }

    // With the t at which sum(mu / (t - W) + mu / (t + W)) = 1. Its excess over max |W| is between the mu
    // of one small slack and those of all, and the sum falls with it.
    static void move_to(ConeState& s, ConeBlock& b, double mu, bool) {
      double top = 0.0;
      for (int64_t c = b.begin; c < b.end; ++c) top = std::max(top, std::abs(s.w[c]));
      double lo = mu, hi = 2.0 * mu * static_cast<double>(b.end - b.begin);
      for (int it = 0; it < kMostBisections && hi - lo > kBisectionEnd * lo; ++it) {
        const double mid = 0.5 * (lo + hi), t = top + mid;
        double sum = 0.0;
        for (int64_t c = b.begin; c < b.end; ++c) sum += mu / (t - s.w[c]) + mu / (t + s.w[c]);
        (sum > 1.0 ? lo : hi) = mid;
      }
      for (int64_t c = b.begin; c < b.end; ++c) {
        s.x1[c] = top + hi - s.w[c];
        s.x2[c] = top + hi + s.w[c];
      }
    }

    static void scale(ConeState& s, ConeBlock& b) {
      double curvature = 0.0;
      for (int64_t c = b.begin; c < b.end; ++c) {
        const double a = s.z1[c] / s.x1[c], bb = s.z2[c] / s.x2[c];
        s.delta[c] = 1.0 / (a + bb);
        s.vec[c] = (a - bb) * s.delta[c];
        curvature += 4.0 * a * bb * s.delta[c];
      }
      b.kappa = 1.0 / curvature;
    }

    static void rhs(ConeState& s, ConeBlock& b, double) {
      double sum = 0.0, mass = 0.0;
      for (int64_t c = b.begin; c < b.end; ++c) {
        const double f1 = s.c1[c] / s.x1[c], f2 = s.c2[c] / s.x2[c];
        sum += f1 + f2 + s.vec[c] * (f2 - f1);
        mass += s.z1[c] + s.z2[c];
      }
      b.ht = b.kappa * (sum - (1.0 - mass));
      for (int64_t c = b.begin; c < b.end; ++c)
        s.h[c] = (s.c2[c] / s.x2[c] - s.c1[c] / s.x1[c]) * s.delta[c] + s.vec[c] * b.ht;
    }

    // Of the two slacks t - W and t + W at most one is small. The dual of the large one comes from
    // its own complementarity, that of the small one from dz1 - dz2 = -dG: the other way round the
    // small slack's rounding error is divided by itself.
    static void recover(ConeState& s, ConeBlock& b, const double* dg, double along) {
      b.dt = b.ht - b.kappa * along;
      for (int64_t c = b.begin; c < b.end; ++c) {
        const double move = dg[c] - s.shift[c];
        if (s.x1[c] < s.x2[c]) {
          s.dz2[c] = (s.c2[c] - s.z2[c] * (b.dt + s.dw[c])) / s.x2[c];
          s.dz1[c] = s.dz2[c] - move;
          s.dx1[c] = (s.c1[c] - s.x1[c] * s.dz1[c]) / s.z1[c];
          s.dx2[c] = 2.0 * b.dt - s.dx1[c];
        } else {
          s.dz1[c] = (s.c1[c] - s.z1[c] * (b.dt - s.dw[c])) / s.x1[c];
          s.dz2[c] = s.dz1[c] + move;
          s.dx2[c] = (s.c2[c] - s.x2[c] * s.dz2[c]) / s.z2[c];
          s.dx1[c] = 2.0 * b.dt - s.dx2[c];
        }
      }
    }

    static double weight(const ConeState& s, int64_t c, double) {
      return 0.5 * (s.x2[c] - s.x1[c]);
    }
    static double without_dual(const ConeState& s, const ConeBlock&, int64_t c, double g) {
      return g - (s.z2[c] - s.z1[c]);
    }
    static void set_zeros(const ConeState& s, const ConeBlock& b, double scale, double* out) {
      double slack = 0.0, t = 0.0;
      for (int64_t c = b.begin; c < b.end; ++c) {
        slack += 2.0 * std::min(s.z1[c], s.z2[c]);
        t = std::max(t, 0.5 * (s.x1[c] + s.x2[c]));
      }
      if (t * scale < slack) std::fill(out + b.begin, out + b.end, 0.0);
    }
  };

 private:
  struct Largest {
    int32_t place;  // -1 where all are zero
    double size, o, sign;
  };
  static Largest largest(const GroupBlock& b, const double* w) {
    Largest top{-1, 0.0, 0.0, 1.0};
    for (std::size_t r = 0; r < b.m; ++r) {
      const double x = w[b.place[r]], size = b.o[r] * std::abs(x);
      if (size > top.size) top = {b.place[r], size, b.o[r], std::copysign(1.0, x)};
    }
    return top;
  }
};

}  // namespace sparsvm
