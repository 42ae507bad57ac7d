// A proximal Newton step: minimise the second-order model of the loss plus the penalty on some groups.
//
// Weights without a penalty and the intercept are eliminated from the model, so that means of columns
// and unbalanced classes do not slow it down. A line search on the objective accepts the step. The
// Hessian is that of an earlier point as long as the curvature has changed little since.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "design/column_reader.hpp"
#include "linalg/blas.hpp"
#include "linalg/dense.hpp"
#include "loss/smooth_rows.hpp"
#include "penalty/group_penalty.hpp"
#include "solvers/block_newton/block_newton.hpp"
#include "solvers/block_newton/free_newton.hpp"
#include "solvers/block_newton/loss_hessian.hpp"
#include "solvers/block_newton/manifold.hpp"
#include "solvers/block_newton/penalised_quadratic.hpp"
#include "solvers/block_newton/products.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

class ModelStep {
 public:
  ModelStep(SmoothPoint& point, SmoothRows& rows, ColumnSource& columns, GroupPenalty& penalty,
            const double* linear, bool intercept, Monitor& monitor)
      : point_(point), rows_(rows), columns_(columns), penalty_(penalty), linear_(linear),
        intercept_(intercept), width_(rows.width), outputs_(rows.outputs),
        panels_(columns, rows.n, rows.width), hessian_(rows, columns, monitor),
        quadratic_(penalty, rows.width, monitor) {}

  struct Outcome {
    bool moved = false;      // the objective fell
    double violation = 0.0;  // before the step, in the units of the gradient
    double gain = 0.0;       // fall of the objective
  };

  // Whether the model on the listed groups is of an affordable size. `norms` are the dual norms of all groups
  // at the present point.
  bool fits(const std::vector<int64_t>& groups, const std::vector<double>& norms) const {
    double count = 0.0, features = 0.0, entries = 0.0;
    for (const int64_t u : groups) {
      if (!near(u, norms)) continue;
      const double cells = static_cast<double>(penalty_.size(u)) * outputs_;
      count += penalty_.separable() && penalty_.selects() ? std::max(1.0, used(u)) : cells;
      features += static_cast<double>(penalty_.size(u));
      for (int64_t f = 0; f < penalty_.size(u); ++f)
        entries += static_cast<double>(columns_[penalty_.features(u)[f]].count);
    }
    const double n = static_cast<double>(rows_.n), rank = n * outputs_;
    const double blocks = apart() ? outputs_ : 1.0;
    const double work = (n + count / blocks) * count * count / blocks;
    if (count <= kFew) return n * count * count <= kMostWork;
    if (count > std::min(kMost, rank) || work > kMostWork) return false;
    const bool thin = kThin * entries < n * features;
    if (thin && work > kMostProducts * entries * rows_.stride) return false;
    return !penalty_.curved() || work <= kProducts * kProductWork * n * features * rows_.stride;
  }

  // Whether a group is in use, or would be soon.
  bool near(int64_t u, const std::vector<double>& norms) const {
    return !penalty_.selects() || penalty_.is_free(u) || norms[at(u)] > kNear || used(u) > 0.0;
  }

  // Step on those of the listed groups (in order: all that are not zero, and the free ones) that are not
  // zero or would not stay so, and on the intercept. `slopes` holds the part of X'D of all of them, one
  // after the other. `slow` says that the last step gained little.
  Outcome run(const std::vector<int64_t>& groups, const std::vector<double>& slopes,
              const std::vector<double>& norms, double share, double enough, bool slow) {
    Outcome outcome;
    gather(groups, slopes, norms);
    gradient();
    list();
    if (listed_.empty()) return outcome;
    refresh(slow);
    hessian_.require(listed_, place_);
    for (int attempt = 0; attempt < kAttempts && !outcome.moved; ++attempt) {
      assemble();
      moved_ = w_;
      const PenalisedQuadratic::Layout layout{penalised_, starts_, variable_, blocks_};
      const auto solved = quadratic_.minimise(layout, share, enough, moved_);
      if (attempt == 0) outcome.violation = std::max(solved.first, free_violation_);
      finish();
      outcome.moved = line_search(outcome);
      if (!outcome.moved || fraction_ < 1.0) {
        damping_ = std::clamp(kDampingStep * damping_, kFirstDamping, kMostDamping);
        stale_ = true;
        if (!outcome.moved) refresh(true), hessian_.require(listed_, place_);
      } else {
        damping_ = damping_ > kForgotten ? damping_ / kDampingStep : kLeastDamping;
      }
    }
    return outcome;
  }

