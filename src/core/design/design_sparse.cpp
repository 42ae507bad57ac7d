// Sparse designs, CSR or CSC, float or double; int32 indices, int64 indptr, entries sorted and
// distinct within each row or column (checked where the arrays come in).
//
// Copies. CSR through any row index and CSC without one are used as they are. A companion is built
// once, on first need, and kept:
//   CSR: by columns, for gather_columns, transposed_subset and whoever asks for sparse_columns;
//   CSC with a row index: by rows for those who ask for rows, otherwise the same columns with samples
//     in canonical order. Products use the columns, or the rows where only these are there, so that
//     a solver that goes by rows has no columns; statistics of columns need neither;
//   CSC: by rows, for the methods restricted to samples.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "design/design.hpp"
#include "design/products.hpp"

namespace sparsvm {

namespace {

// The largest index below `minors`; without any there are no entries either.
uint32_t last_of(int64_t minors) { return static_cast<uint32_t>(std::max<int64_t>(minors - 1, 0)); }

template <typename T>
struct CompressedCopy {
  std::vector<T> values;
  std::vector<int32_t> indices;
  std::vector<int64_t> indptr;
  Compressed<T> view(int64_t minors) const {
    return {values.data(), {indices.data(), last_of(minors)}, indptr.data()};
  }
};

// The other orientation of `in`, whose majors are taken in the order of `majors`. Entries come out
// sorted because the majors are visited in turn.
template <typename T>
CompressedCopy<T> turn(const Compressed<T>& in, RowMap majors, int64_t minors) {
  CompressedCopy<T> out;
  out.indptr.assign(static_cast<std::size_t>(minors) + 1, 0);
  int64_t* start = out.indptr.data();
  for (int64_t i = 0; i < majors.n; ++i) {
    const int64_t r = majors(i);
    for (int64_t e = in.indptr[r]; e < in.indptr[r + 1]; ++e) ++start[in.indices[e] + 1];
  }
  std::partial_sum(out.indptr.begin(), out.indptr.end(), out.indptr.begin());
  out.values.resize(static_cast<std::size_t>(start[minors]));
  out.indices.resize(static_cast<std::size_t>(start[minors]));
  std::vector<int64_t> next(out.indptr.begin(), out.indptr.end() - 1);
  for (int64_t i = 0; i < majors.n; ++i) {
    const int64_t r = majors(i);
    for (int64_t e = in.indptr[r]; e < in.indptr[r + 1]; ++e) {
      const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(in.indices[e])]++);
      if (place >= out.indices.size()) continue;  // they were others when they were counted
      out.values[place] = in.values[e];
      out.indices[place] = static_cast<int32_t>(i);
    }
  }
  return out;
}

// to += x from; one output, the two-class case, is worth its branch (1.3 x in a CSR product).
inline void add_scaled(double x, const double* __restrict from, double* __restrict to, int64_t K) {
  if (K == 1) {
    *to += x * *from;
    return;
  }
  for (int64_t k = 0; k < K; ++k) to[k] += x * from[k];
}

template <typename T>
class SparseDesign final : public Design {
 public:
  SparseDesign(const T* values, const int32_t* indices, std::vector<int64_t> indptr,
               bool by_columns, int64_t stored_rows, int64_t d, RowIndex rows)
      : Design(by_columns ? Layout::csc : Layout::csr, stored_rows, d, std::move(rows)),
        indptr_(std::move(indptr)), by_columns_(by_columns), stored_rows_(stored_rows) {
    // These columns are handed out as they are (see sparse_columns).
    if (by_columns && !indexed()) own_.assign(indices, indices + indptr_.back());
    given_ = {values,
              {own_.empty() ? indices : own_.data(), last_of(by_columns ? stored_rows : d)},
              indptr_.data()};
    // What was copied may have changed since its check.
    for (int32_t& index : own_) index = Indices{&index, given_.indices.last}[0];
  }

  int64_t data_bytes() const override {
    return given_.indptr[by_columns_ ? d() : stored_rows_] *
           static_cast<int64_t>(sizeof(T) + sizeof(int32_t));
  }

  void gather_columns(const int32_t* features, int64_t m, double* out) const override {
    const Compressed<T> columns = by_column();
    std::fill(out, out + n() * m, 0.0);
    for (int64_t k = 0; k < m; ++k) {
      double* target = out + k * n();
      const int32_t j = features[k];
      for (int64_t e = columns.indptr[j]; e < columns.indptr[j + 1]; ++e) {
        target[columns.indices[e]] = static_cast<double>(columns.values[e]);
      }
    }
  }

