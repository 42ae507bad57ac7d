// Proximal method of multipliers for the hinge with a sparse penalty, its subproblems solved by a
// semismooth Newton method on the side of the features.
//
// In Z = ω∘W, with λ_i = p_i/alpha, around the point (Z̄, b̄) and the multipliers Ȳ,
//
//     minimise  penalty(Z) - <tilt, Z> + ‖Z - Z̄‖²/2σ + ‖b - b̄‖²/2σ_b + Σ_i e_i(scores),
//
// e the augmented hinge of gain c. Its minimiser and its Y are the next Z̄, b̄, Ȳ: both prox terms
// vanish as they converge. The subproblem is piecewise smooth, so Newton steps on its present piece
// (manifold of the penalty, tied samples) end it in finitely many steps; a line search on its
// objective, with proximal gradient steps where Newton's give no descent, makes it safe.
//
// Only a working set of features takes part; the others are priced when the subproblem is solved.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "penalty/penalty_manifold.hpp"
#include "problem/hinge_problem.hpp"
#include "solvers/multiplier_newton/augmented_hinge.hpp"
#include "solvers/multiplier_newton/features.hpp"
#include "solvers/multiplier_newton/settings.hpp"
#include "solvers/multiplier_newton/system.hpp"
#include "solvers/multiplier_newton/tied_samples.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

struct NewtonReport {
  int64_t steps = 0, tied = 0, unknowns = 0, inner = 0, fallbacks = 0;
  double residual = 0.0;
  bool solved = false;
};

class MultiplierNewton {
 public:
  /// rms: d root mean squares of the columns.
  MultiplierNewton(const HingeProblem& problem, const double* rms);

  void set_direct_limit(int64_t limit) { system_.direct = limit; }

  void start(const double* weights, const double* intercept, const double* dual);

  /// W (d x outputs).
  void weights(double* out) const;
  const std::vector<double>& intercept() const { return intercept_; }
  const std::vector<double>& dual() const { return dual_; }
  int64_t working_set() const { return static_cast<int64_t>(set_.features.size()); }

  /// The mean size of the non-zero penalised coordinates; 0 if there is none.
  double typical_size() const;

  /// The point and multipliers found become the centre of the next subproblem.
  void accept();
  /// Keep the centre; the point found is where the next search begins.
  void reject() { dual_ = multipliers_; }

  /// Solve the subproblem until no component of its slope exceeds `accuracy` (relative to the
  /// radius 1 of the dual ball, for intercepts and unpenalised features to Σλ), within `limit`
  /// Newton steps. `typical` is the size expected of the coordinates.
  NewtonReport solve(double gain, double sigma, double sigma_free, double accuracy, int64_t limit,
                     double typical, Monitor& monitor);

 private:
  using Vector = std::vector<double>;
  using Settings = MultiplierNewtonSettings;

  /// Accuracy of conjugate gradients.
  static double forcing(double residual);
  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }
  int64_t width() const { return static_cast<int64_t>(set_.features.size()); }
  int64_t coordinates() const { return (width() + 1) * outputs_; }

  /// Bring features into the working set by the present dual; returns whether any came in.
  bool choose_features(double accuracy, bool afresh, Monitor& monitor);

  /// Z, its centre and the anchors 1/σ of the working set, the intercepts at the end.
  void gather();
  void scatter();

  // -------------------------------------------------------------- values and slopes

  /// change = the scores of D.
  void scores_of(const double* D, Vector& out, Monitor& monitor);

  /// The objective at Z, whose scores are S; Y gets the maximisers of the hinge.
  SizedSum objective(const double* Z, const double* S, double* Y);

  void evaluate_afresh(Monitor& monitor);

  /// Ỹ of the outputs.
  void sign_dual(const double* Y);

  /// The slope of all but the penalty.
  void slope(Monitor& monitor);

  // -------------------------------------------------------------- Newton

  void newton(double accuracy, int64_t limit, NewtonReport& report, Monitor& monitor);

  /// A Newton step, damped after steps that failed or had to be cut short: where fewer samples are
  /// tied than coordinates active, only 1/σ keeps the undamped step finite.
  bool newton_step(NewtonReport& report, Monitor& monitor);

  double least_damping() const { return Settings::kLeastDamping / typical_; }

  /// The largest absolute value in a block, and the step that its curvature suggests.
  std::pair<double, double> size_and_step(int64_t b, const Vector& mass) const;

  /// The largest component of the slope, measured by proximal steps too short to leave the
  /// neighbourhood of the point.
  double residual();

  /// The manifold of proximal steps, entering blocks capped.
  void find_manifold();

  void cap_entrants(std::vector<std::pair<double, int64_t>>& entering, int64_t active);

  /// Search along D, bent at its end by the projection on the orthants; returns the step, 0 if
  /// there was no descent.
  double search(Monitor& monitor);

  /// Take the trial point if it lies below the present one by more than `decrease`. `slack` times
  /// the size of the terms is forgiven: near the solution only rounding tells the values apart.
  bool try_point(double decrease, double slack);

  /// A proximal gradient step, shortened until the objective falls.
  bool proximal_step(Monitor& monitor);

  double total_mass() const;

  bool is_free(int64_t e) const;

  HingeProblem p_;
  const double* rms_;
  int64_t n_, d_, outputs_;
  AugmentedHinge hinge_;
  PenaltyManifold manifold_;
  TiedSamples tied_;
  MultiplierNewtonSystem system_;
  double damping_ = 0.0, typical_ = 1.0, mass_ = 0.0;
  double gain_ = 1.0, sigma_ = 1.0, sigma_free_ = 1.0, value_ = 0.0;
  Vector weights_, intercept_, center_weights_, center_intercept_;  // Z = ω∘W and b
  Vector multipliers_;                                              // Ȳ, n x K
  Vector scores_, trial_scores_, change_;                           // n x outputs
  Vector dual_, trial_dual_, signed_;
  NewtonFeatures set_;
  Vector Z_, center_, anchor_, g_, trial_, D_, steps_;  // coordinates of the working set
  ManifoldPoint point_;
};

}  // namespace sparsvm
