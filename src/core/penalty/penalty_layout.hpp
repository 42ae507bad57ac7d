// Which coordinates (feature, output) form the blocks of a group penalty, and their pricing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "penalty/penalty.hpp"

namespace sparsvm {

class PenaltyLayout {
 public:
  explicit PenaltyLayout(const Penalty& p)
      : shape(p.shape()), joint(p.joint()), inv_omega(p.d), outputs_(p.outputs),
        n_groups_(p.grouped() ? p.n_groups : p.d), grouped_(p.grouped()) {
    const int32_t* groups = p.groups;
    const double* omega = p.omega;
    const int64_t d = p.d;
    for (int64_t j = 0; j < d; ++j) inv_omega[j] = omega[j] > 0.0 ? 1.0 / omega[j] : 0.0;
    in_order_ = !grouped_ || std::is_sorted(groups, groups + d);
    for (int64_t j = 0; j < d && in_order_; ++j) in_order_ = omega[j] > 0.0;
    single_ = in_order_ && n_groups_ == d;
    for (int64_t j = 0; j < d && single_ && grouped_; ++j) single_ = groups[j] == j;
    alike_ = std::adjacent_find(inv_omega.begin(), inv_omega.end(), std::not_equal_to<>()) ==
             inv_omega.end();
    by_group_ = in_order_ && grouped_ && (joint || 2 * n_groups_ <= d);
    if (grouped_ && !single_) group_.assign(groups, groups + d);
    if (!single_) offsets_.assign(n_groups_ + 1, 0);
    if (!in_order_)
      list_by_group(d, n_groups_, [&](int64_t j) {
        return !(omega[j] > 0.0) ? -1 : grouped_ ? groups[j] : j;
      }, offsets_, members_);
    else if (!single_)
      list_in_order(d);
    for (int64_t g = 0; g < n_groups_; ++g)
      largest_ = std::max(largest_, (begin(g + 1) - begin(g)) * block_width());
  }

  BlockShape shape;
  bool joint;
  std::vector<double> inv_omega;  // 0 for a feature that is not penalised, which is in no block

  int64_t n_blocks() const { return joint ? n_groups() : n_groups() * outputs_; }
  int64_t block_size(int64_t b) const {
    const int64_t g = group_of(b);
    return (begin(g + 1) - begin(g)) * block_width();
  }
  int64_t largest_block() const { return largest_; }

  int64_t n_groups() const { return n_groups_; }
  int64_t group_of(int64_t b) const { return joint ? b : b / outputs_; }
  // Blocks of one group.
  int64_t per_group() const { return joint ? 1 : outputs_; }

  // Calls visit(feature) for the penalised features of a group (of the group of each feature by itself,
  // without groups).
  template <typename Visit>
  void features(int64_t group, Visit visit) const {
    for (int64_t m = begin(group); m < begin(group + 1); ++m) visit(member(m));
  }
  int64_t n_features(int64_t group) const { return begin(group + 1) - begin(group); }

  // Calls visit(feature, output) for every coordinate of a block, in a fixed order.
  template <typename Visit>
  void coordinates(int64_t b, Visit visit) const {
    const int64_t g = group_of(b);
    for (int64_t m = begin(g); m < begin(g + 1); ++m) {
      if (joint)
        for (int64_t o = 0; o < outputs_; ++o) visit(member(m), static_cast<int32_t>(o));
      else
        visit(member(m), static_cast<int32_t>(b % outputs_));
    }
  }

  // Block b of (G + step*dG)/omega into out; returns its size. dG may be null.
  int64_t values(int64_t b, const double* G, const double* dG, double step, double* out) const {
    int64_t size = 0;
    coordinates(b, [&](int32_t j, int32_t o) {
      const std::size_t at = static_cast<std::size_t>(j) * outputs_ + o;
      out[size++] = (G[at] + (dG ? step * dG[at] : 0.0)) * inv_omega[j];
    });
    return size;
  }

