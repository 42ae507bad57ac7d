// The dual step of fbpd; for compressed rows together with both products.
//
// In registers of four or eight doubles a row stays there from its scores to its share of the next
// gradient, see sweep.hpp; where there are none each product has a pass of its own and rows are projected
// in plain loops. The threshold of a projection starts from the last one. Rows of four classes and fewer
// whose scores are at hand would leave most of the time to waiting: they are projected side by side, all
// from nothing.
#pragma once

#include <cstdint>

#include "design/design.hpp"

namespace sparsvm {

/// Samples at rest that a sweep need not look at, see resting_units.hpp.
struct RestingRows {
  double distance = 0.0;              // of the weights from those of reference
  double* allowed = nullptr;          // n: at which distance a sample rests, −1 if it does not
  const double* tolerance = nullptr;  // n: distance per slack
  std::int64_t* looked = nullptr;     // how many had to be looked at and still rest
};

/// What moves and what stays in the dual step of `n` samples of many classes; Ỹ is n x K, row-major.
struct DualRows {
  static constexpr std::int64_t least_outputs = 5;
  std::int64_t n, outputs;
  const double* intercept;     // K
  const double* cost;          // K x K margins, a row per true class
  const double* margin_scale;  // n factors of the margins, or null
  const double* mass;          // n
  const std::int32_t* y;       // n true classes
  double sigma;
  double* tilde;              // Ỹ, changed in place
  double *threshold, *share;  // n, of the last projection, and one over the number above it
  double* sums;               // K, the new column sums of Ỹ
  double* work;               // dual_rows_work(K)
  RestingRows rest = {};      // for sweeps
  double* along = nullptr;    // n x K: sweeps add the new Ỹ to it, or null
  bool even = false;          // whether the cost of all classes but the true one is `even_margin`
  double even_margin = 0.0;
};

constexpr std::int64_t dual_rows_work(std::int64_t outputs) { return outputs + 4; }

/// Ỹ_i <- P(Y_i + σ(scores_i + intercept + margins_i)) − own_i for all samples, P being the
/// projection on the simplex of mass_i and own_i that mass on the true class.
void dual_rows(const DualRows& rows, const double* scores);

/// The move of the threshold of sample i from `last` on for its row in `moved`, filled up with four
/// numbers above none, wherever it has gone. Threshold and share are left behind, and `moved` less a
/// constant if the move is a long one. It is rarely needed.
double find_move(const DualRows& rows, double* moved, double last, std::int64_t i);

/// Whether there is swept_rows() for so many classes on this machine.
bool sweeps(std::int64_t outputs);

/// Compressed rows and their products.
struct SweptRows {
  StoredRows X;
  std::int64_t features;
  const double* weights;      // d x K, or those of the active features
  const std::int32_t* place;  // d: where the weights of a feature are, −1 if nowhere; or null
  double* gradient;           // d x K
  std::int64_t rows;          // how many the weights have
  double* room;               // swept_rows_room(d, K), at the beginning of a cache line
};

/// For weights and gradient, filled up to packs of eight.
constexpr std::int64_t swept_rows_room(std::int64_t features, std::int64_t outputs) {
  return 2 * features * ((outputs + 7) / 8 * 8);
}

/// The same with scores = X W, leaving gradient = XᵀỸ behind and samples at rest out.
void swept_rows(const DualRows& rows, const SweptRows& swept);

/// The step for two, three or four classes; matrices n x outputs, two classes having one output.
struct FewRows {
  std::int64_t n, outputs;
  const double* scores;
  const double* intercept;      // outputs
  const double *margins, *own;  // σ·margins and the mass on the true class; of two classes half the
                                // difference of the margins, and the mass if it is class 1
  const double* mass;           // n
  double sigma;
  double *tilde, *sums;
};

/// Whether there is few_rows() for so many outputs on this machine.
bool are_few(std::int64_t outputs);

void few_rows(const FewRows& rows);

}  // namespace sparsvm
