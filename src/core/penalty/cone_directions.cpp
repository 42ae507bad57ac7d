// Newton directions of the cone blocks: scalings, right-hand sides, second-order terms.
#include "penalty/cone_blocks.hpp"

namespace sparsvm {

void ConeBlocks::compute_scaling() {
  for (Block& b : blocks_) {
    b.kappa = 0.0;
    switch (b.shape.kind) {
      case BlockKind::absolute: {
        const int64_t c = b.begin;
        const double d1 = pair_scaling(c);
        delta[c] = d1 / (1.0 + b.shape.quad * d1);
        break;
      }
      case BlockKind::maximum: scale_maximum(b); break;
      case BlockKind::euclidean:
        scale_cone(b);
        for (int64_t c = b.begin; c < b.end; ++c) delta[c] = b.eta2;
        b.kappa = 2.0 * b.eta2;
        break;
      case BlockKind::sparse:
        scale_cone(b);
        scale_sparse(b);
        break;
    }
  }
}

void ConeBlocks::scale_maximum(Block& b) {
  double curvature = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    const double a = z1_[c] / x1_[c], bb = z2_[c] / x2_[c];
    delta[c] = 1.0 / (a + bb);
    vec[c] = (a - bb) * delta[c];
    curvature += 4.0 * a * bb * delta[c];
  }
  b.kappa = 1.0 / curvature;
}

void ConeBlocks::scale_cone(Block& b) {
  double ww = 0.0, vv = 0.0, wv = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    ww += w[c] * w[c];
    vv += v_[c] * v_[c];
    wv += w[c] * v_[c];
  }
  const double nw = std::sqrt(ww), nv = std::sqrt(vv), radius = b.shape.l2;
  const double det_x = std::max((b.t - nw) * (b.t + nw), kLeastDeterminant * b.t * b.t);
  const double det_s = std::max((radius - nv) * (radius + nv), kLeastDeterminant * radius * radius);
  const double rx = 1.0 / std::sqrt(det_x), rs = 1.0 / std::sqrt(det_s);
  const double twice_gamma = 2.0 * std::sqrt(0.5 * (1.0 + (b.t * radius + wv) * rx * rs));
  b.eta2 = std::sqrt(det_x / det_s);
  b.w0 = (b.t * rx + radius * rs) / twice_gamma;
  for (int64_t c = b.begin; c < b.end; ++c) {
    w1_[c] = (w[c] * rx - v_[c] * rs) / twice_gamma;
    vec[c] = w1_[c];
  }
}

// D = (D1^-1 + D2^-1)^-1 with D1 the diagonal of the pairs and D2 = eta2 (I + 2 w1 w1'); written so
// that nothing cancels.
void ConeBlocks::scale_sparse(Block& b) {
  double weighted = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    const double d1 = pair_scaling(c);
    delta[c] = d1 * (b.eta2 / (d1 + b.eta2));
    vec[c] = delta[c] * w1_[c];
    weighted += w1_[c] * w1_[c] * (b.eta2 / (d1 + b.eta2));
  }
  b.kappa = (2.0 / b.eta2) / (1.0 + 2.0 * weighted);
}

void ConeBlocks::compute_rhs(double tau) {
  for (Block& b : blocks_) {
    if (b.has_pairs())
      for (int64_t c = b.begin; c < b.end; ++c) {
        c1_[c] = tau - x1_[c] * z1_[c] + term1_[c];
        c2_[c] = tau - x2_[c] * z2_[c] + term2_[c];
      }
    switch (b.shape.kind) {
      case BlockKind::absolute: {
        const int64_t c = b.begin;
        h[c] = (c1_[c] / z1_[c] - c2_[c] / z2_[c]) / (1.0 + b.shape.quad * pair_scaling(c));
        break;
      }
      case BlockKind::maximum: rhs_maximum(b); break;
      case BlockKind::euclidean:
        rhs_cone(b, tau);
        for (int64_t c = b.begin; c < b.end; ++c) h[c] = a2_[c];
        break;
      case BlockKind::sparse:
        rhs_cone(b, tau);
        rhs_sparse(b);
        break;
    }
  }
}

