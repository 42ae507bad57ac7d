// The forward-backward primal-dual method for the regularised hinge (000, Algorithm 1).
//
// With the class scores S = XW + 1bᵀ and the dual Y, whose rows lie in simplices of mass p_i,
//
//   W⁺ = prox_{τα·penalty}(W − τ(XᵀỸ − α·tilt)),   b⁺ = b − τ Σ_i Ỹ_i
//   Y⁺ = P_simplices(Y + σ(X(2W⁺ − W) + 2b⁺ − b + r)),
//
// where Ỹ is Y less the mass on the true class. The paper's operator takes the score of the true
// class from all others; a projection on a simplex does not see such a shift of a row, and rows of
// Ỹ sum to zero, so plain scores give the same iterates, and the norm that bounds the steps is that
// of scores without their mean over the classes. For two classes, class 0 being pinned to the score
// 0, this leaves ½ of the squared norm of [X 1].
//
// The last iterates circle around the solution; their mean over a window is much closer (measured
// on iris and wine with l1 and l1/linf: gaps 10 to 200 times smaller), so sums are kept for it.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "design/design.hpp"
#include "penalty/penalty_prox.hpp"
#include "prox/prox.hpp"
#include "prox/vector_loops.hpp"
#include "solvers/papers/fbpd_kernels/dual_rows.hpp"
#include "solvers/papers/fbpd_kernels/fused_rows.hpp"
#include "solvers/papers/fbpd_kernels/swept_blocks.hpp"
#include "solvers/papers/fbpd_kernels/swept_columns.hpp"
#include "solvers/papers/fbpd_kernels/swept_weights.hpp"

namespace sparsvm {

/// An upper estimate of the spectral norm of [X 1] (of X without intercept), by power iteration.
///
/// Power iteration approaches the norm from below: the last value is raised by one per cent, but
/// not beyond the Frobenius norm. Should it still fall short by little, no harm is done: the method
/// is known to converge while τσ‖T‖² < 4/3. `poll` is called after every product.
template <typename Poll>
double operator_norm(const Design& X, bool intercept, Poll poll) {
  const int64_t n = X.n(), d = X.d();
  std::vector<double> v(static_cast<std::size_t>(d)), s(static_cast<std::size_t>(n));
  std::vector<double> unused(static_cast<std::size_t>(d)), norms(static_cast<std::size_t>(d));
  {
    std::vector<double> more(static_cast<std::size_t>(2 * d));
    X.column_stats(nullptr, unused.data(), more.data(), norms.data(), more.data() + d);
  }
  const double ones = intercept ? static_cast<double>(n) : 0.0;
  const double columns = norm2(norms.data(), d);
  const double frobenius = std::sqrt(columns * columns + ones);
  if (!(frobenius > 0.0)) return 0.0;
  // Columns by their length with changing signs: neither tied to the scale of a few columns nor
  // likely to be orthogonal to the leading direction.
  std::uint64_t state = 0x9E3779B97F4A7C15ULL;
  for (int64_t j = 0; j < d; ++j) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    v[j] = norms[j] * (static_cast<double>(state >> 11) * 0x1p-52 - 0.5);
  }
  double c = intercept ? 0.5 * std::sqrt(ones) : 0.0, norm = 0.0;
  for (int pass = 0; pass < 300; ++pass) {
    const double length = std::hypot(norm2(v.data(), d), c);
    if (!(length > 0.0)) break;
    for (double& value : v) value /= length;
    c /= length;
    X.scores(v.data(), 1, s.data());
    poll();
    for (double& score : s) score += c;
    X.transposed(s.data(), 1, v.data());
    poll();
    c = 0.0;
    if (intercept) {
      for (const double score : s) c += score;
    }
    const double last = norm;
    norm = std::max(norm, norm2(s.data(), n));
    if (norm <= last * (1.0 + 1e-4)) break;
  }
  return norm > 0.0 ? std::min(1.01 * norm, frobenius) : frobenius;
}

/// What the method is to solve; the pointers must outlive it.
struct FbpdProblem {
  const Design* design;
  const std::int32_t* y;       // n class numbers
  const double* mass;          // n positive weights
  const double* cost;          // K x K margins, row = true class
  const double* margin_scale;  // n factors of the margins, or null
  int64_t classes;
  double alpha;
  bool intercept;
  const double* tilt;  // d x outputs, or null

