#include "penalty/norms.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "penalty/penalty_layout.hpp"
#include "support/exact_sum.hpp"

namespace sparsvm {

namespace {

/// Entries of XᵀY held at a time: 512 kB, which stay in the second-level cache.
constexpr int64_t kBlockEntries = int64_t{1} << 16;

/// Adds what the features [first, last) of one group contribute in the outputs [from, to).
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
  if (penalty.kind == PenaltyKind::group_linf) return rest.add(peak);
  // Scaled, so that squares stay in range.
  double squares = 0.0;
  each([&](double z) { squares += (z / peak) * (z / peak); });
  rest.add(penalty.quad() > 0.0 ? 0.5 * peak * peak * squares : peak * std::sqrt(squares));
}

}  // namespace

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
  const double ratio = penalty.l1_ratio;
  return (ratio > 0.0 ? ratio * absolute.value() : 0.0) +
         (ratio < 1.0 ? (1.0 - ratio) * rest.value() : 0.0);
}

void feature_dual_norms(const Penalty& penalty, const GradientBound& bound, double* out) {
  const int64_t d = penalty.d, outputs = penalty.outputs;
  const BlockShape shape = PenaltyLayout::make_shape(penalty.kind, penalty.l1_ratio);
  const bool joint = penalty.kind != PenaltyKind::l1 && !penalty.per_class && outputs > 1;
  const auto norm = [&](const double* g) {
    if (joint) return shape.dual_norm(g, outputs);
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
  const PenaltyLayout layout(penalty.kind, penalty.l1_ratio, penalty.groups, penalty.n_groups,
                             penalty.per_class, penalty.omega, penalty.d, outputs);
  return layout.largest_norm([&](int64_t first, int64_t last, double* G) {
    if (last - first == penalty.d)
      bound.design->transposed(bound.Y, outputs, G);
    else
      bound.design->transposed_range(first, last, bound.Y, outputs, G);
    for (int64_t j = first; j < last; ++j)
      for (int64_t o = 0; o < outputs; ++o, ++G)
        *G = std::abs(*G) * bound.scale + bound.error[o] * bound.column_norms[j];
  });
}

}  // namespace sparsvm
