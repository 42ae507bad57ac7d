// Both products of fbpd, a range of columns at a time.
//
// The gradient of a range is a gather from Y, its part of the scores a scatter into S, both n x K; the
// weights, which of text have five times as many entries, are read and written in between and never
// at random, and neither their gradient nor their extrapolation is held for more than a range.
#pragma once

#include <algorithm>
#include <cstdint>

#include "design.hpp"
#include "sparse_products.hpp"

namespace sparsvm {

class SweptColumns {
 public:
  /// Rows are left for their companion where the scores are fewer than the weights and these leave the
  /// second cache: 8000 x 20000 with 80 entries per row and ten classes took 6.7 ms an iteration by
  /// rows and 3.9 by columns, 11314 x 25941 newsgroup articles of 20 classes 26 and 18; with 40000
  /// weights either way was as fast.
  static constexpr int64_t few_weights = 1 << 16;

  static bool suits(const Design& X, int64_t outputs) {
    if (X.layout() == Layout::csc) return true;
    return X.layout() == Layout::csr && X.d() * outputs > few_weights && X.n() <= X.d();
  }

  SweptColumns(const Design& X, int64_t outputs)
      : columns_(*X.sparse_columns()), samples_(X.n()), outputs_(outputs) {}

  /// G ((last − first) x K) = X[:, first:last]ᵀ Y.
  void gradient(int64_t first, int64_t last, const double* Y, double* G) const {
    with_columns(first, [&](const auto& columns) {
      gather_product(columns, {nullptr, last - first}, Y, outputs_, G);
    });
  }

  /// S (n x K) += X[:, first:last] V.
  void add_scores(int64_t first, int64_t last, const double* V, double* S) const {
    with_columns(first, [&](const auto& columns) {
      add_scatter_product(columns, {nullptr, last - first}, V, outputs_, S);
    });
  }

  void clear(double* S) const { std::fill(S, S + samples_ * outputs_, 0.0); }

 private:
  template <typename Use>
  void with_columns(int64_t first, Use use) const {
    const int64_t* starts = columns_.starts + first;
    if (columns_.single) {
      use(Compressed<float>{static_cast<const float*>(columns_.values), columns_.rows, starts});
    } else {
      use(Compressed<double>{static_cast<const double*>(columns_.values), columns_.rows, starts});
    }
  }

  SparseColumns columns_;
  int64_t samples_, outputs_;
};

}  // namespace sparsvm
