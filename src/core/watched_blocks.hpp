// Which penalty blocks a moving dual point may bring near the boundary of their dual ball.
//
// A block whose dual norm is N where all features were last priced has a dual norm of at most
// N + L |move| after a move of Y~, where L comes from the norms of its columns:
//
//     |x_j'dY_k| <= |x_j| |dY_k|,   hence   N(X_b'dY) <= L_b |move|,
//
// with |move| the largest |dY_k| for blocks of one class each, and for joint blocks the Euclidean
// norm (l1/linf: the sum) of all |dY_k|. Only the blocks that may come near within some radius are
// watched: their columns are gathered once and priced in every step, and no other block needs a look
// until the dual point has moved farther than that. Steps shrink towards the end, so that the last
// half of them prices an eighth of the features or less.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "blas.hpp"
#include "design.hpp"
#include "penalty_layout.hpp"

namespace sparsvm {

class WatchedBlocks {
 public:
  // column_norms: d values, kept by the caller.
  WatchedBlocks(const Design& design, const PenaltyLayout& layout, int outputs,
                const double* column_norms)
      : design_(design), layout_(layout), n_(design.n()), d_(design.d()), outputs_(outputs),
        norms_(column_norms) {}

  // Blocks are near from this dual norm on; scan() takes no lower one.
  static constexpr double kNear = 0.9;

  // Whether some blocks are not priced.
  bool active() const { return active_; }

  // dG (d x outputs) of a direction from Y (n x outputs, class-major, both) for a step of at most
  // this length: of the watched features where no other block can come near within it, of all
  // otherwise, and then G of those that were not watched is brought up to date.
  void price(const double* Y, const double* direction, double step, double* G, double* dG) {
    if (covers(Y, direction, step)) return price_watched(direction, dG);
    if (active_) {
      moved_.resize(reference_.size());
      for (std::size_t a = 0; a < moved_.size(); ++a) moved_[a] = Y[a] - reference_[a];
      price_all(moved_.data(), dG);
      for (std::int64_t j = 0; j < d_; ++j)
        for (std::int64_t a = j * outputs_; a < (j + 1) * outputs_ && !is_watched_[j]; ++a)
          G[a] += dG[a];
      active_ = false;
    }
    price_all(direction, dG);
  }

  // G += step dG, where dG was priced.
  void advance(double step, const double* dG, double* G) const {
    const std::int64_t count = active_ ? static_cast<std::int64_t>(features_.size()) * outputs_ : 0;
    if (!active_)
      for (std::int64_t a = 0; a < d_ * outputs_; ++a) G[a] += step * dG[a];
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int64_t a = std::int64_t{features_[c / outputs_]} * outputs_ + c % outputs_;
      G[a] += step * dG[a];
    }
  }

  // After a step of this direction to Y, where the prices are G: watches as many blocks as the
  // share of the features allows, if that will do for another step.
  void choose(const double* G, const double* Y, const double* direction, double step) {
    if (active_) return;
    const double length = distance(Y, Y, direction, step);
    if (!(length < tried_)) return;
    if (inverse_reach_.empty()) measure();
    const double radius = affordable_radius(G, length);
    tried_ = radius > 0.0 ? std::numeric_limits<double>::infinity() : length;
    if (!(radius > 0.0) || !find_rooms(G)) return;
    radius_ = radius;
    reference_.assign(Y, Y + n_ * outputs_);
    watch();
    active_ = true;
  }

  // As PenaltyLayout::scan, where theta is at least kNear.
  template <class Visit>
  void scan(const double* G, const double* dG, double step, double theta, Visit visit) const {
    if (!active_) return layout_.scan(G, dG, step, theta, visit);
    std::vector<double> g(static_cast<std::size_t>(layout_.largest_block()));
    for (const std::int64_t group : groups_)
      for (std::int64_t b = group * per_group(); b < (group + 1) * per_group(); ++b) {
        const std::int64_t size = layout_.values(b, G, dG, step, g.data());
        if (layout_.shape.exceeds(g.data(), size, theta)) visit(b);
      }
  }

 private:
  // How far the outputs (class-major, n x outputs) lie from each other, in the terms above.
  double distance(const double* Y, const double* other, const double* direction,
                  double step) const {
    double most = 0.0, sum = 0.0, squares = 0.0;
    for (int o = 0; o < outputs_; ++o) {
      double square = 0.0;
      for (std::int64_t i = o * n_; i < (o + 1) * n_; ++i) {
        const double move = Y[i] - other[i] + step * direction[i];
        square += move * move;
      }
      const double size = std::sqrt(square);
      most = larger(most, size);
      sum += size;
      squares += square;
    }
    if (!layout_.joint) return most;
    return layout_.shape.kind == BlockKind::maximum ? sum : std::sqrt(squares);
  }

  // May the dual point go from Y a step along the direction without pricing the other blocks? Along
  // the way it is nowhere farther from where these were priced than at its ends.
  bool covers(const double* Y, const double* direction, double step) const {
    return active_ && distance(Y, reference_.data(), direction, 0.0) <= radius_ &&
           distance(Y, reference_.data(), direction, step) <= radius_;
  }

  const double* sample_major(const double* direction) {
    sample_major_.resize(static_cast<std::size_t>(n_) * outputs_);
    for (int o = 0; o < outputs_; ++o)
      for (std::int64_t i = 0; i < n_; ++i) sample_major_[i * outputs_ + o] = direction[o * n_ + i];
    return sample_major_.data();
  }

