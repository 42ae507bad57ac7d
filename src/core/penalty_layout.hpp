// Which coordinates (feature, output) form the blocks of a group penalty, and their pricing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
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
    if (grouped_) group_.assign(groups, groups + d);
    in_order_ = !grouped_ || std::is_sorted(groups, groups + d);
    for (std::int64_t j = 0; j < d && in_order_; ++j) in_order_ = omega[j] > 0.0;
    if (in_order_)
      list_in_order(d);
    else
      list_members(d, omega);
    for (std::int64_t g = 0; g < n_groups; ++g)
      largest_ = std::max(largest_, (offsets_[g + 1] - offsets_[g]) * (joint ? outputs : 1));
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

  std::int64_t n_blocks() const { return joint ? n_groups() : n_groups() * outputs_; }
  std::int64_t block_size(std::int64_t b) const {
    const std::int64_t g = group_of(b);
    return (offsets_[g + 1] - offsets_[g]) * (joint ? outputs_ : 1);
  }
  std::int64_t largest_block() const { return largest_; }

  std::int64_t n_groups() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  std::int64_t group_of(std::int64_t b) const { return joint ? b : b / outputs_; }
  // The penalised features of a group (of the group of each feature by itself, without groups).
  std::span<const std::int32_t> features(std::int64_t group) const {
    return {members_.data() + offsets_[group], members_.data() + offsets_[group + 1]};
  }

  // Calls visit(feature, output) for every coordinate of a block, in a fixed order.
  template <class Visit>
  void coordinates(std::int64_t b, Visit visit) const {
    const std::int64_t g = group_of(b);
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
    add_terms(G, dG, step, theta);
    std::vector<double> g(largest_);
    const double below = shape.least_sum(theta) * (1.0 - 1e-9);
    const std::int64_t blocks = n_blocks();
    for (std::int64_t b = 0; b < blocks; ++b) {
      if (sums_[b] < below) continue;
      const std::int64_t size = values(b, G, dG, step, g.data());
      if (size > 0 && shape.exceeds(g.data(), size, theta)) visit(b);
    }
  }

  // out = the dual norm of every block of G/omega, 0 for those without coordinates.
  void dual_norms(const double* G, std::vector<double>& out) const {
    if (shape.kind == BlockKind::sparse) return one_by_one(G, &BlockShape::dual_norm, out);
    add_terms(G, nullptr, 0.0, 0.0);
    out.swap(sums_);
    if (shape.kind == BlockKind::euclidean)
      for (double& norm : out) norm = std::sqrt(norm) / shape.l2;
    else if (shape.l1 != 1.0)
      for (double& norm : out) norm /= shape.l1;
  }
  // The same where BlockShape::norm_bound will do.
  void norm_bounds(const double* G, std::vector<double>& out) const {
    if (shape.kind == BlockKind::sparse) return one_by_one(G, &BlockShape::norm_bound, out);
    dual_norms(G, out);
  }

 private:
  std::int64_t outputs_, largest_ = 0;
  bool grouped_, in_order_;  // in order: all features are penalised, and groups follow each other
  std::vector<std::int64_t> offsets_;
  std::vector<std::int32_t> members_, group_;
  mutable std::vector<double> sums_, moved_;  // per block and coordinate, while scan() runs

  void list_in_order(std::int64_t d) {
    for (std::int64_t j = 0; j < d; ++j) offsets_[(grouped_ ? group_[j] : j) + 1] = j + 1;
    for (std::int64_t g = 0; g < n_groups(); ++g)
      offsets_[g + 1] = std::max(offsets_[g], offsets_[g + 1]);
    members_.resize(static_cast<std::size_t>(d));
    std::iota(members_.begin(), members_.end(), 0);
  }

  void list_members(std::int64_t d, const double* omega) {
    for (std::int64_t j = 0; j < d; ++j)
      if (omega[j] > 0.0) ++offsets_[(grouped_ ? group_[j] : j) + 1];
    for (std::int64_t g = 0; g < n_groups(); ++g) offsets_[g + 1] += offsets_[g];
    members_.resize(offsets_[n_groups()]);
    std::vector<std::int64_t> fill(offsets_.begin(), offsets_.end() - 1);
    for (std::int64_t j = 0; j < d; ++j)
      if (omega[j] > 0.0) members_[fill[grouped_ ? group_[j] : j]++] = static_cast<std::int32_t>(j);
  }

  void one_by_one(const double* G, double (BlockShape::*norm)(const double*, std::int64_t) const,
                  std::vector<double>& out) const {
    out.resize(static_cast<std::size_t>(n_blocks()));
    std::vector<double> g(largest_);
    for (std::int64_t b = 0; b < n_blocks(); ++b)
      out[b] = (shape.*norm)(g.data(), values(b, G, nullptr, 0.0, g.data()));
  }

  // sums_ = per block the sum of which shape.least_sum(theta) speaks, at (G + step*dG)/omega.
  void add_terms(const double* G, const double* dG, double step, double theta) const {
    sums_.resize(static_cast<std::size_t>(n_blocks()));
    const double radius = theta * shape.l1;
    if (shape.kind == BlockKind::euclidean)
      add_up(G, dG, step, [](double g) { return g * g; });
    else if (shape.kind == BlockKind::sparse)
      add_up(G, dG, step, [radius](double g) {
        const double e = std::max(std::fabs(g) - radius, 0.0);
        return e * e;
      });
    else
      add_up(G, dG, step, [](double g) { return std::fabs(g); });
  }

  template <class Term>
  void add_up(const double* G, const double* dG, double step, Term term) const {
    if (in_order_ && (joint || 2 * n_groups() <= static_cast<std::int64_t>(inv_omega.size()))) {
      if (!dG) return add_groups([G](std::int64_t a) { return G[a]; }, term);
      return add_groups([=](std::int64_t a) { return G[a] + step * dG[a]; }, term);
    }
    if (dG) {
      moved_.resize(inv_omega.size() * outputs_);
      for (std::size_t a = 0; a < moved_.size(); ++a) moved_[a] = G[a] + step * dG[a];
      G = moved_.data();
    }
    std::fill(sums_.begin(), sums_.end(), 0.0);
    add_features(G, term);
  }

  // Group by group, each sum in a register: half the time where groups hold several coordinates.
  template <class Value, class Term>
  void add_groups(Value value, Term term) const {
    const std::int64_t K = outputs_, groups = n_groups(), *first = offsets_.data();
    const double* scale = inv_omega.data();
    double* sums = sums_.data();
    for (std::int64_t g = 0; g < groups; ++g) {
      if (joint) {
        double sum = 0.0;
        for (std::int64_t j = first[g]; j < first[g + 1]; ++j)
          for (std::int64_t o = 0; o < K; ++o) sum += term(value(j * K + o) * scale[j]);
        *sums++ = sum;
        continue;
      }
      for (std::int64_t o = 0; o < K; ++o) {
        double sum = 0.0;
        for (std::int64_t j = first[g]; j < first[g + 1]; ++j)
          sum += term(value(j * K + o) * scale[j]);
        *sums++ = sum;
      }
    }
  }

  // The kind of the norm is known here, so that these loops hold nothing but arithmetic.
  template <class Term>
  void add_features(const double* G, Term term) const {
    const auto d = static_cast<std::int64_t>(inv_omega.size()), K = outputs_;
    const double* scale = inv_omega.data();
    double* sums = sums_.data();
    for (std::int64_t j = 0; j < d; ++j, G += K) {
      const std::int64_t g = grouped_ ? group_[j] : j;
      if (joint) {
        double sum = 0.0;
        for (std::int64_t o = 0; o < K; ++o) sum += term(G[o] * scale[j]);
        sums[g] += sum;
      } else {
        for (std::int64_t o = 0; o < K; ++o) sums[g * K + o] += term(G[o] * scale[j]);
      }
    }
  }

 public:
  std::vector<double> inv_omega;

 private:
};

}  // namespace sparsvm
