// Proximal method of multipliers for the hinge with a sparse penalty, its subproblems solved by a
// semismooth Newton method on the side of the features.
//
// In Z = ω∘W, with λ_i = p_i/alpha, around the point (Z̄, b̄) and the multipliers Ȳ,
//
//     minimise  penalty(Z) - <V, Z> + ‖Z - Z̄‖²/2σ + ‖b - b̄‖²/2σ_b + Σ_i e_i(scores),
//
// e the augmented hinge of gain c. Its minimiser and its Y are the next Z̄, b̄, Ȳ: both prox terms
// vanish as they converge. The subproblem is piecewise smooth, so Newton steps on its present piece
// (manifold of the penalty, tied samples) end it in finitely many steps; a line search on its
// objective makes it safe. Where damped steps give no descent either, the subproblem is given up.
//
// Only a working set of features takes part; the others are priced when the subproblem is solved.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "design/design.hpp"
#include "penalty/penalty_manifold.hpp"
#include "problem/problem.hpp"
#include "solvers/multiplier_newton/augmented_hinge.hpp"
#include "solvers/multiplier_newton/settings.hpp"
#include "solvers/multiplier_newton/system.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

// -----------------------------------------------------------------
// The working set of the method of multipliers: which features take part, and their blocks.
//
// Whole groups of the penalty come in; single features where it has no groups. Coordinates are
// Z = ω∘W; an unpenalised feature is measured by the root mean square of its column instead.

class NewtonFeatures {
 public:
  // rms: d root mean squares of the columns, the scale of unpenalised ones.
  NewtonFeatures(const HingeProblem& problem, const double* rms)
      : p_(problem), d_(problem.d()), outputs_(problem.outputs()), manifold_(problem.penalty),
        shape_(problem.penalty.shape()), inverse(size(d_)) {
    for (int64_t j = 0; j < d_; ++j) {
      const double size = p_.penalty.omega[j] > 0.0 ? p_.penalty.omega[j] : rms[j];
      inverse[j] = size > 0.0 ? 1.0 / size : 1.0;
    }
    const bool grouped = manifold_.grouped();
    const int64_t groups = grouped ? p_.penalty.n_groups : d_;
    list_by_group(d_, groups, [&](int64_t j) { return grouped ? p_.penalty.groups[j] : j; },
                  group_first_, group_member_);
    in_set_.assign(size(groups), 0);
  }

  // Whether all features take part from the beginning: outsiders would cost no less, or the
  // penalty leaves none at zero.
  bool take_all() const { return d_ <= Settings::kFewFeatures || !manifold_.selects(); }

  void take_all_features() {
    std::fill(in_set_.begin(), in_set_.end(), static_cast<unsigned char>(1));
    list_features();
  }

  // Price all features by G = XᵀỸ (d x outputs); add groups of which some block exceeds the dual
  // ball, or, with a set made afresh, comes near its edge. Returns whether the set has changed.
  bool choose(const double* G, const double* weights, double accuracy, bool afresh) {
    const auto groups = static_cast<int64_t>(in_set_.size());
    if (afresh) std::fill(in_set_.begin(), in_set_.end(), static_cast<unsigned char>(0));
    int64_t active = 0;
    std::vector<std::pair<double, int64_t>> outside;
    for (int64_t g = 0; g < groups; ++g) {
      if (afresh && needed(g, weights)) in_set_[g] = 1;
      active += in_set_[g];
      if (in_set_[g]) continue;
      const double price = priced(g, G);
      if (price > (afresh ? Settings::kNearEdge : 1.0 + accuracy)) outside.emplace_back(-price, g);
    }
    const auto cap = static_cast<std::size_t>(std::max(Settings::kEntrants, active));
    if (outside.size() > cap) {
      std::nth_element(outside.begin(), outside.begin() + static_cast<std::ptrdiff_t>(cap),
                       outside.end());
      outside.resize(cap);
    }
    for (const auto& [price, g] : outside) in_set_[g] = 1;
    if (outside.empty() && !afresh) return false;
    list_features();
    return true;
  }

  double linear_term(int64_t j, int64_t o) const {
    return p_.linear_term ? p_.linear_term[j * outputs_ + o] : 0.0;
  }

