// Python drives the method of multipliers one subproblem at a time and decides how to go on.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "bind/hinge_arrays.hpp"
#include "bind/module.hpp"
#include "solvers/multiplier_newton/multiplier_newton.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

namespace {

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;
using Integers = Input<std::int32_t, 1>;

/// The method together with the arrays that it points into.
class MultiplierNewtonRun {
 public:
  MultiplierNewtonRun(const Design& design, Integers y, Vector lam, Matrix cost,
                      std::optional<Vector> margin_scale, bool intercept,
                      std::optional<Matrix> tilt, const std::string& kind, double l1_ratio,
                      Integers groups, int64_t n_groups, bool per_class, Vector omega, Vector rms)
      : arrays_{y, lam, cost, margin_scale, tilt, groups, omega}, rms_(rms), n_(design.n()),
        d_(design.d()), classes_(rows(cost)) {
    arrays_.check(design, n_groups);
    check_size("rms has", length(rms), "the design's number of features is", d_);
    const HingeTerms hinge{n_,
                           classes_,
                           arrays_.y.data(),
                           arrays_.lam.data(),
                           arrays_.cost.data(),
                           arrays_.margin_factors()};
    method_ = std::make_unique<MultiplierNewton>(MultiplierNewtonProblem{
        &design, hinge, penalty_kind(kind), l1_ratio, arrays_.groups.data(), n_groups, per_class,
        arrays_.omega.data(), rms_.data(), intercept, arrays_.tilts()});
  }

  void start(const Matrix& weights, const Vector& intercept, const Matrix& dual) {
    check_shape("weights", weights, d_, outputs());
    check_size("intercept has", length(intercept), "the number of outputs is", outputs());
    check_shape("dual", dual, n_, classes_);
    method_->start(weights.data(), intercept.data(), dual.data());
  }

  nb::dict solve(double gain, double sigma, double sigma_free, double accuracy, int64_t limit,
                 double typical, int64_t direct) {
    load_blas();
    method_->set_direct_limit(direct);
    Monitor monitor{nb::none()};
    NewtonReport report;
    {
      nb::gil_scoped_release released;
      report = method_->solve(gain, sigma, sigma_free, accuracy, limit, typical,
                              [&] { monitor.poll(); });
    }
    nb::dict out;
    out["steps"] = report.steps;
    out["solved"] = report.solved;
    out["residual"] = report.residual;
    out["tied"] = report.tied;
    out["unknowns"] = report.unknowns;
    out["gradient_iterations"] = report.inner;
    out["fallbacks"] = report.fallbacks;
    out["features"] = method_->working_set();
    return out;
  }

  void accept() { method_->accept(); }
  void reject() { method_->reject(); }
  double typical_size() const { return method_->typical_size(); }

  /// W, b and Y of the last subproblem.
  nb::tuple point() const {
    Output W(d_ * outputs()), b(outputs()), Y(n_ * classes_);
    method_->weights(W.data());
    std::copy(method_->intercept().begin(), method_->intercept().end(), b.data());
    std::copy(method_->dual().begin(), method_->dual().end(), Y.data());
    return nb::make_tuple(W.matrix(d_, outputs(), false), b.vector(),
                          Y.matrix(n_, classes_, false));
  }

 private:
  int64_t outputs() const { return arrays_.outputs(); }

  HingeArrays arrays_;
  Vector rms_;
  int64_t n_, d_, classes_;
  std::unique_ptr<MultiplierNewton> method_;
};

}  // namespace

void bind_multiplier_newton(nb::module_& m) {
  nb::class_<MultiplierNewtonRun>(
      m, "MultiplierNewton",
      "Proximal method of multipliers with semismooth Newton steps; see solvers.Newton.")
      .def(nb::init<const Design&, Integers, Vector, Matrix, std::optional<Vector>, bool,
                    std::optional<Matrix>, const std::string&, double, Integers, int64_t, bool,
                    Vector, Vector>(),
           nb::kw_only(), nb::arg("design"), nb::arg("y"), nb::arg("lam"), nb::arg("cost"),
           nb::arg("margin_scale") = nb::none(), nb::arg("intercept"), nb::arg("tilt") = nb::none(),
           nb::arg("kind"), nb::arg("l1_ratio"), nb::arg("groups"), nb::arg("n_groups"),
           nb::arg("per_class"), nb::arg("omega"), nb::arg("rms"), nb::keep_alive<1, 2>())
      .def("start", &MultiplierNewtonRun::start, nb::arg("weights"), nb::arg("intercept"),
           nb::arg("dual"), "Set W (d, outputs), b and Y (n, K), Y in units of lam.")
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
