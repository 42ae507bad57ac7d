// The dual step of fbpd: many rows at once, which for few classes have a length known beforehand.
#pragma once

#include <cstdint>

#include "simplex_root.hpp"

namespace sparsvm {

/// What moves and what stays in the dual step of `n` samples; all matrices n x K, row-major.
struct DualRows {
  std::int64_t n, outputs;
  const double* scores;
  const double* intercept;  // K
  const double* lift;       // σ·margins + mass on the true class
  const double* own;        // mass on the true class
  const double* mass;       // n
  double sigma;
  double* tilde;  // Ỹ, changed in place
  double* sums;   // K, the new column sums of Ỹ
  double* work;   // dual_rows_work(K)
};

/// Rows of any length that are treated together.
inline constexpr int long_lanes = 8;

constexpr std::int64_t dual_rows_work(std::int64_t outputs) { return 2 * long_lanes * outputs; }

namespace detail {

/// Rows that are treated together: several packs hide each other's waiting.
inline constexpr int dual_lanes = 24;

/// The projection on the simplex {u_0 + u_1 = p} is a clipping of u_1, the only output.
SPARSVM_INLINE void dual_clip(const DualRows& rows) {
  const double* __restrict s = rows.scores;
  const double* __restrict lift = rows.lift;
  const double* __restrict own = rows.own;
  const double* __restrict mass = rows.mass;
  double* __restrict tilde = rows.tilde;
  const double half = 0.5 * rows.sigma, b = rows.intercept[0];
  for (std::int64_t i = 0; i < rows.n; ++i) {
    const double moved = tilde[i] + (lift[i] + half * (s[i] + b)), p = mass[i];
    const double low = moved < 0.0 ? 0.0 : moved;
    tilde[i] = (p < low ? p : low) - own[i];
  }
  double totals[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= rows.n; i += 8) {
    for (int l = 0; l < 8; ++l) totals[l] += tilde[i + l];
  }
  for (; i < rows.n; ++i) totals[i % 8] += tilde[i];
  rows.sums[0] = 0.0;
  for (const double total : totals) rows.sums[0] += total;
}

template <int K>
SPARSVM_INLINE void dual_block(const DualRows& rows, std::int64_t first, int count,
                               const double* shift, double* totals) {
  constexpr int L = dual_lanes;
  double moved[L * K], lanes[K][L], top[L], theta[L], mass[L];
  const double* __restrict s = rows.scores + first * K;
  const double* __restrict lift = rows.lift + first * K;
  const double* __restrict own = rows.own + first * K;
  double* __restrict tilde = rows.tilde + first * K;
  const double sigma = rows.sigma;
  const int entries = count * K;
  if (count < L) {
    for (int e = 0; e < L * K; ++e) moved[e] = 0.0;
    for (int l = 0; l < L; ++l) mass[l] = 1.0;
  }
  for (int e = 0; e < entries; ++e) moved[e] = tilde[e] + (lift[e] + sigma * (s[e] + shift[e]));
  for (int l = 0; l < count; ++l) mass[l] = rows.mass[first + l];
  for (int l = 0; l < L; ++l) {
    for (int k = 0; k < K; ++k) lanes[k][l] = moved[l * K + k];
  }
  for (int l = 0; l < L; l += 4) {
    Pack v[K], root;
    for (int k = 0; k < K; ++k) v[k] = SPARSVM_LOAD(&lanes[k][l]);
    simplex_root<K>(v, SPARSVM_LOAD(mass + l), root);
    SPARSVM_STORE(theta + l, root);
    SPARSVM_STORE(top + l, v[0]);
  }
  // top + theta would lose the digits of theta, so top is taken off first.
  for (int l = 0; l < L; ++l) {
    for (int k = 0; k < K; ++k) moved[l * K + k] = (moved[l * K + k] - top[l]) - theta[l];
  }
  for (int e = 0; e < entries; ++e) {
    const double now = (moved[e] > 0.0 ? moved[e] : 0.0) - own[e];
    tilde[e] = now;
    totals[e] += now;
  }
}

template <int K>
SPARSVM_INLINE void dual_rows_of(const DualRows& rows) {
  constexpr int L = dual_lanes;
  double shift[L * K], totals[L * K] = {};
  for (int e = 0; e < L * K; ++e) shift[e] = rows.intercept[e % K];
  std::int64_t i = 0;
  for (; i + L <= rows.n; i += L) dual_block<K>(rows, i, L, shift, totals);
  if (i < rows.n) dual_block<K>(rows, i, static_cast<int>(rows.n - i), shift, totals);
  for (int k = 0; k < K; ++k) rows.sums[k] = 0.0;
  for (int l = 0; l < L; ++l) {
    for (int k = 0; k < K; ++k) rows.sums[k] += totals[l * K + k];
  }
}

/// Up to eight rows of any length. Beyond the last sample they are zero, and none of it is kept.
SPARSVM_INLINE void long_block(const DualRows& rows, std::int64_t first, int count) {
  constexpr int L = long_lanes;
  const std::int64_t K = rows.outputs;
  double* __restrict moved = rows.work;
  double* __restrict lanes = rows.work + L * K;
  double mass[L], top[L], theta[L];
  const double* __restrict b = rows.intercept;
  const double sigma = rows.sigma;
  for (int l = 0; l < L; ++l) mass[l] = l < count ? rows.mass[first + l] : 1.0;
  for (std::int64_t e = count * K; e < L * K; ++e) moved[e] = 0.0;
  for (int l = 0; l < count; ++l) {
    const std::int64_t row = (first + l) * K;
    const double* __restrict s = rows.scores + row;
    const double* __restrict lift = rows.lift + row;
    const double* __restrict tilde = rows.tilde + row;
    double* __restrict to = moved + l * K;
    for (std::int64_t k = 0; k < K; ++k) to[k] = tilde[k] + (lift[k] + sigma * (s[k] + b[k]));
  }
  for (int l = 0; l < L; ++l) top[l] = moved[l * K];
  for (std::int64_t k = 0; k < K; ++k) {
    for (int l = 0; l < L; ++l) lanes[k * L + l] = moved[l * K + k];
    for (int l = 0; l < L; ++l) top[l] = lanes[k * L + l] > top[l] ? lanes[k * L + l] : top[l];
  }
  for (std::int64_t k = 0; k < K; ++k) {
    for (int l = 0; l < L; ++l) lanes[k * L + l] -= top[l];
  }
  simplex_roots<L / 4>(lanes, L, static_cast<int>(K), mass, theta);
  for (int l = 0; l < count; ++l) {
    const std::int64_t row = (first + l) * K;
    const double* __restrict own = rows.own + row;
    const double* __restrict from = moved + l * K;
    double* __restrict tilde = rows.tilde + row;
    double* __restrict sums = rows.sums;
    const double most = top[l], root = theta[l];
    for (std::int64_t k = 0; k < K; ++k) {
      const double excess = (from[k] - most) - root;
      const double now = (excess > 0.0 ? excess : 0.0) - own[k];
      tilde[k] = now;
      sums[k] += now;
    }
  }
}

SPARSVM_INLINE void long_rows(const DualRows& rows) {
  for (std::int64_t k = 0; k < rows.outputs; ++k) rows.sums[k] = 0.0;
  for (std::int64_t i = 0; i < rows.n; i += long_lanes) {
    const std::int64_t left = rows.n - i;
    long_block(rows, i, left < long_lanes ? static_cast<int>(left) : long_lanes);
  }
}

}  // namespace detail

/// Ỹ_i <- P(Y_i + σ(scores_i + intercept + margins_i)) − own_i for all samples, P being the
/// projection on the simplex of mass_i; one output stands for two classes.
void dual_rows(const DualRows& rows);

}  // namespace sparsvm
