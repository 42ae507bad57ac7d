// The options and constants of block coordinate descent with Newton steps.
//
// Where no measurement is named the value is a rule of thumb: it was set once, and halving or
// doubling it is not known to matter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linalg/dense.hpp"

namespace sparsvm {

struct BlockNewtonSettings {
  // Continuation: outer iterations before it begins, of groups and l2 (those that need none take 3 to 11) and of single
  // weights (up to 19), or those in which the gap was not halved, the ratio between its alphas, outer iterations
  // for each, and the relative gap at the first of them; at the others it falls towards the tolerance.
  static constexpr int kDirect = 12, kDirectSingle = 20, kHaste = 3, kPathIterations = 50;
  // With the logistic loss and single weights it begins after the work of this many pricings: models of few weights
  // at larger alphas cost less than epochs over all (COIL-20, l1, 0.01 alpha_max: 27 s of them, 3 with models; 20000
  // x 40, K = 30, elasticnet: 0.9 s of epochs, 6.5 if ended after 300). With squared hinges epochs are quicker.
  static constexpr double kDirectPricings = 1000.0;
  // Where features outnumber samples, after that of so many: sooner where classes are problems of their own, of which
  // points of a path cost little (57 fits in 0.85 of the time, with the other in 0.9). Elsewhere 150 cost 1.0 to
  // 1.2 times the time, l1/linf up to 19 times.
  static constexpr double kApartPricings = 150.0, kWidePricings = 4000.0;
  // It begins at once if, with the gap falling as in the last iteration, the rest would take this many times the
  // work that is left: near the end gaps fall faster (194 x 66, K = 20, l1: 0.07 s with 1). 43 drawn fits of the
  // logistic loss take 0.9 of the time, none longer; digits, l1, 0.01 alpha_max: 0.13 -> 0.08 s.
  static constexpr double kQuickening = 5.0;
  // Single weights: steps so short that points are extrapolated well and Hessians last (300 x 1500, K = 6, logistic:
  // 2.2 -> 0.2 s). Groups, whose models take longer, lose up to twice the time by them.
  static constexpr double kRatio = 3.0, kRatioSingle = 1.3, kRoughly = 0.1;
  // From this ratio of two alphas on the strong rule leaves enough out.
  static constexpr double kStrongRule = 0.7;
  // Paths: the share of the tolerance for the problem on the working set, and where to give up.
  // Where the rest violates nothing and the gap is still too large, the share falls.
  static constexpr double kPathShare = 0.9, kShareFall = 0.2, kLeastShare = 1e-5;
  // How well these are solved for: the gradient that is left at first, where the losses of the zero model have
  // slopes of about one; later relative to the tolerance times the smaller of alpha and the objective.
  static constexpr double kFirstBalance = 1e-2, kBalance = 1e-2;
  // The violation that is left of a model's first one.
  static constexpr double kModelShare = 0.01;
  // Violations that are left in a model and on a working set, relative to the tolerance times alpha: gaps are
  // sums of violations times weights.
  static constexpr double kModelEnough = 0.1, kEnough = 0.3;
  // A step is slow if it leaves more than this share of the gap.
  static constexpr double kSlow = 0.2;
  // Epochs and Newton steps per working set, the share of the progress that justifies one more, and
  // by how much they must reduce the violation.
  static constexpr int kRounds = 6;
  static constexpr double kWorthIt = 0.1, kInner = 0.1;
  // Violators taken in at least.
  static constexpr int64_t kLeast = 512;
  // The part of the best gap that a gap must be below, or the share of the gap that the objective must fall by,
  // to count as progress, and outer iterations without any.
  static constexpr double kFallen = 0.95, kProgress = 1e-3;
  static constexpr int kPatience = 25;
  // Scores are computed anew at every eighth outer iteration: rounding gathers slowly.
  static constexpr int kRefreshEvery = 8;
  // Entries times outputs of a product that is always affordable: a tenth of a millisecond.
  static constexpr double kCheapProduct = 3e5;
  // Iterations of conjugate gradients: at first, at least and at most; the relative residuals they
  // stop at, the smaller the more whole steps have succeeded: fewer than some, fewer than many, or more. A whole
  // step has succeeded if it gained this share of what the epoch before it did.
  static constexpr int kFirstLimit = 10, kLeastLimit = 8, kMostLimit = 400;
  static constexpr double kForcing[3] = {0.3, 0.1, 0.03}, kNewtonShare = 0.2;
  static constexpr int kSomeWhole = 3, kManyWhole = 5;
  // The same along paths, where steps begin near the solution; five are usual.
  static constexpr int kPathLimit = 30;
  static constexpr double kPathForcing = 0.03;

