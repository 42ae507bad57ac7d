// Block coordinate descent for a smooth loss plus a block-separable penalty (001, Algorithms 1-3).
//
// A block is a part of the penalty: a feature in all its outputs, or a group of features. With the
// partial gradient G_j and a scalar L_j,
//
//   V = W_j − G_j/L_j,   W*_j = prox_{(α/L_j)·penalty}(V),   δ = W*_j − W_j,   W_j += a δ.
//
// With the line search (Tseng and Yun) the blocks are visited in turn, L_j is the largest
// generalised second derivative (6) in one coefficient of the block, at least ε, and a = 1, ω, ω²,
// ... until the decrease (7) is at least σ a (⟨G_j, δ⟩ + α penalty(W_j + δ) − α penalty(W_j)).
// Without it (Richtárik and Takáč) they are drawn at random, L_j = K_j = κ Σ_i p_i x_ij² and a = 1.
// The scores are kept and updated in place, so a block costs its entries times the outputs.
//
// The free intercept is one more block, of a column of ones, without penalty.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "design/column_reader.hpp"
#include "penalty/penalty.hpp"
#include "support/numbers.hpp"

namespace sparsvm {

struct BcdOptions {
  bool line_search;  // else constant steps
  bool randomised;   // else in turn
  double sigma, omega, epsilon;
  bool largest_violation;  // stopping rule (10) with the maximum in place of the sum
  bool row_norms;          // violation (9): every block is a feature under the Euclidean norm
  bool shrinking;
  uint64_t seed;
};

struct BcdSettings {
  // Blocks that were left out come back once the violations of the others are down to this share.
  double unshrink_at = 0.1;
  // Outer iterations after which scores are computed anew: updates in place gather rounding errors.
  int refresh_every = 20;
  // Of a step, after which it is below rounding.
  int most_halvings = 60;
  // Of a sum of losses: a decrease below it is nothing but rounding.
  double rounding = 4e-16;
};
inline constexpr BcdSettings kBcd;

// Problem: a SmoothProblem, or another with its functions.
template <typename Problem>
class Bcd {
 public:
  Bcd(const Problem& problem, PenaltyProx prox, const BcdOptions& options)
      : problem_(problem), prox_(std::move(prox)), options_(options), K_(problem.outputs()),
        columns_(*problem.design), W_(size(problem.d() * K_)), target_(size(problem.d() * K_)),
        b_(size(K_)), S_(size(problem.n() * K_)), gb_(size(K_)), row_(size(2 * K_)),
        stamp_(size(problem.n()), -1), random_(options.seed) {
    std::vector<int32_t> all(size(problem.d()));
    std::iota(all.begin(), all.end(), 0);
    columns_.require(all);
    parts_ = prox_.parts();
    constants_.resize(size(parts_ + 1));
    for (int64_t part = 0; part < parts_; ++part) constants_[part] = constant(part);
    constants_[parts_] = problem.loss.curvature_bound();
    unshrink();
  }

  Bcd(const Bcd&) = delete;
  Bcd& operator=(const Bcd&) = delete;

  void start(const double* W, const double* b) {
    std::copy_n(W, W_.size(), W_.begin());
    if (problem_.intercept) std::copy_n(b, b_.size(), b_.begin());
    iterations_ = searches_ = first_steps_ = 0;
    unshrink();
  }

  // Up to `count` outer iterations, fewer if the stopping rule (10) holds for `tolerance` on all
  // blocks (not asked if negative). Returns the number done.
  template <typename Poll>
  int64_t run(int64_t count, double tolerance, Poll poll) {
    settled_ = false;
    for (int64_t done = 1; done <= count; ++done) {
      poll();  // a problem without blocks has no other
      if (iterations_ % kBcd.refresh_every == 0) problem_.scores(W_.data(), b_.data(), S_.data());
      const bool complete = std::ssize(active_) == blocks();
      sweep(poll);
      const double total = options_.largest_violation ? largest_ : sum_;
      if (iterations_++ == 0) first_ = total;
      if (complete) before_shrinking_ = largest_;
      // (10), except that a first iteration without any violation has nothing left to do.
      const bool converged = tolerance >= 0.0 && (total < tolerance * first_ || total == 0.0);
      if (converged && complete) {
        settled_ = true;
        return done;
      }
      if (converged || (!complete && largest_ <= kBcd.unshrink_at * before_shrinking_)) unshrink();
    }
    return count;
  }

