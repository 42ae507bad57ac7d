// The design matrix: what every solver sees of the data.
//
// A Design is a read-only view X (n x d) of the caller's arrays, seen through a row index: sample i
// of the canonical order is row rows[i] of the caller's matrix. Values may be float or double, the
// results are always double. Solvers use this interface and know nothing of the storage.
//
// Layouts: S, Y are n x K row-major ("sample-major"), W, G are d x K row-major ("feature-major").
//
// Reproducibility: every sum over samples runs in canonical order with a blocking that depends on
// the sizes alone, so results do not depend, to the last bit, on the order of the caller's rows.
//
// Zeros: a feature whose weights are all zero, or a sample whose row of Y is all zero, may be left
// unread; a NaN there does not reach the result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace sparsvm {

enum class Layout { dense_rows, dense_cols, csr, csc };

using RowIndex = std::optional<std::vector<int64_t>>;

// The samples in canonical order: sample i is row map[i] of the storage, or row i if map is null.
struct RowMap {
  const int64_t* map = nullptr;
  int64_t n = 0;
  int64_t operator()(int64_t i) const { return map ? map[i] : i; }
};

// Indices of the caller's sparse matrix, each clamped as it is read. They were checked, but another
// thread of the caller may write to them at any time: what is read may then be wrong, but never points
// outside. (A private copy would take a third of the data's memory.)
struct Indices {
  const int32_t* stored = nullptr;
  uint32_t last = 0;  // the largest there may be

  int32_t operator[](int64_t e) const { return operator()(e, 0, last); }
  // Clamped to first ... first + range.
  int32_t operator()(int64_t e, uint32_t first, uint32_t range) const {
    const uint32_t above = static_cast<uint32_t>(stored[e]) - first;
    return static_cast<int32_t>(first + (above < range ? above : range));
  }
  Indices operator+(int64_t entries) const { return {stored + entries, last}; }
};

// Compressed rows of a sparse design: sample i has the entries indptr[r] ... indptr[r + 1] - 1 with
// r = rows(i). One of singles and doubles is set, as the scalar of the storage has it.
struct StoredRows {
  const float* singles = nullptr;
  const double* doubles = nullptr;
  Indices indices;
  const int64_t* indptr = nullptr;
  RowMap rows;
};

// Dense rows where they lie: sample i is the row at values + rows(i)·stride.
template <typename T>
struct DenseRows {
  const T* values;
  int64_t stride;
  RowMap rows;
};

// Uninitialised doubles on a 64-byte boundary.
class Workspace {
 public:
  explicit Workspace(int64_t count) : raw_(new double[static_cast<std::size_t>(count) + 8]) {
    const auto address = reinterpret_cast<std::uintptr_t>(raw_.get());
    data_ = raw_.get() + (64 - address % 64) % 64 / sizeof(double);
  }
  double* data() const { return data_; }

 private:
  std::unique_ptr<double[]> raw_;
  double* data_;
};

// Built at most once, by whichever thread comes first.
template <typename T>
class Lazy {
 public:
  template <typename Build>
  const T& get(Build build) {
    const T* ready = ready_.load(std::memory_order_acquire);
    if (ready) return *ready;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!value_) {
      value_ = std::make_unique<const T>(build());
      ready_.store(value_.get(), std::memory_order_release);
    }
    return *value_;
  }
  const T* peek() const { return ready_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::unique_ptr<const T> value_;
  std::atomic<const T*> ready_{nullptr};
};

// Sparse columns in canonical order of samples; the values are floats if `single`, else doubles.
struct SparseColumns {
  const void* values;
  const int32_t* rows;
  const int64_t* starts;
  bool single;
};

// One column: `values` are floats if `single`, otherwise doubles.
struct ColumnView {
  const void* values;
  const int32_t* rows;
  int64_t count;
  bool single;
};

// Nothing changes it: it may be read by several threads at once.
class Design {
 public:
  // rows: the row index, or nothing for all stored rows in their own order.
  Design(Layout layout, int64_t stored_rows, int64_t d, RowIndex rows)
      : layout_(layout), n_(rows ? static_cast<int64_t>(rows->size()) : stored_rows), d_(d),
        rows_(std::move(rows)) {}
  virtual ~Design() = default;
  Design(const Design&) = delete;
  Design& operator=(const Design&) = delete;

  int64_t n() const { return n_; }
  int64_t d() const { return d_; }
  Layout layout() const { return layout_; }
  bool sparse() const { return layout_ == Layout::csr || layout_ == Layout::csc; }

  // out (n x m, column-major) = X[:, features].
  virtual void gather_columns(const int32_t* features, int64_t m, double* out) const = 0;