  // Calls visit(b) for every block whose dual norm at (G + step*dG)/omega exceeds theta. G is read
  // straight through: whatever the norm, it exceeds theta only where a sum over the coordinates
  // does, and the few blocks of which that cannot be ruled out are checked one by one.
  template <typename Visit>
  void scan(const double* G, const double* dG, double step, double theta, Visit visit) const {
    std::vector<double> g(largest_);
    const double below = shape.least_sum(theta) * (1.0 - kSumRounding);
    by_pieces([&](int64_t first, int64_t last) {
      add_terms(first, last, G, dG, step, theta);
      for (int64_t b = first * per_group(); b < last * per_group(); ++b) {
        if (sums_[b - first * per_group()] < below) continue;
        const int64_t size = values(b, G, dG, step, g.data());
        if (size > 0 && shape.exceeds(g.data(), size, theta)) visit(b);
      }
    });
  }

  // Calls visit(b, the dual norm of G/omega) for every block in order, 0 without coordinates.
  template <typename Visit>
  void norms(const double* G, Visit visit) const {
    if (shape.absolute > 0.0) return one_by_one(G, &BlockShape::dual_norm, visit);
    by_pieces([&](int64_t first, int64_t last) {
      add_terms(first, last, G, nullptr, 0.0, 0.0);
      visit_norms(first, last, visit);
    });
  }
  // The same where BlockShape::norm_bound will do.
  template <typename Visit>
  void norm_bounds(const double* G, Visit visit) const {
    if (shape.absolute > 0.0) return one_by_one(G, &BlockShape::norm_bound, visit);
    norms(G, visit);
  }

  // The largest dual norm, NaN if one is, where fill(first, last, out) writes G of a range of features;
  // it is asked for all at once where groups are not in order. Not for sparse_group.
  template <typename Fill>
  double largest_norm(Fill fill) const {
    double largest = 0.0;
    std::vector<double> G;
    by_pieces([&](int64_t first, int64_t last) {
      const auto [from, to] = range(first, last);
      G.resize(static_cast<std::size_t>((to - from) * outputs_));
      fill(from, to, G.data());
      add_terms(first, last, G.data(), nullptr, 0.0, 0.0, from);
      visit_norms(first, last, [&](int64_t, double norm) {
        if (norm > largest || norm != norm) largest = norm;
      });
    });
    return largest;
  }

 private:
  int64_t block_width() const { return joint ? outputs_ : 1; }

  int64_t outputs_, n_groups_, largest_ = 0;
  // In order: all features are penalised, and groups follow each other; single: of one feature each.
  bool grouped_, in_order_, single_, by_group_, alike_;  // alike: of the same omega
  std::vector<int64_t> offsets_;                         // unless single
  std::vector<int32_t> members_, group_;                 // unless in order; unless single
  mutable std::vector<double> sums_, moved_;             // per block and coordinate of a piece

  static constexpr int64_t kPiece = 4096;       // blocks or coordinates, about, that stay in cache
  static constexpr double kSumRounding = 1e-9;  // sums by other orders agree to this and more

  int64_t begin(int64_t g) const { return single_ ? g : offsets_[g]; }
  int32_t member(int64_t m) const { return in_order_ ? static_cast<int32_t>(m) : members_[m]; }

  // use(first, last) for ranges of groups whose features form a range, too.
  template <typename Use>
  void by_pieces(Use use) const {
    int64_t piece = n_groups_;
    if (in_order_ && n_groups_ > 0) {
      const auto d = static_cast<int64_t>(inv_omega.size());
      piece = std::max<int64_t>(1, kPiece * n_groups_ / std::max<int64_t>(1, d * outputs_));
    }
    for (int64_t first = 0; first < n_groups_; first += piece)
      use(first, std::min(first + piece, n_groups_));
  }

  std::pair<int64_t, int64_t> range(int64_t first, int64_t last) const {
    if (!in_order_) return {0, static_cast<int64_t>(inv_omega.size())};
    return {begin(first), begin(last)};
  }

  template <typename Visit>
  void visit_norms(int64_t first, int64_t last, Visit visit) const {
    const int64_t from = first * per_group(), count = last * per_group() - from;
    with_norm(shape.norm, [&](auto norm) {
      for (int64_t b = 0; b < count; ++b) sums_[b] = norm.dual(sums_[b]) / shape.radius;
    });
    for (int64_t b = 0; b < count; ++b) visit(from + b, sums_[b]);
  }

