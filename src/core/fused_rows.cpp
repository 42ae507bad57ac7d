#include "fused_rows.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sparsvm {

namespace {

constexpr int lanes = FusedRows::lanes, packs = lanes / 4;

/// The features with weights: only they have a share in the scores.
struct Active {
  std::int64_t count = 0;
  std::int32_t features[FusedRows::most_features];
};

/// The arrays of one block of samples.
struct Block {
  const double *X, *lift, *own, *mass;
  double* tilde;
};

/// s <- intercept + X W.
template <int K>
SPARSVM_INLINE void take_scores(const double* __restrict X, const Active& active,
                                const double* __restrict W, const double* __restrict b,
                                Pack (&s)[K][packs]) {
  for (int k = 0; k < K; ++k) {
    for (int p = 0; p < packs; ++p) s[k][p] = Pack{} + b[k];
  }
  for (std::int64_t a = 0; a < active.count; ++a) {
    const std::int64_t j = active.features[a];
    Pack x[packs];
    for (int p = 0; p < packs; ++p) x[p] = SPARSVM_LOAD(X + j * lanes + 4 * p);
    for (int k = 0; k < K; ++k) {
      for (int p = 0; p < packs; ++p) s[k][p] += x[p] * W[j * K + k];
    }
  }
}

/// The dual step of four samples, from their scores in s[.][p] to their Ỹ, there and in memory.
template <int K>
SPARSVM_INLINE void step_dual(const Block& block, double sigma, int p, Pack (&s)[K][packs],
                              Pack (&totals)[K]) {
  Pack moved[K], sorted[K], theta;
  for (int k = 0; k < K; ++k) {
    const std::int64_t e = k * lanes + 4 * p;
    moved[k] = SPARSVM_LOAD(block.tilde + e) + (SPARSVM_LOAD(block.lift + e) + s[k][p] * sigma);
    sorted[k] = moved[k];
  }
  simplex_root<K>(sorted, SPARSVM_LOAD(block.mass + 4 * p), theta);
  for (int k = 0; k < K; ++k) {
    const std::int64_t e = k * lanes + 4 * p;
    Pack y = (moved[k] - sorted[0]) - theta;
    keep_positive(y);
    y = y - SPARSVM_LOAD(block.own + e);
    SPARSVM_STORE(block.tilde + e, y);
    totals[k] += y;
    s[k][p] = y;
  }
}

/// partial += XᵀỸ, the lanes of a pack kept apart.
template <int K>
SPARSVM_INLINE void add_gradient(const double* __restrict X, std::int64_t d,
                                 const Pack (&y)[K][packs], double* __restrict partial) {
  for (std::int64_t j = 0; j < d; ++j) {
    Pack x[packs];
    for (int p = 0; p < packs; ++p) x[p] = SPARSVM_LOAD(X + j * lanes + 4 * p);
    for (int k = 0; k < K; ++k) {
      Pack sum = x[0] * y[k][0];
      for (int p = 1; p < packs; ++p) sum += x[p] * y[k][p];
      double* to = partial + 4 * (j * K + k);
      SPARSVM_STORE(to, SPARSVM_LOAD(to) + sum);
    }
  }
}

/// Written out for every pack, so that what they hold need not go through memory.
template <int K, std::size_t... p>
SPARSVM_INLINE void step_duals(const Block& block, double sigma, Pack (&s)[K][packs],
                               Pack (&totals)[K], std::index_sequence<p...>) {
  (step_dual<K>(block, sigma, p, s, totals), ...);
}

/// All blocks of samples.
struct Blocks {
  std::int64_t count, features;
  const double *X, *mass;
  double* partial;
};

template <int K>
SPARSVM_INLINE void pass_of(const Blocks& blocks, const FusedRows::Pass& pass) {
  const std::int64_t d = blocks.features;
  std::fill(blocks.partial, blocks.partial + 4 * d * K, 0.0);
  Pack totals[K] = {};
  Active active;
  for (std::int64_t j = 0; j < d; ++j) {
    bool used = false;
    for (int k = 0; k < K; ++k) used |= pass.weights[j * K + k] != 0.0;
    active.features[active.count] = static_cast<std::int32_t>(j);
    active.count += used;
  }
  for (std::int64_t at = 0; at < blocks.count; ++at) {
    const std::int64_t row = at * K * lanes;
    const Block block{blocks.X + at * d * lanes, pass.lift + row, pass.own + row,
                      blocks.mass + at * lanes, pass.tilde + row};
    Pack s[K][packs];
    take_scores<K>(block.X, active, pass.weights, pass.intercept, s);
    step_duals<K>(block, pass.sigma, s, totals, std::make_index_sequence<packs>{});
    add_gradient<K>(block.X, d, s, blocks.partial);
  }
  for (std::int64_t e = 0; e < d * K; ++e) {
    pass.gradient[e] = sum_of(SPARSVM_LOAD(blocks.partial + 4 * e));
  }
  for (int k = 0; k < K; ++k) pass.sums[k] = sum_of(totals[k]);
}

SPARSVM_CLONED void pass_over(std::int64_t outputs, const Blocks& blocks,
                              const FusedRows::Pass& pass) {
  switch (outputs) {
    case 3: return pass_of<3>(blocks, pass);
    case 4: return pass_of<4>(blocks, pass);
    case 5: return pass_of<5>(blocks, pass);
    case 6: return pass_of<6>(blocks, pass);
    case 7: return pass_of<7>(blocks, pass);
    case 8: return pass_of<8>(blocks, pass);
    case 9: return pass_of<9>(blocks, pass);
    case 10: return pass_of<10>(blocks, pass);
    case 11: return pass_of<11>(blocks, pass);
    case 12: return pass_of<12>(blocks, pass);
    default: return;
  }
}

}  // namespace

bool FusedRows::suits(const Design& X, std::int64_t outputs) {
  return !X.sparse() && outputs >= 3 && outputs <= most_outputs && X.d() <= most_features &&
         X.n() * X.d() <= most_entries;
}

FusedRows::FusedRows(const Design& X, std::int64_t outputs, const double* mass)
    : blocks_((X.n() + lanes - 1) / lanes), features_(X.d()), outputs_(outputs),
      X_(blocks_ * lanes * X.d()), mass_(static_cast<std::size_t>(blocks_ * lanes)),
      partial_(4 * X.d() * outputs) {
  std::copy(mass, mass + X.n(), mass_.begin());
  std::vector<std::int32_t> features(static_cast<std::size_t>(X.d()));
  std::iota(features.begin(), features.end(), 0);
  Workspace columns(X.n() * X.d());
  X.gather_columns(features.data(), X.d(), columns.data());
  std::fill(X_.data(), X_.data() + blocks_ * lanes * X.d(), 0.0);
  for (std::int64_t j = 0; j < X.d(); ++j) {
    for (std::int64_t i = 0; i < X.n(); ++i) {
      X_.data()[(i / lanes * X.d() + j) * lanes + i % lanes] = columns.data()[j * X.n() + i];
    }
  }
}

void FusedRows::run(const Pass& pass) {
  pass_over(outputs_, {blocks_, features_, X_.data(), mass_.data(), partial_.data()}, pass);
}

}  // namespace sparsvm