  // S (n x K) = X W. Features whose weights are all zero are skipped where that pays.
  virtual void scores(const double* W, int64_t K, double* S) const = 0;
  // S (n x K) = X[:, features] Wm, with Wm m x K.
  virtual void scores_subset(const int32_t* features, int64_t m, const double* Wm, int64_t K,
                             double* S) const = 0;
  // S ((last − first) x K) = X[first:last, features] Wm; the features ascending and distinct.
  virtual void scores_range(int64_t first, int64_t last, const int32_t* features, int64_t m,
                            const double* Wm, int64_t K, double* S) const {
    std::vector<double> row(static_cast<std::size_t>(m));
    std::fill(S, S + (last - first) * K, 0.0);
    for (int64_t i = first; i < last; ++i) {
      sample(i, features, m, row.data());
      for (int64_t j = 0; j < m; ++j)
        for (int64_t k = 0; k < K; ++k) S[(i - first) * K + k] += row[j] * Wm[j * K + k];
    }
  }

  // G (d x K) = Xᵀ Y.
  virtual void transposed(const double* Y, int64_t K, double* G) const = 0;
  // G (m x K) = X[:, features]ᵀ Y.
  virtual void transposed_subset(const int32_t* features, int64_t m, const double* Y, int64_t K,
                                 double* G) const = 0;
  // G ((last − first) x K) = X[:, first:last]ᵀ Y. No companion is built for it. Of consecutive
  // ranges, with the same Y, `places` (n zeros at first) may remember where the next one begins.
  virtual void transposed_range(int64_t first, int64_t last, const double* Y, int64_t K, double* G,
                                int32_t* /*places*/ = nullptr) const {
    std::vector<int32_t> features(static_cast<std::size_t>(last - first));
    std::iota(features.begin(), features.end(), static_cast<int32_t>(first));
    transposed_subset(features.data(), last - first, Y, K, G);
  }

  // Per feature, d values each: the mean and variance under the weights `mass` (n values, or null
  // for equal weights; divided by their sum), ‖x_j‖₂ and max_i |x_ij| over all samples. A feature
  // that is constant where mass > 0 has exactly that mean and exactly zero variance.
  virtual void column_stats(const double* mass, double* mean, double* variance, double* norm2,
                            double* maxabs) const = 0;

  // ‖x_j‖₂ of every feature, as column_stats has it, for a tenth of the time.
  virtual void column_norms(double* norm2) const = 0;

  // out_i = Σ_j |x_ij| w_j, the scale of the rounding error of a score.
  virtual void abs_scores(const double* w, double* out) const = 0;

  // out_i = the largest w_j >= 0 of the features that sample i has; dense samples have all.
  virtual void largest_weights(const double* w, double* out) const {
    double most = 0.0;
    for (int64_t j = 0; j < d_; ++j) most = w[j] > most ? w[j] : most;
    for (int64_t i = 0; i < n_; ++i) out[i] = most;
  }

  // out (m) = X[i, features]; the features in ascending order.
  virtual void sample(int64_t i, const int32_t* features, int64_t m, double* out) const = 0;
  // The rows of a sparse design; nothing is set for a dense one. CSC builds its companion by rows.
  virtual StoredRows stored_rows() const { return {}; }
  // Whether single precision holds every entry exactly.
  virtual bool single_precision() const = 0;
  // The columns where they are sparse (a companion may be built for that), nothing otherwise.
  virtual std::optional<SparseColumns> sparse_columns() const { return std::nullopt; }

  // Bytes of the caller's values and indices.
  virtual int64_t data_bytes() const = 0;

 protected:
  RowMap row_map() const { return {rows_ ? rows_->data() : nullptr, n_}; }
  // Not the same as a null map: an empty row index may have no address.
  bool indexed() const { return rows_.has_value(); }

  // The features with a non-zero (or NaN) weight.
  std::vector<int32_t> active_features(const double* W, int64_t K) const {
    std::vector<int32_t> active;
    for (int64_t j = 0; j < d_; ++j) {
      const double *w = W + j * K, *end = w + K;
      if (std::any_of(w, end, [](double value) { return value != 0.0; }))
        active.push_back(static_cast<int32_t>(j));
    }
    return active;
  }

  // Wm (m x K) = the listed rows of W.
  static std::vector<double> take_rows(const double* W, int64_t K,
                                       const std::vector<int32_t>& features) {
    std::vector<double> out;
    out.reserve(features.size() * static_cast<std::size_t>(K));
    for (const int32_t j : features) out.insert(out.end(), W + j * K, W + j * K + K);
    return out;
  }

 private:
  Layout layout_;
  int64_t n_, d_;
  RowIndex rows_;
};

// The larger value; a NaN on either side stays.
inline double larger(double a, double b) { return b > a || b != b ? b : a; }

// Tells whether all values were the same, which rounded sums cannot.
struct ColumnRange {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double x) {
    low = -larger(-low, -x);
    high = larger(high, x);
  }
  bool constant() const { return low == high; }
};

}  // namespace sparsvm