  bool settled() const { return settled_; }
  // The violations of the last outer iteration: their sum and the largest.
  std::pair<double, double> violation() const { return {sum_, largest_}; }
  // Line searches so far: all of them, and those that took their first step.
  std::pair<int64_t, int64_t> searches() const { return {searches_, first_steps_}; }
  const std::vector<double>& weights() const { return W_; }
  const std::vector<double>& intercept() const { return b_; }

 private:
  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }
  int64_t blocks() const { return parts_ + (problem_.intercept ? 1 : 0); }

  void unshrink() {
    active_.resize(size(blocks()));
    std::iota(active_.begin(), active_.end(), 0);
    margin_ = HUGE_VAL;
  }

  template <typename Poll>
  void sweep(Poll poll) {
    sum_ = largest_ = 0.0;
    kept_.clear();
    const auto count = std::ssize(active_);
    for (int64_t l = 0; l < count; ++l) {
      const int64_t at = options_.randomised ? random_.below(count) : l;
      const int64_t part = active_[at];
      const bool keep = part < parts_ ? visit(part) : visit_intercept();
      if (!options_.randomised && keep) kept_.push_back(part);
      if (options_.randomised && !keep) dropped_.push_back(part);
      poll();
    }
    // Far from the solution a zero block may still become active: the margin is the largest violation.
    margin_ = largest_ / static_cast<double>(problem_.n());
    if (!options_.shrinking) return;
    if (options_.randomised) {
      std::sort(dropped_.begin(), dropped_.end());
      std::erase_if(active_, [&](int64_t part) {
        return std::binary_search(dropped_.begin(), dropped_.end(), part) && is_zero(part);
      });
      dropped_.clear();
    } else {
      active_.swap(kept_);
    }
    if (active_.empty()) unshrink();
  }

  bool is_zero(int64_t part) {
    prox_.members(part, members_);
    return std::all_of(members_.begin(), members_.end(), [&](int64_t j) {
      return std::all_of(W_.begin() + j * K_, W_.begin() + (j + 1) * K_,
                         [](double w) { return w == 0.0; });
    });
  }

