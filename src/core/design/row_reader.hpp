// Single samples in a subset of the features, as coordinate ascent reads them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "design/design.hpp"
#include "prox/prox.hpp"
#include "support/mmap_vector.hpp"
#include "support/simd.hpp"

namespace sparsvm {

// -----------------------------------------------------------------
// The inner loops of dual coordinate ascent: sums of scaled rows, and rows minus multiples.
//
// Sums of up to twenty outputs stay in registers while the rows of a sample pass by.

namespace kernels {

// What is made of a row's entries: nothing, v − t beyond t, v + t below −t and 0 between, or the
// rest of them, which is at most t.
enum class Entries { plain, shrunk, clipped };

// s += Σ_e weight[e] · (row[e] of V, shrunk or clipped at level[e]), for `count` rows of K, on the
// outputs k ... k + 4·vectors − 1.
template <Entries kind, int vectors, typename T>
SPARSVM_INLINE void add_packs(const double* V, int64_t K, int64_t k, const int32_t* row,
                              const T* weight, const double* level, int64_t count, double* s) {
  Simd sum[vectors];
  for (int c = 0; c < vectors; ++c) sum[c] = SPARSVM_LOAD(s + k + 4 * c);
  for (int64_t e = 0; e < count; ++e) {
    const double* v = V + row[e] * K + k;
    const double w = static_cast<double>(weight[e]);
    for (int c = 0; c < vectors; ++c) {
      Simd term = SPARSVM_LOAD(v + 4 * c);
      if constexpr (kind != Entries::plain) {
        Simd over = term - level[e], under = Simd{} - term - level[e];
        keep_positive(over);
        keep_positive(under);
        term = kind == Entries::shrunk ? over - under : term - (over - under);
      }
      sum[c] += term * w;
    }
  }
  for (int c = 0; c < vectors; ++c) SPARSVM_STORE(s + k + 4 * c, sum[c]);
}

// The same for all outputs: the rows are read once for every 20 of them.
template <Entries kind, typename T>
SPARSVM_INLINE void add_rows(const double* V, int64_t K, const int32_t* row, const T* weight,
                             const double* level, int64_t count, double* s) {
  int64_t k = 0;
  for (; k + 20 <= K; k += 20) add_packs<kind, 5>(V, K, k, row, weight, level, count, s);
  for (; k + 8 <= K; k += 8) add_packs<kind, 2>(V, K, k, row, weight, level, count, s);
  for (; k + 4 <= K; k += 4) add_packs<kind, 1>(V, K, k, row, weight, level, count, s);
  for (; k < K; ++k) {
    double sum = s[k];
    for (int64_t e = 0; e < count; ++e) {
      const double v = V[row[e] * K + k];
      const double shrunk = kind == Entries::plain ? 0.0 : soft(v, level[e]);
      sum += static_cast<double>(weight[e]) * (kind == Entries::shrunk ? shrunk : v - shrunk);
    }
    s[k] = sum;
  }
}

SPARSVM_DISPATCH inline void add_scaled_rows(const double* V, int64_t K, const int32_t* row,
                                             const double* weight, int64_t count, double* s) {
  add_rows<Entries::plain>(V, K, row, weight, nullptr, count, s);
}
SPARSVM_DISPATCH inline void add_scaled_rows(const double* V, int64_t K, const int32_t* row,
                                             const float* weight, int64_t count, double* s) {
  add_rows<Entries::plain>(V, K, row, weight, nullptr, count, s);
}
SPARSVM_DISPATCH inline void add_shrunk_rows(const double* V, int64_t K, const int32_t* row,
                                             const double* weight, const double* level,
                                             int64_t count, double* s) {
  add_rows<Entries::shrunk>(V, K, row, weight, level, count, s);
}
SPARSVM_DISPATCH inline void add_clipped_rows(const double* V, int64_t K, const int32_t* row,
                                              const double* weight, const double* level,
                                              int64_t count, double* s) {
  add_rows<Entries::clipped>(V, K, row, weight, level, count, s);
}

// The root T of Σ_k (|v_k| − T)₊ = level, or 0 where there is none, by Newton's method from an
// estimate: the sum is convex and piecewise linear in T, so that steps come from below after the
// first one, and end when as many entries are above T as before; rounding ends them, too.
SPARSVM_DISPATCH inline double clipping_level(const double* v, int64_t K, double level,
                                              double estimate) {
  double T = estimate, before = -1.0;
  for (int64_t pass = 0; pass < K + 3; ++pass) {
    Simd sums = {}, counts = {}, bound = Simd{} + T;
    int64_t k = 0;
    for (; k + 4 <= K; k += 4) {
      Simd size = SPARSVM_LOAD(v + k);
      keep_larger(size, Simd{} - size);
      add_above(size, bound, sums, counts);
    }
    double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double count = (counts[0] + counts[1]) + (counts[2] + counts[3]);
    for (; k < K; ++k) {
      const double size = std::abs(v[k]);
      sum += size > T ? size : 0.0;
      count += size > T ? 1.0 : 0.0;
    }
    if (count == before) return T;
    const double next = count > 0.0 ? (sum - level) / count : 0.0;
    if (!(next > 0.0) && T == 0.0) return 0.0;
    // Far above the root a step may lead below 0, and above all entries nothing tells where to.
    before = next > 0.0 ? count : -1.0;
    T = next > 0.0 ? next : 0.0;
  }
  return T;
}

// V_j −= gain_j x_e Δᵀ on the listed outputs, for the features j = index[e]; no gain stands for 1.
template <typename T>
void subtract_scaled_rows(double* V, int64_t K, const double* gain, const T* x,
                          const int32_t* index, int64_t count, const double* delta,
                          const int32_t* moved, int64_t n_moved) {
  for (int64_t e = 0; e < count; ++e) {
    double* v = V + index[e] * K;
    const double weight = static_cast<double>(x[e]) * (gain ? gain[index[e]] : 1.0);
    for (int64_t c = 0; c < n_moved; ++c) v[moved[c]] -= weight * delta[c];
  }
}

// What is kept about a row of V to tell quickly that it shrinks to zero.
enum class RowSize { most, sum, squares };

// V_j −= x_e Δᵀ on the listed outputs, for the features j = index[e]; size follows, `most` as a
// bound from above.
template <RowSize kind, typename T>
void subtract_rows(double* V, int64_t K, double* size, const T* x, const int32_t* index,
                   int64_t count, const double* delta, const int32_t* moved, int64_t n_moved) {
  for (int64_t e = 0; e < count; ++e) {
    const int64_t j = index[e];
    double* v = V + j * K;
    const double weight = static_cast<double>(x[e]);
    double bound = size[j];
    for (int64_t c = 0; c < n_moved; ++c) {
      const double step = weight * delta[c], old = v[moved[c]], now = old - step;
      v[moved[c]] = now;
      if constexpr (kind == RowSize::squares) {
        bound -= step * (old + now);
      } else if constexpr (kind == RowSize::sum) {
        bound += std::abs(now) - std::abs(old);
      } else {
        bound = std::abs(now) > bound ? std::abs(now) : bound;
      }
    }
    size[j] = bound;
  }
}

}  // namespace kernels

// The entries of one sample: x[e] in the feature with local number index[e].
template <typename T>
struct SampleRow {
  const T* x;
  const int32_t* index;
  int64_t count;
};

// Ask for the memory of a row that is read next.
template <typename T>
void prefetch_row(const T* x, const int32_t* index, int64_t count) {
  constexpr int64_t kLine = 64;  // bytes that memory hands over at once
  for (int64_t e = 0; e < count; e += kLine / static_cast<int64_t>(sizeof(T)))
    SPARSVM_PREFETCH(x + e);
  for (int64_t e = 0; e < count; e += kLine / static_cast<int64_t>(sizeof(int32_t)))
    SPARSVM_PREFETCH(index + e);
}

// X[:, features] by samples, features in ascending order and numbered 0 ... m-1.
//
// All features of a sparse design are read where they are. Of some of them only the places within
// the rows are held, in a third of the memory of a copy, and a row is put together when it is asked
// for; where they have most of the entries, every entry is asked whether it is theirs. Dense data that are mostly zero are copied in compressed form; dense rows are read in place
// through a small buffer.
template <typename T>
class SampleRows {
 public:
  SampleRows(const Design& design, const std::vector<int32_t>& features, bool compress)
      : design_(design), features_(features), n_(design.n()) {
    if (design.sparse()) {
      view_ = design.stored_rows();
      int64_t longest = 0;
      for (int64_t i = 0; i < n_; ++i) {
        const int64_t r = view_.rows(i);
        longest = std::max(longest, view_.indptr[r + 1] - view_.indptr[r]);
      }
      slots_.resize(static_cast<std::size_t>(longest));
      if (std::ssize(features) < design.d()) restrict_sparse(longest);
    } else if (compress) {
      compress_dense();
    } else {
      buffer_.resize(features.size());
      identity_.resize(features.size());
      std::iota(identity_.begin(), identity_.end(), 0);
    }
  }

