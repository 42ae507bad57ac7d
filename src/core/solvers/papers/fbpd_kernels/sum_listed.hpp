// sum_listed() of fused_listed.hpp, compiled for registers of four and of eight doubles, see registers.hpp.
//
// `list`(to, dual, outputs, units) leaves 32·block + lane of the entries of a class that are not zero in
// to.places and returns their number.
#pragma once

#include <algorithm>

#include "solvers/papers/fbpd_kernels/fused_listed.hpp"
#include "solvers/papers/fbpd_kernels/registers.hpp"

namespace sparsvm::registers {

namespace {

using fused::Listed;

/// sums += Σ over the list of entry · row, of `packs` packs of columns from `rows` on.
template <typename V, int packs>
SPARSVM_TARGET void sum_rows(const Listed& to, const double* rows, const double* dual,
                             std::int64_t block, std::int64_t count, double* sums) {
  constexpr int width = sizeof(V) / sizeof(double);
  constexpr int turns = packs < 4 ? 4 / packs : 1;  // a sum waits four cycles for its last addition
  V sum[turns][packs] = {};
  const auto add = [&](std::int64_t e, V(&into)[packs]) SPARSVM_TARGET_LAMBDA {
    const std::int64_t b = to.places[e] >> 5, l = to.places[e] & 31;
    const double* x = rows + (b * Listed::lanes + l) * to.length;
    const V value = spread<V>(dual[b * block + l]);
    for (int p = 0; p < packs; ++p) {
      into[p] = add_product(value, load<V>(x + width * p), into[p]);
    }
  };
  std::int64_t e = 0;
  for (; e + turns <= count; e += turns) {
    for (int t = 0; t < turns; ++t) add(e + t, sum[t]);
  }
  for (; e < count; ++e) add(e, sum[0]);
  for (int p = 0; p < packs; ++p) {
    for (int t = 1; t < turns; ++t) sum[0][p] = sum[0][p] + sum[t][p];
    store(sums + width * p, load<V>(sums + width * p) + sum[0][p]);
  }
}

template <typename V, auto list>
SPARSVM_TARGET void sum_listed(const Listed& to, const double* dual, std::int64_t outputs,
                               std::int64_t units, double* along) {
  constexpr int width = sizeof(V) / sizeof(double);
  const std::int64_t block = outputs * Listed::lanes;
  for (std::int64_t k = 0; k < outputs; ++k, dual += Listed::lanes) {
    const std::int64_t count = list(to, dual, outputs, units);
    if (count == 0) continue;
    if (along) {
      for (std::int64_t e = 0; e < count; ++e) {
        const std::int64_t at = (to.places[e] >> 5) * block + (to.places[e] & 31);
        along[k * Listed::lanes + at] += dual[at];
      }
    }
    for (std::int64_t j = 0; j < to.length; j += 8 * width) {
      const double* rows = to.rows + j;
      double* sums = to.sums + k * to.length + j;
      switch (std::min<std::int64_t>(8, (to.length - j) / width)) {
        case 1: sum_rows<V, 1>(to, rows, dual, block, count, sums); break;
        case 2: sum_rows<V, 2>(to, rows, dual, block, count, sums); break;
        case 3: sum_rows<V, 3>(to, rows, dual, block, count, sums); break;
        case 4: sum_rows<V, 4>(to, rows, dual, block, count, sums); break;
        case 5: sum_rows<V, 5>(to, rows, dual, block, count, sums); break;
        case 6: sum_rows<V, 6>(to, rows, dual, block, count, sums); break;
        case 7: sum_rows<V, 7>(to, rows, dual, block, count, sums); break;
        default: sum_rows<V, 8>(to, rows, dual, block, count, sums); break;
      }
    }
  }
}

}  // namespace

}  // namespace sparsvm::registers
