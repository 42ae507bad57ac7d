// Label ranking with several labels a sample: the squared hinge over pairs, without the pairs.
//
// Sample i has a set Y_i among L labels. With u_r = 1 − s_r for r in Y_i and v_t = s_t for t not in it,
//
//   loss_i(s) = c Σ_r Σ_t max(0, u_r + v_t)².
//
// With the v sorted from the largest down, the pairs of r that count are the first k_r, and
//
//   Σ_t max(0, u_r + v_t)² = k_r (u_r + mean)² + Σ (v_t − mean)²   over these k_r,
//
// sums without cancellation. As u_r grows so does k_r: after two sorts a sample takes L steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "design/design.hpp"
#include "penalty/penalty.hpp"

namespace sparsvm {

// The losses of all samples; the pointers must outlive it.
struct PairRows {
  const int32_t* y;          // n numbers of label sets
  const double* mass;        // n positive weights
  const int32_t* members;    // sets x labels: those of the set first, then the others
  const int32_t* positives;  // how many belong to each set
  const double* factor;      // c of each set
  int64_t labels;
  double largest_factor;

  int64_t outputs() const { return labels; }

  double value(int64_t i, const double* s) const { return row<0>(i, s, nullptr, nullptr); }
  double slopes(int64_t i, const double* s, double* g) const { return row<1>(i, s, g, nullptr); }
  double curvatures(int64_t i, const double* s, double* g, double* h) const {
    return row<2>(i, s, g, h);
  }

  // Twice the largest eigenvalue L of the Laplacian of a complete bipartite graph.
  double largest_curvature() const { return 2.0 * largest_factor * static_cast<double>(labels); }
  double curvature_bound() const { return largest_curvature(); }

  struct Entry {
    double key;
    int32_t label;
  };

  // The labels of sample i with their keys, the largest first: u of the set, then v of the others.
  // Returns how many there are in the set.
  int64_t sorted(int64_t i, const double* s, std::vector<Entry>& out) const {
    const int64_t a = positives[y[i]];
    const int32_t* list = members + y[i] * labels;
    out.resize(static_cast<std::size_t>(labels));
    for (int64_t l = 0; l < labels; ++l) {
      const double score = s[list[l]];
      out[l] = {l < a ? 1.0 - score : score, list[l]};
    }
    // NaN has no place in an order; the caller sees it in what comes out.
    if (!finite(s)) return a;
    order(out.data(), out.data() + a);
    order(out.data() + a, out.data() + labels);
    return a;
  }

  bool finite(const double* s) const {
    return std::all_of(s, s + labels, [](double v) { return std::isfinite(v); });
  }

  // How many of `others` (sorted) count with each of `own` (sorted): visit(entry, count).
  template <typename Visit>
  static void counts(const Entry* own, int64_t n_own, const Entry* others, int64_t n_others,
                     Visit visit) {
    int64_t count = 0;
    for (int64_t l = n_own - 1; l >= 0; --l) {
      while (count < n_others && own[l].key + others[count].key > 0.0) ++count;
      visit(l, count);
    }
  }

 private:
  static void order(Entry* first, Entry* last) {
    // Equal keys in the order of the labels, so that sums do not depend on the sort.
    const auto before = [](const Entry& p, const Entry& q) {
      return p.key > q.key || (p.key == q.key && p.label < q.label);
    };
    constexpr std::ptrdiff_t kFew = 24;  // for which insertion takes less time
    if (last - first > kFew) {
      std::sort(first, last, before);
      return;
    }
    for (Entry* at = first + (first != last); at < last; ++at) {
      const Entry moved = *at;
      Entry* to = at;
      for (; to != first && before(moved, to[-1]); --to) *to = to[-1];
      *to = moved;
    }
  }

  template <int order_>
  double row(int64_t i, const double* s, double* g, double* h) const {
    thread_local std::vector<Entry> entries;
    const int64_t a = sorted(i, s, entries);
    const double c = factor[y[i]];
    const Entry *u = entries.data(), *v = u + a;
    const double total = side<order_>(u, a, v, labels - a, -2.0 * c, 2.0 * c, g, h);
    if constexpr (order_ >= 1) side<order_>(v, labels - a, u, a, 2.0 * c, 2.0 * c, g, h);
    if (!finite(s)) return std::numeric_limits<double>::quiet_NaN();
    return c * total;
  }