 private:
  using Settings = MultiplierNewtonSettings;

  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }

  // Whether a group must take part: it has non-zero or unpenalised coordinates.
  bool needed(int64_t g, const double* weights) const {
    for (int64_t m = group_first_[g]; m < group_first_[g + 1]; ++m) {
      const int64_t j = group_member_[m];
      if (p_.penalty.omega[j] == 0.0) return true;
      for (int64_t o = 0; o < outputs_; ++o) {
        if (weights[j * outputs_ + o] != 0.0) return true;
      }
    }
    return false;
  }

  // The largest dual norm among the blocks of a group outside the working set, W being zero.
  double priced(int64_t g, const double* G) const {
    std::vector<double> slope;
    double price = 0.0;
    const bool joint = manifold_.grouped() && !p_.penalty.per_class;
    for (int64_t o = 0; o < (joint ? 1 : outputs_); ++o) {
      slope.clear();
      for (int64_t m = group_first_[g]; m < group_first_[g + 1]; ++m) {
        const int64_t j = group_member_[m];
        for (int64_t q = joint ? 0 : o; q < (joint ? outputs_ : o + 1); ++q)
          slope.push_back((G[j * outputs_ + q] - linear_term(j, q)) * inverse[j]);
      }
      price = std::max(price, shape_.dual_norm(slope.data(), std::ssize(slope)));
    }
    return price;
  }

  // The features of the working set in order, their blocks, scales and anchors.
  void list_features() {
    const bool grouped = manifold_.grouped();
    std::vector<int32_t> position(size(d_), -1);
    features.clear();
    for (int64_t j = 0; j < d_; ++j) {
      if (!in_set_[grouped ? p_.penalty.groups[j] : j]) continue;
      position[j] = static_cast<int32_t>(features.size());
      features.push_back(static_cast<int32_t>(j));
    }
    scale.resize(features.size());
    for (std::size_t f = 0; f < features.size(); ++f) scale[f] = inverse[features[f]];
    blocks = BlockList{};
    const bool joint = grouped && !p_.penalty.per_class;
    for (int64_t g = 0; g < static_cast<int64_t>(in_set_.size()); ++g) {
      if (!in_set_[g]) continue;
      for (int64_t o = 0; o < (joint ? 1 : outputs_); ++o) {
        for (int64_t m = group_first_[g]; m < group_first_[g + 1]; ++m) {
          const int64_t j = group_member_[m];
          if (p_.penalty.omega[j] == 0.0) continue;
          for (int64_t q = joint ? 0 : o; q < (joint ? outputs_ : o + 1); ++q) {
            blocks.member.push_back(position[j] * outputs_ + q);
          }
        }
        const auto end = static_cast<int64_t>(blocks.member.size());
        if (end > blocks.first.back()) blocks.first.push_back(end);
      }
    }
  }

  HingeProblem p_;
  int64_t d_, outputs_;
  PenaltyManifold manifold_;
  BlockShape shape_;
  std::vector<int64_t> group_first_;
  std::vector<int32_t> group_member_;
  std::vector<unsigned char> in_set_;

 public:
  std::vector<int32_t> features;  // in ascending order
  std::vector<double> scale;      // 1/ω of each, 1/rms for unpenalised ones
  std::vector<double> inverse;    // the same of all d features
  BlockList blocks;               // over coordinates position·outputs + output
};

struct NewtonReport {
  int64_t steps = 0;
  double residual = 0.0;
  bool solved = false;
};

class MultiplierNewton {
 public:
  // rms: d root mean squares of the columns.
  MultiplierNewton(const HingeProblem& problem, const double* rms);

  void set_direct_limit(int64_t limit) { system_.direct = limit; }
  // A subproblem is left where the multiplications that the monitor counts exceed this.
  void set_work_limit(double most) { most_work_ = most; }

  void start(const double* weights, const double* intercept, const double* dual);

  // W (d x outputs).
  void weights(double* out) const;
  const std::vector<double>& intercept() const { return intercept_; }
  const std::vector<double>& dual() const { return dual_; }

  // The mean size of the non-zero penalised coordinates; 0 if there is none.
  double typical_size() const;

  // The point and multipliers found become the centre of the next subproblem.
  void accept();
  // Keep the centre; the point found is where the next search begins.
  void reject() { dual_ = multipliers_; }

  // Solve the subproblem until no component of its slope exceeds `accuracy` (relative to the
  // radius 1 of the dual ball, for intercepts and unpenalised features to Σλ), within `limit`
  // Newton steps. `typical` is the size expected of the coordinates.
  NewtonReport solve(double gain, double sigma, double sigma_free, double accuracy, int64_t limit,
                     double typical, Monitor& monitor);

 private:
  using Vector = std::vector<double>;
  using Settings = MultiplierNewtonSettings;

