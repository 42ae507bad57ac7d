// Products of compressed matrices with matrices of K columns, one output or row of B per major.
#pragma once

#include <cstdint>

#include "design/design.hpp"

namespace sparsvm {

/// A view of compressed storage; "major" is the row of CSR and the column of CSC.
template <typename T>
struct Compressed {
  const T* values;
  const int32_t* indices;
  const int64_t* indptr;
};

/// out (majors.n x K) = M B for the compressed M (majors x minors).
void gather_product(const Compressed<float>& M, RowMap majors, const double* B, int64_t K,
                    double* out);
void gather_product(const Compressed<double>& M, RowMap majors, const double* B, int64_t K,
                    double* out);

/// out (minors x K) = Mᵀ B, with one row of B per major; majors whose row is zero are not read.
void scatter_product(const Compressed<float>& M, RowMap majors, int64_t minors, const double* B,
                     int64_t K, double* out);
void scatter_product(const Compressed<double>& M, RowMap majors, int64_t minors, const double* B,
                     int64_t K, double* out);

/// The same added to what `out` has.
void add_scatter_product(const Compressed<float>& M, RowMap majors, const double* B, int64_t K,
                         double* out);
void add_scatter_product(const Compressed<double>& M, RowMap majors, const double* B, int64_t K,
                         double* out);

/// out ((last − first) x K) = M[:, first:last]ᵀ B, the entries of a major ascending. places[i], if not
/// null, is where the entries of major i that are not before `first` begin, and is moved on to `last`,
/// but not where the row of B is zero.
void scatter_range(const Compressed<float>& M, RowMap majors, int64_t first, int64_t last,
                   int32_t* places, const double* B, int64_t K, double* out);
void scatter_range(const Compressed<double>& M, RowMap majors, int64_t first, int64_t last,
                   int32_t* places, const double* B, int64_t K, double* out);

}  // namespace sparsvm
