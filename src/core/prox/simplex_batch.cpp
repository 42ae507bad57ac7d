#include "prox/simplex_batch.hpp"

#include "prox/prox.hpp"
#include "prox/simplex_root.hpp"

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
  for (int l = 0; l < lanes; ++l) theta_[l] = -mass_[l];
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

namespace {

SPARSVM_INLINE void make_positive(Pack& v) {
  const Pack given = v;
  v = Pack{} - given;
  keep_larger(v, given);
}

/// Magnitudes of four rows into four lanes of the block; `top` gets the largest of each.
SPARSVM_INLINE void lay_magnitudes(double* const* rows, std::int64_t entries, double* block,
                                   Pack& top) {
  constexpr int lanes = SimplexBatch::lanes;
  top = Pack{};
  if (entries < 4) {
    for (std::int64_t k = 0; k < entries; ++k) {
      Pack v = {rows[0][k], rows[1][k], rows[2][k], rows[3][k]};
      make_positive(v);
      keep_larger(top, v);
      SPARSVM_STORE(block + k * lanes, v);
    }
    return;
  }
  for (std::int64_t from = 0; from < entries; from += 4) {
    const std::int64_t k = from + 4 <= entries ? from : entries - 4;  // some of them twice
    Pack v[4];
    for (int i = 0; i < 4; ++i) v[i] = SPARSVM_LOAD(rows[i] + k);
    transpose(v);
    for (int i = 0; i < 4; ++i) {
      make_positive(v[i]);
      keep_larger(top, v[i]);
      SPARSVM_STORE(block + (k + i) * lanes, v[i]);
    }
  }
}

/// Levels of four rows of K entries, by sorting them.
template <int K>
SPARSVM_INLINE void sorted_levels(const double* block, const double* mass, double* level) {
  Pack v[K], root;
  for (int k = 0; k < K; ++k) v[k] = SPARSVM_LOAD(block + k * SimplexBatch::lanes);
  simplex_root<K>(v, SPARSVM_LOAD(mass), root);
  SPARSVM_STORE(level, v[0] + root);
}

}  // namespace

SPARSVM_CLONED void SimplexBatch::clip(double* const* rows, const double* sums, int count) {
  double* block = block_.data();
  const double share = 1.0 / static_cast<double>(entries_);
  for (int l = 0; l < count; l += 4) {
    double* four[4];
    for (int i = 0; i < 4; ++i) four[i] = rows[l + i < count ? l + i : l];
    Pack top;
    lay_magnitudes(four, entries_, block + l, top);
    const Pack mass = SPARSVM_LOAD(mass_ + l);
    switch (entries_) {
      case 2: sorted_levels<2>(block + l, mass_ + l, theta_ + l); continue;
      case 3: sorted_levels<3>(block + l, mass_ + l, theta_ + l); continue;
      case 4: sorted_levels<4>(block + l, mass_ + l, theta_ + l); continue;
      case 5: sorted_levels<5>(block + l, mass_ + l, theta_ + l); continue;
      case 6: sorted_levels<6>(block + l, mass_ + l, theta_ + l); continue;
      default: break;
    }
    // The level that all entries would have, or the largest alone: neither is above the true one.
    Pack start = {sums[l], sums[l + 1], sums[l + 2], sums[l + 3]};
    start = (start - mass) * share;
    keep_larger(start, top - mass);
    SPARSVM_STORE(theta_ + l, start);
  }
  if (entries_ > 6) {
    for (int l = 0; l < count; l += 8) {
      simplex_roots<2>(block + l, lanes, static_cast<int>(entries_), mass_ + l, theta_ + l);
    }
  }
  for (int l = 0; l < count; ++l) {
    double* v = rows[l];
    const double level = theta_[l] > 0.0 ? theta_[l] : 0.0;
    for (std::int64_t k = 0; k < entries_; ++k) v[k] = clipped(v[k], level) + 0.0;
  }
}

}  // namespace sparsvm