  // Whether rows are read where they are stored.
  bool stored() const { return buffer_.empty() && !restricted(); }
  // A row where it is stored, to ask for memory only: its numbers are not checked.
  SampleRow<T> as_stored(int64_t i) const {
    if (!view_.indptr) return {nullptr, nullptr, 0};
    const int64_t r = view_.rows(i), first = view_.indptr[r];
    return {values() + first, view_.indices.stored + first, view_.indptr[r + 1] - first};
  }
  void prefetch(int64_t i) const {
    if (!view_.indptr) return;
    const int64_t r = view_.rows(i), first = view_.indptr[r];
    if (restricted() && place_.empty()) {
      for (int64_t e = starts_[i]; e < starts_[i + 1] && !small_.empty(); e += 16)
        SPARSVM_PREFETCH(&small_[e]);
      for (int64_t e = first; e < view_.indptr[r + 1]; e += 8) SPARSVM_PREFETCH(values() + e);
      return;
    }
    prefetch_row(values() + first, view_.indices.stored + first, view_.indptr[r + 1] - first);
  }

  // Valid until the next call.
  SampleRow<T> operator()(int64_t i) {
    if (!buffer_.empty()) {
      design_.sample(i, features_.data(), std::ssize(features_), buffer_.data());
      return {typed(buffer_.data()), identity_.data(), std::ssize(features_)};
    }
    const int64_t r = view_.rows(i), first = view_.indptr ? view_.indptr[r] : 0;
    if (!view_.indptr) return {nullptr, nullptr, 0};
    if (!place_.empty()) return picked(i);
    if (restricted()) return small_.empty() ? put_together(i, large_) : put_together(i, small_);
    const int64_t count = view_.indptr[r + 1] - first;
    if (slots_.empty()) return {values() + first, view_.indices.stored + first, count};
    // Clamped once, since the numbers are read several times.
    for (int64_t e = 0; e < count; ++e) slots_[e] = view_.indices[first + e];
    return {values() + first, slots_.data(), count};
  }