void ConeBlocks::rhs_maximum(Block& b) {
  double sum = 0.0, mass = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    const double f1 = c1_[c] / x1_[c], f2 = c2_[c] / x2_[c];
    sum += f1 + f2 + vec[c] * (f2 - f1);
    mass += z1_[c] + z2_[c];
  }
  b.ht = b.kappa * (sum - (1.0 - mass));
  for (int64_t c = b.begin; c < b.end; ++c)
    h[c] = (c2_[c] / x2_[c] - c1_[c] / x1_[c]) * delta[c] + vec[c] * b.ht;
}

// T q = -x + T (lambda^-1 o (tau e + terms)), with lambda = T s = T^-1 x.
void ConeBlocks::rhs_cone(Block& b, double tau) {
  const double eta = std::sqrt(b.eta2), radius = b.shape.l2, w0 = b.w0;
  const double w1v = dot_w1(b, v_), r0 = tau + b.term0;
  const double l0 = b.l0 = eta * (w0 * radius + w1v);
  double l1r1 = 0.0, ll = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    l_[c] = eta * (w1_[c] * radius + v_[c] + w1_[c] * w1v / (1.0 + w0));
    ll += l_[c] * l_[c];
    l1r1 += l_[c] * term_[c];
  }
  const double nl = std::sqrt(ll),
               det = std::max((l0 - nl) * (l0 + nl), kLeastDeterminant * l0 * l0);
  const double q0 = (l0 * r0 - l1r1) / det;
  double w1q = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    a2_[c] = (term_[c] - q0 * l_[c]) / l0;
    w1q += w1_[c] * a2_[c];
  }
  b.ht = eta * (w0 * q0 + w1q) - b.t;
  for (int64_t c = b.begin; c < b.end; ++c)
    a2_[c] = eta * (w1_[c] * q0 + a2_[c] + w1_[c] * w1q / (1.0 + w0)) - w[c];
}

void ConeBlocks::rhs_sparse(Block& b) {
  double ss = 0.0, w1a = dot_w1(b, a2_), along = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) ss += w1_[c] * w1_[c];
  const double f = 2.0 * w1a / (1.0 + 2.0 * ss);
  for (int64_t c = b.begin; c < b.end; ++c) {
    a1_[c] = c1_[c] / z1_[c] - c2_[c] / z2_[c];
    h[c] = a1_[c] / pair_scaling(c) + (a2_[c] - f * w1_[c]) / b.eta2;
    along += vec[c] * h[c];
  }
  for (int64_t c = b.begin; c < b.end; ++c) h[c] = delta[c] * h[c] + b.kappa * along * vec[c];
}

void ConeBlocks::recover(const double* dg) {
  for (Block& b : blocks_) {
    double along = 0.0;  // vec . dG
    for (int64_t c = b.begin; c < b.end; ++c) along += vec[c] * (dg[c] - shift[c]);
    for (int64_t c = b.begin; c < b.end; ++c)
      dw[c] = h[c] - delta[c] * (dg[c] - shift[c]) - b.kappa * along * vec[c];
    switch (b.shape.kind) {
      case BlockKind::absolute: {
        const int64_t c = b.begin;
        pair_directions(c, dg[c] - shift[c] + b.shape.quad * dw[c]);
        break;
      }
      case BlockKind::maximum:
        b.dt = b.ht - b.kappa * along;
        for (int64_t c = b.begin; c < b.end; ++c) maximum_directions(b, c, dg[c] - shift[c]);
        break;
      case BlockKind::euclidean:
        for (int64_t c = b.begin; c < b.end; ++c) dv_[c] = dg[c] - shift[c];
        b.dt = cone_radius_direction(b);
        break;
      case BlockKind::sparse:
        split_direction(b, dg);
        b.dt = cone_radius_direction(b);
        break;
    }
  }
}

