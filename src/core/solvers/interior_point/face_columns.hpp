// The columns of a class's matrix on the face of the optimum: the root of
//
//     X D X',   D = bend (I - uu') + stiff uu'   of every block of weights,
//
// is X times the root of D, block by block, on the rows that the class has unknowns of.
#pragma once

#include <cstdint>

#include "support/cpu_dispatch.hpp"

namespace sparsvm {

// One block: columns col[0 .. width) of X (n rows, column-major) with the unit vector u; across and along
// are the roots of bend and stiff. out (size x width, column-major) gets the rows listed.
struct FaceBlock {
  const std::int32_t* col;
  const double* u;
  std::int64_t width;
  double across, along;
};

// Blocks of four are common, and their entries stay in registers.
template <typename T>
SPARSVM_INLINE void four_face_columns(const FaceBlock& b, const double* X, std::int64_t n,
                                      const std::int32_t* rows, std::int64_t size, T* out) {
  const double *x0 = X + b.col[0] * n, *x1 = X + b.col[1] * n, *x2 = X + b.col[2] * n,
               *x3 = X + b.col[3] * n;
  const double u0 = b.u[0], u1 = b.u[1], u2 = b.u[2], u3 = b.u[3], extra = b.along - b.across;
  for (std::int64_t r = 0; r < size; ++r) {
    const std::int32_t i = rows[r];
    const double v0 = x0[i], v1 = x1[i], v2 = x2[i], v3 = x3[i];
    const double more = extra * (u0 * v0 + u1 * v1 + u2 * v2 + u3 * v3);
    out[r] = static_cast<T>(b.across * v0 + u0 * more);
    out[r + size] = static_cast<T>(b.across * v1 + u1 * more);
    out[r + 2 * size] = static_cast<T>(b.across * v2 + u2 * more);
    out[r + 3 * size] = static_cast<T>(b.across * v3 + u3 * more);
  }
}

template <typename T>
SPARSVM_INLINE void any_face_columns(const FaceBlock& b, const double* X, std::int64_t n,
                                     const std::int32_t* rows, std::int64_t size, double* more,
                                     T* out) {
  if (b.width == 4) return four_face_columns(b, X, n, rows, size, out);
  for (std::int64_t r = 0; r < size; ++r) more[r] = 0.0;
  for (std::int64_t c = 0; c < b.width; ++c) {
    const double *x = X + b.col[c] * n, u = b.u[c];
    for (std::int64_t r = 0; r < size; ++r) more[r] += u * x[rows[r]];
  }
  for (std::int64_t c = 0; c < b.width; ++c, out += size) {
    const double *x = X + b.col[c] * n, f = (b.along - b.across) * b.u[c];
    for (std::int64_t r = 0; r < size; ++r)
      out[r] = static_cast<T>(b.across * x[rows[r]] + f * more[r]);
  }
}

// more: room for size entries.
SPARSVM_CLONED static void face_columns(const FaceBlock& b, const double* X, std::int64_t n,
                                        const std::int32_t* rows, std::int64_t size, double* more,
                                        double* out) {
  any_face_columns(b, X, n, rows, size, more, out);
}
SPARSVM_CLONED static void face_columns(const FaceBlock& b, const double* X, std::int64_t n,
                                        const std::int32_t* rows, std::int64_t size, double* more,
                                        float* out) {
  any_face_columns(b, X, n, rows, size, more, out);
}

}  // namespace sparsvm
