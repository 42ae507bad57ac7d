// The constants of the proximal method of multipliers.
//
// Where no measurement is named the value is a rule of thumb: it was set once, and halving or
// doubling it is not known to matter.
#pragma once

#include <cstdint>

namespace sparsvm {

struct MultiplierNewtonSettings {
  // Newton steps tried in a row, each damped more, before the subproblem is given up.
  static constexpr int kAttempts = 6;
  // Conjugate gradients: rough far from the solution, so fine near it that the steps still converge
  // superlinearly. Measured on 1000 newsgroup articles: with 1e-3 throughout the whole took 2.2 to
  // 2.7 times longer.
  static constexpr double kRough = 0.1, kForcing = 1e4;
  static constexpr int64_t kMostIterations = 500;
  // The damping falls after steps longer than 0.5 and grows after steps shorter than 0.2; the least
  // is this over the typical size of a coordinate.
  static constexpr double kLong = 0.5, kShort = 0.2, kLessDamping = 10.0, kMoreDamping = 4.0;
  static constexpr double kLeastDamping = 0.01;
  // The line search: halvings down to this step, the share of the promised descent asked for
  // (Armijo), and what counts as rounding, relative to the size of the terms.
  static constexpr double kShortest = 0.05, kArmijo = 1e-4, kRounding = 1e-14;
  // The residual is measured by steps of this share of a block's size: they do not leave its
  // neighbourhood.
  static constexpr double kNear = 0.1;
  // Multiplications by few columns at a time, which wait for memory, for one of a matrix product. 1000
  // raw digits, l2: conjugate gradients 4e9 a second, the factorisations of interior_point 3.6e10.
  static constexpr double kFewColumns = 8.0;
  // Blocks that may enter at once, and groups that may join the working set: as many as are active,
  // at least so many.
  static constexpr int64_t kEntrants = 50;

  // Up to so many features all take part: pricing the others would cost no less.
  static constexpr int64_t kFewFeatures = 1024;
  // Dual norms from which on a group joins a working set that is made afresh.
  static constexpr double kNearEdge = 0.8;

  // Doubles gathered at a time of dense samples (32 MB), doubles that the factors of all outputs may
  // take (128 MB), and rays that are factored.
  static constexpr int64_t kPanel = int64_t{1} << 22;
  static constexpr int64_t kLargestFactors = int64_t{1} << 24, kMostRays = 4000;
  // By how much the diagonal is raised where a factorisation fails: at first, then by this factor,
  // up to a limit.
  static constexpr double kFirstRaise = 1e-14, kNextRaise = 30.0, kLastRaise = 1e-4;
  // Of a preconditioner, which may be wrong by so much: raised at once. Its diagonal is at least this
  // part of the curvature, which would leave no digits for the rest.
  static constexpr double kSafeRaise = 1.0 + 1e-12, kLeastDiagonal = 1e-8;
};

}  // namespace sparsvm
