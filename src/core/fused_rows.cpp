#include "fused_rows.hpp"

#include <algorithm>

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

SPARSVM_CLONED void narrow_blocks(const fused::Pass& all, std::int64_t samples, bool project) {
  project ? blocks<Pack, true>(all, samples) : blocks<Pack, false>(all, samples);
}

#if defined(SPARSVM_WIDE)

SPARSVM_WIDE void wide_blocks(const fused::Pass& all, std::int64_t samples, bool project) {
  project ? blocks<WidePack, true>(all, samples) : blocks<WidePack, false>(all, samples);
}

#endif

bool wide_registers() {
#if defined(SPARSVM_WIDE)
  static const bool wide = has_wide();
  return wide;
#else
  return false;
#endif
}

void some_blocks(const fused::Pass& all, std::int64_t samples, bool project) {
#if defined(SPARSVM_WIDE)
  if (wide_registers()) return wide_blocks(all, samples, project);
#endif
  narrow_blocks(all, samples, project);
}

SPARSVM_CLONED void add_up(const double* lane, const double* base, std::int64_t count,
                           double* out) {
  fused::add_up_lanes(lane, base, count, out);
}

}  // namespace

bool FusedRows::suits(const Design& X, std::int64_t outputs) {
  const std::int64_t weights = X.d() * outputs;
  if (X.d() > most_features && !wide_registers()) return false;
  return !X.sparse() && X.d() > 0 && outputs <= most_outputs && weights <= most_weights &&
         (X.n() >= 2 * X.d() || weights <= few_weights);
}

FusedRows::FusedRows(const Design& X, std::int64_t outputs, const double* mass,
                     const double* margins, const double* own)
    : design_(&X), samples_(X.n()), blocks_((X.n() + lanes - 1) / lanes), features_(X.d()),
      outputs_(outputs),
      // What is gathered in every pass should lie in the second cache.
      at_once_(X.n() * X.d() <= most_entries ? blocks_
                                             : std::max<std::int64_t>(1, 16384 / (lanes * X.d()))),
      X_(at_once_ * lanes * X.d()), lift_(entries()),
      mass_(static_cast<std::size_t>(blocks_ * lanes)), threshold_(mass_.size()),
      share_(mass_.size(), 1.0), own_gradient_(static_cast<std::size_t>(X.d() * outputs)),
      own_sums_(static_cast<std::size_t>(outputs)), moved_((outputs + 1) * lanes),
      partial_(fused::width * X.d() * outputs), totals_(fused::width * outputs),
      weights_((X.d() + 1) * outputs), where_(static_cast<std::size_t>(X.d())) {
  const std::int64_t n = X.n();
  std::copy(mass, mass + n, mass_.begin());
  if (at_once_ == blocks_) gather(0, n);
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

void FusedRows::gather(std::int64_t first, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += lanes) {
    const std::int64_t here = std::min<std::int64_t>(lanes, count - i);
    double* X = X_.data() + i * features_;
    if (here < lanes) std::fill(X, X + lanes * features_, 0.0);
    design_->gather_samples(first + i, here, lanes, X);
  }
}

void FusedRows::run(bool project, std::int64_t active, double* dual, double* gradient,
                    double* sums) {
  const std::int64_t entries = features_ * outputs_;
  std::fill(partial_.data(), partial_.data() + fused::width * entries, 0.0);
  std::fill(totals_.data(), totals_.data() + fused::width * outputs_, 0.0);
  for (std::int64_t first = 0; first < samples_; first += at_once_ * lanes) {
    const std::int64_t count = std::min(at_once_ * lanes, samples_ - first);
    if (at_once_ < blocks_) gather(first, count);
    const std::int64_t entry = first * outputs_;
    some_blocks({features_, outputs_, active, where_.data(), weights_.data(),
                 weights_.data() + features_ * outputs_, X_.data(), lift_.data() + entry,
                 mass_.data() + first, threshold_.data() + first, share_.data() + first,
                 dual + entry, moved_.data(), partial_.data(), totals_.data()},
                count, project);
  }
  add_up(partial_.data(), own_gradient_.data(), entries, gradient);
  add_up(totals_.data(), own_sums_.data(), outputs_, sums);
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
  run(true, active, dual, gradient, sums);
}

void FusedRows::gradient(double* dual, double* gradient, double* sums) {
  run(false, 0, dual, gradient, sums);
}

}  // namespace sparsvm
