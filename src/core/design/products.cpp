#include "design/products.hpp"

#include <algorithm>
#include <vector>

#include "support/simd.hpp"

namespace sparsvm {

namespace {

// Weights or sums held at a time: with 96 kB they stay in the second-level cache, and rows are read
// in pieces long enough for the memory to stream: with many outputs of at least so many columns.
constexpr int64_t kPieceEntries = 12288, kLeastPiece = 512;

SPARSVM_INLINE void load_values(Simd& v, const double* from) { load(v, from); }
SPARSVM_INLINE void load_values(Simd& v, const float* from) { load_widened(v, from); }

// What add_rows does, from column j on: of fewer than four, so that one copy for all P and R will do.
template <typename T>
SPARSVM_APART void add_last_columns(const T* const* x, int R, const double* const* y, int64_t k,
                                    int P, int64_t j, int64_t columns, double* sums,
                                    int64_t stride) {
  for (; j < columns; ++j)
    for (int r = 0; r < R; ++r) {
      const double v = static_cast<double>(x[r][j]);
      for (int p = 0; p < P; ++p) sums[p * stride + j] += v * y[r][k + p];
    }
}

// sums[p·stride + j] += Σ_r x[r][j] y[r][k + p] for P outputs, column by column.
template <int P, int R, typename T>
SPARSVM_INLINE void add_rows(const T* const* x, const double* const* y, int64_t k, int64_t columns,
                             double* sums, int64_t stride) {
  double factor[R][P];
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) factor[r][p] = y[r][k + p];
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    Simd sum[P], v;
    for (int p = 0; p < P; ++p) load(sum[p], sums + p * stride + j);
    for (int r = 0; r < R; ++r) {
      load_values(v, x[r] + j);
      for (int p = 0; p < P; ++p) sum[p] += v * factor[r][p];
    }
    for (int p = 0; p < P; ++p) store(sums + p * stride + j, sum[p]);
  }
  if (j < columns) add_last_columns(x, R, y, k, P, j, columns, sums, stride);
}

// All outputs, up to three at a time: with their factors they fit the registers.
template <int R, typename T>
SPARSVM_INLINE void add_outputs(const T* const* x, const double* const* y, int64_t K,
                                int64_t columns, double* sums, int64_t stride) {
  int64_t k = 0;
  for (; k + 3 <= K; k += 3) add_rows<3, R>(x, y, k, columns, sums + k * stride, stride);
  if (K - k == 2) add_rows<2, R>(x, y, k, columns, sums + k * stride, stride);
  if (K - k == 1) add_rows<1, R>(x, y, k, columns, sums + k * stride, stride);
}

// The samples whose rows of Y are not all zero: the others are not read.
SPARSVM_INLINE std::vector<int64_t> with_share(const double* Y, int64_t n, int64_t K) {
  std::vector<int64_t> out;
  out.reserve(static_cast<std::size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    bool any = false;
    for (int64_t k = 0; k < K; ++k) any |= Y[i * K + k] != 0.0;
    if (any) out.push_back(i);
  }
  return out;
}

template <typename T>
SPARSVM_INLINE void transpose_product(const DenseRows<T>& X, int64_t first, int64_t last,
                                      const double* Y, int64_t K, double* G) {
  if (last <= first || K == 0) return;
  // Six rows at a time, so that the sums are read and written seldom, in pieces long enough for the
  // memory to stream, short enough for the sums to stay in cache.
  constexpr int R = 6;
  const int64_t wide = std::min(last - first, std::max(kLeastPiece, kPieceEntries / K));
  const std::vector<int64_t> samples = with_share(Y, X.rows.n, K);
  const int64_t n = std::ssize(samples);
  std::vector<double> sums(static_cast<std::size_t>(wide * K));
  for (int64_t from = first; from < last; from += wide) {
    const int64_t columns = std::min(wide, last - from);
    const T* x[R];
    const double* y[R];
    const auto take = [&](int64_t i, int r) SPARSVM_INLINE_LAMBDA {
      const int64_t at = samples[static_cast<std::size_t>(i)];
      x[r] = X.values + X.rows(at) * X.stride + from;
      y[r] = Y + at * K;
    };
    std::fill(sums.begin(), sums.end(), 0.0);
    int64_t i = 0;
    for (; i + R <= n; i += R) {
      for (int r = 0; r < R; ++r) take(i + r, r);
      add_outputs<R>(x, y, K, columns, sums.data(), wide);
    }
    for (; i < n; ++i) {
      take(i, 0);
      add_outputs<1>(x, y, K, columns, sums.data(), wide);
    }
    double* out = G + (from - first) * K;
    for (int64_t k = 0; k < K; ++k)
      for (int64_t j = 0; j < columns; ++j)
        out[j * K + k] = sums[static_cast<std::size_t>(k * wide + j)];
  }
}

// What dot_rows does, from column j on.
template <typename T>
SPARSVM_APART void dot_last_columns(const T* const* x, int R, const double* w, int64_t stride,
                                    int P, int64_t j, int64_t columns, double* sums) {
  for (; j < columns; ++j)
    for (int r = 0; r < R; ++r) {
      const double v = static_cast<double>(x[r][j]);
      for (int p = 0; p < P; ++p) sums[r * P + p] += v * w[p * stride + j];
    }
}

