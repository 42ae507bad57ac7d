// Vectors that begin with a cache line.
//
// Large blocks of the C library begin 16 bytes into a line. Rows of 20 doubles then often lie in four
// lines instead of three, and of those that are asked for ahead every other row misses its last one.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace sparsvm {

template <typename T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};

  LineAllocator() = default;
  template <typename U>
  LineAllocator(const LineAllocator<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), line)); }
  void deallocate(T* block, std::size_t) { ::operator delete(block, line); }

  template <typename U>
  bool operator==(const LineAllocator<U>&) const {
    return true;
  }
};

template <typename T>
using LineVector = std::vector<T, LineAllocator<T>>;

}  // namespace sparsvm
