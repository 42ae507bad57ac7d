// Points of the cone blocks: where they enter, how far they may go, what they are worth.
#include "penalty/cone_blocks.hpp"

namespace sparsvm {

namespace {

// use(the cones of the block's norm).
template <typename Use>
decltype(auto) with_cone(const ConeBlock& b, Use use) {
  return with_norm(b.shape.norm, [&](auto norm) {
    using Norm = decltype(norm);
    if constexpr (requires { typename Norm::MixedCone; })
      if (b.shape.absolute > 0.0) return use(typename Norm::MixedCone());
    return use(typename Norm::Cone());
  });
}

}  // namespace

void ConeBlocks::add(const BlockShape& general, int64_t count, const int32_t* cols,
                     const int32_t* classes, const double* g, const double* shifts, double mu,
                     const double* weights, bool known) {
  ConeBlock blk;
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
  with_cone(blk, [&](auto cone) {
    blk.pairs = cone.kPairs;
    blk.cone = cone.kCone;
    cone.enter(*this, blk, inside.data(), mu);
    if (!weights) return;
    // The primal part is replaced by the weights, with the slacks that belong to them on the central path.
    std::copy_n(weights, count, w.begin() + blk.begin);
    cone.move_to(*this, blk, mu, known);
    // The slacks of a curved block stand for G + quad*W; they were set for W = 0.
    for (int64_t c = blk.begin; c < blk.end; ++c) shift[c] -= blk.shape.quad * w[c];
  });
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
    ConeBlock b = blocks_[i];
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

double ConeBlocks::complementarity(double ap, double ad) const {
  double sum = 0.0;
  for (const ConeBlock& b : blocks_) {
    for (int64_t c = b.begin; c < b.end; ++c) {
      if (b.pairs)
        sum += (x1[c] + ap * dx1[c]) * (z1[c] + ad * dz1[c]) +
               (x2[c] + ap * dx2[c]) * (z2[c] + ad * dz2[c]);
      if (b.cone) sum += (w[c] + ap * dw[c]) * (v[c] + ad * dv[c]);
    }
    if (b.cone) sum += (b.t + ap * b.dt) * b.shape.radius;
  }
  return sum;
}

double ConeBlocks::degree() const {
  double deg = 0.0;
  for (const ConeBlock& b : blocks_)
    deg += (b.pairs ? 2.0 * static_cast<double>(b.end - b.begin) : 0.0) + (b.cone ? 1.0 : 0.0);
  return deg;
}

double ConeBlocks::max_primal_step() const {
  double a = kUnbounded;
  for (const ConeBlock& b : blocks_) {
    if (b.pairs)
      for (int64_t c = b.begin; c < b.end; ++c) {
        if (dx1[c] < 0.0) a = std::min(a, -x1[c] / dx1[c]);
        if (dx2[c] < 0.0) a = std::min(a, -x2[c] / dx2[c]);
      }
    if (b.cone)
      a = std::min(a,
                   cone_step(b.t, b.dt, w.data() + b.begin, dw.data() + b.begin, b.end - b.begin));
  }
  return a;
}

double ConeBlocks::max_dual_step() const {
  double a = kUnbounded;
  for (const ConeBlock& b : blocks_) {
    if (b.pairs)
      for (int64_t c = b.begin; c < b.end; ++c) {
        if (dz1[c] < 0.0) a = std::min(a, -z1[c] / dz1[c]);
        if (dz2[c] < 0.0) a = std::min(a, -z2[c] / dz2[c]);
      }
    if (b.cone)
      a = std::min(a, cone_step(b.shape.radius, 0.0, v.data() + b.begin, dv.data() + b.begin,
                                b.end - b.begin));
  }
  return a;
}

void ConeBlocks::step(double ap, double ad) {
  for (ConeBlock& b : blocks_) {
    with_cone(b, [&](auto cone) {
      for (int64_t c = b.begin; c < b.end; ++c) {
        if (cone.kPairs) {
          x1[c] += ap * dx1[c];
          x2[c] += ap * dx2[c];
          z1[c] += ad * dz1[c];
          z2[c] += ad * dz2[c];
        }
        if (cone.kCone) v[c] += ad * dv[c];
        w[c] = cone.weight(*this, c, ap);
        shift[c] = (1.0 - ad) * shift[c] + (ad - ap) * b.shape.quad * dw[c];
        if (std::abs(shift[c]) < kNoShift) shift[c] = 0.0;
      }
    });
    b.t += ap * b.dt;
  }
}

double ConeBlocks::value(const std::vector<double>& values) const {
  double total = 0.0;
  for (const ConeBlock& b : blocks_) {
    double sum = 0.0, squares = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) {
      sum += std::abs(values[c]);
      squares += values[c] * values[c];
    }
    const double norm = with_norm(b.shape.norm, [&](auto kind) {
      return norm_of<decltype(kind)>([&](auto visit) {
        for (int64_t c = b.begin; c < b.end; ++c) visit(std::abs(values[c]));
      });
    });
    total += b.shape.absolute * sum + b.shape.radius * norm + 0.5 * b.shape.quad * squares;
  }
  return total;
}

double ConeBlocks::conjugate(const double* g) const {
  double total = 0.0;
  for (const ConeBlock& b : blocks_) {
    if (b.shape.quad <= 0.0) continue;
    const double over = std::max(std::abs(g[b.begin]) - b.shape.radius, 0.0);
    total += over * over / (2.0 * b.shape.quad);
  }
  return total;
}

double ConeBlocks::shift_value(double limit) const {
  double total = 0.0;
  for (const ConeBlock& b : blocks_) {
    if (b.shape.quad > 0.0) continue;
    for (int64_t c = b.begin; c < b.end; ++c) {
      if (std::abs(shift[c]) > limit) return kUnbounded;
      total += std::abs(shift[c] * w[c]);
    }
  }
  return total;
}

void ConeBlocks::sparse_weights(const double* column_scale, std::vector<double>& out) const {
  out.assign(w.begin(), w.end());
  for (const ConeBlock& b : blocks_) {
    double scale = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) scale = std::max(scale, column_scale[col[c]]);
    with_cone(b, [&](auto cone) { cone.set_zeros(*this, b, scale, out.data()); });
  }
}

