// Columns of the design in compressed form, whatever its storage.
//
// Sparse designs give their own columns. Of dense ones the columns that were asked for are copied,
// zeros left out, in single precision where that is exact: coordinate descent reads columns, which
// in C order would touch a cache line per entry.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "design/design.hpp"

namespace sparsvm {

class ColumnSource {
 public:
  explicit ColumnSource(const Design& design)
      : design_(design), given_(design.sparse_columns()),
        places_(given_ ? 0 : static_cast<std::size_t>(design.d())) {}

  // Make sure that the columns of these features can be had.
  void require(const std::vector<int32_t>& features) {
    if (given_) return;
    std::vector<int32_t> missing;
    for (const int32_t j : features) {
      if (!places_[static_cast<std::size_t>(j)].rows) missing.push_back(j);
    }
    const auto batch = static_cast<std::size_t>(std::max<int64_t>(1, kBatch / design_.n()));
    for (std::size_t from = 0; from < missing.size(); from += batch) {
      load(missing.data() + from, std::min(batch, missing.size() - from));
    }
    loaded_ += missing.size();
  }

  ColumnView operator[](int32_t j) const {
    if (!given_) return places_[static_cast<std::size_t>(j)];
    const int64_t start = given_->starts[j];
    const std::size_t size = given_->single ? sizeof(float) : sizeof(double);
    return {static_cast<const char*>(given_->values) + static_cast<std::size_t>(start) * size,
            given_->rows + start, given_->starts[j + 1] - start, given_->single};
  }

  // Whether every column is at hand.
  bool complete() const { return given_ || loaded_ == static_cast<std::size_t>(design_.d()); }

  // Whether walking the columns is cheaper than a dense product: few entries are non-zero.
  bool thin() const {
    return given_ || 3 * entries_ < loaded_ * static_cast<std::size_t>(design_.n());
  }

 private:
  // Entries of the columns read at a time: 4 MB, which later allocations find again.
  static constexpr int64_t kBatch = int64_t{1} << 19;

  void load(const int32_t* features, std::size_t count) {
    const int64_t n = design_.n();
    Workspace block(n * static_cast<int64_t>(count));
    design_.gather_columns(features, static_cast<int64_t>(count), block.data());
    std::size_t entries = 0;
    bool single = true;
    for (std::size_t e = 0; e < count * static_cast<std::size_t>(n); ++e) {
      const double x = block.data()[e];
      entries += x != 0.0;
      single = single && static_cast<double>(static_cast<float>(x)) == x;
    }
    // One spare place, so that an empty column has an address too.
    auto rows = std::make_unique<int32_t[]>(entries + 1);
    auto values = std::make_unique<char[]>((entries + 1) * (single ? 4 : 8));
    std::size_t at = 0;
    for (std::size_t c = 0; c < count; ++c) {
      const double* x = block.data() + c * static_cast<std::size_t>(n);
      const std::size_t start = at;
      for (int64_t i = 0; i < n; ++i) {
        if (x[i] == 0.0) continue;
        rows[at] = static_cast<int32_t>(i);
        if (single)
          reinterpret_cast<float*>(values.get())[at] = static_cast<float>(x[i]);
        else
          reinterpret_cast<double*>(values.get())[at] = x[i];
        ++at;
      }
      places_[static_cast<std::size_t>(features[c])] = {values.get() + start * (single ? 4 : 8),
                                                        rows.get() + start,
                                                        static_cast<int64_t>(at - start), single};
    }
    entries_ += entries;
    rows_.push_back(std::move(rows));
    values_.push_back(std::move(values));
  }

  const Design& design_;
  std::optional<SparseColumns> given_;
  std::vector<ColumnView> places_;
  std::vector<std::unique_ptr<int32_t[]>> rows_;
  std::vector<std::unique_ptr<char[]>> values_;
  std::size_t loaded_ = 0, entries_ = 0;
};

}  // namespace sparsvm
