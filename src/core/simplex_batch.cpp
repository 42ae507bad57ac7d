#include "simplex_batch.hpp"

#include "sorting_network.hpp"
#include "clones.hpp"

namespace sparsvm {

SimplexBatch::SimplexBatch(std::int64_t entries) : entries_(entries) {
  if (entries > longest) return;
  block_.resize(size(entries * lanes));
  sorted_.resize(size(entries * lanes));
  for_each_comparison(static_cast<int>(entries),
                      [&](int above, int below) { network_.emplace_back(above, below); });
}

/// theta = max_j (z_(1) + … + z_(j) − mass)/j over the entries z = y − top in descending order.
SPARSVM_CLONED void SimplexBatch::locate() {
  sorted_ = block_;
  for (const auto& [above, below] : network_) {
    double* upper = sorted_.data() + above * lanes;
    double* lower = sorted_.data() + below * lanes;
    for (int l = 0; l < lanes; ++l) {
      const double a = upper[l], b = lower[l];
      upper[l] = a > b ? a : b;
      lower[l] = a < b ? a : b;
    }
  }
  double sum[lanes];
  for (int l = 0; l < lanes; ++l) {
    top_[l] = sorted_[size(l)];
    sum[l] = -mass_[l];
    theta_[l] = -mass_[l];
  }
  for (std::int64_t j = 1; j < entries_; ++j) {
    const double* sorted = entry(sorted_, j);
    const double share = 1.0 / static_cast<double>(j + 1);
    for (int l = 0; l < lanes; ++l) {
      sum[l] += sorted[l] - top_[l];
      const double candidate = share * sum[l];
      theta_[l] = candidate > theta_[l] ? candidate : theta_[l];
    }
  }
  for (std::int64_t k = 0; k < entries_; ++k) {
    double* y = entry(block_, k);
    for (int l = 0; l < lanes; ++l) y[l] -= top_[l];
  }
}

SPARSVM_CLONED void SimplexBatch::project() {
  locate();
  for (std::int64_t k = 0; k < entries_; ++k) {
    double* z = entry(block_, k);
    for (int l = 0; l < lanes; ++l) {
      const double excess = z[l] - theta_[l];
      z[l] = excess < 0.0 ? 0.0 : excess;
    }
  }
}

}  // namespace sparsvm