 private:
  // Weights in a model: its matrix has 32 MB then.
  static constexpr double kMost = 2000.0;
  // Weights that always fit. Otherwise the matrix should not have more rows than rank, and where the penalty is
  // curved, so that conjugate gradients are good at it, not cost more than this many products with the Hessian,
  // whose entries are read for both of their halves, with a multiplication and an addition each.
  static constexpr double kFew = 300.0, kProducts = 40.0, kProductWork = 4.0;
  // Nor where columns have so few entries that epochs over them are quicker: products with them (news20_1000,
  // logistic, l1: a path takes 0.9 s, 1.8 without; 2757 x 720, 5 % of the entries, squared hinge: 0.5 and 3.0).
  // Full columns of two classes lose by epochs (4000 x 1353, 1073 weights: 4.5 -> 25 s with 300 products).
  static constexpr double kMostProducts = 1000.0, kThin = 3.0;
  // Operations to form it: a few seconds.
  static constexpr double kMostWork = 2e10;
  // Weights join the model a little before they violate.
  static constexpr double kNear = 0.995;
  // Attempts with more damping. It starts at the first of these where the line search has cut a step, rises and
  // falls by kDampingStep, and is forgotten below the second. The least, relative to the squares of the
  // columns, only keeps flat directions from infinity; of columns of zeros, the smallest number of all.
  static constexpr int kAttempts = 3;
  static constexpr double kFirstDamping = 1e-6, kForgotten = 1e-9, kMostDamping = 1e6;
  static constexpr double kDampingStep = 16.0, kLeastDamping = 1e-12, kNoCurvature = 1e-300;
  // Intercepts and unpenalised weights are eliminated with at most a percent of their curvature added.
  static constexpr ScaledCholesky::Ridge kFreeRidge{1e-13, 1e-2};
  // The steps tried, the share of the promised descent asked for (Armijo), and what counts as rounding. A
  // shorter step than the last is of a model that more damping corrects sooner.
  static constexpr double kLengths[] = {1.0, 0.5, 0.25, 0.0625};
  static constexpr double kArmijo = 1e-4, kRounding = 4e-16;

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

  // Penalised groups first in the cells, then the free features and the intercept.
  void gather(const std::vector<int64_t>& groups, const std::vector<double>& slopes,
              const std::vector<double>& norms) {
    penalised_.clear(), starts_.clear(), features_.clear(), g_.clear();
    std::size_t from = 0;
    for (const int64_t u : groups) {
      const std::size_t cells = at(penalty_.size(u) * width_);
      const auto own = slopes.begin() + static_cast<std::ptrdiff_t>(from);
      from += cells;
      if (near(u, norms)) g_.insert(g_.end(), own, own + static_cast<std::ptrdiff_t>(cells));
      if (penalty_.is_free(u) || !near(u, norms)) continue;
      penalised_.push_back(u);
      starts_.push_back(static_cast<int64_t>(features_.size()));
      features_.insert(features_.end(), penalty_.features(u),
                       penalty_.features(u) + penalty_.size(u));
    }
    cells_ = features_.size() * at(width_);
    for (int64_t u = penalty_.first_free(); u < penalty_.count(); ++u)
      features_.push_back(penalty_.features(u)[0]);
    w_.assign(cells_, 0.0);
    for (std::size_t f = 0; f < cells_ / at(width_); ++f)
      std::copy_n(point_.W + int64_t{features_[f]} * outputs_, outputs_,
                  w_.data() + f * at(width_));
  }

  void gradient() {
    g_.resize((features_.size() + 1) * at(width_), 0.0);
    for (std::size_t f = 0; f < features_.size() && linear_; ++f)
      for (int k = 0; k < outputs_; ++k)
        g_[f * at(width_) + at(k)] -=
            penalty_.alpha * linear_[int64_t{features_[f]} * outputs_ + k];
    if (!intercept_) return;
    double* own = g_.data() + features_.size() * at(width_);
    for (int64_t i = 0; i < rows_.n; ++i)
      for (int k = 0; k < width_; ++k) own[k] += rows_.D[at(i * width_ + k)];
  }

  double used(int64_t u) const {
    double count = 0.0;
    for (int64_t f = 0; f < penalty_.size(u); ++f) {
      const double* w = point_.W + int64_t{penalty_.features(u)[f]} * outputs_;
      count +=
          static_cast<double>(std::count_if(w, w + outputs_, [](double x) { return x != 0.0; }));
    }
    return count;
  }

