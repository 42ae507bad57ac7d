// The inverse of a symmetric positive definite matrix, by halves:
//
//     [A   B]^-1   [A^-1 + W S^-1 W'    -W S^-1]
//     [B'  D]    = [    -S^-1 W'           S^-1],     W = A^-1 B,   S = D - B'W.
//
// For matrices of a hundred rows this takes half the time of a Cholesky factor, its inverse and
// their product, as almost all of it is matrix products that fit the caches. The pivots are those
// of the factor, so that a matrix that is not positive definite is noticed just as well, and like
// the factor it does not care how rows are scaled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "linalg/blas.hpp"
#include "linalg/gram.hpp"

namespace sparsvm {

namespace detail {

constexpr int kSweptSize = 16;

/// Gauss-Jordan sweeps over the upper triangle of `size` <= kSweptSize rows; leaves the full inverse.
bool invert_by_sweeps(double* P, int ld, int size);
bool invert_by_sweeps(float* P, int ld, int size);

}  // namespace detail

template <typename T>
class SpdInverse {
 public:
  // Replaces the upper triangle of P (size x size, column-major) by that of its inverse; false if P
  // is not positive definite. Below the diagonal P is overwritten. `poll` is called between parts of
  // large ones.
  template <typename Poll = NoPoll>
  bool invert(T* P, int ld, int size, const Poll& poll = {}) {
    workspace_.resize(static_cast<std::size_t>(size) * size / 2 + size);
    return halves(P, ld, size, workspace_.data(), false, poll);
  }

 private:
  std::vector<T> workspace_;

  // `full`: the lower triangle of the inverse is wanted too. The workspace takes the products of all
  // levels, size^2 / 4 and less.
  template <typename Poll>
  bool halves(T* P, int ld, int size, T* workspace, bool full, const Poll& poll) {
    constexpr int kPolled = 512;
    const auto poll_large = [&] {
      if (size > kPolled) poll();
    };
    if (size <= detail::kSweptSize) return detail::invert_by_sweeps(P, ld, size);
    const int a = size / 2, c = size - a;
    T *B = P + static_cast<std::size_t>(a) * ld, *D = B + a, *W = workspace;
    T* rest = workspace + static_cast<std::size_t>(a) * c;
    if (!halves(P, ld, a, rest, true, poll)) return false;
    gemm('N', 'N', a, c, a, T(1), P, ld, B, ld, T(0), W, a);
    poll_large();
    gemm('T', 'N', c, c, a, T(-1), B, ld, W, a, T(1), D, ld);
    poll_large();
    if (!halves(D, ld, c, rest, true, poll)) return false;
    gemm('N', 'N', a, c, c, T(-1), W, a, D, ld, T(0), B, ld);
    poll_large();
    gemm('N', 'T', a, a, c, T(-1), B, ld, W, a, T(1), P, ld);
    for (int j = 0; full && j < c; ++j)
      for (int i = 0; i < a; ++i)
        P[static_cast<std::size_t>(i) * ld + a + j] = B[static_cast<std::size_t>(j) * ld + i];
    return true;
  }
};

}  // namespace sparsvm
