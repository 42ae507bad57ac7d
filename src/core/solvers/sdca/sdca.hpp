// Proximal point steps by dual coordinate ascent over samples, for the multiclass hinge.
//
// With λ_i = p_i/alpha and all duals divided by alpha, a proximal step solves
//
//   min_{W,b}  g(W) − ⟨T, W⟩ + Σ_i λ_i hinge_i(W, b) + ½ Σ_j a_j‖W_j − C_j‖² + ‖b − c‖²/2σ_b
//
// whose dual, over Y_i in the simplex of mass λ_i, is smooth: one sample at a time,
//
//   Y_i ← P(Y_i + ρ(W(V)ᵀx_i + b + r_i)/q_i),   V −= x_i ΔY_iᵀ,   b −= σ_b ΔY_i,
//
// with q_i = Σ_j γ_j x_ij² + σ_b (samples.hpp; V, W(V) and γ in features.hpp). After a few sweeps
// the centre moves to (W, b). Samples that do not move are visited more and more rarely. Features
// are a working set, priced with the whole G = XᵀỸ from time to time (pricing.hpp).
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "problem/problem.hpp"
#include "solvers/sdca/features.hpp"
#include "solvers/sdca/pricing.hpp"
#include "solvers/sdca/samples.hpp"
#include "solvers/sdca/settings.hpp"
#include "support/mmap_vector.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

// What an evaluation of the whole problem found, divided by alpha.
struct SdcaValues {
  double objective = INFINITY, dual = -INFINITY;
  double samples = 0.0;    // λ max(S + r) − ⟨Y, S + r⟩: what the sweeps have left
  double scaling = 0.0;    // what making the dual feasible costs, within the working set
  double features = 0.0;   // ⟨centre's last move, W⟩: what the proximal steps have left
  double intercept = 0.0;  // the same of the intercept
  double norm = 0.0;       // the largest dual norm of all groups
  double gap() const { return objective - dual; }
};

// Coefficients of the features in use, outputs each, and intercepts.
struct SdcaPoint {
  double objective = INFINITY;
  int64_t nonzeros = 0;
  std::vector<int32_t> used;
  MmapVector<double> rows;
  std::vector<double> intercept;
};

// Doubles or halves a proximal parameter where sweeps and proximal steps are unequally far from
// done. Every change of direction makes the next one harder: the estimates are noisy, and every
// change costs some sweeps.
class SdcaBalance {
 public:
  double factor(double sweeps, double steps) {
    const int direction = sweeps > threshold_ * steps ? -1 : steps > threshold_ * sweeps ? 1 : 0;
    if (direction == 0) return 1.0;
    if (direction == -last_)
      threshold_ = std::min(SdcaSettings::kUnequalGrowth * threshold_, SdcaSettings::kMostUnequal);
    last_ = direction;
    return direction > 0 ? 2.0 : 0.5;
  }

  // With Newton steps, whose mean damping tells how far from quadratic a proximal step's dual is:
  // a smaller parameter makes it smoother, and where steps are all but undamped, which solves large
  // proximal steps as well as small ones, it can be larger.
  static double newton_factor(double damping, double sweeps, double steps) {
    using Settings = SdcaSettings;
    if (damping > Settings::kDamped) return sweeps > Settings::kManyPerStep * steps ? 0.5 : 1.0;
    if (damping > Settings::kUndamped || !(steps > Settings::kUnequal * sweeps)) return 1.0;
    return std::min(std::sqrt(steps / sweeps), Settings::kMostGrowth);
  }

 private:
  double threshold_ = SdcaSettings::kUnequal;
  int last_ = 0;
};

class Sdca {
 public:
  Sdca(const HingeProblem& problem, const SdcaOptions& options);

  // W (d x outputs, or null for 0), b and Y (n x K, divided by alpha). Without Y a spread over the
  // classes; with l2 all mass on the true ones, whose W is 0: spread masses take long to gather.
  void start(const double* W, const double* b, const double* Y);

  // The multiplications that interior_point would take. run() ends when the monitor has counted as many,
  // or where at the present rate sweeps would take longer than that or than newton.
  void set_rival_work(double work) { rival_work_ = work; }

  // Proximal steps until the estimated gap is at most target · |objective|, or enough sweeps.
  bool run(double target, int64_t sweeps, Monitor& monitor);

