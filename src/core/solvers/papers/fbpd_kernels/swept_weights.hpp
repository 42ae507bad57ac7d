// The weights of one sweep over compressed rows: all of them, or those of the active features.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "design/design.hpp"
#include "solvers/papers/fbpd_kernels/dual_rows.hpp"
#include "solvers/papers/fbpd_kernels/resting_units.hpp"

namespace sparsvm {

class SweptWeights {
 public:
  /// Beyond so many weights they and the gradient push each other out of the caches, and each better
  /// has its own pass: 11314 x 56436 with 79 entries per row took 5.9 ms an iteration in one pass and
  /// 7.0 in two with eight classes, 8.4 and 7.5 with ten, 40 and 33 with 26.
  static constexpr int64_t most_weights = 1 << 19;

  static bool suits(const Design& X, int64_t outputs) {
    return X.layout() == Layout::csr && X.d() * outputs <= most_weights && sweeps(outputs);
  }

  SweptWeights(const Design& X, int64_t outputs)
      : rows_(X.stored_rows()), features_(X.d()), outputs_(outputs),
        reference_(static_cast<std::size_t>((X.d() + 1) * outputs)),
        allowed_(static_cast<std::size_t>(X.n()), -1.0), tolerance_(allowed_.size()),
        room_(swept_rows_room(X.d(), outputs)) {
    for (int64_t i = 0; i < X.n(); ++i) {
      const int64_t r = rows_.rows(i);
      double square = 1.0;
      for (int64_t e = rows_.indptr[r]; e < rows_.indptr[r + 1]; ++e) {
        const double x = rows_.singles ? static_cast<double>(rows_.singles[e]) : rows_.doubles[e];
        square += x * x;
      }
      tolerance_[static_cast<std::size_t>(i)] = tolerance_per_slack(square);
    }
  }

  /// No sample is known to be at rest.
  void wake() { std::fill(allowed_.begin(), allowed_.end(), -1.0); }

  /// What is at rest with these weights, for their sweep; σ is that of DualRows.
  RestingRows resting(const Affine& now, double sigma) {
    distance_ = sigma * farthest_class(now, reference_.data());
    return {distance_, allowed_.data(), tolerance_.data(), &looked_};
  }

  /// After the sweep with them: refer to them if many samples had to be looked at.
  void end_sweep(const Affine& now) {
    if (8 * looked_ <= static_cast<int64_t>(allowed_.size())) return;
    now.copy_to(reference_);
    for (double& distance : allowed_) distance = std::max(distance - distance_, -1.0);
  }

  /// The sweep with W (d x K). As in Design::scores, one place per entry is read instead of K weights
  /// where most are zero.
  SweptRows with(const double* weights, double* gradient) {
    int64_t active = 0;
    place_.resize(static_cast<std::size_t>(features_));
    for (int64_t j = 0; j < features_; ++j) {
      const double *w = weights + j * outputs_, *end = w + outputs_;
      const bool used = std::any_of(w, end, [](double value) { return value != 0.0; });
      place_[static_cast<std::size_t>(j)] = used ? static_cast<int32_t>(active) : -1;
      active += used;
      if (4 * active > features_) {
        return {rows_, features_, weights, nullptr, gradient, features_, room_.data()};
      }
    }
    packed_.resize(static_cast<std::size_t>(active * outputs_));
    for (int64_t j = 0; j < features_; ++j) {
      const int32_t at = place_[static_cast<std::size_t>(j)];
      if (at < 0) continue;
      std::copy_n(weights + j * outputs_, outputs_, packed_.data() + at * outputs_);
    }
    return {rows_, features_, packed_.data(), place_.data(), gradient, active, room_.data()};
  }

 private:
  StoredRows rows_;
  int64_t features_, outputs_;
  std::vector<double> packed_, reference_;
  std::vector<double> allowed_, tolerance_;  // see RestingRows
  std::vector<int32_t> place_;
  Workspace room_;
  double distance_ = 0.0;
  int64_t looked_ = 0;
};

}  // namespace sparsvm
