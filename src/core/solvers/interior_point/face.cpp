#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "linalg/blas.hpp"
#include "solvers/interior_point/face_system.hpp"
#include "solvers/interior_point/interior_point.hpp"
#include "solvers/interior_point/settings.hpp"

namespace sparsvm {

using namespace interior_point_settings;

namespace {

class Face {
 public:
  Face(const ScaledProblem& problem, WorkingSet& set, const Iterate& iterate,
       const ActiveGuess& guess, double proximal, double relative_gap, Incumbent& incumbent,
       const std::function<void()>& poll)
      : p_(problem), set_(set), iterate_(iterate), guess_(guess), incumbent_(incumbent),
        poll_(poll), system_(problem.free), proximal_(proximal), held_(kHeld * relative_gap) {}

  // True if a point within the tolerance was found; it is then the owner's best.
  bool find(double tol) {
    guess();
    int fewest = std::numeric_limits<int>::max(), waited = 0;
    double pricing = kFirstPricing, lowest = std::numeric_limits<double>::infinity();
    for (int step = 0; step < kFaceSteps; ++step) {
      poll_();
      if (!newton()) return false;
      violation_ = 0.0;
      entered_ = 0;
      const int changes = drop() + admit();
      if (changes == 0 && accept(tol)) return true;
      const double primal = p_.hinge(S_) + set_.blocks.value(w_), active = count_active();
      waited = changes < fewest || primal < (1.0 - kFaceProgress) * lowest ? 0 : waited + 1;
      if (waited > kFaceWaits) return false;
      fewest = std::min(fewest, changes);
      lowest = std::min(lowest, primal);
      if (changes > 0 && changes < pricing * active) {
        pricing = kNextPricing * changes / active;
        price_all();
      }
      if (!outside_.empty()) {
        fewest = std::max(fewest, changes + admit_outside());
        waited = 0;
      }
      release(changes);
    }
    return false;
  }

 private:
  const ScaledProblem& p_;
  WorkingSet& set_;
  const Iterate& iterate_;
  const ActiveGuess& guess_;
  Incumbent& incumbent_;
  const std::function<void()>& poll_;
  FaceSystem system_;
  double proximal_, held_, first_held_ = held_;
  std::vector<char> pair_, on_;  // n*K class-major; per block
  // Since the last step: sum over what entered, in units of margins and balls, and how many did.
  double violation_ = 0.0;
  int entered_ = 0;
  std::vector<std::pair<double, int64_t>> outside_;  // dual norms and blocks
  std::vector<int> order_;
  std::vector<std::vector<int64_t>> support_;  // blocks per class
  // Per coordinate: weights, directions of W - sigma G, constant part of the step. Per block: sigma,
  // what a change of G across and along that direction does.
  std::vector<double> w_, u_, h_, sigma_, bend_, pull_, stiff_;
  std::vector<double> b_, db_, Y_, dY_, S_, G_, signs_, values_, B_, diagonal_, along_, row_, col_,
      top_, column_;
  std::vector<int> entering_;  // class per sample, or -1
  std::vector<float> single_B_;

  int64_t first(int64_t b) const { return set_.blocks.begin(b); }
  int64_t last(int64_t b) const { return set_.blocks.end(b); }
  double radius(int64_t b) const { return set_.blocks.shape(b).radius; }
  double norm(int64_t b, const std::vector<double>& v) const {
    double sum = 0.0;
    for (int64_t c = first(b); c < last(b); ++c) sum += v[c] * v[c];
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
    pair_ = guess_.pairs;
    for (int i = 0; i < p_.n; ++i) keep_largest(i);
    Y_.resize(pair_.size());
    for (std::size_t a = 0; a < Y_.size(); ++a) Y_[a] = pair_[a] ? iterate_.Y[a] : 0.0;
    w_ = set_.blocks.w;
    for (int64_t b = 0; b < set_.blocks.size(); ++b)
      if (b >= static_cast<int64_t>(guess_.blocks.size()) || !guess_.blocks[b])
        std::fill(w_.begin() + first(b), w_.begin() + last(b), 0.0);
    b_ = iterate_.b;
    fill_single_pairs();
    row_.resize(p_.n);
    set_scales();
    prices();
    choose_blocks();
  }