  int64_t sweeps() const { return sweeps_; }
  // Whether run() ended as others would be quicker.
  bool outlasted() const { return outlasted_; }
  int64_t visits() const { return samples_.visits(); }
  double sigma() const { return sigma_; }
  double sigma_b() const { return sigma_b_; }
  int64_t inner() const { return inner_; }
  int64_t working_set() const { return at_work_; }
  // Single entries that take part; all of the working set's features where there are none.
  int64_t entries() const { return entries_at_work_; }
  const SdcaValues& values() const { return values_; }
  const MmapVector<double>& dual();
  MmapVector<double> give_dual();
  // Of the best evaluated centre; where all features are in use, of the present one.
  const std::vector<double>& intercept() const {
    return features_.linear() ? intercept_ : best_.intercept;
  }
  // The features that may be in use, and their rows of W, outputs each.
  const std::vector<int32_t>& used() const;
  MmapVector<double> used_weights() const;
  // The same, not held here any more where all features are in use.
  MmapVector<double> give_weights();
  MmapVector<double> give_mean_dual() { return samples_.give_mean_dual(); }

 private:
  using Settings = SdcaSettings;

  // One proximal step: a Newton step where it pays, then so many sweeps, or fewer once its own problem is solved well enough.
  void step(int64_t inner, Monitor& monitor);

  // Whether another solver is predicted to be quicker: newton from where its steps converge, or
  // interior_point.
  bool outlasted(double target, double spent);
  // Multiplications of a step of newton from here: its equations, and products with few columns.
  double newton_work() const;

  // Multiplications of a sweep over all samples.
  double whole_sweep() const;

  // Whether sweeps alone would take long to the target, and Newton steps can help: the face should
  // be near, with more free duals than coefficients they would mostly be damped, and for less than
  // a digit they are not worth the memory.
  bool slow(double target) const;

  // Sweeps to the next evaluation: the usual pause, or less where the gap should be there earlier.
  int64_t until_evaluation(double target) const;

  // Give up what rebuilding makes anew, while others need memory; reading dense data takes too long.
  void release();

  bool norm_penalty() const { return problem_.penalty.square == 0.0; }
  double omega(int64_t j) const { return problem_.penalty.omega[j]; }

  // Dense data of which at most half is not zero are read compressed.
  void choose_reading();

  // Ỹ = λ_i(π_k − [k = y_i])ε with the class shares π and the largest feasible or best ε.
  void spread_dual();

  // The mean of the samples' largest margins, as a power of 1024: σ adapts to anything nearer. 1
  // where there are none.
  double typical_margin() const;

  double margin_value() const;

  void price();

  // T − XᵀỸ of the listed features, m x outputs.
  MmapVector<double> pull_of(const std::vector<int32_t>& features);

  // The first σ: single updates move a dual by its mass per unit of score. Too small a σ is soon
  // doubled; from too large a one the first hundred sweeps come to nothing. Weights are of the
  // size of the margins, and so is σ.
  void set_first_sigma();

  // Whether the state of the features is what the dual makes it, but for rounding: where all take
  // part for good and no proximal term holds them, nothing has to be made anew after every evaluation.
  bool current() const {
    return features_.linear() && features_.count() == d_ &&
           evaluations_ % Settings::kRebuildEvery != 0;
  }

  MmapVector<double> center_of(const std::vector<int32_t>& list);

  // Whether so many entries of dense samples may be copied out, one by one.
  bool affordable(int64_t entries) const;

  void rebuild();

  // Evaluate the centre and the dual on the whole problem.
  void evaluate();

  void store_center();

  // Keep the centre if it is better than those before: inexact proximal steps need not descend.
  void keep_best(SdcaValues& now);

  // Sweeps lag when σ is large, proximal steps when it is small: even the two out.
  void adapt();

  HingeProblem problem_;
  SdcaOptions options_;
  int64_t n_, d_, K_, outputs_;
  SdcaFeatures features_;
  SdcaSamples samples_;
  SdcaPrices prices_;
  SdcaWorkingSet working_set_;
  SdcaCosts costs_;
  SdcaBalance balance_, balance_b_;
  bool compress_ = false, stale_ = false, newton_ = false;
  double margin_ = 1.0, sigma_ = 1.0, sigma_b_ = 1.0, move_ = 0.0, leverage_ = 1.0;
  double best_gap_ = INFINITY, rate_ = 0.0;  // rate: of the logarithm of the gap, per sweep
  double rival_work_ = INFINITY;
  std::optional<double> spent_before_;  // what the monitor had counted
  bool outlasted_ = false;
  // The work and the smallest gap at each evaluation.
  struct Progress {
    double spent, gap;
  };
  std::vector<Progress> progress_;
  int64_t work_ = 0, sweeps_ = 0, inner_ = 2, pause_ = Settings::kFirstPause, nonzeros_ = 0,
          evaluations_ = 0;
  int64_t evaluated_ = 0, best_at_ = 0, adapted_ = 0;  // work, but best_at_: sweeps
  int64_t at_work_ = 0, entries_at_work_ = 0;
  std::vector<double> intercept_;
  std::vector<int32_t> used_;  // the features that are not zero at the centre
  SdcaValues values_;
  SdcaPoint best_;
};

}  // namespace sparsvm