void ConeBlocks::pair_directions(int64_t c, double dz) {
  dz1_[c] = dz;
  dz2_[c] = -dz;
  dx1_[c] = (c1_[c] - x1_[c] * dz) / z1_[c];
  dx2_[c] = (c2_[c] + x2_[c] * dz) / z2_[c];
}

void ConeBlocks::maximum_directions(const Block& b, int64_t c, double dg) {
  if (x1_[c] < x2_[c]) {
    dz2_[c] = (c2_[c] - z2_[c] * (b.dt + dw[c])) / x2_[c];
    dz1_[c] = dz2_[c] - dg;
    dx1_[c] = (c1_[c] - x1_[c] * dz1_[c]) / z1_[c];
    dx2_[c] = 2.0 * b.dt - dx1_[c];
  } else {
    dz1_[c] = (c1_[c] - z1_[c] * (b.dt - dw[c])) / x1_[c];
    dz2_[c] = dz1_[c] + dg;
    dx2_[c] = (c2_[c] - x2_[c] * dz2_[c]) / z2_[c];
    dx1_[c] = 2.0 * b.dt - dx2_[c];
  }
}

double ConeBlocks::cone_radius_direction(const Block& b) const {
  double ss = 0.0, along = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    ss += w1_[c] * w1_[c];
    along += w1_[c] * (a2_[c] - dw[c]);
  }
  return b.ht - 2.0 * b.w0 * along / (1.0 + 2.0 * ss);
}

// Splits dG = du + dv between the pairs and the cone by solving (D1 + D2) du = a1 - a2 + D2 dG with
// D2 = eta2 (I + 2 w1 w1'). Reading du off dw = a1 - D1 du instead cancels where D1 is tiny, which
// stalled the iterations at a relative gap of 1e-7.
void ConeBlocks::split_direction(Block& b, const double* dg) {
  double top = 0.0, bottom = 1.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    const double d1 = pair_scaling(c), e = w1_[c] / (d1 + b.eta2);
    dv_[c] = d1 * (dg[c] - shift[c]) - a1_[c] + a2_[c];
    top += 2.0 * b.eta2 * e * dv_[c];
    bottom += 2.0 * b.eta2 * e * w1_[c];
  }
  for (int64_t c = b.begin; c < b.end; ++c) {
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

void ConeBlocks::add_response(const double* dg, int64_t known, std::vector<double>& values) const {
  for (const Block& b : blocks_) {
    if (b.end > known) break;
    double along = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) along += vec[c] * dg[c];
    for (int64_t c = b.begin; c < b.end; ++c)
      if (values[c] != 0.0) values[c] -= delta[c] * dg[c] + b.kappa * along * vec[c];
  }
}

void ConeBlocks::keeping_weight(std::vector<char>& out) const {
  out.assign(blocks_.size(), 0);
  for (std::size_t a = 0; a < blocks_.size(); ++a) {
    const Block& b = blocks_[a];
    for (int64_t c = b.begin; c < b.end && b.has_pairs(); ++c)
      if (dz1_[c] * x1_[c] < dx1_[c] * z1_[c] || dz2_[c] * x2_[c] < dx2_[c] * z2_[c]) out[a] = 1;
    if (b.shape.kind != BlockKind::euclidean) continue;
    double vv = 0.0, along = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) {
      vv += v_[c] * v_[c];
      along += v_[c] * dv_[c];
    }
    const double norm = std::sqrt(vv);
    out[a] = -along * b.t < b.dt * (b.shape.l2 - norm) * norm;
  }
}

void ConeBlocks::clear_terms() {
  for (auto* terms : {&term1_, &term2_, &term_}) std::fill(terms->begin(), terms->end(), 0.0);
  for (Block& b : blocks_) b.term0 = 0.0;
}

