// Many short rows at once: their projections on simplices, and their norms.
#pragma once

#include <cstdint>
#include <vector>

namespace sparsvm {

// Thirty-two rows side by side: entry k of row l is at block()[k * kLanes + l].
//
// Row by row, the root of a simplex is a chain of additions and unpredictable branches; side by side
// it is the same few rounds of comparisons for all rows, which vectorise.
class SimplexBatch {
 public:
  static constexpr int kLanes = 32;
  // Longer rows are projected one by one, where few entries stay above zero: that takes 6 ns an entry
  // of 200, against 8 here, but 20 where most stay.
  static constexpr int64_t kLongest = 256;

  explicit SimplexBatch(int64_t entries);

  double* block() { return block_.data(); }
  double* mass() { return mass_; }

  // Replace every row y of the block by (y − theta)₊, the projection on {u >= 0, Σu = mass}. As in
  // project_simplex, the sum is right to rounding of the mass.
  void project();

 private:
  int64_t entries_;
  std::vector<double> block_;
  double mass_[kLanes] = {};
};

// Every row of Y (n x entries) on the simplex of its own mass; out may be Y.
void project_simplex_rows(const double* Y, const double* mass, int64_t n, int64_t entries,
                          double* out);

// sums[j] = Σ_k V_jk² for `count` rows of K entries, added up four at a time.
void sum_row_squares(const double* V, int64_t count, int64_t K, double* sums);

}  // namespace sparsvm
