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
// until the dual point has moved farther than that. Then those that may come near a little farther out
// are brought up to date and watched as well, and only where these are too many all are priced again.
// Steps shrink towards the end, so that the last half of them prices a small part of the features.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "design/dense_products.hpp"
#include "design/design.hpp"
#include "linalg/blas.hpp"
#include "penalty/penalty_layout.hpp"

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

  // How many features were priced last, at most.
  std::int64_t n_priced() const {
    return active_ ? static_cast<std::int64_t>(features_.size()) : d_;
  }

  // dG (d x outputs) of a direction from Y (n x outputs, class-major, both) for a step of at most
  // this length: of the watched features where no other block can come near within it, of all
  // otherwise. G of the features priced is brought up to date where it was not.
  void price(const double* Y, const double* direction, double step, double* G, double* dG) {
    if (covers(Y, direction, step, G)) return price_watched(direction, dG);
    if (active_) {
      active_ = false;
      return price_late(Y, direction, G, dG);
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

  // As PenaltyLayout::scan, where theta is at least kNear.
  template <class Visit>
  void scan(const double* G, const double* dG, double step, double theta, Visit visit) const {
    if (!active_) return layout_.scan(G, dG, step, theta, visit);
    std::vector<double> g(static_cast<std::size_t>(layout_.largest_block()));
    for (const std::int64_t group : groups_)
      for (std::int64_t b = group * layout_.per_group(); b < (group + 1) * layout_.per_group();
           ++b) {
        const std::int64_t size = layout_.values(b, G, dG, step, g.data());
        if (size > 0 && layout_.shape.exceeds(g.data(), size, theta)) visit(b);
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

  // May the dual point go from Y a step along the direction without pricing other blocks than are, or
  // now become, watched? Along the way it is nowhere farther from where these were priced than at its
  // ends.
  bool covers(const double* Y, const double* direction, double step, double* G) {
    if (active_) {
      const double way = larger(distance(Y, reference_.data(), direction, 0.0),
                                distance(Y, reference_.data(), direction, step));
      return way <= radius_ || watch(kFarther * way, Y, G);
    }
    // Where steps do not shrink, the next one would leave the radius at once.
    const double way = distance(Y, Y, direction, step);
    const bool shrinks = way < last_way_;
    last_way_ = way;
    if (!shrinks || !(way < tried_)) return false;
    if (inverse_reach_.empty()) measure();
    tried_ = way;
    if (!affordable(G, kWays * way) || !find_rooms(G)) return false;
    reference_.assign(Y, Y + n_ * outputs_);
    radius_ = -std::numeric_limits<double>::infinity();
    groups_.clear();
    features_.clear();
    active_ = watch(kFarther * way, Y, G);
    if (active_) tried_ = std::numeric_limits<double>::infinity();
    return active_;
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

  // As price_all, and G of the features that were not watched is brought up to date.
  void price_late(const double* Y, const double* direction, double* G, double* dG) {
    moved_.resize(reference_.size());
    for (std::size_t a = 0; a < moved_.size(); ++a) moved_[a] = Y[a] - reference_[a];
    copy_watched(G, prices_);
    if (design_.sparse() || 2 * outputs_ > kFewOutputs) {
      price_all(moved_.data(), dG);
      for (std::int64_t a = 0; a < d_ * outputs_; ++a) G[a] += dG[a];
      price_all(direction, dG);
    } else {
      price_both(direction, G, dG);
    }
    for (std::size_t c = 0; c < features_.size(); ++c)
      std::copy_n(prices_.data() + c * outputs_, outputs_,
                  G + std::int64_t{features_[c]} * outputs_);
  }

  // G += X' moved and dG = X' direction in one pass over the data.
  void price_both(const double* direction, double* G, double* dG) {
    const std::int64_t K = outputs_, wide = std::min(d_, kPiece);
    std::vector<double> both(static_cast<std::size_t>(n_ * 2 * K)),
        piece(static_cast<std::size_t>(wide * 2 * K));
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t o = 0; o < K; ++o) {
        both[(2 * i) * K + o] = moved_[o * n_ + i];
        both[(2 * i + 1) * K + o] = direction[o * n_ + i];
      }
    for (std::int64_t first = 0; first < d_; first += wide) {
      const std::int64_t last = std::min(first + wide, d_);
      design_.transposed_range(first, last, both.data(), 2 * K, piece.data());
      const double* from = piece.data();
      for (std::int64_t j = first; j < last; ++j, from += 2 * K)
        for (std::int64_t o = 0; o < K; ++o) {
          G[j * K + o] += from[o];
          dG[j * K + o] = from[K + o];
        }
    }
  }

  void copy_watched(const double* G, std::vector<double>& out) const {
    out.resize(features_.size() * static_cast<std::size_t>(outputs_));
    for (std::size_t c = 0; c < features_.size(); ++c)
      std::copy_n(G + std::int64_t{features_[c]} * outputs_, outputs_, out.data() + c * outputs_);
  }

  void price_watched(const double* direction, double* dG) {
    product(0, direction);
    for (std::size_t c = 0; c < features_.size(); ++c)
      std::copy_n(prices_.data() + c * outputs_, outputs_,
                  dG + std::int64_t{features_[c]} * outputs_);
  }

  // prices_ = X' direction for the watched features from number `first` on.
  void product(std::size_t first, const double* direction) {
    const auto m = static_cast<std::int64_t>(features_.size() - first);
    prices_.resize(static_cast<std::size_t>(m) * outputs_);
    if (m == 0) return;
    if (design_.sparse()) {
      design_.transposed_subset(features_.data() + first, m, sample_major(direction), outputs_,
                                prices_.data());
    } else {
      const auto n = static_cast<int>(n_);
      gemm('T', 'N', outputs_, static_cast<int>(m), n, 1.0, direction, n,
           columns_.data() + first * n_, n, 0.0, prices_.data(), outputs_);
    }
  }

  // Of the features, at most one in so many is watched: of data beyond the caches fewer, as columns
  // gathered from all over them take several times as long as the same entries in a row.
  std::int64_t share() const { return n_ * d_ > kCached ? 16 : 8; }
  static constexpr std::int64_t kCached = std::int64_t{1} << 20;
  static constexpr std::int64_t kSample = 512;  // features, about
  static constexpr std::int64_t kPiece = 2048;  // features priced at a time
  static constexpr double kWays = 2.0;      // of a step, for which the share must do to begin with
  static constexpr double kFarther = 1.25;  // than the way of a step blocks are looked for

  const Design& design_;
  const PenaltyLayout& layout_;
  std::int64_t n_, d_;
  int outputs_;
  const double* norms_;
  bool active_ = false;
  double radius_ = 0.0, last_way_ = 0.0, tried_ = std::numeric_limits<double>::infinity();
  std::vector<double> inverse_reach_, room_, reference_, columns_, prices_, sample_major_, moved_;
  std::vector<std::int64_t> groups_;
  std::vector<std::int32_t> features_;

  // inverse_reach_ = 1 / L of every group.
  void measure() {
    const BlockShape& shape = layout_.shape;
    inverse_reach_.resize(static_cast<std::size_t>(layout_.n_groups()));
    for (std::int64_t group = 0; group < layout_.n_groups(); ++group) {
      double sum = 0.0, squares = 0.0;
      layout_.features(group, [&](std::int32_t j) {
        const double c = norms_[j] * layout_.inv_omega[j];
        sum += c;
        squares += c * c;
      });
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

  // Whether a sample of the groups says that few are to be watched. Most early steps are too long for
  // that, which should cost little.
  bool affordable(const double* G, double radius) const {
    const std::int64_t groups = layout_.n_groups();
    const std::int64_t stride = std::max<std::int64_t>(1, d_ / kSample);
    std::vector<double> g(static_cast<std::size_t>(layout_.largest_block()));
    std::int64_t count = 0, all = 0;
    for (std::int64_t group = 0; group < groups; group += stride) {
      double largest = 0.0;
      for (std::int64_t b = group * layout_.per_group(); b < (group + 1) * layout_.per_group();
           ++b) {
        const std::int64_t size = layout_.values(b, G, nullptr, 0.0, g.data());
        largest = std::max(largest, layout_.shape.norm_bound(g.data(), size));
      }
      all += layout_.n_features(group);
      if (!(room(group, largest) >= radius)) count += layout_.n_features(group);
    }
    return share() * count <= all;
  }

  // room_ = how far until a block of the group may be near; false if prices are not finite.
  bool find_rooms(const double* G) {
    room_.assign(static_cast<std::size_t>(layout_.n_groups()), 0.0);
    double total = 0.0;
    layout_.norm_bounds(G, [&](std::int64_t b, double norm) {
      double& largest = room_[layout_.group_of(b)];
      largest = std::max(largest, norm);
      total += norm;
    });
    for (std::int64_t group = 0; group < layout_.n_groups(); ++group)
      room_[group] = room(group, room_[group]);
    return std::isfinite(total);
  }

  // Watches all blocks that may come near within the radius; false if they are too many.
  bool watch(double radius, const double* Y, double* G) {
    std::int64_t count = 0;
    for (std::int64_t group = 0; group < layout_.n_groups(); ++group)
      if (!(room_[group] >= radius)) count += layout_.n_features(group);
    if (share() * count > d_) return false;
    const std::size_t first = features_.size(), old = groups_.size();
    for (std::int64_t group = 0; group < layout_.n_groups(); ++group)
      if (!(room_[group] >= radius) && room_[group] >= radius_) {
        groups_.push_back(group);
        layout_.features(group, [&](std::int32_t j) { features_.push_back(j); });
      }
    std::inplace_merge(groups_.begin(), groups_.begin() + static_cast<std::ptrdiff_t>(old),
                       groups_.end());
    radius_ = radius;
    const std::size_t fresh = features_.size() - first;
    if (!design_.sparse()) {
      columns_.resize(features_.size() * static_cast<std::size_t>(n_));
      design_.gather_columns(features_.data() + first, static_cast<std::int64_t>(fresh),
                             columns_.data() + first * n_);
    }
    if (!active_) return true;  // all have just been priced
    moved_.resize(reference_.size());
    for (std::size_t a = 0; a < moved_.size(); ++a) moved_[a] = Y[a] - reference_[a];
    product(first, moved_.data());
    for (std::size_t c = 0; c < fresh; ++c)
      for (int o = 0; o < outputs_; ++o)
        G[std::int64_t{features_[first + c]} * outputs_ + o] += prices_[c * outputs_ + o];
    return true;
  }
};

}  // namespace sparsvm