  // Σ max(0, u + v)² over pairs, with the slopes and curvatures of the labels of `own`.
  template <int order_>
  static double side(const Entry* own, int64_t n_own, const Entry* others, int64_t n_others,
                     double slope, double curvature, double* g, double* h) {
    double total = 0.0, mean = 0.0, spread = 0.0;
    int64_t known = 0;
    counts(own, n_own, others, n_others, [&](int64_t l, int64_t count) {
      for (; known < count; ++known) {
        const double away = others[known].key - mean;
        mean += away / static_cast<double>(known + 1);
        spread += away * (others[known].key - mean);
      }
      const double k = static_cast<double>(count), h_mean = own[l].key + mean;
      total += count > 0 ? k * h_mean * h_mean + spread : 0.0;
      if constexpr (order_ >= 1) g[own[l].label] = count > 0 ? slope * k * h_mean : 0.0;
      if constexpr (order_ >= 2) h[own[l].label] = curvature * k;
    });
    return total;
  }
};

// Minimise over W (d x labels) and b (labels) Σ_i p_i loss_i(X_i W + b) + α penalty(W).
struct RankingProblem {
  const Design* design;
  PairRows loss;
  double alpha;
  bool intercept;
  const double* linear_term;  // null: linear terms come of penalties that are not convex
  Penalty penalty;

  int64_t n() const { return design->n(); }
  int64_t d() const { return design->d(); }
  int64_t outputs() const { return loss.outputs(); }

  // S (n x labels) = X W + b.
  void scores(const double* W, const double* b, double* S) const {
    const int64_t L = outputs();
    design->scores(W, L, S);
    if (!intercept) return;
    for (int64_t i = 0; i < n(); ++i) {
      for (int64_t k = 0; k < L; ++k) S[i * L + k] += b[k];
    }
  }

  double value(const double*, const double* S) const {
    double total = 0.0;
    for (int64_t i = 0; i < n(); ++i) total += loss.mass[i] * loss.value(i, S + i * outputs());
    return total;
  }

  // The mean loss, and R (n x labels) = p_i times its derivative.
  double slopes(const double*, const double* S, double* R) const {
    const int64_t L = outputs();
    double total = 0.0;
    for (int64_t i = 0; i < n(); ++i) {
      total += loss.mass[i] * loss.slopes(i, S + i * L, R + i * L);
      for (int64_t k = 0; k < L; ++k) R[i * L + k] *= loss.mass[i];
    }
    return total;
  }

  void gradient(const double* R, double* G, double* gb) const {
    const int64_t L = outputs();
    design->transposed(R, L, G);
    std::fill(gb, gb + L, 0.0);
    if (!intercept) return;
    for (int64_t i = 0; i < n(); ++i) {
      for (int64_t k = 0; k < L; ++k) gb[k] += R[i * L + k];
    }
  }
};

// The second derivative of the mean loss at given scores, as a product with any direction.
class PairHessian {
 public:
  PairHessian(const PairRows& rows, int64_t n, const double* S)
      : rows_(rows), n_(n), label_(static_cast<std::size_t>(n * rows.labels)),
        count_(static_cast<std::size_t>(n * rows.labels)) {
    const int64_t L = rows.labels;
    std::vector<PairRows::Entry> entries;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t a = rows.sorted(i, S + i * L, entries);
      for (int64_t l = 0; l < L; ++l) label_[i * L + l] = entries[l].label;
      int32_t* count = count_.data() + i * L;
      const auto *u = entries.data(), *v = u + a;
      PairRows::counts(u, a, v, L - a,
                       [&](int64_t l, int64_t k) { count[l] = static_cast<int32_t>(k); });
      PairRows::counts(v, L - a, u, a,
                       [&](int64_t l, int64_t k) { count[a + l] = static_cast<int32_t>(k); });
    }
  }

  // out = H D, row by row: for r, 2 p c Σ over the pairs that count of D_r − D_t.
  void product(const double* D, double* out) const {
    const int64_t L = rows_.labels;
    std::vector<double> sums(static_cast<std::size_t>(L) + 1);
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t a = rows_.positives[rows_.y[i]];
      const double twice = 2.0 * rows_.mass[i] * rows_.factor[rows_.y[i]];
      side(i * L, 0, a, a, L, D + i * L, out + i * L, twice, sums);
      side(i * L, a, L, 0, a, D + i * L, out + i * L, twice, sums);
    }
  }

  // The diagonal of H, row by row.
  void diagonal(double* out) const {
    const int64_t L = rows_.labels;
    for (int64_t e = 0; e < n_ * L; ++e) {
      const int64_t i = e / L;
      out[i * L + label_[e]] = 2.0 * rows_.mass[i] * rows_.factor[rows_.y[i]] * count_[e];
    }
  }

 private:
  void side(int64_t at, int64_t from, int64_t to, int64_t other_from, int64_t other_to,
            const double* D, double* out, double twice, std::vector<double>& sums) const {
    sums[0] = 0.0;
    for (int64_t l = other_from; l < other_to; ++l)
      sums[l - other_from + 1] = sums[l - other_from] + D[label_[at + l]];
    for (int64_t l = from; l < to; ++l) {
      const int32_t k = label_[at + l], count = count_[at + l];
      out[k] = twice * (count * D[k] - sums[count]);
    }
  }

  PairRows rows_;
  int64_t n_;
  std::vector<int32_t> label_, count_;
};

}  // namespace sparsvm
