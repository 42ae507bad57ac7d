// Binding of block_newton: nothing Python-like goes further.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "bind/problems.hpp"
#include "solvers/block_newton/block_newton.hpp"

namespace sparsvm {

namespace {

using InPlace = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::dict run_block_newton(const BoundSmoothProblem& bound, InPlace weights, bool warm,
                          std::optional<Vector> start_intercept, double tol, int max_iter,
                          double max_work, bool continuation, nb::object callback) {
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
  if (!(tol > 0.0) || max_iter < 0 || !(max_work >= 0.0)) {
    throw std::invalid_argument("block_newton: tol = " + std::to_string(tol) +
                                " must be positive, max_iter = " + std::to_string(max_iter) +
                                " and max_work = " + std::to_string(max_work) + " not negative.");
  }
  Monitor monitor(callback);
  load_blas();
  Output b(outputs);
  monitor.offer([&] {
    Output W(problem.d() * outputs), intercept(outputs);
    std::copy_n(weights.data(), problem.d() * outputs, W.data());
    std::copy_n(b.data(), outputs, intercept.data());
    return nb::make_tuple(nb::cast(W.matrix(problem.d(), outputs, false)).attr("T"),
                          intercept.vector());
  });
  BlockNewtonReport report;
  {
    nb::gil_scoped_release released;
    report = block_newton(problem, {weights.data(), b.data()},
                          {tol, max_iter, max_work, continuation, warm,
                           start_intercept ? start_intercept->data() : nullptr},
                          monitor);
  }
  nb::dict out;
  out["intercept"] = b.vector();
  out["iterations"] = report.iterations;
  out["stalled"] = report.stalled;
  out["products"] = report.products;
  out["work"] = report.work;
  out["history"] = monitor.history();
  return out;
}

class BoundSmoothPath {
 public:
  BoundSmoothPath(const BoundSmoothProblem& bound, Vector column_norms, double tol, int max_iter,
                  nb::object callback)
      : problem_(bound.problem()), column_norms_(std::move(column_norms)),
        monitor_(std::move(callback)) {
    if (problem_.loss.kind == LossKind::hinge || problem_.tilt) {
      throw std::invalid_argument(
          "SmoothPath: the loss must be one of squared_hinge, logistic and ovr_squared_hinge, "
          "without a tilt.");
    }
    check_size("column_norms has", length(column_norms_), "the number of features is",
               problem_.d());
    check_values("column_norms", column_norms_, kNotNegative);
    if (!(tol > 0.0) || max_iter < 0) {
      throw std::invalid_argument("SmoothPath: tol = " + std::to_string(tol) +
                                  " must be positive and max_iter = " + std::to_string(max_iter) +
                                  " not negative.");
    }
    load_blas();
    path_.emplace(problem_, column_norms_.data(), tol, max_iter, monitor_);
  }

  void start(const Matrix& weights, const Vector& intercept) {
    check_shape("weights", weights, problem_.d(), problem_.outputs());
    check_size("intercept has", length(intercept), "the number of outputs is", problem_.outputs());
    check_values("weights", weights, kFinite);
    check_values("intercept", intercept, kFinite);
    const Exclusive::Turn turn = exclusive_.take();
    path_->start(weights.data(), intercept.data());
  }

  nb::dict solve(double alpha) {
    if (!(alpha > 0.0) || !std::isfinite(alpha)) {
      throw std::invalid_argument("SmoothPath: alpha must be positive and finite, but is " +
                                  std::to_string(alpha) + ".");
    }
    const Exclusive::Turn turn = exclusive_.take();
    SmoothPathPoint point;
    {
      nb::gil_scoped_release released;
      point = path_->solve(alpha);
    }
    nb::dict out;
    out["objective"] = point.objective;
    out["loss"] = point.loss;
    out["bound"] = point.bound;
    out["seconds"] = point.seconds;
    out["iterations"] = point.iterations;
    out["converged"] = point.converged;
    out["balanced"] = point.balanced;
    out["intercept"] = to_numpy(point.intercept);
    out["features"] = to_numpy(point.features);
    out["weights"] = to_numpy(point.weights);
    return out;
  }

 private:
  const SmoothProblem& problem_;
  Vector column_norms_;
  Monitor monitor_;
  std::optional<SmoothPath> path_;
  Exclusive exclusive_{"SmoothPath"};
};

}  // namespace

void bind_block_newton(nb::module_& m) {
  m.def("block_newton", &run_block_newton, nb::arg("problem"), nb::kw_only(),
        nb::arg("weights").noconvert(), nb::arg("warm"), nb::arg("start_intercept").none(),
        nb::arg("tol"), nb::arg("max_iter"),
        nb::arg("max_work") = std::numeric_limits<double>::infinity(), nb::arg("continuation"),
        nb::arg("callback").none(),
        "Solve a smooth loss with a sparse penalty; see solvers/block_newton.py for the meaning of "
        "the arguments. The solution is left in `weights`, which hold the start if `warm`.");
  nb::class_<BoundSmoothPath>(
      m, "SmoothPath",
      "Solutions of a smooth loss with a sparse penalty at one alpha after the "
      "other; see path/smooth_path.py.")
      .def(nb::init<const BoundSmoothProblem&, Vector, double, int, nb::object>(),
           nb::arg("problem"), nb::kw_only(), nb::arg("column_norms"), nb::arg("tol"),
           nb::arg("max_iter"), nb::arg("callback").none(), nb::keep_alive<1, 2>())
      .def("start", &BoundSmoothPath::start, nb::arg("weights"), nb::arg("intercept"),
           "Go on from these weights (d, outputs) and intercepts.")
      .def("solve", &BoundSmoothPath::solve, nb::arg("alpha"),
           "The solution at alpha, from the last one: objective, bound, the features in use and "
           "their "
           "weights (features x outputs), whether the gap met the tolerance, and whether the "
           "intercept is optimal to rounding, so that the gap needs no further proof.");
}

}  // namespace sparsvm
