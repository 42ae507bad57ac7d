// Forward-backward primal-dual splitting for the hinge (000).
//
// T_i x are the scores of all classes less that of the true one, for x = (W, b), and r_i the
// margins. Each iteration is
//
//   x⁺ = prox_{τα·penalty}(x − τ(Tᵀy − α·tilt)),   y⁺ = D(y + σT(2x⁺ − x)),
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

#include <cstdint>
#include <functional>
#include <vector>

#include "penalty/penalty.hpp"
#include "problem/problem.hpp"
#include "prox/prox.hpp"

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
  void forward(int64_t i, const double* scores, double* out) const;
  // The pull of K dual values of sample i on its `outputs` scores.
  void adjoint(int64_t i, const double* dual, double* out) const;

 private:
  const int32_t* y_;
  int64_t classes_, outputs_;
};

// An upper estimate of the spectral norm of [X 1] (of X without intercept, of X less the means of its
// columns if centred), by power iteration.
//
// Power iteration approaches the norm from below: the last value is raised by one per cent, but
// not beyond the Frobenius norm. Should it still fall short by little, no harm is done: the method
// is known to converge while τσ‖T‖² < 4/3.
double operator_norm(const Design& X, bool intercept, const Poll& poll, bool centred = false);

// The same for the paper's T, intercept included if the problem has one.
double difference_norm(const HingeProblem& problem, const Poll& poll);

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

class Fbpd {
 public:
  // `problem` is kept by its pointers. Its alpha multiplies the penalty in every form.
  Fbpd(const HingeProblem& problem, ProxTerm penalty, const FbpdOptions& options);

  // Begin at W (d x outputs), b and y (n x K).
  void start(const double* weights, const double* intercept, const double* dual);

  // Up to `count` iterations, fewer if ‖x⁺ − x‖ <= tolerance·‖x⁺‖, or, where x⁺ = 0, if the same
  // holds of y: at the start x rests at zero while y is still on its way. A tolerance below zero
  // asks for all. Returns the number done.
  int64_t run(int64_t count, double tolerance, const Poll& poll);

  // Whether the last run ended because the iterates had stopped moving.
  bool settled() const { return settled_; }
  const FbpdPoint& last() const { return x_; }
  // The mean since forget(); the last iterate if there is none.
  FbpdPoint mean() const;
  // Begin a new window of means.
  void forget();
  // ζ.
  const std::vector<double>& slack() const { return slack_; }

 private:
  double primal_step();
  void slack_step();
  void dual_step();
  void project_on_simplex(int64_t i);
  void project_on_epigraph(int64_t i);
  void project_on_orthant(int64_t i);
  void add_to_sums();

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
