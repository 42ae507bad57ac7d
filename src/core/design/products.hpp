// Products of dense rows with matrices of K columns, read where they lie.
//
// A few outputs are bound by memory: gathering the rows first, as BLAS needs it of floats or permuted
// data, took three times as long on 38 x 228000.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "design/design.hpp"

namespace sparsvm {

// More outputs than this take BLAS less time, gathering included.
constexpr int64_t kFewOutputs = 10;

// G ((last − first) x K) = X[:, first:last]ᵀ Y; every entry is summed in the order of the
// samples, of which those without a share are not read.
void transposed_product(const DenseRows<float>& X, int64_t first, int64_t last, const double* Y,
                        int64_t K, double* G);
void transposed_product(const DenseRows<double>& X, int64_t first, int64_t last, const double* Y,
                        int64_t K, double* G);

// S (n x K) = X[:, first:last] W; every row is summed alike, whatever its neighbours are.
void row_product(const DenseRows<float>& X, int64_t first, int64_t last, const double* W, int64_t K,
                 double* S);
void row_product(const DenseRows<double>& X, int64_t first, int64_t last, const double* W,
                 int64_t K, double* S);

// -----------------------------------------------------------------
// Products of compressed matrices with matrices of K columns, one output or row of B per major.

// A view of compressed storage; "major" is the row of CSR and the column of CSC.
template <typename T>
struct Compressed {
  const T* values;
  Indices indices;
  const int64_t* indptr;
};

// out (majors.n x K) = M B for the compressed M (majors x minors).
void gather_product(const Compressed<float>& M, RowMap majors, const double* B, int64_t K,
                    double* out);
void gather_product(const Compressed<double>& M, RowMap majors, const double* B, int64_t K,
                    double* out);

// out (minors x K) = Mᵀ B, with one row of B per major; majors whose row is zero are not read.
void scatter_product(const Compressed<float>& M, RowMap majors, int64_t minors, const double* B,
                     int64_t K, double* out);
void scatter_product(const Compressed<double>& M, RowMap majors, int64_t minors, const double* B,
                     int64_t K, double* out);

// The same added to what `out` has.
void add_scatter_product(const Compressed<float>& M, RowMap majors, const double* B, int64_t K,
                         double* out);
void add_scatter_product(const Compressed<double>& M, RowMap majors, const double* B, int64_t K,
                         double* out);

// out ((last − first) x K) = M[:, first:last]ᵀ B, the entries of a major ascending. places[i], if not
// null, is where the entries of major i that are not before `first` begin, and is moved on to `last`,
// but not where the row of B is zero.
void scatter_range(const Compressed<float>& M, RowMap majors, int64_t first, int64_t last,
                   int32_t* places, const double* B, int64_t K, double* out);
void scatter_range(const Compressed<double>& M, RowMap majors, int64_t first, int64_t last,
                   int32_t* places, const double* B, int64_t K, double* out);

// -----------------------------------------------------------------
// Designs over the caller's arrays, which must outlive them and have been checked.

// Element (r, j) is at values[j * stored_rows + r] if column_major, otherwise at values[r * d + j].
std::unique_ptr<Design> dense_design(const float* values, bool column_major, int64_t stored_rows,
                                     int64_t d, RowIndex rows);
std::unique_ptr<Design> dense_design(const double* values, bool column_major, int64_t stored_rows,
                                     int64_t d, RowIndex rows);

// CSR, or CSC if by_columns; the indices of each row or column strictly increase. They are clamped
// as they are read: the caller's array may be written to while the design lives.
std::unique_ptr<Design> sparse_design(const float* values, const int32_t* indices,
                                      std::vector<int64_t> indptr, bool by_columns,
                                      int64_t stored_rows, int64_t d, RowIndex rows);
std::unique_ptr<Design> sparse_design(const double* values, const int32_t* indices,
                                      std::vector<int64_t> indptr, bool by_columns,
                                      int64_t stored_rows, int64_t d, RowIndex rows);

}  // namespace sparsvm
