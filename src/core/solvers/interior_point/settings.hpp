// The constants of the interior point, each with where its value comes from. Gaps are relative unless
// said otherwise; what is not said to be measured is a usual value that nothing depends on closely.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparsvm::interior_point_settings {

// ---- start ----

// Share of a class without samples in the first dual point, which must be positive.
inline constexpr double kEmptyShare = 1e-2;
// Largest fraction of the centre in the first dual point.
inline constexpr double kLargestFraction = 0.9;
// Dual norms of the first point: blocks beyond the first are left alone, the others stay below the
// second; the third is what a step aims at, so that rounding does not exceed the second.
inline constexpr double kOnBoundary = 0.9, kInsideBall = 0.95, kAimedInside = 0.949;
// Smaller fractions than this mean that features and alpha are out of proportion.
inline constexpr double kLeastFraction = 1e-200;
// Below this fraction of the centre a start with X'Y~ near zero on some features is tried.
inline constexpr double kSmallFraction = 0.05;
// The fraction of the centre where a start may leave the dual ball.
inline constexpr double kOutsideFraction = 0.5;
// How much farther the other features must allow, for a list of features to be worth trying.
inline constexpr double kRelief = 100.0;
// Equalities of such a start, which are factored: more take 40 s where the start saves ten steps.
inline constexpr int kMostEqualities = 2000;
// Damped Newton steps towards its equalities, at most, and the part of the way to the boundary that they
// go.
inline constexpr int kEqualitySteps = 8;
inline constexpr double kEqualityStep = 0.9;
// A fraction of the centre that leaves the ball falls at least to this part.
inline constexpr double kFractionFall = 0.999;
// How far a warm start is pulled inside: its slacks in margins, and the share of the centre in its
// dual point. (Slacks of 0.05: 8 % more steps along six paths.)
inline constexpr double kWarmSlack = 0.02, kWarmMix = 0.1;
// Least complementarity at the start, relative to the mean. Without it samples of tiny mass block
// every step; with 0.1 the slacks it inflates cost more than the centring gains.
inline constexpr double kCentrality = 1e-4;

// ---- columns ----

// A sparse column is centred if less than this is left of its square: it is all but constant.
inline constexpr double kConstantColumn = 0.1;
// An unpenalised column with less than this beside its mean is constant.
inline constexpr double kNoVariation = 1e-14;
// Columns of X gathered at a time for X X'.
inline constexpr int64_t kGramPanel = 512;

// ---- step ----

// Part of the way to the boundary that a step goes.
inline constexpr double kStepFraction = 0.985;
// Both step lengths below this: a plain centring step instead. Below the second a step does not
// count, and after so many of these in a row the solver gives up.
inline constexpr double kShortStep = 0.1, kNoStep = 1e-4;
inline constexpr int kMostNoSteps = 4;
// Quadratic term on free coefficients, of the gap.
inline constexpr double kProximal = 1e-12;
inline constexpr double kMinRegularisation = 1e-12, kMaxRegularisation = 1e-4,
                        kRegularisationGrowth = 1e2, kRegularisationFall = 1e-2;
// Relative residuals of the Newton solve: one that needs no more regularisation, and one that more
// explicit unknowns would not improve.
inline constexpr double kAccurate = 1e-9, kBearable = 1e-8;
// Gap above which a direction needs few digits.
inline constexpr double kCoarseGap = 1e-2;
// Products one coordinate at a time, where all features of all classes are so many times as many.
inline constexpr double kFewCoordinates = 2.0;

// ---- explicit coordinates ----

// On the central path D of a coordinate is (how far its weight may move)^2 / mu. Where that moves
// the scores by the root of this many margins the coordinate is an unknown of its own.
inline constexpr double kExplicitMove = 1e6;
// Where all columns of a group are alike, so many times as much, and so many times less whenever the
// solves have lost their digits; below one only where no regularisation brings them back.
inline constexpr double kAlikeFactor = 1e6, kAlikeReduction = 1e-3, kLeastAlikeFactor = 1e-12;
// Columns of a group are not alike where one is so many times as large as the least.
inline constexpr double kContrast = 100.0;

// ---- working set ----

// The first working set has about as many features as samples, and at least so many: with four times
// as many, iterations took twice as long and their number hardly fell.
inline constexpr int64_t kLeastOpening = 10;
// A warm start knows better: so many blocks besides each that it uses.
inline constexpr int64_t kOpeningPerUsed = 1;
// Dual norms: at the first, blocks are in the first working set; at the second they enter in later
// iterations. In early ones, and while blocks outside shorten the steps, kNear.
inline constexpr double kOpeningNorm = 0.95, kEnteringNorm = 0.98;
inline constexpr int kEarlyIterations = 4;
// A block whose dual norm is beyond the first enters with its dual vector scaled to the second.
inline constexpr double kStrictlyInside = 1.0 - 1e-9, kEnteringScale = 0.5;
// Part of the largest feasible step that is taken towards a block outside.
inline constexpr double kOutsideFractionOfStep = 0.95;
inline constexpr int kStepBisections = 40;
// Blocks enter that would limit a step so many times as long; of those next to them at most this
// share of the working set at once.
inline constexpr double kNextStep = 1.5, kNextShare = 0.2;
// Blocks that enter at once, at most: so many times n, and some.
inline constexpr int kEnteringPerSample = 4, kEnteringMore = 50;
// From this gap on, blocks leave the working set whose dual norm stays below the second, where they
// would not enter, along so many last steps; earlier ones come back and block the way. Fewer than
// one in so many blocks are not worth the moving.
inline constexpr double kSettlingGap = 0.3, kIdleNorm = 0.95, kIdleSteps = 2.0;
inline constexpr std::size_t kFewIdle = 16;

