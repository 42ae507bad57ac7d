#include "solvers/papers/fbpd_kernels/dual_rows.hpp"

#include <algorithm>

#include "prox/simplex_root.hpp"
#include "solvers/papers/fbpd_kernels/sweeps.hpp"

namespace sparsvm {

namespace {

/// The root of Σ_k (z_k − root)₊ = mass, one over the number of entries above it being left in
/// `share`; z is filled up to a whole pack. See fused::find_root, which does the same for rows side
/// by side.
SPARSVM_INLINE double find_root(const double* z, std::int64_t entries, double mass, double& share) {
  double root = 0.0, known = -1.0;
  for (std::int64_t round = 0; round <= entries + 1; ++round) {
    Pack sum = {}, count = {}, top = SPARSVM_LOAD(z);
    const Pack bound = SPARSVM_SPREAD(root);
    for (std::int64_t k = 0; k < entries; k += 4) {
      const Pack v = SPARSVM_LOAD(z + k);
      add_above(v, bound, sum, count);
      keep_larger(top, v);
    }
    const double number = sum_of(count);
    share = number > 1.0 ? 1.0 / number : 1.0;
    // Where nothing was above, the largest entry alone is the next set.
    root = (number > 0.0 ? sum_of(sum) - mass : largest_of(top) - mass) * share;
    if (number == known) break;
    known = number;
  }
  return root;
}

/// Rows that are treated together: several packs hide each other's waiting.
constexpr int few_lanes = 24;

template <int K>
SPARSVM_INLINE void few_block(const FewRows& rows, std::int64_t first, int count,
                              const double* shift, double* totals) {
  constexpr int L = few_lanes;
  double moved[L * K], lanes[K][L], top[L], theta[L], mass[L];
  const double* __restrict s = rows.scores + first * K;
  const double* __restrict margins = rows.margins + first * K;
  const double* __restrict own = rows.own + first * K;
  double* __restrict tilde = rows.tilde + first * K;
  const double sigma = rows.sigma;
  const int entries = count * K;
  if (count < L) {
    for (int e = 0; e < L * K; ++e) moved[e] = 0.0;
    for (int l = 0; l < L; ++l) mass[l] = 1.0;
  }
  for (int e = 0; e < entries; ++e) {
    moved[e] = (tilde[e] + own[e]) + (margins[e] + sigma * (s[e] + shift[e]));
  }
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
SPARSVM_INLINE void few_rows_of(const FewRows& rows) {
  constexpr int L = few_lanes;
  double shift[L * K], totals[L * K] = {};
  for (int e = 0; e < L * K; ++e) shift[e] = rows.intercept[e % K];
  std::int64_t i = 0;
  for (; i + L <= rows.n; i += L) few_block<K>(rows, i, L, shift, totals);
  if (i < rows.n) few_block<K>(rows, i, static_cast<int>(rows.n - i), shift, totals);
  for (int k = 0; k < K; ++k) rows.sums[k] = 0.0;
  for (int l = 0; l < L; ++l) {
    for (int k = 0; k < K; ++k) rows.sums[k] += totals[l * K + k];
  }
}

SPARSVM_PACKED void side_by_side(const FewRows& rows) {
  rows.outputs == 3 ? few_rows_of<3>(rows) : few_rows_of<4>(rows);
}

/// The projection on the simplex {u_0 + u_1 = p} is a clipping of u_1, the only output.
SPARSVM_CLONED void clip_rows(const FewRows& rows) {
  const double* __restrict s = rows.scores;
  const double* __restrict margins = rows.margins;
  const double* __restrict own = rows.own;
  const double* __restrict mass = rows.mass;
  double* __restrict tilde = rows.tilde;
  const double half = 0.5 * rows.sigma, b = rows.intercept[0];
  for (std::int64_t i = 0; i < rows.n; ++i) {
    const double moved = (tilde[i] + own[i]) + (margins[i] + half * (s[i] + b)), p = mass[i];
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

/// dual_rows() in plain loops, every projection from nothing.
SPARSVM_CLONED void project_plainly(const DualRows& a, const double* scores) {
  const std::int64_t K = a.outputs;
  double* moved = a.work;
  std::fill(moved + K, moved + K + 4, -1e300);  // above no threshold
  std::fill(a.sums, a.sums + K, 0.0);
  for (std::int64_t i = 0; i < a.n; ++i) {
    const std::int64_t y = a.y[i];
    const double *s = scores + i * K, *margins = a.cost + y * K;
    const double mass = a.mass[i], last = a.threshold[i];
    const double scale = a.margin_scale ? a.margin_scale[i] : 1.0;
    double* row = a.tilde + i * K;
    for (std::int64_t k = 0; k < K; ++k) {
      moved[k] = row[k] + (a.sigma * (s[k] + a.intercept[k] + scale * margins[k]) - last);
    }
    moved[y] += mass;
    const double theta = find_move(a, moved, last, i);
    for (std::int64_t k = 0; k < K; ++k) {
      const double above = moved[k] - theta;
      row[k] = above > 0.0 ? above : 0.0;
    }
    if (a.share[i] == 1.0 && row[y] > 0.0) {  // its class has all the mass but for rounding
      std::fill(row, row + K, 0.0);
      continue;
    }
    row[y] -= mass;
    for (std::int64_t k = 0; k < K; ++k) a.sums[k] += row[k];
  }
}

}  // namespace

SPARSVM_CLONED double find_move(const DualRows& a, double* moved, double last, std::int64_t i) {
  const double mass = a.mass[i];
  double root = find_root(moved, a.outputs, mass, a.share[i]);
  if (root > 16.0 * mass || root < -16.0 * mass) {
    // So far from the last threshold the root lacks digits, which the next one has.
    for (std::int64_t k = 0; k < a.outputs; ++k) moved[k] -= root;
    last += root;
    root = find_root(moved, a.outputs, mass, a.share[i]);
  }
  a.threshold[i] = last + root;
  return root;
}

bool sweeps(std::int64_t outputs) {
#if defined(SPARSVM_FOUR)
  return has_four() && outputs >= least_swept_outputs && outputs <= most_swept_outputs;
#else
  return outputs < 0;
#endif
}

void dual_rows(const DualRows& rows, const double* scores) {
#if defined(SPARSVM_FOUR)
  if (sweeps(rows.outputs)) return project_in_four(rows, scores);
#endif
  project_plainly(rows, scores);
}

void swept_rows([[maybe_unused]] const DualRows& rows, [[maybe_unused]] const SweptRows& swept) {
#if defined(SPARSVM_EIGHT)
  if (has_eight()) return sweep_in_eight(rows, swept);
#endif
#if defined(SPARSVM_FOUR)
  sweep_in_four(rows, swept);
#endif
}

bool are_few(std::int64_t outputs) {
  return outputs == 1 || (outputs < DualRows::least_outputs && has_packs());
}

void few_rows(const FewRows& rows) { rows.outputs == 1 ? clip_rows(rows) : side_by_side(rows); }

}  // namespace sparsvm
