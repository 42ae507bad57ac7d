// The samples' state of a smooth problem: see block_newton_rows.hpp for what the rows hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "loss/smooth_row_calls.hpp"

namespace sparsvm {

class SmoothRows {
 public:
  SmoothRows(const LossRows& loss, std::int64_t samples)
      : n(samples), K(static_cast<int>(loss.classes)), outputs(static_cast<int>(loss.outputs())),
        width(outputs == 1 ? 1 : (outputs + 3) / 4 * 4),
        stride(outputs == 1 ? 1 : (outputs + 7) / 8 * 8), loss_(loss.kind), y_(loss.y),
        mass_(loss.mass), cost_(loss.cost), margin_scale_(loss.margin_scale),
        row_(static_cast<std::size_t>(width)) {
    const auto cells = static_cast<std::size_t>(n) * static_cast<std::size_t>(width);
    T.resize(cells);
    D.assign(cells, 0.0);
    U.resize(cells);
    C.assign(static_cast<std::size_t>(n) * static_cast<std::size_t>(stride), 0.0F);
    if (loss_ == LossKind::logistic && outputs > 1) Q.assign(C.size(), 0.0F);
    if (outputs == 1) {
      margin_.resize(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) margin_[at(i)] = margin(i, 1 - y_[i]);
    }
    data_ = {loss_, width, y_, mass_, margin_.data()};
  }
  SmoothRows(const SmoothRows&) = delete;
  SmoothRows& operator=(const SmoothRows&) = delete;

  const std::int64_t n;
  const int K, outputs, width, stride;
  std::vector<double> T, D, U;  // U: a direction of the scores
  std::vector<float> C, Q;
  std::vector<std::int32_t> active;  // samples with curvature, as of refresh_curvature

  LossKind loss() const { return loss_; }
  const RowData& data() const { return data_; }

  /// T at weights zero and intercept b.
  void set_intercept(const double* b) {
    for (std::int64_t i = 0; i < n; ++i) {
      double* t = T.data() + i * width;
      std::fill(t, t + width, -1e300);  // the padding never has a slope
      for (int k = 0; k < outputs; ++k) {
        const bool shifted = outputs > 1 && loss_ != LossKind::ovr_squared_hinge;
        t[k] = b[k] + (shifted ? margin(i, k) : 0.0);
      }
    }
  }

  void refresh_slopes() { all_slopes(data_, n, T.data(), D.data()); }

  void move(const ColumnView& column, const double* step, double* gradient) {
    switch (loss_) {
      case LossKind::squared_hinge:
        return move_squared(data_, column, step, T.data(), D.data(), gradient);
      case LossKind::logistic:
        return move_logistic(data_, column, step, T.data(), D.data(), gradient);
      default: return move_one_vs_rest(data_, column, step, T.data(), D.data(), gradient);
    }
  }

  /// The mean loss at T + t U, or at T.
  double value(double t) { return mean_loss(data_, n, T.data(), U.data(), t, row_.data()); }
  double value() { return mean_loss(data_, n, T.data(), nullptr, 0.0, row_.data()); }

  void take_step(double t) {
    // The padding of U is zero, so that of T stays.
    for (std::size_t e = 0; e < T.size(); ++e) T[e] += t * U[e];
    refresh_slopes();
  }

  void refresh_curvature() {
    active.clear();
    for (std::int64_t i = 0; i < n; ++i) {
      const double* d = D.data() + i * width;
      float* c = C.data() + i * stride;
      const double p = mass_[i];
      double total = 0.0;
      if (loss_ == LossKind::logistic) {
        for (int k = 0; k < outputs; ++k) {
          const bool own = outputs > 1 && k == y_[i];
          const double q = own ? 1.0 + d[k] / p : std::fabs(d[k]) / p;
          if (outputs > 1) Q[at(i * stride + k)] = static_cast<float>(q);
          c[k] = static_cast<float>(p * q * (own ? -d[k] / p : 1.0 - q));
          total += c[k];
        }
      } else {
        for (int k = 0; k < outputs; ++k) {
          c[k] = static_cast<float>(d[k] != 0.0 ? 2.0 * p : 0.0);
          total += c[k];
        }
        // The true class takes part in every active pair.
        if (outputs > 1 && loss_ == LossKind::squared_hinge && total > 0.0) {
          c[y_[i]] = static_cast<float>(total - static_cast<double>(c[y_[i]]));
        }
      }
      if (total > 0.0) active.push_back(static_cast<std::int32_t>(i));
    }
  }

  /// The loss part of the dual value at c times the slopes is c * gain - c^2 * square for the
  /// squared losses; for the logistic one it is c * gain + entropy(c).
  double dual_gain() const {
    double gain = 0.0;
    for_each_flow([&](std::int64_t i, int k, double flow) {
      gain += flow * (loss_ == LossKind::ovr_squared_hinge && outputs > 1 ? 1.0 : margin(i, k));
    });
    return gain;
  }
  double dual_square() const {
    double square = 0.0;
    for_each_flow(
        [&](std::int64_t i, int, double flow) { square += flow * flow / (4.0 * mass_[i]); });
    return square;
  }
  double dual_entropy(double c) const {
    double total = 0.0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double* d = D.data() + i * width;
      double off = 0.0, sum = 0.0;
      for (int k = 0; k < outputs; ++k) {
        if (outputs > 1 && k == y_[i]) continue;
        const double q = c * std::fabs(d[k]) / mass_[i];
        off += q;
        if (q > 0.0) sum -= q * std::log(q);
      }
      if (off < 1.0) sum -= (1.0 - off) * std::log1p(-off);
      total += mass_[i] * sum;
    }
    return total;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  double margin(std::int64_t i, int k) const {
    if (loss_ == LossKind::ovr_squared_hinge) return 1.0;
    return cost_[y_[i] * K + k] * (margin_scale_ ? margin_scale_[i] : 1.0);
  }

  /// visit(sample, class, flow): flows are the sizes of the slopes off the true class, for the
  /// one-vs-rest loss on all classes.
  template <typename Visit>
  void for_each_flow(Visit visit) const {
    for (std::int64_t i = 0; i < n; ++i) {
      const double* d = D.data() + i * width;
      for (int k = 0; k < outputs; ++k) {
        if (outputs > 1 && loss_ != LossKind::ovr_squared_hinge && k == y_[i]) continue;
        visit(i, outputs == 1 ? 1 - y_[i] : k, std::fabs(d[k]));
      }
    }
  }

  LossKind loss_;
  const std::int32_t* y_;
  const double* mass_;
  const double* cost_;
  const double* margin_scale_;
  std::vector<double> margin_, row_;
  RowData data_{};
};

}  // namespace sparsvm
