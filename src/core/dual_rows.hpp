// The dual step of fbpd: many rows at once, which for few classes have a length known beforehand.
#pragma once

#include <cstdint>

#include "fused_kernels.hpp"
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
  const std::int32_t* y;    // n true classes
  double sigma;
  double* tilde;              // Ỹ, changed in place
  double *threshold, *share;  // of the last projection, see fused::Pass
  double* sums;               // K, the new column sums of Ỹ
  double* work;               // dual_rows_work(K)
};

constexpr std::int64_t dual_rows_work(std::int64_t outputs) {
  return (2 * outputs + 1) * fused::lanes;
}

/// Thresholds and shares there must be for n rows.
constexpr std::int64_t dual_rows_thresholds(std::int64_t n) {
  return (n + fused::lanes - 1) / fused::lanes * fused::lanes;
}

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

/// moved <- Y + σ(scores + margins) less the last thresholds, of rows of any length side by side;
/// excess += the positive parts. Beyond the last sample its row is repeated.
SPARSVM_INLINE void turn_scores(const DualRows& rows, std::int64_t first, const double* threshold,
                                double* __restrict moved, double (&excess)[fused::lanes]) {
  constexpr int L = fused::lanes;
  const std::int64_t K = rows.outputs, whole = K - K % 4;
  const Pack sigma = Pack{} + rows.sigma;
  std::int64_t at[L];
  for (int l = 0; l < L; ++l) at[l] = (first + l < rows.n ? first + l : rows.n - 1) * K;
  for (std::int64_t k = 0; k < whole; k += 4) {
    const Pack b = SPARSVM_LOAD(rows.intercept + k);
    for (int l = 0; l < L; l += 4) {
      Pack v[4];
      for (int r = 0; r < 4; ++r) {
        const std::int64_t e = at[l + r] + k;
        v[r] = SPARSVM_LOAD(rows.tilde + e) +
               (SPARSVM_LOAD(rows.lift + e) + sigma * (SPARSVM_LOAD(rows.scores + e) + b));
      }
      transpose(v);
      const Pack last = SPARSVM_LOAD(threshold + l);
      Pack sum = SPARSVM_LOAD(excess + l);
      for (int r = 0; r < 4; ++r) {
        v[r] = v[r] - last;
        SPARSVM_STORE(moved + (k + r) * L + l, v[r]);
        keep_positive(v[r]);
        sum += v[r];
      }
      SPARSVM_STORE(excess + l, sum);
    }
  }
  for (std::int64_t k = whole; k < K; ++k) {
    for (int l = 0; l < L; ++l) {
      const std::int64_t e = at[l] + k;
      const double v =
          (rows.tilde[e] + (rows.lift[e] + rows.sigma * (rows.scores[e] + rows.intercept[k]))) -
          threshold[l];
      moved[k * L + l] = v;
      excess[l] += v > 0.0 ? v : 0.0;
    }
  }
}

/// Ỹ and its column sums from Y of rows side by side.
SPARSVM_INLINE void turn_back(const DualRows& rows, std::int64_t first, int count,
                              const double* __restrict Y) {
  constexpr int L = fused::lanes;
  const std::int64_t K = rows.outputs, whole = K - K % 4;
  double* __restrict tilde = rows.tilde + first * K;
  for (std::int64_t k = 0; k < whole; k += 4) {
    Pack sum = SPARSVM_LOAD(rows.sums + k);
    for (int l = 0; l < count; l += 4) {
      Pack v[4];
      for (int r = 0; r < 4; ++r) v[r] = SPARSVM_LOAD(Y + (k + r) * L + l);
      transpose(v);
      for (int r = 0; r < 4 && l + r < count; ++r) {
        SPARSVM_STORE(tilde + (l + r) * K + k, v[r]);
        sum += v[r];
      }
    }
    SPARSVM_STORE(rows.sums + k, sum);
  }
  for (std::int64_t k = whole; k < K; ++k) {
    for (int l = 0; l < count; ++l) {
      tilde[l * K + k] = Y[k * L + l];
      rows.sums[k] += Y[k * L + l];
    }
  }
  for (int l = 0; l < count; ++l) {
    tilde[l * K + rows.y[first + l]] -= rows.mass[first + l];
    rows.sums[rows.y[first + l]] -= rows.mass[first + l];
  }
}

/// Rows of any length, by the same projections as those of fused rows.
SPARSVM_INLINE void long_rows(const DualRows& rows) {
  constexpr int L = fused::lanes, G = L / fused::width;
  const std::int64_t K = rows.outputs;
  fused::Pass whole{};
  whole.outputs = K;
  whole.moved = rows.work;
  whole.dual = rows.work + (K + 1) * L;
  for (std::int64_t k = 0; k < K; ++k) rows.sums[k] = 0.0;
  for (std::int64_t i = 0; i < rows.n; i += L) {
    const int count = rows.n - i < L ? static_cast<int>(rows.n - i) : L;
    double mass[L], excess[L] = {};
    for (int l = 0; l < L; ++l) mass[l] = rows.mass[l < count ? i + l : rows.n - 1];
    whole.mass = mass;
    whole.threshold = rows.threshold + i;
    whole.share = rows.share + i;
    turn_scores(rows, i, whole.threshold, whole.moved, excess);
    bool wrong[G] = {};
    for (int h = 0; h < fused::width; h += 4) {
      fused::Pass a = whole;
      a.mass += h, a.threshold += h, a.share += h, a.moved += h, a.dual += h;
      Pack above[G];
      for (int g = 0; g < G; ++g) above[g] = SPARSVM_LOAD(excess + g * fused::width + h);
      fused::project_tile<Pack, G>(a, above, wrong);
    }
    for (int g = 0; g < G; ++g) {
      if (wrong[g]) fused::project_again<Pack>(whole, g * fused::width);
    }
    turn_back(rows, i, count, whole.dual);
  }
}

}  // namespace detail

/// Ỹ_i <- P(Y_i + σ(scores_i + intercept + margins_i)) − own_i for all samples, P being the
/// projection on the simplex of mass_i; one output stands for two classes.
void dual_rows(const DualRows& rows);

}  // namespace sparsvm
