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

#include "design/column_reader.hpp"
#include "design/design.hpp"
#include "loss/smooth_state.hpp"
#include "penalty/block_newton_penalty.hpp"
#include "problem/smooth_problem.hpp"
#include "solvers/block_newton/block_newton_descent.hpp"
#include "solvers/block_newton/block_newton_prices.hpp"
#include "solvers/block_newton/block_newton_step.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

struct BlockNewtonOptions {
  double tol = 1e-4;
  int max_iter = 200;
  bool continuation = true;
  bool insist = false;                      // on the continuation, where a run without it stalled
  bool warm = false;                        // the point holds a start
  const double* start_intercept = nullptr;  // outputs, or null
};

class BlockNewton {
 public:
  /// The solution is left in `point`.
  BlockNewton(const SmoothProblem& problem, const SmoothPoint& point, UnitPenalty& penalty,
              SmoothRows& rows, Monitor& monitor)
      : t_(problem), penalty_(penalty), rows_(rows), monitor_(monitor), d_(problem.d()),
        outputs_(rows.outputs), width_(rows.width), point_(point), columns_(*problem.design),
        newton_(point_, rows, columns_, penalty, problem.tilt, problem.intercept, monitor),
        free_newton_(point_, rows, columns_, penalty, problem.tilt, problem.intercept, monitor),
        descent_(point_, rows, columns_, penalty, problem.tilt, monitor),
        prices_(problem, point_, penalty, rows, columns_, monitor) {
    for (std::int64_t u = penalty.first_free(); u < penalty.units(); ++u) free_.push_back(u);
    std::vector<std::int32_t> features;
    for (const std::int64_t u : free_) features.push_back(penalty.features(u)[0]);
    columns_.require(features);
  }

  void solve(const BlockNewtonOptions& options) {
    start(options);
    insist_ = options.insist;
    penalty_.alpha = t_.alpha;
    const bool cold = !options.warm && !t_.tilt;
    if (options.continuation && cold && penalty_.selects()) {
      fit_free(1e-2);
      prices_.update();
      for (const double alpha : larger_alphas()) {
        penalty_.alpha = alpha;
        run(kRoughly, options.max_iter, false);
      }
      penalty_.alpha = t_.alpha;
    }
    run(options.tol, options.max_iter, true);
  }

  int iterations() const { return iteration_; }
  bool stalled() const { return stalled_; }
  std::int64_t products() const { return newton_.products() + free_newton_.products(); }

 private:
  static constexpr double kRoughly = 0.1;      // relative gap or progress at larger alphas
  static constexpr double kFarBelow = 1000.0;  // continuation from alphas this much larger on
  static constexpr double kRatio = 10.0;       // between the alphas of the continuation
  static constexpr int kRounds = 6;            // epochs and Newton steps per working set
  static constexpr double kCheap =
      3e5;  // entries times outputs of a product, a tenth of a millisecond
  static constexpr double kWorthIt = 0.1;      // share of the progress that justifies a round
  static constexpr double kInner = 0.1;        // by how much they must reduce the violation
  static constexpr std::int64_t kLeast = 512;  // least number of violators taken in
  static constexpr double kProgress = 1e-3;    // share of the gap that the objective must fall by
  static constexpr int kPatience = 25;         // outer iterations without progress

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  void start(const BlockNewtonOptions& options) {
    if (!options.warm) std::fill_n(point_.W, d_ * outputs_, 0.0);
    std::fill_n(point_.b, outputs_, 0.0);
    if (options.start_intercept && t_.intercept)
      std::copy_n(options.start_intercept, outputs_, point_.b);
    refresh_scores();
  }

  void refresh_scores() {
    rows_.set_intercept(point_.b);
    std::vector<std::int32_t> used;
    for (std::int64_t j = 0; j < d_; ++j) {
      const double* w = point_.W + j * outputs_;
      if (std::any_of(w, w + outputs_, [](double x) { return x != 0.0; }))
        used.push_back(static_cast<std::int32_t>(j));
    }
    columns_.require(used);
    std::vector<double> step(at(width_), 0.0);
    for (const std::int32_t j : used) {
      monitor_.poll();
      std::copy_n(point_.W + std::int64_t{j} * outputs_, outputs_, step.data());
      add_column(columns_[j], width_, step.data(), rows_.T.data());
    }
    rows_.refresh_slopes();
  }

  /// Solve for the intercept and the unpenalised features alone, until their gradient is small.
  void fit_free(double accuracy) {
    if (!t_.intercept && free_.empty()) return;
    for (int pass = 0; pass < 30; ++pass) {
      const auto outcome = free_newton_.run(free_, {1e-3, 200});
      if (!outcome.moved || outcome.residual <= accuracy) return;
    }
  }

