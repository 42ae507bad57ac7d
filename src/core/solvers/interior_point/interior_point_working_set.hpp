// Which penalty blocks are in the interior point's working set, and how those outside limit the
// dual step. Member functions of InteriorPoint, declared in interior_point.hpp.
#pragma once

#include "solvers/interior_point/interior_point.hpp"

namespace sparsvm {

inline void InteriorPoint::open_working_set() {
  const std::int64_t width =
      std::max<std::int64_t>(1, layout_.largest_block() / (layout_.joint ? outputs_ : 1));
  // About as many features as samples; with four times as many, iterations took twice as long and
  // their number hardly fell.
  const std::int64_t opening =
      std::max<std::int64_t>(10, n_ / width) * (layout_.joint ? 1 : outputs_);
  // The best so far, cut back to as many as are wanted whenever they are some times that.
  std::vector<std::pair<double, std::int64_t>> ranked;
  double least = -1.0;
  const auto cut = [&] {
    const auto wanted = std::min<std::int64_t>(static_cast<std::int64_t>(ranked.size()), opening);
    std::nth_element(ranked.begin(), ranked.begin() + wanted, ranked.end(),
                     [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    if (wanted < static_cast<std::int64_t>(ranked.size())) least = ranked[wanted].first;
    ranked.resize(static_cast<std::size_t>(wanted));
  };
  std::vector<std::int64_t> forced;
  layout_.norms(G_.data(), [&](std::int64_t b, double norm) {
    if (norm >= 0.95 || (t_.start_weights && starts_nonzero(b))) {
      if (layout_.block_size(b) > 0) forced.push_back(b);
    } else if (norm > least && layout_.block_size(b) > 0) {
      ranked.emplace_back(norm, b);
      if (static_cast<std::int64_t>(ranked.size()) >= 4 * opening) cut();
    }
  });
  cut();
  for (const auto& entry : ranked) forced.push_back(entry.second);
  std::sort(forced.begin(), forced.end());
  add_blocks(forced, true);
}

inline bool InteriorPoint::starts_nonzero(std::int64_t b) const {
  bool any = false;
  layout_.coordinates(b, [&](std::int32_t j, std::int32_t o) {
    any = any || t_.start_weights[static_cast<std::size_t>(j) * outputs_ + o] != 0.0;
  });
  return any;
}

inline void InteriorPoint::add_blocks(const std::vector<std::int64_t>& list, bool opening) {
  std::vector<std::int32_t> fresh;
  for (std::int64_t b : list)
    layout_.coordinates(b, [&](std::int32_t j, std::int32_t) {
      if (column_of_[j] >= 0) return;
      column_of_[j] = static_cast<std::int32_t>(features_.size());
      features_.push_back(j);
      fresh.push_back(j);
    });
  const std::size_t old = Xw_.size();
  Xw_.resize(old + fresh.size() * n_);
  gather(fresh, Xw_.data() + old);
  for (std::size_t c = 0; c < fresh.size(); ++c) {
    double sum = 0.0;
    for (int i = 0; i < n_; ++i) sum += Xw_[old + c * n_ + i] * Xw_[old + c * n_ + i];
    column_scale_.push_back(std::sqrt(sum / n_) / margin_unit_);
  }
  std::vector<double> g(layout_.largest_block()), shift(layout_.largest_block()), weights;
  std::vector<std::int32_t> cols, classes;
  std::int64_t coordinates = blocks_.n_coordinates();
  for (std::int64_t b : list) coordinates += layout_.block_size(b);
  blocks_.grow(coordinates);
  const std::vector<double> imbalance = list.empty() ? std::vector<double>() : imbalances();
  for (std::int64_t b : list) {
    cols.clear();
    classes.clear();
    weights.clear();
    layout_.coordinates(b, [&](std::int32_t j, std::int32_t o) {
      cols.push_back(column_of_[j]);
      classes.push_back(o + shift_class_);
      // Opening blocks start at zero: their own centre depends on the scale of the columns.
      if (opening)
        weights.push_back(t_.start_weights
                              ? t_.start_weights[static_cast<std::size_t>(j) * outputs_ + o] *
                                    t_.omega[j]
                              : 0.0);
    });
    const std::int64_t size = layout_.values(b, G_.data(), nullptr, 0.0, g.data());
    for (std::int64_t c = 0; c < size; ++c) {
      const std::int32_t j = features_[cols[c]];
      g[c] -= mean_[j] * layout_.inv_omega[j] * imbalance[classes[c] - shift_class_];
    }
    std::fill(shift.begin(), shift.end(), 0.0);
    if (layout_.shape.exceeds(g.data(), size, 1.0 - 1e-9)) {
      const double pull = 0.5 / layout_.shape.dual_norm(g.data(), size) - 1.0;
      for (std::int64_t c = 0; c < size; ++c) shift[c] = pull * g[c];
    }
    blocks_.add(layout_.shape, size, cols.data(), classes.data(), g.data(), shift.data(), mu_,
                weights.empty() ? nullptr : weights.data(), t_.start_weights != nullptr);
    in_set_[b] |= kInside;
    block_of_.push_back(b);
  }
}

// Adds blocks between two steps, where G may be late (watched_blocks.hpp).
inline void InteriorPoint::add_blocks_now(const std::vector<std::int64_t>& list) {
  std::vector<std::pair<std::size_t, double>> kept;
  std::vector<double> x(n_);
  for (const std::int64_t b : list)
    layout_.coordinates(b, [&](std::int32_t j, std::int32_t o) {
      t_.design.gather_columns(&j, 1, x.data());
      signed_column(Y_, o + shift_class_, signed_);
      const std::size_t a = static_cast<std::size_t>(j) * outputs_ + o;
      kept.emplace_back(a, G_[a]);
      G_[a] = dot(n_, x.data(), signed_.data()) - (t_.tilt ? t_.tilt[a] : 0.0);
    });
  add_blocks(list);
  for (const auto& [a, g] : kept) G_[a] = g;
}

// Sums of Y~ over the samples, per output. They are zero at the end but not where a warm start
// begins, and there X'Y~ of centred columns differs from that of the columns as they are: the
// blocks follow the one, pricing the other. The intercept of a class without samples has no finite
// optimum and runs off farther from a start that is right in this; such problems are left to the
// certificate and a second start.
inline std::vector<double> InteriorPoint::imbalances() {
  if (empty_class_) return std::vector<double>(outputs_, 0.0);
  std::vector<double> sums;
  for (int k = shift_class_; k < K_; ++k) {
    signed_column(Y_, k, signed_);
    sums.push_back(std::accumulate(signed_.begin(), signed_.end(), 0.0));
  }
  return sums;
}

// The dual step that keeps the blocks outside the working set inside their ball; those that limit
// it, or would limit the next one, are told to enter. (A long step may leave the ball of a hundred
// blocks, most of which never come near it again once the first ones stand in the way.) Blocks near
// the boundary at the full step are listed on the way.
inline double InteriorPoint::limit_by_outsiders(double ad, std::vector<std::int64_t>& entering) {
  const std::size_t first = ck(shift_class_);
  watched_.price(Y_.data() + first, dir_.y.data() + first, ad, G_.data(), dG_.data());
  std::vector<double> g(layout_.largest_block());
  const auto outside = [&](std::int64_t b, double step) {
    const std::int64_t size = layout_.values(b, G_.data(), dG_.data(), step, g.data());
    return layout_.shape.exceeds(g.data(), size, 1.0);
  };
  double limit = ad;
  near_.clear();
  watched_.scan(G_.data(), dG_.data(), ad, WatchedBlocks::kNear, [&](std::int64_t b) {
    if (in_set_[b] & kInside) return;
    near_.push_back(b);
    if (!outside(b, ad)) return;
    entering.push_back(b);
    if (!outside(b, limit)) return;
    double lo = 0.0, hi = limit;
    for (int bis = 0; bis < 40; ++bis) {
      const double mid = 0.5 * (lo + hi);
      (outside(b, mid) ? hi : lo) = mid;
    }
    limit = 0.95 * lo;
  });
  const double next = std::min(ad, kNextStep * limit);
  std::erase_if(entering, [&](std::int64_t b) { return !outside(b, next); });
  return limit;
}

// Adds to `entering` the blocks that the rest of a dual step would bring nearest to their boundary, or
// farthest beyond it: up to a fifth of the set, in proportion to the share of the step that outsiders
// took away. Those that limit it are few, and behind them are others: one after the other they would
// shorten six steps in a row. Where steps are not blocked there is nothing to gain. (A group of all
// classes costs more: it couples them.)
inline void InteriorPoint::collect_next(double rest, double lost,
                                        std::vector<std::int64_t>& entering) {
  const auto most =
      static_cast<std::size_t>(kNextShare * lost * static_cast<double>(blocks_.size()));
  if (entering.size() >= most) return;
  std::vector<double> g(layout_.largest_block());
  std::vector<std::pair<double, std::int64_t>> ranked;
  for (const std::int64_t b : near_) {
    if (std::binary_search(entering.begin(), entering.end(), b)) continue;
    const std::int64_t size = layout_.values(b, G_.data(), dG_.data(), rest, g.data());
    ranked.emplace_back(-layout_.shape.dual_norm(g.data(), size), b);
  }
  const std::size_t room = std::min(most - entering.size(), ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(room),
                    ranked.end());
  for (std::size_t e = 0; e < room; ++e) entering.push_back(ranked[e].second);
  std::sort(entering.begin(), entering.end());
}

// Adds to `entering` the blocks listed on the way whose dual norm exceeds the threshold now. (Others
// that exceed it after a shortened step are on their way back inside.)
inline void InteriorPoint::collect_near(double threshold, std::vector<std::int64_t>& entering) {
  std::vector<double> g(layout_.largest_block());
  for (const std::int64_t b : near_) {
    const std::int64_t size = layout_.values(b, G_.data(), nullptr, 0.0, g.data());
    if (layout_.shape.exceeds(g.data(), size, threshold)) entering.push_back(b);
  }
  std::sort(entering.begin(), entering.end());
  entering.erase(std::unique(entering.begin(), entering.end()), entering.end());
  // A poor direction may drive very many blocks to the boundary at once; the worst come first.
  const std::size_t limit = static_cast<std::size_t>(4 * n_ + 50);
  if (entering.size() <= limit) return;
  std::vector<std::pair<double, std::int64_t>> ranked;
  for (std::int64_t b : entering) {
    const std::int64_t size = layout_.values(b, G_.data(), nullptr, 0.0, g.data());
    ranked.emplace_back(-layout_.shape.dual_norm(g.data(), size), b);
  }
  std::sort(ranked.begin(), ranked.end());
  entering.clear();
  for (std::size_t e = 0; e < limit; ++e) entering.push_back(ranked[e].second);
  std::sort(entering.begin(), entering.end());
}

// Blocks far from their boundary, in steps as long as the last one, whose weights complementarity
// calls zero take as much time as others and no part in the solution: they leave, and their weights
// become zero. One that enters again stays.
inline void InteriorPoint::remove_idle() {
  if (system_.n_open() > 0 || blocks_.n_coordinates() <= 2 * n_) return;
  std::vector<double> g(layout_.largest_block());
  const auto norm = [&](std::int64_t b, const std::vector<double>& values) {
    const std::int64_t size = layout_.values(b, values.data(), nullptr, 0.0, g.data());
    return layout_.shape.norm_bound(g.data(), size);
  };
  blocks_.sparse_weights(column_scale_.data(), 1.0, trial_);
  std::vector<char> idle(block_of_.size());
  for (std::size_t i = 0; i < idle.size(); ++i) {
    const std::int64_t b = block_of_[i], first = blocks_.begin(i), last = blocks_.end(i);
    idle[i] = !(in_set_[b] & kLeft) &&
              std::count(trial_.begin() + first, trial_.begin() + last, 0.0) == last - first &&
              norm(b, G_) + kIdleSteps * norm(b, dG_) < kIdle;
  }
  const auto leaving = static_cast<std::size_t>(std::count(idle.begin(), idle.end(), 1));
  std::int64_t rest = 0;
  for (std::size_t i = 0; i < idle.size(); ++i)
    if (!idle[i]) rest += blocks_.end(i) - blocks_.begin(i);
  // Unpenalised features are eliminated by the matrices of the classes, which lose their condition
  // in the end where they have fewer coordinates than rows.
  const std::int64_t least = free_features_.empty() ? 0 : std::int64_t{n_} * outputs_;
  if (leaving == 0 || kFewIdle * leaving < idle.size() || rest < least) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < idle.size(); ++i) {
    if (idle[i]) {
      in_set_[block_of_[i]] = kLeft;
      continue;
    }
    keep_block_[kept] = keep_block_[i];
    block_of_[kept++] = block_of_[i];
  }
  keep_block_.resize(kept);
  block_of_.resize(kept);
  blocks_.remove(idle);
  assembled_ = blocks_.n_coordinates();
  remove_unused_columns();
}

// Closes the gaps that blocks have left in the gathered columns.
inline void InteriorPoint::remove_unused_columns() {
  std::vector<std::int32_t> place(features_.size(), -1);
  for (const std::int32_t c : blocks_.col) place[c] = 0;
  std::int32_t kept = 0;
  for (std::size_t c = 0; c < place.size(); ++c) {
    if (place[c] < 0) {
      column_of_[features_[c]] = -1;
      continue;
    }
    place[c] = kept++;
    column_of_[features_[c]] = place[c];
    features_[place[c]] = features_[c];
    column_scale_[place[c]] = column_scale_[c];
    std::copy_n(Xw_.begin() + static_cast<std::ptrdiff_t>(c) * n_, n_,
                Xw_.begin() + static_cast<std::ptrdiff_t>(place[c]) * n_);
  }
  features_.resize(kept);
  column_scale_.resize(kept);
  Xw_.resize(static_cast<std::size_t>(kept) * n_);
  for (std::int32_t& c : blocks_.col) c = place[c];
}

}  // namespace sparsvm
