// Both products and the dual step of fbpd in one pass over a dense design.
//
// Twenty-four samples lie side by side, entry by entry, so that their scores, their dual rows and
// their share of the next gradient stay in registers and the first cache: nothing is transposed and X
// is read once. This takes about as long as the two products of BLAS, or half as long.
//
// The projection of a row on its simplex is a threshold. From one iteration to the next it moves
// little, and mostly as many entries stay above it: then the sum of the entries above the old one
// tells the new one, and the sum of the row shows whether this was so. Rows for which it was not are
// projected again from nothing.
//
// Most samples soon lie beyond their margins and rest: arrange() puts them together, in units of eight
// that a pass leaves out for as long as the weights are too near to those they were looked at with for
// any of them to move. See resting_units.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "design/design.hpp"
#include "solvers/papers/fbpd_kernels/fused_listed.hpp"
#include "solvers/papers/fbpd_kernels/resting_units.hpp"

namespace sparsvm {

namespace fused {
struct Pass;
}

class FusedRows {
 public:
  static constexpr int lanes = 24;
  /// Beyond these BLAS wins: the gradient, lane by lane, must lie in a cache, and adding up its lanes
  /// must be little beside the products unless it lies in the first one. (Registers of eight doubles, ten
  /// classes: 200 x 200 took 36 µs an iteration instead of 60 by BLAS, 100 x 200 took 19 instead of 28.)
  static constexpr std::int64_t most_weights = 1 << 15, few_weights = 512, most_outputs = 1000;
  /// With more features, X not being kept, BLAS wins where registers hold four doubles, unless there are few
  /// weights: 10000 x 100 took 0.7 of its time with 16 classes, 0.95 with 26 and 1.2 with fifty.
  static constexpr std::int64_t most_features = 64, few_weights_in_four = 2048;
  /// Margins beyond so many, the same for all classes but the true one, are not read from memory but told by
  /// the true class. Fewer lie in the second cache and are read faster.
  static constexpr std::int64_t most_margins = 1 << 16;
  /// X is kept in the order of this class if it has no more entries; if it has, blocks of it are
  /// gathered in every pass, since a copy would be more than the design itself may keep.
  static constexpr std::int64_t most_entries = 1 << 19;

  /// Entries of Y that are listed at a time.
  static constexpr std::int64_t most_listed = 1 << 15;

  static bool suits(const Design& X, std::int64_t outputs);

  /// `margins` and `own`, the mass on the true class, are n x outputs. One output stands for two
  /// classes: the margin is half the difference of theirs, and `factor` of step() counts for half.
  FusedRows(const Design& X, std::int64_t outputs, const double* mass, const double* margins,
            const double* own);

  /// Entries of an n x K matrix in the order of this class, samples filled up to whole blocks.
  std::int64_t entries() const { return blocks_ * lanes * outputs_; }
  std::int64_t at(std::int64_t i, std::int64_t k) const {
    return position(place_[static_cast<std::size_t>(i)], k, outputs_);
  }

  /// Y <- P(Y + factor·(X W + intercept) + margins), in the order of at(); then gradient = XᵀỸ
  /// (d x K) and sums = 1ᵀỸ (K) with Ỹ = Y − own. The new Y is added to `along`, in the same order, if
  /// that is not null.
  void step(const double* weights, const double* intercept, double factor, double* dual,
            double* gradient, double* sums, double* along);

  /// gradient and sums of a Y at hand, to the last bit what step() leaves behind. All samples count
  /// as moving from here on.
  void gradient(double* dual, double* gradient, double* sums);

  /// Puts the samples together that rest at these weights, the more tolerant last; `dual` and
  /// `along`, another matrix in the order of at(), follow.
  void arrange(const double* weights, const double* intercept, double factor, double* dual,
               double* along);

 private:
  static std::int64_t position(std::int64_t place, std::int64_t column, std::int64_t columns) {
    return (place / lanes * columns + column) * lanes + place % lanes;
  }
  bool keeps_X() const { return at_once_ == blocks_; }
  std::int64_t load_weights(const Affine& now, double factor);
  fused::Pass all(std::int64_t active, double* dual);
  void gather(std::int64_t first, std::int64_t count);
  void clear_sums();
  void add_up_sums(double* gradient, double* sums);
  void find_base();
  bool find_even_margins(const double* margins);
  void choose_sums(const double* dual);
  void pass(bool project, std::int64_t active, double* dual, double* along);
  void pass_resting(std::int64_t active, double distance, double* dual);
  void add_others(const double* dual, double* along) const;
  template <typename Use>
  void with_unit(std::int64_t unit, const fused::Pass& all, Use use);
  double least_tolerance(std::int64_t first, int count, const double* slack) const;
  bool at_rest(std::int64_t place, const double* dual) const;
  /// How far the weights may go before the sample at each place moves, −1 if it moves as it is.
  std::vector<double> find_tolerances(std::int64_t active, double* dual);
  void move_places(const std::vector<std::int64_t>& from, double* dual, double* along);

  const Design* design_;
  std::int64_t samples_, blocks_, features_, outputs_;
  std::int64_t at_once_;                   // blocks of X that are there at a time
  std::int64_t moving_;                    // places before this one are treated in every pass
  Workspace X_;                            // at_once x d x lanes
  Workspace lift_;                         // the margins, like Y, unless the true class tells them
  std::vector<double> own_, own_lift_;     // see fused::Pass
  std::vector<double> mass_;               // blocks x lanes, 0 beyond the last sample
  std::vector<double> threshold_, share_;  // blocks x lanes, see fused::Pass
  std::vector<double> tolerance_;          // n: 1/(2‖(x, 1)‖), once there was an arrangement
  std::vector<std::int32_t> label_;        // blocks x lanes: where the mass is, −1 if nowhere
  std::vector<std::int64_t> place_, sample_;     // of a sample, and which one is there
  std::vector<double> own_gradient_, own_sums_;  // of the moving samples
  Workspace moved_, partial_, totals_, weights_;
  Workspace rows_, by_class_;  // see fused::Listed
  std::vector<std::int32_t> places_;
  fused::Listed listed_;
  std::vector<std::int64_t> where_;
  RestingUnits resting_;
};

}  // namespace sparsvm
