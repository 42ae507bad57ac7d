#include "penalty/penalty_prox.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

namespace sparsvm {

PenaltyProx::PenaltyProx(const Penalty& penalty)
    : term_(penalty), d_(penalty.d), outputs_(penalty.outputs), per_class_(penalty.per_class),
      omega_(penalty.omega, penalty.omega + penalty.d) {
  for (double o : omega_) {
    if (!(o >= 0.0)) throw std::invalid_argument("omega must be >= 0 and not NaN.");
  }
  order_.resize(static_cast<std::size_t>(d_));
  std::iota(order_.begin(), order_.end(), 0);
  int64_t widest = 1;
  if (penalty.grouped()) {
    sort_features(penalty.groups, penalty.n_groups);  // which checks them
    term_ = penalty.simplified();
    for (int64_t g = 0; g < penalty.n_groups; ++g)
      widest = std::max(widest, first_[g + 1] - first_[g]);
    by_feature_ = widest == 1;
    if (by_feature_) std::iota(order_.begin(), order_.end(), 0);
  }
  const int64_t entries = widest * (per_class_ ? 1 : outputs_);
  work_.reserve(entries);
  gathered_.resize(static_cast<std::size_t>(entries));
  gathered_omega_.resize(static_cast<std::size_t>(entries));
}

void PenaltyProx::sort_features(const int32_t* groups, int64_t n_groups) {
  first_.assign(static_cast<std::size_t>(n_groups) + 1, 0);
  for (int64_t j = 0; j < d_; ++j) {
    if (groups[j] < 0 || groups[j] >= n_groups) {
      throw std::invalid_argument("groups[" + std::to_string(j) + "] is " +
                                  std::to_string(groups[j]) + ", outside 0 .. " +
                                  std::to_string(n_groups - 1) + ".");
    }
    ++first_[groups[j] + 1];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<int64_t> next(first_.begin(), first_.end() - 1);
  for (int64_t j = 0; j < d_; ++j) order_[next[groups[j]]++] = j;
}

void PenaltyProx::apply(double* V, double step, int64_t from, int64_t to) {
  // The composition is the prox of the sum, because the second keeps signs and zeros, hence the
  // subgradients of the first.
  if (term_.absolute > 0.0 || term_.square > 0.0)
    soften(V, step * term_.absolute, step * term_.square, from, to);
  if (term_.grouped()) shrink_groups(V, step * term_.norm, from, to);
}

// Soft thresholding by shrink·ω_j, then division by 1 + damp·ω_j².
void PenaltyProx::soften(double* V, double shrink, double damp, int64_t from, int64_t to) const {
  for (const int64_t* j = begin(from); j < begin(to); ++j) {
    const double t = shrink * omega_[*j], below = 1.0 + damp * omega_[*j] * omega_[*j];
    double* v = V + *j * outputs_;
    for (int64_t k = 0; k < outputs_; ++k) v[k] = soft(v[k], t) / below;
  }
}

// prox of step·‖ω∘·‖ of each group.
void PenaltyProx::shrink_groups(double* V, double step, int64_t from, int64_t to) {
  const int64_t copies = per_class_ ? outputs_ : 1, width = per_class_ ? 1 : outputs_;
  for (int64_t g = from; g < to; ++g) {
    const int64_t* features = begin(g);
    const int64_t size = begin(g + 1) - features;
    if (size == 0) continue;
    if (copies == 1 && features[size - 1] - features[0] == size - 1) {
      shrink_group(V + features[0] * outputs_, features, size, width, step);
      continue;
    }
    for (int64_t c = 0; c < copies; ++c) {
      for (int64_t i = 0; i < size; ++i)
        std::copy_n(V + features[i] * outputs_ + c, width, gathered_.data() + i * width);
      shrink_group(gathered_.data(), features, size, width, step);
      for (int64_t i = 0; i < size; ++i)
        std::copy_n(gathered_.data() + i * width, width, V + features[i] * outputs_ + c);
    }
  }
}

void PenaltyProx::shrink_group(double* v, const int64_t* features, int64_t size, int64_t width,
                               double step) {
  const bool linf = term_.maximum();
  const int64_t n = size * width;
  const double first = omega_[features[0]];
  if (std::all_of(features, features + size, [&](int64_t j) { return omega_[j] == first; })) {
    const double t = step * first;
    if (t == 0.0) return;
    return linf ? prox_group_linf(v, n, t, v, work_) : prox_group_l2(v, n, t, v);
  }
  double* o = gathered_omega_.data();
  for (int64_t i = 0; i < size; ++i) std::fill_n(o + i * width, width, omega_[features[i]]);
  return linf ? prox_group_linf_weighted(v, o, n, step, v, work_)
              : prox_group_l2_weighted(v, o, n, step, v);
}

double PenaltyProx::value(const double* V, int64_t from, int64_t to) const {
  const bool grouped = term_.grouped();
  const int64_t copies = per_class_ && grouped ? outputs_ : 1, width = outputs_ / copies;
  double absolute = 0.0, squares = 0.0, norms = 0.0;
  for (int64_t part = from; part < to; ++part) {
    for (int64_t c = 0; c < copies; ++c) {
      double sum = 0.0, top = 0.0;
      for (const int64_t* j = begin(part); j < begin(part + 1); ++j) {
        for (int64_t k = 0; k < width; ++k) {
          const double z = std::abs(omega_[*j] * V[*j * outputs_ + c + k]);
          absolute += z, sum += z * z, top = std::max(top, z);
        }
      }
      squares += sum;
      norms += term_.maximum() ? top : std::sqrt(sum);
    }
  }
  return term_.absolute * absolute +
         (grouped ? term_.norm * norms : term_.square * (0.5 * squares));
}

}  // namespace sparsvm
