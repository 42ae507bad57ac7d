// Newton's method on the face of the optimum.
//
// The interior point knows which pairs (sample, class) and which blocks of weights are zero, all but
// a few, long before its gap is small. With a guess of these the optimality conditions are equations,
//
//     G_b + radius * W_b / |W_b| = 0    (blocks in the support),    xi_i = r_ik + S_ik    (pairs),
//     sum_k Y_ik = lambda_i,            F'Y~_k = 0,
//
// and a step on them costs a tenth of one of the interior point (face_system.hpp). Every step also
// corrects the guess, as semismooth Newton methods do: dual variables that turn negative leave,
// violated margins enter, and a block is in the support where W - sigma G is outside its ball. Weights
// along their blocks and dual variables are held back by proximal terms, which fall as fast as the
// violations of what enters do. The result counts only if its primal and dual values prove it; what the
// interior point is at is not touched, except that blocks found outside the ball join its working set.
#pragma once

#include <functional>
#include <utility>

#include "solvers/interior_point/face_columns.hpp"
#include "solvers/interior_point/face_system.hpp"
#include "solvers/interior_point/interior_point.hpp"

namespace sparsvm {

class InteriorPoint::Face {
 public:
  // relative_gap: of the interior point; the smaller it is, the less is held back.
  Face(InteriorPoint& owner, double relative_gap)
      : o_(owner), system_(owner.system_, owner.n_, owner.K_), held_(kHeld * relative_gap) {}

  // True if a point within the tolerance was found; it is then the owner's best.
  bool find(double tol) {
    guess();
    int fewest = kMany, waited = 0;
    double look = kFirstLook, lowest = std::numeric_limits<double>::infinity();
    for (int step = 0; step < kSteps; ++step) {
      o_.monitor_.poll();
      if (!newton()) return false;
      violation_ = 0.0;
      entered_ = 0;
      const int changes = drop() + admit();
      if (changes == 0 && accept(tol)) return true;
      const double primal = o_.hinge(S_, 1.0) + o_.blocks_.value(w_), active = count_active();
      waited = changes < fewest || primal < (1.0 - kProgress) * lowest ? 0 : waited + 1;
      if (waited > kWaits) return false;
      fewest = std::min(fewest, changes);
      lowest = std::min(lowest, primal);
      if (changes > 0 && changes < look * active) {
        look = kNextLook * changes / active;
        price_all();
      }
      if (!outside_.empty()) {
        fewest = std::max(fewest, changes + admit_outsiders());
        waited = 0;
      }
      release(changes);
    }
    return false;
  }

 private:
  static constexpr int kSteps = 60, kWaits = 4, kMany = std::numeric_limits<int>::max();
  // Pairs per sample in the guess, at most: those that are missing enter.
  static constexpr int kGuessed = 4;
  // Less than this of the primal value is no progress.
  static constexpr double kProgress = 1e-3;
  // Changes per active pair or block with which blocks outside are looked for, first and relative to
  // the last time; how many of these may join, per block.
  static constexpr double kFirstLook = 0.3, kNextLook = 0.7, kJoining = 0.5;
  // Proximal terms of the first step in relative gaps; by what they fall, if anything has changed and
  // else; the least in mean violations; and what is left of them in the end: with less the matrices
  // would lose the digits that it gains.
  static constexpr double kHeld = 5.0, kRelease = 4.0, kLastRelease = 16.0, kViolations = 2.0,
                          kLeastHeld = 1e-4;
  // While more than this is held back, matrices in single precision are as good.
  static constexpr double kCoarseHeld = 1e-2;
  static constexpr double kOutside = 1e-9;  // violations that count as none

