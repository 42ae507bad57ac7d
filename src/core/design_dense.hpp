// Dense designs, C or Fortran order, float or double.
//
// Blocks of X are gathered into a small double buffer, in canonical order, and multiplied there by
// BLAS: one pass over the caller's memory, whatever its order and scalar, and no copy of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "blas.hpp"
#include "design.hpp"

namespace sparsvm {

/// ColumnMajor: element (r, j) is at values[j * stored_rows + r], otherwise at values[r * d + j].
template <typename T, bool ColumnMajor>
class DenseDesign final : public Design {
 public:
  DenseDesign(const T* values, int64_t stored_rows, int64_t d, RowIndex rows)
      : Design(ColumnMajor ? Layout::dense_cols : Layout::dense_rows, stored_rows, d,
               std::move(rows)),
        values_(values), stored_rows_(stored_rows) {}

  void set_center(const double* c) override { center_.assign(c, c + d()); }

  int64_t companion_bytes() const override {
    return static_cast<int64_t>(center_.size() * sizeof(double));
  }

  void gather_columns(const int32_t* features, int64_t m, double* out) const override {
    const RowMap rows = row_map();
    const Columns columns{features, m};
    // Sixty-four rows at a time, so that the lines read for one feature serve its neighbours too.
    const int64_t step = ColumnMajor ? std::max<int64_t>(n(), 1) : 64;
    for (int64_t i = 0; i < n(); i += step) {
      const int64_t count = std::min(step, n() - i);
      for (int64_t k = 0; k < m; ++k) fill_column(rows, i, count, columns[k], out + k * n() + i);
    }
  }

  void scores(const double* W, int64_t K, double* S) const override {
    const auto active = active_features(W, K);
    if (2 * static_cast<int64_t>(active.size()) <= d()) {
      const auto Wm = take_rows(W, K, active);
      multiply(row_map(), {active.data(), static_cast<int64_t>(active.size())}, Wm.data(), K, S);
    } else {
      multiply(row_map(), {nullptr, d()}, W, K, S);
    }
  }

  void scores_subset(const int32_t* features, int64_t m, const double* Wm, int64_t K,
                     double* S) const override {
    multiply(row_map(), {features, m}, Wm, K, S);
  }

  void scores_samples(const int64_t* samples, int64_t count, const double* W, int64_t K,
                      double* S) const override {
    const auto rows = stored_rows_of(samples, count);
    multiply({rows.data(), count}, {nullptr, d()}, W, K, S);
  }

  void transposed(const double* Y, int64_t K, double* G) const override {
    multiply_transposed(row_map(), {nullptr, d()}, Y, K, G);
  }

  void transposed_subset(const int32_t* features, int64_t m, const double* Y, int64_t K,
                         double* G) const override {
    multiply_transposed(row_map(), {features, m}, Y, K, G);
  }

  void transposed_samples(const int64_t* samples, int64_t count, const double* Ys, int64_t K,
                          double* G) const override {
    const auto rows = stored_rows_of(samples, count);
    multiply_transposed({rows.data(), count}, {nullptr, d()}, Ys, K, G);
  }

  void column_stats(const double* mass, double* mean, double* variance, double* norm2,
                    double* maxabs) const override {
    const int64_t width = std::min<int64_t>(d(), 8);
    Workspace block(n() * width);
    std::vector<int32_t> features(static_cast<std::size_t>(width));
    for (int64_t j = 0; j < d(); j += width) {
      const int64_t count = std::min(width, d() - j);
      for (int64_t k = 0; k < count; ++k) {
        features[static_cast<std::size_t>(k)] = static_cast<int32_t>(j + k);
      }
      gather_columns(features.data(), count, block.data());
      for (int64_t k = 0; k < count; ++k) {
        one_column_stats(block.data() + k * n(), mass, mean[j + k], variance[j + k], norm2[j + k],
                         maxabs[j + k]);
      }
    }
  }

  void abs_scores(const double* w, double* out) const override {
    std::fill(out, out + n(), 0.0);
    for_each_panel(row_map(), {nullptr, d()}, [&](const Panel& panel) {
      for (int64_t i = 0; i < panel.rows; ++i) {
        double sum = 0.0;
        for (int64_t k = 0; k < panel.columns; ++k) {
          sum += std::abs(panel.at(i, k)) * w[panel.column + k];
        }
        out[panel.row + i] += sum;
      }
    });
  }

 private:
  /// A list of features, or the first `count` of them if null.
  struct Columns {
    const int32_t* list;
    int64_t count;
    int64_t operator[](int64_t k) const { return list ? list[k] : k; }
  };

  /// A gathered block: rows x columns, in the order of the storage.
  struct Panel {
    const double* data;
    int64_t row, rows, column, columns;
    double at(int64_t i, int64_t k) const {
      return ColumnMajor ? data[k * rows + i] : data[i * columns + k];
    }
  };

  double center_of(int64_t j) const {
    return center_.empty() ? 0.0 : center_[static_cast<std::size_t>(j)];
  }

  void fill_column(RowMap rows, int64_t i0, int64_t count, int64_t j, double* out) const {
    const double shift = center_of(j);
    const T* source = ColumnMajor ? values_ + j * stored_rows_ : values_ + j;
    const int64_t stride = ColumnMajor ? 1 : d();
    if (rows.map) {
      const int64_t* map = rows.map + i0;
      for (int64_t i = 0; i < count; ++i) {
        out[i] = static_cast<double>(source[map[i] * stride]) - shift;
      }
    } else {
      source += i0 * stride;
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(source[i * stride]) - shift;
    }
  }

