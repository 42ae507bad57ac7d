// What the right-hand sides of the blocks declared in penalty_blocks.hpp hold besides the target:
// second-order terms and Gondzio's centrality corrections.
#pragma once

#include "penalty/cone_blocks.hpp"

namespace sparsvm {

inline void PenaltyBlocks::clear_terms() {
  for (auto* terms : {&term1_, &term2_, &term_}) std::fill(terms->begin(), terms->end(), 0.0);
  for (Block& b : blocks_) b.term0 = 0.0;
}

// The directions of a cone where its point and its dual are the same l: T^-1 dx and T ds.
inline void PenaltyBlocks::scale_directions(Block& b) {
  const double eta = std::sqrt(b.eta2), w0 = b.w0;
  const double w1dv = dot_w1(b, dv_), w1dw = dot_w1(b, dw);
  b.dx0 = (w0 * b.dt - w1dw) / eta;
  b.ds0 = eta * w1dv;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
    sdx_[c] = (dw[c] - w1_[c] * b.dt + w1_[c] * w1dw / (1.0 + w0)) / eta;
    sds_[c] = eta * (dv_[c] + w1_[c] * w1dv / (1.0 + w0));
  }
}

inline void PenaltyBlocks::second_order_terms() {
  for (Block& b : blocks_) {
    for (std::int64_t c = b.begin; c < b.end && b.has_pairs(); ++c) {
      term1_[c] = -dx1_[c] * dz1_[c];
      term2_[c] = -dx2_[c] * dz2_[c];
    }
    if (!b.has_cone()) continue;
    scale_directions(b);
    b.term0 = -b.dx0 * b.ds0;
    for (std::int64_t c = b.begin; c < b.end; ++c) {
      b.term0 -= sdx_[c] * sds_[c];
      term_[c] = -(b.dx0 * sds_[c] + b.ds0 * sdx_[c]);
    }
  }
}

inline void PenaltyBlocks::add_centring_terms(double ap, double ad, double low, double high) {
  for (Block& b : blocks_) {
    for (std::int64_t c = b.begin; c < b.end && b.has_pairs(); ++c) {
      const double product1 = (x1_[c] + ap * dx1_[c]) * (z1_[c] + ad * dz1_[c]);
      const double product2 = (x2_[c] + ap * dx2_[c]) * (z2_[c] + ad * dz2_[c]);
      term1_[c] += centring_term(product1, low, high);
      term2_[c] += centring_term(product2, low, high);
    }
    if (b.has_cone()) add_cone_centring(b, ap, ad, low, high);
  }
}

// The product of a cone is a vector (p0, p); its eigenvalues p0 +- |p| are what should be alike.
inline void PenaltyBlocks::add_cone_centring(Block& b, double ap, double ad, double low,
                                             double high) {
  scale_directions(b);
  const double x0 = b.l0 + ap * b.dx0, s0 = b.l0 + ad * b.ds0;
  double p0 = x0 * s0, pp = 0.0;
  for (std::int64_t c = b.begin; c < b.end; ++c) {
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
  for (std::int64_t c = b.begin; c < b.end; ++c) term_[c] += along * a1_[c];
}

inline void PenaltyBlocks::save_directions() {
  saved_ = {dw, dx1_, dx2_, dv_, dz1_, dz2_};
  for (Block& b : blocks_) b.saved_dt = b.dt;
}

inline void PenaltyBlocks::restore_directions(bool primal, bool dual) {
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
