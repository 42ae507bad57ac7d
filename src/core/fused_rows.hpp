// Both products and the dual step of fbpd in one pass over a small dense design of few classes.
//
// Twelve samples lie side by side, entry by entry, so that their scores, their dual rows and their
// share of the next gradient stay in registers: nothing is transposed and X is read once. On rows of
// a few dozen features this takes less than the two products of BLAS alone.
#pragma once

#include <cstdint>
#include <vector>

#include "design.hpp"
#include "simplex_root.hpp"

namespace sparsvm {

class FusedRows {
 public:
  static constexpr int lanes = 12;
  /// Beyond these BLAS wins, or the copy of X would be more than the design itself may keep; each
  /// number of outputs is code of its own.
  static constexpr std::int64_t most_features = 64, most_entries = 1 << 19, most_outputs = 12;

  static bool suits(const Design& X, std::int64_t outputs);

  FusedRows(const Design& X, std::int64_t outputs, const double* mass);

  /// Entries of an n x K matrix in the order of this class, samples filled up to whole blocks.
  std::int64_t entries() const { return blocks_ * lanes * outputs_; }
  std::int64_t at(std::int64_t i, std::int64_t k) const {
    return (i / lanes * outputs_ + k) * lanes + i % lanes;
  }

  /// The arrays of one pass; those with a sample's entries are in the order of at().
  struct Pass {
    const double* weights;    // d x K
    const double* intercept;  // K
    const double* lift;       // σ·margins + mass on the true class
    const double* own;        // mass on the true class
    double sigma;
    double* tilde;     // Ỹ, replaced by P(Y + σ(scores + margins)) − own
    double* gradient;  // d x K, becomes XᵀỸ
    double* sums;      // K, become the column sums of Ỹ
  };

  void run(const Pass& pass);

 private:
  std::int64_t blocks_, features_, outputs_;
  Workspace X_;               // blocks x d x lanes
  std::vector<double> mass_;  // blocks x lanes, 0 beyond the last sample
  Workspace partial_;         // d x K packs: the gradient, lane by lane
};

}  // namespace sparsvm
