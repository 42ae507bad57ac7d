// Both products of fbpd, a range of columns at a time.
//
// The gradient of a range is a product with Y, its part of the scores is added to S, both n x K; the
// weights, which of text have five times as many entries, are read and written in between and never
// at random, and neither their gradient nor their extrapolation is held for more than a range. Dense
// columns are still in cache when they are read again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

#include "design/dense_products.hpp"
#include "design/design.hpp"
#include "design/sparse_products.hpp"

namespace sparsvm {

class SweptColumns {
 public:
  /// Rows are left for their companion where the scores are fewer than the weights and these leave the
  /// second cache: 8000 x 20000 with 80 entries per row and ten classes took 6.7 ms an iteration by
  /// rows and 3.9 by columns, 11314 x 25941 newsgroup articles of 20 classes 26 and 18; with 40000
  /// weights either way was as fast.
  static constexpr int64_t few_weights = 1 << 16;
  /// Dense entries that lie in the second cache are multiplied by BLAS. With more samples the pieces of
  /// rows are too short for the memory to stream.
  static constexpr int64_t few_entries = 1 << 16, most_samples = 256;

  static bool suits(const Design& X, int64_t outputs) {
    switch (X.layout()) {
      case Layout::csc: return true;
      case Layout::csr: return X.d() * outputs > few_weights && X.n() <= X.d();
      case Layout::dense_rows:
        return outputs <= kFewOutputs && X.n() <= most_samples && X.n() * X.d() > few_entries;
      default: return false;
    }
  }

  SweptColumns(const Design& X, int64_t outputs)
      : columns_(columns_of(X)), samples_(X.n()), outputs_(outputs) {}

  /// Features of a range: few enough for what is read twice to stay in cache, and of text enough for Y
  /// and the scores not to push each other out of it all the time (11314 x 56436 with 20 classes: 24 ms
  /// an iteration by 2048 weights, 20 by 65536).
  int64_t at_once() const {
    const bool dense = columns_.index() < 2;
    return dense ? 32768 / samples_ / 8 * 8 : std::max<int64_t>(65536 / outputs_, 1);
  }

  /// G ((last − first) x K) = X[:, first:last]ᵀ Y.
  void gradient(int64_t first, int64_t last, const double* Y, double* G) const {
    visit(first, last, [&](const auto& X, int64_t from, int64_t to) {
      if constexpr (requires { X.indptr; }) {
        gather_product(X, {nullptr, to - from}, Y, outputs_, G);
      } else {
        transposed_product(X, from, to, Y, outputs_, false, G);
      }
    });
  }

  /// S (n x K) += X[:, first:last] V.
  void add_scores(int64_t first, int64_t last, const double* V, double* S) const {
    visit(first, last, [&](const auto& X, int64_t from, int64_t to) {
      if constexpr (requires { X.indptr; }) {
        add_scatter_product(X, {nullptr, to - from}, V, outputs_, S);
      } else {
        row_product(X, from, to, V, outputs_, true, S);
      }
    });
  }

  void clear(double* S) const { std::fill(S, S + samples_ * outputs_, 0.0); }

 private:
  using Columns =
      std::variant<DenseRows<float>, DenseRows<double>, Compressed<float>, Compressed<double>>;

  static Columns columns_of(const Design& X) {
    if (const std::optional<AnyDenseRows> rows = X.dense_rows()) {
      return std::visit([](const auto& any) { return Columns(any); }, *rows);
    }
    const SparseColumns sparse = *X.sparse_columns();
    if (sparse.single) {
      return Compressed<float>{static_cast<const float*>(sparse.values), sparse.rows,
                               sparse.starts};
    }
    return Compressed<double>{static_cast<const double*>(sparse.values), sparse.rows,
                              sparse.starts};
  }

  /// Compressed columns begin with the first of the range.
  template <typename Use>
  void visit(int64_t first, int64_t last, Use use) const {
    std::visit([&](auto X) {
      if constexpr (requires { X.indptr; }) X.indptr += first;
      use(X, first, last);
    }, columns_);
  }

  Columns columns_;
  int64_t samples_, outputs_;
};

}  // namespace sparsvm
