#include "fused_rows.hpp"

#include <algorithm>
#include <numeric>

#include "fused_kernels.hpp"

namespace sparsvm {

namespace {

static_assert(FusedRows::lanes == fused::lanes);

/// The pass at the block `at`.
SPARSVM_INLINE fused::Pass at_block(const fused::Pass& all, std::int64_t at) {
  fused::Pass a = all;
  const std::int64_t row = at * fused::lanes;
  a.X += row * all.features;
  a.lift += row * all.outputs, a.dual += row * all.outputs;
  a.mass += row, a.threshold += row, a.share += row;
  return a;
}

template <typename P, bool project>
SPARSVM_INLINE void blocks(const fused::Pass& all, std::int64_t samples) {
  const std::int64_t whole = samples / fused::lanes;
  for (std::int64_t at = 0; at < whole; ++at) fused::block<P, 3, project>(at_block(all, at));
  const std::int64_t left = samples - whole * fused::lanes;
  if (left > 2 * fused::width) {
    fused::block<P, 3, project>(at_block(all, whole));
  } else if (left > fused::width) {
    fused::block<P, 2, project>(at_block(all, whole));
  } else if (left > 0) {
    fused::block<P, 1, project>(at_block(all, whole));
  }
}

SPARSVM_CLONED void step_blocks(const fused::Pass& all, std::int64_t samples) {
  blocks<Pack, true>(all, samples);
}

SPARSVM_CLONED void gradient_blocks(const fused::Pass& all, std::int64_t samples) {
  blocks<Pack, false>(all, samples);
}

#if defined(SPARSVM_WIDE)

SPARSVM_WIDE void wide_step_blocks(const fused::Pass& all, std::int64_t samples) {
  blocks<WidePack, true>(all, samples);
}

#endif

}  // namespace

bool FusedRows::suits(const Design& X, std::int64_t outputs) {
  return !X.sparse() && outputs <= most_outputs && X.d() > 0 && X.d() <= most_features &&
         X.n() * X.d() <= most_entries;
}

FusedRows::FusedRows(const Design& X, std::int64_t outputs, const double* mass,
                     const double* margins, const double* own)
    : samples_(X.n()), blocks_((X.n() + lanes - 1) / lanes), features_(X.d()), outputs_(outputs),
      X_(blocks_ * lanes * X.d()), lift_(entries()),
      mass_(static_cast<std::size_t>(blocks_ * lanes)), threshold_(mass_.size()),
      share_(mass_.size(), 1.0), own_gradient_(static_cast<std::size_t>(X.d() * outputs)),
      own_sums_(static_cast<std::size_t>(outputs)), moved_((outputs + 1) * lanes),
      partial_(fused::width * X.d() * outputs), totals_(fused::width * outputs),
      weights_((X.d() + 1) * outputs), where_(static_cast<std::size_t>(X.d())) {
  const std::int64_t n = X.n(), d = X.d();
  std::copy(mass, mass + n, mass_.begin());
  std::vector<std::int32_t> features(static_cast<std::size_t>(d));
  std::iota(features.begin(), features.end(), 0);
  Workspace columns(n * d);
  X.gather_columns(features.data(), d, columns.data());
  std::fill(X_.data(), X_.data() + blocks_ * lanes * d, 0.0);
  for (std::int64_t j = 0; j < d; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      X_.data()[(i / lanes * d + j) * lanes + i % lanes] = columns.data()[j * n + i];
    }
  }
  // A row without mass beyond the last sample has one entry that counts, whose projection is 0.
  std::vector<double> dual(static_cast<std::size_t>(entries()));
  for (std::int64_t i = 0; i < blocks_ * lanes; ++i) {
    for (std::int64_t k = 0; k < outputs; ++k) {
      const double beyond = k == 0 ? 0.0 : -1e200;
      lift_.data()[at(i, k)] = i < n ? margins[i * outputs + k] : beyond;
      if (i < n) dual[static_cast<std::size_t>(at(i, k))] = own[i * outputs + k];
    }
  }
  std::vector<double> all(own_gradient_.size()), sums(own_sums_.size());
  gradient(dual.data(), all.data(), sums.data());
  own_gradient_ = all;
  own_sums_ = sums;
}

template <bool project>
void FusedRows::run(std::int64_t active, double* dual, double* gradient, double* sums) {
  const std::int64_t entries = features_ * outputs_;
  std::fill(partial_.data(), partial_.data() + fused::width * entries, 0.0);
  std::fill(totals_.data(), totals_.data() + fused::width * outputs_, 0.0);
  const fused::Pass all{features_,         outputs_,        active,
                        where_.data(),     weights_.data(), weights_.data() + features_ * outputs_,
                        X_.data(),         lift_.data(),    mass_.data(),
                        threshold_.data(), share_.data(),   dual,
                        moved_.data(),     partial_.data(), totals_.data()};
  if constexpr (project) {
#if defined(SPARSVM_WIDE)
    static const bool wide = has_wide();
    wide ? wide_step_blocks(all, samples_) : step_blocks(all, samples_);
#else
    step_blocks(all, samples_);
#endif
  } else {
    gradient_blocks(all, samples_);
  }
  const auto sum_of_eight = [](const double* v) {
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
  };
  for (std::int64_t e = 0; e < entries; ++e) {
    gradient[e] = sum_of_eight(partial_.data() + fused::width * e) - own_gradient_[e];
  }
  for (std::int64_t k = 0; k < outputs_; ++k) {
    sums[k] = sum_of_eight(totals_.data() + fused::width * k) - own_sums_[k];
  }
}

void FusedRows::step(const double* weights, const double* intercept, double factor, double* dual,
                     double* gradient, double* sums) {
  std::int64_t active = 0;
  for (std::int64_t j = 0; j < features_; ++j) {
    const double* w = weights + j * outputs_;
    double* to = weights_.data() + active * outputs_;
    bool used = false;
    for (std::int64_t k = 0; k < outputs_; ++k) {
      used |= w[k] != 0.0;
      to[k] = factor * w[k];
    }
    where_[static_cast<std::size_t>(active)] = j * lanes;
    active += used;
  }
  double* b = weights_.data() + features_ * outputs_;
  for (std::int64_t k = 0; k < outputs_; ++k) b[k] = factor * intercept[k];
  run<true>(active, dual, gradient, sums);
}

void FusedRows::gradient(double* dual, double* gradient, double* sums) {
  run<false>(0, dual, gradient, sums);
}

}  // namespace sparsvm
