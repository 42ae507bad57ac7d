// Smooth losses with sparse penalties: block coordinate descent finds the support, Newton's method
// on the active manifold does the rest.
//
//     minimise  sum_i p_i loss_i(X W + b)  +  alpha (penalty(W) - <tilt, W>)
//
// * Every outer iteration prices all units with one transposed product, which also gives the
//   duality gap: c times the slopes is dual feasible where c is at most one over the dual norm.
// * A working set holds the support and the worst violators. On it epochs of coordinate descent
//   alternate with Newton steps on the coordinates that are not zero.
// * Far below the alpha at which coefficients appear, a few larger alphas are solved roughly first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "block_newton_columns.hpp"
#include "block_newton_descent.hpp"
#include "block_newton_penalty.hpp"
#include "block_newton_state.hpp"
#include "block_newton_step.hpp"
#include "design.hpp"
#include "monitor.hpp"

namespace sparsvm {

struct SmoothTask {
  const Design& design;
  RowLoss loss;
  int n_classes;
  const std::int32_t* y;
  const double* mass;
  const double* cost;
  const double* margin_scale;  // or null
  double alpha;
  bool intercept;
  const double* tilt;             // d x outputs or null
  const double* start_weights;    // d x outputs or null
  const double* start_intercept;  // outputs or null
};

struct BlockNewtonOptions {
  double tol = 1e-4;
  int max_iter = 200;
  bool continuation = true;
};

class BlockNewton {
 public:
  BlockNewton(const SmoothTask& task, UnitPenalty& penalty, SmoothRows& rows, Monitor& monitor)
      : t_(task), penalty_(penalty), rows_(rows), monitor_(monitor), d_(task.design.d()),
        outputs_(rows.outputs), width_(rows.width), columns_(task.design),
        newton_(point_, rows, columns_, penalty, task.tilt, task.intercept, monitor),
        free_newton_(point_, rows, columns_, penalty, task.tilt, task.intercept, monitor),
        descent_(point_, rows, columns_, penalty, task.tilt, monitor) {
    for (std::int64_t u = penalty.first_free(); u < penalty.units(); ++u) free_.push_back(u);
    std::vector<std::int32_t> features;
    for (const std::int64_t u : free_) features.push_back(penalty.features(u)[0]);
    columns_.require(features);
    G_.resize(static_cast<std::size_t>(d_ * outputs_));
    norms_.resize(static_cast<std::size_t>(penalty.units()));
  }

  void solve(const BlockNewtonOptions& options) {
    start();
    penalty_.alpha = t_.alpha;
    const bool cold = !t_.start_weights && !t_.tilt;
    if (options.continuation && cold && penalty_.selects()) {
      fit_free(1e-2);
      price();
      for (const double alpha : larger_alphas()) {
        penalty_.alpha = alpha;
        run(kRoughly, options.max_iter, false);
      }
      penalty_.alpha = t_.alpha;
    }
    run(options.tol, options.max_iter, true);
  }

  const SmoothPoint& point() const { return point_; }
  int iterations() const { return iteration_; }
  bool stalled() const { return stalled_; }
  std::int64_t products() const { return newton_.products() + free_newton_.products(); }

 private:
  static constexpr double kRoughly = 0.1;      // relative gap asked of the larger alphas
  static constexpr double kFarBelow = 1000.0;  // continuation from alphas this much larger on
  static constexpr double kRatio = 10.0;       // between the alphas of the continuation
  static constexpr int kRounds = 6;            // epochs and Newton steps per working set
  static constexpr double kWorthIt = 0.1;      // share of the progress that justifies a round
  static constexpr double kInner = 0.1;        // by how much they must reduce the violation
  static constexpr std::int64_t kLeast = 512;  // least number of violators taken in
  static constexpr double kProgress = 1e-3;    // share of the gap that the objective must fall by
  static constexpr int kPatience = 25;         // outer iterations without progress

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  void start() {
    point_.W.assign(at(d_ * outputs_), 0.0);
    point_.b.assign(at(outputs_), 0.0);
    if (t_.start_weights) std::copy_n(t_.start_weights, d_ * outputs_, point_.W.data());
    if (t_.start_intercept && t_.intercept)
      std::copy_n(t_.start_intercept, outputs_, point_.b.data());
    refresh_scores();
  }

