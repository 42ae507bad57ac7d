#include <algorithm>

#include "design/products.hpp"
#include "support/simd.hpp"

namespace sparsvm {

namespace {

// use(i, tile) for all tiles of all rows. Row by row: its entries are then at hand for the next tile.
template <typename Use>
SPARSVM_INLINE void for_each_row_tile(int64_t n, int64_t K, Use use) {
  with_tiles<2>(K, [&](const auto& tiles) SPARSVM_INLINE_LAMBDA {
    for (int64_t i = 0; i < n; ++i) {
      tiles.each([&](const auto& tile) SPARSVM_INLINE_LAMBDA { use(i, tile); });
    }
  });
}

// One output, the two-class case, is a sum that needs no SIMD.
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
  if (K == 0) return;
  if (K == 1) return gather_one(M, majors, B, out);
  for_each_row_tile(majors.n, K, [&](int64_t i, const auto& tile) SPARSVM_INLINE_LAMBDA {
    const int64_t r = majors(i), from = M.indptr[r];
    Simd sum[std::decay_t<decltype(tile)>::vectors] = {};
    add_row_product(tile, M.values + from, M.indices + from, M.indptr[r + 1] - from, 1.0, B, K,
                    sum);
    tile.store(out + i * K, sum);
  });
}

template <typename T>
SPARSVM_INLINE void scatter(const Compressed<T>& M, RowMap majors, const double* B, int64_t K,
                            double* out) {
  if (K == 0) return;
  if (K == 1) return scatter_one(M, majors, B, out);
  for_each_row_tile(majors.n, K, [&](int64_t i, const auto& tile) SPARSVM_INLINE_LAMBDA {
    Simd v[std::decay_t<decltype(tile)>::vectors];
    tile.load(B + i * K, v);
    if (all_zero(v)) return;
    const int64_t r = majors(i), from = M.indptr[r];
    add_row_transposed(tile, M.values + from, M.indices + from, M.indptr[r + 1] - from, v, K, out);
  });
}

// Minors less `first`, clamped to a range.
struct IndicesFrom {
  Indices indices;
  uint32_t first, range;
  int32_t operator[](int64_t e) const {
    return indices(e, first, range) - static_cast<int32_t>(first);
  }
  IndicesFrom operator+(int64_t entries) const { return {indices + entries, first, range}; }
};

// use(entry, count): where the entries of major r with minors in [first, last) are.
template <typename T, typename Use>
SPARSVM_INLINE void with_part(const Compressed<T>& M, int64_t r, int64_t first, int64_t last,
                              int32_t* place, Use use) {
  const int32_t *begin = M.indices.stored + M.indptr[r], *end = M.indices.stored + M.indptr[r + 1];
  const int32_t* from =
      place ? begin + *place : std::lower_bound(begin, end, static_cast<int32_t>(first));
  const int32_t* to = from;
  while (to < end && *to < last) ++to;
  if (place) *place = static_cast<int32_t>(to - begin);
  use(from - M.indices.stored, to - from);
}

template <typename T>
SPARSVM_INLINE void scatter_part(const Compressed<T>& M, RowMap majors, int64_t first, int64_t last,
                                 int32_t* places, const double* B, int64_t K, double* out) {
  if (K == 0) return;
  for (int64_t e = 0; e < (last - first) * K; ++e) out[e] = 0.0;
  if (last == first) return;
  const IndicesFrom minors{M.indices, static_cast<uint32_t>(first),
                           static_cast<uint32_t>(last - first - 1)};
  if (K == 1) {
    for (int64_t i = 0; i < majors.n; ++i) {
      if (B[i] == 0.0) continue;
      with_part(M, majors(i), first, last, places ? places + i : nullptr,
                [&](int64_t at, int64_t count) SPARSVM_INLINE_LAMBDA {
        for (int64_t e = at; e < at + count; ++e) {
          out[minors[e]] += static_cast<double>(M.values[e]) * B[i];
        }
      });
    }
    return;
  }
  with_tiles<2>(K, [&](const auto& tiles) SPARSVM_INLINE_LAMBDA {
    for (int64_t i = 0; i < majors.n; ++i) {
      bool zero = true;
      tiles.each([&](const auto& tile) SPARSVM_INLINE_LAMBDA {
        Simd v[std::decay_t<decltype(tile)>::vectors];
        tile.load(B + i * K, v);
        zero = zero && all_zero(v);
      });
      if (zero) continue;
      with_part(M, majors(i), first, last, places ? places + i : nullptr,
                [&](int64_t at, int64_t count) SPARSVM_INLINE_LAMBDA {
        tiles.each([&](const auto& tile) SPARSVM_INLINE_LAMBDA {
          Simd v[std::decay_t<decltype(tile)>::vectors];
          tile.load(B + i * K, v);
          add_row_transposed(tile, M.values + at, minors + at, count, v, K, out);
        });
      });
    }
  });
}

}  // namespace

SPARSVM_DISPATCH void scatter_range(const Compressed<float>& M, RowMap majors, int64_t first,
                                    int64_t last, int32_t* places, const double* B, int64_t K,
                                    double* out) {
  scatter_part(M, majors, first, last, places, B, K, out);
}

SPARSVM_DISPATCH void scatter_range(const Compressed<double>& M, RowMap majors, int64_t first,
                                    int64_t last, int32_t* places, const double* B, int64_t K,
                                    double* out) {
  scatter_part(M, majors, first, last, places, B, K, out);
}

SPARSVM_DISPATCH void gather_product(const Compressed<float>& M, RowMap majors, const double* B,
                                     int64_t K, double* out) {
  gather(M, majors, B, K, out);
}

SPARSVM_DISPATCH void gather_product(const Compressed<double>& M, RowMap majors, const double* B,
                                     int64_t K, double* out) {
  gather(M, majors, B, K, out);
}

SPARSVM_DISPATCH void add_scatter_product(const Compressed<float>& M, RowMap majors,
                                          const double* B, int64_t K, double* out) {
  scatter(M, majors, B, K, out);
}

SPARSVM_DISPATCH void add_scatter_product(const Compressed<double>& M, RowMap majors,
                                          const double* B, int64_t K, double* out) {
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
