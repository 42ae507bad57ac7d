// Newton's method in the intercept and the unpenalised features alone.
//
// At its end their gradient, which is the residual of the dual's equalities, is as small as asked for: down
// to rounding, so that the slopes are a feasible dual point without any repair.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "design/column_reader.hpp"
#include "linalg/dense.hpp"
#include "loss/smooth_rows.hpp"
#include "penalty/group_penalty.hpp"
#include "solvers/block_newton/block_newton.hpp"
#include "solvers/block_newton/loss_hessian.hpp"

namespace sparsvm {

// Take equal shifts of all classes, which rounding decides on, out of the steps of unpenalised weights
// (features x outputs) where only differences of scores count.
inline void centre_steps(const SmoothRows& rows, std::vector<double>& s) {
  if (rows.outputs == 1 || rows.loss() == LossKind::ovr_squared_hinge) return;
  for (auto first = s.begin(); first != s.end(); first += rows.outputs) {
    const double mean = std::accumulate(first, first + rows.outputs, 0.0) / rows.outputs;
    std::for_each(first, first + rows.outputs, [mean](double& x) { x -= mean; });
  }
}

class FreeNewton {
 public:
  FreeNewton(SmoothPoint& point, SmoothRows& rows, const ColumnSource& columns,
             const GroupPenalty& penalty, const double* linear, bool intercept, Monitor& monitor)
      : point_(point), rows_(rows), columns_(columns), penalty_(penalty), linear_(linear),
        width_(rows.width), outputs_(rows.outputs), hessian_(rows, columns, monitor) {
    for (int64_t u = penalty.first_free(); u < penalty.count(); ++u)
      features_.push_back(penalty.features(u)[0]);
    if (intercept) features_.push_back(WeightIndex::kIntercept);
    for (const int32_t j : features_)
      for (int r = 0; r < outputs_; ++r) weights_.push_back({j, r});
    slope_.resize(weights_.size()), size_.resize(weights_.size());
    row_.resize(static_cast<std::size_t>(width_));
  }

  bool nothing() const { return weights_.empty(); }

  // The sum of the absolute values.
  double size() const {
    double total = 0.0;
    for (const WeightIndex& w : weights_)
      total += std::abs(w.feature == WeightIndex::kIntercept
                            ? point_.b[w.output]
                            : point_.W[int64_t{w.feature} * outputs_ + w.output]);
    return total;
  }

  // Until no entry of the gradient is above `accuracy` or rounding; whether that was reached. The Hessian is that of
  // the first step as long as this reduces the gradient well.
  bool run(double accuracy) {
    if (nothing()) return true;
    double last = std::numeric_limits<double>::infinity();
    factor_.clear();
    for (int pass = 0; pass < kPasses; ++pass) {
      gradient();
      if (small(accuracy, kAim)) return true;
      const double left = largest();
      const bool slow = left > kSlow * last;
      if (slow && small(accuracy, kFloor)) break;
      last = left;
      const bool fresh = factor_.empty() || slow;
      if (fresh) factorise();
      if (step()) continue;
      if (fresh) break;
      factorise();
      if (!step()) break;
    }
    gradient();
    return small(accuracy, kBalanced);
  }

 private:
  static constexpr int kPasses = 30;
  // Residuals relative to the sizes of the dual's entries: what to aim at, and what counts as balanced.
  // (The certificate allows 64 roundings.) Below the last one, steps that gain little are at the rounding of the
  // scores: where many samples share it, 30 steps more went to and fro there.
  static constexpr double kAim = 4 * 0x1p-52, kBalanced = 60 * 0x1p-52, kFloor = 1e3 * 0x1p-52;
  // Below this share of the loss a step needs no line search.
  static constexpr double kTiny = 1e-9;
  // A step with an old Hessian that leaves more than this share of the gradient asks for a new one.
  static constexpr double kSlow = 0.05;
  // Few variables, and any direction of descent will do: the ridge may grow to the diagonal itself.
  static constexpr ScaledCholesky::Ridge kRidge{1e-14, 1.0};
  // The line search: halvings down to this step, and the share of the promised descent asked for (Armijo).
  static constexpr double kShortest = 1e-6, kArmijo = 1e-4;

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

  void gradient() {
    std::vector<double> sum(at(width_)), size(at(width_));
    for (std::size_t f = 0; f < features_.size(); ++f) {
      const int32_t j = features_[f];
      std::fill(sum.begin(), sum.end(), 0.0), std::fill(size.begin(), size.end(), 0.0);
      const auto add = [&](int64_t i, double x) {
        const double* d = rows_.D.data() + i * width_;
        for (int k = 0; k < width_; ++k) sum[at(k)] += x * d[k], size[at(k)] += std::abs(x * d[k]);
      };
      if (j == WeightIndex::kIntercept) {
        sums_of_rows(rows_.D.data(), rows_.n, width_, sum.data(), size.data());
      } else {
        const ColumnView c = columns_[j];
        for (int64_t e = 0; e < c.count; ++e)
          add(c.rows[e], c.single ? static_cast<double>(static_cast<const float*>(c.values)[e])
                                  : static_cast<const double*>(c.values)[e]);
      }
      // Half of the sizes are those of the true classes.
      const bool together = outputs_ > 1 && rows_.loss() != LossKind::ovr_squared_hinge;
      const double total = 0.5 * std::accumulate(size.begin(), size.end(), 0.0);
      for (int k = 0; k < outputs_; ++k) {
        const std::size_t e = f * at(outputs_) + at(k);
        slope_[e] = sum[at(k)];
        size_[e] = together ? total : size[at(k)];
        if (linear_ && j >= 0) slope_[e] -= penalty_.alpha * linear_[int64_t{j} * outputs_ + k];
      }
    }
  }

