#include <algorithm>
#include <cmath>

#include "design/products.hpp"
#include "linalg/blas.hpp"
#include "solvers/interior_point/settings.hpp"
#include "solvers/interior_point/working_set.hpp"

namespace sparsvm {

using namespace interior_point_settings;

void PartialPricing::price(const double* Y, const double* direction, double step, double* G,
                           double* dG) {
  if (covers(Y, direction, step, G)) return price_candidates(direction, dG);
  if (active_) {
    active_ = false;
    return price_all_and_update(Y, direction, G, dG);
  }
  price_all(direction, dG);
}

void PartialPricing::advance(double step, const double* dG, double* G) const {
  const int64_t count = active_ ? static_cast<int64_t>(candidates_.size()) * outputs_ : 0;
  if (!active_)
    for (int64_t a = 0; a < d_ * outputs_; ++a) G[a] += step * dG[a];
  for (int64_t c = 0; c < count; ++c) {
    const int64_t a = int64_t{candidates_[c / outputs_]} * outputs_ + c % outputs_;
    G[a] += step * dG[a];
  }
}

double PartialPricing::distance(const double* Y, const double* other, const double* direction,
                                double step) const {
  double most = 0.0;
  std::vector<double> sizes(static_cast<std::size_t>(outputs_));
  for (int o = 0; o < outputs_; ++o) {
    double square = 0.0;
    for (int64_t i = o * n_; i < (o + 1) * n_; ++i) {
      const double move = Y[i] - other[i] + step * direction[i];
      square += move * move;
    }
    sizes[o] = std::sqrt(square);
    most = larger(most, sizes[o]);
  }
  return layout_.joint ? layout_.shape.plain_dual_norm(sizes.data(), outputs_) : most;
}

bool PartialPricing::covers(const double* Y, const double* direction, double step, double* G) {
  if (active_) {
    const double way = larger(distance(Y, reference_.data(), direction, 0.0),
                              distance(Y, reference_.data(), direction, step));
    return way <= radius_ || extend(kReach * way, Y, G);
  }
  // Where steps do not shrink, the next one would leave the radius at once.
  const double way = distance(Y, Y, direction, step);
  const bool shrinks = way < last_way_;
  last_way_ = way;
  if (!shrinks || !(way < tried_)) return false;
  if (inverse_reach_.empty()) measure();
  tried_ = way;
  if (!affordable(G, kFirstReach * way) || !find_distances(G)) return false;
  reference_.assign(Y, Y + n_ * outputs_);
  radius_ = -std::numeric_limits<double>::infinity();
  candidate_groups_.clear();
  candidates_.clear();
  active_ = extend(kReach * way, Y, G);
  if (active_) tried_ = std::numeric_limits<double>::infinity();
  return active_;
}

const double* PartialPricing::sample_major(const double* direction) {
  sample_major_.resize(static_cast<std::size_t>(n_) * outputs_);
  for (int o = 0; o < outputs_; ++o)
    for (int64_t i = 0; i < n_; ++i) sample_major_[i * outputs_ + o] = direction[o * n_ + i];
  return sample_major_.data();
}

void PartialPricing::price_all(const double* direction, double* dG) {
  design_.transposed(sample_major(direction), outputs_, dG);
}

void PartialPricing::price_all_and_update(const double* Y, const double* direction, double* G,
                                          double* dG) {
  moved_.resize(reference_.size());
  for (std::size_t a = 0; a < moved_.size(); ++a) moved_[a] = Y[a] - reference_[a];
  copy_candidates(G, prices_);
  if (design_.sparse() || 2 * outputs_ > kFewOutputs) {
    price_all(moved_.data(), dG);
    for (int64_t a = 0; a < d_ * outputs_; ++a) G[a] += dG[a];
    price_all(direction, dG);
  } else {
    price_both(direction, G, dG);
  }
  for (std::size_t c = 0; c < candidates_.size(); ++c)
    std::copy_n(prices_.data() + c * outputs_, outputs_, G + int64_t{candidates_[c]} * outputs_);
}

void PartialPricing::price_both(const double* direction, double* G, double* dG) {
  const int64_t K = outputs_, wide = std::min(d_, kPricedAtOnce);
  std::vector<double> both(static_cast<std::size_t>(n_ * 2 * K)),
      piece(static_cast<std::size_t>(wide * 2 * K));
  for (int64_t i = 0; i < n_; ++i)
    for (int64_t o = 0; o < K; ++o) {
      both[(2 * i) * K + o] = moved_[o * n_ + i];
      both[(2 * i + 1) * K + o] = direction[o * n_ + i];
    }
  for (int64_t first = 0; first < d_; first += wide) {
    const int64_t last = std::min(first + wide, d_);
    design_.transposed_range(first, last, both.data(), 2 * K, piece.data());
    const double* from = piece.data();
    for (int64_t j = first; j < last; ++j, from += 2 * K)
      for (int64_t o = 0; o < K; ++o) {
        G[j * K + o] += from[o];
        dG[j * K + o] = from[K + o];
      }
  }
}

void PartialPricing::copy_candidates(const double* G, std::vector<double>& out) const {
  out.resize(candidates_.size() * static_cast<std::size_t>(outputs_));
  for (std::size_t c = 0; c < candidates_.size(); ++c)
    std::copy_n(G + int64_t{candidates_[c]} * outputs_, outputs_, out.data() + c * outputs_);
}

void PartialPricing::price_candidates(const double* direction, double* dG) {
  product(0, direction);
  for (std::size_t c = 0; c < candidates_.size(); ++c)
    std::copy_n(prices_.data() + c * outputs_, outputs_, dG + int64_t{candidates_[c]} * outputs_);
}

void PartialPricing::product(std::size_t first, const double* direction) {
  const auto m = static_cast<int64_t>(candidates_.size() - first);
  prices_.resize(static_cast<std::size_t>(m) * outputs_);
  if (m == 0) return;
  if (design_.sparse()) {
    design_.transposed_subset(candidates_.data() + first, m, sample_major(direction), outputs_,
                              prices_.data());
  } else {
    const auto n = static_cast<int>(n_);
    gemm('T', 'N', outputs_, static_cast<int>(m), n, 1.0, direction, n,
         columns_.data() + first * n_, n, 0.0, prices_.data(), outputs_);
  }
}

int64_t PartialPricing::share() const {
  return n_ * d_ > kCachedEntries ? kUncachedShare : kCachedShare;
}

void PartialPricing::measure() {
  const BlockShape& shape = layout_.shape;
  std::vector<double> lengths;
  inverse_reach_.resize(static_cast<std::size_t>(layout_.n_groups()));
  for (int64_t group = 0; group < layout_.n_groups(); ++group) {
    lengths.clear();
    layout_.features(group,
                     [&](int32_t j) { lengths.push_back(norms_[j] * layout_.inv_omega[j]); });
    // absolute |w|_1 + radius N(w) >= (absolute + radius) N(w), and the other way round for the dual norms.
    const double reach = shape.plain_dual_norm(lengths.data(), std::ssize(lengths)) /
                         (shape.absolute + shape.radius);
    // Norms and prices are rounded.
    inverse_reach_[group] = (1.0 - kReachRounding) / reach;
  }
}

double PartialPricing::distance_to_near(int64_t group, double norm) const {
  return (kNear - norm) * inverse_reach_[group];
}

bool PartialPricing::affordable(const double* G, double radius) const {
  const int64_t groups = layout_.n_groups();
  const int64_t stride = std::max<int64_t>(1, d_ / kSampledFeatures);
  std::vector<double> g(static_cast<std::size_t>(layout_.largest_block()));
  int64_t count = 0, all = 0;
  for (int64_t group = 0; group < groups; group += stride) {
    double largest = 0.0;
    for (int64_t b = group * layout_.per_group(); b < (group + 1) * layout_.per_group(); ++b) {
      const int64_t size = layout_.values(b, G, nullptr, 0.0, g.data());
      largest = std::max(largest, layout_.shape.norm_bound(g.data(), size));
    }
    all += layout_.n_features(group);
    if (!(distance_to_near(group, largest) >= radius)) count += layout_.n_features(group);
  }
  return share() * count <= all;
}

bool PartialPricing::find_distances(const double* G) {
  distance_.assign(static_cast<std::size_t>(layout_.n_groups()), 0.0);
  double total = 0.0;
  layout_.norm_bounds(G, [&](int64_t b, double norm) {
    double& largest = distance_[layout_.group_of(b)];
    largest = std::max(largest, norm);
    total += norm;
  });
  for (int64_t group = 0; group < layout_.n_groups(); ++group)
    distance_[group] = distance_to_near(group, distance_[group]);
  return std::isfinite(total);
}

bool PartialPricing::extend(double radius, const double* Y, double* G) {
  int64_t count = 0;
  for (int64_t group = 0; group < layout_.n_groups(); ++group)
    if (!(distance_[group] >= radius)) count += layout_.n_features(group);
  if (share() * count > d_) return false;
  const std::size_t first = candidates_.size(), old = candidate_groups_.size();
  for (int64_t group = 0; group < layout_.n_groups(); ++group)
    if (!(distance_[group] >= radius) && distance_[group] >= radius_) {
      candidate_groups_.push_back(group);
      layout_.features(group, [&](int32_t j) { candidates_.push_back(j); });
    }
  std::inplace_merge(candidate_groups_.begin(),
                     candidate_groups_.begin() + static_cast<std::ptrdiff_t>(old),
                     candidate_groups_.end());
  radius_ = radius;
  const std::size_t fresh = candidates_.size() - first;
  if (!design_.sparse()) {
    columns_.resize(candidates_.size() * static_cast<std::size_t>(n_));
    design_.gather_columns(candidates_.data() + first, static_cast<int64_t>(fresh),
                           columns_.data() + first * n_);
  }
  if (!active_) return true;  // all have just been priced
  moved_.resize(reference_.size());
  for (std::size_t a = 0; a < moved_.size(); ++a) moved_[a] = Y[a] - reference_[a];
  product(first, moved_.data());
  for (std::size_t c = 0; c < fresh; ++c)
    for (int o = 0; o < outputs_; ++o)
      G[int64_t{candidates_[first + c]} * outputs_ + o] += prices_[c * outputs_ + o];
  return true;
}

}  // namespace sparsvm
