#include "bind/prox_callback.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>

namespace sparsvm {

namespace {

/// A copy, since a user's function may keep or change what it is given.
Output::Matrix copied(const double* W, int64_t d, int64_t outputs) {
  Output out(d * outputs);
  std::copy_n(W, d * outputs, out.data());
  return out.matrix(d, outputs, false);
}

}  // namespace

ProxTerm prox_term(const Penalty& built_in, const nb::object& own) {
  if (own.is_none()) return built_in_term(built_in);
  const int64_t d = built_in.d, outputs = built_in.outputs;
  const nb::object prox = own.attr("prox"), value = own.attr("value");
  return {[=](double* W, double step) {
    const nb::gil_scoped_acquire gil;
    const auto result = nb::cast<Input<double, 2>>(prox(copied(W, d, outputs), step));
    check_shape("The result of prox", result, d, outputs);
    std::copy_n(result.data(), d * outputs, W);
  }, [=](const double* W) {
    const nb::gil_scoped_acquire gil;
    return nb::cast<double>(value(copied(W, d, outputs)));
  }};
}

}  // namespace sparsvm
