// Formulas of the cone blocks declared in penalty_blocks.hpp.
#pragma once

#include "penalty/cone_blocks.hpp"

namespace sparsvm {

// ---- entering points: on, or near, the central path of the block for a fixed dual vector ----

inline void PenaltyBlocks::enter(Block& b, const double* g, double mu) {
  const std::int64_t size = b.end - b.begin;
  switch (b.shape.kind) {
    case BlockKind::absolute: {
      const std::int64_t c = b.begin;
      z1_[c] = b.shape.l1 + g[0];
      z2_[c] = b.shape.l1 - g[0];
      // With curvature the slacks depend on W, so it enters at exactly zero.
      x1_[c] = b.shape.quad > 0.0 ? mu / std::sqrt(z1_[c] * z2_[c]) : mu / z1_[c];
      x2_[c] = b.shape.quad > 0.0 ? x1_[c] : mu / z2_[c];
      w[c] = x1_[c] - x2_[c];
      break;
    }
    case BlockKind::maximum: enter_maximum(b, g, mu); break;
    case BlockKind::euclidean: {
      double gg = 0.0;
      for (std::int64_t c = 0; c < size; ++c) gg += g[c] * g[c];
      const double norm = std::sqrt(gg), radius = b.shape.l2;
      const double f = mu / ((radius - norm) * (radius + norm));
      b.t = f * radius;
      for (std::int64_t c = 0; c < size; ++c) {
        v_[b.begin + c] = g[c];
        w[b.begin + c] = -f * g[c];
      }
      break;
    }
    case BlockKind::sparse: enter_sparse(b, g, mu); break;
  }
}

// z1 + z2 = theta + sqrt(theta^2 + g^2) =: s with theta = mu/t makes all products equal to mu;
// theta is the root of sum(s) = 1.
inline void PenaltyBlocks::enter_maximum(Block& b, const double* g, double mu) {
  const std::int64_t size = b.end - b.begin;
  double sum = 0.0;
  for (std::int64_t c = 0; c < size; ++c) sum += std::fabs(g[c]);
  // The sum is convex in theta and too large at this one, so that Newton's steps stay above the
  // root.
  double theta = (1.0 - sum) / static_cast<double>(size);
  for (int it = 0; it < 50; ++it) {
    double total = -1.0, slope = 0.0;
    for (std::int64_t c = 0; c < size; ++c) {
      const double root = std::sqrt(theta * theta + g[c] * g[c]);
      total += theta + root;
      slope += 1.0 + theta / root;
    }
    const double step = total / slope;
    theta -= step;
    if (!(step > 1e-14 * theta)) break;
  }
  for (std::int64_t c = 0; c < size; ++c) {
    const std::int64_t i = b.begin + c;
    const double s = theta + std::sqrt(theta * theta + g[c] * g[c]);
    // (s - |g|)/2 without cancellation: s^2 - g^2 = 2 theta s.
    const double small = theta * s / (s + std::fabs(g[c])), large = small + std::fabs(g[c]);
    z1_[i] = g[c] > 0.0 ? small : large;
    z2_[i] = g[c] > 0.0 ? large : small;
    x1_[i] = mu / z1_[i];
    x2_[i] = mu / z2_[i];
    w[i] = 0.5 * (x2_[i] - x1_[i]);
  }
}

// G is split where the dual norm c of the whole block is attained: u = clip(G, l1 c), v = G - u.
inline void PenaltyBlocks::enter_sparse(Block& b, const double* g, double mu) {
  const std::int64_t size = b.end - b.begin;
  const double cap = b.shape.l1 * b.shape.dual_norm(g, size);
  double vv = 0.0;
  for (std::int64_t c = 0; c < size; ++c) {
    v_[b.begin + c] = g[c] - std::clamp(g[c], -cap, cap);
    vv += v_[b.begin + c] * v_[b.begin + c];
  }
  const double norm = std::sqrt(vv), radius = b.shape.l2;
  const double f = mu / ((radius - norm) * (radius + norm));
  b.t = f * radius;
  for (std::int64_t c = 0; c < size; ++c) {
    const std::int64_t i = b.begin + c;
    w[i] = -f * v_[i];
    const double u = g[c] - v_[i];
    z1_[i] = b.shape.l1 + u;
    z2_[i] = b.shape.l1 - u;
    x1_[i] = std::max(mu / z1_[i], mu / z2_[i] + w[i]);
    x2_[i] = x1_[i] - w[i];
  }
}

// Replaces the primal part by given weights, with the slacks that belong to them on the central path:
// those of a pair at least its mu / dual slack, the radius t of a norm where its own barrier has the
// slope that the norm costs. (Read off the dual slacks, t would come out as three times itself.)
inline void PenaltyBlocks::move_to(Block& b, const double* weights, double mu, bool known) {
  double sq = 0.0, vv = 0.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    w[c] = weights[c - b.begin];
    sq += w[c] * w[c];
    vv += v_[c] * v_[c];
  }
  const double t = b.shape.kind == BlockKind::maximum ? central_maximum(b, mu) : 0.0;
  for (std::int64_t c = b.begin; c < b.end && b.has_pairs(); ++c) {
    if (b.shape.kind == BlockKind::maximum) {
      x1_[c] = t - w[c];
      x2_[c] = t + w[c];
    } else {
      x1_[c] = std::max(mu / z1_[c], mu / z2_[c] + w[c]);
      x2_[c] = x1_[c] - w[c];
    }
  }
  if (!b.has_cone()) return;
  const double half = 0.5 * mu / b.shape.l2;
  b.t = known ? half + std::sqrt(half * half + sq) : mu / (b.shape.l2 - std::sqrt(vv));
}

