// Binding of block_newton: nothing Python-like goes further.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "bind/problems.hpp"
#include "solvers/block_newton/block_newton.hpp"

namespace sparsvm {

namespace {

using InPlace = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::dict run_block_newton(const BoundSmoothProblem& bound, InPlace weights, bool warm,
                          std::optional<Vector> start_intercept, double tol, int max_iter,
                          bool continuation, bool insist, nb::object callback) {
  const SmoothProblem& problem = bound.problem();
  const int64_t outputs = problem.outputs();
  if (problem.loss.kind == LossKind::hinge) {
    throw std::invalid_argument(
        "block_newton: the loss must be one of squared_hinge, logistic and ovr_squared_hinge.");
  }
  check_shape("weights", Matrix(weights), problem.d(), outputs);
  if (warm) check_values("weights", weights, kFinite);
  if (start_intercept) {
    check_size("start_intercept has", length(*start_intercept), "the number of outputs is",
               outputs);
    check_values("start_intercept", *start_intercept, kFinite);
  }
  if (!(tol > 0.0) || max_iter < 0) {
    throw std::invalid_argument("block_newton: tol = " + std::to_string(tol) +
                                " must be positive and max_iter = " + std::to_string(max_iter) +
                                " not negative.");
  }
  Monitor monitor(callback);
  load_blas();
  Output b(outputs);
  BlockNewtonReport report;
  {
    nb::gil_scoped_release released;
    report = block_newton(problem, {weights.data(), b.data()},
                          {tol, max_iter, continuation, insist, warm,
                           start_intercept ? start_intercept->data() : nullptr},
                          monitor);
  }
  nb::dict out;
  out["intercept"] = b.vector();
  out["iterations"] = report.iterations;
  out["stalled"] = report.stalled;
  out["products"] = report.products;
  out["history"] = monitor.history();
  return out;
}

}  // namespace

void bind_block_newton(nb::module_& m) {
  m.def("block_newton", &run_block_newton, nb::arg("problem"), nb::kw_only(),
        nb::arg("weights").noconvert(), nb::arg("warm"), nb::arg("start_intercept").none(),
        nb::arg("tol"), nb::arg("max_iter"), nb::arg("continuation"), nb::arg("insist"),
        nb::arg("callback").none(),
        "Solve a smooth loss with a sparse penalty; see solvers/block_newton.py for the meaning of "
        "the arguments. The solution is left in `weights`, which hold the start if `warm`.");
}

}  // namespace sparsvm
