// The root of four simplices at once: one lane a row, without a branch on the values.
#pragma once

#include <cstddef>
#include <utility>

#include "packs.hpp"
#include "sorting_network.hpp"

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

}  // namespace sparsvm