// sums[r·P + p] = Σ_j x[r][j] w[p·stride + j].
template <int P, int R, typename T>
SPARSVM_INLINE void dot_rows(const T* const* x, const double* w, int64_t stride, int64_t columns,
                             double* sums) {
  Simd sum[R][P] = {};
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    Simd weight[P], v;
    for (int p = 0; p < P; ++p) load(weight[p], w + p * stride + j);
    for (int r = 0; r < R; ++r) {
      load_values(v, x[r] + j);
      for (int p = 0; p < P; ++p) sum[r][p] += v * weight[p];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) sums[r * P + p] = sum_of(sum[r][p]);
  if (j < columns) dot_last_columns(x, R, w, stride, P, j, columns, sums);
}

// s[r·K + p] += Σ_j x[r][j] w[p·stride + j] for the first `count` rows.
template <int P, int R, typename T>
SPARSVM_INLINE void add_dots(const T* const* x, const double* w, int64_t stride, int64_t columns,
                             int64_t count, int64_t K, double* s) {
  double sums[R * P];
  dot_rows<P, R>(x, w, stride, columns, sums);
  for (int64_t r = 0; r < count; ++r)
    for (int p = 0; p < P; ++p) s[r * K + p] += sums[r * P + p];
}

// S += X[:, from:from + columns] w, the weights output by output; R rows at a time, of which the last
// may repeat.
template <int R, typename T>
SPARSVM_INLINE void add_piece(const DenseRows<T>& X, int64_t from, int64_t columns, const double* w,
                              int64_t K, double* S) {
  for (int64_t i = 0, n = X.rows.n; i < n; i += R) {
    const T* x[R];
    for (int r = 0; r < R; ++r) x[r] = X.values + X.rows(std::min(i + r, n - 1)) * X.stride + from;
    const int64_t count = std::min<int64_t>(R, n - i);
    double* s = S + i * K;
    int64_t k = 0;
    if constexpr (R == 4) {  // three outputs with their sums fit the registers
      for (; k + 3 <= K; k += 3)
        add_dots<3, R>(x, w + k * columns, columns, columns, count, K, s + k);
      if (K - k == 2) add_dots<2, R>(x, w + k * columns, columns, columns, count, K, s + k);
    }
    if (K - k == 1) add_dots<1, R>(x, w + k * columns, columns, columns, count, K, s + k);
  }
}

template <typename T>
SPARSVM_INLINE void scores_of(const DenseRows<T>& X, int64_t first, int64_t last, const double* W,
                              int64_t K, double* S) {
  std::fill(S, S + X.rows.n * K, 0.0);
  if (last <= first || K == 0) return;
  // Weights that stay in cache, of rows in pieces long enough for the memory to stream.
  const int64_t wide = std::min(last - first, std::max(kLeastPiece, kPieceEntries / K));
  std::vector<double> turned(static_cast<std::size_t>(wide * K));
  for (int64_t from = first; from < last; from += wide) {
    const int64_t columns = std::min(wide, last - from);
    const double* w = W + (from - first) * K;
    for (int64_t k = 0; k < K; ++k)
      for (int64_t j = 0; j < columns; ++j)
        turned[static_cast<std::size_t>(k * columns + j)] = w[j * K + k];
    // One output by eight rows, so that its sums do not wait for each other.
    if (K == 1) {
      add_piece<8>(X, from, columns, turned.data(), K, S);
    } else {
      add_piece<4>(X, from, columns, turned.data(), K, S);
    }
  }
}

}  // namespace

SPARSVM_DISPATCH_AVX512 void transposed_product(const DenseRows<float>& X, int64_t first,
                                                int64_t last, const double* Y, int64_t K,
                                                double* G) {
  transpose_product(X, first, last, Y, K, G);
}

SPARSVM_DISPATCH_AVX512 void transposed_product(const DenseRows<double>& X, int64_t first,
                                                int64_t last, const double* Y, int64_t K,
                                                double* G) {
  transpose_product(X, first, last, Y, K, G);
}

SPARSVM_DISPATCH_AVX512 void row_product(const DenseRows<float>& X, int64_t first, int64_t last,
                                         const double* W, int64_t K, double* S) {
  scores_of(X, first, last, W, K, S);
}

SPARSVM_DISPATCH_AVX512 void row_product(const DenseRows<double>& X, int64_t first, int64_t last,
                                         const double* W, int64_t K, double* S) {
  scores_of(X, first, last, W, K, S);
}

// -----------------------------------------------------------------
// Compressed matrices.

namespace {

// use(i, tile) for all tiles of all rows. Row by row: its entries are then at hand for the next tile.
template <typename Use>
SPARSVM_INLINE void for_each_row_tile(int64_t n, int64_t K, Use use) {
  with_tiles(K, [&](const auto& tiles) SPARSVM_INLINE_LAMBDA {
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
  with_tiles(K, [&](const auto& tiles) SPARSVM_INLINE_LAMBDA {
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
