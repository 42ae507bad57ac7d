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
// Factors of a balance beyond exp of this are not the repair of rounding.
inline constexpr double kMostExponent = 30.0;
// What is added first to the unit diagonal of a singular Newton system of the balance.
inline constexpr double kRidge = 1e-14;
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

// ---- points between two solutions ----

// The part of the tolerance for solutions with points between them, and what of the whole the points
// between are planned to take.
inline constexpr double kSharpEnds = 0.3, kPlanned = 0.9;
// The least and the most steps of the grid from one solution to the next.
inline constexpr int64_t kNearest = 2, kFarthest = 6;
// An estimate of the curvature falls to no less than this share of the one before: those of vertices
// vary.
inline constexpr double kLeastFall = 0.5;
// Below this tolerance no grid is so fine.
inline constexpr double kLeastTol = 1e-6;

}  // namespace sparsvm::hinge_path_settings