// Blocks are near the boundary of their dual ball from this dual norm on.
inline constexpr double kNear = 0.9;

// ---- Newton system ----

// Relative residual that more refinements do not improve.
inline constexpr double kRefined = 1e-11;
// What a system in single precision attains, and the samples from which on it saves time.
inline constexpr double kSingle = 1e-4;
inline constexpr int kLeastSingle = 64;
// Columns of the elimination by features where it is the only one that keeps the digits.
inline constexpr double kMostColumns = 3000;
// Flops of the elimination by features that are worth one of that by samples; with explicit
// coordinates, whose digits the other loses.
inline constexpr double kFeatureCost = 1.5, kExplicitFeatureCost = 0.1;
// Steps of a solve, which cost little beside a factorisation; after so many the residual must have
// halved again.
inline constexpr int kMaxRefinements = 48, kRefinementPatience = 6;
// More refinements than this cost what explicit inverses save.
inline constexpr int kFewRefinements = 2;
// Relative regularisation of a matrix that is not numerically positive definite: the first, the
// factor, and the limit.
inline constexpr double kFirstShift = 1e-15, kShiftGrowth = 30.0, kLargestShift = 1e-6;
// Columns that couple the classes are worked with as sparse ones below this density.
inline constexpr double kSparseDensity = 0.2;
// Columns read and rows written at once; rows of a panel; size of a triangle inverted by columns; of
// one after which signals are polled.
inline constexpr int kTile = 8, kPanel = 48, kSmallTriangle = 16, kPolledTriangle = 256;

// ---- face ----

// Gap from which the face is looked for, with few samples and with so many, where a step on it takes a
// sixth of one of the interior point instead of a third; after a failure the gap must fall by the
// third.
inline constexpr double kFaceGap = 0.3, kEarlyFaceGap = 0.6, kNextFaceGap = 0.5;
inline constexpr int kManySamples = 64;
// Steps, at most; steps without progress; and the part of the primal value that is progress.
inline constexpr int kFaceSteps = 60, kFaceWaits = 4;
inline constexpr double kFaceProgress = 1e-3;
// Pairs per sample in the guess, at most: those that are missing enter.
inline constexpr int kGuessedPairs = 4;
// Changes per active pair or block with which all features are priced, first and relative to the
// last time; how many blocks may join, per block.
inline constexpr double kFirstPricing = 0.3, kNextPricing = 0.7, kJoining = 0.5;
// Proximal terms of the first step in relative gaps; by what they fall, if anything has changed and
// else; the least in mean violations; and what is left of them in the end: with less the matrices
// would lose the digits that it gains.
inline constexpr double kHeld = 5.0, kRelease = 4.0, kLastRelease = 16.0, kViolations = 2.0,
                        kLeastHeld = 1e-4;
// While more than this is held back, matrices in single precision are as good.
inline constexpr double kCoarseHeld = 1e-2;
// Violations that count as none.
inline constexpr double kFaceRounding = 1e-9;

// ---- end ----

// Dual residuals that count as none; of the equalities of free coefficients, per total mass.
inline constexpr double kRounding = 2e-15, kFreeRounding = 1e-8;
// Gap below which points with exact zeros are tried.
inline constexpr double kSparseGap = 0.1;
// Relative residual of the solve by which weights take back what zeros did to the scores.
inline constexpr double kRefitAccuracy = 1e-3;
// Iterations without a sparse point before polishing; the gap in tolerances that counts, while there
// is progress.
inline constexpr int kSettled = 4;
inline constexpr double kSettledGap = 0.1;
// Iterations without progress before giving up; of those whose solves have lost their digits each
// counts for so many. What counts as progress of the gap and of the primal residual.
inline constexpr int kPatience = 30, kInaccurate = 3;
inline constexpr double kGapProgress = 0.9, kResidualProgress = 0.1;
// Polishing: share of the first dual point in that of the restart on the active set, the gap above
// which it is the dual that is wrong, the dual norm to which blocks are pulled inside, and its steps.
inline constexpr double kPolishMix = 1e-3, kPolishGap = 0.1, kPolishScale = 0.9;
inline constexpr int kPolishSteps = 25;
// Steps that remove what rounding left of the equalities.
inline constexpr int kProjections = 5;

}  // namespace sparsvm::interior_point_settings
