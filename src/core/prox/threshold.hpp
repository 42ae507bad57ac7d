// The one-dimensional root behind projections on simplices, balls and epigraphs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sparsvm {

using std::int64_t;

/// Scratch memory of the proximal kernels; it only grows, so a loop that reserves first never
/// allocates.
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

/// Newton's method from the left of the root; see threshold().
///
/// The function is convex and piecewise linear, so the iterates rise to the root and the set
/// {z > theta} shrinks. Asking for a strictly smaller set in every pass makes it end after at most
/// n + 1 passes whatever the rounding, and also where there is no root or an entry is NaN.
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

/// Quickselect for the root: expected linear time for every input, ties included.
///
/// Only entries above `low` are looked at, which drops NaN. Each round splits the candidates in
/// three around a random one; the sign of the function there says which side to keep.
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
  std::uint64_t state = 0x9E3779B97F4A7C15ULL;  // fixed, so that equal calls give equal bits
  while (first < end) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double pivot =
        v[first + static_cast<int64_t>(state % static_cast<std::uint64_t>(end - first))];
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

/// The root theta >= low of  Σ_k c_k (z_k − theta)₊ + base − slope·theta = 0,  c = 1 where null.
///
/// `low` must not lie right of the root. Up to 64 entries the few passes of Newton's method beat
/// the moving of data; beyond, quickselect finds the root in expected linear time and one Newton
/// pass in index order removes the rounding of its partial sums.
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

}  // namespace sparsvm
