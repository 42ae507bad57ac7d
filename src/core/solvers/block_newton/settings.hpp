// The options and constants of block coordinate descent with Newton steps.
//
// Where no measurement is named the value is a rule of thumb: it was set once, and halving or
// doubling it is not known to matter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparsvm {

struct BlockNewtonSettings {
  // Continuation: outer iterations before it begins (four of five stress problems end within them), or
  // those in which the gap was not halved, the ratio between its alphas, outer iterations for each, and the
  // relative gap at the first of them; at the others it falls towards the tolerance.
  static constexpr int kDirect = 20, kHaste = 5, kPathIterations = 50;
  static constexpr double kRatio = 3.0, kRoughly = 0.1;
  // Paths: the share of the tolerance for the problem on the working set, and where to give up.
  static constexpr double kPathShare = 0.9, kLeastShare = 1e-5;
  // The share of the tolerance that intercepts and unpenalised weights off their optimum may add to a gap
  // that is no certificate yet.
  static constexpr double kImbalance = 0.1;
  // The violation that is left of a model's first one.
  static constexpr double kModelShare = 0.01;
  // A step is slow if it leaves more than this share of the gap.
  static constexpr double kSlow = 0.2;
  // Epochs and Newton steps per working set, the share of the progress that justifies one more, and
  // by how much they must reduce the violation.
  static constexpr int kRounds = 6;
  static constexpr double kWorthIt = 0.1, kInner = 0.1;
  // Violators taken in at least.
  static constexpr int64_t kLeast = 512;
  // The share of the gap that the objective must fall by to count as progress, and outer iterations
  // without any.
  static constexpr double kProgress = 1e-3;
  static constexpr int kPatience = 25;
  // Scores are computed anew at every eighth outer iteration: rounding gathers slowly.
  static constexpr int kRefreshEvery = 8;
  // Entries times outputs of a product that is always affordable: a tenth of a millisecond.
  static constexpr double kCheapProduct = 3e5;
  // Iterations of conjugate gradients: at first, at least and at most; the relative residuals they
  // stop at, the smaller the more whole steps have succeeded.
  static constexpr int kFirstLimit = 10, kLeastLimit = 8, kMostLimit = 400;
  static constexpr double kForcing[3] = {0.3, 0.1, 0.03};
  // The same along paths, where steps begin near the solution; five are usual.
  static constexpr int kPathLimit = 30;
  static constexpr double kPathForcing = 0.03;

  // Coordinate descent. Where no sample has curvature now, a move may still bring some to life: the
  // model keeps this share of the curvature that all samples together can have.
  static constexpr double kFloor = 0.01;
  static constexpr double kLeastFactor = 1e-2, kMostFactor = 1e4;
  static constexpr int kAttempts = 12;

  // Newton steps. Single precision sees no less curvature, relative to the diagonal.
  static constexpr double kFlat = 1e-7;
  // The share of the promised descent asked for (Armijo), and what counts as rounding.
  static constexpr double kArmijo = 1e-4, kRounding = 4e-16;

  // A product touches an entry of the data for each of the outputs, eight at a time; in that time a
  // matrix product does this many operations.
  static constexpr double kOperations = 10.0;
  // How much faster BLAS is for each entry.
  static constexpr double kDenseSpeed = 4.0;
  // Rows multiplied at once when a matrix is formed.
  static constexpr int64_t kBatch = 128;

  // The direct system: its most variables, operations that are always affordable, and its damping: at
  // first, at least once it has to rise, and the factors by which it changes.
  static constexpr double kLargest = 1000.0, kCheapMatrix = 1e6;
  static constexpr double kFirstDamping = 1e-2, kLeastDamping = 1e-15, kLonger = 8.0,
                          kShorter = 4.0;

  // The Gram preconditioner: samples to a feature. With fewer the matrix is all but singular, and
  // what it calls flat sends the steps from kink to kink: l1 on 100 x 10000 spectra stalled so.
  static constexpr std::size_t kSamples = 2;
  // Its entries that are always affordable.
  static constexpr std::size_t kSmall = 1 << 20;
};

}  // namespace sparsvm
