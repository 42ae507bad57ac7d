// Memory of large arrays, taken from the system by pages and given back at once.
//
// The C library keeps large blocks once a program has freed a larger one, and clears those it uses
// again: what was freed stays resident, and zeros that nobody has written take as much as others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace sparsvm {

// Return to the system what the C library holds of blocks too small for pages of their own.
inline void give_back_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

// An allocator for vectors that begin with a cache line: whole pages from a quarter of a megabyte
// on. Fresh pages are zero and take no memory until they are written.
template <typename T>
class MmapAllocator {
 public:
  using value_type = T;
  MmapAllocator() = default;
  template <typename U>
  MmapAllocator(const MmapAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (!by_pages(bytes)) return static_cast<T*>(::operator new(bytes, kLine));
#if defined(__unix__) || defined(__APPLE__)
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(pages);
#endif
  }
  void deallocate(T* data, std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(T);
    if (!by_pages(bytes)) return ::operator delete(data, kLine);
#if defined(__unix__) || defined(__APPLE__)
    munmap(data, bytes);
#endif
  }
  bool operator==(const MmapAllocator&) const { return true; }

  static constexpr std::align_val_t kLine{64};
  // Bytes from which on memory goes back to the system when it is freed, at the price of fresh pages.
  static constexpr std::size_t kMapped = std::size_t{1} << 18;
  static bool by_pages(std::size_t bytes) {
#if defined(__unix__) || defined(__APPLE__)
    return bytes >= kMapped;
#else
    return false;
#endif
  }
};

template <typename T>
using MmapVector = std::vector<T, MmapAllocator<T>>;

// Zeros, of which only the pages that are written take memory.
class Zeros {
 public:
  explicit Zeros(std::size_t count)
      : count_(count), data_(MmapAllocator<double>().allocate(count)) {
    if (!MmapAllocator<double>::by_pages(count * sizeof(double))) std::fill_n(data_, count, 0.0);
  }
  ~Zeros() { MmapAllocator<double>().deallocate(data_, count_); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  double* data() { return data_; }

 private:
  std::size_t count_;
  double* data_;
};

// -----------------------------------------------------------------
// A matrix held by its non-zeros, of which dual points have few.

// The entries that are not zero, or all where these are too many to gain anything.
class PackedEntries {
 public:
  PackedEntries() = default;
  PackedEntries(const double* all, std::size_t size) : size_(size) {
    const auto count = size - static_cast<std::size_t>(std::count(all, all + size, 0.0));
    if (count * (sizeof(double) + sizeof(uint16_t)) > size * sizeof(double)) {
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
      gaps_.push_back(static_cast<uint16_t>(e - next));
      entries_.push_back(all[e]);
      next = e + 1;
    }
    sparse_ = true;
  }

  std::size_t size() const { return size_; }
  std::size_t bytes() const {
    return entries_.size() * sizeof(double) + gaps_.size() * sizeof(uint16_t);
  }
  void unpack(double* all) const {
    if (!sparse_) {
      std::copy(entries_.begin(), entries_.end(), all);
      return;
    }
    std::fill(all, all + size_, 0.0);
    const double* entry = entries_.data();
    for (const uint16_t gap : gaps_) {
      all += gap;
      if (gap < kFar) *all++ = *entry++;
    }
  }

 private:
  static constexpr uint16_t kFar = 65535;  // the longest distance that an entry tells
  std::size_t size_ = 0;
  bool sparse_ = false;
  MmapVector<uint16_t> gaps_;
  MmapVector<double> entries_;
};

}  // namespace sparsvm
