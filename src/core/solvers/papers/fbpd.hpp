// Forward-backward primal-dual splitting for the hinge (000).
//
// T_i x are the scores of all classes less that of the true one, for x = (W, b), and r_i the
// margins. Each iteration is
//
//   x⁺ = prox_{τα·penalty}(x − τ(Tᵀy − αV)),   y⁺ = D(y + σT(2x⁺ − x)),
//
// where b is not penalised, and D depends on the form of the problem:
//
// * regularised (Algorithm 1): minimise Σ_i p_i h_i(T_i x) + α penalty(W). D adds σr and projects
//   row i on the simplex of mass p_i. τσ‖T‖² <= 1.
//
// The other two minimise penalty(W) subject to Σ_i p_i ζ_i <= η and h_i(T_i x) <= ζ_i, with one slack
// ζ_i per sample and its multiplier ξ_i; ζ⁺ is the projection of ζ − τξ on the half-space.
//
// * epigraph (Algorithm 2): D removes the projection on the epigraph of h_i from (T_i x, ζ_i);
//   τσ·max(‖T‖², 1) <= 1.
// * linear (section 4.2): K copies ζ_ik that must be equal, and the linear constraints
//   T_i x + r_i <= ζ_i. The projection on equal copies within the budget is exact, their mean
//   followed by the projection on the half-space, so that one number per sample is kept. The row of
//   the true class says ζ_i >= 0. τσ(‖T‖² + 1) <= 1.
//
// The last iterates circle around the solution; their mean over a window is much closer (measured
// on iris and wine with l1 and l1/linf: gaps 10 to 200 times smaller), so sums are kept for it.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "penalty/penalty.hpp"
#include "problem/problem.hpp"
#include "prox/prox.hpp"
#include "support/numbers.hpp"

namespace sparsvm {

// -----------------------------------------------------------------
// The operator T of 000 and the norms that bound its steps.

// Called after every product; throws if the user asked for an end.
using Poll = std::function<void()>;

// T_i and its adjoint: from the scores of sample i to those of all classes less the score of the
// true one, and back. Two classes have one output and the scores (0, S_i).
class ScoreDifferences {
 public:
  explicit ScoreDifferences(const HingeProblem& problem)
      : y_(problem.y), classes_(problem.classes), outputs_(problem.outputs()) {}

  // The K differences of sample i from its `outputs` scores.
  void forward(int64_t i, const double* scores, double* out) const {
    const int32_t own = y_[i];
    if (outputs_ == 1) {
      out[own] = 0.0;
      out[1 - own] = own == 0 ? scores[0] : -scores[0];
      return;
    }
    const double base = scores[own];
    for (int64_t k = 0; k < classes_; ++k) out[k] = scores[k] - base;
  }
  // The pull of K dual values of sample i on its `outputs` scores.
  void adjoint(int64_t i, const double* dual, double* out) const {
    const int32_t own = y_[i];
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
  const int32_t* y_;
  int64_t classes_, outputs_;
};

namespace detail {

// Power iteration.
struct NormSettings {
  int most_passes = 300;  // of a slowly separating pair of singular values
  int least_passes = 5;   // the random start of T may look settled before it is
  double still = 1e-4;    // relative growth of a pass that ends it
  double raise = 1.01;    // ten times what the last passes may have left, and more
};

inline constexpr NormSettings kNorm;

// Numbers between −½ and 3/2, the same every time: the leading direction of data that are not
// negative is not negative either.
class Random {
 public:
  double next() { return static_cast<double>(xorshift(state_) >> 11) * 0x1p-52 - 0.5; }

 private:
  uint64_t state_ = kRandomState;
};

// The norm of a map x -> T x for x = (W, b): `apply` fills S (n x m) with TᵀT's left half, that is
// TᵢᵀTᵢ of the scores in S, and returns ‖T x‖².
template <typename Apply>
double power_iteration(const Design& X, bool intercept, int64_t m, std::vector<double>& W,
                       std::vector<double>& b, int least_passes, const Poll& poll, Apply apply,
                       bool centred = false) {
  const int64_t n = X.n(), d = X.d();
  std::vector<double> S(static_cast<std::size_t>(n * m));
  double norm = 0.0;
  for (int pass = 0; pass < kNorm.most_passes; ++pass) {
    const double length = std::hypot(norm2(W.data(), d * m), norm2(b.data(), m));
    if (!(length > 0.0)) break;
    for (double& value : W) value /= length;
    for (double& value : b) value /= length;
    X.scores(W.data(), m, S.data());
    poll();
    if (centred) {
      for (int64_t k = 0; k < m; ++k) {
        double total = 0.0;
        for (int64_t i = 0; i < n; ++i) total += S[i * m + k];
        b[k] = -total / static_cast<double>(n);
      }
    }
    double squares = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < m; ++k) S[i * m + k] += b[k];
      squares += apply(i, &S[i * m]);
    }
    X.transposed(S.data(), m, W.data());
    poll();
    std::fill(b.begin(), b.end(), 0.0);
    if (intercept) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < m; ++k) b[k] += S[i * m + k];
      }
    }
    const double last = norm;
    norm = std::max(norm, std::sqrt(squares));
    if (pass + 1 >= least_passes && norm <= last * (1.0 + kNorm.still)) break;
  }
  return norm;
}

