// Projection of many short rows on their simplices at once.
#pragma once

#include <cstdint>
#include <vector>

namespace sparsvm {

/// Thirty-two rows side by side: entry k of row l is at block()[k * lanes + l].
///
/// Row by row, the root of a simplex is a chain of additions and unforeseeable branches; side by
/// side it is the same few rounds of comparisons for all rows, which fill the machine's registers.
class SimplexBatch {
 public:
  static constexpr int lanes = 32;
  /// Rows of more entries are projected one by one, where few of them stay above zero: that takes 6 ns an
  /// entry of 200, against 8 here, but 20 where most stay.
  static constexpr std::int64_t longest = 256;

  explicit SimplexBatch(std::int64_t entries);

  double* block() { return block_.data(); }
  double* mass() { return mass_; }

  /// Replace every row y of the block by (y − theta)₊, the projection on {u >= 0, Σu = mass}. As in
  /// project_simplex, the sum is right to rounding of the mass.
  void project();

  /// rows[l] <- its prox of mass()[l]·‖·‖_∞ for l < count, each clipped at the level T with Σ_k (|v_k| −
  /// T)₊ = mass; `sums` are the Σ_k |v_k|, all above the masses. The block is overwritten.
  void clip(double* const* rows, const double* sums, int count);

 private:
  /// For every row y find top_ = max y and theta_ with Σ_k (y_k − top − theta)₊ = mass; the block is
  /// left with y − top.
  void locate();

  std::int64_t entries_;
  std::vector<double> block_;
  double mass_[lanes] = {}, top_[lanes] = {}, theta_[lanes] = {};
};

}  // namespace sparsvm