void ConeBlocks::subtract_held(double* dg) const {
  for (const ConeBlock& b : blocks_)
    with_cone(b, [&](auto cone) {
      for (int64_t c = b.begin; c < b.end; ++c)
        dg[c] = cone.without_dual(*this, b, c, dg[c] + shift[c]);
    });
}

void ConeBlocks::compute_scaling() {
  for (ConeBlock& b : blocks_) {
    b.kappa = 0.0;
    with_cone(b, [&](auto cone) { cone.scale(*this, b); });
  }
}

void ConeBlocks::compute_rhs(double tau) {
  for (ConeBlock& b : blocks_) {
    if (b.pairs)
      for (int64_t c = b.begin; c < b.end; ++c) {
        c1[c] = tau - x1[c] * z1[c] + term1[c];
        c2[c] = tau - x2[c] * z2[c] + term2[c];
      }
    with_cone(b, [&](auto cone) { cone.rhs(*this, b, tau); });
  }
}

void ConeBlocks::recover(const double* dg) {
  for (ConeBlock& b : blocks_) {
    double along = 0.0;  // vec . dG
    for (int64_t c = b.begin; c < b.end; ++c) along += vec[c] * (dg[c] - shift[c]);
    for (int64_t c = b.begin; c < b.end; ++c)
      dw[c] = h[c] - delta[c] * (dg[c] - shift[c]) - b.kappa * along * vec[c];
    with_cone(b, [&](auto cone) { cone.recover(*this, b, dg, along); });
  }
}

// ---- the second-order cones of the blocks, and the second-order terms of directions ----

void ConeState::scale_cone(ConeBlock& b) {
  double ww = 0.0, vv = 0.0, wv = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    ww += w[c] * w[c];
    vv += v[c] * v[c];
    wv += w[c] * v[c];
  }
  const double nw = std::sqrt(ww), nv = std::sqrt(vv), radius = b.shape.radius;
  const double det_x = std::max((b.t - nw) * (b.t + nw), kLeastDeterminant * b.t * b.t);
  const double det_s = std::max((radius - nv) * (radius + nv), kLeastDeterminant * radius * radius);
  const double rx = 1.0 / std::sqrt(det_x), rs = 1.0 / std::sqrt(det_s);
  const double twice_gamma = 2.0 * std::sqrt(0.5 * (1.0 + (b.t * radius + wv) * rx * rs));
  b.eta2 = std::sqrt(det_x / det_s);
  b.w0 = (b.t * rx + radius * rs) / twice_gamma;
  for (int64_t c = b.begin; c < b.end; ++c) {
    w1[c] = (w[c] * rx - v[c] * rs) / twice_gamma;
    vec[c] = w1[c];
  }
}