  InteriorPoint& o_;
  FaceSystem system_;
  double held_, first_held_ = held_;
  std::vector<char> pair_, on_;  // n*K class-major; per block
  // Since the last step: sum over what entered, in units of margins and balls, and how many did.
  double violation_ = 0.0;
  int entered_ = 0;
  std::vector<std::pair<double, std::int64_t>> outside_;  // dual norms and blocks
  std::vector<int> order_;
  std::vector<std::vector<std::int64_t>> support_;  // blocks per class
  // Per coordinate: weights, directions of W - sigma G, constant part of the step. Per block: sigma,
  // what a change of G across and along that direction does.
  std::vector<double> w_, u_, h_, sigma_, bend_, pull_, stiff_;
  std::vector<double> b_, db_, Y_, dY_, S_, G_, signs_, values_, B_, diagonal_, along_, row_, col_,
      top_;
  std::vector<int> entering_;  // class per sample, or -1
  std::vector<float> single_B_;

  std::int64_t first(std::int64_t b) const { return o_.blocks_.begin(b); }
  std::int64_t last(std::int64_t b) const { return o_.blocks_.end(b); }
  double radius(std::int64_t b) const {
    const BlockShape& s = o_.blocks_.shape(b);
    return s.kind == BlockKind::absolute ? s.l1 : s.l2;
  }
  double norm(std::int64_t b, const std::vector<double>& v) const {
    double sum = 0.0;
    for (std::int64_t c = first(b); c < last(b); ++c) sum += v[c] * v[c];
    return std::sqrt(sum);
  }

  // The proximal terms fall, but not below the violations of what has entered: divided by less, these
  // would throw weights and dual variables far beyond their size, and the guess with them.
  void release(int changes) {
    held_ = std::max(held_ / (changes > 0 ? kRelease : kLastRelease), kLeastHeld);
    if (entered_ > 0)
      held_ = std::max(held_, std::min(kViolations * violation_ / entered_, first_held_));
  }
  void enters(double violation) {
    violation_ += violation;
    ++entered_;
  }

  // What the last affine direction of the interior point takes to values other than zero; of many
  // pairs of a sample the largest.
  void guess() {
    pair_ = o_.keep_pair_;
    for (int i = 0; i < o_.n_; ++i) keep_largest(i);
    Y_.resize(pair_.size());
    for (std::size_t a = 0; a < Y_.size(); ++a) Y_[a] = pair_[a] ? o_.Y_[a] : 0.0;
    w_ = o_.blocks_.w;
    for (std::int64_t b = 0; b < o_.blocks_.size(); ++b)
      if (b >= static_cast<std::int64_t>(o_.keep_block_.size()) || !o_.keep_block_[b])
        std::fill(w_.begin() + first(b), w_.begin() + last(b), 0.0);
    b_ = o_.b_;
    fill_single_pairs();
    row_.resize(o_.n_);
    set_scales();
    prices();
    choose_blocks();
  }

  void keep_largest(int i) {
    order_.clear();
    for (int k = 0; k < o_.K_; ++k)
      if (pair_[o_.ck(k) + i]) order_.push_back(k);
    if (order_.size() <= kGuessed) return;
    const auto by_size = [&](int k, int l) { return o_.Y_[o_.ck(k) + i] > o_.Y_[o_.ck(l) + i]; };
    std::nth_element(order_.begin(), order_.begin() + kGuessed, order_.end(), by_size);
    for (std::size_t r = kGuessed; r < order_.size(); ++r) pair_[o_.ck(order_[r]) + i] = 0;
  }

  double count_active() const {
    return static_cast<double>(std::count(pair_.begin(), pair_.end(), 1) +
                               std::count(on_.begin(), on_.end(), 1));
  }

  // sigma is the mean size of a weight, each in units of its own column.
  void set_scales() {
    const std::int64_t blocks = o_.blocks_.size();
    for (auto* a : {&w_, &u_, &h_}) a->resize(o_.blocks_.w.size(), 0.0);
    sigma_.assign(static_cast<std::size_t>(blocks), 1.0);
    double sum = 0.0;
    int count = 0;
    for (std::int64_t b = 0; b < blocks; ++b) {
      double scale = 0.0;
      for (std::int64_t c = first(b); c < last(b); ++c)
        scale = std::max(scale, o_.column_scale_[o_.blocks_.col[c]]);
      if (scale > 0.0) sigma_[b] = 1.0 / scale;
      const double size = norm(b, w_);
      sum += size / sigma_[b];
      count += size > 0.0;
    }
    for (double& s : sigma_) s *= count > 0 ? sum / count : 1.0;
    for (auto* a : {&bend_, &pull_, &stiff_}) a->assign(sigma_.size(), 0.0);
    on_.resize(sigma_.size(), 0);
  }