  // One step of a block; false if it is zero and likely to stay so.
  bool visit(int64_t part) {
    load(part);
    gradient(options_.line_search);
    double L = constants_[part];
    if (options_.line_search) {
      L = options_.epsilon;
      for (const double h : h_) L = std::max(L, h);
    }
    if (!(L > 0.0)) return true;  // an empty column under constant steps
    bool zero = true;
    double norm = 0.0, moved = 0.0;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      for (int64_t k = 0; k < K_; ++k) {
        const int64_t e = members_[m] * K_ + k;
        zero = zero && W_[e] == 0.0;
        norm += G_[m * size(K_) + size(k)] * G_[m * size(K_) + size(k)];
        target_[e] = W_[e] - G_[m * size(K_) + size(k)] / L;
      }
    }
    prox_.apply(target_.data(), problem_.alpha / L, part, part + 1);
    double along = 0.0;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      for (int64_t k = 0; k < K_; ++k) {
        const int64_t e = members_[m] * K_ + k;
        delta_[m * size(K_) + size(k)] = target_[e] - W_[e];
        moved += (target_[e] - W_[e]) * (target_[e] - W_[e]);
        along += G_[m * size(K_) + size(k)] * (target_[e] - W_[e]);
      }
    }
    note(violation(part, zero, std::sqrt(norm), L * std::sqrt(moved)));
    if (moved > 0.0) {
      step(part, along);
      return true;
    }
    return !(zero && options_.shrinking && stays_zero(part, L));
  }

  // (9): how far the block's optimality condition is from holding.
  double violation(int64_t part, bool zero, double norm, double prox_step) const {
    if (!options_.row_norms) return prox_step;
    const double limit = problem_.alpha * prox_.weight(part);
    return zero ? std::max(norm - limit, 0.0) : std::abs(norm - limit);
  }

  // Whether a zero block would stay zero under a gradient larger by the margin.
  bool stays_zero(int64_t part, double L) {
    const double factor = 1.0 + margin_ / problem_.alpha;
    if (!std::isfinite(factor)) return false;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      for (int64_t k = 0; k < K_; ++k)
        target_[members_[m] * K_ + k] = -factor * G_[m * size(K_) + size(k)] / L;
    }
    prox_.apply(target_.data(), problem_.alpha / L, part, part + 1);
    for (const int64_t j : members_) {
      for (int64_t k = 0; k < K_; ++k) {
        if (target_[j * K_ + k] != 0.0) return false;
      }
    }
    return true;
  }

  // W_j += a δ with the scores, a by the line search (7) or 1.
  void step(int64_t part, double along) {
    if (!options_.line_search) {
      add(1.0);
      return;
    }
    const double before = problem_.alpha * prox_.value(W_.data(), part, part + 1);
    const double wanted =
        along + problem_.alpha * prox_.value(target_.data(), part, part + 1) - before;
    // Features of one group share samples, each of which counts once.
    const double old = members_.size() == 1 ? passed_loss_ : touched_loss();
    double a = 1.0;
    add(a);
    ++searches_;
    for (int tries = 0; tries < kBcd.most_halvings; ++tries) {
      const double now = problem_.alpha * prox_.value(W_.data(), part, part + 1);
      const double decrease = touched_loss() - linear_value(a) - old + now - before;
      if (decrease <= options_.sigma * a * wanted + kBcd.rounding * old) {
        first_steps_ += tries == 0 ? 1 : 0;
        return;
      }
      const double shorter = options_.omega * a;
      add(shorter - a);
      a = shorter;
    }
    add(-a);
  }

  bool visit_intercept() {
    const int64_t n = problem_.n();
    double* g = row_.data();
    double* h = g + K_;
    std::fill(gb_.begin(), gb_.end(), 0.0);
    h_.assign(size(K_), 0.0);
    double old = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      const double p = problem_.loss.mass[i];
      old += p * problem_.loss.curvatures(i, S_.data() + i * K_, g, h);
      for (int64_t k = 0; k < K_; ++k) gb_[k] += p * g[k], h_[k] += p * h[k];
    }
    double L = options_.line_search ? options_.epsilon : constants_[parts_];
    if (options_.line_search) L = std::max(L, *std::max_element(h_.begin(), h_.end()));
    double square = 0.0;
    for (const double v : gb_) square += v * v;
    note(std::sqrt(square));
    double a = 0.0;
    for (double next = 1.0, tries = 0; tries < kBcd.most_halvings;
         ++tries, next *= options_.omega) {
      double loss = 0.0;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < K_; ++k) S_[i * K_ + k] -= (next - a) * gb_[k] / L;
        if (options_.line_search)
          loss += problem_.loss.mass[i] * problem_.loss.value(i, S_.data() + i * K_);
      }
      a = next;
      // Along δ = −g/L the slope is −‖g‖²/L.
      if (!options_.line_search ||
          loss - old <= -options_.sigma * a * square / L + kBcd.rounding * old)
        break;
    }
    for (int64_t k = 0; k < K_; ++k) b_[k] -= a * gb_[k] / L;
    return true;
  }

  void note(double violation) {
    sum_ += violation;
    largest_ = std::max(largest_, violation);
  }

  void load(int64_t part) {
    prox_.members(part, members_);
    G_.assign(members_.size() * size(K_), 0.0);
    h_.assign(members_.size() * size(K_), 0.0);
    delta_.resize(members_.size() * size(K_));
    rows_.clear();
    if (members_.size() == 1) return;
    ++mark_;
    for (const int64_t j : members_) {
      each(j, [&](int64_t i, double) {
        if (stamp_[i] != mark_) stamp_[i] = mark_, rows_.push_back(static_cast<int32_t>(i));
      });
    }
  }

  // Algorithm 3, for any of the losses: G_j and, if asked for, h_j, with the loss of the samples it
  // passes, which costs nothing beside them.
  void gradient(bool curvature) {
    double* g = row_.data();
    double* h = g + K_;
    passed_loss_ = 0.0;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      double* G = G_.data() + m * size(K_);
      double* H = h_.data() + m * size(K_);
      each(members_[m], [&](int64_t i, double x) {
        const double px = problem_.loss.mass[i] * x;
        if (curvature) {
          passed_loss_ +=
              problem_.loss.mass[i] * problem_.loss.curvatures(i, S_.data() + i * K_, g, h);
          for (int64_t k = 0; k < K_; ++k) H[k] += px * x * h[k];
        } else {
          problem_.loss.slopes(i, S_.data() + i * K_, g);
        }
        for (int64_t k = 0; k < K_; ++k) G[k] += px * g[k];
      });
      if (!problem_.linear_term) continue;
      for (int64_t k = 0; k < K_; ++k)
        G[k] -= problem_.alpha * problem_.linear_term[members_[m] * K_ + k];
    }
  }

  // W_j += a δ, S += a X_j δ.
  void add(double a) {
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const double* d = delta_.data() + m * size(K_);
      double* w = W_.data() + members_[m] * K_;
      // A full step lands on the prox itself, zeros included.
      for (int64_t k = 0; k < K_; ++k)
        w[k] = a == 1.0 ? target_[members_[m] * K_ + k] : w[k] + a * d[k];
      each(members_[m], [&](int64_t i, double x) {
        double* s = S_.data() + i * K_;
        for (int64_t k = 0; k < K_; ++k) s[k] += a * x * d[k];
      });
    }
  }

  // Σ p_i loss_i over the samples in which the block has entries.
  double touched_loss() const {
    double total = 0.0;
    const auto at = [&](int64_t i) {
      total += problem_.loss.mass[i] * problem_.loss.value(i, S_.data() + i * K_);
    };
    if (members_.size() == 1) {
      each(members_[0], [&](int64_t i, double) { at(i); });
    } else {
      for (const int32_t i : rows_) at(i);
    }
    return total;
  }

  // What the linear term takes off the objective along a δ.
  double linear_value(double a) const {
    if (!problem_.linear_term) return 0.0;
    double total = 0.0;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      for (int64_t k = 0; k < K_; ++k)
        total += problem_.linear_term[members_[m] * K_ + k] * delta_[m * size(K_) + size(k)];
    }
    return problem_.alpha * a * total;
  }

  // K_j = κ Σ_i p_i x_ij², summed over the features of the block.
  double constant(int64_t part) {
    double total = 0.0;
    prox_.members(part, members_);
    for (const int64_t j : members_) {
      each(j, [&](int64_t i, double x) { total += problem_.loss.mass[i] * x * x; });
    }
    return problem_.loss.curvature_bound() * total;
  }

  template <typename Visit>
  void each(int64_t j, Visit visit) const {
    const ColumnView column = columns_[static_cast<int32_t>(j)];
    if (column.single) {
      const auto* x = static_cast<const float*>(column.values);
      for (int64_t e = 0; e < column.count; ++e) visit(column.rows[e], static_cast<double>(x[e]));
    } else {
      const auto* x = static_cast<const double*>(column.values);
      for (int64_t e = 0; e < column.count; ++e) visit(column.rows[e], x[e]);
    }
  }

  Problem problem_;
  PenaltyProx prox_;
  BcdOptions options_;
  int64_t K_, parts_ = 0, iterations_ = 0, mark_ = -1, searches_ = 0, first_steps_ = 0;
  ColumnSource columns_;
  std::vector<double> W_, target_, b_, S_, gb_, row_, constants_;
  std::vector<double> G_, h_, delta_;  // of the present block, members x outputs
  std::vector<int64_t> members_, active_, kept_, dropped_, stamp_;
  std::vector<int32_t> rows_;  // samples that a block of several features touches
  double passed_loss_ = 0.0, sum_ = 0.0, largest_ = 0.0, first_ = 0.0, margin_ = HUGE_VAL,
         before_shrinking_ = 0.0;
  bool settled_ = false;
  RandomBits random_;
};

}  // namespace sparsvm