// T q = -x + T (lambda^-1 o (tau e + terms)), with lambda = T s = T^-1 x.
void ConeState::rhs_cone(ConeBlock& b, double tau) {
  const double eta = std::sqrt(b.eta2), radius = b.shape.radius, w0 = b.w0;
  const double w1v = dot(b, w1, v), r0 = tau + b.term0;
  const double l0 = b.l0 = eta * (w0 * radius + w1v);
  double l1r1 = 0.0, ll = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    l[c] = eta * (w1[c] * radius + v[c] + w1[c] * w1v / (1.0 + w0));
    ll += l[c] * l[c];
    l1r1 += l[c] * term[c];
  }
  const double nl = std::sqrt(ll),
               det = std::max((l0 - nl) * (l0 + nl), kLeastDeterminant * l0 * l0);
  const double q0 = (l0 * r0 - l1r1) / det;
  double w1q = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    a2[c] = (term[c] - q0 * l[c]) / l0;
    w1q += w1[c] * a2[c];
  }
  b.ht = eta * (w0 * q0 + w1q) - b.t;
  for (int64_t c = b.begin; c < b.end; ++c)
    a2[c] = eta * (w1[c] * q0 + a2[c] + w1[c] * w1q / (1.0 + w0)) - w[c];
}

double ConeState::cone_radius_direction(const ConeBlock& b) const {
  double ss = 0.0, along = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    ss += w1[c] * w1[c];
    along += w1[c] * (a2[c] - dw[c]);
  }
  return b.ht - 2.0 * b.w0 * along / (1.0 + 2.0 * ss);
}

// The directions of a cone where its point and its dual are the same l: T^-1 dx and T ds.
void ConeState::scale_directions(ConeBlock& b) {
  const double eta = std::sqrt(b.eta2), w0 = b.w0;
  const double w1dv = dot(b, w1, dv), w1dw = dot(b, w1, dw);
  b.dx0 = (w0 * b.dt - w1dw) / eta;
  b.ds0 = eta * w1dv;
  for (int64_t c = b.begin; c < b.end; ++c) {
    sdx[c] = (dw[c] - w1[c] * b.dt + w1[c] * w1dw / (1.0 + w0)) / eta;
    sds[c] = eta * (dv[c] + w1[c] * w1dv / (1.0 + w0));
  }
}

// Largest a with (t, w) + a (dt, dw) in the second-order cone: the first positive root of
// (t + a dt)^2 = |w + a dw|^2.
double ConeState::cone_step(double t, double dt, const double* w, const double* dw, int64_t size) {
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

void ConeBlocks::keeping_weight(std::vector<char>& out) const {
  out.assign(blocks_.size(), 0);
  for (std::size_t a = 0; a < blocks_.size(); ++a) {
    const ConeBlock& b = blocks_[a];
    for (int64_t c = b.begin; c < b.end && b.pairs; ++c)
      if (dz1[c] * x1[c] < dx1[c] * z1[c] || dz2[c] * x2[c] < dx2[c] * z2[c]) out[a] = 1;
    if (b.pairs) continue;
    double vv = 0.0, along = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) {
      vv += v[c] * v[c];
      along += v[c] * dv[c];
    }
    const double norm = std::sqrt(vv);
    out[a] = -along * b.t < b.dt * (b.shape.radius - norm) * norm;
  }
}

void ConeBlocks::clear_terms() {
  for (auto* terms : {&term1, &term2, &term}) std::fill(terms->begin(), terms->end(), 0.0);
  for (ConeBlock& b : blocks_) b.term0 = 0.0;
}

void ConeBlocks::second_order_terms() {
  for (ConeBlock& b : blocks_) {
    for (int64_t c = b.begin; c < b.end && b.pairs; ++c) {
      term1[c] = -dx1[c] * dz1[c];
      term2[c] = -dx2[c] * dz2[c];
    }
    if (!b.cone) continue;
    scale_directions(b);
    b.term0 = -b.dx0 * b.ds0;
    for (int64_t c = b.begin; c < b.end; ++c) {
      b.term0 -= sdx[c] * sds[c];
      term[c] = -(b.dx0 * sds[c] + b.ds0 * sdx[c]);
    }
  }
}

}  // namespace sparsvm