  // signs_ = Y~, also where the row sums do not hold yet, and G_ = X'Y~ on the working set.
  void prices() {
    signs_ = Y_;
    for (int i = 0; i < o_.n_; ++i) signs_[o_.ck(o_.t_.y[i]) + i] -= o_.t_.lambda[i];
    o_.transposed_coordinates(signs_.data());
    G_ = o_.dg_;
  }

  // X'Y of the blocks in the support, in the owner's dg_.
  void support_products(const double* Y) {
    if (!o_.few_coordinates()) return o_.transposed_coordinates(Y);
    o_.dg_.resize(o_.blocks_.n_coordinates());
    for (const auto& blocks : support_)
      for (const std::int64_t b : blocks)
        coordinate_products(o_.Xw_.data(), o_.n_, o_.blocks_.col.data() + first(b),
                            o_.blocks_.cls.data() + first(b), last(b) - first(b), Y,
                            o_.dg_.data() + first(b));
  }

  int choose_blocks() {
    int changes = 0;
    for (std::int64_t b = 0; b < o_.blocks_.size(); ++b) {
      for (std::int64_t c = first(b); c < last(b); ++c) u_[c] = w_[c] - sigma_[b] * G_[c];
      const double size = norm(b, u_), ball = sigma_[b] * radius(b);
      const bool on = size > ball * (1.0 + kOutside);
      changes += on != (on_[b] != 0);
      if (on && !on_[b]) enters(size / ball - 1.0);
      on_[b] = on;
      for (std::int64_t c = first(b); c < last(b); ++c) {
        u_[c] = on ? u_[c] / size : 0.0;
        if (!on) w_[c] = 0.0;
      }
      bend_[b] = last(b) - first(b) == 1 ? 0.0 : (size - ball) / radius(b);
      pull_[b] = size / radius(b);
    }
    return changes;
  }

  // -across (I - uu') g - stiff u (u'g + constant)
  void respond(std::int64_t b, const double* g, double across, double constant, double* out) const {
    double along = 0.0;
    for (std::int64_t c = first(b); c < last(b); ++c) along += u_[c] * g[c];
    for (std::int64_t c = first(b); c < last(b); ++c)
      out[c] = -across * (g[c] - along * u_[c]) - stiff_[b] * (along + constant) * u_[c];
  }

  // Full steps of Y, b, and in values_ of the weights.
  bool newton() {
    values_ = w_;
    support_.resize(o_.K_);
    for (auto& list : support_) list.clear();
    for (std::int64_t b = 0; b < o_.blocks_.size(); ++b) {
      if (!on_[b]) continue;
      stiff_[b] = sigma_[b] / held_;
      support_[o_.blocks_.cls[first(b)]].push_back(b);
      respond(b, G_.data(), pull_[b], radius(b), h_.data());
      for (std::int64_t c = first(b); c < last(b); ++c) values_[c] += h_[c];
    }
    o_.scores(values_, b_, Y_, S_);
    for (std::size_t a = 0; a < S_.size(); ++a) S_[a] += o_.r_[a];
    system_.begin(pair_);
    equalities();
    const bool coarse = held_ > kCoarseHeld;
    for (int k = 0; k < o_.K_; ++k)
      if (!(coarse && add_class(k, single_B_)) && !add_class(k, B_)) return false;
    if (!system_.solve(dY_, db_)) return false;
    double size = 0.0;
    for (std::size_t a = 0; a < Y_.size(); ++a) {
      Y_[a] += dY_[a];
      size += std::fabs(Y_[a]);
    }
    if (!std::isfinite(size)) return false;
    for (std::size_t j = 0; j < b_.size(); ++j) b_[j] += db_[j];
    support_products(dY_.data());
    for (std::int64_t b = 0; b < o_.blocks_.size(); ++b) {
      if (!on_[b]) continue;
      respond(b, o_.dg_.data(), bend_[b], 0.0, h_.data());
      for (std::int64_t c = first(b); c < last(b); ++c) values_[c] += h_[c];
    }
    return true;
  }

