// NumPy arrays at the border of the native code: typed inputs, fresh outputs, and the checks that
// all bindings share. Every sentence says what was wrong, what was found and what would do.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "linalg/blas.hpp"

namespace sparsvm {

namespace nb = nanobind;

// A read-only C-contiguous argument; other orders and scalars are converted by a copy.
template <typename T, int Dimensions>
using Input = nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;
using Integers = Input<int32_t, 1>;

template <typename T>
int64_t length(const Input<T, 1>& array) {
  return static_cast<int64_t>(array.shape(0));
}
template <typename T>
int64_t rows(const Input<T, 2>& array) {
  return static_cast<int64_t>(array.shape(0));
}
template <typename T>
int64_t columns(const Input<T, 2>& array) {
  return static_cast<int64_t>(array.shape(1));
}

// A sentence with both sizes and where they come from, unless they agree.
inline void check_size(const char* what, int64_t found, const char* against, int64_t expected) {
  if (found == expected) return;
  throw std::invalid_argument(std::string(what) + " length " + std::to_string(found) +
                              " along its first axis, but " + against + " " +
                              std::to_string(expected) + "; the two must agree.");
}

inline void check_shape(const char* what, const Input<double, 2>& array, int64_t n, int64_t m) {
  if (rows(array) == n && columns(array) == m) return;
  throw std::invalid_argument(std::string(what) + " has shape (" + std::to_string(rows(array)) +
                              ", " + std::to_string(columns(array)) + ") but must have shape (" +
                              std::to_string(n) + ", " + std::to_string(m) + ").");
}

// A copy of integers: what native code takes for an index must not change after its check, and the
// caller's array may, in another thread.
template <typename T>
std::vector<T> copied(const Input<T, 1>& array) {
  return std::vector<T>(array.data(), array.data() + length(array));
}

// Class or group numbers must lie in 0 .. limit - 1.
inline void check_numbers(const char* what, const std::vector<int32_t>& numbers, int64_t limit) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0 && numbers[i] < limit) continue;
    throw std::invalid_argument(std::string(what) + "[" + std::to_string(i) + "] is " +
                                std::to_string(numbers[i]) + ", outside 0 .. " +
                                std::to_string(limit - 1) + ".");
  }
}

// A number as Python would print it, or nearly so.
inline std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.12g", value);
  return text;
}

// What a finite number may be, and how a message says it.
struct Allowed {
  const char* must;
  double least = -std::numeric_limits<double>::infinity();
  bool more = false;  // than the least
  double below = std::numeric_limits<double>::infinity();
  bool accepts(double v) const {
    return std::isfinite(v) && (more ? v > least : v >= least) && v < below;
  }
};
inline constexpr Allowed kFinite{"finite"};
inline constexpr Allowed kNotNegative{"finite and not negative", 0.0};
inline constexpr Allowed kPositive{"positive and finite", 0.0, true};

inline void check_value(const std::string& what, double value, const Allowed& allowed) {
  if (allowed.accepts(value)) return;
  throw std::invalid_argument(what + " is " + shown(value) + ", but must be " + allowed.must + ".");
}

// The same for every entry.
template <typename Array>
void check_values(const char* what, const Array& array, const Allowed& allowed) {
  for (std::size_t i = 0; i < array.size(); ++i) {
    const double value = array.data()[i];
    if (allowed.accepts(value)) continue;
    check_value(std::string(what) + "[" + std::to_string(i) + "]", value, allowed);
  }
}

// Indices are int32 inside the core.
inline void check_countable(int64_t count, const char* what) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  if (count >= 0 && count < kLimit) return;
  throw std::invalid_argument("The design has " + std::to_string(count) + " " + what +
                              "; at most " + std::to_string(kLimit - 1) + " are supported.");
}

// n·m, the entries of a matrix that can be in memory: arrays without entries may claim any shape.
inline int64_t entries_of(int64_t n, int64_t m) {
  if (n < 0 || m < 0) {
    throw std::invalid_argument("A matrix cannot have the shape (" + std::to_string(n) + ", " +
                                std::to_string(m) + ").");
  }
  constexpr int64_t kLimit = std::numeric_limits<int64_t>::max() / int64_t{sizeof(double)};
  if (m > 0 && n > kLimit / m) throw std::bad_alloc();
  return n * m;
}

// A fresh array of doubles that NumPy will own.
class Output {
 public:
  using Vector = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
  using Matrix = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

  explicit Output(int64_t size) : size_(size), data_(new double[static_cast<std::size_t>(size)]) {}
  double* data() { return data_.get(); }

  Vector vector() {
    double* data = data_.get();
    return Vector(data, {unsigned_of(size_)}, owner());
  }
  // As a matrix, row-major or (fortran) column-major.
  Matrix matrix(int64_t n, int64_t m, bool fortran) {
    const size_t shape[2] = {unsigned_of(n), unsigned_of(m)};
    const int64_t strides[2] = {fortran ? 1 : m, fortran ? n : 1};
    double* data = data_.get();
    return Matrix(data, 2, shape, owner(), strides);
  }

 private:
  static size_t unsigned_of(int64_t size) { return static_cast<size_t>(size); }
  nb::capsule owner() {
    return nb::capsule(data_.release(), [](void* p) noexcept { delete[] static_cast<double*>(p); });
  }
  int64_t size_;
  std::unique_ptr<double[]> data_;
};

// An (n, m) array in rows whose owner, with a data(), NumPy will delete.
template <typename Owner>
Output::Matrix owned(std::unique_ptr<Owner> owner, int64_t n, int64_t m) {
  const size_t shape[2] = {static_cast<size_t>(n), static_cast<size_t>(m)};
  double* data = owner->data();
  return Output::Matrix(data, 2, shape, nb::capsule(owner.release(), [](void* p) noexcept {
    delete static_cast<Owner*>(p);
  }));
}

// An (n, m) array filled by compute(double*) with the GIL released and BLAS at hand.
template <typename Compute>
Output::Matrix computed(int64_t n, int64_t m, bool fortran, Compute compute) {
  load_blas();
  const int64_t entries = entries_of(n, m);
  Output out(entries);
  if (entries > 0) {
    nb::gil_scoped_release released;
    compute(out.data());
  }
  return out.matrix(n, m, fortran);
}

// The guard of native objects that Python drives step by step, which work for one thread at a time: calls
// release the GIL, so two threads could otherwise be inside the same object, and so could a
// callback that calls the object that called it.
class Exclusive {
 public:
  explicit Exclusive(const char* name) : name_(name) {}

  class Turn {
   public:
    explicit Turn(std::atomic_flag& busy) : busy_(busy) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { busy_.clear(); }

   private:
    std::atomic_flag& busy_;
  };

  // Hold the result during the call; throws where another call is under way.
  [[nodiscard]] Turn take() {
    if (busy_.test_and_set()) {
      throw std::runtime_error(std::string("This ") + name_ +
                               " is at work in another call; give every thread one of its own.");
    }
    return Turn(busy_);
  }

 private:
  const char* name_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

}  // namespace sparsvm
