// The roots of simplices, several at once: one lane a row, without a branch on the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "prox/sorting_network.hpp"
#include "support/simd.hpp"

namespace sparsvm {

namespace detail {

SPARSVM_INLINE void exchange(Pack& above, Pack& below) {
  const Pack a = above;
  keep_larger(above, below);
  keep_smaller(below, a);
}

template <int K, std::size_t... e>
SPARSVM_INLINE void sort_lanes(Pack (&v)[K], std::index_sequence<e...>) {
  (exchange(v[sorting_network<K>[e].first], v[sorting_network<K>[e].second]), ...);
}

}  // namespace detail

/// Every lane of `v` in descending order, and theta with Σ_k (v_k − v_1 − theta)₊ = mass, which is
/// max_j ((v_1 − v_1) + … + (v_j − v_1) − mass)/j. The sum v_1 + theta would lose theta's digits.
template <int K>
SPARSVM_INLINE void simplex_root(Pack (&v)[K], const Pack& mass, Pack& theta) {
  detail::sort_lanes<K>(v, std::make_index_sequence<sorting_network<K>.size()>{});
  Pack sum = Pack{} - mass;
  theta = sum;
  for (int j = 1; j < K; ++j) {
    sum += v[j] - v[0];
    keep_larger(theta, sum * (1.0 / (j + 1)));
  }
}

/// theta with Σ_k (z_k − theta)₊ = mass for any number of entries z_k, which are `stride` apart and
/// stay as they are, of 4·packs rows. At first theta must hold values that are not larger.
///
/// Entries below those are out; the root of those that are left, (Σz − mass)/count, puts more of
/// them out, until it does not: after as many rounds as there are entries, mostly after three.
/// What a row gets does not depend on its neighbours, for a root that puts none out stays the same.
template <int packs>
SPARSVM_INLINE void simplex_roots(const double* z, std::int64_t stride, int entries,
                                  const double* mass, double* theta) {
  Pack root[packs], known[packs] = {};
  for (int p = 0; p < packs; ++p) root[p] = SPARSVM_LOAD(theta + 4 * p);
  for (int round = 0; round <= entries; ++round) {
    Pack sum[packs], count[packs] = {};
    for (int p = 0; p < packs; ++p) sum[p] = Pack{} - SPARSVM_LOAD(mass + 4 * p);
    for (int k = 0; k < entries; ++k) {
      for (int p = 0; p < packs; ++p) {
        add_above(SPARSVM_LOAD(z + k * stride + 4 * p), root[p], sum[p], count[p]);
      }
    }
    bool settled = true;
    for (int p = 0; p < packs; ++p) {
      for (int l = 0; l < 4; ++l) settled &= count[p][l] == known[p][l];
      known[p] = count[p];
      keep_larger(count[p], Pack{} + 1.0);  // without mass nothing is above the root
      root[p] = sum[p] / count[p];
    }
    if (settled) break;
  }
  for (int p = 0; p < packs; ++p) SPARSVM_STORE(theta + 4 * p, root[p]);
}

}  // namespace sparsvm
