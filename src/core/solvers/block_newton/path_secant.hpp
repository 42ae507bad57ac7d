// The start of the next point of a path: the secant through the last two, up to the kinks it meets.
//
// Along a path weights are smooth in log(alpha) between changes of the support. What the secant leaves to the
// solver is of second order in the distance of the alphas.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "design/column_reader.hpp"
#include "loss/smooth_rows.hpp"
#include "penalty/group_penalty.hpp"
#include "solvers/block_newton/block_newton.hpp"
#include "solvers/block_newton/products.hpp"

namespace sparsvm {

class PathSecant {
 public:
  PathSecant(SmoothPoint& point, SmoothRows& rows, const ColumnSource& columns,
             GroupPenalty& penalty)
      : point_(point), rows_(rows), penalty_(penalty), width_(rows.width), outputs_(rows.outputs),
        panels_(columns, rows.n, rows.width) {}

  // The solution at alpha, which the point holds.
  void add(double alpha, const SmoothPathPoint& solution) {
    before_ = std::move(last_);
    last_ = {alpha, solution.intercept, solution.features, solution.weights};
  }

  void clear() { before_ = last_ = {}; }

  // Move the point from the last solution on to `alpha` if that lowers the objective. `groups` are all that
  // are not zero, and perhaps others.
  void extrapolate(const std::vector<int64_t>& groups, double alpha) {
    const double way = std::log(alpha / last_.alpha) / std::log(last_.alpha / before_.alpha);
    if (!(way > 0.0 && way <= kFarthest)) return;
    rows_.begin_step();
    double rise = 0.0;
    moved_.clear(), weights_.clear(), steps_.clear();
    for (const int64_t u : groups) {
      load(u);
      for (std::size_t e = 0; e < w_.size(); ++e)
        step_[e] = w_[e] != 0.0 || penalty_.is_free(u) ? way * (w_[e] - step_[e]) : 0.0;
      penalty_.cut_at_kinks(u, w_.data(), step_.data());
      rise -= penalty_.value(u, w_.data());
      for (std::size_t e = 0; e < w_.size(); ++e)
        w_[e] = step_[e] == -w_[e] ? 0.0 : w_[e] + step_[e];
      rise += penalty_.value(u, w_.data());
      for (int64_t f = 0; f < penalty_.size(u); ++f) {
        const double* s = step_.data() + f * width_;
        if (std::all_of(s, s + width_, [](double x) { return x == 0.0; })) continue;
        const int32_t j = penalty_.features(u)[f];
        moved_.push_back(j);
        steps_.insert(steps_.end(), s, s + width_);
        weights_.insert(weights_.end(), w_.data() + f * width_, w_.data() + f * width_ + outputs_);
      }
    }
    panels_.add(moved_, steps_.data(), rows_.U.data());
    for (int64_t i = 0; i < rows_.n; ++i)
      for (int k = 0; k < outputs_; ++k)
        rows_.U[static_cast<std::size_t>(i * width_ + k)] += way * shift(k);
    const double loss = rows_.value();
    if (!(rows_.value(1.0) + rise < loss)) return;
    rows_.take_step(1.0);
    for (std::size_t m = 0; m < moved_.size(); ++m)
      std::copy_n(weights_.data() + m * static_cast<std::size_t>(outputs_), outputs_,
                  point_.W + int64_t{moved_[m]} * outputs_);
    for (int k = 0; k < outputs_; ++k) point_.b[k] += way * shift(k);
  }

 private:
  // Farther on, in steps of the last distance, the secant is a poor guess.
  static constexpr double kFarthest = 3.0;

  struct Solution {
    double alpha = std::nan("");
    std::vector<double> intercept;
    std::vector<int32_t> features;
    std::vector<double> weights;
  };

  double shift(int k) const {
    const auto at = static_cast<std::size_t>(k);
    return last_.intercept[at] - before_.intercept[at];
  }

  // The weights of a group, and those of the solution before the last one in step_.
  void load(int64_t u) {
    const std::size_t cells = static_cast<std::size_t>(penalty_.size(u) * width_);
    w_.assign(cells, 0.0), step_.assign(cells, 0.0);
    for (int64_t f = 0; f < penalty_.size(u); ++f) {
      const int32_t j = penalty_.features(u)[f];
      std::copy_n(point_.W + int64_t{j} * outputs_, outputs_, w_.data() + f * width_);
      const auto found = std::lower_bound(before_.features.begin(), before_.features.end(), j);
      if (found == before_.features.end() || *found != j) continue;
      std::copy_n(before_.weights.data() + (found - before_.features.begin()) * outputs_, outputs_,
                  step_.data() + f * width_);
    }
  }

  SmoothPoint& point_;
  SmoothRows& rows_;
  GroupPenalty& penalty_;
  int width_, outputs_;
  ColumnPanels panels_;
  Solution before_, last_;
  std::vector<double> w_, step_, weights_, steps_;
  std::vector<int32_t> moved_;
};

}  // namespace sparsvm