  // Coordinate descent. Where no sample has curvature now, a move may still bring some to life: the
  // model keeps this share of the curvature that all samples together can have.
  static constexpr double kFloor = 0.01;
  // Where columns are all zero, too, no step may divide by zero: the smallest number of all.
  static constexpr double kNoCurvature = 1e-300;
  // The factor of the diagonal by which a block's model bounds the loss. A move that keeps this share of the
  // promised descent is taken, and the factor falls towards the curvature met on the way; else it grows, to
  // a little beyond that curvature at least.
  static constexpr double kDescent = 0.01, kFactorFall = 0.8, kFactorGrowth = 1.7,
                          kBeyondRatio = 1.05;
  static constexpr double kLeastFactor = 1e-2, kMostFactor = 1e4;
  static constexpr int kAttempts = 12;
  // Blocks moved, and blocks priced, between two questions whether Ctrl-C was pressed: well below 0.1 s.
  static constexpr std::size_t kPolled = 64;
  static constexpr int64_t kPricedPolled = 256;

  // Pricing: the dual norm that counts as feasible in spite of rounding, and bisections for the scaling of a
  // linearised problem: to 1e-12.
  static constexpr double kOnBall = 1.0 + 1e-14;
  static constexpr int kBisections = 40;

  // Newton steps. Single precision sees no less curvature, relative to the diagonal.
  static constexpr double kFlat = 1e-7;
  // A coordinate without curvature would be moved without bound: it gets this share of its feature's mean.
  static constexpr double kFlatDiagonal = 1e-4;
  // The parts tried of a step cut at its kinks. Then, where it met too many at once, the step up to where it
  // meets these shares of them, a little further so that rounding does not stop it short, and ever
  // shorter ones.
  static constexpr double kLengths[] = {1.0, 0.5, 0.25}, kKinkShares[] = {0.5, 0.2, 0.05, 0.0};
  static constexpr double kBeyondKink = 1.0 + 1e-12, kStopRatio = 0.2;
  static constexpr int kShorterStops = 8;
  // The share of the promised descent asked for (Armijo), and what counts as rounding.
  static constexpr double kArmijo = 1e-4, kRounding = 4e-16;

  // A product touches an entry of the data for each of the outputs, eight at a time; in that time a
  // matrix product does this many operations.
  static constexpr double kOperations = 10.0;
  // How much faster BLAS is for each entry.
  static constexpr double kDenseSpeed = 4.0;
  // Rows multiplied at once when a matrix is formed.
  static constexpr int64_t kBatch = 128;

  // The direct system: its most variables, operations that are always affordable, what is added where it is
  // singular, and its damping: at first, at least once it has to rise, and the factors by which it changes.
  static constexpr double kLargest = 1000.0, kCheapMatrix = 1e6;
  static constexpr ScaledCholesky::Ridge kDirectRidge{1e-15, 1e-6, 1.0};
  static constexpr double kFirstDamping = 1e-2, kLeastDamping = 1e-15, kLonger = 8.0,
                          kShorter = 4.0;

  // The Gram preconditioner: samples to a feature. With fewer the matrix is all but singular, and
  // what it calls flat sends the steps from kink to kink: l1 on 100 x 10000 spectra stalled so.
  static constexpr std::size_t kSamples = 2;
  // Its entries that are always affordable: 8 MB.
  static constexpr std::size_t kSmall = 1 << 20;
  // What is added to its diagonal, relative to it, where it is not numerically positive definite: a
  // preconditioner may be wrong by a percent.
  static constexpr double kGramRidge = 1e-12, kGramRidgeGrowth = 1e3, kMostGramRidge = 1e-2;
};

}  // namespace sparsvm
