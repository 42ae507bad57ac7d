// Block coordinate descent over a working set of groups.
//
// A group is moved to the minimiser of a model with the diagonal of the Hessian times a factor of
// the group's own. The slopes are up to date after the move, so the curvature along it is known
// exactly: the factor follows it, and a move that overshot is taken back to the better model.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "design/column_reader.hpp"
#include "loss/smooth_rows.hpp"
#include "penalty/group_penalty.hpp"
#include "solvers/block_newton/newton_step.hpp"

namespace sparsvm {

class BlockDescent {
 public:
  BlockDescent(SmoothPoint& point, SmoothRows& rows, ColumnSource& columns, GroupPenalty& penalty,
               const double* linear, Monitor& monitor)
      : point_(point), rows_(rows), columns_(columns), penalty_(penalty), linear_(linear),
        monitor_(monitor), width_(rows.width), outputs_(rows.outputs),
        factor_(static_cast<std::size_t>(penalty.count()), 1.0F),
        moment_(penalty.features_total(), -1.0F) {
    const auto cells = static_cast<std::size_t>(penalty.widest() * width_);
    for (auto* buffer : {&w_, &g_, &after_, &h_, &u_, &v_, &step_}) buffer->assign(cells, 0.0);
  }

  // Work on these groups, with the diagonal of the Hessian at the current point.
  void set_groups(const std::vector<int64_t>& groups) {
    groups_ = &groups;
    offsets_.clear();
    entries_ = 0;
    int64_t total = 0;
    for (const int64_t u : groups) {
      offsets_.push_back(total);
      total += penalty_.size(u) * width_;
      for (int64_t f = 0; f < penalty_.size(u); ++f)
        entries_ += columns_[penalty_.features(u)[f]].count;
    }
    diagonal_.resize(static_cast<std::size_t>(total));
    refresh();
  }

  void refresh() {
    rows_.refresh_curvature();
    monitor_.spend(Settings::kOperations * static_cast<double>(entries_ * width_));
    for (std::size_t k = 0; k < groups_->size(); ++k) {
      monitor_.poll();
      const int64_t u = (*groups_)[k];
      for (int64_t f = 0; f < penalty_.size(u); ++f) {
        double* h = diagonal_.data() + offsets_[k] + f * width_;
        column_curvature(columns_[penalty_.features(u)[f]], width_, rows_.C.data(), rows_.stride,
                         h);
        const double floor =
            Settings::kFloor * moment(penalty_.features(u)[f]) + Settings::kNoCurvature;
        for (int r = 0; r < width_; ++r) h[r] = std::max(h[r], floor);
      }
    }
  }

  // The diagonal of the k-th group, as of the last refresh.
  const double* diagonal(std::size_t k) const { return diagonal_.data() + offsets_[k]; }
  // Entries of the data in the columns of the groups.
  int64_t entries() const { return entries_; }

  // One pass over the groups, forwards or backwards; returns the largest violation seen, as a
  // size of the gradient.
  double epoch(bool forwards) {
    double largest = 0.0;
    const std::size_t count = groups_->size();
    // A gradient, a move and the gradient after it.
    monitor_.spend(3.0 * Settings::kOperations * static_cast<double>(entries_ * width_));
    for (std::size_t s = 0; s < count; ++s) {
      const std::size_t k = forwards ? s : count - 1 - s;
      if (s % Settings::kPolled == 0) monitor_.poll();
      largest = std::max(largest, move(k));
    }
    return largest;
  }

 private:
  using Settings = BlockNewtonSettings;

  // The weighted mean square of a feature, computed on first need.
  double moment(int32_t j) {
    float& found = moment_[static_cast<std::size_t>(j)];
    if (found < 0.0F) {
      found = static_cast<float>(column_moment(columns_[j], rows_.data().mass));
    }
    return static_cast<double>(found);
  }