  void price_all(const double* direction, double* dG) {
    design_.transposed(sample_major(direction), outputs_, dG);
  }

  void price_watched(const double* direction, double* dG) {
    const auto m = static_cast<std::int64_t>(features_.size());
    if (m == 0) return;
    prices_.resize(static_cast<std::size_t>(m) * outputs_);
    if (design_.sparse()) {
      design_.transposed_subset(features_.data(), m, sample_major(direction), outputs_,
                                prices_.data());
    } else {
      const auto n = static_cast<int>(n_);
      gemm('T', 'N', outputs_, static_cast<int>(m), n, 1.0, direction, n, columns_.data(), n, 0.0,
           prices_.data(), outputs_);
    }
    for (std::int64_t c = 0; c < m; ++c)
      std::copy_n(prices_.data() + c * outputs_, outputs_,
                  dG + std::int64_t{features_[c]} * outputs_);
  }

  static constexpr int kShare = 8;  // of the features, about one in so many may be watched
  static constexpr std::int64_t kSample = 512;  // features, about
  // Radii tried, in lengths of the last step. Those to come are together about as long as it is.
  static constexpr int kRadii = 3;
  static constexpr double kLargest = 4.0;
  static double radius_of(int r) { return kLargest / static_cast<double>(1 << r); }

  const Design& design_;
  const PenaltyLayout& layout_;
  std::int64_t n_, d_;
  int outputs_;
  const double* norms_;
  bool active_ = false;
  double radius_ = 0.0, tried_ = std::numeric_limits<double>::infinity();
  std::vector<double> inverse_reach_, block_norms_, room_, reference_, columns_, prices_,
      sample_major_, moved_;
  std::vector<std::int64_t> groups_;
  std::vector<std::int32_t> features_;
  std::vector<char> is_watched_;

  int per_group() const { return layout_.joint ? 1 : outputs_; }

  // inverse_reach_ = 1 / L of every group.
  void measure() {
    const BlockShape& shape = layout_.shape;
    inverse_reach_.resize(static_cast<std::size_t>(layout_.n_groups()));
    for (std::int64_t group = 0; group < layout_.n_groups(); ++group) {
      double sum = 0.0, squares = 0.0;
      for (const std::int32_t j : layout_.features(group)) {
        const double c = norms_[j] * layout_.inv_omega[j];
        sum += c;
        squares += c * c;
      }
      // l1 |w|_1 + l2 |w|_2 >= (l1 + l2) |w|_2, and the other way round for the dual norms.
      const double reach =
          shape.kind == BlockKind::maximum ? sum : std::sqrt(squares) / (shape.l1 + shape.l2);
      // Norms and prices are rounded.
      inverse_reach_[group] = (1.0 - 1e-6) / reach;
    }
  }

  double room(std::int64_t group, double norm) const {
    return (kNear - norm) * inverse_reach_[group];
  }

  // The farthest of the radii for which a sample of the groups says that few are to be watched,
  // zero if there is none. Most early steps are too long for any, which should cost little.
  double affordable_radius(const double* G, double length) const {
    const std::int64_t groups = layout_.n_groups();
    const std::int64_t stride = std::max<std::int64_t>(1, d_ / kSample);
    std::vector<double> g(static_cast<std::size_t>(layout_.largest_block()));
    std::int64_t counts[kRadii] = {}, all = 0;
    for (std::int64_t group = 0; group < groups; group += stride) {
      const auto width = static_cast<std::int64_t>(layout_.features(group).size());
      double largest = 0.0;
      for (std::int64_t b = group * per_group(); b < (group + 1) * per_group(); ++b) {
        const std::int64_t size = layout_.values(b, G, nullptr, 0.0, g.data());
        largest = std::max(largest, layout_.shape.norm_bound(g.data(), size));
      }
      all += width;
      for (int r = 0; r < kRadii; ++r)
        counts[r] += room(group, largest) >= radius_of(r) * length ? 0 : width;
    }
    for (int r = 0; r < kRadii; ++r)
      if (kShare * counts[r] <= all) return radius_of(r) * length;
    return 0.0;
  }

  // room_ = how far until a block of the group may be near; false if prices are not finite.
  bool find_rooms(const double* G) {
    layout_.norm_bounds(G, block_norms_);
    const std::int64_t groups = layout_.n_groups(), blocks = per_group();
    room_.resize(static_cast<std::size_t>(groups));
    double total = 0.0;
    for (std::int64_t group = 0; group < groups; ++group) {
      double largest = 0.0;
      for (std::int64_t b = group * blocks; b < (group + 1) * blocks; ++b) {
        largest = std::max(largest, block_norms_[b]);
        total += block_norms_[b];
      }
      room_[group] = room(group, largest);
    }
    return std::isfinite(total);
  }

  void watch() {
    for (const std::int32_t j : features_) is_watched_[j] = 0;
    is_watched_.resize(static_cast<std::size_t>(d_), 0);
    groups_.clear();
    features_.clear();
    for (std::int64_t group = 0; group < layout_.n_groups(); ++group) {
      if (room_[group] >= radius_) continue;
      groups_.push_back(group);
      for (const std::int32_t j : layout_.features(group)) {
        is_watched_[j] = 1;
        features_.push_back(j);
      }
    }
    if (design_.sparse()) return;
    columns_.resize(features_.size() * static_cast<std::size_t>(n_));
    design_.gather_columns(features_.data(), static_cast<std::int64_t>(features_.size()),
                           columns_.data());
  }
};

}  // namespace sparsvm
