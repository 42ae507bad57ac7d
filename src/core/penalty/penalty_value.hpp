// The value of a convex penalty at a few rows of weights, for certificates of small problems: what
// PenaltyTerms.value does in two dozen calls of NumPy.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "penalty/penalty_kind.hpp"
#include "support/exact_sum.hpp"

namespace sparsvm {

struct PenaltyValue {
  PenaltyKind kind;
  double l1_ratio;
  bool per_class;   // groups are of one output each
  const double* W;  // m x outputs
  std::int64_t m, outputs;
  const std::int32_t* groups;  // m
  const double* omega;         // m

  double find() const {
    std::vector<std::int64_t> order(static_cast<std::size_t>(m));
    std::iota(order.begin(), order.end(), 0);
    const auto before = [this](std::int64_t a, std::int64_t b) { return groups[a] < groups[b]; };
    if (!std::is_sorted(order.begin(), order.end(), before))
      std::stable_sort(order.begin(), order.end(), before);
    ExactSum absolute, rest;
    for (std::int64_t first = 0, last = 0; first < m; first = last) {
      while (last < m && groups[order[last]] == groups[order[first]]) ++last;
      for (std::int64_t o = 0; o < (per_class ? outputs : 1); ++o)
        add_group(order.data() + first, order.data() + last, o, absolute, rest);
    }
    return (l1_ratio > 0.0 ? l1_ratio * absolute.value() : 0.0) +
           (l1_ratio < 1.0 ? (1.0 - l1_ratio) * rest.value() : 0.0);
  }

 private:
  void add_group(const std::int64_t* first, const std::int64_t* last, std::int64_t output,
                 ExactSum& absolute, ExactSum& rest) const {
    const std::int64_t stop = per_class ? output + 1 : outputs;
    const auto each = [&](auto&& visit) {
      for (const std::int64_t* row = first; row < last; ++row)
        for (std::int64_t o = output; o < stop; ++o) visit(W[*row * outputs + o] * omega[*row]);
    };
    double peak = 0.0;
    each([&](double z) {
      absolute.add(std::abs(z));
      peak = std::abs(z) <= peak ? peak : std::abs(z);  // a NaN stays
    });
    if (peak == 0.0) return;
    if (kind == PenaltyKind::group_linf) return rest.add(peak);
    // Scaled, so that squares stay in range.
    double squares = 0.0;
    each([&](double z) { squares += (z / peak) * (z / peak); });
    const bool squared = kind == PenaltyKind::l2 || kind == PenaltyKind::elasticnet;
    rest.add(squared ? 0.5 * peak * peak * squares : peak * std::sqrt(squares));
  }
};

}  // namespace sparsvm
