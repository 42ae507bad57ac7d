#include "linalg/cholesky.hpp"

#include <array>

#include "support/simd.hpp"

namespace sparsvm::detail {

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

}  // namespace sparsvm::detail