  StoredRows stored_rows() const override {
    const Compressed<T> rows = by_row();
    StoredRows out;
    if constexpr (sizeof(T) == 4) {
      out.singles = rows.values;
    } else {
      out.doubles = rows.values;
    }
    out.indices = rows.indices;
    out.indptr = rows.indptr;
    out.rows = row_map();
    return out;
  }

  void sample(int64_t i, const int32_t* features, int64_t m, double* out) const override {
    const StoredRows all = stored_rows();
    const int64_t r = all.rows(i);
    int64_t e = all.indptr[r];
    for (int64_t k = 0; k < m; ++k) {
      while (e < all.indptr[r + 1] && all.indices[e] < features[k]) ++e;
      const bool found = e < all.indptr[r + 1] && all.indices[e] == features[k];
      out[k] = !found ? 0.0 : all.singles ? static_cast<double>(all.singles[e]) : all.doubles[e];
    }
  }

  bool single_precision() const override { return sizeof(T) == 4; }

  void scores(const double* W, int64_t K, double* S) const override {
    if (!goes_by_row()) {
      scatter_product(by_column(), {nullptr, d()}, n(), W, K, S);
      return;
    }
    const auto active = active_features(W, K);
    // Reading one place per entry instead of K weights pays once most weights are zero.
    if (4 * static_cast<int64_t>(active.size()) <= d()) {
      masked_scores(active.data(), std::ssize(active), take_rows(W, K, active).data(), K, 0, n(),
                    S);
    } else {
      gather_product(by_row(), row_map(), W, K, S);
    }
  }