  void refresh_scores() {
    rows_.set_intercept(point_.b.data());
    std::vector<std::int32_t> used;
    for (std::int64_t j = 0; j < d_; ++j) {
      const double* w = point_.W.data() + j * outputs_;
      if (std::any_of(w, w + outputs_, [](double x) { return x != 0.0; }))
        used.push_back(static_cast<std::int32_t>(j));
    }
    columns_.require(used);
    std::vector<double> step(at(width_), 0.0);
    for (const std::int32_t j : used) {
      monitor_.poll();
      std::copy_n(point_.W.data() + std::int64_t{j} * outputs_, outputs_, step.data());
      add_column(columns_[j], width_, step.data(), rows_.T.data());
    }
    rows_.refresh_slopes();
  }

  bool is_zero(std::int64_t u) const {
    for (std::int64_t f = 0; f < penalty_.size(u); ++f) {
      const double* w = point_.W.data() + std::int64_t{penalty_.features(u)[f]} * outputs_;
      for (int k = 0; k < outputs_; ++k) {
        if (w[k] != 0.0) return false;
      }
    }
    return true;
  }

  /// Solve for the intercept and the unpenalised features alone, until their gradient is small.
  void fit_free(double accuracy) {
    if (!t_.intercept && free_.empty()) return;
    for (int pass = 0; pass < 30; ++pass) {
      const auto outcome = free_newton_.run(free_, {1e-3, 200});
      if (!outcome.moved || outcome.residual <= accuracy) return;
    }
  }

  /// G = X'D - alpha tilt for all features, padded blocks into norms, and the gap.
  void price() {
    if (columns_.complete() && columns_.thin()) {
      std::vector<double> g(at(width_));
      for (std::int64_t j = 0; j < d_; ++j) {
        if ((j & 1023) == 0) monitor_.poll();
        column_gradient(columns_[static_cast<std::int32_t>(j)], width_, rows_.D.data(), g.data());
        std::copy_n(g.data(), outputs_, G_.data() + j * outputs_);
      }
    } else {
      std::vector<double> Y(at(rows_.n * outputs_));
      for (std::int64_t i = 0; i < rows_.n; ++i) {
        std::copy_n(rows_.D.data() + i * width_, outputs_, Y.data() + i * outputs_);
      }
      t_.design.transposed(Y.data(), outputs_, G_.data());
    }
    objective_ = rows_.value();
    std::vector<double> g(at(penalty_.widest() * width_)), w(g.size());
    double norm = 0.0, conjugate = 0.0;
    nonzeros_ = 0;
    for (std::int64_t u = 0; u < penalty_.units(); ++u) {
      load(u, G_.data(), g.data());
      load(u, point_.W.data(), w.data());
      for (std::int64_t e = 0; e < penalty_.size(u) * width_; ++e) nonzeros_ += w[at(e)] != 0.0;
      objective_ += penalty_.value(u, w.data());
      if (t_.tilt) subtract_tilt(u, w.data(), g.data());
      norms_[at(u)] = penalty_.selects() ? penalty_.dual_norm(u, g.data()) : 0.0;
      norm = std::max(norm, norms_[at(u)]);
      if (!penalty_.is_norm()) conjugate += penalty_.conjugate(u, g.data());
    }
    largest_norm_ = norm;
    const double c = penalty_.is_norm() ? largest_scale(norm) : 1.0;
    const double bound = dual_loss(c) - conjugate;
    gap_ = objective_ - bound;
    bound_ = std::max(bound_, bound);
  }

  void subtract_tilt(std::int64_t u, const double* w, double* g) {
    for (std::int64_t f = 0; f < penalty_.size(u); ++f) {
      const double* tilt = t_.tilt + std::int64_t{penalty_.features(u)[f]} * outputs_;
      for (int k = 0; k < outputs_; ++k) {
        g[f * width_ + k] -= penalty_.alpha * tilt[k];
        objective_ -= penalty_.alpha * tilt[k] * w[f * width_ + k];
      }
    }
  }