// The t at which sum(mu / (t - W) + mu / (t + W)) = 1. Its excess over max |W| is between the mu of
// one small slack and those of all, and the sum falls with it.
inline double PenaltyBlocks::central_maximum(const Block& b, double mu) const {
  double largest = 0.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) largest = std::max(largest, std::fabs(w[c]));
  double lo = mu, hi = 2.0 * mu * static_cast<double>(b.end - b.begin);
  for (int it = 0; it < 100 && hi - lo > 1e-3 * lo; ++it) {
    const double mid = 0.5 * (lo + hi), t = largest + mid;
    double sum = 0.0;
    for (std::int64_t c = b.begin; c < b.end; ++c) sum += mu / (t - w[c]) + mu / (t + w[c]);
    (sum > 1.0 ? lo : hi) = mid;
  }
  return largest + hi;
}

// ---- between blocks and their coordinates ----

inline void PenaltyBlocks::remove(const std::vector<char>& marked) {
  struct Move {
    std::int64_t from, to, size;
  };
  std::vector<Move> moves;  // of neighbours together
  std::int64_t total = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (marked[i]) continue;
    Block b = blocks_[i];
    const std::int64_t size = b.end - b.begin;
    if (!moves.empty() && moves.back().from + moves.back().size == b.begin)
      moves.back().size += size;
    else
      moves.push_back({b.begin, total, size});
    b.begin = total;
    b.end = total += size;
    blocks_[kept++] = b;
  }
  blocks_.resize(kept);
  const auto close = [&](auto& a) {
    for (const Move& m : moves) std::copy_n(a.begin() + m.from, m.size, a.begin() + m.to);
    a.resize(static_cast<std::size_t>(total));
  };
  for (auto* a : arrays()) close(*a);
  close(col);
  close(cls);
}

inline void PenaltyBlocks::add_response(const double* dg, std::int64_t known,
                                        std::vector<double>& values) const {
  for (const Block& b : blocks_) {
    if (b.end > known) break;
    double along = 0.0;
    for (std::int64_t c = b.begin; c < b.end; ++c) along += vec[c] * dg[c];
    for (std::int64_t c = b.begin; c < b.end; ++c)
      if (values[c] != 0.0) values[c] -= delta[c] * dg[c] + b.kappa * along * vec[c];
  }
}

inline void PenaltyBlocks::subtract_held(double* dg) const {
  for (const Block& b : blocks_)
    for (std::int64_t c = b.begin; c < b.end; ++c) {
      dg[c] += shift[c];
      if (b.has_cone()) dg[c] -= v_[c];
      if (b.shape.kind == BlockKind::maximum)
        dg[c] -= z2_[c] - z1_[c];
      else if (b.has_pairs())
        dg[c] -= 0.5 * (z1_[c] - z2_[c]) - b.shape.quad * w[c];
    }
}