  // Samples of a single pair get all their mass there.
  void fill_single_pairs() {
    for (int i = 0; i < o_.n_; ++i) {
      int count = 0, only = o_.t_.y[i];
      for (int k = 0; k < o_.K_; ++k)
        if (pair_[o_.ck(k) + i]) ++count, only = k;
      if (count > 1) continue;
      pair_[o_.ck(only) + i] = 1;
      Y_[o_.ck(only) + i] = o_.t_.lambda[i];
    }
  }

  void equalities() {
    for (int i = 0; i < o_.n_; ++i) {
      row_[i] = o_.t_.lambda[i];
      for (int k = 0; k < o_.K_; ++k) row_[i] -= Y_[o_.ck(k) + i];
    }
    free_residual();
    system_.set_equalities(row_, col_, o_.system_.proximal);
  }

  // col_ = -F'Y~
  void free_residual() {
    col_.assign(b_.size(), 0.0);
    for (int k = 0; k < o_.K_; ++k)
      if (o_.system_.has_free(k))
        gemv('T', o_.n_, o_.system_.q(), -1.0, o_.system_.free_columns(), o_.n_,
             signs_.data() + o_.ck(k), 1, 0.0, col_.data() + o_.system_.free_offset(k), 1);
  }

  // Of class k the matrix is X D X' = B B' on its rows, with D = bend (I - uu') + stiff uu' of its
  // blocks, and the proximal terms of Y.
  template <typename T>
  bool add_class(int k, std::vector<T>& B) {
    const std::vector<int>& rows = system_.rows(k);
    const std::size_t size = rows.size();
    std::size_t columns = 0;
    for (const std::int64_t b : support_[k])
      columns += static_cast<std::size_t>(last(b) - first(b));
    B.resize(columns * size);
    along_.resize(size);
    T* out = B.data();
    for (const std::int64_t b : support_[k]) {
      const FaceBlock block{o_.blocks_.col.data() + first(b), u_.data() + first(b),
                            last(b) - first(b), std::sqrt(bend_[b]), std::sqrt(stiff_[b])};
      face_columns(block, o_.Xw_.data(), o_.n_, rows.data(), static_cast<std::int64_t>(size),
                   along_.data(), out);
      out += block.width * static_cast<std::int64_t>(size);
    }
    diagonal_.resize(size);
    for (std::size_t r = 0; r < size; ++r)
      diagonal_[r] = held_ * o_.margin_unit_ / o_.t_.lambda[rows[r]];
    return system_.add_class(k, B, diagonal_, S_.data() + o_.ck(k));
  }

  // Takes the step of the weights; dual variables that turned negative leave.
  int drop() {
    int changes = 0;
    for (std::size_t a = 0; a < Y_.size(); ++a)
      if (Y_[a] < 0.0) {
        pair_[a] = 0;
        Y_[a] = 0.0;
        ++changes;
      }
    w_ = values_;
    if (changes > 0) fill_single_pairs();
    prices();
    return changes;
  }