  /// The largest c up to the best for the loss such that c times the slopes is dual feasible.
  double largest_scale(double norm) {
    if (!t_.tilt) {
      const double c = norm > 1.0 ? 1.0 / norm : 1.0;
      if (rows_.loss() == RowLoss::logistic) return c;
      const double square = rows_.dual_square(),
                   best = square > 0.0 ? rows_.dual_gain() / (2.0 * square) : 1.0;
      return std::min(norm > 0.0 ? 1.0 / norm : best, best);
    }
    if (norm <= 1.0) return 1.0;
    std::vector<std::int64_t> over;
    for (std::int64_t u = 0; u < penalty_.units(); ++u) {
      if (norms_[at(u)] > 1.0) over.push_back(u);
    }
    std::vector<double> g(at(penalty_.widest() * width_)), w(g.size(), 0.0);
    const auto feasible = [&](double c) {
      for (const std::int64_t u : over) {
        load(u, G_.data(), g.data());
        for (double& x : g) x *= c;
        for (std::int64_t f = 0; f < penalty_.size(u); ++f) {
          const double* tilt = t_.tilt + std::int64_t{penalty_.features(u)[f]} * outputs_;
          for (int k = 0; k < outputs_; ++k) g[at(f * width_ + k)] -= penalty_.alpha * tilt[k];
        }
        if (penalty_.dual_norm(u, g.data()) > 1.0 + 1e-14) return false;
      }
      return true;
    };
    double low = 0.0, high = 1.0;
    for (int pass = 0; pass < 40; ++pass) {
      const double middle = 0.5 * (low + high);
      (feasible(middle) ? low : high) = middle;
    }
    return low;
  }

  double dual_loss(double c) const {
    const double gain = c * rows_.dual_gain();
    if (rows_.loss() == RowLoss::logistic) return gain + rows_.dual_entropy(c);
    return gain - c * c * rows_.dual_square();
  }

  void load(std::int64_t u, const double* from, double* to) const {
    for (std::int64_t f = 0; f < penalty_.size(u); ++f) {
      std::copy_n(from + std::int64_t{penalty_.features(u)[f]} * outputs_, outputs_,
                  to + f * width_);
    }
  }

  std::vector<double> larger_alphas() const {
    std::vector<double> alphas;
    const double ratio = largest_norm_;
    // With fewer violators than samples the loss itself tells the features apart: on 60000 x 784
    // pixels the larger alphas took three quarters of the time and helped nothing.
    const auto violators =
        std::count_if(norms_.begin(), norms_.end(), [](double x) { return x > 1.0; });
    if (!(ratio > kFarBelow) || violators <= rows_.n) return alphas;
    const int steps = static_cast<int>(std::log(ratio) / std::log(kRatio));
    for (int s = 1; s <= steps; ++s) {
      alphas.push_back(t_.alpha * std::pow(ratio, 1.0 - static_cast<double>(s) / (steps + 1)));
    }
    return alphas;
  }

  void choose_working_set() {
    std::vector<std::int64_t> outside;
    working_.clear();
    for (std::int64_t u = 0; u < penalty_.units(); ++u) {
      if (!penalty_.selects() || penalty_.is_free(u) || !is_zero(u))
        working_.push_back(u);
      else if (norms_[at(u)] > 1.0)
        outside.push_back(u);
    }
    const std::size_t room = std::max<std::size_t>(at(kLeast), 2 * working_.size());
    if (outside.size() > room) {
      std::nth_element(outside.begin(), outside.begin() + static_cast<std::ptrdiff_t>(room),
                       outside.end(), [&](std::int64_t a, std::int64_t b) {
        return norms_[at(a)] != norms_[at(b)] ? norms_[at(a)] > norms_[at(b)] : a < b;
      });
      outside.resize(room);
    }
    working_.insert(working_.end(), outside.begin(), outside.end());
    std::sort(working_.begin(), working_.end());
    std::vector<std::int32_t> features;
    for (const std::int64_t u : working_) {
      features.insert(features.end(), penalty_.features(u),
                      penalty_.features(u) + penalty_.size(u));
    }
    columns_.require(features);
  }

