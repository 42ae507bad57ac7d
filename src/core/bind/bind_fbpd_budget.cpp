// Python drives the methods in chunks, as it does Fbpd.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "solvers/papers/fbpd_budget.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

namespace {

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;
using Integers = Input<std::int32_t, 1>;

BudgetMethod budget_method(const std::string& name) {
  if (name == "epigraph") return BudgetMethod::epigraph;
  if (name == "linear") return BudgetMethod::linear;
  throw std::invalid_argument("method is '" + name + "' but must be 'epigraph' or 'linear'.");
}

/// The method together with the arrays that it points into.
class FbpdBudgetRun {
 public:
  FbpdBudgetRun(const Design& design, Integers y, Vector mass, Matrix margins, double eta,
                bool intercept, const std::string& kind, double l1_ratio, Integers groups,
                int64_t n_groups, bool per_class, Vector omega, const std::string& method,
                double ratio)
      : y_(y), mass_(mass), margins_(margins), n_(design.n()), d_(design.d()),
        classes_(columns(margins)) {
    if (classes_ < 2) throw std::invalid_argument("margins must have two columns at least.");
    check_shape("margins", margins, n_, classes_);
    check_size("y has", length(y), "the design's number of samples is", n_);
    check_size("mass has", length(mass), "the design's number of samples is", n_);
    check_size("groups has", length(groups), "the design's number of features is", d_);
    check_size("omega has", length(omega), "the design's number of features is", d_);
    if (!(ratio > 0.0)) throw std::invalid_argument("ratio must be positive.");
    for (int64_t i = 0; i < n_; ++i) {
      if (y.data()[i] >= 0 && y.data()[i] < classes_) continue;
      throw std::invalid_argument("y[" + std::to_string(i) + "] is " + std::to_string(y.data()[i]) +
                                  ", outside the " + std::to_string(classes_) + " classes.");
    }
    const BudgetProblem problem{&design,  y_.data(), mass_.data(), margins_.data(),
                                classes_, eta,       intercept};
    PenaltyProx prox(penalty_kind(kind), l1_ratio, d_, problem.outputs(), groups.data(), n_groups,
                     per_class, omega.data());
    const BudgetMethod which = budget_method(method);
    const double norm = norm_of(problem);
    const double square =
        which == BudgetMethod::epigraph ? std::max(norm * norm, 1.0) : norm * norm + 1.0;
    tau_ = std::sqrt(ratio / square);
    sigma_ = 1.0 / (tau_ * square);
    method_ = std::make_unique<FbpdBudget>(problem, std::move(prox), which, tau_, sigma_);
  }

  void start(const Matrix& weights, const Vector& intercept, const Matrix& dual) {
    check_shape("weights", weights, d_, outputs());
    check_size("intercept has", length(intercept), "the number of outputs is", outputs());
    check_shape("dual", dual, n_, classes_);
    load_blas();
    method_->start(weights.data(), intercept.data(), dual.data());
  }

  int64_t run(int64_t iterations, double tolerance) {
    load_blas();
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    return method_->run(iterations, tolerance, [&] { monitor.poll(); });
  }

  nb::tuple last() const { return iterate(false); }
  nb::tuple mean() const { return iterate(true); }
  void forget() { method_->forget(); }
  bool settled() const { return method_->settled(); }
  nb::object slack() const { return to_numpy(method_->slack()); }
  nb::tuple steps() const { return nb::make_tuple(tau_, sigma_); }

 private:
  int64_t outputs() const { return classes_ == 2 ? 1 : classes_; }

  static double norm_of(const BudgetProblem& problem) {
    load_blas();
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    return difference_norm(problem, [&] { monitor.poll(); });
  }

  nb::tuple iterate(bool mean) const {
    Output W(d_ * outputs()), b(outputs()), Y(n_ * classes_);
    if (mean) {
      method_->mean(W.data(), b.data(), Y.data());
    } else {
      std::copy(method_->weights().begin(), method_->weights().end(), W.data());
      std::copy(method_->intercept().begin(), method_->intercept().end(), b.data());
      std::copy(method_->dual().begin(), method_->dual().end(), Y.data());
    }
    return nb::make_tuple(W.matrix(d_, outputs(), false), b.vector(),
                          Y.matrix(n_, classes_, false));
  }

  Integers y_;
  Vector mass_;
  Matrix margins_;
  int64_t n_, d_, classes_;
  double tau_ = 0.0, sigma_ = 0.0;
  std::unique_ptr<FbpdBudget> method_;
};

}  // namespace

void bind_fbpd_budget(nb::module_& m) {
  nb::class_<FbpdBudgetRun>(
      m, "FbpdBudget",
      "Forward-backward primal-dual methods within a hinge budget; see solvers.FBPDEpigraph.")
      .def(nb::init<const Design&, Integers, Vector, Matrix, double, bool, const std::string&,
                    double, Integers, int64_t, bool, Vector, const std::string&, double>(),
           nb::kw_only(), nb::arg("design"), nb::arg("y"), nb::arg("mass"), nb::arg("margins"),
           nb::arg("eta"), nb::arg("intercept"), nb::arg("kind"), nb::arg("l1_ratio"),
           nb::arg("groups"), nb::arg("n_groups"), nb::arg("per_class"), nb::arg("omega"),
           nb::arg("method"), nb::arg("ratio"), nb::keep_alive<1, 2>())
      .def("start", &FbpdBudgetRun::start, nb::arg("weights"), nb::arg("intercept"),
           nb::arg("dual"), "Set W (d, outputs), b and the multipliers y (n, K).")
      .def("run", &FbpdBudgetRun::run, nb::arg("iterations"), nb::arg("tolerance") = -1.0,
           "Iterate; stop early once the relative change is at most tolerance, if that is not "
           "negative. Returns the number of iterations done.")
      .def_prop_ro("settled", &FbpdBudgetRun::settled,
                   "Whether the last run ended because the iterates had stopped moving.")
      .def_prop_ro("slack", &FbpdBudgetRun::slack, "The slack of each sample, shape (n,).")
      .def_prop_ro("steps", &FbpdBudgetRun::steps, "The steps tau and sigma.")
      .def("last", &FbpdBudgetRun::last,
           "Copies of W (d, outputs), b (outputs,) and the multipliers y (n, K).")
      .def("mean", &FbpdBudgetRun::mean, "The same, meaned over the iterates since forget().")
      .def("forget", &FbpdBudgetRun::forget, "Begin a new window of means.");
}

}  // namespace sparsvm