void ConeBlocks::second_order_terms() {
  for (Block& b : blocks_) {
    for (int64_t c = b.begin; c < b.end && b.has_pairs(); ++c) {
      term1_[c] = -dx1_[c] * dz1_[c];
      term2_[c] = -dx2_[c] * dz2_[c];
    }
    if (!b.has_cone()) continue;
    scale_directions(b);
    b.term0 = -b.dx0 * b.ds0;
    for (int64_t c = b.begin; c < b.end; ++c) {
      b.term0 -= sdx_[c] * sds_[c];
      term_[c] = -(b.dx0 * sds_[c] + b.ds0 * sdx_[c]);
    }
  }
}

// The directions of a cone where its point and its dual are the same l: T^-1 dx and T ds.
void ConeBlocks::scale_directions(Block& b) {
  const double eta = std::sqrt(b.eta2), w0 = b.w0;
  const double w1dv = dot_w1(b, dv_), w1dw = dot_w1(b, dw);
  b.dx0 = (w0 * b.dt - w1dw) / eta;
  b.ds0 = eta * w1dv;
  for (int64_t c = b.begin; c < b.end; ++c) {
    sdx_[c] = (dw[c] - w1_[c] * b.dt + w1_[c] * w1dw / (1.0 + w0)) / eta;
    sds_[c] = eta * (dv_[c] + w1_[c] * w1dv / (1.0 + w0));
  }
}

void ConeBlocks::add_centring_terms(double ap, double ad, double low, double high) {
  for (Block& b : blocks_) {
    for (int64_t c = b.begin; c < b.end && b.has_pairs(); ++c) {
      const double product1 = (x1_[c] + ap * dx1_[c]) * (z1_[c] + ad * dz1_[c]);
      const double product2 = (x2_[c] + ap * dx2_[c]) * (z2_[c] + ad * dz2_[c]);
      term1_[c] += centring_term(product1, low, high);
      term2_[c] += centring_term(product2, low, high);
    }
    if (b.has_cone()) add_cone_centring(b, ap, ad, low, high);
  }
}

// The product of a cone is a vector (p0, p); its eigenvalues p0 +- |p| are what should be alike.
void ConeBlocks::add_cone_centring(Block& b, double ap, double ad, double low, double high) {
  scale_directions(b);
  const double x0 = b.l0 + ap * b.dx0, s0 = b.l0 + ad * b.ds0;
  double p0 = x0 * s0, pp = 0.0;
  for (int64_t c = b.begin; c < b.end; ++c) {
    const double x = l_[c] + ap * sdx_[c], s = l_[c] + ad * sds_[c];
    p0 += x * s;
    a1_[c] = x0 * s + s0 * x;
    pp += a1_[c] * a1_[c];
  }
  const double norm = std::sqrt(pp);
  const double above = centring_term(p0 + norm, low, high);
  const double below = centring_term(p0 - norm, low, high);
  b.term0 += 0.5 * (above + below);
  if (norm == 0.0) return;
  const double along = 0.5 * (above - below) / norm;
  for (int64_t c = b.begin; c < b.end; ++c) term_[c] += along * a1_[c];
}

void ConeBlocks::save_directions() {
  saved_ = {dw, dx1_, dx2_, dv_, dz1_, dz2_};
  for (Block& b : blocks_) b.saved_dt = b.dt;
}

void ConeBlocks::restore_directions(bool primal, bool dual) {
  if (primal) {
    std::swap(dw, saved_.w);
    std::swap(dx1_, saved_.x1);
    std::swap(dx2_, saved_.x2);
    for (Block& b : blocks_) b.dt = b.saved_dt;
  }
  if (dual) {
    std::swap(dv_, saved_.v);
    std::swap(dz1_, saved_.z1);
    std::swap(dz2_, saved_.z2);
  }
}

}  // namespace sparsvm