// Random numbers times the lengths of the columns: neither tied to the scale of a few columns nor
// likely to be orthogonal to the leading direction. Returns the Frobenius norm of [X 1].
inline double random_start(const Design& X, bool intercept, int64_t m, std::vector<double>& W,
                           std::vector<double>& b) {
  std::vector<double> norms(static_cast<std::size_t>(X.d()));
  X.column_norms(norms.data());
  const double ones = intercept ? std::sqrt(static_cast<double>(X.n())) : 0.0;
  Random random;
  W.resize(static_cast<std::size_t>(X.d() * m));
  b.resize(static_cast<std::size_t>(m));
  for (int64_t j = 0; j < X.d(); ++j) {
    for (int64_t k = 0; k < m; ++k) W[j * m + k] = norms[j] * random.next();
  }
  for (double& value : b) value = ones * random.next();
  return std::hypot(norm2(norms.data(), X.d()), ones);
}

}  // namespace detail

// An upper estimate of the spectral norm of [X 1] (of X without intercept, of X less the means of its
// columns if centred), by power iteration.
//
// Power iteration approaches the norm from below: the last value is raised by one per cent, but
// not beyond the Frobenius norm. Should it still fall short by little, no harm is done: the method
// is known to converge while τσ‖T‖² < 4/3.
inline double operator_norm(const Design& X, bool intercept, const Poll& poll,
                            bool centred = false) {
  std::vector<double> W, b;
  const double frobenius = detail::random_start(X, intercept, 1, W, b);
  if (!(frobenius > 0.0)) return 0.0;
  const auto square = [](int64_t, double* s) { return *s * *s; };
  const int passes = centred ? detail::kNorm.least_passes : 1;
  const double norm = detail::power_iteration(X, intercept, 1, W, b, passes, poll, square, centred);
  return norm > 0.0 ? std::min(detail::kNorm.raise * norm, frobenius) : frobenius;
}

// The same for the paper's T, intercept included if the problem has one.
inline double difference_norm(const HingeProblem& problem, const Poll& poll) {
  const ScoreDifferences T(problem);
  std::vector<double> W, b, row(static_cast<std::size_t>(problem.classes));
  detail::random_start(*problem.design, problem.intercept, problem.outputs(), W, b);
  const auto apply = [&](int64_t i, double* s) {
    T.forward(i, s, row.data());
    T.adjoint(i, row.data(), s);
    double squares = 0.0;
    for (const double value : row) squares += value * value;
    return squares;
  };
  return detail::kNorm.raise * detail::power_iteration(*problem.design, problem.intercept,
                                                       problem.outputs(), W, b,
                                                       detail::kNorm.least_passes, poll, apply);
}

enum class FbpdForm { regularised, epigraph, linear };

struct FbpdOptions {
  FbpdForm form;
  double tau, sigma;
  double eta;  // the budget of the last two forms
};

// W (d x outputs), b (outputs) and the dual y (n x K).
struct FbpdPoint {
  std::vector<double> weights, intercept, dual;
};

struct FbpdSettings {
  // Every fourth iterate is enough for a mean.
  int64_t sum_every = 4;
  // Column sums that should vanish leave their rounding, step after step, in the intercept: x counts
  // as zero up to so many times τ in each iteration.
  double rounding = 4.0 * DBL_EPSILON;
};

inline constexpr FbpdSettings kFbpd;

class Fbpd {
 public:
  // `problem` is kept by its pointers. Its alpha multiplies the penalty in every form.
  Fbpd(const HingeProblem& problem, ProxTerm penalty, const FbpdOptions& options)
      : problem_(problem), T_(problem), penalty_(std::move(penalty)), options_(options),
        n_(problem.n()), d_(problem.d()), K_(problem.classes), m_(problem.outputs()) {
    x_ = {std::vector<double>(size(d_ * m_)), std::vector<double>(size(m_)),
          std::vector<double>(size(n_ * K_))};
    sums_ = x_;
    for (auto* array : {&ahead_, &gradient_}) array->resize(size(d_ * m_));
    for (auto* array : {&pull_, &scores_}) array->resize(size(n_ * m_));
    for (auto* array : {&slack_, &ahead_slack_, &slack_dual_}) {
      if (options.form != FbpdForm::regularised) array->resize(size(n_));
    }
    ahead_intercept_.resize(size(m_));
    margins_.resize(size(K_));
    row_.resize(size(K_));
    scratch_.reserve(K_);
    for (int64_t i = 0; i < n_; ++i) {
      mass_squares_ += problem.mass[i] * problem.mass[i];
      if (options.form == FbpdForm::regularised) x_.dual[i * K_ + problem.y[i]] = problem.mass[i];
    }
  }

