#include "penalty/penalty.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "design/design.hpp"
#include "penalty/penalty_layout.hpp"
#include "support/numbers.hpp"

namespace sparsvm {

namespace {

// Entries of XᵀY held at a time: 512 kB, which stay in the second-level cache.
constexpr int64_t kBlockEntries = int64_t{1} << 16;

// Adds what the features [first, last) of one group contribute in the outputs [from, to).
void add_group(const Penalty& penalty, const double* W, const int64_t* first, const int64_t* last,
               int64_t from, int64_t to, ExactSum& absolute, ExactSum& rest) {
  const auto each = [&](auto&& visit) {
    for (const int64_t* row = first; row < last; ++row)
      for (int64_t o = from; o < to; ++o)
        visit(W[*row * penalty.outputs + o] * penalty.omega[*row]);
  };
  double peak = 0.0;
  each([&](double z) {
    absolute.add(std::abs(z));
    peak = std::abs(z) <= peak ? peak : std::abs(z);  // a NaN stays
  });
  if (peak == 0.0) return;
  // Scaled, so that squares stay in range.
  const auto scaled = [&](auto&& visit) { each([&](double z) { visit(std::abs(z) / peak); }); };
  if (penalty.grouped())
    return rest.add(peak * with_group_norm(penalty.group_norm, [&](auto norm) {
      return norm_of<decltype(norm)>(scaled);
    }));
  double squares = 0.0;
  scaled([&](double z) { squares += z * z; });
  rest.add(0.5 * peak * peak * squares);
}

// The norms of ω∘W (m x outputs), summed over the groups.
double group_norm_sum(const Penalty& penalty, const std::vector<int32_t>& features,
                      const double* W) {
  const int64_t copies = penalty.per_class ? penalty.outputs : 1;
  std::vector<double> groups(static_cast<std::size_t>(penalty.n_groups * copies), 0.0);
  return with_group_norm(penalty.group_norm, [&](auto norm) {
    for (const int32_t j : features) {
      for (int64_t k = 0; k < penalty.outputs; ++k) {
        double& total = groups[penalty.groups[j] * copies + (copies > 1 ? k : 0)];
        total = norm.join(total, penalty.omega[j] * std::abs(*W++));
      }
    }
    double norms = 0.0;
    for (const double total : groups) norms += norm.finish(total);
    return norms;
  });
}

}  // namespace

PenaltyTerm penalty_term(const std::string& name, double l1_ratio) {
  const double rest = 1.0 - l1_ratio;
  if (name == "l1") return {.absolute = 1.0};
  if (name == "l2") return {.square = 1.0};
  if (name == "elasticnet") return {.absolute = l1_ratio, .square = rest};
  if (name == "sparse_group")
    return {.absolute = l1_ratio, .norm = rest, .group_norm = norm_named(EuclideanNorm::kName)};
  const GroupNorm norm = norm_named(name);
  if (norm != GroupNorm::none) return {.norm = 1.0, .group_norm = norm};
  throw std::invalid_argument(
      "The penalty kind must be one of l1, l2, elasticnet, l1/l2, l1/linf and sparse_group, but is "
      "'" +
      name + "'.");
}

BlockShape PenaltyTerm::shape() const {
  if (!selects()) return {};
  if (!grouped()) return {GroupNorm::none, 0.0, absolute, square};
  return {group_norm, absolute, norm, 0.0};
}

bool Penalty::single_features() const {
  if (!grouped()) return true;
  std::vector<unsigned char> seen(static_cast<std::size_t>(n_groups), 0);
  return std::none_of(groups, groups + d, [&](int32_t g) { return seen[g]++; });
}

Penalty Penalty::simplified() const {
  Penalty same = *this;
  if (grouped() && (per_class || outputs == 1) && single_features())
    static_cast<PenaltyTerm&>(same) = {.absolute = absolute + norm};
  return same;
}

double penalty_sum(const Penalty& penalty, const std::vector<int32_t>& features, const double* W) {
  double sum = 0.0, squares = 0.0;
  const double* w = W;
  for (const int32_t j : features) {
    for (int64_t k = 0; k < penalty.outputs; ++k) {
      const double z = penalty.omega[j] * *w++;
      sum += std::abs(z);
      squares += z * z;
    }
  }
  return penalty.absolute * sum + (penalty.grouped()
                                       ? penalty.norm * group_norm_sum(penalty, features, W)
                                       : 0.5 * penalty.square * squares);
}

double penalty_value(const Penalty& penalty, const double* W) {
  const int64_t d = penalty.d, outputs = penalty.outputs;
  std::vector<int64_t> order(static_cast<std::size_t>(d));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int64_t a, int64_t b) { return penalty.groups[a] < penalty.groups[b]; };
  if (!std::is_sorted(order.begin(), order.end(), before))
    std::stable_sort(order.begin(), order.end(), before);
  ExactSum absolute, rest;
  for (int64_t first = 0, last = 0; first < d; first = last) {
    while (last < d && penalty.groups[order[last]] == penalty.groups[order[first]]) ++last;
    const int64_t *begin = order.data() + first, *end = order.data() + last;
    if (!penalty.per_class) {
      add_group(penalty, W, begin, end, 0, outputs, absolute, rest);
    } else {
      for (int64_t o = 0; o < outputs; ++o)
        add_group(penalty, W, begin, end, o, o + 1, absolute, rest);
    }
  }
  const double factor = penalty.grouped() ? penalty.norm : penalty.square;
  return (penalty.absolute > 0.0 ? penalty.absolute * absolute.value() : 0.0) +
         (factor > 0.0 ? factor * rest.value() : 0.0);
}

