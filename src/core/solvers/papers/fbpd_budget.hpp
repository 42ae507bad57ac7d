// Two forward-backward primal-dual methods for the least penalty within a hinge budget.
//
//   minimise g(W)   subject to   Σ_i p_i ζ_i <= η,   max_k((T_i x)_k + r_ik) <= ζ_i,   x = (W, b),
//
// T_i x being the scores of all classes less that of the true class. One slack ζ_i per sample:
//
// * epigraph (000, Algorithm 2): (T_i x, ζ_i) in the epigraph of the hinge, by its projection;
//   τσ·max(‖T‖², 1) <= 1.
// * linear (000, section 4.2): K copies ζ_ik that must be equal, and the linear constraints
//   T_i x + r_i <= ζ_i. The projection on equal copies within the budget is exact, their mean
//   followed by the projection on the half-space, so that one number per sample is kept. The row of
//   the true class says ζ_i >= 0. τσ(‖T‖² + 1) <= 1.
//
// In both, x⁺ = prox_{τg}(x − τTᵀy). Sums of the iterates are kept for means over a window, which
// are closer to the solution than the last iterate.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "design/design.hpp"
#include "penalty/penalty_prox.hpp"
#include "prox/prox.hpp"

namespace sparsvm {

enum class BudgetMethod { epigraph, linear };

/// What the methods are to solve; the pointers must outlive them.
struct BudgetProblem {
  const Design* design;
  const std::int32_t* y;  // n class numbers
  const double* mass;     // n positive weights
  const double* margins;  // n x K, zero at the true class
  int64_t classes;
  double eta;
  bool intercept;

  int64_t outputs() const { return classes == 2 ? 1 : classes; }
};

/// T and its adjoint on rows: from scores to differences of scores, and back.
class Differences {
 public:
  explicit Differences(const BudgetProblem& problem)
      : y_(problem.y), classes_(problem.classes), outputs_(problem.outputs()) {}

  /// The K differences of sample i from its `outputs` scores.
  void forward(int64_t i, const double* scores, double* out) const {
    const std::int32_t own = y_[i];
    if (outputs_ == 1) {
      out[own] = 0.0;
      out[1 - own] = own == 0 ? scores[0] : -scores[0];
      return;
    }
    const double base = scores[own];
    for (int64_t k = 0; k < classes_; ++k) out[k] = scores[k] - base;
  }

  /// What K dual values of sample i pull on its scores.
  void adjoint(int64_t i, const double* dual, double* out) const {
    const std::int32_t own = y_[i];
    if (outputs_ == 1) {
      out[0] = own == 0 ? dual[1] : -dual[0];
      return;
    }
    double others = 0.0;
    for (int64_t k = 0; k < classes_; ++k) {
      out[k] = dual[k];
      if (k != own) others += dual[k];
    }
    out[own] = -others;
  }

 private:
  const std::int32_t* y_;
  int64_t classes_, outputs_;
};

/// An upper estimate of the spectral norm of T, by power iteration, raised by one per cent.
template <typename Poll>
double difference_norm(const BudgetProblem& problem, Poll poll) {
  const Design& X = *problem.design;
  const int64_t n = X.n(), d = X.d(), m = problem.outputs(), K = problem.classes;
  const Differences T(problem);
  std::vector<double> W(static_cast<std::size_t>(d * m)), S(static_cast<std::size_t>(n * m));
  std::vector<double> b(static_cast<std::size_t>(m)), row(static_cast<std::size_t>(K));
  std::uint64_t state = 0x9E3779B97F4A7C15ULL;
  for (double& value : S) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    value = static_cast<double>(state >> 11) * 0x1p-52 - 1.0;
  }
  double norm = 0.0;
  for (int pass = 0; pass < 200; ++pass) {
    X.transposed(S.data(), m, W.data());
    poll();
    std::fill(b.begin(), b.end(), 0.0);
    if (problem.intercept) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < m; ++k) b[k] += S[i * m + k];
      }
    }
    const double length = std::hypot(norm2(W.data(), d * m), norm2(b.data(), m));
    if (!(length > 0.0)) break;
    for (double& value : W) value /= length;
    for (double& value : b) value /= length;
    X.scores(W.data(), m, S.data());
    poll();
    double squares = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < m; ++k) S[i * m + k] += b[k];
      T.forward(i, &S[i * m], row.data());
      for (const double value : row) squares += value * value;
      T.adjoint(i, row.data(), &S[i * m]);
    }
    const double last = norm;
    norm = std::max(norm, std::sqrt(squares));
    if (pass > 3 && norm <= last * (1.0 + 1e-4)) break;
  }
  return 1.01 * norm;
}