inline void PenaltyBlocks::keeping_weight(std::vector<char>& out) const {
  out.assign(blocks_.size(), 0);
  for (std::size_t a = 0; a < blocks_.size(); ++a) {
    const Block& b = blocks_[a];
    for (std::int64_t c = b.begin; c < b.end && b.has_pairs(); ++c)
      if (dz1_[c] * x1_[c] < dx1_[c] * z1_[c] || dz2_[c] * x2_[c] < dx2_[c] * z2_[c]) out[a] = 1;
    if (b.shape.kind != BlockKind::euclidean) continue;
    double vv = 0.0, along = 0.0;
    for (std::int64_t c = b.begin; c < b.end; ++c) {
      vv += v_[c] * v_[c];
      along += v_[c] * dv_[c];
    }
    const double norm = std::sqrt(vv);
    out[a] = -along * b.t < b.dt * (b.shape.l2 - norm) * norm;
  }
}

// ---- scalings ----

inline void PenaltyBlocks::scale_maximum(Block& b) {
  double curvature = 0.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    const double a = z1_[c] / x1_[c], bb = z2_[c] / x2_[c];
    delta[c] = 1.0 / (a + bb);
    vec[c] = (a - bb) * delta[c];
    curvature += 4.0 * a * bb * delta[c];
  }
  b.kappa = 1.0 / curvature;
}

inline void PenaltyBlocks::scale_cone(Block& b) {
  double ww = 0.0, vv = 0.0, wv = 0.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    ww += w[c] * w[c];
    vv += v_[c] * v_[c];
    wv += w[c] * v_[c];
  }
  const double nw = std::sqrt(ww), nv = std::sqrt(vv), radius = b.shape.l2;
  const double det_x = std::max((b.t - nw) * (b.t + nw), 1e-32 * b.t * b.t);
  const double det_s = std::max((radius - nv) * (radius + nv), 1e-32 * radius * radius);
  const double rx = 1.0 / std::sqrt(det_x), rs = 1.0 / std::sqrt(det_s);
  const double twice_gamma = 2.0 * std::sqrt(0.5 * (1.0 + (b.t * radius + wv) * rx * rs));
  b.eta2 = std::sqrt(det_x / det_s);
  b.w0 = (b.t * rx + radius * rs) / twice_gamma;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    w1_[c] = (w[c] * rx - v_[c] * rs) / twice_gamma;
    vec[c] = w1_[c];
  }
}

// D = (D1^-1 + D2^-1)^-1 with D1 the diagonal of the pairs and D2 = eta2 (I + 2 w1 w1'); written so
// that nothing cancels.
inline void PenaltyBlocks::scale_sparse(Block& b) {
  double weighted = 0.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    const double d1 = pair_scaling(c);
    delta[c] = d1 * (b.eta2 / (d1 + b.eta2));
    vec[c] = delta[c] * w1_[c];
    weighted += w1_[c] * w1_[c] * (b.eta2 / (d1 + b.eta2));
  }
  b.kappa = (2.0 / b.eta2) / (1.0 + 2.0 * weighted);
}

// ---- right-hand sides ----

inline void PenaltyBlocks::rhs_maximum(Block& b) {
  double sum = 0.0, mass = 0.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    const double f1 = c1_[c] / x1_[c], f2 = c2_[c] / x2_[c];
    sum += f1 + f2 + vec[c] * (f2 - f1);
    mass += z1_[c] + z2_[c];
  }
  b.ht = b.kappa * (sum - (1.0 - mass));
  for (std::int64_t c = b.begin; c < b.end; ++c)
    h[c] = (c2_[c] / x2_[c] - c1_[c] / x1_[c]) * delta[c] + vec[c] * b.ht;
}

