// Which coordinates (feature, output) form the blocks of a group penalty, and their pricing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "penalty_blocks.hpp"
#include "penalty_kind.hpp"

namespace sparsvm {

class PenaltyLayout {
 public:
  // groups: one index per feature (ignored by the penalties without groups); omega: the factor of
  // each feature, 0 for a feature that is not penalised and therefore belongs to no block.
  PenaltyLayout(PenaltyKind kind, double l1_ratio, const std::int32_t* groups,
                std::int64_t n_groups, bool per_class, const double* omega, std::int64_t d,
                std::int64_t outputs)
      : outputs_(outputs), inv_omega(d) {
    for (std::int64_t j = 0; j < d; ++j) inv_omega[j] = omega[j] > 0.0 ? 1.0 / omega[j] : 0.0;
    grouped_ = kind == PenaltyKind::group_l2 || kind == PenaltyKind::group_linf ||
               kind == PenaltyKind::sparse_group;
    joint = grouped_ && !per_class && outputs > 1;
    shape = make_shape(kind, l1_ratio);
    if (!grouped_) n_groups = d;
    offsets_.assign(n_groups + 1, 0);
    for (std::int64_t j = 0; j < d; ++j)
      if (omega[j] > 0.0) ++offsets_[(grouped_ ? groups[j] : j) + 1];
    for (std::int64_t g = 0; g < n_groups; ++g) offsets_[g + 1] += offsets_[g];
    members_.resize(offsets_[n_groups]);
    if (grouped_) group_.assign(groups, groups + d);
    std::vector<std::int64_t> fill(offsets_.begin(), offsets_.end() - 1);
    for (std::int64_t j = 0; j < d; ++j)
      if (omega[j] > 0.0) members_[fill[grouped_ ? groups[j] : j]++] = static_cast<std::int32_t>(j);
    for (std::int64_t b = 0; b < n_blocks(); ++b) largest_ = std::max(largest_, block_size(b));
  }

  static BlockShape make_shape(PenaltyKind kind, double ratio) {
    switch (kind) {
      case PenaltyKind::elasticnet: return {BlockKind::absolute, ratio, 0.0, 1.0 - ratio};
      case PenaltyKind::group_l2: return {BlockKind::euclidean, 0.0, 1.0, 0.0};
      case PenaltyKind::group_linf: return {BlockKind::maximum, 1.0, 0.0, 0.0};
      case PenaltyKind::sparse_group: return {BlockKind::sparse, ratio, 1.0 - ratio, 0.0};
      default: return {BlockKind::absolute, 1.0, 0.0, 0.0};
    }
  }

  BlockShape shape;
  bool joint = false;

  std::int64_t n_blocks() const {
    const auto groups = static_cast<std::int64_t>(offsets_.size()) - 1;
    return joint ? groups : groups * outputs_;
  }
  std::int64_t block_size(std::int64_t b) const {
    const std::int64_t g = joint ? b : b / outputs_;
    return (offsets_[g + 1] - offsets_[g]) * (joint ? outputs_ : 1);
  }
  std::int64_t largest_block() const { return largest_; }

  // Calls visit(feature, output) for every coordinate of a block, in a fixed order.
  template <class Visit>
  void coordinates(std::int64_t b, Visit visit) const {
    const std::int64_t g = joint ? b : b / outputs_;
    for (std::int64_t m = offsets_[g]; m < offsets_[g + 1]; ++m) {
      if (joint)
        for (std::int64_t o = 0; o < outputs_; ++o)
          visit(members_[m], static_cast<std::int32_t>(o));
      else
        visit(members_[m], static_cast<std::int32_t>(b % outputs_));
    }
  }

  // Block b of (G + step*dG)/omega into out; returns its size. dG may be null.
  std::int64_t values(std::int64_t b, const double* G, const double* dG, double step,
                      double* out) const {
    std::int64_t size = 0;
    coordinates(b, [&](std::int32_t j, std::int32_t o) {
      const std::size_t at = static_cast<std::size_t>(j) * outputs_ + o;
      out[size++] = (G[at] + (dG ? step * dG[at] : 0.0)) * inv_omega[j];
    });
    return size;
  }

  // Calls visit(b) for every block whose dual norm at (G + step*dG)/omega exceeds theta. G is read
  // straight through: whatever the norm, it exceeds theta only where a sum over the coordinates
  // does, and the few blocks of which that cannot be ruled out are looked at one by one.
  template <class Visit>
  void scan(const double* G, const double* dG, double step, double theta, Visit visit) const {
    const auto d = static_cast<std::int64_t>(inv_omega.size());
    const auto value = [&](std::size_t at) { return dG ? G[at] + step * dG[at] : G[at]; };
    if (!grouped_) {
      for (std::int64_t j = 0; j < d; ++j)
        for (std::int64_t o = 0; o < outputs_ && inv_omega[j] > 0.0; ++o)
          if (!(std::fabs(value(j * outputs_ + o)) * inv_omega[j] <= theta * shape.l1))
            visit(j * outputs_ + o);
      return;
    }
    sums_.assign(static_cast<std::size_t>(n_blocks()), 0.0);
    for (std::int64_t j = 0; j < d; ++j) {
      if (!(inv_omega[j] > 0.0)) continue;
      double* sum = sums_.data() + group_[j] * (joint ? 1 : outputs_);
      for (std::int64_t o = 0; o < outputs_; ++o)
        sum[joint ? 0 : o] += shape.term(value(j * outputs_ + o) * inv_omega[j], theta);
    }
    std::vector<double> g(largest_);
    const double below = shape.least_sum(theta) * (1.0 - 1e-9);
    for (std::int64_t b = 0; b < n_blocks(); ++b) {
      if (sums_[b] < below) continue;
      const std::int64_t size = values(b, G, dG, step, g.data());
      if (size > 0 && shape.exceeds(g.data(), size, theta)) visit(b);
    }
  }

 private:
  std::int64_t outputs_, largest_ = 0;
  bool grouped_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int32_t> members_, group_;
  mutable std::vector<double> sums_;  // per block, while scan() runs

 public:
  std::vector<double> inv_omega;

 private:
};

}  // namespace sparsvm