  void fill_row(int64_t r, const Columns& columns, int64_t k0, int64_t count, double* out) const {
    const T* source = values_ + r * d();
    if (columns.list) {
      const int32_t* list = columns.list + k0;
      for (int64_t k = 0; k < count; ++k) out[k] = static_cast<double>(source[list[k]]);
    } else {
      for (int64_t k = 0; k < count; ++k) out[k] = static_cast<double>(source[k0 + k]);
    }
    if (center_.empty()) return;
    for (int64_t k = 0; k < count; ++k) {
      out[k] -= center_[static_cast<std::size_t>(columns[k0 + k])];
    }
  }

  /// Visit X[:, columns] in blocks, samples outermost in C order and features outermost in Fortran
  /// order, each block gathered into one buffer. C order: 256 kB, at most 256 samples, in pieces of
  /// rows. Fortran order: eight features of up to 2¹⁶ samples, because a permuted column is read
  /// line by line at random and must be finished while its lines are still in cache.
  template <typename Visit>
  void for_each_panel(RowMap rows, Columns columns, Visit visit) const {
    if (rows.n == 0 || columns.count == 0) return;
    constexpr int64_t capacity = 32768;
    int64_t tall = std::min<int64_t>(rows.n, ColumnMajor ? 65536 : 256);
    int64_t wide = std::min(columns.count, std::max<int64_t>(8, capacity / tall));
    if (!ColumnMajor) tall = std::min(rows.n, std::max(tall, capacity / wide));
    Workspace buffer(tall * wide);
    double* block = buffer.data();
    if constexpr (ColumnMajor) {
      for (int64_t k = 0; k < columns.count; k += wide) {
        for (int64_t i = 0; i < rows.n; i += tall) {
          const Panel panel{block, i, std::min(tall, rows.n - i), k,
                            std::min(wide, columns.count - k)};
          for (int64_t c = 0; c < panel.columns; ++c) {
            fill_column(rows, i, panel.rows, columns[k + c], block + c * panel.rows);
          }
          visit(panel);
        }
      }
    } else {
      for (int64_t i = 0; i < rows.n; i += tall) {
        for (int64_t k = 0; k < columns.count; k += wide) {
          const Panel panel{block, i, std::min(tall, rows.n - i), k,
                            std::min(wide, columns.count - k)};
          for (int64_t r = 0; r < panel.rows; ++r) {
            fill_row(rows(i + r), columns, k, panel.columns, block + r * panel.columns);
          }
          visit(panel);
        }
      }
    }
  }

  /// S (rows.n x K) = X[rows, columns] W; in column-major terms Sᵀ = Wᵀ Xᵀ.
  void multiply(RowMap rows, Columns columns, const double* W, int64_t K, double* S) const {
    if (columns.count == 0) std::fill(S, S + rows.n * K, 0.0);
    if (K == 0) return;
    const int outputs = static_cast<int>(K);
    for_each_panel(rows, columns, [&](const Panel& panel) {
      const int m = static_cast<int>(panel.rows), q = static_cast<int>(panel.columns);
      gemm('N', ColumnMajor ? 'T' : 'N', outputs, m, q, 1.0, W + panel.column * K, outputs,
           panel.data, ColumnMajor ? m : q, panel.column == 0 ? 0.0 : 1.0, S + panel.row * K,
           outputs);
    });
  }

  /// G (columns x K) = X[rows, columns]ᵀ Y; in column-major terms Gᵀ = Yᵀ X.
  void multiply_transposed(RowMap rows, Columns columns, const double* Y, int64_t K,
                           double* G) const {
    if (rows.n == 0) std::fill(G, G + columns.count * K, 0.0);
    if (K == 0) return;
    const int outputs = static_cast<int>(K);
    for_each_panel(rows, columns, [&](const Panel& panel) {
      const int m = static_cast<int>(panel.rows), q = static_cast<int>(panel.columns);
      gemm('N', ColumnMajor ? 'N' : 'T', outputs, q, m, 1.0, Y + panel.row * K, outputs,
           panel.data, ColumnMajor ? m : q, panel.row == 0 ? 0.0 : 1.0, G + panel.column * K,
           outputs);
    });
  }

  void one_column_stats(const double* x, const double* mass, double& mean, double& variance,
                        double& norm2, double& maxabs) const {
    double total = 0.0, sum = 0.0, squares = 0.0, largest = 0.0;
    ColumnRange range;
    for (int64_t i = 0; i < n(); ++i) {
      const double p = mass ? mass[i] : 1.0;
      total += p;
      sum += p * x[i];
      squares += x[i] * x[i];
      largest = larger(largest, std::abs(x[i]));
      if (p > 0.0) range.add(x[i]);
    }
    norm2 = std::sqrt(squares);
    maxabs = largest;
    variance = 0.0;
    mean = range.constant() ? range.low : total > 0.0 ? sum / total : 0.0;
    if (range.constant() || !(total > 0.0)) return;
    double spread = 0.0;
    for (int64_t i = 0; i < n(); ++i) {
      const double p = mass ? mass[i] : 1.0;
      spread += p * (x[i] - mean) * (x[i] - mean);
    }
    variance = spread / total;
  }

  const T* values_;
  int64_t stored_rows_;
  std::vector<double> center_;
};

}  // namespace sparsvm