  void scores_subset(const int32_t* features, int64_t m, const double* Wm, int64_t K,
                     double* S) const override {
    // Sorted and without repetition, so that the sum over features runs in the same order, and
    // gives the same bits, whether rows or columns are walked.
    std::vector<int64_t> order(static_cast<std::size_t>(m));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return features[a] < features[b]; });
    std::vector<int32_t> distinct;
    std::vector<double> weights;
    for (const int64_t k : order) {
      const double* w = Wm + k * K;
      if (!distinct.empty() && distinct.back() == features[k]) {
        add_scaled(1.0, w, weights.data() + weights.size() - K, K);
      } else {
        distinct.push_back(features[k]);
        weights.insert(weights.end(), w, w + K);
      }
    }
    if (!goes_by_row() || column_copy_.peek()) {
      const Compressed<T> columns = by_column();
      std::fill(S, S + n() * K, 0.0);
      for (std::size_t k = 0; k < distinct.size(); ++k) {
        const double* w = weights.data() + static_cast<int64_t>(k) * K;
        const int32_t j = distinct[k];
        for (int64_t e = columns.indptr[j]; e < columns.indptr[j + 1]; ++e) {
          add_scaled(static_cast<double>(columns.values[e]), w, S + columns.indices[e] * K, K);
        }
      }
    } else {
      masked_scores(distinct.data(), std::ssize(distinct), weights.data(), K, 0, n(), S);
    }
  }

  void scores_range(int64_t first, int64_t last, const int32_t* features, int64_t m,
                    const double* Wm, int64_t K, double* S) const override {
    if (goes_by_row()) return masked_scores(features, m, Wm, K, first, last, S);
    const Compressed<T> columns = by_column();
    std::fill(S, S + (last - first) * K, 0.0);
    for (int64_t k = 0; k < m; ++k) {
      const int32_t* all = columns.indices.stored;
      const int32_t* end = all + columns.indptr[features[k] + 1];
      const int32_t* at =
          std::lower_bound(all + columns.indptr[features[k]], end, static_cast<int32_t>(first));
      for (; at < end && *at < last; ++at) {
        const double x = static_cast<double>(columns.values[at - all]);
        add_scaled(x, Wm + k * K, S + (*at - first) * K, K);
      }
    }
  }

  void transposed(const double* Y, int64_t K, double* G) const override {
    if (goes_by_row()) {
      scatter_product(by_row(), row_map(), d(), Y, K, G);
    } else {
      gather_product(by_column(), {nullptr, d()}, Y, K, G);
    }
  }

  void transposed_subset(const int32_t* features, int64_t m, const double* Y, int64_t K,
                         double* G) const override {
    const std::vector<int64_t> majors(features, features + m);
    gather_product(by_column(), {majors.data(), m}, Y, K, G);
  }

  void transposed_range(int64_t first, int64_t last, const double* Y, int64_t K, double* G,
                        int32_t* places = nullptr) const override {
    if (!goes_by_row()) {
      std::vector<int64_t> majors(static_cast<std::size_t>(last - first));
      std::iota(majors.begin(), majors.end(), first);
      gather_product(by_column(), {majors.data(), last - first}, Y, K, G);
      return;
    }
    scatter_range(by_row(), row_map(), first, last, places, Y, K, G);
  }

  void column_norms(double* norm2) const override {
    std::fill(norm2, norm2 + d(), 0.0);
    for_each_entry([&](int64_t, int64_t j, double x) { norm2[j] += x * x; });
    for (int64_t j = 0; j < d(); ++j) norm2[j] = std::sqrt(norm2[j]);
  }

  void column_stats(const double* mass, double* mean, double* variance, double* norm2,
                    double* maxabs) const override {
    const auto size = static_cast<std::size_t>(d());
    std::vector<ColumnRange> range(size);
    std::vector<int64_t> entries(size, 0);
    std::vector<double> stored_mass(size, 0.0);
    double total = 0.0;
    int64_t weighted = 0;
    for (int64_t i = 0; i < n(); ++i) {
      total += mass ? mass[i] : 1.0;
      weighted += !mass || mass[i] > 0.0;
    }
    for (double* out : {mean, variance, norm2, maxabs}) std::fill(out, out + d(), 0.0);
    for_each_entry([&](int64_t i, int64_t j, double x) {
      const double p = mass ? mass[i] : 1.0;
      const auto at = static_cast<std::size_t>(j);
      mean[j] += p * x;
      norm2[j] += x * x;
      maxabs[j] = larger(maxabs[j], std::abs(x));
      stored_mass[at] += p;
      if (p > 0.0) range[at].add(x), ++entries[at];
    });
    for (int64_t j = 0; j < d(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      norm2[j] = std::sqrt(norm2[j]);
      if (entries[at] < weighted) range[at].add(0.0);
      mean[j] = range[at].constant() ? range[at].low : total > 0.0 ? mean[j] / total : 0.0;
    }
    for_each_entry([&](int64_t i, int64_t j, double x) {
      variance[j] += (mass ? mass[i] : 1.0) * (x - mean[j]) * (x - mean[j]);
    });
    for (int64_t j = 0; j < d(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      const double absent = entries[at] < weighted ? std::max(0.0, total - stored_mass[at]) : 0.0;
      const double spread = variance[j] + absent * mean[j] * mean[j];
      variance[j] = range[at].constant() || !(total > 0.0) ? 0.0 : spread / total;
    }
  }

  std::optional<SparseColumns> sparse_columns() const override {
    const Compressed<T> columns = by_column();
    return SparseColumns{columns.values, columns.indices.stored, columns.indptr, sizeof(T) == 4};
  }

  void abs_scores(const double* w, double* out) const override {
    std::fill(out, out + n(), 0.0);
    for_each_entry([&](int64_t i, int64_t j, double x) { out[i] += std::abs(x) * w[j]; });
  }

  void largest_weights(const double* w, double* out) const override {
    std::fill(out, out + n(), 0.0);
    for_each_entry([&](int64_t i, int64_t j, double) { out[i] = std::max(out[i], w[j]); });
  }

 private:
  // Columns with their samples in canonical order.
  Compressed<T> by_column() const {
    const RowMap rows = row_map();
    if (by_columns_ && !indexed()) return given_;
    return column_copy_
        .get([&] {
      if (!by_columns_) return turn(given_, rows, d());
      if (const auto* stored = row_copy_.peek()) return turn(stored->view(d()), rows, d());
      // Turned twice: sorting each column by canonical position would cost a logarithm more.
      const CompressedCopy<T> stored = turn(given_, RowMap{nullptr, d()}, stored_rows_);
      return turn(stored.view(d()), rows, d());
    }).view(n());
  }

  // Rows as they are stored; row_map() tells which are samples.
  Compressed<T> by_row() const {
    if (!by_columns_) return given_;
    return row_copy_.get([&] {
      return turn(given_, RowMap{nullptr, d()}, stored_rows_);
    }).view(d());
  }

  // Whether products read rows.
  bool goes_by_row() const {
    return !by_columns_ || (indexed() && row_copy_.peek() && !column_copy_.peek());
  }

  // visit(sample, feature, value); within a feature, samples come in canonical order.
  template <typename Visit>
  void for_each_entry(Visit visit) const {
    if (by_columns_ && indexed() && !row_copy_.peek() && !column_copy_.peek()) {
      return for_each_given(visit);
    }
    const bool by_columns = !goes_by_row();
    const Compressed<T> view = by_columns ? by_column() : by_row();
    const RowMap majors = by_columns ? RowMap{nullptr, d()} : row_map();
    for (int64_t i = 0; i < majors.n; ++i) {
      const int64_t r = majors(i);
      for (int64_t e = view.indptr[r]; e < view.indptr[r + 1]; ++e) {
        const int64_t minor = view.indices[e];
        visit(by_columns ? minor : i, by_columns ? i : minor, static_cast<double>(view.values[e]));
      }
    }
  }

  // The same for an indexed CSC of which nothing has been built: every column is put in order.
  template <typename Visit>
  void for_each_given(Visit visit) const {
    const RowMap map = row_map();
    std::vector<int64_t> starts(static_cast<std::size_t>(stored_rows_) + 1, 0);
    for (int64_t i = 0; i < map.n; ++i) ++starts[static_cast<std::size_t>(map(i)) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<int64_t> next(starts.begin(), starts.end() - 1), samples(map.n);
    for (int64_t i = 0; i < map.n; ++i) samples[next[static_cast<std::size_t>(map(i))]++] = i;
    std::vector<std::pair<int64_t, T>> column;
    for (int64_t j = 0; j < d(); ++j) {
      column.clear();
      for (int64_t e = given_.indptr[j]; e < given_.indptr[j + 1]; ++e) {
        const auto r = static_cast<std::size_t>(given_.indices[e]);
        for (int64_t s = starts[r]; s < starts[r + 1]; ++s) {
          column.emplace_back(samples[static_cast<std::size_t>(s)], given_.values[e]);
        }
      }
      std::sort(column.begin(), column.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [i, x] : column) visit(i, j, static_cast<double>(x));
    }
  }

  // S = X[first:last, features] Wm by walking the rows of CSR; features sorted and distinct.
  void masked_scores(const int32_t* features, int64_t m, const double* Wm, int64_t K, int64_t first,
                     int64_t last, double* S) const {
    std::vector<int32_t> place(static_cast<std::size_t>(d()), -1);
    for (int64_t k = 0; k < m; ++k) place[features[k]] = static_cast<int32_t>(k);
    std::fill(S, S + (last - first) * K, 0.0);
    const RowMap map = row_map();
    const Compressed<T> rows = by_row();
    for (int64_t i = first; i < last; ++i) {
      const int64_t r = map(i);
      for (int64_t e = rows.indptr[r]; e < rows.indptr[r + 1]; ++e) {
        const int32_t k = place[static_cast<std::size_t>(rows.indices[e])];
        if (k >= 0)
          add_scaled(static_cast<double>(rows.values[e]), Wm + k * K, S + (i - first) * K, K);
      }
    }
  }

  std::vector<int64_t> indptr_;
  std::vector<int32_t> own_;  // of columns that are handed out
  Compressed<T> given_;
  bool by_columns_;
  int64_t stored_rows_;
  mutable Lazy<CompressedCopy<T>> column_copy_, row_copy_;
};

}  // namespace

std::unique_ptr<Design> sparse_design(const float* values, const int32_t* indices,
                                      std::vector<int64_t> indptr, bool by_columns,
                                      int64_t stored_rows, int64_t d, RowIndex rows) {
  return std::make_unique<SparseDesign<float>>(values, indices, std::move(indptr), by_columns,
                                               stored_rows, d, std::move(rows));
}

std::unique_ptr<Design> sparse_design(const double* values, const int32_t* indices,
                                      std::vector<int64_t> indptr, bool by_columns,
                                      int64_t stored_rows, int64_t d, RowIndex rows) {
  return std::make_unique<SparseDesign<double>>(values, indices, std::move(indptr), by_columns,
                                                stored_rows, d, std::move(rows));
}

}  // namespace sparsvm