  void keep_largest(int i) {
    order_.clear();
    for (int k = 0; k < p_.classes; ++k)
      if (pair_[p_.at(k) + i]) order_.push_back(k);
    if (order_.size() <= kGuessedPairs) return;
    const auto by_size = [&](int k, int l) {
      return iterate_.Y[p_.at(k) + i] > iterate_.Y[p_.at(l) + i];
    };
    std::nth_element(order_.begin(), order_.begin() + kGuessedPairs, order_.end(), by_size);
    for (std::size_t r = kGuessedPairs; r < order_.size(); ++r) pair_[p_.at(order_[r]) + i] = 0;
  }

  double count_active() const {
    return static_cast<double>(std::count(pair_.begin(), pair_.end(), 1) +
                               std::count(on_.begin(), on_.end(), 1));
  }

  // sigma is the mean size of a weight, each in units of its own column.
  void set_scales() {
    const int64_t blocks = set_.blocks.size();
    for (auto* a : {&w_, &u_, &h_}) a->resize(set_.blocks.w.size(), 0.0);
    sigma_.assign(static_cast<std::size_t>(blocks), 1.0);
    double sum = 0.0;
    int count = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      double scale = 0.0;
      for (int64_t c = first(b); c < last(b); ++c)
        scale = std::max(scale, set_.column_scale[set_.blocks.col[c]]);
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
    for (int i = 0; i < p_.n; ++i) signs_[p_.at(p_.y[i]) + i] -= p_.lambda[i];
    G_ = set_.transposed(signs_.data());
  }

  int choose_blocks() {
    int changes = 0;
    for (int64_t b = 0; b < set_.blocks.size(); ++b) {
      for (int64_t c = first(b); c < last(b); ++c) u_[c] = w_[c] - sigma_[b] * G_[c];
      const double size = norm(b, u_), ball = sigma_[b] * radius(b);
      const bool on = size > ball * (1.0 + kFaceRounding);
      changes += on != (on_[b] != 0);
      if (on && !on_[b]) enters(size / ball - 1.0);
      on_[b] = on;
      for (int64_t c = first(b); c < last(b); ++c) {
        u_[c] = on ? u_[c] / size : 0.0;
        if (!on) w_[c] = 0.0;
      }
      bend_[b] = last(b) - first(b) == 1 ? 0.0 : (size - ball) / radius(b);
      pull_[b] = size / radius(b);
    }
    return changes;
  }

  // -across (I - uu') g - stiff u (u'g + constant)
  void respond(int64_t b, const double* g, double across, double constant, double* out) const {
    double along = 0.0;
    for (int64_t c = first(b); c < last(b); ++c) along += u_[c] * g[c];
    for (int64_t c = first(b); c < last(b); ++c)
      out[c] = -across * (g[c] - along * u_[c]) - stiff_[b] * (along + constant) * u_[c];
  }

