// Python drives the method of multipliers one subproblem at a time and decides how to go on.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "bind/problems.hpp"
#include "solvers/multiplier_newton/multiplier_newton.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

namespace {

// The method; the problem it points into is kept alive by Python.
class MultiplierNewtonRun {
 public:
  MultiplierNewtonRun(const BoundHingeProblem& problem, Vector rms) : problem_(problem), rms_(rms) {
    check_size("rms has", length(rms), "the design's number of features is", problem.d());
    check_values("rms", rms, kNotNegative);
    if (problem.problem().margins) {
      throw std::invalid_argument(
          "MultiplierNewton takes margins from cost and margin_scale only.");
    }
    method_ = std::make_unique<MultiplierNewton>(problem.problem(), rms_.data());
  }

  void start(const Matrix& weights, const Vector& intercept, const Matrix& dual) {
    const Exclusive::Turn turn = exclusive_.take();
    problem_.check_start(weights, intercept, dual);
    check_values("weights", weights, kFinite);
    check_values("intercept", intercept, kFinite);
    check_values("dual", dual, kFinite);
    method_->start(weights.data(), intercept.data(), dual.data());
  }

  nb::dict solve(double gain, double sigma, double sigma_free, double accuracy, int64_t limit,
                 double typical, int64_t direct) {
    const Exclusive::Turn turn = exclusive_.take();
    for (const double size : {gain, sigma, sigma_free, accuracy, typical}) {
      if (size > 0.0 && std::isfinite(size)) continue;
      throw std::invalid_argument(
          "gain, sigma, sigma_free, accuracy and typical must be positive and finite; one is " +
          std::to_string(size) + ".");
    }
    load_blas();
    method_->set_direct_limit(direct);
    Monitor monitor{nb::none()};
    NewtonReport report;
    {
      nb::gil_scoped_release released;
      report = method_->solve(gain, sigma, sigma_free, accuracy, limit, typical, monitor);
    }
    nb::dict out;
    out["steps"] = report.steps;
    out["solved"] = report.solved;
    out["residual"] = report.residual;
    out["tied"] = report.tied;
    out["unknowns"] = report.unknowns;
    out["gradient_iterations"] = report.inner;
    out["features"] = method_->working_set();
    return out;
  }

  void accept() {
    const Exclusive::Turn turn = exclusive_.take();
    method_->accept();
  }
  void reject() {
    const Exclusive::Turn turn = exclusive_.take();
    method_->reject();
  }
  double typical_size() {
    const Exclusive::Turn turn = exclusive_.take();
    return method_->typical_size();
  }

  // W, b and Y of the last subproblem.
  nb::tuple point() {
    const Exclusive::Turn turn = exclusive_.take();
    const int64_t n = problem_.n(), d = problem_.d(), K = problem_.classes();
    const int64_t outputs = problem_.outputs();
    Output W(d * outputs), b(outputs), Y(n * K);
    method_->weights(W.data());
    std::copy(method_->intercept().begin(), method_->intercept().end(), b.data());
    std::copy(method_->dual().begin(), method_->dual().end(), Y.data());
    return nb::make_tuple(W.matrix(d, outputs, false), b.vector(), Y.matrix(n, K, false));
  }

 private:
  const BoundHingeProblem& problem_;
  Vector rms_;
  Exclusive exclusive_{"MultiplierNewton"};
  std::unique_ptr<MultiplierNewton> method_;
};

}  // namespace

void bind_multiplier_newton(nb::module_& m) {
  nb::class_<MultiplierNewtonRun>(
      m, "MultiplierNewton",
      "Proximal method of multipliers with semismooth Newton steps; see solvers.Newton.")
      .def(nb::init<const BoundHingeProblem&, Vector>(), nb::arg("problem"), nb::kw_only(),
           nb::arg("rms"), nb::keep_alive<1, 2>())
      .def("start", &MultiplierNewtonRun::start, nb::arg("weights"), nb::arg("intercept"),
           nb::arg("dual"), "Set W (d, outputs), b and Y (n, K), Y divided by alpha.")
      .def("solve", &MultiplierNewtonRun::solve, nb::arg("gain"), nb::arg("sigma"),
           nb::arg("sigma_free"), nb::arg("accuracy"), nb::arg("limit"), nb::arg("typical"),
           nb::arg("direct"), "Minimise the subproblem around the centre; returns what happened.")
      .def("accept", &MultiplierNewtonRun::accept, "The last point becomes the centre.")
      .def("reject", &MultiplierNewtonRun::reject, "Go back to the centre.")
      .def_prop_ro("typical_size", &MultiplierNewtonRun::typical_size,
                   "Mean size of the non-zero coordinates of omega * W.")
      .def("point", &MultiplierNewtonRun::point,
           "Copies of W (d, outputs), b (outputs,) and Y (n, K).");
}

}  // namespace sparsvm
