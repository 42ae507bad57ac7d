// Products with gathered columns, as the Newton system of the interior point is made of.
#pragma once

#include <cstdint>
#include <vector>

namespace sparsvm {

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