  // The weights of the model: of a penalty on single weights those that are not zero or would not stay.
  void list() {
    listed_.clear();
    variable_.assign(cells_, -1);
    blocks_.assign(1, 0);
    const int together = apart() ? 1 : outputs_;
    for (int first = 0; first < outputs_; first += together) {
      for (std::size_t k = 0; k < penalised_.size(); ++k) {
        const int64_t u = penalised_[k];
        for (int64_t f = 0; f < penalty_.size(u); ++f) {
          const int32_t j = penalty_.features(u)[f];
          const double limit = penalty_.alpha * penalty_.absolute() * penalty_.weight(j);
          for (int r = first; r < first + together; ++r) {
            const std::size_t e = at((starts_[k] + f) * width_ + r);
            if (penalty_.separable() && w_[e] == 0.0 && !(std::abs(g_[e]) > kNear * limit))
              continue;
            variable_[e] = static_cast<int>(listed_.size());
            listed_.push_back({j, r});
          }
        }
      }
      blocks_.push_back(static_cast<int>(listed_.size()));
    }
    m_ = static_cast<int>(listed_.size());
    for (std::size_t f = cells_ / at(width_); f < features_.size(); ++f)
      for (int r = 0; r < outputs_; ++r) listed_.push_back({features_[f], r});
    for (int r = 0; r < outputs_ && intercept_; ++r)
      listed_.push_back({WeightIndex::kIntercept, r});
  }

  // Whether outputs have nothing to do with each other.
  bool apart() const { return penalty_.separable() && !hessian_.coupled(); }

  // Form the Hessian anew where the curvature has changed: by much, or by little where that is cheap or the
  // last step, with an old one, did not gain enough.
  void refresh(bool slow) {
    const auto m = static_cast<double>(listed_.size());
    const bool grown = hessian_.size() > 2.0 * m + kUnused;
    const bool cheap = m * m <= kCheap * static_cast<double>(features_.size() + 1) * width_;
    const double allowed = slow || cheap ? kSame : kAlike;
    if (hessian_.started() && !grown) {
      const double change = hessian_.change();
      if (hessian_.linear() && change + hessian_.changed() <= kUpdates) {
        if (change > 0.0) hessian_.update();
        return;
      }
      if (!hessian_.linear() && !stale_ && change <= allowed) return;
    }
    hessian_.restart();
    stale_ = false;
  }
  // Relative changes of the curvature that leave the Hessian what it is, or nearly; products with the
  // columns of a step that cost next to nothing; rows that it may have beyond twice those in use.
  static constexpr double kSame = 1e-4, kAlike = 0.1, kCheap = 20.0, kUnused = 200.0;
  // Changes of the curvature, relative to it, that are added to a Hessian before it is formed anew: fewer than
  // all samples, and not so many that what is left is the rounding of what was taken away.
  static constexpr double kUpdates = 0.5;

  // The model with the free weights eliminated.
  void assemble() {
    const int free = static_cast<int>(listed_.size()) - m_;
    const std::size_t m = at(m_), F = at(free);
    auto& H = quadratic_.H;
    auto& g = quadratic_.g;
    H.resize(m * m), g.resize(m);
    for (std::size_t b = 0; b + 1 < blocks_.size(); ++b) {
      const std::size_t first = at(blocks_[b]), last = at(blocks_[b + 1]);
      for (std::size_t c = first; c < last; ++c) {
        const double* from = hessian_.column(place_[c]);
        double* to = H.data() + c * m;
        for (std::size_t r = first; r < last; ++r) to[r] = from[place_[r]];
        to[c] +=
            damping_ * to[c] + kLeastDamping * largest_curvature(listed_[c].feature) + kNoCurvature;
      }
    }
    for (std::size_t e = 0; e < cells_; ++e)
      if (variable_[e] >= 0) g[at(variable_[e])] = g_[e];
    free_gradient_.resize(F);
    free_violation_ = 0.0;
    for (std::size_t a = 0; a < F; ++a) {
      free_gradient_[a] = g_[cells_ + a / at(outputs_) * at(width_) + a % at(outputs_)];
      free_violation_ = std::max(free_violation_, std::abs(free_gradient_[a]));
    }
    if (free == 0) return;
    free_factor_.factorise(F, kFreeRidge, damping_, [&](std::size_t r, std::size_t c) {
      return hessian_.entry(place_[m + r], place_[m + c]);
    });
    // cross_ = H_FF^-1 H_FA
    cross_.resize(F * m);
    for (std::size_t c = 0; c < m; ++c)
      for (std::size_t a = 0; a < F; ++a)
        cross_[c * F + a] = hessian_.entry(place_[m + a], place_[c]);
    coupling_ = cross_;
    free_factor_.solve(cross_.data(), m_);
    if (m_ > 0) {
      gemm('T', 'N', m_, m_, free, -1.0, coupling_.data(), free, cross_.data(), free, 1.0, H.data(),
           m_);
      gemv('T', free, m_, -1.0, cross_.data(), free, free_gradient_.data(), 1, 1.0, g.data(), 1);
    }
  }

