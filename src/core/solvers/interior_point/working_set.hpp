// The penalty blocks that take part in the Newton system, and the prices G = X'Y~ - V that decide
// which.
//
// Only a working set of blocks enters the system. Every iteration prices all features with one
// transposed product, or those that may have come near the boundary since, and the dual
// step is also limited by the blocks outside, so that dual feasibility is never lost and the dual
// value is always a valid bound.
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

// -----------------------------------------------------------------
// Partial pricing: which penalty blocks a moving dual point may bring near the boundary of their dual
// ball.
//
// A block whose dual norm is N where all features were last priced has a dual norm of at most
// N + L |move| after a move of Y~, where L comes from the norms of its columns:
//
//     |x_j'dY_k| <= |x_j| |dY_k|,   hence   N(X_b'dY) <= L_b |move|,
//
// with |move| the largest |dY_k| for blocks of one class each, and for joint blocks the Euclidean
// norm (l1/linf: the sum) of all |dY_k|. Only the blocks that may come near within some radius are
// candidates: their columns are gathered once and priced in every step, and no other block needs to
// be priced until the dual point has moved farther than that. Then those that may come near a little
// farther out are brought up to date and become candidates as well, and only where these are too many
// all are priced again. Steps shrink towards the end, so that the last half of them prices a small
// part of the features.

class PartialPricing {
 public:
  // column_norms: d values, kept by the caller.
  PartialPricing(const Design& design, const PenaltyLayout& layout, int outputs,
                 const double* column_norms)
      : design_(design), layout_(layout), n_(design.n()), d_(design.d()), outputs_(outputs),
        norms_(column_norms) {}

  // dG (d x outputs) of a direction from Y (n x outputs, class-major, both) for a step of at most
  // this length: of the candidates where no other block can come near within it, of all
  // otherwise. G of the features priced is brought up to date where it was not.
  void price(const double* Y, const double* direction, double step, double* G, double* dG);

  // G += step dG, where dG was priced.
  void advance(double step, const double* dG, double* G) const;

  // As PenaltyLayout::scan, where theta is at least kNear.
  template <typename Visit>
  void scan(const double* G, const double* dG, double step, double theta, Visit visit) const {
    if (!active_) return layout_.scan(G, dG, step, theta, visit);
    std::vector<double> g(static_cast<std::size_t>(layout_.largest_block()));
    for (const int64_t group : candidate_groups_)
      for (int64_t b = group * layout_.per_group(); b < (group + 1) * layout_.per_group(); ++b) {
        const int64_t size = layout_.values(b, G, dG, step, g.data());
        if (size > 0 && layout_.shape.exceeds(g.data(), size, theta)) visit(b);
      }
  }

 private:
  // How far the outputs (class-major, n x outputs) lie from each other, in the terms above.
  double distance(const double* Y, const double* other, const double* direction, double step) const;

  // May the dual point go from Y a step along the direction without pricing other blocks than are, or
  // now become, candidates? Along the way it is nowhere farther from where these were priced than at its
  // ends.
  bool covers(const double* Y, const double* direction, double step, double* G);

  const double* sample_major(const double* direction);

  void price_all(const double* direction, double* dG);

  // As price_all, and G of the features that were no candidates is brought up to date.
  void price_all_and_update(const double* Y, const double* direction, double* G, double* dG);

  // G += X' moved and dG = X' direction in one pass over the data.
  void price_both(const double* direction, double* G, double* dG);

  void copy_candidates(const double* G, std::vector<double>& out) const;

  void price_candidates(const double* direction, double* dG);

  // prices_ = X' direction for the candidates from number `first` on.
  void product(std::size_t first, const double* direction);

  // At most one in so many features is a candidate.
  int64_t share() const;

  const Design& design_;
  const PenaltyLayout& layout_;
  int64_t n_, d_;
  int outputs_;
  const double* norms_;
  bool active_ = false;
  double radius_ = 0.0, last_way_ = 0.0, tried_ = std::numeric_limits<double>::infinity();
  std::vector<double> inverse_reach_, distance_, reference_, columns_, prices_, sample_major_,
      moved_;
  std::vector<int64_t> candidate_groups_;
  std::vector<int32_t> candidates_;

  // inverse_reach_ = 1 / L of every group.
  void measure();

  double distance_to_near(int64_t group, double norm) const;

  // Whether a sample of the groups says that few would be candidates. Most early steps are too long for
  // that, which should cost little.
  bool affordable(const double* G, double radius) const;

  // distance_ = how far until a block of the group may be near; false if prices are not finite.
  bool find_distances(const double* G);

  // All blocks that may come near within the radius become candidates; false if they are too many.
  bool extend(double radius, const double* Y, double* G);
};

class WorkingSet {
 public:
  // Both are kept by the caller. column_norms: d, |x_j|.
  WorkingSet(ScaledProblem& problem, const double* column_norms);

  ConeBlocks blocks;
  std::vector<double> X;             // gathered columns: centred, divided by omega
  std::vector<double> column_scale;  // per column: root mean square / margin unit
  std::vector<double> G, dG;  // d x outputs; of features that were not priced from earlier steps

  // The feature and output of a coordinate, as a position in d x outputs.
  int64_t position(int64_t c) const {
    return int64_t{features_[blocks.col[c]]} * p_.outputs + blocks.cls[c] - p_.first_class;
  }
  bool holds(int64_t block) const { return status_[block] & kMember; }

  // ---- which blocks ----

  // The first set. start_weights: d x outputs, or null.
  void open(const std::vector<double>& Y, double mu, const double* start_weights);
  void add(const std::vector<int64_t>& list, const std::vector<double>& Y, double mu);
  // The same between two steps, where G may be that of an earlier one.
  void add_between_steps(const std::vector<int64_t>& list, const std::vector<double>& Y, double mu);
  // The dual step, at most `most` along dY, that keeps the blocks outside the set inside their ball;
  // those that limit it, or would limit the next one, are listed in `entering`.
  double limit_step(const std::vector<double>& Y, const std::vector<double>& dY, double most,
                    std::vector<int64_t>& entering);
  // G after that step.
  void advance(double step) { pricing_.advance(step, dG.data(), G.data()); }
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
  PartialPricing pricing_;
  std::vector<char> status_;        // per block of the layout: in the set now; has left it before
  std::vector<int64_t> block_of_;   // per block of the set: which of the layout's
  std::vector<int64_t> near_;       // blocks outside, near the boundary at a full step
  std::vector<int32_t> column_of_;  // per feature: column in X or -1
  std::vector<int32_t> features_;   // per column
  std::vector<double> products_, dense_, weights_, column_;
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
