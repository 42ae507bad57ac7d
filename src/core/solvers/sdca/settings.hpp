// The options and constants of dual coordinate ascent.
//
// Where no measurement is named the value is a rule of thumb: it was set once, and halving or
// doubling it is not known to matter.
#pragma once

#include <cstdint>

namespace sparsvm {

struct SdcaOptions {
  double relaxation = 1.7;  // ρ: up to 2 every update still ascends
  int sweeps = 2;           // per proximal step
};

struct SdcaSettings {
  // Shrinking of samples. With less than this share of the mean slack a sample counts as unmoved.
  static constexpr double kSmallMove = 0.2;
  // Unmoved c times running, 2^c − 2 sweeps pass a sample by; c ends here, sooner where it moved a
  // little. In the linear case a sample is passed by for at most so many sweeps.
  static constexpr int kLongestPause = 7, kShortestPause = 2, kMostPassed = 30;
  // Sweeps until a sample without any feature is visited again: nothing but other features moves it.
  static constexpr int64_t kSettled = 1000;
  // Changes of a dual below this share of its mass are rounding.
  static constexpr double kRounding = 1e-13;
  // The share of the curvature with all features that a step always reckons with, and its growth
  // where proximal steps have to be solved better.
  static constexpr double kCaution = 0.25, kMoreCaution = 4.0;
  // Multiplications between two questions whether Ctrl-C was pressed: well below 0.1 s.
  static constexpr int64_t kPollWork = 100000;

  // Multiplications of a matrix product that take as long as one of a sweep: 1000 x 300, K = 6, 2e9 a
  // second, the factorisations of interior_point on the same data 3.7e10.
  static constexpr double kSlowMultiplication = 20.0;

  // Sweeps before another solver may be predicted to be quicker, the relative gap from which newton's
  // steps converge, how many it then takes, and how many more for every digit that is left to there.
  static constexpr int64_t kFewestSweeps = 50;
  static constexpr double kNewtonEntry = 3e-2, kNewtonSteps = 20.0,
                          kStepsPerDigit = 60.0;
  // Multiplications by few columns in one of newton's steps: three products of eight times the time.
  static constexpr double kNewtonProducts = 24.0;

  // Evaluations of the whole problem: sweeps to the first, how many more to each next, and to the
  // last; without features to price an evaluation costs half a sweep, else several.
  static constexpr int64_t kFirstPause = 6, kPauseGrowth = 4, kMostSweeps = 50;
  static constexpr int64_t kLeastSweeps = 2, kSoonest = 8;
  // Means of the iterates are taken over the last one of so many parts of all sweeps.
  static constexpr int64_t kAveraged = 8;
  // The features are made anew from the dual, and the leverage of the intercept found, at every
  // 16th and every 4th evaluation: rounding gathers slowly.
  static constexpr int64_t kRebuildEvery = 16, kLeverageEvery = 4;
  // A proximal step is solved well enough with this share of its own move left.
  static constexpr double kInexact = 0.3;
  // A slack beyond this share of the margin brings a sample back.
  static constexpr double kBack = 1e-9;
  // Where the gap has not fallen to 0.9 of its best for so many sweeps, or multiples of the sweeps of
  // a proximal step, proximal steps get twice the sweeps, up to a limit.
  static constexpr double kFallen = 0.9;
  static constexpr int64_t kStandstill = 1000, kStandstillSteps = 8, kMostInner = 4096;
  // σ_b over σ times the mean square of a sample: the intercept is one coordinate among many.
  static constexpr double kInterceptShare = 0.1;
  // Bytes of entries read from dense samples that are always affordable; beyond, twice the data.
  // (COIL-20, 1440 x 1024 and 20 classes, l1: 1300 entries of 20480 take part; sweeps take a fifth of
  // the time, and class by class their steps are longer.)
  static constexpr int64_t kSmallRows = int64_t{1} << 26;
  // Dense samples of which the zeros are counted.
  static constexpr int64_t kCounted = 200;

  // Newton steps. So many products with the second derivative take as long as a sweep (by entries:
  // 10003 sentences of 77 classes, 4500 free duals, 0.1 ms against 6). They begin
  // below this relative gap, where sweeps alone would take longer than so many for what is left, and
  // more than a digit is; for less they are worth it by entries and where sweeps have been this
  // many (to 1e-3: 4000 documents of 100 classes, l1/linf, 3590 sweeps alone; COIL-20, 1440 x 1024
  // and 20 classes, l1 at 0.2 and 0.06 alpha_max 3.1 -> 2.3 and 7.5 -> 5.0 s, l1/linf at 0.5 of it
  // 13 -> 11 s, the last without the wait for so many sweeps).
  static constexpr int64_t kProductsPerSweep = 6, kEntryProductsPerSweep = 60;
  static constexpr int64_t kPatience = 300;
  static constexpr double kNewtonGap = 1e-2, kManySweeps = 100.0, kDigit = 10.0;
  // By entries the face still changes while the step is solved for: of 4000 and 10003
  // documents, 100 and 77 classes, to 1e-4, 20 products take 0.75 of the time of 100.
  static constexpr int kMostProducts = 100, kMostEntryProducts = 20, kMostHalvings = 8;
  static constexpr double kAccuracy = 0.1;  // of the linear equation, in the preconditioned norm
  // The damping grows where steps are cut and falls where they are not.
  static constexpr double kFirstDamping = 0.1, kLeastDamping = 1e-8, kMostDamping = 1.0;
  static constexpr double kLessDamping = 4.0, kMoreDamping = 4.0, kMuchMoreDamping = 16.0;
  // The share of the promised ascent asked for (Armijo), and what counts as rounding.
  static constexpr double kArmijo = 0.1, kValueRounding = 1e-14;
  // Bytes that may always be copied; beyond, a quarter of the data.
  static constexpr int64_t kSmallCopy = int64_t{1} << 21;

  // The balance of sweeps and proximal steps: how unequal they must be, growing with every change of
  // direction up to a limit.
  static constexpr double kUnequal = 2.0, kUnequalGrowth = 1.5, kMostUnequal = 16.0;
  // With Newton steps: dampings of a dual far from quadratic and of one all but quadratic, and in the
  // one case the sweeps per step that are too many, in the other the largest growth.
  static constexpr double kDamped = 0.1, kUndamped = 3e-3, kManyPerStep = 0.25, kMostGrowth = 10.0;
  // An evaluation is due so many times as late as the gap is expected to be small enough.
  static constexpr double kLate = 1.1;
  // The zero model is left a little inside, lest rounding decide whether the first feature is in use.
  static constexpr double kJustInside = 1.0 - 1e-9;
  // Margins are divided by a power of this many powers of two.
  static constexpr double kScalePowers = 10.0;
  // Imbalances are relative to a class's own flow, or to this part of all if it has less.
  static constexpr double kSmallFlow = 1e-3;

  // Pricing. Entries of XᵀỸ at a time: half a megabyte, which stays in the cache.
  static constexpr int64_t kBlockEntries = int64_t{1} << 16;
  // Dual norms between these are tight. Besides tight and used ones at least so many features take
  // part, and at least this part of the samples.
  static constexpr double kTightFrom = 0.999, kTightTo = 1.001;
  static constexpr int64_t kLeastFeatures = 200, kSamplesPerFeature = 20;
};

}  // namespace sparsvm
