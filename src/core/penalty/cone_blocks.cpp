// Points of the cone blocks: where they enter, how far they may go, what they are worth.
#include "penalty/cone_blocks.hpp"

namespace sparsvm {

void ConeBlocks::add(const BlockShape& general, int64_t count, const int32_t* cols,
                     const int32_t* classes, const double* g, const double* shifts, double mu,
                     const double* weights, bool known) {
  Block blk;
  blk.shape = general.for_size(count);
  blk.begin = n_coordinates();
  blk.end = blk.begin + count;
  for (int64_t c = 0; c < count; ++c) {
    col.push_back(cols[c]);
    cls.push_back(classes[c]);
  }
  if (static_cast<int64_t>(w.size()) < blk.end) grow(blk.end);
  std::copy(shifts, shifts + count, shift.begin() + blk.begin);
  std::vector<double> inside(count);
  for (int64_t c = 0; c < count; ++c) inside[c] = g[c] + shifts[c];
  enter(blk, inside.data(), mu);
  if (weights) {
    move_to(blk, weights, mu, known);
    // The slacks of a curved block stand for G + quad*W; they were set for W = 0.
    for (int64_t c = blk.begin; c < blk.end; ++c) shift[c] -= blk.shape.quad * w[c];
  }
  blocks_.push_back(blk);
}

void ConeBlocks::remove(const std::vector<char>& marked) {
  struct Move {
    int64_t from, to, size;
  };
  std::vector<Move> moves;  // of neighbours together
  int64_t total = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (marked[i]) continue;
    Block b = blocks_[i];
    const int64_t size = b.end - b.begin;
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

void ConeBlocks::enter(Block& b, const double* g, double mu) {
  const int64_t size = b.end - b.begin;
  switch (b.shape.kind) {
    case BlockKind::absolute: {
      const int64_t c = b.begin;
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
      for (int64_t c = 0; c < size; ++c) gg += g[c] * g[c];
      const double norm = std::sqrt(gg), radius = b.shape.l2;
      const double f = mu / ((radius - norm) * (radius + norm));
      b.t = f * radius;
      for (int64_t c = 0; c < size; ++c) {
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
void ConeBlocks::enter_maximum(Block& b, const double* g, double mu) {
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
    const double s = theta + std::sqrt(theta * theta + g[c] * g[c]);
    // (s - |g|)/2 without cancellation: s^2 - g^2 = 2 theta s.
    const double small = theta * s / (s + std::abs(g[c])), large = small + std::abs(g[c]);
    z1_[i] = g[c] > 0.0 ? small : large;
    z2_[i] = g[c] > 0.0 ? large : small;
    x1_[i] = mu / z1_[i];
    x2_[i] = mu / z2_[i];
    w[i] = 0.5 * (x2_[i] - x1_[i]);
  }
}

// G is split where the dual norm c of the whole block is attained: u = clip(G, l1 c), v = G - u.
void ConeBlocks::enter_sparse(Block& b, const double* g, double mu) {
  const int64_t size = b.end - b.begin;
  const double cap = b.shape.l1 * b.shape.dual_norm(g, size);
  double vv = 0.0;
  for (int64_t c = 0; c < size; ++c) {
    v_[b.begin + c] = g[c] - std::clamp(g[c], -cap, cap);
    vv += v_[b.begin + c] * v_[b.begin + c];
  }
  const double norm = std::sqrt(vv), radius = b.shape.l2;
  const double f = mu / ((radius - norm) * (radius + norm));
  b.t = f * radius;
  for (int64_t c = 0; c < size; ++c) {
    const int64_t i = b.begin + c;
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
void ConeBlocks::move_to(Block& b, const double* weights, double mu, bool known) {
  double sq = 0.0, vv = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    w[c] = weights[c - b.begin];
    sq += w[c] * w[c];
    vv += v_[c] * v_[c];
  }
  const double t = b.shape.kind == BlockKind::maximum ? central_maximum(b, mu) : 0.0;
  for (int64_t c = b.begin; c < b.end && b.has_pairs(); ++c) {
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
double ConeBlocks::central_maximum(const Block& b, double mu) const {
  double largest = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) largest = std::max(largest, std::abs(w[c]));
  double lo = mu, hi = 2.0 * mu * static_cast<double>(b.end - b.begin);
  for (int it = 0; it < kMostBisections && hi - lo > kBisectionEnd * lo; ++it) {
    const double mid = 0.5 * (lo + hi), t = largest + mid;
    double sum = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) sum += mu / (t - w[c]) + mu / (t + w[c]);
    (sum > 1.0 ? lo : hi) = mid;
  }
  return largest + hi;
}

double ConeBlocks::complementarity(double ap, double ad) const {
  double sum = 0.0;
  for (const Block& b : blocks_) {
    for (int64_t c = b.begin; c < b.end; ++c) {
      if (b.has_pairs())
        sum += (x1_[c] + ap * dx1_[c]) * (z1_[c] + ad * dz1_[c]) +
               (x2_[c] + ap * dx2_[c]) * (z2_[c] + ad * dz2_[c]);
      if (b.has_cone()) sum += (w[c] + ap * dw[c]) * (v_[c] + ad * dv_[c]);
    }
    if (b.has_cone()) sum += (b.t + ap * b.dt) * b.shape.l2;
  }
  return sum;
}

double ConeBlocks::degree() const {
  double deg = 0.0;
  for (const Block& b : blocks_)
    deg += (b.has_pairs() ? 2.0 * static_cast<double>(b.end - b.begin) : 0.0) +
           (b.has_cone() ? 1.0 : 0.0);
  return deg;
}

double ConeBlocks::max_primal_step() const {
  double a = kUnbounded;
  for (const Block& b : blocks_) {
    if (b.has_pairs())
      for (int64_t c = b.begin; c < b.end; ++c) {
        if (dx1_[c] < 0.0) a = std::min(a, -x1_[c] / dx1_[c]);
        if (dx2_[c] < 0.0) a = std::min(a, -x2_[c] / dx2_[c]);
      }
    if (b.has_cone())
      a = std::min(a,
                   cone_step(b.t, b.dt, w.data() + b.begin, dw.data() + b.begin, b.end - b.begin));
  }
  return a;
}

double ConeBlocks::max_dual_step() const {
  double a = kUnbounded;
  for (const Block& b : blocks_) {
    if (b.has_pairs())
      for (int64_t c = b.begin; c < b.end; ++c) {
        if (dz1_[c] < 0.0) a = std::min(a, -z1_[c] / dz1_[c]);
        if (dz2_[c] < 0.0) a = std::min(a, -z2_[c] / dz2_[c]);
      }
    if (b.has_cone())
      a = std::min(a, cone_step(b.shape.l2, 0.0, v_.data() + b.begin, dv_.data() + b.begin,
                                b.end - b.begin));
  }
  return a;
}

// Largest a with (t, w) + a (dt, dw) in the second-order cone: the first positive root of
// (t + a dt)^2 = |w + a dw|^2.
double ConeBlocks::cone_step(double t, double dt, const double* w, const double* dw, int64_t size) {
  double ww = 0.0, dd = 0.0, wd = 0.0;
  for (int64_t c = 0; c < size; ++c) {
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

void ConeBlocks::step(double ap, double ad) {
  for (Block& b : blocks_) {
    for (int64_t c = b.begin; c < b.end; ++c) {
      if (b.has_pairs()) {
        x1_[c] += ap * dx1_[c];
        x2_[c] += ap * dx2_[c];
        z1_[c] += ad * dz1_[c];
        z2_[c] += ad * dz2_[c];
      }
      if (b.has_cone()) v_[c] += ad * dv_[c];
      // The pairs carry W where they are alone, so that it never drifts from them.
      if (b.shape.kind == BlockKind::absolute)
        w[c] = x1_[c] - x2_[c];
      else if (b.shape.kind == BlockKind::maximum)
        w[c] = 0.5 * (x2_[c] - x1_[c]);
      else
        w[c] += ap * dw[c];
      shift[c] = (1.0 - ad) * shift[c] + (ad - ap) * b.shape.quad * dw[c];
      if (std::abs(shift[c]) < kNoShift) shift[c] = 0.0;
    }
    b.t += ap * b.dt;
  }
}

double ConeBlocks::value(const std::vector<double>& values) const {
  double total = 0.0;
  for (const Block& b : blocks_) {
    double l1 = 0.0, sq = 0.0, big = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) {
      const double a = std::abs(values[c]);
      l1 += a;
      sq += a * a;
      big = std::max(big, a);
    }
    switch (b.shape.kind) {
      case BlockKind::absolute: total += b.shape.l1 * l1 + 0.5 * b.shape.quad * sq; break;
      case BlockKind::maximum: total += big; break;
      case BlockKind::euclidean: total += b.shape.l2 * std::sqrt(sq); break;
      case BlockKind::sparse: total += b.shape.l1 * l1 + b.shape.l2 * std::sqrt(sq); break;
    }
  }
  return total;
}

double ConeBlocks::conjugate(const double* g) const {
  double total = 0.0;
  for (const Block& b : blocks_) {
    if (b.shape.quad <= 0.0) continue;
    const double over = std::max(std::abs(g[b.begin]) - b.shape.l1, 0.0);
    total += over * over / (2.0 * b.shape.quad);
  }
  return total;
}

double ConeBlocks::shift_value(double limit) const {
  double total = 0.0;
  for (const Block& b : blocks_) {
    if (b.shape.quad > 0.0) continue;
    for (int64_t c = b.begin; c < b.end; ++c) {
      if (std::abs(shift[c]) > limit) return kUnbounded;
      total += std::abs(shift[c] * w[c]);
    }
  }
  return total;
}

void ConeBlocks::sparse_weights(const double* column_scale, double threshold,
                                std::vector<double>& out) const {
  out.assign(w.begin(), w.end());
  for (const Block& b : blocks_) {
    double scale = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) scale = std::max(scale, column_scale[col[c]]);
    if (b.has_cone()) {
      double vv = 0.0;
      for (int64_t c = b.begin; c < b.end; ++c) vv += v_[c] * v_[c];
      if (b.t * scale < threshold * (1.0 - std::sqrt(vv) / b.shape.l2)) zero(b, out);
    }
    if (b.shape.kind == BlockKind::maximum) {
      double slack = 0.0, t = 0.0;
      for (int64_t c = b.begin; c < b.end; ++c) {
        slack += 2.0 * std::min(z1_[c], z2_[c]);
        t = std::max(t, 0.5 * (x1_[c] + x2_[c]));
      }
      if (t * scale < threshold * slack) zero(b, out);
    } else if (b.has_pairs()) {
      for (int64_t c = b.begin; c < b.end; ++c)
        if (std::max(x1_[c], x2_[c]) * scale < threshold * std::min(z1_[c], z2_[c]) / b.shape.l1)
          out[c] = 0.0;
    }
  }
}

void ConeBlocks::subtract_held(double* dg) const {
  for (const Block& b : blocks_)
    for (int64_t c = b.begin; c < b.end; ++c) {
      dg[c] += shift[c];
      if (b.has_cone()) dg[c] -= v_[c];
      if (b.shape.kind == BlockKind::maximum)
        dg[c] -= z2_[c] - z1_[c];
      else if (b.has_pairs())
        dg[c] -= 0.5 * (z1_[c] - z2_[c]) - b.shape.quad * w[c];
    }
}

}  // namespace sparsvm