  bool small(double accuracy, double relative) const {
    for (std::size_t e = 0; e < slope_.size(); ++e)
      if (std::abs(slope_[e]) > std::max(accuracy, relative * size_[e])) return false;
    return true;
  }

  double largest() const {
    double found = 0.0;
    for (const double s : slope_) found = std::max(found, std::abs(s));
    return found;
  }

  // Factorise the Hessian of the present point; without success there is none.
  void factorise() {
    const std::size_t m = weights_.size();
    if (shifts()) {
      curvature_.resize(m * m);
      rows_.shift_curvature(curvature_.data());
      const auto known = [&](std::size_t r, std::size_t c) { return curvature_[r * m + c]; };
      if (!factor_.factorise(m, kRidge, 0.0, known)) factor_.clear();
      return;
    }
    hessian_.restart();
    hessian_.require(weights_, place_);
    const auto entry = [&](std::size_t r, std::size_t c) {
      return hessian_.entry(place_[r], place_[c]);
    };
    if (!factor_.factorise(m, kRidge, 0.0, entry)) factor_.clear();
  }

  bool step() {
    const std::size_t m = weights_.size();
    if (factor_.empty()) return false;
    std::vector<double> s(m);
    for (std::size_t a = 0; a < m; ++a) s[a] = -slope_[a];
    factor_.solve(s.data());
    double slope = 0.0;
    centre_steps(rows_, s);
    for (std::size_t a = 0; a < m; ++a) slope += slope_[a] * s[a];
    if (!(slope < 0.0)) return false;
    return search(s, slope);
  }

  // Whether there is an intercept and nothing else, so that steps shift the scores of all samples alike.
  bool shifts() const {
    return rows_.shifts() && features_.size() == 1 && features_[0] == WeightIndex::kIntercept;
  }

  // Take a step that shifts all scores by a little, if it lowers the loss as it should.
  bool shift(const std::vector<double>& s, double slope) {
    if (!shifts()) return false;
    for (const double x : s)
      if (!(std::abs(x) <= kMostShift)) return false;
    const double before = rows_.value(), after = rows_.shifted(s.data());
    if (!(-slope <= kTiny * before || after <= before + kArmijo * slope)) return false;
    for (std::size_t k = 0; k < s.size(); ++k) point_.b[k] += s[k];
    rows_.take_shift(s.data());
    return true;
  }

  bool search(const std::vector<double>& s, double slope) {
    if (shift(s, slope)) return true;
    rows_.begin_step();
    double linear = 0.0;
    for (std::size_t f = 0; f < features_.size(); ++f) {
      const int32_t j = features_[f];
      std::fill(row_.begin(), row_.end(), 0.0);
      std::copy_n(s.data() + f * at(outputs_), outputs_, row_.data());
      if (j != WeightIndex::kIntercept) {
        add_column(columns_[j], width_, row_.data(), rows_.U.data());
        for (int k = 0; k < outputs_ && linear_; ++k)
          linear += penalty_.alpha * linear_[int64_t{j} * outputs_ + k] * row_[at(k)];
        continue;
      }
      for (int64_t i = 0; i < rows_.n; ++i)
        for (int k = 0; k < outputs_; ++k) rows_.U[at(i * width_ + k)] += row_[at(k)];
    }
    const double before = rows_.value();
    if (-slope <= kTiny * before) return take(s, 1.0);
    for (double t = 1.0; t > kShortest; t *= 0.5)
      if (rows_.value(t) - t * linear <= before + kArmijo * t * slope) return take(s, t);
    return false;
  }

  bool take(const std::vector<double>& s, double t) {
    for (std::size_t f = 0; f < features_.size(); ++f) {
      const int32_t j = features_[f];
      double* w = j == WeightIndex::kIntercept ? point_.b : point_.W + int64_t{j} * outputs_;
      for (int k = 0; k < outputs_; ++k) w[k] += t * s[f * at(outputs_) + at(k)];
    }
    rows_.take_step(t);
    return true;
  }

  SmoothPoint& point_;
  SmoothRows& rows_;
  const ColumnSource& columns_;
  const GroupPenalty& penalty_;
  const double* linear_;
  int width_, outputs_;
  LossHessian hessian_;
  std::vector<int32_t> features_;
  std::vector<WeightIndex> weights_;
  std::vector<int> place_;
  ScaledCholesky factor_;
  std::vector<double> slope_, size_, row_, curvature_;
};

}  // namespace sparsvm