  // Full steps of Y, b, and in values_ of the weights.
  bool newton() {
    values_ = w_;
    support_.resize(p_.classes);
    for (auto& list : support_) list.clear();
    for (int64_t b = 0; b < set_.blocks.size(); ++b) {
      if (!on_[b]) continue;
      stiff_[b] = sigma_[b] / held_;
      support_[set_.blocks.cls[first(b)]].push_back(b);
      respond(b, G_.data(), pull_[b], radius(b), h_.data());
      for (int64_t c = first(b); c < last(b); ++c) values_[c] += h_[c];
    }
    set_.scores(values_, b_, Y_, S_);
    for (std::size_t a = 0; a < S_.size(); ++a) S_[a] += p_.margins[a];
    system_.begin(pair_);
    equalities();
    const bool coarse = held_ > kCoarseHeld;
    for (int k = 0; k < p_.classes; ++k)
      if (!(coarse && add_class(k, single_B_)) && !add_class(k, B_)) return false;
    if (!system_.solve(dY_, db_)) return false;
    double size = 0.0;
    for (std::size_t a = 0; a < Y_.size(); ++a) {
      Y_[a] += dY_[a];
      size += std::abs(Y_[a]);
    }
    if (!std::isfinite(size)) return false;
    for (std::size_t j = 0; j < b_.size(); ++j) b_[j] += db_[j];
    const std::vector<double>& dg = set_.transposed(dY_.data(), support_);
    for (int64_t b = 0; b < set_.blocks.size(); ++b) {
      if (!on_[b]) continue;
      respond(b, dg.data(), bend_[b], 0.0, h_.data());
      for (int64_t c = first(b); c < last(b); ++c) values_[c] += h_[c];
    }
    return true;
  }

  // Samples of a single pair get all their mass there.
  void fill_single_pairs() {
    for (int i = 0; i < p_.n; ++i) {
      int count = 0, only = p_.y[i];
      for (int k = 0; k < p_.classes; ++k)
        if (pair_[p_.at(k) + i]) ++count, only = k;
      if (count > 1) continue;
      pair_[p_.at(only) + i] = 1;
      Y_[p_.at(only) + i] = p_.lambda[i];
    }
  }

  void equalities() {
    for (int i = 0; i < p_.n; ++i) {
      row_[i] = p_.lambda[i];
      for (int k = 0; k < p_.classes; ++k) row_[i] -= Y_[p_.at(k) + i];
    }
    free_residual();
    system_.set_equalities(row_, col_, proximal_);
  }

  // col_ = -F'Y~
  void free_residual() {
    col_.assign(b_.size(), 0.0);
    for (int k = 0; k < p_.classes; ++k)
      if (p_.free.has(k))
        gemv('T', p_.n, p_.free.q, -1.0, p_.free.data(), p_.n, signs_.data() + p_.at(k), 1, 0.0,
             col_.data() + p_.free.offset(k), 1);
  }

  // Of class k the matrix is X D X' = B B' on its rows, with D = bend (I - uu') + stiff uu' of its
  // blocks, and the proximal terms of Y.
  template <typename T>
  bool add_class(int k, std::vector<T>& B) {
    const std::vector<int>& rows = system_.rows(k);
    const std::size_t size = rows.size();
    std::size_t columns = 0;
    for (const int64_t b : support_[k]) columns += static_cast<std::size_t>(last(b) - first(b));
    B.resize(columns * size);
    along_.resize(size);
    T* out = B.data();
    for (const int64_t b : support_[k]) {
      const FaceBlock block{set_.blocks.col.data() + first(b), u_.data() + first(b),
                            last(b) - first(b), std::sqrt(bend_[b]), std::sqrt(stiff_[b])};
      face_columns(block, set_.X.data(), p_.n, rows.data(), static_cast<int64_t>(size),
                   along_.data(), out);
      out += block.width * static_cast<int64_t>(size);
    }
    diagonal_.resize(size);
    for (std::size_t r = 0; r < size; ++r)
      diagonal_[r] = held_ * p_.margin_unit / p_.lambda[rows[r]];
    return system_.add_class(k, B, diagonal_, S_.data() + p_.at(k));
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
    set_.scores(w_, b_, Y_, S_);
    top_.assign(p_.n, -std::numeric_limits<double>::infinity());
    for (std::size_t a = 0, k = 0; k < static_cast<std::size_t>(p_.classes); ++k)
      for (int i = 0; i < p_.n; ++i, ++a)
        if (pair_[a]) top_[i] = std::max(top_[i], p_.margins[a] + S_[a]);
    row_ = top_;
    for (double& t : row_) t += kFaceRounding * p_.margin_unit;
    entering_.assign(p_.n, -1);
    for (std::size_t a = 0, k = 0; k < static_cast<std::size_t>(p_.classes); ++k)
      for (int i = 0; i < p_.n; ++i, ++a) {
        if (pair_[a] || p_.margins[a] + S_[a] <= row_[i]) continue;
        row_[i] = p_.margins[a] + S_[a];
        entering_[i] = static_cast<int>(k);
      }
    for (int i = 0; i < p_.n; ++i) {
      if (entering_[i] < 0) continue;
      pair_[p_.at(entering_[i]) + i] = 1;
      enters((row_[i] - top_[i]) / p_.margin_unit);
      ++changes;
    }
    return changes;
  }