  std::vector<double> larger_alphas() const {
    std::vector<double> alphas;
    const double ratio = prices_.largest_norm;
    // With fewer violators than samples the loss itself tells the features apart: on 60000 x 784
    // pixels the larger alphas took three quarters of the time and helped nothing.
    const auto violators =
        std::count_if(prices_.norms.begin(), prices_.norms.end(), [](double x) { return x > 1.0; });
    if (!insist_ && (!(ratio > kFarBelow) || violators <= rows_.n)) return alphas;
    if (!(ratio > kRatio)) return alphas;
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
      if (!penalty_.selects() || penalty_.is_free(u) || !prices_.is_zero(u))
        working_.push_back(u);
      else if (prices_.norms[at(u)] > 1.0)
        outside.push_back(u);
    }
    const std::size_t room = std::max<std::size_t>(at(kLeast), 2 * working_.size());
    was_crowded_ = crowded_;
    crowded_ = outside.size() > room;
    if (crowded_) {
      std::nth_element(outside.begin(), outside.begin() + static_cast<std::ptrdiff_t>(room),
                       outside.end(), [&](std::int64_t a, std::int64_t b) {
        return prices_.norms[at(a)] != prices_.norms[at(b)]
                   ? prices_.norms[at(a)] > prices_.norms[at(b)]
                   : a < b;
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
      if (penalty_.is_free(u) || !penalty_.selects() || !prices_.is_zero(u)) active_.push_back(u);
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
      fit_free(1e-2 * tol * std::min(penalty_.alpha, prices_.objective));
      prices_.update();
      bound_ = std::max(bound_, prices_.bound);
      if (final)
        monitor_.record(iteration_, prices_.objective, std::max(prices_.gap, 0.0),
                        prices_.nonzeros);
      if (prices_.gap <= tol * std::fabs(prices_.objective)) return;
      if (iteration_ >= max_iter) return;
      // The gap jumps about; a falling objective is progress too. Where the gap is first order in
      // the distance from the optimum, the objective is second order.
      const double share = std::min(prices_.gap / std::fabs(prices_.objective), 1.0);
      const bool better = prices_.gap < 0.95 * best_gap ||
                          prices_.objective < lowest - kProgress * share * prices_.gap;
      idle = better ? 0 : idle + 1;
      best_gap = std::min(best_gap, prices_.gap);
      lowest = std::min(lowest, prices_.objective);
      if (idle > kPatience) {
        stalled_ = true;
        return;
      }
      choose_working_set();
      improve(tol);
      // A larger alpha is there for the support, and the gap lags behind that.
      if (!final && !insist_ && prices_.objective - last_ < kRoughly * last_) return;
      ++iteration_;
    }
  }

  void improve(double tol) {
    descent_.set_units(working_);
    const double enough = 0.3 * tol * penalty_.alpha;
    double first = 0.0;
    const double start = last_ = prices_.objective;
    for (int round = 0; round < kRounds; ++round) {
      if (round > 0) descent_.refresh();
      const double violation = descent_.epoch(forwards_);
      forwards_ = !forwards_;
      if (round == 0) first = violation;
      if (violation <= std::max(kInner * first, enough) && round > 0) break;
      const double descended = prices_.objective_of(working_), gain = last_ - descended;
      last_ = descended;
      double stepped = 0.0;
      // A Newton step takes the time of two to four epochs. It waits until the working set holds all
      // violators, and for an epoch more then: texts came to 1e-3 in two thirds of the time.
      if (!crowded_ && round >= (was_crowded_ ? 1 : 0)) {
        collect_active();
        const auto outcome =
            newton_.run(active_, {forcing_, std::max(cg_limit_, cheap_products())});
        if (std::isfinite(outcome.after)) stepped = outcome.before - outcome.after;
        last_ -= stepped;
        adapt(outcome, gain);
      }
      record(last_);
      if (round > 0 && gain + stepped < kWorthIt * (start - last_)) break;
    }
  }

  /// Between pricings the last dual value still bounds the optimum.
  void record(double objective) {
    if (!recording_ || t_.tilt || !(objective > 0.0)) return;
    monitor_.record(iteration_, objective, std::max(objective - bound_, 0.0), prices_.nonzeros);
  }

  /// Exact steps pay once whole steps succeed and do more than coordinate descent, not before.
  void adapt(const NewtonStep::Outcome& outcome, double descended) {
    const double stepped = outcome.before - outcome.after;
    if (!outcome.full || stepped < 0.2 * descended) {
      whole_ = 0;
      cg_limit_ = std::max(8, cg_limit_ / 2);
    } else {
      ++whole_;
      if (outcome.cg >= cg_limit_) cg_limit_ = std::min(400, 2 * cg_limit_);
    }
    forcing_ = whole_ < 3 ? 0.3 : whole_ < 5 ? 0.1 : 0.03;
  }

  /// As many products with the Hessian as take hardly more time than the rest of a round, where
  /// coordinates are tied: cut short, steps went from tie to tie for hundreds of rounds. (With l1 it
  /// is exact steps that go from kink to kink, where features outnumber the samples.)
  int cheap_products() const {
    if (!penalty_.ties()) return 0;
    const double work = static_cast<double>(descent_.entries()) * rows_.stride;
    return static_cast<int>(std::min(kCheap / std::max(work, 1.0), 400.0));
  }

  const SmoothProblem& t_;
  UnitPenalty& penalty_;
  SmoothRows& rows_;
  Monitor& monitor_;
  std::int64_t d_;
  int outputs_, width_;
  SmoothPoint point_;
  ColumnSource columns_;
  NewtonStep newton_, free_newton_;
  BlockDescent descent_;
  UnitPrices prices_;
  std::vector<std::int64_t> free_, working_, active_;
  double bound_ = 0.0, forcing_ = 0.3, last_ = 0.0;
  int iteration_ = 0, cg_limit_ = 10, whole_ = 0;
  // Whether violators were left out of the working set, and of the one before.
  bool crowded_ = false, was_crowded_ = false;
  bool forwards_ = true, stalled_ = false, recording_ = false, insist_ = false;
};

}  // namespace sparsvm
