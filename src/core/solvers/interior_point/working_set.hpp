// The penalty blocks that take part in the Newton system, and the prices G = X'Y~ - V that decide
// which.
//
// Only a working set of blocks enters the system. Every iteration prices all features with one
// transposed product, and the dual step is also limited by the blocks outside, so that dual feasibility is
// never lost and the dual value is always a valid bound.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "design/design.hpp"
#include "linalg/dense.hpp"
#include "penalty/cone_blocks.hpp"
#include "penalty/penalty_layout.hpp"
#include "solvers/interior_point/scaled_problem.hpp"

namespace sparsvm {

class WorkingSet {
 public:
  explicit WorkingSet(ScaledProblem& problem);  // kept by the caller

  ConeBlocks blocks;
  std::vector<double> X;             // gathered columns: centred, divided by omega
  std::vector<double> column_scale;  // per column: root mean square / margin unit
  std::vector<double> G, dG;         // d x outputs

  // The feature and output of a coordinate, as a position in d x outputs.
  int64_t position(int64_t c) const {
    return int64_t{features_[blocks.col[c]]} * p_.outputs + blocks.cls[c] - p_.first_class;
  }
  bool holds(int64_t block) const { return status_[block] & kMember; }

  // ---- which blocks ----

  // The first set. start_weights: d x outputs, or null.
  void open(const std::vector<double>& Y, double mu, const double* start_weights);
  void add(const std::vector<int64_t>& list, const std::vector<double>& Y, double mu);
  // The dual step, at most `most` along dY, that keeps the blocks outside the set inside their ball;
  // those that limit it, or would limit the next one, are listed in `entering`.
  double limit_step(const std::vector<double>& dY, double most, std::vector<int64_t>& entering);
  // G after that step.
  void advance(double step) {
    for (std::size_t a = 0; a < G.size(); ++a) G[a] += step * dG[a];
  }
  // Adds to `entering` the blocks near the boundary whose dual norm exceeds the threshold now.
  void list_near(double threshold, std::vector<int64_t>& entering) const;
  // Adds to `entering` the blocks that the rest of a dual step would bring nearest to their boundary,
  // or farthest beyond it, in proportion to the part of the step that blocks outside took away.
  void list_next(double rest, double lost, std::vector<int64_t>& entering) const;
  // Takes out blocks far from their boundary whose weights complementarity calls zero. Returns which
  // ones left, or nothing if all stay.
  std::vector<char> remove_idle(bool by_features);

  // ---- products ----

  // Whether products go coordinate by coordinate, as few features belong to a class's coordinates.
  bool few_coordinates() const;
  // The coordinates of X'A for A (n x K). They may be changed until the next product.
  std::vector<double>& transposed(const double* A);
  // The same for the blocks listed only; what else is returned has no meaning.
  const std::vector<double>& transposed(const double* A,
                                        const std::vector<std::vector<int64_t>>& listed);
  // The same of G, from Y itself.
  std::vector<double>& prices(const std::vector<double>& Y);
  // out = X values, class by class, for the classes that have weights.
  void scores(const std::vector<double>& values, double* out);
  // S = X values + F b, with the weights that Y stands for under a quadratic penalty.
  void scores(const std::vector<double>& values, const std::vector<double>& b,
              const std::vector<double>& Y, std::vector<double>& S);
  bool empty() const { return features_.empty(); }

  double linear_of(int64_t c) const;
  double linear_value(const std::vector<double>& values) const;

 private:
  static constexpr char kMember = 1, kLeft = 2;  // bits of status_

  ScaledProblem& p_;
  const PenaltyLayout& layout_;
  std::vector<char> status_;        // per block of the layout: in the set now; has left it before
  std::vector<int64_t> block_of_;   // per block of the set: which of the layout's
  std::vector<int64_t> near_;       // blocks outside, near the boundary at a full step
  std::vector<int32_t> column_of_;  // per feature: column in X or -1
  std::vector<int32_t> features_;   // per column
  std::vector<double> products_, dense_, weights_, column_, sample_major_;
  std::vector<std::vector<int64_t>> by_class_;
  ColumnSums sums_;

  void add(const std::vector<int64_t>& list, const std::vector<double>& Y, double mu, bool opening,
           const double* start_weights);
  void gather_columns(const std::vector<int64_t>& list);
  std::vector<double> imbalances(const std::vector<double>& Y);
  bool nonzero(int64_t b, const double* weights) const;
  void keep_farthest(std::size_t most, std::vector<int64_t>& entering) const;
  void remove_unused_columns();
};

}  // namespace sparsvm