  void list_in_order(int64_t d) {
    for (int64_t j = 0; j < d; ++j) offsets_[group_[j] + 1] = j + 1;
    for (int64_t g = 0; g < n_groups_; ++g)
      offsets_[g + 1] = std::max(offsets_[g], offsets_[g + 1]);
  }

  template <typename Visit>
  void one_by_one(const double* G, double (BlockShape::*norm)(const double*, int64_t) const,
                  Visit visit) const {
    std::vector<double> g(largest_);
    for (int64_t b = 0; b < n_blocks(); ++b)
      visit(b, (shape.*norm)(g.data(), values(b, G, nullptr, 0.0, g.data())));
  }

  // sums_ = per block of these groups the sum of which shape.least_sum(theta) speaks, at
  // (G + step*dG)/omega; feature `origin` comes first in G.
  void add_terms(int64_t first, int64_t last, const double* G, const double* dG, double step,
                 double theta, int64_t origin = 0) const {
    sums_.resize(static_cast<std::size_t>((last - first) * per_group()));
    const double rest = theta * shape.absolute;
    with_norm(shape.norm, [&](auto norm) {
      if (rest > 0.0)
        add_up(first, last, G, dG, step, origin,
               [&](double g) { return norm.dual_term(std::max(std::abs(g) - rest, 0.0)); });
      else
        add_up(first, last, G, dG, step, origin, [&](double g) { return norm.dual_term(g); });
    });
  }

  template <typename Term>
  void add_up(int64_t first, int64_t last, const double* G, const double* dG, double step,
              int64_t origin, Term term) const {
    const auto [from, to] = range(first, last);
    const double* at = G + (from - origin) * outputs_;
    const int64_t count = (to - from) * outputs_;
    if (dG) {
      const double* by = dG + (from - origin) * outputs_;
      moved_.resize(static_cast<std::size_t>(count));
      for (int64_t a = 0; a < count; ++a) moved_[a] = at[a] + step * by[a];
      at = moved_.data();
    }
    if (by_group_) return add_groups(first, last, at, term);
    if (alike_ && single_ && !joint) {
      const double scale = inv_omega[0];
      for (int64_t a = 0; a < count; ++a) sums_[a] = term(at[a] * scale);
      return;
    }
    std::fill(sums_.begin(), sums_.end(), 0.0);
    add_features(from, to, first, at, term);
  }

  // Group by group, each sum in a register: half the time where groups hold several coordinates.
  template <typename Term>
  void add_groups(int64_t first, int64_t last, const double* G, Term term) const {
    const int64_t K = outputs_;
    double* sums = sums_.data();
    for (int64_t g = first; g < last; ++g) {
      const int64_t size = n_features(g);
      const double* scale = inv_omega.data() + begin(g);
      if (joint) {
        double sum = 0.0;
        for (int64_t j = 0; j < size; ++j)
          for (int64_t o = 0; o < K; ++o) sum += term(G[j * K + o] * scale[j]);
        *sums++ = sum;
      } else {
        for (int64_t o = 0; o < K; ++o) {
          double sum = 0.0;
          for (int64_t j = 0; j < size; ++j) sum += term(G[j * K + o] * scale[j]);
          *sums++ = sum;
        }
      }
      G += size * K;
    }
  }

  // The kind of the norm is known here, so that these loops hold nothing but arithmetic.
  template <typename Term>
  void add_features(int64_t from, int64_t to, int64_t first, const double* G, Term term) const {
    const int64_t K = outputs_;
    const double* scale = inv_omega.data();
    double* sums = sums_.data();
    for (int64_t j = from; j < to; ++j, G += K) {
      const int64_t g = (group_.empty() ? j : group_[j]) - first;
      if (joint) {
        double sum = 0.0;
        for (int64_t o = 0; o < K; ++o) sum += term(G[o] * scale[j]);
        sums[g] += sum;
      } else {
        for (int64_t o = 0; o < K; ++o) sums[g * K + o] += term(G[o] * scale[j]);
      }
    }
  }
};

}  // namespace sparsvm
