// The arrays of a hinge problem as Python hands them to the native solvers, and their checks.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "design/design.hpp"

namespace sparsvm {

struct HingeArrays {
  Input<std::int32_t, 1> y;
  Input<double, 1> lam;
  Input<double, 2> cost;
  std::optional<Input<double, 1>> margin_scale;
  std::optional<Input<double, 2>> tilt;
  Input<std::int32_t, 1> groups;
  Input<double, 1> omega;

  std::int64_t classes() const { return rows(cost); }
  std::int64_t outputs() const { return classes() == 2 ? 1 : classes(); }
  const double* margin_factors() const { return margin_scale ? margin_scale->data() : nullptr; }
  const double* tilts() const { return tilt ? tilt->data() : nullptr; }

  void check(const Design& design, std::int64_t n_groups) const {
    if (classes() < 2) throw std::invalid_argument("cost must have two rows at least.");
    const std::int64_t n = design.n(), d = design.d();
    check_shape("cost", cost, classes(), classes());
    check_size("y has", length(y), "the design's number of samples is", n);
    check_size("lam has", length(lam), "the design's number of samples is", n);
    if (margin_scale) {
      check_size("margin_scale has", length(*margin_scale), "the design's number of samples is", n);
    }
    check_size("groups has", length(groups), "the design's number of features is", d);
    check_size("omega has", length(omega), "the design's number of features is", d);
    if (tilt) check_shape("tilt", *tilt, d, outputs());
    check_numbers("y", y, classes());
    check_numbers("groups", groups, n_groups);
  }

 private:
  static void check_numbers(const char* what, const Input<std::int32_t, 1>& array,
                            std::int64_t limit) {
    for (std::int64_t i = 0; i < length(array); ++i) {
      if (array.data()[i] >= 0 && array.data()[i] < limit) continue;
      throw std::invalid_argument(std::string(what) + "[" + std::to_string(i) + "] is " +
                                  std::to_string(array.data()[i]) + ", outside 0 .. " +
                                  std::to_string(limit - 1) + ".");
    }
  }
};

}  // namespace sparsvm