  int64_t outputs() const { return classes == 2 ? 1 : classes; }
};

class Fbpd {
 public:
  Fbpd(const FbpdProblem& problem, PenaltyProx prox, double tau, double sigma)
      : problem_(problem), prox_(std::move(prox)), n_(problem.design->n()), d_(problem.design->d()),
        outputs_(problem.outputs()), tau_(tau), sigma_(sigma), even_(has_even_margins()),
        weights_(size(d_ * outputs_)), intercept_(size(outputs_)), ahead_intercept_(size(outputs_)),
        sum_weights_(size(d_ * outputs_)), sum_intercept_(size(outputs_)), totals_(size(outputs_)) {
    const Design& X = *problem.design;
    bool fuses = false;
    if (SweptBlocks::suits(X, outputs_)) {
      blocks_.emplace(X);
    } else if (FusedRows::suits(X, outputs_)) {
      fuses = true;
    } else if (SweptColumns::suits(X, outputs_)) {
      columns_.emplace(X, outputs_);
    } else if (SweptWeights::suits(X, outputs_)) {
      swept_.emplace(X, outputs_);
    }
    ahead_.resize(size(cut_up() * outputs_));
    gradient_.resize(ahead_.size());
    if (fuses) {
      fuse();
    } else {
      signed_.resize(size(n_ * outputs_));
      if (!swept_) scores_.resize(signed_.size());
      if (few()) {
        lay_out(margins_, own_);
      } else {
        threshold_.assign(size(n_), 0.0);
        share_.assign(size(n_), 1.0);
        work_.resize(size(dual_rows_work(outputs_)));
      }
    }
    sum_signed_.resize(signed_.size());
  }

  /// Up to `count` iterations, fewer if ‖x⁺ − x‖ <= tolerance·‖x⁺‖ for x = (W, b), or, where x⁺ =
  /// 0, for the dual instead: at the start x rests at zero while the dual is still on its way. A
  /// tolerance below zero asks for all. `poll` is called after every product. Returns the number
  /// done.
  template <typename Poll>
  int64_t run(int64_t count, double tolerance, Poll poll) {
    settled_ = false;
    for (int64_t done = 0; done < count; ++done) {
      poll();
      if (!fused_ && !swept_ && !columns_ && !blocks_) {
        problem_.design->transposed(signed_.data(), outputs_, gradient_.data());
        poll();
      }
      double change = tolerance < 0.0 ? primal_step<false>(poll) : primal_step<true>(poll);
      if (fused_ && arranges_this_time()) {
        fused_->arrange(ahead_.data(), ahead_intercept_.data(), score_factor(), signed_.data(),
                        sum_signed_.data());
      }
      const bool dual_decides = tolerance >= 0.0 && !(change < INFINITY);
      if (dual_decides) before_ = signed_;
      dual_step();
      if (sums_this_one()) add_to_sums();
      ++iteration_;
      if (dual_decides) change = dual_change();
      settled_ = change <= tolerance;
      if (settled_) return done + 1;
    }
    return count;
  }

  /// The two products of `count` iterations and nothing else: what benchmarks measure run() by.
  void products(int64_t count) {
    std::vector<double> gradient(weights_.size());
    scores_.resize(size(n_ * outputs_));
    for (int64_t done = 0; done < count; ++done) {
      if (columns_) {
        columns_->gradient(0, d_, signed_.data(), gradient.data());
        columns_->clear(scores_.data());
        columns_->add_scores(0, d_, weights_.data(), scores_.data());
      } else {
        problem_.design->transposed(signed_.data(), outputs_, gradient.data());
        problem_.design->scores(ahead_.data(), outputs_, scores_.data());
      }
    }
  }

  /// Whether the last run ended because the iterates had stopped moving.
  bool settled() const { return settled_; }

  const std::vector<double>& weights() const { return weights_; }
  const std::vector<double>& intercept() const { return intercept_; }
  /// Y (n x K).
  void dual(double* Y) const { unsign(signed_.data(), 1.0, Y); }

