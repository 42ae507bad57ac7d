// Binding of the interior point.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "bind/problems.hpp"
#include "solvers/interior_point/interior_point.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

namespace {

constexpr auto any = [](double) { return true; };

InteriorPointStart checked_start(const BoundHingeProblem& problem,
                                 const std::optional<Matrix>& dual,
                                 const std::optional<Matrix>& weights,
                                 const std::optional<Vector>& intercept) {
  if (!dual && !weights && !intercept) return {};
  if (!dual || !weights || !intercept)
    throw std::invalid_argument("A start needs dual, weights and intercept.");
  problem.check_start(*weights, *intercept, *dual);
  check_values("dual", *dual, kNotNegative);
  check_values("weights", *weights, kFinite);
  check_values("intercept", *intercept, kFinite);
  return {dual->data(), weights->data(), intercept->data()};
}

nb::dict interior_point(const BoundHingeProblem& problem, Vector column_norms,
                        std::optional<Matrix> dual, std::optional<Matrix> weights,
                        std::optional<Vector> intercept, double tol, int max_iter,
                        bool explicit_coordinates, bool across_features, bool inside,
                        double residual, nb::object callback) {
  check_size("column_norms has", length(column_norms), "the design's number of features is",
             problem.d());
  const InteriorPointStart start = checked_start(problem, dual, weights, intercept);
  check_value("tol", tol, kPositive);
  check_value("residual", residual, kNotNegative);
  check_value("max_iter", max_iter, {"at least 0", 0.0});
  const InteriorPointOptions options{tol,    max_iter, explicit_coordinates, across_features,
                                     inside, residual};
  load_blas();
  Monitor monitor(std::move(callback));
  InteriorPointResult result;
  {
    nb::gil_scoped_release released;
    InteriorPoint solver(problem.problem(), column_norms.data(), start, options, {[&monitor] {
      monitor.poll();
    }, [&monitor](int iteration, double objective, double gap, int64_t nonzeros) {
      monitor.record(iteration, objective, gap, nonzeros);
    }, &Monitor::stopping});
    result = solver.solve();
  }
  const auto matrix = [](std::vector<double>& values, int64_t n, int64_t m) {
    return owned(std::make_unique<std::vector<double>>(std::move(values)), n, m);
  };
  nb::dict out;
  out["used"] = to_numpy(result.used);
  out["weights"] =
      matrix(result.weights, static_cast<int64_t>(result.used.size()), problem.outputs());
  out["intercept"] = to_numpy(result.intercept);
  out["dual"] = matrix(result.dual, problem.n(), problem.classes());
  out["bound"] = result.bound;
  out["converged"] = result.converged;
  out["iterations"] = result.iterations;
  out["stalled"] = result.stalled;
  out["history"] = monitor.history();
  return out;
}

}  // namespace

void bind_interior_point(nb::module_& m) {
  m.def(
      "interior_point", &interior_point, nb::arg("problem"), nb::kw_only(), nb::arg("column_norms"),
      nb::arg("dual").none(), nb::arg("weights").none(), nb::arg("intercept").none(),
      nb::arg("tol"), nb::arg("max_iter"), nb::arg("explicit_coordinates"),
      nb::arg("across_features"), nb::arg("inside"), nb::arg("residual"),
      nb::arg("callback").none(),
      "Solve the multiclass hinge with a convex penalty. A start is a dual point divided by alpha, "
      "weights and intercept, all three or none; see solvers/interior_point/interior_point.hpp "
      "for the options.");
}

}  // namespace sparsvm
