// What a long native loop owes its caller: a history, a progress callback and a working Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace sparsvm {

namespace nb = nanobind;

// Copy a vector into a fresh NumPy array; needs the GIL.
template <typename T>
nb::object to_numpy(const std::vector<T>& values) {
  auto* copy = new std::vector<T>(values);
  nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(copy->data(), {copy->size()}, owner).cast();
}

// Construct and destroy it with the GIL held, i.e. declare it before nb::gil_scoped_release;
// record() and poll() are called by the thread that entered the native code, with or without it.
class Monitor {
 public:
  // callback: None or callable(iteration, seconds, objective, gap, nonzeros).
  explicit Monitor(nb::object callback)
      : callback_(std::move(callback)), start_(Clock::now()), polled_(start_), called_(start_) {}
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // Append to the history; call back the first time and then at most five times a second, so that
  // a printing callback never sets the pace of the loop.
  void record(int64_t iteration, double objective, double gap, int64_t nonzeros) {
    const auto now = Clock::now();
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    iterations.push_back(iteration);
    times.push_back(elapsed);
    objectives.push_back(objective);
    gaps.push_back(gap);
    nonzero_counts.push_back(nonzeros);
    if (!callback_.is_none() && (iterations.size() == 1 || now - called_ >= kCallbackInterval)) {
      called_ = now;
      nb::gil_scoped_acquire gil;
      callback_(iteration, elapsed, objective, gap, nonzeros);
    }
  }

  // Throw nb::python_error (KeyboardInterrupt) if Ctrl-C was pressed. Costs one clock reading,
  // except every 50 ms; a loop that polls every 0.1 s or oftener answers within 0.2 s.
  void poll() {
    const auto now = Clock::now();
    if (now - polled_ < kPollInterval) return;
    polled_ = now;
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

  // The history as a dict of NumPy arrays; needs the GIL.
  nb::object history() const {
    nb::dict out;
    out["iteration"] = to_numpy(iterations);
    out["seconds"] = to_numpy(times);
    out["objective"] = to_numpy(objectives);
    out["gap"] = to_numpy(gaps);
    out["nonzeros"] = to_numpy(nonzero_counts);
    return out;
  }

  std::vector<int64_t> iterations;
  std::vector<double> times, objectives, gaps;
  std::vector<int64_t> nonzero_counts;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPollInterval{50};
  static constexpr std::chrono::milliseconds kCallbackInterval{200};

  nb::object callback_;
  Clock::time_point start_, polled_, called_;
};

}  // namespace sparsvm
