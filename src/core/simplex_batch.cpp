#include "simplex_batch.hpp"

#include "simplex_root.hpp"

namespace sparsvm {

SimplexBatch::SimplexBatch(std::int64_t entries) : entries_(entries) {
  if (entries <= longest) block_.resize(static_cast<std::size_t>(entries * lanes));
}

SPARSVM_CLONED void SimplexBatch::locate() {
  double* block = block_.data();
  for (int l = 0; l < lanes; ++l) top_[l] = block[l];
  for (std::int64_t e = lanes; e < entries_ * lanes; e += lanes) {
    for (int l = 0; l < lanes; ++l) top_[l] = block[e + l] > top_[l] ? block[e + l] : top_[l];
  }
  for (std::int64_t e = 0; e < entries_ * lanes; e += lanes) {
    for (int l = 0; l < lanes; ++l) block[e + l] -= top_[l];
  }
  for (int l = 0; l < lanes; l += 8) {
    simplex_roots<2>(block + l, lanes, static_cast<int>(entries_), mass_ + l, theta_ + l);
  }
}

SPARSVM_CLONED void SimplexBatch::project() {
  locate();
  double* block = block_.data();
  for (std::int64_t e = 0; e < entries_ * lanes; e += lanes) {
    for (int l = 0; l < lanes; ++l) {
      const double excess = block[e + l] - theta_[l];
      block[e + l] = excess < 0.0 ? 0.0 : excess;
    }
  }
}

}  // namespace sparsvm
