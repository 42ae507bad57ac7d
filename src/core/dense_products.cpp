#include "dense_products.hpp"

#include <algorithm>
#include <vector>

#include "packs.hpp"

namespace sparsvm {

namespace {

SPARSVM_INLINE void load_values(Pack& v, const double* from) { load(v, from); }
SPARSVM_INLINE void load_values(Pack& v, const float* from) { load_widened(v, from); }

/// What add_rows does, from column j on: of fewer than four, so that one copy for all P and R will do.
template <typename T>
SPARSVM_APART void add_last_columns(const T* const* x, int R, const double* c, const double* y,
                                    int64_t K, int P, int64_t j, int64_t columns, double* sums,
                                    int64_t stride) {
  for (; j < columns; ++j)
    for (int r = 0; r < R; ++r) {
      const double v = static_cast<double>(x[r][j]) - (c ? c[j] : 0.0);
      for (int p = 0; p < P; ++p) sums[p * stride + j] += v * y[r * K + p];
    }
}

/// sums[k·stride + j] += Σ_r x[r][j] y[r·K + k] for P outputs, column by column.
template <int P, int R, bool Centred, typename T>
SPARSVM_INLINE void add_rows(const T* const* x, const double* c, const double* y, int64_t K,
                             int64_t columns, double* sums, int64_t stride) {
  double factor[R][P];
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) factor[r][p] = y[r * K + p];
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    Pack sum[P], v, centre = {};
    for (int p = 0; p < P; ++p) load(sum[p], sums + p * stride + j);
    if constexpr (Centred) load(centre, c + j);
    for (int r = 0; r < R; ++r) {
      load_values(v, x[r] + j);
      if constexpr (Centred) v = v - centre;
      for (int p = 0; p < P; ++p) sum[p] += v * factor[r][p];
    }
    for (int p = 0; p < P; ++p) store(sums + p * stride + j, sum[p]);
  }
  if (j < columns) add_last_columns(x, R, c, y, K, P, j, columns, sums, stride);
}

/// All outputs, up to three at a time: with their factors they fit the registers.
template <int R, bool Centred, typename T>
SPARSVM_INLINE void add_outputs(const T* const* x, const double* c, const double* y, int64_t K,
                                int64_t columns, double* sums, int64_t stride) {
  int64_t k = 0;
  for (; k + 3 <= K; k += 3)
    add_rows<3, R, Centred>(x, c, y + k, K, columns, sums + k * stride, stride);
  if (K - k == 2) add_rows<2, R, Centred>(x, c, y + k, K, columns, sums + k * stride, stride);
  if (K - k == 1) add_rows<1, R, Centred>(x, c, y + k, K, columns, sums + k * stride, stride);
}

template <bool Centred, typename T>
SPARSVM_INLINE void transpose_product(const DenseRows<T>& X, int64_t first, int64_t last,
                                      const double* Y, int64_t K, double* G) {
  // Six rows at a time, so that the sums are read and written seldom, in pieces long enough for the
  // memory to stream, short enough for the sums to stay in cache.
  constexpr int R = 6;
  constexpr int64_t entries = 12288;
  const int64_t wide = std::min(last - first, std::max<int64_t>(512, entries / K));
  std::vector<double> sums(static_cast<std::size_t>(wide * K));
  for (int64_t from = first; from < last; from += wide) {
    const int64_t columns = std::min(wide, last - from), n = X.rows.n;
    const double* c = Centred ? X.center + from : nullptr;
    const T* x[R];
    std::fill(sums.begin(), sums.end(), 0.0);
    int64_t i = 0;
    for (; i + R <= n; i += R) {
      for (int r = 0; r < R; ++r) x[r] = X.values + X.rows(i + r) * X.stride + from;
      add_outputs<R, Centred>(x, c, Y + i * K, K, columns, sums.data(), wide);
    }
    for (; i < n; ++i) {
      x[0] = X.values + X.rows(i) * X.stride + from;
      add_outputs<1, Centred>(x, c, Y + i * K, K, columns, sums.data(), wide);
    }
    double* out = G + (from - first) * K;
    for (int64_t k = 0; k < K; ++k)
      for (int64_t j = 0; j < columns; ++j) out[j * K + k] = sums[k * wide + j];
  }
}

template <typename T>
SPARSVM_INLINE void product(const DenseRows<T>& X, int64_t first, int64_t last, const double* Y,
                            int64_t K, double* G) {
  if (last <= first || K == 0) return;
  if (X.center)
    transpose_product<true>(X, first, last, Y, K, G);
  else
    transpose_product<false>(X, first, last, Y, K, G);
}

template <typename T>
SPARSVM_APART void add_last_squares(const T* const* x, int R, const double* c, int64_t j,
                                    int64_t columns, double* sums) {
  for (; j < columns; ++j)
    for (int r = 0; r < R; ++r) {
      const double v = static_cast<double>(x[r][j]) - (c ? c[j] : 0.0);
      sums[j] += v * v;
    }
}

template <bool Centred, int R, typename T>
SPARSVM_INLINE void add_squares(const T* const* x, const double* c, int64_t columns, double* sums) {
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    Pack sum, v, centre = {};
    load(sum, sums + j);
    if constexpr (Centred) load(centre, c + j);
    for (int r = 0; r < R; ++r) {
      load_values(v, x[r] + j);
      if constexpr (Centred) v = v - centre;
      sum += v * v;
    }
    store(sums + j, sum);
  }
  if (j < columns) add_last_squares(x, R, c, j, columns, sums);
}

template <bool Centred, typename T>
SPARSVM_INLINE void squares(const DenseRows<T>& X, int64_t d, double* out) {
  constexpr int R = 4;
  constexpr int64_t wide = 8192;
  for (int64_t from = 0; from < d; from += wide) {
    const int64_t columns = std::min(wide, d - from), n = X.rows.n;
    const double* c = Centred ? X.center + from : nullptr;
    const T* x[R];
    std::fill(out + from, out + from + columns, 0.0);
    int64_t i = 0;
    for (; i + R <= n; i += R) {
      for (int r = 0; r < R; ++r) x[r] = X.values + X.rows(i + r) * X.stride + from;
      add_squares<Centred, R>(x, c, columns, out + from);
    }
    for (; i < n; ++i) {
      x[0] = X.values + X.rows(i) * X.stride + from;
      add_squares<Centred, 1>(x, c, columns, out + from);
    }
  }
}

}  // namespace

SPARSVM_CLONED void transposed_product(const DenseRows<float>& X, int64_t first, int64_t last,
                                       const double* Y, int64_t K, double* G) {
  product(X, first, last, Y, K, G);
}

SPARSVM_CLONED void transposed_product(const DenseRows<double>& X, int64_t first, int64_t last,
                                       const double* Y, int64_t K, double* G) {
  product(X, first, last, Y, K, G);
}

SPARSVM_CLONED void column_squares(const DenseRows<float>& X, int64_t d, double* out) {
  if (X.center) return squares<true>(X, d, out);
  squares<false>(X, d, out);
}

SPARSVM_CLONED void column_squares(const DenseRows<double>& X, int64_t d, double* out) {
  if (X.center) return squares<true>(X, d, out);
  squares<false>(X, d, out);
}

}  // namespace sparsvm
