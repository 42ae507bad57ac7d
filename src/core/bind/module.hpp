// What the bindings share: the functions that module.cpp calls, one per bind_*.cpp, and the guard of native
// objects that Python drives step by step, which work for one thread at a time.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace sparsvm {

void bind_certificate(nanobind::module_& m);
void bind_design(nanobind::module_& m);
void bind_hinge(nanobind::module_& m);
void bind_block_newton(nanobind::module_& m);
void bind_papers(nanobind::module_& m);
void bind_problems(nanobind::module_& m);
void bind_prox(nanobind::module_& m);
void bind_ranking(nanobind::module_& m);

// Calls release the GIL, so two threads could otherwise be inside the same object, and so could a
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
