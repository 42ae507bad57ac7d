// Python drives the method in chunks: it asks for some iterations, certifies an iterate, asks again.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "bind/module.hpp"
#include "bind/problems.hpp"
#include "bind/prox_callback.hpp"
#include "linalg/blas.hpp"
#include "solvers/papers/fbpd.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

namespace {

FbpdForm fbpd_form(const std::string& name) {
  if (name == "regularised") return FbpdForm::regularised;
  if (name == "epigraph") return FbpdForm::epigraph;
  if (name == "linear") return FbpdForm::linear;
  throw std::invalid_argument("form is '" + name +
                              "' but must be 'regularised', 'epigraph' or 'linear'.");
}

FbpdOptions checked(const std::string& form, double tau, double sigma, double eta) {
  const auto positive = [](double step) { return step > 0.0 && std::isfinite(step); };
  if (!positive(tau) || !positive(sigma)) {
    throw std::invalid_argument("The steps must be positive and finite, but tau is " +
                                std::to_string(tau) + " and sigma is " + std::to_string(sigma) +
                                ".");
  }
  return {fbpd_form(form), tau, sigma, eta};
}

class FbpdRun {
 public:
  FbpdRun(const BoundHingeProblem& problem, double tau, double sigma, const std::string& form,
          double eta, const nb::object& penalty)
      : problem_(problem), options_(checked(form, tau, sigma, eta)),
        method_(problem.problem(), prox_term(problem.problem().penalty, penalty), options_) {}

  void start(const Matrix& weights, const Vector& intercept, const Matrix& dual) {
    problem_.check_start(weights, intercept, dual);
    load_blas();
    method_.start(weights.data(), intercept.data(), dual.data());
  }

  int64_t run(int64_t iterations, double tolerance) {
    load_blas();
    Monitor monitor{nb::none()};
    const nb::gil_scoped_release released;
    return method_.run(iterations, tolerance, [&] { monitor.poll(); });
  }

  bool settled() const { return method_.settled(); }
  nb::tuple steps() const { return nb::make_tuple(options_.tau, options_.sigma); }
  nb::object slack() const { return to_numpy(method_.slack()); }
  nb::tuple last() const { return point(method_.last()); }
  nb::tuple mean() const { return point(method_.mean()); }
  void forget() { method_.forget(); }

 private:
  nb::tuple point(const FbpdPoint& x) const {
    const int64_t n = problem_.n(), d = problem_.d(), K = problem_.classes(),
                  outputs = problem_.outputs();
    Output W(d * outputs), Y(n * K);
    std::copy(x.weights.begin(), x.weights.end(), W.data());
    std::copy(x.dual.begin(), x.dual.end(), Y.data());
    return nb::make_tuple(W.matrix(d, outputs, false), to_numpy(x.intercept),
                          Y.matrix(n, K, false));
  }

  const BoundHingeProblem& problem_;
  FbpdOptions options_;
  Fbpd method_;
};

double norm_of_design(const Design& design, bool intercept) {
  load_blas();
  Monitor monitor{nb::none()};
  const nb::gil_scoped_release released;
  return operator_norm(design, intercept, [&] { monitor.poll(); });
}

double norm_of_differences(const BoundHingeProblem& problem) {
  load_blas();
  Monitor monitor{nb::none()};
  const nb::gil_scoped_release released;
  return difference_norm(problem.problem(), [&] { monitor.poll(); });
}

}  // namespace

void bind_fbpd(nb::module_& m) {
  m.def("operator_norm", &norm_of_design, nb::arg("design"), nb::arg("intercept"),
        "An upper estimate of the spectral norm of X, with a column of ones if intercept.");
  m.def("difference_norm", &norm_of_differences, nb::arg("problem"),
        "An upper estimate of the spectral norm of the map from W and b to score differences.");
  nb::class_<FbpdRun>(m, "Fbpd",
                      "Forward-backward primal-dual splitting; see solvers.FBPD and FBPDEpigraph.")
      .def(nb::init<const BoundHingeProblem&, double, double, const std::string&, double,
                    const nb::object&>(),
           nb::arg("problem"), nb::kw_only(), nb::arg("tau"), nb::arg("sigma"),
           nb::arg("form") = "regularised", nb::arg("eta") = 0.0,
           nb::arg("penalty").none() = nb::none(), nb::keep_alive<1, 2>())
      .def("start", &FbpdRun::start, nb::arg("weights"), nb::arg("intercept"), nb::arg("dual"),
           "Set W (d, outputs), b and Y (n, K).")
      .def("run", &FbpdRun::run, nb::arg("iterations"), nb::arg("tolerance") = -1.0,
           "Iterate; stop early once the relative change is at most tolerance, if that is not "
           "negative. Returns the number of iterations done.")
      .def_prop_ro("settled", &FbpdRun::settled,
                   "Whether the last run ended because the iterates had stopped moving.")
      .def_prop_ro("steps", &FbpdRun::steps, "The steps tau and sigma.")
      .def_prop_ro("slack", &FbpdRun::slack, "The slack of each sample within a budget, (n,).")
      .def("last", &FbpdRun::last, "Copies of W (d, outputs), b (outputs,) and Y (n, K).")
      .def("mean", &FbpdRun::mean, "The same, meaned over the iterates since forget().")
      .def("forget", &FbpdRun::forget, "Begin a new window of means.");
}

}  // namespace sparsvm