  // Accuracy of conjugate gradients.
  static double forcing(double residual);
  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }
  int64_t width() const { return static_cast<int64_t>(set_.features.size()); }
  int64_t coordinates() const { return (width() + 1) * outputs_; }

  // Bring features into the working set by the present dual; returns whether any came in.
  bool choose_features(double accuracy, bool afresh, Monitor& monitor);

  // Z, its centre and the anchors 1/σ of the working set, the intercepts at the end.
  void gather();
  void scatter();

  // -------------------------------------------------------------- values and slopes

  // change = the scores of D.
  void scores_of(const double* D, Vector& out, Monitor& monitor);

  // The objective at Z, whose scores are S; Y gets the maximisers of the hinge.
  SizedSum objective(const double* Z, const double* S, double* Y);

  void evaluate_afresh(Monitor& monitor);

  // Ỹ of the outputs.
  void sign_dual(const double* Y);

  // The slope of all but the penalty.
  void slope(Monitor& monitor);

  // -------------------------------------------------------------- Newton

  void newton(double accuracy, int64_t limit, NewtonReport& report, Monitor& monitor);

  // A Newton step, damped after steps that failed or had to be cut short: where fewer samples are
  // tied than coordinates active, only 1/σ keeps the undamped step finite.
  bool newton_step(NewtonReport& report, Monitor& monitor);

  double least_damping() const { return Settings::kLeastDamping / typical_; }

  // The largest absolute value in a block, and the step that its curvature suggests.
  std::pair<double, double> size_and_step(int64_t b, const Vector& mass) const;

  // The largest component of the slope, measured by proximal steps too short to leave the
  // neighbourhood of the point.
  double residual();

  // The manifold of proximal steps, entering blocks capped.
  void find_manifold();

  void cap_entrants(std::vector<std::pair<double, int64_t>>& entering, int64_t active);

  // Search along D, bent at its end by the projection on the orthants; returns the step, 0 if
  // there was no descent.
  double search(Monitor& monitor);

  // Take the trial point if it lies below the present one by more than `decrease`. `slack` times
  // the size of the terms counts as rounding: near the solution only rounding tells the values apart.
  bool try_point(double decrease, double slack);

  bool is_free(int64_t e) const;

  HingeProblem p_;
  const double* rms_;
  int64_t n_, d_, outputs_;
  AugmentedHinge hinge_;
  PenaltyManifold manifold_;
  TiedSamples tied_;
  MultiplierNewtonSystem system_;
  double damping_ = 0.0, typical_ = 1.0, mass_ = 0.0;
  double most_work_ = std::numeric_limits<double>::infinity();
  double gain_ = 1.0, sigma_ = 1.0, sigma_free_ = 1.0, value_ = 0.0;
  Vector weights_, intercept_, center_weights_, center_intercept_;  // Z = ω∘W and b
  Vector multipliers_;                                              // Ȳ, n x K
  Vector scores_, trial_scores_, change_;                           // n x outputs
  Vector dual_, trial_dual_, signed_;
  NewtonFeatures set_;
  Vector Z_, center_, anchor_, g_, trial_, D_;  // coordinates of the working set
  ManifoldPoint point_;
};

// -----------------------------------------------------------------
// The sizes of the terms of one subproblem after the other, for a caller that certifies the points.

