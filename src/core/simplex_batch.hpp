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
  /// Beyond this many entries the block leaves the first cache.
  static constexpr std::int64_t longest = 64;

  explicit SimplexBatch(std::int64_t entries);

  double* block() { return block_.data(); }
  double* mass() { return mass_; }
  const double* top() const { return top_; }
  const double* theta() const { return theta_; }

  /// Replace every row y of the block by (y − theta)₊, the projection on {u >= 0, Σu = mass}.
  void project();

  /// For the first `rows` rows y find top() = max y and theta() with Σ_k (y_k − top − theta)₊ = mass;
  /// the block is left with y − top. As in project_simplex, this keeps the sum right to rounding of
  /// the mass. What the other rows hold does not matter.
  void locate(int rows = lanes);

 private:
  std::int64_t entries_;
  std::vector<double> block_;
  double mass_[lanes] = {}, top_[lanes] = {}, theta_[lanes] = {};
};

}  // namespace sparsvm
