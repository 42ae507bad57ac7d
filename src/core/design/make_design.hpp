// Designs over the caller's arrays, which must outlive them and have been checked.
#pragma once

#include <memory>

#include "design/design.hpp"
#include "design/sparse_products.hpp"

namespace sparsvm {

/// Element (r, j) is at values[j * stored_rows + r] if column_major, otherwise at values[r * d + j].
std::unique_ptr<Design> dense_design(const float* values, bool column_major, int64_t stored_rows,
                                     int64_t d, RowIndex rows);
std::unique_ptr<Design> dense_design(const double* values, bool column_major, int64_t stored_rows,
                                     int64_t d, RowIndex rows);

/// CSR, or CSC if by_columns; the indices of each row or column strictly increase.
std::unique_ptr<Design> sparse_design(const Compressed<float>& given, bool by_columns,
                                      int64_t stored_rows, int64_t d, RowIndex rows);
std::unique_ptr<Design> sparse_design(const Compressed<double>& given, bool by_columns,
                                      int64_t stored_rows, int64_t d, RowIndex rows);

}  // namespace sparsvm
