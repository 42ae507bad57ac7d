// Cholesky factors of large matrices, polling for Ctrl-C in between.
#pragma once

#include <algorithm>
#include <cstddef>

#include "linalg/blas.hpp"

namespace sparsvm {

// As potrf('L', ...), by panels, so that no more than about a tenth of a second goes by between two
// calls of poll with ten thousand rows. Entries above the diagonal are left alone.
template <typename Poll>
int polled_potrf(int size, double* A, int ld, const Poll& poll) {
  constexpr int kPanel = 256;
  if (size <= 4 * kPanel) return potrf('L', size, A, ld);
  const auto at = [&](int r, int c) { return A + static_cast<std::size_t>(c) * ld + r; };
  for (int first = 0; first < size; first += kPanel) {
    const int width = std::min(kPanel, size - first), next = first + width;
    if (const int info = potrf('L', width, at(first, first), ld); info != 0) return first + info;
    if (next == size) break;
    trsm('R', 'L', 'T', 'N', size - next, width, 1.0, at(first, first), ld, at(next, first), ld);
    for (int c = next; c < size; c += kPanel) {
      poll();
      const int columns = std::min(kPanel, size - c), below = c + columns;
      syrk('L', 'N', columns, width, -1.0, at(c, first), ld, 1.0, at(c, c), ld);
      if (below == size) break;
      gemm('N', 'T', size - below, columns, width, -1.0, at(below, first), ld, at(c, first), ld,
           1.0, at(below, c), ld);
    }
  }
  return 0;
}

}  // namespace sparsvm
