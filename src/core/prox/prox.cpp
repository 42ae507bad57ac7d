#include "prox/prox.hpp"

#include <algorithm>

#include "support/simd.hpp"

namespace sparsvm {

namespace {

// theta with Σ_k (z_k − theta)₊ = mass for any number of entries z_k, which are `stride` apart and
// stay as they are, of 4·vectors rows. At first theta must hold values that are not larger.
//
// Entries below those are out; the root of those that are left, (Σz − mass)/count, puts more of
// them out, until it does not: after as many rounds as there are entries, mostly after three.
// What a row gets does not depend on its neighbours, for a root that puts none out stays the same.
template <int vectors>
SPARSVM_INLINE void simplex_roots(const double* z, int64_t stride, int64_t entries,
                                  const double* mass, double* theta) {
  Simd root[vectors], known[vectors] = {};
  for (int p = 0; p < vectors; ++p) root[p] = SPARSVM_LOAD(theta + 4 * p);
  for (int64_t round = 0; round <= entries; ++round) {
    Simd sum[vectors], count[vectors] = {};
    for (int p = 0; p < vectors; ++p) sum[p] = Simd{} - SPARSVM_LOAD(mass + 4 * p);
    for (int64_t k = 0; k < entries; ++k) {
      for (int p = 0; p < vectors; ++p) {
        add_above(SPARSVM_LOAD(z + k * stride + 4 * p), root[p], sum[p], count[p]);
      }
    }
    bool settled = true;
    for (int p = 0; p < vectors; ++p) {
      for (int l = 0; l < 4; ++l) settled &= count[p][l] == known[p][l];
      known[p] = count[p];
      keep_larger(count[p], Simd{} + 1.0);  // without mass nothing is above the root
      root[p] = sum[p] / count[p];
    }
    if (settled) break;
  }
  for (int p = 0; p < vectors; ++p) SPARSVM_STORE(theta + 4 * p, root[p]);
}

}  // namespace

SimplexBatch::SimplexBatch(int64_t entries) : entries_(entries) {
  if (entries <= kLongest) block_.resize(static_cast<std::size_t>(entries * kLanes));
}

SPARSVM_DISPATCH void SimplexBatch::project() {
  double *block = block_.data(), top[kLanes], theta[kLanes];
  if (entries_ == 0) return;
  for (int l = 0; l < kLanes; ++l) top[l] = block[l];
  for (int64_t e = kLanes; e < entries_ * kLanes; e += kLanes) {
    for (int l = 0; l < kLanes; ++l) top[l] = block[e + l] > top[l] ? block[e + l] : top[l];
  }
  for (int64_t e = 0; e < entries_ * kLanes; e += kLanes) {
    for (int l = 0; l < kLanes; ++l) block[e + l] -= top[l];
  }
  for (int l = 0; l < kLanes; ++l) theta[l] = -mass_[l];
  for (int l = 0; l < kLanes; l += 8) {
    simplex_roots<2>(block + l, kLanes, entries_, mass_ + l, theta + l);
  }
  for (int64_t e = 0; e < entries_ * kLanes; e += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const double excess = block[e + l] - theta[l];
      block[e + l] = excess < 0.0 ? 0.0 : excess;
    }
  }
}

void project_simplex_rows(const double* Y, const double* mass, int64_t n, int64_t entries,
                          double* out) {
  constexpr int kLanes = SimplexBatch::kLanes;
  SimplexBatch batch(entries);
  ProxScratch work;
  work.reserve(entries);
  int64_t i = 0;
  for (; entries <= SimplexBatch::kLongest && i + kLanes <= n; i += kLanes) {
    std::copy(mass + i, mass + i + kLanes, batch.mass());
    for (int64_t e = 0; e < kLanes * entries; ++e) {
      batch.block()[e % entries * kLanes + e / entries] = Y[i * entries + e];
    }
    batch.project();
    for (int64_t e = 0; e < kLanes * entries; ++e) {
      out[i * entries + e] = batch.block()[e % entries * kLanes + e / entries];
    }
  }
  for (; i < n; ++i) project_simplex(Y + i * entries, entries, mass[i], out + i * entries, work);
}

}  // namespace sparsvm