class FbpdBudget {
 public:
  FbpdBudget(const BudgetProblem& problem, PenaltyProx prox, BudgetMethod method, double tau,
             double sigma)
      : problem_(problem), T_(problem), prox_(std::move(prox)), method_(method),
        n_(problem.design->n()), d_(problem.design->d()), K_(problem.classes),
        m_(problem.outputs()), tau_(tau), sigma_(sigma), weights_(size(d_ * m_)),
        ahead_(size(d_ * m_)), gradient_(size(d_ * m_)), pull_(size(n_ * m_)),
        scores_(size(n_ * m_)), intercept_(size(m_)), ahead_intercept_(size(m_)), slack_(size(n_)),
        ahead_slack_(size(n_)), dual_(size(n_ * K_)), slack_dual_(size(n_)), row_(size(K_)),
        sum_weights_(size(d_ * m_)), sum_intercept_(size(m_)), sum_dual_(size(n_ * K_)) {
    scratch_.reserve(K_);
    for (int64_t i = 0; i < n_; ++i) mass_squares_ += problem.mass[i] * problem.mass[i];
  }

  /// Begin at W (d x outputs), b and multipliers y (n x K) of the differences.
  void start(const double* weights, const double* intercept, const double* dual) {
    std::copy(weights, weights + d_ * m_, weights_.begin());
    std::copy(intercept, intercept + m_, intercept_.begin());
    std::copy(dual, dual + n_ * K_, dual_.begin());
    problem_.design->scores(weights_.data(), m_, scores_.data());
    for (int64_t i = 0; i < n_; ++i) {
      double* row = row_.data();
      for (int64_t k = 0; k < m_; ++k) scores_[i * m_ + k] += intercept_[k];
      T_.forward(i, &scores_[i * m_], row);
      slack_[i] = -INFINITY;
      double total = 0.0;
      for (int64_t k = 0; k < K_; ++k) {
        slack_[i] = std::max(slack_[i], row[k] + problem_.margins[i * K_ + k]);
        total += dual_[i * K_ + k];
      }
      slack_dual_[i] = -total;
      T_.adjoint(i, &dual_[i * K_], &pull_[i * m_]);
    }
    forget();
  }

  /// Up to `count` iterations, fewer if ‖x⁺ − x‖ <= tolerance·‖x⁺‖; a tolerance below zero asks for
  /// all. `poll` is called after every product. Returns the number done.
  template <typename Poll>
  int64_t run(int64_t count, double tolerance, Poll poll) {
    settled_ = false;
    for (int64_t done = 0; done < count; ++done) {
      problem_.design->transposed(pull_.data(), m_, gradient_.data());
      poll();
      const double change = primal_step();
      slack_step();
      problem_.design->scores(ahead_.data(), m_, scores_.data());
      poll();
      if (method_ == BudgetMethod::epigraph) {
        epigraph_step();
      } else {
        linear_step();
      }
      if (++iteration_ % sum_every == 0) add_to_sums();
      settled_ = change <= tolerance;
      if (settled_) return done + 1;
    }
    return count;
  }

  bool settled() const { return settled_; }
  const std::vector<double>& weights() const { return weights_; }
  const std::vector<double>& intercept() const { return intercept_; }
  const std::vector<double>& dual() const { return dual_; }
  const std::vector<double>& slack() const { return slack_; }

  void forget() {
    summed_ = 0;
    for (auto* sums : {&sum_weights_, &sum_intercept_, &sum_dual_}) {
      std::fill(sums->begin(), sums->end(), 0.0);
    }
  }
  /// Iterates in the present window; while there are none, the means are the last iterate.
  void mean(double* weights, double* intercept, double* dual) const {
    mean_of(sum_weights_, weights_, weights);
    mean_of(sum_intercept_, intercept_, intercept);
    mean_of(sum_dual_, dual_, dual);
  }