  // Whether primal and dual value meet, with the dual point pulled back into the ball of all blocks.
  bool accept(double tol) {
    const double primal = p_.hinge(S_) + set_.blocks.value(w_);
    const double most = tol * p_.magnitude(primal);
    free_residual();
    double dual = 0.0;
    for (std::size_t a = 0; a < Y_.size(); ++a) dual += Y_[a] * p_.margins[a];
    for (std::size_t j = 0; j < b_.size(); ++j) {
      if (std::abs(col_[j]) > kFreeRounding * p_.total_lambda) return false;
      dual -= std::abs(col_[j] * b_[j]);
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
    for (int k = 0; k < p_.classes; ++k) {
      // Exact where Y - lambda would cancel.
      p_.signed_column(Y_, k, column_);
      std::copy(column_.begin(), column_.end(), signs_.begin() + p_.at(k));
      for (int i = 0; i < p_.n; ++i) all[static_cast<std::size_t>(i) * p_.classes + k] = column_[i];
    }
    p_.transposed(all.data(), set_.dG.data());
    double largest = 1.0;
    outside_.clear();
    p_.layout.norm_bounds(set_.dG.data(), [&](int64_t b, double norm) {
      if (!(norm <= largest)) largest = norm;
      if (norm > 1.0 + kFaceRounding && !set_.holds(b)) outside_.emplace_back(norm, b);
    });
    return largest;
  }

  // Lets the outermost blocks outside join; returns how many.
  int admit_outside() {
    const auto most = static_cast<std::size_t>(kJoining * static_cast<double>(set_.blocks.size()));
    if (outside_.size() > most) {
      std::nth_element(outside_.begin(), outside_.begin() + most, outside_.end(), std::greater<>());
      outside_.resize(most);
    }
    std::vector<int64_t> list;
    for (const auto& [norm, b] : outside_) list.push_back(b);
    std::sort(list.begin(), list.end());
    outside_.clear();
    const int joined = static_cast<int>(list.size());
    set_.add(list, iterate_.Y, iterate_.mu);
    set_scales();
    prices();
    choose_blocks();
    return joined;
  }

  void take(double primal, double dual, double largest) {
    incumbent_.sparse.offer(set_, w_, b_, nullptr, primal);
    if (!(dual > incumbent_.dual_value)) return;
    incumbent_.dual_value = dual;
    for (int k = 0; k < p_.classes; ++k)
      for (int i = 0; i < p_.n; ++i) {
        const std::size_t a = p_.at(k) + i;
        incumbent_.Y[a] = std::max(0.0, (k == p_.y[i] ? p_.lambda[i] : 0.0) + signs_[a] / largest);
      }
  }
};

}  // namespace

bool find_face(const ScaledProblem& problem, WorkingSet& set, const Iterate& iterate,
               const ActiveGuess& guess, double proximal, double relative_gap, double tol,
               Incumbent& incumbent, const std::function<void()>& poll) {
  Face face(problem, set, iterate, guess, proximal, relative_gap, incumbent, poll);
  return face.find(tol);
}

}  // namespace sparsvm
