// Single samples in a subset of the features, as coordinate ascent reads them.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "design.hpp"
#include "sdca_kernels.hpp"

namespace sparsvm {

/// The entries of one sample: x[e] in the feature with local number index[e].
template <typename T>
struct SampleRow {
  const T* x;
  const int32_t* index;
  int64_t count;
};

/// Ask for the memory of a row that is read next.
template <typename T>
void prefetch_row(const T* x, const int32_t* index, int64_t count) {
  constexpr int64_t line = 64;
  for (int64_t e = 0; e < count; e += line / static_cast<int64_t>(sizeof(T)))
    SPARSVM_PREFETCH(x + e);
  for (int64_t e = 0; e < count; e += line / static_cast<int64_t>(sizeof(int32_t)))
    SPARSVM_PREFETCH(index + e);
}

/// X[:, features] by samples, features in ascending order and numbered 0 ... m-1.
///
/// Sparse data and dense data that are mostly zero are copied in compressed form; all features of a
/// sparse design are read where they are; dense rows are read in place through a small buffer.
template <typename T>
class SampleRows {
 public:
  SampleRows(const Design& design, const std::vector<int32_t>& features, bool compress)
      : design_(design), features_(features), n_(design.n()) {
    if (design.sparse() && std::ssize(features) == design.d()) {
      view_ = design.stored_rows();
    } else if (design.sparse()) {
      restrict_sparse();
    } else if (compress) {
      compress_dense();
    } else {
      buffer_.resize(features.size());
      identity_.resize(features.size());
      std::iota(identity_.begin(), identity_.end(), 0);
    }
  }

  /// Whether rows stay valid after the next call.
  bool stored() const { return buffer_.empty(); }
  void prefetch(int64_t i) const {
    if (!view_.indptr) return;
    const int64_t r = view_.rows(i), first = view_.indptr[r];
    prefetch_row(values() + first, view_.indices + first, view_.indptr[r + 1] - first);
  }

  /// Valid until the next call.
  SampleRow<T> operator()(int64_t i) {
    if (!buffer_.empty()) {
      design_.sample(i, features_.data(), std::ssize(features_), buffer_.data());
      return {typed(buffer_.data()), identity_.data(), std::ssize(features_)};
    }
    const int64_t r = view_.rows(i), first = view_.indptr ? view_.indptr[r] : 0;
    if (!view_.indptr) return {nullptr, nullptr, 0};
    return {values() + first, view_.indices + first, view_.indptr[r + 1] - first};
  }

 private:
  const T* values() const {
    if constexpr (std::is_same_v<T, float>) {
      return view_.singles;
    } else {
      return view_.doubles;
    }
  }
  // Buffered rows are doubles, and only asked for where T is.
  static const T* typed(const double* x) {
    if constexpr (std::is_same_v<T, double>) {
      return x;
    } else {
      return nullptr;
    }
  }
  void use_copy() {
    view_ = {};
    view_.rows = {nullptr, n_};
    if constexpr (std::is_same_v<T, float>) {
      view_.singles = values_.data();
    } else {
      view_.doubles = values_.data();
    }
    view_.indices = indices_.data();
    view_.indptr = indptr_.data();
  }

  void restrict_sparse() {
    const StoredRows all = design_.stored_rows();
    const T* source;
    if constexpr (std::is_same_v<T, float>) {
      source = all.singles;
    } else {
      source = all.doubles;
    }
    std::vector<int32_t> place(static_cast<std::size_t>(design_.d()), -1);
    for (std::size_t k = 0; k < features_.size(); ++k) {
      place[static_cast<std::size_t>(features_[k])] = static_cast<int32_t>(k);
    }
    indptr_.assign(static_cast<std::size_t>(n_) + 1, 0);
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t r = all.rows(i);
      int64_t kept = 0;
      for (int64_t e = all.indptr[r]; e < all.indptr[r + 1]; ++e)
        kept += place[all.indices[e]] >= 0;
      indptr_[i + 1] = indptr_[i] + kept;
    }
    values_.resize(static_cast<std::size_t>(indptr_[n_]));
    indices_.resize(values_.size());
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t r = all.rows(i);
      int64_t at = indptr_[i];
      for (int64_t e = all.indptr[r]; e < all.indptr[r + 1]; ++e) {
        const int32_t k = place[all.indices[e]];
        if (k < 0) continue;
        values_[at] = source[e];
        indices_[at++] = k;
      }
    }
    use_copy();
  }

  void compress_dense() {
    std::vector<double> row(features_.size());
    indptr_.assign(1, 0);
    for (int64_t i = 0; i < n_; ++i) {
      design_.sample(i, features_.data(), std::ssize(features_), row.data());
      for (std::size_t k = 0; k < row.size(); ++k) {
        if (row[k] == 0.0) continue;
        values_.push_back(static_cast<T>(row[k]));
        indices_.push_back(static_cast<int32_t>(k));
      }
      indptr_.push_back(std::ssize(values_));
    }
    use_copy();
  }

  const Design& design_;
  const std::vector<int32_t>& features_;
  int64_t n_;
  StoredRows view_;
  std::vector<T> values_;
  std::vector<int32_t> indices_, identity_;
  std::vector<int64_t> indptr_;
  std::vector<double> buffer_;
};

}  // namespace sparsvm
