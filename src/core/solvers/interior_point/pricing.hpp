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
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "design/design.hpp"
#include "penalty/penalty_layout.hpp"

namespace sparsvm {

class PartialPricing {
 public:
  /// column_norms: d values, kept by the caller.
  PartialPricing(const Design& design, const PenaltyLayout& layout, int outputs,
                 const double* column_norms)
      : design_(design), layout_(layout), n_(design.n()), d_(design.d()), outputs_(outputs),
        norms_(column_norms) {}

  /// dG (d x outputs) of a direction from Y (n x outputs, class-major, both) for a step of at most
  /// this length: of the candidates where no other block can come near within it, of all
  /// otherwise. G of the features priced is brought up to date where it was not.
  void price(const double* Y, const double* direction, double step, double* G, double* dG);

  /// G += step dG, where dG was priced.
  void advance(double step, const double* dG, double* G) const;

  /// As PenaltyLayout::scan, where theta is at least kNear.
  template <class Visit>
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
  /// How far the outputs (class-major, n x outputs) lie from each other, in the terms above.
  double distance(const double* Y, const double* other, const double* direction, double step) const;

  /// May the dual point go from Y a step along the direction without pricing other blocks than are, or
  /// now become, candidates? Along the way it is nowhere farther from where these were priced than at its
  /// ends.
  bool covers(const double* Y, const double* direction, double step, double* G);

  const double* sample_major(const double* direction);

  void price_all(const double* direction, double* dG);

  /// As price_all, and G of the features that were no candidates is brought up to date.
  void price_all_and_update(const double* Y, const double* direction, double* G, double* dG);

  /// G += X' moved and dG = X' direction in one pass over the data.
  void price_both(const double* direction, double* G, double* dG);

  void copy_candidates(const double* G, std::vector<double>& out) const;

  void price_candidates(const double* direction, double* dG);

  /// prices_ = X' direction for the candidates from number `first` on.
  void product(std::size_t first, const double* direction);

  /// At most one in so many features is a candidate.
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

  /// inverse_reach_ = 1 / L of every group.
  void measure();

  double distance_to_near(int64_t group, double norm) const;

  /// Whether a sample of the groups says that few would be candidates. Most early steps are too long for
  /// that, which should cost little.
  bool affordable(const double* G, double radius) const;

  /// distance_ = how far until a block of the group may be near; false if prices are not finite.
  bool find_distances(const double* G);

  /// All blocks that may come near within the radius become candidates; false if they are too many.
  bool extend(double radius, const double* Y, double* G);
};

}  // namespace sparsvm