// T q = -x + T (lambda^-1 o (tau e + terms)), with lambda = T s = T^-1 x.
inline void PenaltyBlocks::rhs_cone(Block& b, double tau) {
  const double eta = std::sqrt(b.eta2), radius = b.shape.l2, w0 = b.w0;
  const double w1v = dot_w1(b, v_), r0 = tau + b.term0;
  const double l0 = b.l0 = eta * (w0 * radius + w1v);
  double l1r1 = 0.0, ll = 0.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    l_[c] = eta * (w1_[c] * radius + v_[c] + w1_[c] * w1v / (1.0 + w0));
    ll += l_[c] * l_[c];
    l1r1 += l_[c] * term_[c];
  }
  const double nl = std::sqrt(ll), det = std::max((l0 - nl) * (l0 + nl), 1e-32 * l0 * l0);
  const double q0 = (l0 * r0 - l1r1) / det;
  double w1q = 0.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    a2_[c] = (term_[c] - q0 * l_[c]) / l0;
    w1q += w1_[c] * a2_[c];
  }
  b.ht = eta * (w0 * q0 + w1q) - b.t;
  for (std::int64_t c = b.begin; c < b.end; ++c)
    a2_[c] = eta * (w1_[c] * q0 + a2_[c] + w1_[c] * w1q / (1.0 + w0)) - w[c];
}

inline void PenaltyBlocks::rhs_sparse(Block& b) {
  double ss = 0.0, w1a = dot_w1(b, a2_), along = 0.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) ss += w1_[c] * w1_[c];
  const double f = 2.0 * w1a / (1.0 + 2.0 * ss);
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    a1_[c] = c1_[c] / z1_[c] - c2_[c] / z2_[c];
    h[c] = a1_[c] / pair_scaling(c) + (a2_[c] - f * w1_[c]) / b.eta2;
    along += vec[c] * h[c];
  }
  for (std::int64_t c = b.begin; c < b.end; ++c) h[c] = delta[c] * h[c] + b.kappa * along * vec[c];
}

// Splits dG = du + dv between the pairs and the cone by solving (D1 + D2) du = a1 - a2 + D2 dG with
// D2 = eta2 (I + 2 w1 w1'). Reading du off dw = a1 - D1 du instead cancels where D1 is tiny, which
// stalled the iterations at a relative gap of 1e-7.
inline void PenaltyBlocks::split_direction(Block& b, const double* dg) {
  double top = 0.0, bottom = 1.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    const double d1 = pair_scaling(c), e = w1_[c] / (d1 + b.eta2);
    dv_[c] = d1 * (dg[c] - shift[c]) - a1_[c] + a2_[c];
    top += 2.0 * b.eta2 * e * dv_[c];
    bottom += 2.0 * b.eta2 * e * w1_[c];
  }
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    const double d1 = pair_scaling(c), g = dg[c] - shift[c], along = w1_[c] * (top / bottom);
    if (d1 > b.eta2) {
      pair_directions(c, (a1_[c] - dw[c]) / d1);
      dv_[c] = g - dz1_[c];
    } else {
      pair_directions(c, (a1_[c] - a2_[c] + b.eta2 * g + along) / (d1 + b.eta2));
      dv_[c] = (dv_[c] - along) / (d1 + b.eta2);
      dw[c] = a1_[c] - d1 * dz1_[c];
    }
  }
}

// Largest a with (t, w) + a (dt, dw) in the second-order cone: the first positive root of
// (t + a dt)^2 = |w + a dw|^2.
inline double PenaltyBlocks::cone_step(double t, double dt, const double* w, const double* dw,
                                       std::int64_t size) {
  double ww = 0.0, dd = 0.0, wd = 0.0;
  for (std::int64_t c = 0; c < size; ++c) {
    ww += w[c] * w[c];
    dd += dw[c] * dw[c];
    wd += w[c] * dw[c];
  }
  const double nw = std::sqrt(ww), nd = std::sqrt(dd);
  const double a = (dt - nd) * (dt + nd), half_b = t * dt - wd,
               c = std::max((t - nw) * (t + nw), 0.0);
  const double disc = half_b * half_b - a * c;
  if (disc < 0.0) return kUnbounded;
  const double root = std::sqrt(disc);
  if (half_b <= 0.0) {
    const double q = root - half_b;
    return q > 0.0 ? c / q : kUnbounded;
  }
  return a < 0.0 ? (half_b + root) / -a : kUnbounded;
}

}  // namespace sparsvm