void feature_dual_norms(const Penalty& penalty, const GradientBound& bound, double* out) {
  const int64_t d = penalty.d, outputs = penalty.outputs;
  const BlockShape shape = penalty.shape();
  const auto norm = [&](const double* g) {
    if (penalty.joint()) return shape.dual_norm(g, outputs);
    double largest = 0.0;
    for (int64_t o = 0; o < outputs; ++o) largest = std::max(largest, shape.dual_norm(g + o, 1));
    return largest;
  };
  const int64_t wide = std::min(d, std::max<int64_t>(1, kBlockEntries / outputs));
  std::vector<double> G(static_cast<std::size_t>(wide * outputs));
  std::vector<int32_t> places(static_cast<std::size_t>(bound.design->n()), 0);
  for (int64_t first = 0; first < d; first += wide) {
    const int64_t last = std::min(first + wide, d);
    bound.design->transposed_range(first, last, bound.Y, outputs, G.data(), places.data());
    for (int64_t j = first; j < last; ++j) {
      double* g = G.data() + (j - first) * outputs;
      const double omega = penalty.omega[j], length = bound.column_norms[j];
      if (!(omega > 0.0) || length == 0.0) {
        out[j] = 0.0;
        continue;
      }
      for (int64_t o = 0; o < outputs; ++o)
        g[o] = (std::abs(g[o]) * bound.scale + bound.error[o] * length) / omega;
      out[j] = norm(g);
    }
  }
}

double largest_dual_norm(const Penalty& penalty, const GradientBound& bound) {
  const int64_t outputs = penalty.outputs;
  return PenaltyLayout(penalty).largest_norm([&](int64_t first, int64_t last, double* G) {
    if (last - first == penalty.d)
      bound.design->transposed(bound.Y, outputs, G);
    else
      bound.design->transposed_range(first, last, bound.Y, outputs, G);
    for (int64_t j = first; j < last; ++j)
      for (int64_t o = 0; o < outputs; ++o, ++G)
        *G = std::abs(*G) * bound.scale + bound.error[o] * bound.column_norms[j];
  });
}

PenaltyProx::PenaltyProx(const Penalty& penalty)
    : term_(penalty), d_(penalty.d), outputs_(penalty.outputs), per_class_(penalty.per_class),
      omega_(penalty.omega, penalty.omega + penalty.d) {
  order_.resize(static_cast<std::size_t>(d_));
  std::iota(order_.begin(), order_.end(), 0);
  int64_t widest = 1;
  if (penalty.grouped()) {
    list_by_group(d_, penalty.n_groups, [&](int64_t j) { return penalty.groups[j]; }, first_,
                  order_);
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
  const int64_t n = size * width;
  const double first = omega_[features[0]];
  if (std::all_of(features, features + size, [&](int64_t j) { return omega_[j] == first; })) {
    const double t = step * first;
    if (t == 0.0) return;
    return with_group_norm(term_.group_norm, [&](auto norm) { norm.prox(v, n, t, v, work_); });
  }
  double* o = gathered_omega_.data();
  for (int64_t i = 0; i < size; ++i) std::fill_n(o + i * width, width, omega_[features[i]]);
  with_group_norm(term_.group_norm,
                  [&](auto norm) { norm.prox_weighted(v, o, n, step, v, work_); });
}

double PenaltyProx::value(const double* V, int64_t from, int64_t to) const {
  double absolute = 0.0, squares = 0.0;
  for (int64_t part = from; part < to; ++part) {
    double sum = 0.0;
    for (const int64_t* j = begin(part); j < begin(part + 1); ++j) {
      for (int64_t k = 0; k < outputs_; ++k) {
        const double z = std::abs(omega_[*j] * V[*j * outputs_ + k]);
        absolute += z, sum += z * z;
      }
    }
    squares += sum;
  }
  if (!term_.grouped()) return term_.absolute * absolute + term_.square * (0.5 * squares);
  const int64_t copies = per_class_ ? outputs_ : 1, width = outputs_ / copies;
  const double norms = with_group_norm(term_.group_norm, [&](auto norm) {
    double sum = 0.0;
    for (int64_t part = from; part < to; ++part)
      for (int64_t c = 0; c < copies; ++c)
        sum += norm_of<decltype(norm)>([&](auto visit) {
          for (const int64_t* j = begin(part); j < begin(part + 1); ++j)
            for (int64_t k = c; k < c + width; ++k)
              visit(std::abs(omega_[*j] * V[*j * outputs_ + k]));
        });
    return sum;
  });
  return term_.absolute * absolute + term_.norm * norms;
}

}  // namespace sparsvm