  // Blocks according to W - sigma G; of the pairs above those of their sample the highest enters: more
  // at once would mostly leave again, and the first steps would be as expensive as the interior point's.
  int admit() {
    int changes = choose_blocks();
    o_.scores(w_, b_, Y_, S_);
    top_.assign(o_.n_, -std::numeric_limits<double>::infinity());
    for (std::size_t a = 0, k = 0; k < static_cast<std::size_t>(o_.K_); ++k)
      for (int i = 0; i < o_.n_; ++i, ++a)
        if (pair_[a]) top_[i] = std::max(top_[i], o_.r_[a] + S_[a]);
    row_ = top_;
    for (double& t : row_) t += kOutside * o_.margin_unit_;
    entering_.assign(o_.n_, -1);
    for (std::size_t a = 0, k = 0; k < static_cast<std::size_t>(o_.K_); ++k)
      for (int i = 0; i < o_.n_; ++i, ++a) {
        if (pair_[a] || o_.r_[a] + S_[a] <= row_[i]) continue;
        row_[i] = o_.r_[a] + S_[a];
        entering_[i] = static_cast<int>(k);
      }
    for (int i = 0; i < o_.n_; ++i) {
      if (entering_[i] < 0) continue;
      pair_[o_.ck(entering_[i]) + i] = 1;
      enters((row_[i] - top_[i]) / o_.margin_unit_);
      ++changes;
    }
    return changes;
  }

  // Whether primal and dual value meet, with the dual point pulled back into the ball of all blocks.
  bool accept(double tol) {
    const double primal = o_.hinge(S_, 1.0) + o_.blocks_.value(w_);
    const double most = tol * o_.magnitude(primal);
    free_residual();
    double dual = 0.0;
    for (std::size_t a = 0; a < Y_.size(); ++a) dual += Y_[a] * o_.r_[a];
    for (std::size_t j = 0; j < b_.size(); ++j) {
      if (std::fabs(col_[j]) > 1e-8 * o_.total_lambda_) return false;
      dual -= std::fabs(col_[j] * b_[j]);
    }
    if (!(primal - dual <= most)) return false;
    const double largest = price_all();
    if (!(primal - dual / largest <= most)) return false;
    take(primal, dual / largest, largest);
    return true;
  }

  // The largest dual norm of all blocks, at least one, and in outside_ the blocks beyond that are not in
  // the working set.
  double price_all() {
    std::vector<double> all(Y_.size());
    for (int k = 0; k < o_.K_; ++k) {
      // Exact where Y - lambda would cancel.
      o_.signed_column(Y_, k, o_.signed_);
      std::copy(o_.signed_.begin(), o_.signed_.end(), signs_.begin() + o_.ck(k));
      for (int i = 0; i < o_.n_; ++i) all[static_cast<std::size_t>(i) * o_.K_ + k] = o_.signed_[i];
    }
    o_.price(all.data());
    double largest = 1.0;
    outside_.clear();
    o_.layout_.norm_bounds(o_.dG_.data(), [&](std::int64_t b, double norm) {
      if (!(norm <= largest)) largest = norm;
      if (norm > 1.0 + kOutside && !(o_.in_set_[b] & kInside)) outside_.emplace_back(norm, b);
    });
    return largest;
  }

  // Lets the outermost blocks outside join; returns how many.
  int admit_outsiders() {
    const auto most = static_cast<std::size_t>(kJoining * static_cast<double>(o_.blocks_.size()));
    if (outside_.size() > most) {
      std::nth_element(outside_.begin(), outside_.begin() + most, outside_.end(), std::greater<>());
      outside_.resize(most);
    }
    std::vector<std::int64_t> list;
    for (const auto& [norm, b] : outside_) list.push_back(b);
    std::sort(list.begin(), list.end());
    outside_.clear();
    const int joined = static_cast<int>(list.size());
    o_.add_blocks_now(list);
    set_scales();
    prices();
    choose_blocks();
    return joined;
  }

  void take(double primal, double dual, double largest) {
    std::swap(o_.b_, b_);
    o_.keep(o_.sparse_, w_, 1.0, primal);
    std::swap(o_.b_, b_);
    if (!(dual > o_.best_dual_)) return;
    o_.best_dual_ = dual;
    for (int k = 0; k < o_.K_; ++k)
      for (int i = 0; i < o_.n_; ++i) {
        const std::size_t a = o_.ck(k) + i;
        o_.best_Y_[a] =
            std::max(0.0, (k == o_.t_.y[i] ? o_.t_.lambda[i] : 0.0) + signs_[a] / largest);
      }
  }
};

}  // namespace sparsvm
