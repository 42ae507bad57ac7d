// A matrix held by its non-zeros, of which dual points have few.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "support/mmap_vector.hpp"

namespace sparsvm {

/// The entries that are not zero, or all where these are too many to gain anything.
class PackedEntries {
 public:
  PackedEntries() = default;
  PackedEntries(const double* all, std::size_t size) : size_(size) {
    const auto count = size - static_cast<std::size_t>(std::count(all, all + size, 0.0));
    if (5 * count > 4 * size) {
      entries_.assign(all, all + size);
      return;
    }
    entries_.reserve(count);
    gaps_.reserve(count + size / kFar);
    // The place of an entry as its distance to the one before.
    std::size_t next = 0;
    for (std::size_t e = 0; e < size; ++e) {
      if (all[e] == 0.0) continue;
      for (; e - next >= kFar; next += kFar) gaps_.push_back(kFar);
      gaps_.push_back(static_cast<std::uint16_t>(e - next));
      entries_.push_back(all[e]);
      next = e + 1;
    }
    sparse_ = true;
  }

  std::size_t size() const { return size_; }
  std::size_t bytes() const {
    return entries_.size() * sizeof(double) + gaps_.size() * sizeof(std::uint16_t);
  }
  void unpack(double* all) const {
    if (!sparse_) {
      std::copy(entries_.begin(), entries_.end(), all);
      return;
    }
    std::fill(all, all + size_, 0.0);
    const double* entry = entries_.data();
    for (const std::uint16_t gap : gaps_) {
      all += gap;
      if (gap < kFar) *all++ = *entry++;
    }
  }

 private:
  static constexpr std::uint16_t kFar = 65535;  // the longest distance that an entry tells
  std::size_t size_ = 0;
  bool sparse_ = false;
  MmapVector<std::uint16_t> gaps_;
  MmapVector<double> entries_;
};

}  // namespace sparsvm
