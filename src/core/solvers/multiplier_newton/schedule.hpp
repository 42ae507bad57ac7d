// The sizes of the terms of one subproblem after the other, for a caller that certifies the points.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "problem/problem.hpp"
#include "solvers/multiplier_newton/multiplier_newton.hpp"

namespace sparsvm {

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
