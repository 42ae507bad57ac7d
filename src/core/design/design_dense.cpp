// Dense designs, C or Fortran order, float or double.
//
// Blocks of X are gathered into a small double buffer, in canonical order, and multiplied there by
// BLAS: one pass over the caller's memory, whatever its order and scalar, and no copy of it. Products
// with few outputs read rows where they lie instead (dense_products.hpp). Only a matrix of at most
// 4 MB is gathered once and kept, because there the gathering would double the time of a product,
// or multiplied where it lies if it is all doubles in their own order.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "design/design.hpp"
#include "design/products.hpp"
#include "linalg/blas.hpp"

namespace sparsvm {

namespace {

// ColumnMajor: element (r, j) is at values[j * stored_rows + r], otherwise at values[r * d + j].
template <typename T, bool ColumnMajor>
class DenseDesign final : public Design {
 public:
  DenseDesign(const T* values, int64_t stored_rows, int64_t d, RowIndex rows)
      : Design(ColumnMajor ? Layout::dense_cols : Layout::dense_rows, stored_rows, d,
               std::move(rows)),
        values_(values), stored_rows_(stored_rows) {}

  int64_t data_bytes() const override {
    return stored_rows_ * d() * static_cast<int64_t>(sizeof(T));
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

  void sample(int64_t i, const int32_t* features, int64_t m, double* out) const override {
    const int64_t r = row_map()(i);
    if constexpr (ColumnMajor) {
      for (int64_t k = 0; k < m; ++k) {
        out[k] = static_cast<double>(values_[features[k] * stored_rows_ + r]);
      }
    } else {
      fill_row(r, {features, m}, 0, m, out);
    }
  }

  bool single_precision() const override { return sizeof(T) == 4; }

  void scores(const double* W, int64_t K, double* S) const override {
    const auto active = active_features(W, K);
    if (2 * static_cast<int64_t>(active.size()) <= d()) {
      const auto Wm = take_rows(W, K, active);
      multiply(row_map(), {active.data(), static_cast<int64_t>(active.size())}, Wm.data(), K, S);
    } else if (read_in_place(K)) {
      if constexpr (!ColumnMajor) row_product(rows_in_place(), 0, d(), W, K, S);
    } else {
      for_each_panel([&](const Panel& panel) { add_scores(panel, W, K, S); });
    }
  }

  void scores_subset(const int32_t* features, int64_t m, const double* Wm, int64_t K,
                     double* S) const override {
    multiply(row_map(), {features, m}, Wm, K, S);
  }

  void transposed(const double* Y, int64_t K, double* G) const override {
    if (n() == 0) return std::fill(G, G + d() * K, 0.0);
    if constexpr (!ColumnMajor)
      if (read_in_place(K)) return transposed_product(rows_in_place(), 0, d(), Y, K, G);
    for_each_panel([&](const Panel& panel) { add_transposed(panel, Y, K, G); });
  }

  void transposed_range(int64_t first, int64_t last, const double* Y, int64_t K, double* G,
                        int32_t* /*places*/) const override {
    if constexpr (!ColumnMajor)
      if (K <= kFewOutputs) return transposed_product(rows_in_place(), first, last, Y, K, G);
    multiply_transposed(row_map(), {nullptr, last - first, first}, Y, K, G);
  }

  void transposed_subset(const int32_t* features, int64_t m, const double* Y, int64_t K,
                         double* G) const override {
    multiply_transposed(row_map(), {features, m}, Y, K, G);
  }

  void column_stats(const double* mass, double* mean, double* variance, double* norm2,
                    double* maxabs) const override {
    // Eight features at a time, sample by sample: the sums of a feature run in canonical order, and
    // those of different features side by side.
    constexpr int64_t kWidth = 8;
    Workspace block(n() * kWidth);
    std::vector<int32_t> features(kWidth);
    for (int64_t j = 0; j < d(); j += kWidth) {
      const int64_t count = std::min(kWidth, d() - j);
      for (int64_t k = 0; k < kWidth; ++k) {
        features[static_cast<std::size_t>(k)] = static_cast<int32_t>(j + std::min(k, count - 1));
      }
      fill_rows(features.data(), kWidth, block.data());
      double stats[4][kWidth];
      eight_columns_stats(block.data(), mass, stats[0], stats[1], stats[2], stats[3]);
      std::copy(stats[0], stats[0] + count, mean + j);
      std::copy(stats[1], stats[1] + count, variance + j);
      std::copy(stats[2], stats[2] + count, norm2 + j);
      std::copy(stats[3], stats[3] + count, maxabs + j);
    }
  }

  void column_norms(double* norm2) const override {
    std::fill(norm2, norm2 + d(), 0.0);
    for_each_panel([&](const Panel& panel) {
      const int64_t outer = ColumnMajor ? panel.columns : panel.rows;
      const int64_t inner = ColumnMajor ? panel.rows : panel.columns;
      const double* x = panel.data;
      for (int64_t a = 0; a < outer; ++a)
        for (int64_t b = 0; b < inner; ++b, ++x)
          norm2[panel.column + (ColumnMajor ? a : b)] += *x * *x;
    });
    for (int64_t j = 0; j < d(); ++j) norm2[j] = std::sqrt(norm2[j]);
  }

  void abs_scores(const double* w, double* out) const override {
    std::fill(out, out + n(), 0.0);
    const auto active = active_features(w, 1);
    // Few features: 0.01 ms instead of 0.3 on 38 x 7129, where it is a third of a certificate.
    if (2 * static_cast<int64_t>(active.size()) <= d()) return add_abs_columns(active, w, out);
    for_each_panel([&](const Panel& panel) {
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
  // out += |X[:, features]| w[features], a few columns at a time.
  void add_abs_columns(const std::vector<int32_t>& features, const double* w, double* out) const {
    const int64_t step = std::max<int64_t>(1, kGathered / std::max<int64_t>(1, n()));
    const int64_t count = static_cast<int64_t>(features.size());
    std::vector<double> block;
    for (int64_t first = 0; first < count; first += step) {
      const int64_t m = std::min(step, count - first);
      block.resize(static_cast<std::size_t>(n() * m));
      gather_columns(features.data() + first, m, block.data());
      for (int64_t k = 0; k < m; ++k)
        for (int64_t i = 0; i < n(); ++i)
          out[i] += std::abs(block[static_cast<std::size_t>(k * n() + i)]) * w[features[first + k]];
    }
  }

  // A list of features, or `count` of them from `first` on if null.
  struct Columns {
    const int32_t* list;
    int64_t count, first = 0;
    int64_t operator[](int64_t k) const { return list ? list[k] : first + k; }
  };

  // A gathered block: rows x columns, in the order of the storage.
  struct Panel {
    const double* data;
    int64_t row, rows, column, columns;
    double at(int64_t i, int64_t k) const {
      return ColumnMajor ? data[k * rows + i] : data[i * columns + k];
    }
  };

  void fill_column(RowMap rows, int64_t i0, int64_t count, int64_t j, double* out) const {
    const T* source = ColumnMajor ? values_ + j * stored_rows_ : values_ + j;
    const int64_t stride = ColumnMajor ? 1 : d();
    if (rows.map) {
      const int64_t* map = rows.map + i0;
      for (int64_t i = 0; i < count; ++i) {
        out[i] = static_cast<double>(source[map[i] * stride]);
      }
    } else {
      source += i0 * stride;
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(source[i * stride]);
    }
  }

  void fill_row(int64_t r, const Columns& columns, int64_t k0, int64_t count, double* out) const {
    const T* source = values_ + r * d();
    if (columns.list) {
      const int32_t* list = columns.list + k0;
      for (int64_t k = 0; k < count; ++k) out[k] = static_cast<double>(source[list[k]]);
    } else {
      source += columns.first + k0;
      for (int64_t k = 0; k < count; ++k) out[k] = static_cast<double>(source[k]);
    }
  }

  void fill_panel(RowMap rows, const Columns& columns, const Panel& panel, double* out) const {
    if constexpr (ColumnMajor) {
      for (int64_t c = 0; c < panel.columns; ++c) {
        fill_column(rows, panel.row, panel.rows, columns[panel.column + c], out + c * panel.rows);
      }
    } else {
      for (int64_t r = 0; r < panel.rows; ++r) {
        fill_row(rows(panel.row + r), columns, panel.column, panel.columns,
                 out + r * panel.columns);
      }
    }
  }

  // Visit X[rows, columns] in blocks, samples outermost in C order and features outermost in
  // Fortran order, each block gathered into one buffer. C order: 256 kB of pieces of rows, at
  // least 256 of them. Fortran order: eight features of up to 8192 samples, because a permuted
  // column is read at random and must be finished while its lines are still in cache (wider or
  // taller blocks measured up to 3 x slower on 20000 x 784).
  template <typename Visit>
  void for_each_panel(RowMap rows, const Columns& columns, Visit visit) const {
    if (rows.n == 0 || columns.count == 0) return;
    constexpr int64_t kCapacity = 32768, kTall = ColumnMajor ? 8192 : 256, kLeastWide = 8;
    int64_t tall = std::min(rows.n, kTall);
    const int64_t wide = std::min(columns.count, std::max(kLeastWide, kCapacity / tall));
    if (!ColumnMajor) tall = std::min(rows.n, std::max(tall, kCapacity / wide));
    Workspace buffer(tall * wide);
    const int64_t outer = ColumnMajor ? columns.count : rows.n, step = ColumnMajor ? wide : tall;
    const int64_t inner = ColumnMajor ? rows.n : columns.count, pace = ColumnMajor ? tall : wide;
    for (int64_t a = 0; a < outer; a += step) {
      for (int64_t b = 0; b < inner; b += pace) {
        const int64_t i = ColumnMajor ? b : a, k = ColumnMajor ? a : b;
        const Panel panel{buffer.data(), i, std::min(tall, rows.n - i), k,
                          std::min(wide, columns.count - k)};
        fill_panel(rows, columns, panel, buffer.data());
        visit(panel);
      }
    }
  }

  // All of X, as one kept block if it is small.
  template <typename Visit>
  void for_each_panel(Visit visit) const {
    const RowMap rows = row_map();
    const Columns columns{nullptr, d()};
    if (n() == 0 || d() == 0) return;
    if (!kept_whole()) return for_each_panel(rows, columns, visit);
    if constexpr (std::is_same_v<T, double>)
      // The caller's memory is what would be kept.
      if (!indexed()) return visit(Panel{values_, 0, n(), 0, d()});
    const Panel shape{nullptr, 0, n(), 0, d()};
    const Workspace& block = kept_.get([&] {
      Workspace fresh(n() * d());
      fill_panel(rows, columns, shape, fresh.data());
      return fresh;
    });
    visit(Panel{block.data(), 0, n(), 0, d()});
  }

  DenseRows<T> rows_in_place() const { return {values_, d(), row_map()}; }

  bool kept_whole() const { return d() == 0 || n() <= kKeptLimit / d(); }

  // A few outputs are bound by memory: rows are read where they lie. BLAS is faster at what is in cache
  // anyway, unless that is wide: packing it takes longer than multiplying (81 x 5565 with four outputs:
  // 1.1 ms instead of 0.3).
  bool read_in_place(int64_t K) const {
    return !ColumnMajor && K <= kFewOutputs && (!kept_whole() || (K > 1 && d() >= kWide));
  }

  // S += panel W on the block's samples, in column-major terms Sᵀ += Wᵀ panelᵀ; the first block of
  // features overwrites.
  static void add_scores(const Panel& panel, const double* W, int64_t K, double* S) {
    const int m = static_cast<int>(panel.rows), q = static_cast<int>(panel.columns);
    const int outputs = static_cast<int>(K), ld = ColumnMajor ? m : q;
    const double beta = panel.column == 0 ? 0.0 : 1.0;
    if (K == 1) {
      gemv(ColumnMajor ? 'N' : 'T', ld, ColumnMajor ? q : m, 1.0, panel.data, ld, W + panel.column,
           1, beta, S + panel.row, 1);
    } else if (K > 1) {
      gemm('N', ColumnMajor ? 'T' : 'N', outputs, m, q, 1.0, W + panel.column * K, outputs,
           panel.data, ld, beta, S + panel.row * K, outputs);
    }
  }

  // G += panelᵀ Y on the block's features, in column-major terms Gᵀ += Yᵀ panel; the first block
  // of samples overwrites.
  static void add_transposed(const Panel& panel, const double* Y, int64_t K, double* G) {
    const int m = static_cast<int>(panel.rows), q = static_cast<int>(panel.columns);
    const int outputs = static_cast<int>(K), ld = ColumnMajor ? m : q;
    const double beta = panel.row == 0 ? 0.0 : 1.0;
    if (K == 1) {
      gemv(ColumnMajor ? 'T' : 'N', ld, ColumnMajor ? q : m, 1.0, panel.data, ld, Y + panel.row, 1,
           beta, G + panel.column, 1);
    } else if (K > 1) {
      gemm('N', ColumnMajor ? 'N' : 'T', outputs, q, m, 1.0, Y + panel.row * K, outputs, panel.data,
           ld, beta, G + panel.column * K, outputs);
    }
  }

  void multiply(RowMap rows, const Columns& columns, const double* W, int64_t K, double* S) const {
    if (columns.count == 0) std::fill(S, S + rows.n * K, 0.0);
    for_each_panel(rows, columns, [&](const Panel& panel) { add_scores(panel, W, K, S); });
  }

  void multiply_transposed(RowMap rows, const Columns& columns, const double* Y, int64_t K,
                           double* G) const {
    if (rows.n == 0) std::fill(G, G + columns.count * K, 0.0);
    for_each_panel(rows, columns, [&](const Panel& panel) { add_transposed(panel, Y, K, G); });
  }

  // out (n x count, row-major) = X[:, features].
  void fill_rows(const int32_t* features, int64_t count, double* out) const {
    const RowMap rows = row_map();
    if constexpr (!ColumnMajor) {
      const Columns columns{features, count};
      for (int64_t i = 0; i < n(); ++i) fill_row(rows(i), columns, 0, count, out + i * count);
    } else {
      for (int64_t k = 0; k < count; ++k) {
        const T* source = values_ + features[k] * stored_rows_;
        for (int64_t i = 0; i < n(); ++i) {
          out[i * count + k] = static_cast<double>(source[rows(i)]);
        }
      }
    }
  }

  void eight_columns_stats(const double* block, const double* mass, double* mean, double* variance,
                           double* norm2, double* maxabs) const {
    constexpr int kWidth = 8;
    double total = 0.0, sum[kWidth] = {}, squares[kWidth] = {}, largest[kWidth] = {};
    ColumnRange range[kWidth];
    for (int64_t i = 0; i < n(); ++i) {
      const double p = mass ? mass[i] : 1.0;
      const double* x = block + i * kWidth;
      total += p;
      for (int k = 0; k < kWidth; ++k) sum[k] += p * x[k];
      for (int k = 0; k < kWidth; ++k) squares[k] += x[k] * x[k];
      for (int k = 0; k < kWidth; ++k) largest[k] = larger(largest[k], std::abs(x[k]));
      if (!(p > 0.0)) continue;
      for (int k = 0; k < kWidth; ++k) range[k].add(x[k]);
    }
    double spread[kWidth] = {};
    for (int k = 0; k < kWidth; ++k) {
      norm2[k] = std::sqrt(squares[k]);
      maxabs[k] = largest[k];
      mean[k] = range[k].constant() ? range[k].low : total > 0.0 ? sum[k] / total : 0.0;
    }
    for (int64_t i = 0; i < n(); ++i) {
      const double p = mass ? mass[i] : 1.0;
      const double* x = block + i * kWidth;
      for (int k = 0; k < kWidth; ++k) spread[k] += p * (x[k] - mean[k]) * (x[k] - mean[k]);
    }
    for (int k = 0; k < kWidth; ++k) {
      variance[k] = range[k].constant() || !(total > 0.0) ? 0.0 : spread[k] / total;
    }
  }

  // Entries of a block that is kept (4 MB), and of columns gathered at a time (half a megabyte: in cache);
  // the columns from which on rows are read in place though the block is kept.
  static constexpr int64_t kKeptLimit = int64_t{1} << 19, kGathered = int64_t{1} << 16, kWide = 512;

  const T* values_;
  int64_t stored_rows_;
  mutable Lazy<Workspace> kept_;
};

template <typename T>
std::unique_ptr<Design> make(const T* values, bool column_major, int64_t stored_rows, int64_t d,
                             RowIndex rows) {
  if (column_major)
    return std::make_unique<DenseDesign<T, true>>(values, stored_rows, d, std::move(rows));
  return std::make_unique<DenseDesign<T, false>>(values, stored_rows, d, std::move(rows));
}

}  // namespace

std::unique_ptr<Design> dense_design(const float* values, bool column_major, int64_t stored_rows,
                                     int64_t d, RowIndex rows) {
  return make<float>(values, column_major, stored_rows, d, std::move(rows));
}

std::unique_ptr<Design> dense_design(const double* values, bool column_major, int64_t stored_rows,
                                     int64_t d, RowIndex rows) {
  return make<double>(values, column_major, stored_rows, d, std::move(rows));
}

}  // namespace sparsvm