  // Begin at W (d x outputs), b and y (n x K).
  void start(const double* weights, const double* intercept, const double* dual) {
    std::copy_n(weights, d_ * m_, x_.weights.begin());
    std::copy_n(intercept, m_, x_.intercept.begin());
    std::copy_n(dual, n_ * K_, x_.dual.begin());
    for (int64_t i = 0; i < n_; ++i) T_.adjoint(i, &x_.dual[i * K_], &pull_[i * m_]);
    forget();
    if (options_.form == FbpdForm::regularised) return;
    problem_.design->scores(weights, m_, scores_.data());
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t k = 0; k < m_; ++k) scores_[i * m_ + k] += intercept[k];
      T_.forward(i, &scores_[i * m_], row_.data());
      slack_[i] = -INFINITY;
      slack_dual_[i] = 0.0;
      for (int64_t k = 0; k < K_; ++k) {
        slack_[i] = std::max(slack_[i], row_[k] + problem_.margin(i, k));
        slack_dual_[i] -= dual[i * K_ + k];
      }
    }
  }

  // Up to `count` iterations, fewer if ‖x⁺ − x‖ <= tolerance·‖x⁺‖, or, where x⁺ = 0, if the same
  // holds of y: at the start x rests at zero while y is still on its way. A tolerance below zero
  // asks for all. Returns the number done.
  int64_t run(int64_t count, double tolerance, const Poll& poll) {
    settled_ = false;
    for (int64_t done = 1; done <= count; ++done) {
      problem_.design->transposed(pull_.data(), m_, gradient_.data());
      poll();
      double change = primal_step();
      if (options_.form != FbpdForm::regularised) slack_step();
      problem_.design->scores(ahead_.data(), m_, scores_.data());
      poll();
      const bool dual_decides = tolerance >= 0.0 && !(change < INFINITY);
      const std::vector<double> before = dual_decides ? x_.dual : std::vector<double>();
      dual_step();
      if (++iteration_ % kFbpd.sum_every == 0) add_to_sums();
      if (dual_decides) {
        double moved = 0.0, length = 0.0;
        for (std::size_t e = 0; e < before.size(); ++e) {
          const double now = x_.dual[e], step = now - before[e];
          moved += step * step;
          length += now * now;
        }
        change = moved > 0.0 ? std::sqrt(moved / length) : 0.0;
      }
      settled_ = change <= tolerance;
      if (settled_) return done;
    }
    return count;
  }

  // Whether the last run ended because the iterates had stopped moving.
  bool settled() const { return settled_; }
  const FbpdPoint& last() const { return x_; }
  // The mean since forget(); the last iterate if there is none.
  FbpdPoint mean() const {
    if (summed_ == 0) return x_;
    FbpdPoint out = sums_;
    const double share = 1.0 / static_cast<double>(summed_);
    for (auto* array : {&out.weights, &out.intercept, &out.dual}) {
      for (double& value : *array) value *= share;
    }
    return out;
  }
  // Begin a new window of means.
  void forget() {
    summed_ = 0;
    for (auto* array : {&sums_.weights, &sums_.intercept, &sums_.dual}) {
      std::fill(array->begin(), array->end(), 0.0);
    }
  }
  // ζ.
  const std::vector<double>& slack() const { return slack_; }

 private:
  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }
  static void add(const std::vector<double>& values, std::vector<double>& sums) {
    for (std::size_t e = 0; e < values.size(); ++e) sums[e] += values[e];
  }
  // `value` becomes `ahead`, and `ahead` the extrapolation 2 ahead − value; the squares of the step
  // and of the new value are added up.
  static void extrapolate(std::vector<double>& values, std::vector<double>& ahead, double& moved,
                          double& length) {
    for (std::size_t e = 0; e < values.size(); ++e) {
      const double now = ahead[e], step = now - values[e];
      moved += step * step;
      length += now * now;
      ahead[e] = now + step;
      values[e] = now;
    }
  }

  // x⁺ and 2x⁺ − x; returns ‖x⁺ − x‖/‖x⁺‖, infinity where x⁺ = 0 to rounding.
  double primal_step() {
    const double tau = options_.tau, alpha = problem_.alpha;
    for (int64_t e = 0; e < d_ * m_; ++e) ahead_[e] = x_.weights[e] - tau * gradient_[e];
    if (problem_.linear_term) {
      for (int64_t e = 0; e < d_ * m_; ++e) ahead_[e] += tau * alpha * problem_.linear_term[e];
    }
    penalty_.prox(ahead_.data(), tau * alpha);
    double moved = 0.0, length = 0.0;
    extrapolate(x_.weights, ahead_, moved, length);
    if (problem_.intercept) {
      std::vector<double> sums(size(m_));
      for (int64_t i = 0; i < n_; ++i) {
        for (int64_t k = 0; k < m_; ++k) sums[k] += pull_[i * m_ + k];
      }
      for (int64_t k = 0; k < m_; ++k) ahead_intercept_[k] = x_.intercept[k] - tau * sums[k];
      extrapolate(x_.intercept, ahead_intercept_, moved, length);
    }
    const double noise = kFbpd.rounding * tau * static_cast<double>(iteration_ + 1);
    return length > noise * noise ? std::sqrt(moved / length) : INFINITY;
  }
  // ζ⁺, the projection of ζ − τξ on the budget, and its extrapolation.
  void slack_step() {
    // For K equal copies the step is the mean of those of the copies.
    const double copies = options_.form == FbpdForm::linear ? static_cast<double>(K_) : 1.0;
    double total = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      ahead_slack_[i] = slack_[i] - options_.tau / copies * slack_dual_[i];
      total += problem_.mass[i] * ahead_slack_[i];
    }
    const double back = total > options_.eta ? (total - options_.eta) / mass_squares_ : 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      const double now = ahead_slack_[i] - back * problem_.mass[i];
      ahead_slack_[i] = 2.0 * now - slack_[i];
      slack_[i] = now;
    }
  }
  // y⁺ from the scores at the extrapolation, and its pull on the scores.
  void dual_step() {
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t k = 0; k < m_; ++k) scores_[i * m_ + k] += ahead_intercept_[k];
      T_.forward(i, &scores_[i * m_], row_.data());
      for (int64_t k = 0; k < K_; ++k) margins_[k] = problem_.margin(i, k);
      switch (options_.form) {
        case FbpdForm::regularised: project_on_simplex(i); break;
        case FbpdForm::epigraph: project_on_epigraph(i); break;
        case FbpdForm::linear: project_on_orthant(i); break;
      }
      T_.adjoint(i, &x_.dual[i * K_], &pull_[i * m_]);
    }
  }
  void project_on_simplex(int64_t i) {
    double* y = &x_.dual[i * K_];
    for (int64_t k = 0; k < K_; ++k) row_[k] = y[k] + options_.sigma * (row_[k] + margins_[k]);
    project_simplex(row_.data(), K_, problem_.mass[i], y, scratch_);
  }
  void project_on_epigraph(int64_t i) {
    const double sigma = options_.sigma;
    double* y = &x_.dual[i * K_];
    for (int64_t k = 0; k < K_; ++k) y[k] = row_[k] = y[k] / sigma + row_[k];
    const double zeta = slack_dual_[i] / sigma + ahead_slack_[i];
    const double theta =
        project_epigraph(row_.data(), margins_.data(), K_, zeta, row_.data(), scratch_);
    for (int64_t k = 0; k < K_; ++k) y[k] = sigma * (y[k] - row_[k]);
    slack_dual_[i] = sigma * (zeta - theta);
  }
  void project_on_orthant(int64_t i) {
    double* y = &x_.dual[i * K_];
    double total = 0.0;
    for (int64_t k = 0; k < K_; ++k) {
      const double moved = y[k] + options_.sigma * (row_[k] + margins_[k] - ahead_slack_[i]);
      y[k] = moved < 0.0 ? 0.0 : moved;
      total += y[k];
    }
    slack_dual_[i] = -total;
  }
  void add_to_sums() {
    ++summed_;
    add(x_.weights, sums_.weights);
    add(x_.intercept, sums_.intercept);
    add(x_.dual, sums_.dual);
  }

  HingeProblem problem_;
  ScoreDifferences T_;
  ProxTerm penalty_;
  FbpdOptions options_;
  int64_t n_, d_, K_, m_;
  bool settled_ = false;
  int64_t iteration_ = 0, summed_ = 0;
  double mass_squares_ = 0.0;
  FbpdPoint x_, sums_;
  std::vector<double> ahead_, ahead_intercept_;           // 2x⁺ − x
  std::vector<double> gradient_;                          // d x outputs: Tᵀy
  std::vector<double> pull_, scores_;                     // n x outputs
  std::vector<double> slack_, ahead_slack_, slack_dual_;  // n: ζ, 2ζ⁺ − ζ, ξ
  std::vector<double> margins_, row_;                     // K
  ProxScratch scratch_;
};

}  // namespace sparsvm