class NewtonSchedule {
 public:
  // rms: root mean squares of the columns; relative_gap: of the point to start from.
  NewtonSchedule(const HingeProblem& problem, const double* rms, double relative_gap)
      : mass_(1.0 / problem.alpha) {
    for (int64_t i = 0; i < problem.n(); ++i) {
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t k = 0; k < problem.classes; ++k)
        largest = std::max(largest, problem.margin(i, k));
      margin_ += problem.mass[i] * largest;
    }
    // Scores are of the size of the margins; the multipliers sum to 1 / alpha.
    if (!(margin_ > 0.0)) margin_ = 1.0;
    double steepest = 0.0;
    for (int64_t j = 0; j < problem.d(); ++j) {
      const double omega = problem.penalty.omega[j];
      if (omega > 0.0) steepest = std::max(steepest, rms[j] / omega);
    }
    // Weighted coefficients of this size would alone give scores like the margins.
    size_ = steepest > 0.0 ? margin_ / steepest : 1.0;
    gain_ = std::clamp(kFirstGain / std::max(relative_gap, kNoSize), 1.0, kMostGain);
  }

  // Whether many subproblems, or attempts at one, brought nothing.
  bool stalled() const { return std::max(idle_, static_cast<double>(failures_)) >= kPatience; }

  // Solve the next subproblem, which is to bring the present relative gap towards `tol`, in at most
  // `left` steps, and take or leave its result.
  NewtonReport advance(MultiplierNewton& method, double relative_gap, double tol, int64_t left,
                       Monitor& monitor) {
    // What the subproblem should reach: the present gap, or less where its own inexactness has kept
    // the gap from falling. Never less than rounding lets it reach: from there on no subproblem counts
    // as solved, and all gain is cut away.
    aim_ = std::max(std::min(relative_gap, aim_), kLeastAim * tol);
    const double typical = method.typical_size();
    const double size = typical > 0.0 ? typical : size_;
    // The proximal term shifts the dual by (relative change of W) / weakness, its own radius being 1:
    // that has to be well below the gap.
    weakness_ = std::min(std::clamp(kWeakness / aim_, kLeastWeakness, kMostWeakness), weakest_);
    return method.solve(gain_ / margin_, weakness_ * size,
                        kInterceptWeakness * weakness_ * margin_ / mass_,
                        std::min(kAccuracy * aim_, kCoarsest),
                        std::min(kSteps, std::max<int64_t>(left, 1)), size, monitor);
  }

  // Takes or leaves the result, whose certificate brought the gap of the best points from `before` to
  // `after`.
  void settle(MultiplierNewton& method, const NewtonReport& report, double before, double after) {
    if (!report.solved) {
      method.reject();
      gain_ /= kCut;
      weakest_ = std::max(weakness_ / kWeaknessFall, 1.0);
      ++failures_;
      return;
    }
    method.accept();
    failures_ = 0;
    weakest_ *= kWeaknessGrowth;
    if (after < kProgress * before) {
      idle_ = 0.0;
    } else {
      idle_ += after < (1.0 - kSlow) * before ? kSlowCount : 1.0;
      aim_ *= kSharperAim;
    }
    gain_ *= report.steps <= kFewSteps    ? kFastGrowth
             : report.steps <= kSomeSteps ? kGrowth
             : report.steps <= kManySteps ? kSlowGrowth
                                          : 1.0;
  }

 private:
  static constexpr double kNoSize = 1e-300;  // stands for zero where something is divided by it
  // Newton steps allowed in one subproblem; more mean that its smoothing is too weak.
  static constexpr int64_t kSteps = 40;
  // Along convergent runs the gain stayed near this over the relative gap.
  static constexpr double kFirstGain = 0.03;
  // What a subproblem that took too many is made easier by.
  static constexpr double kCut = 10.0;
  // Growth of the gain by the steps that the last subproblem took.
  static constexpr int64_t kFewSteps = 8, kSomeSteps = 15, kManySteps = 25;
  static constexpr double kFastGrowth = 3.0, kGrowth = 1.9, kSlowGrowth = 1.3;
  // The gain of the first subproblem, at most. This and the rest of the block are rules of thumb: halving
  // or doubling one is not known to matter.
  static constexpr double kMostGain = 1e5;
  // Subproblems in a row that brought nothing, or failed, before the method gives up.
  static constexpr double kPatience = 12.0;
  // A gap that falls to this share is progress; without it the next aim falls to the second. Small gains
  // make small steps: a fall by kSlow counts as so little of a subproblem that brought nothing. Of 3,330
  // small degenerate problems 6 stall instead of 9.
  static constexpr double kProgress = 0.9, kSharperAim = 0.1, kSlow = 1e-3, kSlowCount = 0.25;
  // The least aim, in tolerances.
  static constexpr double kLeastAim = 1e-3;
  // Weakness of the proximal term: this over the aim, within limits; that of the intercepts so many times
  // as much; after a failure it falls, after a success it grows by these factors.
  static constexpr double kWeakness = 100.0, kLeastWeakness = 1e3, kMostWeakness = 1e10;
  static constexpr double kInterceptWeakness = 100.0, kWeaknessFall = 10.0, kWeaknessGrowth = 3.0;
  // Accuracy of a subproblem in aims, and the coarsest.
  static constexpr double kAccuracy = 0.1, kCoarsest = 1e-2;

  double mass_, margin_ = 0.0, size_ = 1.0, gain_ = 1.0, aim_ = 1.0, weakness_ = 0.0;
  double weakest_ = std::numeric_limits<double>::infinity(), idle_ = 0.0;
  int64_t failures_ = 0;
};

}  // namespace sparsvm
