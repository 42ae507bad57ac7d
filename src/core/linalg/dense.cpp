#include "linalg/dense.hpp"

#include <array>
#include <cstddef>

#include "support/simd.hpp"

namespace sparsvm {

namespace detail {

namespace {

template <typename T>
SPARSVM_INLINE bool sweep(T* P, int ld, int size) {
  constexpr int kWidth = kSweptSize;
  std::array<T, kWidth * kWidth> a = {};
  std::array<T, kWidth> pivot_column;
  for (int c = 0; c < size; ++c)
    for (int r = 0; r <= c; ++r)
      a[c * kWidth + r] = a[r * kWidth + c] = P[static_cast<std::size_t>(c) * ld + r];
  for (int p = 0; p < size; ++p) {
    const T pivot = a[p * kWidth + p];
    if (!(pivot > T(0))) return false;
    const T inverse = T(1) / pivot;
    for (int r = 0; r < kWidth; ++r) pivot_column[r] = a[p * kWidth + r];
    for (int c = 0; c < size; ++c) {
      const T f = pivot_column[c] * inverse;
      for (int r = 0; r < kWidth; ++r) a[c * kWidth + r] -= f * pivot_column[r];
      a[c * kWidth + p] = f;
    }
    for (int r = 0; r < kWidth; ++r) a[p * kWidth + r] = pivot_column[r] * inverse;
    a[p * kWidth + p] = -inverse;
  }
  for (int c = 0; c < size; ++c)
    for (int r = 0; r < size; ++r) P[static_cast<std::size_t>(c) * ld + r] = -a[c * kWidth + r];
  return true;
}

}  // namespace

SPARSVM_DISPATCH bool invert_by_sweeps(double* P, int ld, int size) { return sweep(P, ld, size); }
SPARSVM_DISPATCH bool invert_by_sweeps(float* P, int ld, int size) { return sweep(P, ld, size); }

}  // namespace detail

namespace {

// All terms of a few rows are added up in
// registers: with a pass over the rows for each term this took a sixth of an iteration.
template <typename T>
SPARSVM_INLINE void add_up_columns(const ColumnSums& sums, const double* X, int64_t n, T* out) {
  const int32_t* column = sums.column.data();
  const double* factor = sums.factor.data();
  for (int64_t r = 0; r < sums.count(); ++r, out += n) {
    const int64_t first = sums.first[static_cast<std::size_t>(r)];
    const int64_t last = sums.first[static_cast<std::size_t>(r) + 1];
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
      Simd low = {}, high = {};
      for (int64_t t = first; t < last; ++t) {
        const double* x = X + column[t] * n + i;
        low += factor[t] * SPARSVM_LOAD(x);
        high += factor[t] * SPARSVM_LOAD(x + 4);
      }
      store_rounded(low, out + i);
      store_rounded(high, out + i + 4);
    }
    for (; i < n; ++i) {
      double sum = 0.0;
      for (int64_t t = first; t < last; ++t) sum += factor[t] * X[column[t] * n + i];
      out[i] = static_cast<T>(sum);
    }
  }
}

SPARSVM_INLINE double single_product(const double* x, const double* y, int64_t n) {
  Simd low = {}, high = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    low += SPARSVM_LOAD(x + i) * SPARSVM_LOAD(y + i);
    high += SPARSVM_LOAD(x + i + 4) * SPARSVM_LOAD(y + i + 4);
  }
  double sum = sum_of(low + high);
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace

SPARSVM_DISPATCH void form_column_sums(const ColumnSums& sums, const double* X, int64_t n,
                                       double* out) {
  add_up_columns(sums, X, n, out);
}
SPARSVM_DISPATCH void form_column_sums(const ColumnSums& sums, const double* X, int64_t n,
                                       float* out) {
  add_up_columns(sums, X, n, out);
}

// Neighbours of one class, as
// the coordinates of a block are, share what is loaded of Y.
SPARSVM_DISPATCH void coordinate_products(const double* X, int64_t n, const int32_t* column,
                                          const int32_t* cls, int64_t count, const double* Y,
                                          double* out) {
  int64_t c = 0;
  for (; c + 4 <= count; c += 4) {
    if (cls[c] != cls[c + 3] || cls[c] != cls[c + 1] || cls[c] != cls[c + 2]) {
      for (int s = 0; s < 4; ++s)
        out[c + s] = single_product(X + column[c + s] * n, Y + cls[c + s] * n, n);
      continue;
    }
    const double *y = Y + cls[c] * n, *x0 = X + column[c] * n, *x1 = X + column[c + 1] * n,
                 *x2 = X + column[c + 2] * n, *x3 = X + column[c + 3] * n;
    Simd s0 = {}, s1 = {}, s2 = {}, s3 = {};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      const Simd v = SPARSVM_LOAD(y + i);
      s0 += SPARSVM_LOAD(x0 + i) * v;
      s1 += SPARSVM_LOAD(x1 + i) * v;
      s2 += SPARSVM_LOAD(x2 + i) * v;
      s3 += SPARSVM_LOAD(x3 + i) * v;
    }
    double t0 = sum_of(s0), t1 = sum_of(s1), t2 = sum_of(s2), t3 = sum_of(s3);
    for (; i < n; ++i) {
      t0 += x0[i] * y[i];
      t1 += x1[i] * y[i];
      t2 += x2[i] * y[i];
      t3 += x3[i] * y[i];
    }
    out[c] = t0;
    out[c + 1] = t1;
    out[c + 2] = t2;
    out[c + 3] = t3;
  }
  for (; c < count; ++c) out[c] = single_product(X + column[c] * n, Y + cls[c] * n, n);
}

SPARSVM_DISPATCH void add_symmetric_product(const float* A, int size, double factor,
                                            const double* x, double* out) {
  for (int c = 1; c < size; ++c) {
    const float* column = A + static_cast<std::size_t>(c) * size;
    const double along = factor * x[c];
    Simd sum0 = {}, sum1 = {};
    int r = 0;
    for (; r + 8 <= c; r += 8) {
      Simd a0, a1;
      load_widened(a0, column + r);
      load_widened(a1, column + r + 4);
      SPARSVM_STORE(out + r, SPARSVM_LOAD(out + r) + along * a0);
      SPARSVM_STORE(out + r + 4, SPARSVM_LOAD(out + r + 4) + along * a1);
      sum0 += a0 * SPARSVM_LOAD(x + r);
      sum1 += a1 * SPARSVM_LOAD(x + r + 4);
    }
    double sum = sum_of(sum0 + sum1);
    for (; r < c; ++r) {
      out[r] += along * column[r];
      sum += column[r] * x[r];
    }
    out[c] += factor * sum;
  }
}

}  // namespace sparsvm
