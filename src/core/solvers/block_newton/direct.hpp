// The Newton system of newton_step.hpp, formed and factorised in double precision.
//
// Conjugate gradients on a Hessian in single precision see no directions a million times flatter
// than others. Columns with means far above their spread make such directions, and so do samples
// that are nearly separated. Where the active coefficients are few, the matrix costs less than the
// iterations would.
//
// Every sample adds a few rows to a matrix B with Hessian B'B: for differences of scores one per
// active pair (k, y), sqrt(2p) (e_k - e_y); for the logistic loss with probabilities q one per class,
// sqrt(p q_k) (e_k - q); for one output or classes on their own, the root of the curvature. Tied
// coordinates are one variable.
//
// Where the penalty has kinks, exact steps go from kink to kink: on raw measurements l1 stalled so at
// every alpha. A multiple of the diagonal, which falls as long as whole steps succeed, keeps them
// as short as they need to be.
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
#include "solvers/block_newton/preconditioner.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

class DirectSystem {
 public:
  DirectSystem(const SmoothRows& rows, const ColumnSource& columns, GroupPenalty& penalty,
               Monitor& monitor)
      : rows_(rows), columns_(columns), penalty_(penalty), monitor_(monitor) {}

  // Whether the matrix is small and costs less than this many products with the Hessian. To be asked after rows.refresh_curvature().
  bool pays(const SmoothNewtonSystem& system, int products) {
    const auto free = static_cast<double>(std::count_if(
        system.mark.begin(), system.mark.end(), [](auto m) { return m != GroupPenalty::fixed; }));
    if (free > Settings::kLargest || free == 0.0) return false;
    const double matrix = work(free);
    const double product = Settings::kOperations * static_cast<double>(system.X.features.size()) *
                           std::max(rows_.stride, 8);
    return matrix <= std::max(Settings::kCheapMatrix, products * product);
  }

  // Steps that met no kink too early may be longer next time.
  void adapt(bool full) {
    damping_ = full ? damping_ / Settings::kLonger
                    : std::clamp(Settings::kShorter * damping_, Settings::kLeastDamping, 1.0);
  }

  // The step for right-hand side r; false where the matrix cannot be factorised.
  bool solve(const SmoothNewtonSystem& system, const std::vector<double>& ring,
             const std::vector<double>& r, std::vector<double>& step) {
    number(system);
    load(system);
    const std::size_t m = at(count_);
    monitor_.spend(work(static_cast<double>(count_)));
    matrix_.assign(m * m, 0.0);
    add_loss(system);
    add_penalty(system, ring);
    right_.assign(m, 0.0);
    for (std::size_t e = 0; e < r.size(); ++e)
      if (variable_[e] >= 0) right_[at(variable_[e])] += factor_[e] * r[e];
    const double damping = penalty_.selects() ? damping_ : 0.0;
    const auto entry = [&](std::size_t a, std::size_t b) { return matrix_[b * m + a]; };
    if (!cholesky_.factorise(m, Settings::kDirectRidge, damping, entry)) return false;
    cholesky_.solve(right_.data());
    step.assign(r.size(), 0.0);
    for (std::size_t e = 0; e < r.size(); ++e)
      if (variable_[e] >= 0) step[e] = factor_[e] * right_[at(variable_[e])];
    return true;
  }

 private:
  using Settings = BlockNewtonSettings;

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

  bool differences() const { return rows_.outputs > 1 && rows_.loss() == LossKind::squared_hinge; }
  bool probabilities() const { return rows_.outputs > 1 && rows_.loss() == LossKind::logistic; }

  // Multiplications to form and factorise the matrix.
  double work(double size) const {
    return static_cast<double>(rows_added()) * size * size + size * size * size / 3.0;
  }

  int64_t rows_added() const {
    int64_t added = 0;
    for (const int32_t i : rows_.active)
      for (int k = 0; k < rows_.outputs; ++k)
        added += rows_.D[at(int64_t{i} * rows_.width + k)] != 0.0;
    return added;
  }

  // Which variable each coordinate belongs to, and how far it moves with it.
  void number(const SmoothNewtonSystem& system) {
    variable_.assign(system.w.size(), -1);
    factor_.assign(system.w.size(), 1.0);
    count_ = 0;
    for (std::size_t e = 0; e < system.w.size(); ++e)
      if (system.mark[e] == GroupPenalty::loose) variable_[e] = count_++;
    for (std::size_t u = 0; u < system.groups.size() && penalty_.ties(); ++u) {
      const std::size_t o = at(system.starts[u] * rows_.width);
      count_ = penalty_.number_ties(system.groups[u], &system.w[o], &system.mark[o], count_,
                                    &variable_[o], &factor_[o]);
    }
  }

