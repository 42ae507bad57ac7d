// What BLAS and LAPACK lack: products of rows with each other and of gathered columns, Cholesky factors that
// can be interrupted, and inverses.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "linalg/blas.hpp"

namespace sparsvm {

// -----------------------------------------------------------------
// Products of rows with each other, and Cholesky factors that can be interrupted.

struct NoPoll {
  void operator()() const {}
};

// The upper triangle of M = B B' (size x size, leading dimension ld), for B of size x columns with
// the same leading dimension; some entries below the diagonal are overwritten too. By halves, as
// products of so few rows take less time than their triangle alone. `poll` is called between parts
// of large ones.
template <typename T, typename Poll = NoPoll>
void gram_by_halves(int size, int columns, const T* B, T* M, int ld, const Poll& poll = {}) {
  constexpr int kWhole = 32, kMany = 160;
  // Between two polls: multiplications, about, and columns at least, with fewer of which BLAS is slow.
  constexpr double kAtOnce = 1e9, kLeastColumns = 64.0;
  if (size > kMany) {
    const int step = static_cast<int>(std::max(kLeastColumns, kAtOnce / size / size));
    for (int first = 0; first == 0 || first < columns; first += step) {
      syrk('U', 'N', size, std::min(step, columns - first), T(1),
           B + static_cast<std::size_t>(first) * ld, ld, T(first == 0 ? 0 : 1), M, ld);
      poll();
    }
    return;
  }
  if (size <= kWhole) return gemm('N', 'T', size, size, columns, T(1), B, ld, B, ld, T(0), M, ld);
  const int a = size / 2, c = size - a;
  T* right = M + static_cast<std::size_t>(a) * ld;
  gram_by_halves(a, columns, B, M, ld);
  gemm('N', 'T', a, c, columns, T(1), B, ld, B + a, ld, T(0), right, ld);
  gram_by_halves(c, columns, B + a, right + a, ld);
}

// The lower triangle of M += A'B, where the product is symmetric (size x size, leading dimension ld),
// for A and B of rows x size; some entries above the diagonal are changed too.
inline void add_lower_product(int size, int rows, const double* A, const double* B, double* M,
                              int ld) {
  constexpr int kWhole = 32;
  if (size <= kWhole) return gemm('T', 'N', size, size, rows, 1.0, A, rows, B, rows, 1.0, M, ld);
  const int a = size / 2, c = size - a;
  const std::size_t skipped = static_cast<std::size_t>(a) * rows;
  add_lower_product(a, rows, A, B, M, ld);
  gemm('T', 'N', c, a, rows, 1.0, A + skipped, rows, B, rows, 1.0, M + a, ld);
  add_lower_product(c, rows, A + skipped, B + skipped, M + static_cast<std::size_t>(a) * ld + a,
                    ld);
}

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

// The Cholesky factor of a matrix scaled to a unit diagonal, to which is added what makes it positive definite.
// Hessians of a loss are not where only differences of scores count: equal shifts of all classes have neither
// curvature nor slope, and a little of the diagonal keeps them where they are.
class ScaledCholesky {
 public:
  // What is added to the diagonal of one: it begins near rounding, and is multiplied by kGrowth until the
  // factorisation succeeds or the limit is met, where the factor would be of another matrix.
  struct Ridge {
    double first, limit;
    double empty =
        0.0;  // the scale of a row without a positive diagonal: 0 keeps its variable unchanged
  };

  // Only entry(r, c) with r >= c is read. Beside the ridge `damping` is added. False where every ridge
  // fails: what is left is the diagonal alone.
  template <typename Entry>
  bool factorise(std::size_t size, const Ridge& ridge, double damping, const Entry& entry) {
    size_ = static_cast<int>(size);
    scale_.resize(size), factor_.resize(size * size);
    for (std::size_t a = 0; a < size; ++a) {
      const double d = entry(a, a);
      scale_[a] = d > 0.0 ? 1.0 / std::sqrt(d) : ridge.empty;
    }
    for (double added = ridge.first; added < ridge.limit; added *= kGrowth) {
      for (std::size_t c = 0; c < size; ++c) {
        for (std::size_t r = c; r < size; ++r)
          factor_[c * size + r] = scale_[r] * scale_[c] * entry(r, c);
        factor_[c * (size + 1)] = 1.0 + added + damping;
      }
      if (potrf('L', size_, factor_.data(), size_) == 0) return true;
    }
    std::fill(factor_.begin(), factor_.end(), 0.0);
    for (std::size_t c = 0; c < size; ++c) factor_[c * (size + 1)] = 1.0;
    return false;
  }

  void clear() { factor_.clear(); }
  bool empty() const { return factor_.empty(); }

  // Replaces the columns of B by the solutions.
  void solve(double* B, int count = 1) const {
    scale(B, count);
    potrs('L', size_, count, factor_.data(), size_, B, size_);
    scale(B, count);
  }

 private:
  // Two digits at a time: few attempts, and little too much.
  static constexpr double kGrowth = 100.0;

  void scale(double* B, int count) const {
    for (int c = 0; c < count; ++c)
      for (const double s : scale_) *B++ *= s;
  }

  int size_ = 0;
  std::vector<double> scale_, factor_;
};

// -----------------------------------------------------------------
// The inverse of a symmetric positive definite matrix, by halves:
//
//     [A   B]^-1   [A^-1 + W S^-1 W'    -W S^-1]
//     [B'  D]    = [    -S^-1 W'           S^-1],     W = A^-1 B,   S = D - B'W.
//
// For matrices of a hundred rows this takes half the time of a Cholesky factor, its inverse and
// their product, as almost all of it is matrix products that fit the caches. The pivots are those
// of the factor, so that a matrix that is not positive definite is noticed just as well, and like
// the factor it does not care how rows are scaled.

namespace detail {

// Halves of fewer rows gain nothing: their products are too small for BLAS.
constexpr int kSweptSize = 16;

// Gauss-Jordan sweeps over the upper triangle of `size` <= kSweptSize rows; leaves the full inverse.
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
    constexpr int kPolled = 512;  // smaller ones end within milliseconds
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

// -----------------------------------------------------------------
// Products with gathered columns, as the Newton system of the interior point is made of.

// Which columns go into each sum, and their factors: sum r has the terms [first[r], first[r + 1]).
struct ColumnSums {
  std::vector<int32_t> column;
  std::vector<double> factor;
  std::vector<int64_t> first;

  int64_t count() const { return static_cast<int64_t>(first.size()) - 1; }
  void clear() {
    column.clear();
    factor.clear();
    first.assign(1, 0);
  }
  void add(int32_t c, double f) {
    column.push_back(c);
    factor.push_back(f);
  }
  void close() { first.push_back(static_cast<int64_t>(column.size())); }
};

// out (n x count) from X (n x m), both column-major.
void form_column_sums(const ColumnSums& sums, const double* X, int64_t n, double* out);
void form_column_sums(const ColumnSums& sums, const double* X, int64_t n, float* out);

// out[c] = X[:, column[c]] . Y[:, cls[c]], both with n rows, column-major: where a class has few of
// the gathered columns, less work than all of them.
void coordinate_products(const double* X, int64_t n, const int32_t* column, const int32_t* cls,
                         int64_t count, const double* Y, double* out);

// out += factor * A x for the matrix whose entries above the diagonal are those of A (size x size,
// column-major) and whose diagonal is zero.
void add_symmetric_product(const float* A, int size, double factor, const double* x, double* out);

}  // namespace sparsvm
