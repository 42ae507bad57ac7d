#include "sparse_products.hpp"

#include <algorithm>

#include "row_tiles.hpp"

namespace sparsvm {

namespace {

/// use(i, tile) for all tiles of all rows. Row by row: its entries are then at hand for the next tile.
template <typename Use>
SPARSVM_INLINE void for_each_row_tile(int64_t n, int64_t K, Use use) {
  with_tiles<2>(K, [&](const auto& tiles) SPARSVM_INLINE_LAMBDA {
    for (int64_t i = 0; i < n; ++i) {
      tiles.each([&](const auto& tile) SPARSVM_INLINE_LAMBDA { use(i, tile); });
    }
  });
}

// One output, the two-class case, is a sum that needs no packs.
template <typename T>
SPARSVM_INLINE void gather_one(const Compressed<T>& M, RowMap majors, const double* b,
                               double* out) {
  for (int64_t i = 0; i < majors.n; ++i) {
    const int64_t r = majors(i);
    double sum = 0.0;
    for (int64_t e = M.indptr[r]; e < M.indptr[r + 1]; ++e) {
      sum += static_cast<double>(M.values[e]) * b[M.indices[e]];
    }
    out[i] = sum;
  }
}

template <typename T>
SPARSVM_INLINE void scatter_one(const Compressed<T>& M, RowMap majors, const double* b,
                                double* out) {
  for (int64_t i = 0; i < majors.n; ++i) {
    if (b[i] == 0.0) continue;
    const int64_t r = majors(i);
    for (int64_t e = M.indptr[r]; e < M.indptr[r + 1]; ++e) {
      out[M.indices[e]] += static_cast<double>(M.values[e]) * b[i];
    }
  }
}

template <typename T>
SPARSVM_INLINE void gather(const Compressed<T>& M, RowMap majors, const double* B, int64_t K,
                           double* out) {
  if (K == 1) return gather_one(M, majors, B, out);
  for_each_row_tile(majors.n, K, [&](int64_t i, const auto& tile) SPARSVM_INLINE_LAMBDA {
    const int64_t r = majors(i), from = M.indptr[r];
    Pack sum[std::decay_t<decltype(tile)>::packs] = {};
    add_row_product(tile, M.values + from, M.indices + from, M.indptr[r + 1] - from, 1.0, B, K,
                    sum);
    tile.store(out + i * K, sum);
  });
}

template <typename T>
SPARSVM_INLINE void scatter(const Compressed<T>& M, RowMap majors, const double* B, int64_t K,
                            double* out) {
  if (K == 1) return scatter_one(M, majors, B, out);
  for_each_row_tile(majors.n, K, [&](int64_t i, const auto& tile) SPARSVM_INLINE_LAMBDA {
    Pack v[std::decay_t<decltype(tile)>::packs];
    tile.load(B + i * K, v);
    if (all_zero(v)) return;
    const int64_t r = majors(i), from = M.indptr[r];
    add_row_transposed(tile, M.values + from, M.indices + from, M.indptr[r + 1] - from, v, K, out);
  });
}

}  // namespace

SPARSVM_CLONED void gather_product(const Compressed<float>& M, RowMap majors, const double* B,
                                   int64_t K, double* out) {
  gather(M, majors, B, K, out);
}

SPARSVM_CLONED void gather_product(const Compressed<double>& M, RowMap majors, const double* B,
                                   int64_t K, double* out) {
  gather(M, majors, B, K, out);
}

SPARSVM_CLONED void add_scatter_product(const Compressed<float>& M, RowMap majors, const double* B,
                                        int64_t K, double* out) {
  scatter(M, majors, B, K, out);
}

SPARSVM_CLONED void add_scatter_product(const Compressed<double>& M, RowMap majors, const double* B,
                                        int64_t K, double* out) {
  scatter(M, majors, B, K, out);
}

void scatter_product(const Compressed<float>& M, RowMap majors, int64_t minors, const double* B,
                     int64_t K, double* out) {
  std::fill(out, out + minors * K, 0.0);
  add_scatter_product(M, majors, B, K, out);
}

void scatter_product(const Compressed<double>& M, RowMap majors, int64_t minors, const double* B,
                     int64_t K, double* out) {
  std::fill(out, out + minors * K, 0.0);
  add_scatter_product(M, majors, B, K, out);
}

}  // namespace sparsvm