  // The active features, one column of n each, and ones for the intercept.
  void load(const SmoothNewtonSystem& system) {
    const std::size_t n = at(rows_.n);
    X_.assign(at(system.rows()) * n, 0.0);
    for (std::size_t f = 0; f < system.features.size(); ++f) {
      const ColumnView c = columns_[system.features[f]];
      for (int64_t e = 0; e < c.count; ++e)
        X_[f * n + at(c.rows[e])] = c.single ? static_cast<const float*>(c.values)[e]
                                             : static_cast<const double*>(c.values)[e];
    }
    if (system.intercept) std::fill_n(X_.end() - static_cast<std::ptrdiff_t>(n), n, 1.0);
  }

  void add_loss(const SmoothNewtonSystem& system) {
    const int outputs = rows_.outputs;
    batch_.resize(at(count_) * at(Settings::kBatch));
    filled_ = 0;
    std::vector<double> along(at(outputs));
    for (const int32_t i : rows_.active) {
      const double* d = rows_.D.data() + int64_t{i} * rows_.width;
      const double p = rows_.data().mass[i];
      const int y = rows_.data().y[i];
      for (int k = 0; k < outputs; ++k) {
        std::fill(along.begin(), along.end(), 0.0);
        double weight = 0.0;
        if (probabilities()) {
          for (int l = 0; l < outputs; ++l) along[at(l)] = l == y ? -1.0 - d[l] / p : -d[l] / p;
          weight = -p * along[at(k)];
          along[at(k)] += 1.0;
        } else if (rows_.loss() == LossKind::logistic) {
          const double q = std::abs(d[k]) / p;
          along[at(k)] = 1.0;
          weight = p * q * (1.0 - q);
        } else if (d[k] != 0.0 && !(differences() && k == y)) {
          along[at(k)] = 1.0;
          if (differences()) along[at(y)] = -1.0;
          weight = 2.0 * p;
        }
        if (weight > 0.0) add_row(system, i, std::sqrt(weight), along);
      }
    }
    multiply();
  }

  void add_row(const SmoothNewtonSystem& system, int64_t i, double weight,
               const std::vector<double>& along) {
    double* row = batch_.data() + at(filled_) * at(count_);
    std::fill(row, row + count_, 0.0);
    for (int64_t f = 0; f < system.rows(); ++f) {
      const double x = weight * X_[at(f * rows_.n + i)];
      if (x == 0.0) continue;
      for (int k = 0; k < rows_.outputs; ++k) {
        const std::size_t e = at(f * rows_.width + k);
        if (variable_[e] >= 0) row[variable_[e]] += factor_[e] * x * along[at(k)];
      }
    }
    if (++filled_ == Settings::kBatch) multiply();
  }

  void multiply() {
    monitor_.poll();
    syrk('L', 'N', count_, static_cast<int>(filled_), 1.0, batch_.data(), count_, 1.0,
         matrix_.data(), count_);
    filled_ = 0;
  }

  void add_penalty(const SmoothNewtonSystem& system, const std::vector<double>& ring) {
    const std::size_t m = at(count_);
    for (std::size_t e = 0; e < system.w.size(); ++e)
      if (variable_[e] >= 0) matrix_[at(variable_[e]) * (m + 1)] += system.straight[e];
    if (!penalty_.bends()) return;
    const std::size_t width = at(rows_.width);
    for (std::size_t u = 0; u < system.groups.size(); ++u) {
      const std::size_t from = at(system.starts[u]) * width;
      const std::size_t to = from + at(penalty_.size(system.groups[u])) * width;
      for (std::size_t e = from; e < to; ++e)
        for (std::size_t f = from; f < to; ++f) {
          const bool together = penalty_.joint() || (e - f) % width == 0;
          if (together && variable_[e] >= variable_[f] && variable_[f] >= 0)
            matrix_[at(variable_[f]) * m + at(variable_[e])] -= ring[e] * ring[f];
        }
    }
  }

  const SmoothRows& rows_;
  const ColumnSource& columns_;
  GroupPenalty& penalty_;
  Monitor& monitor_;
  int count_ = 0;
  double damping_ = Settings::kFirstDamping;
  int64_t filled_ = 0;
  std::vector<int> variable_;  // per coordinate, -1: does not move
  ScaledCholesky cholesky_;
  std::vector<double> factor_, X_, batch_, matrix_, right_;
};

}  // namespace sparsvm