  /// Begin a new window of means.
  void forget() {
    summed_ = 0;
    for (auto* sums : {&sum_weights_, &sum_signed_, &sum_intercept_}) {
      std::fill(sums->begin(), sums->end(), 0.0);
    }
  }
  /// Iterates in the present window; while there are none, the means are the last iterate.
  int64_t summed() const { return summed_; }
  void mean_weights(double* W) const { mean_of(sum_weights_, weights_, W); }
  void mean_intercept(double* b) const { mean_of(sum_intercept_, intercept_, b); }
  void mean_dual(double* Y) const {
    if (summed_ == 0) return dual(Y);
    unsign(sum_signed_.data(), 1.0 / static_cast<double>(summed_), Y);
  }

  void start(const double* weights, const double* intercept, const double* dual) {
    std::copy(weights, weights + d_ * outputs_, weights_.begin());
    std::copy(intercept, intercept + outputs_, intercept_.begin());
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t k = 0; k < outputs_; ++k) {
        const double y = dual[i * problem_.classes + (outputs_ == 1 ? 1 : k)];
        signed_[at(i, k)] = fused_ ? y : y - own(i, k);
      }
    }
    if (fused_) {
      fused_->gradient(signed_.data(), gradient_.data(), totals_.data());
    } else {
      if (swept_ || blocks_) {
        problem_.design->transposed(signed_.data(), outputs_, gradient_.data());
      }
      if (swept_) swept_->wake();
      add_up_columns();
    }
    forget();
  }

 private:
  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }

  /// Cuts the features where the penalty allows it, so that a few thousand entries at a time stay in
  /// cache from the gradient step to the extrapolation. Returns the features of which the latter two
  /// are held at a time: those of the largest piece if columns are swept, else all.
  int64_t cut_up() {
    const int64_t at_once = columns_ ? columns_->at_once() : std::max<int64_t>(1, 2048 / outputs_);
    const int64_t rows = prox_.consecutive() ? at_once : d_;
    int64_t from = 0, widest = 0;
    for (int64_t part = 0; part < prox_.parts(); ++part) {
      if (part > 0 && prox_.start(part) - from < rows) continue;
      widest = std::max(widest, prox_.start(part) - from);
      from = prox_.start(part);
      chunks_.push_back(part);
    }
    chunks_.push_back(prox_.parts());
    return columns_ ? std::max(widest, d_ - from) : d_;
  }

  /// Whether rows are short and their products somebody else's.
  bool few() const { return !swept_ && are_few(outputs_); }

  /// Every fourth iterate is enough for a mean and keeps the sums out of the loop's cost.
  static constexpr int64_t sum_every = 4;

  bool sums_this_one() const { return (iteration_ + 1) % sum_every == 0; }

  /// Samples at rest are put together after 32, 64, 128, ... iterations: it costs a few of them.
  bool arranges_this_time() const {
    return iteration_ >= 32 && (iteration_ & (iteration_ - 1)) == 0;
  }

  /// What scores count for in the dual step; one output stands for two classes.
  double score_factor() const { return outputs_ == 1 ? 0.5 * sigma_ : sigma_; }

  /// All but what the steps add while they are at it: the weights, and of fused rows and in sweeps the
  /// dual.
  void add_to_sums() {
    ++summed_;
    if (!fused_ && !swept_) add(signed_, sum_signed_);
    add(intercept_, sum_intercept_);
  }

  static void add(const std::vector<double>& values, std::vector<double>& sums) {
    flat::add(values.data(), sums.data(), static_cast<int64_t>(values.size()));
  }

  void mean_of(const std::vector<double>& sums, const std::vector<double>& last,
               double* out) const {
    const double share = summed_ == 0 ? 0.0 : 1.0 / static_cast<double>(summed_);
    for (std::size_t e = 0; e < sums.size(); ++e) out[e] = summed_ == 0 ? last[e] : share * sums[e];
  }

  /// Y (n x K) from `values`, which are Ỹ or, of fused rows, Y, once times the share is taken.
  void unsign(const double* values, double share, double* Y) const {
    for (int64_t i = 0; i < n_; ++i) {
      double* row = Y + i * problem_.classes;
      double* to = outputs_ == 1 ? row + 1 : row;
      for (int64_t k = 0; k < outputs_; ++k) {
        to[k] = share * values[at(i, k)] + (fused_ ? 0.0 : own(i, k));
      }
      if (outputs_ == 1) row[0] = problem_.mass[i] - row[1];
    }
  }

  /// ‖Ỹ⁺ − Ỹ‖/‖Ỹ⁺‖ since before_ was kept.
  double dual_change() const {
    double moved = 0.0, length = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t k = 0; k < outputs_; ++k) {
        const double now = signed_[at(i, k)], step = now - before_[at(i, k)];
        const double tilde = fused_ ? now - own(i, k) : now;
        moved += step * step;
        length += tilde * tilde;
      }
    }
    return moved > 0.0 ? std::sqrt(moved / length) : 0.0;
  }

  /// W and b with their extrapolation, their scores if columns are swept, and the sum of W; returns
  /// ‖x⁺ − x‖/‖x⁺‖ if it is to be measured, infinity where x⁺ = 0 to rounding.
  template <bool measure, typename Poll>
  double primal_step(Poll poll) {
    double moved = 0.0, length = 0.0;
    if (columns_) columns_->clear(scores_.data());
    for (std::size_t c = 0; c + 1 < chunks_.size(); ++c) {
      const int64_t from = chunks_[c], to = chunks_[c + 1];
      const int64_t first = prox_.start(from), end = prox_.start(to);
      const int64_t at = first * outputs_, entries = (end - first) * outputs_;
      double *W = weights_.data() + at, *V = ahead_.data() + (columns_ ? 0 : at);
      double* G = gradient_.data() + (columns_ ? 0 : at);
      if (columns_) columns_->gradient(first, end, signed_.data(), G);
      flat::descend(W, G, tau_, V, entries);
      if (problem_.tilt) flat::subtract(problem_.tilt + at, -tau_ * problem_.alpha, W, entries);
      prox_.apply(weights_.data(), tau_ * problem_.alpha, from, to);
      if constexpr (measure) flat::compare(W, V, entries, moved, length);
      flat::extrapolate(W, V, entries);
      if (sums_this_one()) flat::add(W, sum_weights_.data() + at, entries);
      if (!columns_) continue;
      columns_->add_scores(first, end, V, scores_.data());
      poll();
    }
    if (problem_.intercept) intercept_step(moved, length);
    // Column sums that should vanish leave their rounding, step after step, in the intercept.
    const double noise = 4.0 * DBL_EPSILON * tau_ * static_cast<double>(iteration_ + 1);
    return measure && length > noise * noise ? std::sqrt(moved / length) : INFINITY;
  }

  void intercept_step(double& moved, double& length) {
    for (int64_t k = 0; k < outputs_; ++k) {
      const double before = intercept_[k], now = before - tau_ * totals_[k];
      moved += (now - before) * (now - before);
      length += now * now;
      intercept_[k] = now;
      ahead_intercept_[k] = 2.0 * now - before;
    }
  }

  /// Column sums of Ỹ, which every dual step leaves behind.
  void add_up_columns() {
    std::fill(totals_.begin(), totals_.end(), 0.0);
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t k = 0; k < outputs_; ++k) totals_[k] += signed_[i * outputs_ + k];
    }
  }

  /// Where signed_ and sum_signed_ have class k of sample i.
  std::size_t at(int64_t i, int64_t k) const {
    return size(fused_ ? fused_->at(i, k) : i * outputs_ + k);
  }

  /// The mass that class k of sample i has if it is the true one.
  double own(int64_t i, int64_t k) const {
    return problem_.y[i] == (outputs_ == 1 ? 1 : k) ? problem_.mass[i] : 0.0;
  }

  /// σ times the margins and the mass on the true class (n x outputs); one output has half the
  /// difference of the margins of two classes, which move against each other.
  void lay_out(std::vector<double>& margins, std::vector<double>& masses) const {
    margins.resize(size(n_ * outputs_));
    masses.resize(margins.size());
    for (int64_t i = 0; i < n_; ++i) {
      const double* r = problem_.cost + problem_.y[i] * problem_.classes;
      for (int64_t k = 0; k < outputs_; ++k) {
        const double margin = outputs_ == 1 ? 0.5 * (r[1] - r[0]) : r[k];
        margins[size(i * outputs_ + k)] = margin_factor(i) * margin;
        masses[size(i * outputs_ + k)] = own(i, k);
      }
    }
  }

  /// Fused rows keep Y, not Ỹ, and have the margins in their own order.
  void fuse() {
    std::vector<double> margins, all;
    lay_out(margins, all);
    fused_.emplace(*problem_.design, outputs_, problem_.mass, margins.data(), all.data());
    signed_.assign(size(fused_->entries()), 0.0);
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t k = 0; k < outputs_; ++k) signed_[at(i, k)] = own(i, k);
    }
  }

  double margin_factor(int64_t i) const {
    return problem_.margin_scale ? sigma_ * problem_.margin_scale[i] : sigma_;
  }

  /// Y from the scores of the extrapolated weights; a fused pass leaves the next gradient behind.
  void dual_step() {
    const double *V = ahead_.data(), *b = ahead_intercept_.data();
    double* along = sums_this_one() ? sum_signed_.data() : nullptr;
    if (fused_) {
      return fused_->step(V, b, score_factor(), signed_.data(), gradient_.data(), totals_.data(),
                          along);
    }
    if (blocks_) {
      totals_[0] = 0.0;
      return blocks_->sweep(V, scores_.data(), signed_.data(), gradient_.data(),
                            [&](int64_t i, int64_t count) {
        double sum;
        step_few(i, count, &sum);
        totals_[0] += sum;
      });
    }
    if (!swept_ && !columns_) problem_.design->scores(V, outputs_, scores_.data());
    if (few()) return step_few(0, n_, totals_.data());
    DualRows rows{n_,
                  outputs_,
                  b,
                  problem_.cost,
                  problem_.margin_scale,
                  problem_.mass,
                  problem_.y,
                  sigma_,
                  signed_.data(),
                  threshold_.data(),
                  share_.data(),
                  totals_.data(),
                  work_.data()};
    rows.even = even_;
    rows.even_margin = problem_.cost[1];
    if (swept_) {
      const Affine now{V, b, d_, outputs_};
      rows.rest = swept_->resting(now, sigma_);
      rows.along = along;
      swept_rows(rows, swept_->with(V, gradient_.data()));
      swept_->end_sweep(now);
    } else {
      dual_rows(rows, scores_.data());
    }
  }

  /// The dual step of a few classes whose scores are at hand, for `count` samples from i on.
  void step_few(int64_t i, int64_t count, double* sums) {
    const int64_t at = i * outputs_;
    few_rows({count, outputs_, scores_.data() + at, ahead_intercept_.data(), margins_.data() + at,
              own_.data() + at, problem_.mass + i, sigma_, signed_.data() + at, sums});
  }

  /// Whether all classes but the true one have the same margin.
  bool has_even_margins() const {
    const int64_t K = problem_.classes;
    bool even = true;
    for (int64_t c = 0; c < K; ++c) {
      for (int64_t k = 0; k < K; ++k) {
        even &= problem_.cost[c * K + k] == (c == k ? 0.0 : problem_.cost[1]);
      }
    }
    return even;
  }

  FbpdProblem problem_;
  PenaltyProx prox_;
  int64_t n_, d_, outputs_;
  double tau_, sigma_;
  bool even_;  // see has_even_margins()
  bool settled_ = false;
  int64_t iteration_ = 0, summed_ = 0;
  std::vector<double> weights_;                      // d x outputs
  std::vector<double> ahead_, gradient_;             // the same, or a piece if columns are swept
  std::vector<double> scores_;                       // n x outputs, if not swept
  std::vector<double> signed_;                       // Ỹ, or fused Y, in the order of at()
  std::vector<double> intercept_, ahead_intercept_;  // outputs
  std::vector<double> work_, before_;
  std::vector<double> threshold_, share_;  // of the last projection, see DualRows
  std::vector<double> margins_, own_;      // n x outputs, see FewRows
  std::vector<double> sum_weights_, sum_signed_, sum_intercept_;
  std::vector<double> totals_;         // outputs: column sums of Ỹ
  std::optional<FusedRows> fused_;     // for small dense designs
  std::optional<SweptWeights> swept_;  // for compressed rows
  std::optional<SweptColumns> columns_;
  std::optional<SweptBlocks> blocks_;  // for large dense designs of two classes
  std::vector<int64_t> chunks_;        // parts of the penalty that are treated together
};

}  // namespace sparsvm