 private:
  template <typename Number>
  struct Kept {
    Number offset = 0, slot = 0;  // place in the row, local number of the feature
  };

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
    view_.indices = {indices_.data(), static_cast<uint32_t>(features_.size())};
    view_.indptr = indptr_.data();
  }

  bool restricted() const { return !starts_.empty() || !place_.empty(); }

  // Find the entries of the features in every row.
  void restrict_sparse(int64_t longest) {
    std::vector<int32_t> place(static_cast<std::size_t>(design_.d()), -1);
    for (std::size_t k = 0; k < features_.size(); ++k) {
      place[static_cast<std::size_t>(features_[k])] = static_cast<int32_t>(k);
    }
    starts_.assign(static_cast<std::size_t>(n_) + 1, 0);
    int64_t entries = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t r = view_.rows(i);
      int64_t kept = 0;
      for (int64_t e = view_.indptr[r]; e < view_.indptr[r + 1]; ++e)
        kept += place[view_.indices[e]] >= 0;
      starts_[i + 1] = starts_[i] + kept;
      entries += view_.indptr[r + 1] - view_.indptr[r];
    }
    row_.resize(static_cast<std::size_t>(longest));
    if (2 * starts_[n_] > entries) {
      place_ = std::move(place);
      starts_ = std::vector<int64_t>();
      return;
    }
    constexpr int64_t kShortNumbers = int64_t{1} << 16;  // what two bytes can tell apart
    const bool small = std::max(longest, std::ssize(features_)) <= kShortNumbers;
    small ? keep(place, small_) : keep(place, large_);
  }

  template <typename Number>
  void keep(const std::vector<int32_t>& place, MmapVector<Kept<Number>>& kept) {
    kept.resize(static_cast<std::size_t>(starts_[n_]));
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t r = view_.rows(i), first = view_.indptr[r];
      Kept<Number>*to = kept.data() + starts_[i], *end = kept.data() + starts_[i + 1];
      // The indices may be others than when they were counted.
      for (int64_t e = first; e < view_.indptr[r + 1] && to < end; ++e) {
        const int32_t k = place[view_.indices[e]];
        if (k >= 0) *to++ = {static_cast<Number>(e - first), static_cast<Number>(k)};
      }
      std::fill(to, end, Kept<Number>{});
    }
  }

  template <typename Number>
  SampleRow<T> put_together(int64_t i, const MmapVector<Kept<Number>>& all) {
    const T* row = values() + view_.indptr[view_.rows(i)];
    const Kept<Number>* kept = all.data() + starts_[i];
    const int64_t count = starts_[i + 1] - starts_[i];
    for (int64_t e = 0; e < count; ++e) {
      row_[e] = row[kept[e].offset];
      slots_[e] = static_cast<int32_t>(kept[e].slot);
    }
    return {row_.data(), slots_.data(), count};
  }

  SampleRow<T> picked(int64_t i) {
    const int64_t r = view_.rows(i), last = view_.indptr[r + 1];
    int64_t count = 0;
    for (int64_t e = view_.indptr[r]; e < last; ++e) {
      const int32_t k = place_[view_.indices[e]];
      row_[count] = values()[e];
      slots_[count] = k;
      count += k >= 0;
    }
    return {row_.data(), slots_.data(), count};
  }

  // Counted first: lists that grow take up to three times the memory of what they hold.
  void compress_dense() {
    std::vector<double> row(features_.size());
    indptr_.assign(static_cast<std::size_t>(n_) + 1, 0);
    for (int64_t i = 0; i < n_; ++i) {
      design_.sample(i, features_.data(), std::ssize(features_), row.data());
      indptr_[i + 1] = indptr_[i] + std::ssize(row) - std::count(row.begin(), row.end(), 0.0);
    }
    values_.resize(static_cast<std::size_t>(indptr_[n_]));
    indices_.resize(values_.size());
    for (int64_t i = 0; i < n_; ++i) {
      design_.sample(i, features_.data(), std::ssize(features_), row.data());
      int64_t e = indptr_[i];
      for (std::size_t k = 0; k < row.size(); ++k) {
        if (row[k] == 0.0) continue;
        values_[e] = static_cast<T>(row[k]);
        indices_[e++] = static_cast<int32_t>(k);
      }
    }
    use_copy();
  }

  const Design& design_;
  const std::vector<int32_t>& features_;
  int64_t n_;
  StoredRows view_;
  MmapVector<T> values_;
  MmapVector<int32_t> indices_;
  std::vector<int32_t> identity_;
  std::vector<int64_t> indptr_;
  std::vector<double> buffer_;
  std::vector<int64_t> starts_;  // of every sample among what is kept
  MmapVector<Kept<uint16_t>> small_;
  MmapVector<Kept<uint32_t>> large_;
  std::vector<int32_t> place_;  // local numbers of all features, where that is asked instead
  std::vector<T> row_;
  std::vector<int32_t> slots_;
};

}  // namespace sparsvm