  void collect_active() {
    active_.clear();
    for (const std::int64_t u : working_) {
      if (penalty_.is_free(u) || !penalty_.selects() || !is_zero(u)) active_.push_back(u);
    }
  }

  void run(double tol, int max_iter, bool final) {
    double best_gap = std::numeric_limits<double>::infinity();
    double lowest = best_gap;
    int idle = 0;
    stalled_ = false;
    recording_ = final;
    bound_ = -std::numeric_limits<double>::infinity();
    for (;;) {
      if (iteration_ % 8 == 7) refresh_scores();
      fit_free(1e-2 * tol * std::min(penalty_.alpha, objective_));
      price();
      if (final) monitor_.record(iteration_, objective_, std::max(gap_, 0.0), nonzeros_);
      if (gap_ <= tol * std::fabs(objective_)) return;
      if (iteration_ >= max_iter) return;
      // The gap jumps about; a falling objective is progress too.
      const bool better = gap_ < 0.95 * best_gap || objective_ < lowest - kProgress * gap_;
      idle = better ? 0 : idle + 1;
      best_gap = std::min(best_gap, gap_);
      lowest = std::min(lowest, objective_);
      if (idle > kPatience) {
        stalled_ = true;
        return;
      }
      choose_working_set();
      improve(tol);
      ++iteration_;
    }
  }

  void improve(double tol) {
    descent_.set_units(working_);
    const double enough = 0.3 * tol * penalty_.alpha;
    double first = 0.0;
    const double start = last_ = objective_;
    for (int round = 0; round < kRounds; ++round) {
      if (round > 0) descent_.refresh();
      const double violation = descent_.epoch(forwards_, [](std::int64_t) { return true; });
      forwards_ = !forwards_;
      if (round == 0) first = violation;
      if (violation <= std::max(kInner * first, enough) && round > 0) break;
      collect_active();
      const auto outcome = newton_.run(active_, {forcing_, cg_limit_});
      record(outcome.after);
      adapt(outcome);
      const double progress = last_ - outcome.after;
      if (round > 0 && progress < kWorthIt * (start - outcome.after)) break;
      last_ = outcome.after;
    }
  }

  /// Between pricings the last dual value still bounds the optimum.
  void record(double objective) {
    if (!recording_ || t_.tilt || !(objective > 0.0)) return;
    monitor_.record(iteration_, objective, std::max(objective - bound_, 0.0), nonzeros_);
  }

  /// Exact steps pay once whole steps succeed and do more than coordinate descent, not before.
  void adapt(const NewtonStep::Outcome& outcome) {
    const double descended = last_ - outcome.before, stepped = outcome.before - outcome.after;
    if (!outcome.full || stepped < 0.2 * descended) {
      whole_ = 0;
      cg_limit_ = std::max(8, cg_limit_ / 2);
    } else {
      ++whole_;
      if (outcome.cg >= cg_limit_) cg_limit_ = std::min(400, 2 * cg_limit_);
    }
    forcing_ = whole_ < 3 ? 0.3 : whole_ < 5 ? 0.1 : 0.03;
  }

  const SmoothTask& t_;
  UnitPenalty& penalty_;
  SmoothRows& rows_;
  Monitor& monitor_;
  std::int64_t d_;
  int outputs_, width_;
  SmoothPoint point_;
  ColumnSource columns_;
  NewtonStep newton_, free_newton_;
  BlockDescent descent_;
  std::vector<std::int64_t> free_, working_, active_;
  std::vector<double> G_, norms_;
  double objective_ = 1.0, gap_ = 0.0, largest_norm_ = 0.0, bound_ = 0.0;
  std::int64_t nonzeros_ = 0;
  double forcing_ = 0.3, last_ = 0.0;
  int iteration_ = 0, cg_limit_ = 10, whole_ = 0;
  bool forwards_ = true, stalled_ = false, recording_ = false;
};

}  // namespace sparsvm