  double move(std::size_t k) {
    const int64_t group = (*groups_)[k];
    const int64_t F = penalty_.size(group), cells = F * width_;
    const int32_t* features = penalty_.features(group);
    for (int64_t f = 0; f < F; ++f) {
      const double* w = point_.W + int64_t{features[f]} * outputs_;
      std::copy_n(w, outputs_, w_.data() + f * width_);
    }
    gradient(group, g_.data());
    const double* base = diagonal_.data() + offsets_[k];
    float& factor = factor_[static_cast<std::size_t>(group)];
    double violation = 0.0, old_penalty = -1.0;
    applied_.assign(static_cast<std::size_t>(cells), 0.0);
    for (int attempt = 0; attempt < Settings::kAttempts; ++attempt) {
      for (int64_t e = 0; e < cells; ++e) {
        h_[e] = factor * base[e];
        u_[e] = h_[e] * w_[e] - g_[e];
      }
      penalty_.minimise(group, h_.data(), u_.data(), v_.data());
      double change = 0.0, bend = 0.0, slope = 0.0;
      for (int64_t e = 0; e < cells; ++e) {
        const double s = v_[e] - w_[e];
        step_[e] = s;
        change += h_[e] * s * h_[e] * s;
        bend += base[e] * s * s;
        slope += g_[e] * s;
      }
      if (attempt == 0) violation = std::sqrt(change);
      if (change == 0.0) {
        undo(group, cells);
        return violation;
      }
      if (old_penalty < 0.0) old_penalty = penalty_.value(group, w_.data());
      apply(group, cells);
      double slope_after = 0.0;
      for (int64_t e = 0; e < cells; ++e) slope_after += after_[e] * step_[e];
      const double gain = penalty_.value(group, v_.data()) - old_penalty;
      const double ratio = bend > 0.0 ? (slope_after - slope) / bend : 0.0;
      // Exact for a quadratic; the loss is convex, so slope_after bounds its change from above.
      const double result = 0.5 * (slope + slope_after) + gain;
      if (result <= Settings::kDescent * (slope + gain) || slope_after + gain <= 0.0) {
        factor = static_cast<float>(std::clamp(std::max(ratio, Settings::kFactorFall * factor),
                                               Settings::kLeastFactor, Settings::kMostFactor));
        store(group);
        return violation;
      }
      // The ratio of two numbers that all but vanish may be infinite.
      factor = static_cast<float>(
          std::min(std::max(Settings::kFactorGrowth * factor, Settings::kBeyondRatio * ratio),
                   Settings::kMostFactor));
    }
    undo(group, cells);
    return violation;
  }

  void gradient(int64_t group, double* out) const {
    for (int64_t f = 0; f < penalty_.size(group); ++f) {
      const int32_t j = penalty_.features(group)[f];
      column_gradient(columns_[j], width_, rows_.D.data(), out + f * width_);
      subtract_linear(j, out + f * width_);
    }
  }

  void subtract_linear(int32_t j, double* g) const {
    if (!linear_) return;
    const double* linear = linear_ + int64_t{j} * outputs_;
    for (int r = 0; r < outputs_; ++r) g[r] -= penalty_.alpha * linear[r];
  }

  // Bring the rows from what was applied before to `step_`; leaves the gradient in after_.
  void apply(int64_t group, int64_t cells) {
    for (int64_t e = 0; e < cells; ++e) u_[e] = step_[e] - applied_[e];
    const int64_t F = penalty_.size(group);
    for (int64_t f = 0; f < F; ++f) {
      const int32_t j = penalty_.features(group)[f];
      const double* step = u_.data() + f * width_;
      if (std::all_of(step, step + width_, [](double s) { return s == 0.0; }) && F > 1) continue;
      rows_.move(columns_[j], step, after_.data() + f * width_);
      subtract_linear(j, after_.data() + f * width_);
    }
    if (F > 1) gradient(group, after_.data());
    std::copy_n(step_.data(), cells, applied_.data());
  }

  void undo(int64_t group, int64_t cells) {
    if (std::all_of(applied_.begin(), applied_.end(), [](double s) { return s == 0.0; })) return;
    std::fill_n(step_.data(), cells, 0.0);
    apply(group, cells);
  }

  void store(int64_t group) {
    for (int64_t f = 0; f < penalty_.size(group); ++f) {
      std::copy_n(v_.data() + f * width_, outputs_,
                  point_.W + int64_t{penalty_.features(group)[f]} * outputs_);
    }
  }

  SmoothPoint& point_;
  SmoothRows& rows_;
  ColumnSource& columns_;
  GroupPenalty& penalty_;
  const double* linear_;
  Monitor& monitor_;
  int width_, outputs_;
  const std::vector<int64_t>* groups_ = nullptr;
  std::vector<int64_t> offsets_;
  int64_t entries_ = 0;
  std::vector<float> factor_, moment_;
  std::vector<double> diagonal_, w_, g_, after_, h_, u_, v_, step_, applied_;
};

}  // namespace sparsvm
