#include "simplex_batch.hpp"

#include "simplex_root.hpp"

namespace sparsvm {

SimplexBatch::SimplexBatch(std::int64_t entries) : entries_(entries) {
  if (entries <= longest) block_.resize(static_cast<std::size_t>(entries * lanes));
}

namespace {

/// The same for rows of K entries, sorted in registers, four rows at a time.
template <int K>
SPARSVM_INLINE void locate_sorted(double* block, int rows, const double* mass, double* top,
                                  double* theta) {
  constexpr int lanes = SimplexBatch::lanes;
  for (int l = 0; l < rows; l += 4) {
    Pack v[K], root;
    for (int k = 0; k < K; ++k) v[k] = SPARSVM_LOAD(block + k * lanes + l);
    simplex_root<K>(v, SPARSVM_LOAD(mass + l), root);
    SPARSVM_STORE(top + l, v[0]);
    SPARSVM_STORE(theta + l, root);
    for (int k = 0; k < K; ++k) {
      SPARSVM_STORE(block + k * lanes + l, SPARSVM_LOAD(block + k * lanes + l) - v[0]);
    }
  }
}

}  // namespace

SPARSVM_CLONED void SimplexBatch::locate(int rows) {
  double* block = block_.data();
  switch (entries_) {
    case 2: return locate_sorted<2>(block, rows, mass_, top_, theta_);
    case 3: return locate_sorted<3>(block, rows, mass_, top_, theta_);
    case 4: return locate_sorted<4>(block, rows, mass_, top_, theta_);
    case 5: return locate_sorted<5>(block, rows, mass_, top_, theta_);
    case 6: return locate_sorted<6>(block, rows, mass_, top_, theta_);
    default: break;
  }
  for (int l = 0; l < lanes; ++l) top_[l] = block[l];
  for (std::int64_t e = lanes; e < entries_ * lanes; e += lanes) {
    for (int l = 0; l < lanes; ++l) top_[l] = block[e + l] > top_[l] ? block[e + l] : top_[l];
  }
  for (std::int64_t e = 0; e < entries_ * lanes; e += lanes) {
    for (int l = 0; l < lanes; ++l) block[e + l] -= top_[l];
  }
  for (int l = 0; l < rows; l += 8) {
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
