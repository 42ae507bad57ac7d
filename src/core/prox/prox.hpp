// Projections and proximity operators of vectors.
//
//   prox_f(v) = argmin_w ½‖w − v‖² + f(w)
//
// Every kernel may work in place (out == v). NaN goes in and comes out; nothing loops on it.
// Every `work` must have been reserved for n entries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/numbers.hpp"

namespace sparsvm {

// Scratch memory of the proximal kernels; it only grows, so a loop that reserves first never
// allocates.
class ProxScratch {
 public:
  void reserve(int64_t n) {
    if (n <= size_) return;
    memory_.resize(static_cast<std::size_t>(4 * n));
    size_ = n;
  }
  double* values() { return memory_.data(); }
  double* costs() { return memory_.data() + size_; }
  // The next two belong to threshold().
  double* knots() { return memory_.data() + 2 * size_; }
  double* weights() { return memory_.data() + 3 * size_; }

 private:
  int64_t size_ = 0;
  std::vector<double> memory_;
};

namespace detail {

// Newton's method from the left of the root; see threshold().
//
// The function is convex and piecewise linear, so the iterates rise to the root and the set
// {z > theta} shrinks. Asking for a strictly smaller set in every pass makes it end after at most
// n + 1 passes whatever the rounding, and also where there is no root or an entry is NaN.
template <bool weighted>
double newton_root(const double* z, const double* c, int64_t n, double base, double slope,
                   double start) {
  double theta = start;
  for (int64_t last = n + 1;;) {
    double sum = base, rate = slope;
    int64_t count = 0;
    for (int64_t k = 0; k < n; ++k) {
      // Selections instead of branches, which would be mispredicted half of the time.
      const bool above = z[k] > theta;
      const double weight = weighted ? c[k] : 1.0;
      sum += above ? weight * z[k] : 0.0;
      rate += above ? weight : 0.0;
      count += above;
    }
    if (count >= last || !(rate > 0.0)) return theta;
    theta = sum / rate;
    last = count;
  }
}

// Quickselect for the root: expected linear time for every input, ties included.
//
// Only entries above `low` are looked at, which drops NaN. Each round splits the candidates in
// three around a random one; the sign of the function there says which side to keep.
template <bool weighted>
double pivot_root(const double* z, const double* c, int64_t n, double base, double slope,
                  double low, ProxScratch& work) {
  double* v = work.knots();
  double* w = work.weights();
  int64_t first = 0, end = 0;
  for (int64_t k = 0; k < n; ++k) {
    if (z[k] > low) {
      v[end] = z[k];
      if constexpr (weighted) w[end] = c[k];
      ++end;
    }
  }
  double sum = base, rate = slope;
  uint64_t state = kRandomState;  // fixed, so that equal calls give equal bits
  while (first < end) {
    const double pivot =
        v[first + static_cast<int64_t>(xorshift(state) % static_cast<uint64_t>(end - first))];
    double sum_above = 0.0, rate_above = 0.0, rate_equal = 0.0;
    int64_t above = first, below = end;  // [first, above) > pivot, [below, end) < pivot
    for (int64_t k = first; k < below;) {
      const double weight = weighted ? w[k] : 1.0;
      if (v[k] > pivot) {
        sum_above += weight * v[k];
        rate_above += weight;
        std::swap(v[k], v[above]);
        if constexpr (weighted) std::swap(w[k], w[above]);
        ++above, ++k;
      } else if (v[k] < pivot) {
        --below;
        std::swap(v[k], v[below]);
        if constexpr (weighted) std::swap(w[k], w[below]);
      } else {
        rate_equal += weight;
        ++k;
      }
    }
    const bool root_is_below = sum + sum_above - (rate + rate_above) * pivot < 0.0;
    if (root_is_below) {
      sum += sum_above + rate_equal * pivot;
      rate += rate_above + rate_equal;
      first = below;
    } else {
      end = above;
    }
  }
  return rate > 0.0 ? sum / rate : low;
}

}  // namespace detail

// The root theta >= low of  Σ_k c_k (z_k − theta)₊ + base − slope·theta = 0,  c = 1 where null.
//
// `low` must not lie right of the root. Up to 64 entries the few passes of Newton's method beat
// the moving of data; beyond, quickselect finds the root in expected linear time and one Newton
// pass in index order removes the rounding of its partial sums.
inline double threshold(const double* z, const double* c, int64_t n, double base, double slope,
                        double low, ProxScratch& work) {
  constexpr int64_t kFew = 64;
  if (c) {
    if (n > kFew) low = detail::pivot_root<true>(z, c, n, base, slope, low, work);
    return detail::newton_root<true>(z, c, n, base, slope, low);
  }
  if (n > kFew) low = detail::pivot_root<false>(z, c, n, base, slope, low, work);
  return detail::newton_root<false>(z, c, n, base, slope, low);
}

// v clipped to [−bound, bound]; NaN stays NaN.
inline double clipped(double v, double bound) {
  const double low = v < -bound ? -bound : v;
  return bound < low ? bound : low;
}

// sign(v)·max(|v| − t, 0), written so that NaN stays NaN and the loop around it vectorises.
inline double soft(double v, double t) { return v - clipped(v, t); }

// Plain +0, but NaN where v is NaN, so that bad input is never hidden.
inline double zero_of(double v) { return v == v ? 0.0 : v; }

// ‖v‖₂ without overflow or underflow of the squares.
inline double norm2(const double* v, int64_t n) {
  double sum = 0.0;
  for (int64_t k = 0; k < n; ++k) sum += v[k] * v[k];
  // No square of a sum between these has lost digits that count, or overflowed.
  constexpr double kLeast = 1e-280, kMost = 1e300;
  if (sum > kLeast && sum < kMost) return std::sqrt(sum);
  double top = 0.0;
  for (int64_t k = 0; k < n; ++k) top = std::abs(v[k]) > top ? std::abs(v[k]) : top;
  if (!(top > 0.0) || !(top < INFINITY)) return std::sqrt(sum);  // zeros, infinity or NaN
  sum = 0.0;
  for (int64_t k = 0; k < n; ++k) sum += (v[k] / top) * (v[k] / top);
  return top * std::sqrt(sum);
}

inline double norm1(const double* v, int64_t n) {
  double sum = 0.0;
  for (int64_t k = 0; k < n; ++k) sum += std::abs(v[k]);
  return sum;
}

// Projection on the simplex {u >= 0, Σu = mass}: u = (y − theta)₊.
//
// Entries are taken relative to the largest, so that the sum is right to rounding of `mass`
// however large y is, and entries further down than `mass` are out at once.
inline void project_simplex(const double* y, int64_t n, double mass, double* out,
                            ProxScratch& work) {
  if (n == 0) return;
  if (!(mass > 0.0)) {
    std::fill(out, out + n, 0.0);
    return;
  }
  double top = y[0];
  for (int64_t k = 1; k < n; ++k) top = y[k] > top ? y[k] : top;
  for (int64_t k = 0; k < n; ++k) out[k] = y[k] - top;
  const double theta = threshold(out, nullptr, n, -mass, 0.0, -mass, work);
  for (int64_t k = 0; k < n; ++k) {
    const double excess = out[k] - theta;
    out[k] = excess < 0.0 ? 0.0 : excess;
  }
}

// Fill z = |v| − max|v| and return max|v|.
inline double depths(const double* v, int64_t n, double* z) {
  double top = 0.0;
  for (int64_t k = 0; k < n; ++k) {
    z[k] = std::abs(v[k]);
    top = z[k] > top ? z[k] : top;
  }
  for (int64_t k = 0; k < n; ++k) z[k] -= top;
  return top;
}

// Projection on the ball {‖u‖₁ <= radius}.
inline void project_l1_ball(const double* v, int64_t n, double radius, double* out,
                            ProxScratch& work) {
  if (!(radius > 0.0)) {
    std::fill(out, out + n, 0.0);
    return;
  }
  if (norm1(v, n) <= radius) {
    std::copy(v, v + n, out);
    return;
  }
  double* z = work.values();
  depths(v, n, z);
  const double theta = threshold(z, nullptr, n, -radius, 0.0, -radius, work);
  for (int64_t k = 0; k < n; ++k) {
    const double excess = z[k] - theta;
    out[k] = excess <= 0.0 ? 0.0 : std::copysign(excess, v[k]);
  }
}

// prox of t·‖·‖₂: shrink the length by t.
inline void prox_group_l2(const double* v, int64_t n, double t, double* out) {
  const double length = norm2(v, n);
  // No branch: whether a group vanishes is hard to predict. Adding 0 turns −0 into +0.
  const double factor = length > t ? (length - t) / length : 0.0;
  for (int64_t k = 0; k < n; ++k) out[k] = factor * v[k] + 0.0;
}

// prox of t·‖·‖_∞: by Moreau v − P_{‖·‖₁ <= t}(v), which clips the magnitudes at the level T
// with Σ_k (|v_k| − T)₊ = t.
inline void prox_group_linf(const double* v, int64_t n, double t, double* out, ProxScratch& work) {
  if (norm1(v, n) <= t) {
    std::fill(out, out + n, 0.0);
    return;
  }
  double* z = work.values();
  const double top = depths(v, n, z);
  const double level = std::max(0.0, top + threshold(z, nullptr, n, -t, 0.0, -t, work));
  // Adding 0 turns −0 into +0.
  for (int64_t k = 0; k < n; ++k) out[k] = clipped(v[k], level) + 0.0;
}

// prox of t·‖ω∘·‖₂ with differing ω >= 0; entries of ω = 0 stay.
//
// w_j = v_j N/(N + tω_j²) where N = ‖ω∘w‖ is the root of φ(N) = Σ(ω_j v_j/(N + tω_j²))² = 1, and
// w = 0 on the support of ω where φ(0) <= 1. φ^(−1/2) is concave and increasing (it is a mean of
// exponent −2), so Newton's method for φ^(−1/2) = 1 rises to the root from any point left of it,
// such as the largest root that a single term would have. v and ω are taken relative to their
// largest entries: the prox is homogeneous.
inline void prox_group_l2_weighted(const double* v, const double* omega, int64_t n, double t,
                                   double* out) {
  double top = 0.0, heavy = 0.0;
  for (int64_t k = 0; k < n; ++k) {
    if (omega[k] > 0.0) top = std::abs(v[k]) > top ? std::abs(v[k]) : top;
    heavy = omega[k] > heavy ? omega[k] : heavy;
  }
  const double step = t * (heavy / top);
  if (!(top > 0.0) || !(step > 0.0)) {
    std::copy(v, v + n, out);
    return;
  }
  double length = 0.0;
  for (int64_t k = 0; k < n; ++k) {
    const double o = omega[k] / heavy;
    const double alone = o * (std::abs(v[k]) / top - step * o);
    length = alone > length ? alone : length;
  }
  constexpr int kMostPasses = 100;  // from the left of the root a few are enough
  for (int pass = 0; pass < kMostPasses; ++pass) {
    double phi = 0.0, slope = 0.0;
    for (int64_t k = 0; k < n; ++k) {
      const double o = omega[k] / heavy;
      if (!(o > 0.0)) continue;
      const double below = length + step * o * o;
      const double ratio = o * (v[k] / top) / below;
      phi += ratio * ratio;
      slope += ratio * ratio / below;
    }
    if (!(phi > 1.0)) break;
    const double next = length + (std::sqrt(phi) - 1.0) * (phi / slope);
    if (!(next > length)) break;
    length = next;
  }
  for (int64_t k = 0; k < n; ++k) {
    const double o = omega[k] / heavy;
    if (!(o > 0.0)) {
      out[k] = v[k];
    } else {
      out[k] = length > 0.0 ? v[k] * (length / (length + step * o * o)) : zero_of(v[k]);
    }
  }
}

// prox of t·‖ω∘·‖_∞ with differing ω >= 0; entries of ω = 0 stay.
//
// |w_j| = min(|v_j|, T/ω_j) where T is the root of Σ (ω_j|v_j| − T)₊/ω_j² = t, a threshold with
// weights 1/ω², or 0 where Σ|v_j|/ω_j <= t. ω is taken relative to its largest entry.
inline void prox_group_linf_weighted(const double* v, const double* omega, int64_t n, double t,
                                     double* out, ProxScratch& work) {
  double heavy = 0.0;
  for (int64_t k = 0; k < n; ++k) heavy = omega[k] > heavy ? omega[k] : heavy;
  if (!(heavy > 0.0) || !(t > 0.0)) {
    std::copy(v, v + n, out);
    return;
  }
  constexpr double kLeastSquare = 1e-300;  // whose inverse is finite
  const double step = t * heavy;
  double* z = work.values();
  double* cost = work.costs();
  double total = 0.0, top = 0.0;
  for (int64_t k = 0; k < n; ++k) {
    const double o = omega[k] / heavy;
    z[k] = o * std::abs(v[k]);
    cost[k] = o > 0.0 ? 1.0 / std::max(o * o, kLeastSquare) : 0.0;
    if (o > 0.0) total += std::abs(v[k]) / o;
    top = z[k] > top ? z[k] : top;
  }
  double level = 0.0;
  if (!(total <= step)) {
    for (int64_t k = 0; k < n; ++k) z[k] -= top;
    level = top + threshold(z, cost, n, -step, 0.0, -top, work);
  }
  for (int64_t k = 0; k < n; ++k) {
    const double o = omega[k] / heavy;
    if (!(o > 0.0)) {
      out[k] = v[k];
    } else {
      out[k] = level > 0.0 ? clipped(v[k], level / o) : zero_of(v[k]);
    }
  }
}

// prox of mass·max_k(y_k + r_k), the multiclass hinge: y − P_simplex(y + r) (000 Prop. 3.1).
inline void prox_hinge(const double* y, const double* r, int64_t n, double mass, double* out,
                       ProxScratch& work) {
  double* shifted = work.values();
  for (int64_t k = 0; k < n; ++k) shifted[k] = y[k] + r[k];
  project_simplex(shifted, n, mass, shifted, work);
  for (int64_t k = 0; k < n; ++k) out[k] = y[k] - shifted[k];
}

// Projection of (y, zeta) on the epigraph {(p, θ): max_k(p_k + r_k) <= θ} (000 Prop. 3.3).
//
// p = min(y, θ − r), where θ is the root of Σ_k (y_k + r_k − θ)₊ + ζ − θ = 0; the root is found
// without the sorting of the proposition. Returns θ.
inline double project_epigraph(const double* y, const double* r, int64_t n, double zeta,
                               double* out, ProxScratch& work) {
  double* z = work.values();
  double top = -INFINITY;
  for (int64_t k = 0; k < n; ++k) {
    z[k] = y[k] + r[k];
    top = z[k] > top ? z[k] : top;
  }
  double theta = zeta;
  if (top > zeta) {
    for (int64_t k = 0; k < n; ++k) z[k] -= top;
    const double gap = zeta - top;
    theta = top + threshold(z, nullptr, n, gap, 1.0, gap, work);
  }
  for (int64_t k = 0; k < n; ++k) {
    const double bound = theta - r[k];
    out[k] = bound < y[k] ? bound : y[k];
  }
  return theta;
}

// -----------------------------------------------------------------
// Many short rows at once: their projections on simplices.

// Thirty-two rows side by side: entry k of row l is at block()[k * kLanes + l].
//
// Row by row, the root of a simplex is a chain of additions and unpredictable branches; side by side
// it is the same few rounds of comparisons for all rows, which vectorise.
class SimplexBatch {
 public:
  static constexpr int kLanes = 32;
  // Longer rows are projected one by one, where few entries stay above zero: that takes 6 ns an entry
  // of 200, against 8 here, but 20 where most stay.
  static constexpr int64_t kLongest = 256;

  explicit SimplexBatch(int64_t entries);

  double* block() { return block_.data(); }
  double* mass() { return mass_; }

  // Replace every row y of the block by (y − theta)₊, the projection on {u >= 0, Σu = mass}. As in
  // project_simplex, the sum is right to rounding of the mass.
  void project();

 private:
  int64_t entries_;
  std::vector<double> block_;
  double mass_[kLanes] = {};
};

// Every row of Y (n x entries) on the simplex of its own mass; out may be Y.
void project_simplex_rows(const double* Y, const double* mass, int64_t n, int64_t entries,
                          double* out);

}  // namespace sparsvm