  double largest_curvature(int32_t j) {
    if (moment_.empty()) moment_.assign(penalty_.features_total(), -1.0F);
    float& known = moment_[at(j)];
    if (known < 0.0F) known = static_cast<float>(column_moment(columns_[j], rows_.data().mass));
    return static_cast<double>(known);
  }

  // The step of all weights, the free ones included.
  void finish() {
    step_.assign(g_.size(), 0.0);
    for (std::size_t e = 0; e < cells_; ++e) step_[e] = moved_[e] - w_[e];
    const std::size_t F = free_gradient_.size();
    if (F == 0) return;
    std::vector<double> s = free_gradient_;
    free_factor_.solve(s.data());
    for (double& x : s) x = -x;
    for (std::size_t e = 0; e < cells_; ++e) {
      if (variable_[e] < 0 || step_[e] == 0.0) continue;
      add_multiple(-step_[e], cross_.data() + at(variable_[e]) * F, static_cast<int64_t>(F),
                   s.data());
    }
    centre_steps(rows_, s);
    for (std::size_t a = 0; a < F; ++a)
      step_[cells_ + a / at(outputs_) * at(width_) + a % at(outputs_)] = s[a];
  }

  double penalty_at(double t) {
    trial_.resize(cells_);
    for (std::size_t e = 0; e < cells_; ++e) trial_[e] = w_[e] + t * step_[e];
    return GroupCells{penalty_, penalised_, starts_, width_}.value(trial_.data());
  }

  bool line_search(Outcome& outcome) {
    rows_.begin_step();
    double slope = 0.0, linear = 0.0;
    for (std::size_t f = 0; f < features_.size(); ++f) {
      const double* s = step_.data() + f * at(width_);
      for (int k = 0; k < outputs_ && linear_; ++k)
        linear += penalty_.alpha * linear_[int64_t{features_[f]} * outputs_ + k] * s[k];
    }
    panels_.add(features_, step_.data(), rows_.U.data());
    if (intercept_) {
      const double* s = step_.data() + features_.size() * at(width_);
      for (int64_t i = 0; i < rows_.n; ++i)
        for (int k = 0; k < outputs_; ++k) rows_.U[at(i * width_ + k)] += s[k];
    }
    for (std::size_t e = 0; e < step_.size(); ++e) slope += g_[e] * step_[e];
    const double penalty = penalty_at(0.0), before = rows_.value() + penalty;
    slope += penalty_at(1.0) - penalty;
    if (!(slope < 0.0)) return false;
    const double noise = kRounding * std::abs(before);
    for (const double t : kLengths) {
      const double after = rows_.value(t) + penalty_at(t) - t * linear;
      if (!(after <= before + kArmijo * t * slope + noise)) continue;
      take(t);
      outcome.gain = before - after;
      fraction_ = t;
      return true;
    }
    return false;
  }

  void take(double t) {
    for (std::size_t f = 0; f < features_.size(); ++f) {
      double* w = point_.W + int64_t{features_[f]} * outputs_;
      const bool penalised = f * at(width_) < cells_;
      for (int k = 0; k < outputs_; ++k) {
        const std::size_t e = f * at(width_) + at(k);
        w[k] = penalised ? (t == 1.0 ? moved_[e] : trial_[e]) : w[k] + t * step_[e];
      }
    }
    if (intercept_)
      for (int k = 0; k < outputs_; ++k)
        point_.b[k] += t * step_[features_.size() * at(width_) + at(k)];
    rows_.take_step(t);
  }

  SmoothPoint& point_;
  SmoothRows& rows_;
  ColumnSource& columns_;
  GroupPenalty& penalty_;
  const double* linear_;
  bool intercept_, stale_ = false;
  int width_, outputs_, m_ = 0;
  double damping_ = kLeastDamping, fraction_ = 1.0, free_violation_ = 0.0;
  std::size_t cells_ = 0;
  ColumnPanels panels_;
  LossHessian hessian_;
  PenalisedQuadratic quadratic_;
  std::vector<int64_t> penalised_, starts_;
  std::vector<int32_t> features_;
  std::vector<WeightIndex> listed_;
  std::vector<int> variable_, place_, blocks_;
  std::vector<float> moment_;
  std::vector<double> w_, g_, moved_, step_, trial_, cross_, coupling_;
  ScaledCholesky free_factor_;
  std::vector<double> free_gradient_;
};

}  // namespace sparsvm