 private:
  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }

  /// Every fourth iterate is enough for a mean and keeps the sums out of the loop's cost.
  static constexpr int64_t sum_every = 4;

  void add_to_sums() {
    ++summed_;
    add(weights_, sum_weights_);
    add(intercept_, sum_intercept_);
    add(dual_, sum_dual_);
  }
  static void add(const std::vector<double>& values, std::vector<double>& sums) {
    for (std::size_t e = 0; e < values.size(); ++e) sums[e] += values[e];
  }
  void mean_of(const std::vector<double>& sums, const std::vector<double>& last,
               double* out) const {
    const double share = summed_ == 0 ? 0.0 : 1.0 / static_cast<double>(summed_);
    for (std::size_t e = 0; e < sums.size(); ++e) out[e] = summed_ == 0 ? last[e] : share * sums[e];
  }

  /// W and b with their extrapolation; returns ‖x⁺ − x‖/‖x⁺‖, infinity where x⁺ = 0.
  double primal_step() {
    double moved = 0.0, length = 0.0;
    {
      const double* __restrict W = weights_.data();
      const double* __restrict G = gradient_.data();
      double* __restrict V = ahead_.data();
      for (int64_t e = 0; e < d_ * m_; ++e) V[e] = W[e] - tau_ * G[e];
    }
    prox_.apply(ahead_.data(), tau_, 0, prox_.parts());
    for (int64_t e = 0; e < d_ * m_; ++e) extrapolate(weights_[e], ahead_[e], moved, length);
    if (problem_.intercept) {
      std::vector<double>& sums = row_;
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t i = 0; i < n_; ++i) {
        for (int64_t k = 0; k < m_; ++k) sums[k] += pull_[i * m_ + k];
      }
      for (int64_t k = 0; k < m_; ++k) {
        ahead_intercept_[k] = intercept_[k] - tau_ * sums[k];
        extrapolate(intercept_[k], ahead_intercept_[k], moved, length);
      }
    }
    return length > 0.0 ? std::sqrt(moved / length) : INFINITY;
  }

  /// `value` becomes `ahead`, which becomes 2 ahead − value.
  static void extrapolate(double& value, double& ahead, double& moved, double& length) {
    const double now = ahead, before = value;
    moved += (now - before) * (now - before);
    length += now * now;
    ahead = 2.0 * now - before;
    value = now;
  }

  /// ζ⁺, the projection of ζ − τξ on the budget, and its extrapolation.
  void slack_step() {
    // For K equal copies the step is the mean of those of the copies.
    const double step = method_ == BudgetMethod::epigraph ? tau_ : tau_ / static_cast<double>(K_);
    double total = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      ahead_slack_[i] = slack_[i] - step * slack_dual_[i];
      total += problem_.mass[i] * ahead_slack_[i];
    }
    const double back = total > problem_.eta ? (total - problem_.eta) / mass_squares_ : 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      const double now = ahead_slack_[i] - back * problem_.mass[i];
      ahead_slack_[i] = 2.0 * now - slack_[i];
      slack_[i] = now;
    }
  }

  /// T(2x⁺ − x) of sample i, from the scores at the extrapolation.
  void differences(int64_t i) {
    for (int64_t k = 0; k < m_; ++k) scores_[i * m_ + k] += ahead_intercept_[k];
    T_.forward(i, &scores_[i * m_], row_.data());
  }

  void epigraph_step() {
    double* row = row_.data();
    for (int64_t i = 0; i < n_; ++i) {
      differences(i);
      double* y = &dual_[i * K_];
      for (int64_t k = 0; k < K_; ++k) y[k] = row[k] = y[k] / sigma_ + row[k];
      const double zeta = slack_dual_[i] / sigma_ + ahead_slack_[i];
      const double theta =
          project_epigraph(row, problem_.margins + i * K_, K_, zeta, row, scratch_);
      for (int64_t k = 0; k < K_; ++k) y[k] = sigma_ * (y[k] - row[k]);
      slack_dual_[i] = sigma_ * (zeta - theta);
      T_.adjoint(i, y, &pull_[i * m_]);
    }
  }

  void linear_step() {
    double* row = row_.data();
    for (int64_t i = 0; i < n_; ++i) {
      differences(i);
      double* y = &dual_[i * K_];
      const double* r = problem_.margins + i * K_;
      double total = 0.0;
      for (int64_t k = 0; k < K_; ++k) {
        const double moved = y[k] + sigma_ * (row[k] + r[k] - ahead_slack_[i]);
        y[k] = moved < 0.0 ? 0.0 : moved;
        total += y[k];
      }
      slack_dual_[i] = -total;
      T_.adjoint(i, y, &pull_[i * m_]);
    }
  }

  BudgetProblem problem_;
  Differences T_;
  PenaltyProx prox_;
  BudgetMethod method_;
  int64_t n_, d_, K_, m_;
  double tau_, sigma_, mass_squares_ = 0.0;
  bool settled_ = false;
  int64_t iteration_ = 0, summed_ = 0;
  std::vector<double> weights_, ahead_, gradient_;   // d x outputs
  std::vector<double> pull_, scores_;                // n x outputs
  std::vector<double> intercept_, ahead_intercept_;  // outputs
  std::vector<double> slack_, ahead_slack_;          // n: ζ
  std::vector<double> dual_, slack_dual_;            // n x K: y; n: ξ
  std::vector<double> row_;
  std::vector<double> sum_weights_, sum_intercept_, sum_dual_;
  ProxScratch scratch_;
};

}  // namespace sparsvm
