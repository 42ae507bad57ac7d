// What a long native loop owes its caller: a history, a progress callback and a working Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
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

// A native loop was to end and had no point to end with.
class Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("The run was ended early.") {}
};

// Construct and destroy it with the GIL held, i.e. declare it before nb::gil_scoped_release;
// record() and poll() are called by the thread that entered the native code, with or without it.
class Monitor {
 public:
  // callback: None or callable(iteration, seconds, objective, gap, nonzeros), with one argument more
  // where a point is offered: what returns it, which is None once the callback has answered.
  explicit Monitor(nb::object callback)
      : callback_(std::move(callback)), start_(Clock::now()), polled_(start_) {}
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // What returns the best coefficients (outputs x d) and intercepts, or None; called with the GIL.
  void offer(std::function<nb::object()> point) { point_ = std::move(point); }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // Append to the history and call back; a callback that returns something true asks to stop.
  void record(int64_t iteration, double objective, double gap, int64_t nonzeros) {
    const auto now = Clock::now();
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    iterations.push_back(iteration);
    times.push_back(elapsed);
    objectives.push_back(objective);
    gaps.push_back(gap);
    nonzero_counts.push_back(nonzeros);
    if (callback_.is_none()) return;
    nb::gil_scoped_acquire gil;
    const nb::object answer =
        point_ ? callback_(iteration, elapsed, objective, gap, nonzeros, PointOfNow(point_).asked())
               : callback_(iteration, elapsed, objective, gap, nonzeros);
    const int truth = PyObject_IsTrue(answer.ptr());
    if (truth < 0) throw nb::python_error();
    if (truth > 0) Stop::of_this_thread().at = now;
  }

  // Whether a time limit has passed, or a callback or (where that is asked for) Ctrl-C wants the end.
  // Loops that can end with a point ask; the others are ended by poll() a little later.
  static bool stopping() { return Clock::now() >= Stop::of_this_thread().at; }

  // Throw nb::python_error (KeyboardInterrupt) if Ctrl-C was pressed. Costs one clock reading,
  // except every 50 ms; a loop that polls every 0.1 s or oftener answers within 0.2 s.
  void poll() {
    const auto now = Clock::now();
    if (now - polled_ < kPollInterval) return;
    polled_ = now;
    nb::gil_scoped_acquire gil;
    Stop& stop = Stop::of_this_thread();
    if (PyErr_CheckSignals() != 0) {
      if (!stop.softly || !PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        throw nb::python_error();
      PyErr_Clear();
      stop.at = std::min(stop.at, now);
    }
    if (stop.held || stop.at == Clock::time_point::max()) return;
    if (now >= stop.at + kGrace) throw Stopped();
  }

  // End what this thread runs from now on after so many seconds (never, if infinite), and let Ctrl-C
  // do the same at once instead of raising, if softly. Returns what held before, as seconds from now.
  static std::pair<double, bool> stop_after(double seconds, bool softly) {
    Stop& stop = Stop::of_this_thread();
    const auto now = Clock::now();
    const std::pair<double, bool> before{stop.at == Clock::time_point::max()
                                             ? std::numeric_limits<double>::infinity()
                                             : std::chrono::duration<double>(stop.at - now).count(),
                                         stop.softly};
    stop.softly = softly;
    stop.at = Clock::time_point::max();
    constexpr double kForever = 1e9;  // longer than any run, and more the clock could not count
    if (seconds < kForever)
      stop.at = now + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(std::max(seconds, 0.0)));
    return before;
  }

  // Let poll() end nothing until this is taken back; what asks stopping() still ends by itself.
  // Returns what held before.
  static bool hold(bool held) { return std::exchange(Stop::of_this_thread().held, held); }

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

  // Count work, in multiplications of a matrix product.
  void spend(double multiplications) { spent_ += multiplications; }
  double spent() const { return spent_; }

  std::vector<int64_t> iterations;
  std::vector<double> times, objectives, gaps;
  std::vector<int64_t> nonzero_counts;

 private:
  using Clock = std::chrono::steady_clock;
  struct Stop {
    Clock::time_point at = Clock::time_point::max();
    bool softly = false, held = false;
    static Stop& of_this_thread() {
      thread_local Stop stop;
      return stop;
    }
  };
  // Python may keep the function for longer than the solver has the point.
  class PointOfNow {
   public:
    explicit PointOfNow(const std::function<nb::object()>& point)
        : point_(std::make_shared<const std::function<nb::object()>*>(&point)) {}
    PointOfNow(const PointOfNow&) = delete;
    PointOfNow& operator=(const PointOfNow&) = delete;
    ~PointOfNow() { *point_ = nullptr; }
    nb::object asked() const {
      return nb::cpp_function([at = point_] { return *at ? (**at)() : nb::none(); });
    }

   private:
    std::shared_ptr<const std::function<nb::object()>*> point_;
  };

  // What a loop that ends by itself has to do so.
  static constexpr std::chrono::milliseconds kGrace{100};
  static constexpr std::chrono::milliseconds kPollInterval{50};

  nb::object callback_;
  std::function<nb::object()> point_;
  Clock::time_point start_, polled_;
  double spent_ = 0.0;
};

}  // namespace sparsvm
