// The constants of paths of the hinge, each with where its value comes from.
#pragma once

#include <cstdint>
#include <limits>

namespace sparsvm::hinge_path_settings {

// ---- proofs ----

inline constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2.0;
// Roundings around a sum of products that the count of its terms leaves out.
inline constexpr double kOtherRoundings = 18.0;
// Equalities of a dual point count as satisfied within this: the rounding of the objective.
inline constexpr double kBalanced = 128.0 * kUnit;
// Sums between classes below this share of the largest are dropped: they are worth less than the rounding
// of the others, and would leave the Newton systems singular.
inline constexpr double kNegligible = 1e-13;
// Newton steps to a balance, an end only; before it they end after so many without a smaller residual,
// and at the level of rounding after the first of these.
inline constexpr int kNewtonSteps = 200, kStalls = 10;
inline constexpr double kRounded = 32.0 * kUnit;
// Exponents whose exponentials, and their products, are in the range of doubles.
inline constexpr double kMostExponent = 300.0;
// What is added first to the unit diagonal of a singular Newton system of the balance.
inline constexpr double kRidge = 1e-14;
// Cutting rows and balancing again: at most so often, until rows are within this of their masses, and only
// while the gain grows by a hundredth (where the factor is near 1, by more than rounding).
inline constexpr int kCuts = 30;
inline constexpr double kWithinMass = 1e-8, kNearOne = 0.99;
inline constexpr double kWorthACut = 1.01, kWorthACutNearOne = 1.0 + 1e-9;
// Samples whose worst features differ by less than this share are scaled alike.
inline constexpr double kAlike = 1e-6;
// Multiples and means of proven bounds are rounded down by this: two operations, and two to spare.
inline constexpr double kDown = 1.0 - 4.0 * kUnit;
// The rounding of an objective, in sizes of what it is computed from.
inline constexpr double kObjectiveRounding = 32.0 * kUnit;

// ---- working sets ----

// Masses of samples are no smaller share of the largest for the solver.
inline constexpr double kLeastMass = 1e-100;

// Rounds of adding violators.
inline constexpr int kRounds = 12;
// Restricting pays while it leaves out at least half of the features.
inline constexpr double kSmall = 0.5;
// Below this share of the last alpha the last point says little about which features matter.
inline constexpr double kFar = 1.0 / 3.0;
// A group this close to its limit is at it, but for rounding.
inline constexpr double kAtLimit = 1e-12;
// Groups that violators may add to a small working set.
inline constexpr int64_t kLeastAdded = 50;
// Share of the tolerance asked for on some features, and of that what the solver's own bounds have to
// show: the proof on all of them may lose some.
inline constexpr double kInner = 0.8, kSharp = 0.5;
// Newton steps from a warm start, at most: more show that it does not pay.
inline constexpr int kWarmSteps = 25;

// ---- many samples ----

// Stands for zero where something is divided by it.
inline constexpr double kNoSize = 1e-300;
// Rules of thumb of solvers/sdca.py, set once: the first estimated gap to ask for, over tol; what to ask for
// next, over the estimate that did not do; after how many sweeps (doubled each time) the gap must have
// fallen to which share, lest the method count as stalled the second time; the most sweeps.
inline constexpr double kFirstTarget = 2.0, kNextTarget[2] = {0.3, 0.95};
inline constexpr int64_t kFirstMark = 1000, kSweeps = 20000;
inline constexpr double kFallen = 0.9;
// Newton steps of the method of multipliers, at most, and unknowns up to which its systems are factored.
inline constexpr int64_t kNewtonLimit = 3000, kDirect = 3000;

// ---- points between two solutions ----

// The part of the tolerance for solutions with points between them, and what of the whole the points
// between are planned to take.
inline constexpr double kSharpEnds = 0.3, kPlanned = 0.9;
// The least and the most steps of the grid from one solution to the next.
// (Sweeps, whose further digits cost more, begin with three: 1797 x 64, K = 10, l1/l2: 3.3 -> 3.8 s with
// two.)
inline constexpr int64_t kNearest = 2, kNearestOfSweeps = 3, kFarthest = 6;
// An estimate of the curvature falls to no less than this share of the one before: those of vertices
// vary.
inline constexpr double kLeastFall = 0.5;
// Below this tolerance no grid is so fine.
inline constexpr double kLeastTol = 1e-6;

}  // namespace sparsvm::hinge_path_settings
