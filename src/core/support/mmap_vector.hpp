// Memory of large arrays, taken from the system by pages and given back at once.
//
// The C library keeps large blocks once a program has freed a larger one, and clears those it uses
// again: what was freed stays resident, and zeros that nobody has written take as much as others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace sparsvm {

/// Return to the system what the C library holds of blocks too small for pages of their own.
inline void give_back_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

/// An allocator for vectors that begin with a cache line: whole pages from a quarter of a megabyte
/// on. Fresh pages are zero and take no memory until they are written.
template <typename T>
class MmapAllocator {
 public:
  using value_type = T;
  MmapAllocator() = default;
  template <typename U>
  MmapAllocator(const MmapAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (!by_pages(bytes)) return static_cast<T*>(::operator new(bytes, line));
#if defined(__unix__) || defined(__APPLE__)
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(pages);
#endif
  }
  void deallocate(T* data, std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(T);
    if (!by_pages(bytes)) return ::operator delete(data, line);
#if defined(__unix__) || defined(__APPLE__)
    munmap(data, bytes);
#endif
  }
  bool operator==(const MmapAllocator&) const { return true; }

  static constexpr std::align_val_t line{64};
  static bool by_pages(std::size_t bytes) {
#if defined(__unix__) || defined(__APPLE__)
    return bytes >= (std::size_t{1} << 18);
#else
    return false;
#endif
  }
};

template <typename T>
using MmapVector = std::vector<T, MmapAllocator<T>>;

/// Zeros, of which only the pages that are written take memory.
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

}  // namespace sparsvm
