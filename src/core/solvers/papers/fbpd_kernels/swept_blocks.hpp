// Both products and the dual step of fbpd for two classes, some dense rows at a time.
//
// A block of rows is still in cache when its share of the gradient is taken: what memory delivers is read
// once an iteration. Where X is in cache altogether, fused_rows.hpp is faster.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "design/dense_products.hpp"
#include "design/design.hpp"
#include "solvers/papers/fbpd_kernels/fused_rows.hpp"

namespace sparsvm {

class SweptBlocks {
 public:
  static bool suits(const Design& X, int64_t outputs) {
    return outputs == 1 && X.layout() == Layout::dense_rows &&
           X.n() * X.d() > FusedRows::most_entries && X.d() <= most_features;
  }

  explicit SweptBlocks(const Design& X)
      : rows_(*X.dense_rows()), n_(X.n()), d_(X.d()), at_once_(32768 / X.d()) {}

  /// scores = X W, step(i, count) for consecutive blocks of samples from i on, which leaves Ỹ behind, and
  /// gradient = XᵀỸ.
  template <typename Step>
  void sweep(const double* W, double* scores, const double* tilde, double* gradient,
             Step step) const {
    std::fill(gradient, gradient + d_, 0.0);
    std::visit([&](const auto& rows) {
      for (int64_t i = 0; i < n_; i += at_once_) {
        const int64_t count = std::min(at_once_, n_ - i);
        const auto block = rows.part(i, count);
        row_product(block, 0, d_, W, 1, false, scores + i);
        step(i, count);
        transposed_product(block, 0, d_, tilde + i, 1, true, gradient);
      }
    }, rows_);
  }

 private:
  /// Of more there would be fewer than eight rows in a block.
  static constexpr int64_t most_features = 4096;

  AnyDenseRows rows_;
  int64_t n_, d_, at_once_;
};

}  // namespace sparsvm
