// Python drives the method in chunks: it asks for some iterations, looks at the iterate, asks
// again.
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
#include "bind/module.hpp"
#include "solvers/papers/fbpd.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

namespace {

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;
using Integers = Input<std::int32_t, 1>;

/// The method together with the arrays that it points into.
class FbpdRun {
 public:
  FbpdRun(const Design& design, Integers y, Vector mass, Matrix cost,
          std::optional<Vector> margin_scale, double alpha, bool intercept,
          std::optional<Matrix> tilt, const std::string& kind, double l1_ratio, Integers groups,
          int64_t n_groups, bool per_class, Vector omega, double tau, double sigma)
      : y_(y), mass_(mass), cost_(cost), margin_scale_(margin_scale), tilt_(tilt), n_(design.n()),
        d_(design.d()), classes_(rows(cost)) {
    if (classes_ < 2) throw std::invalid_argument("cost must have two rows at least.");
    check_shape("cost", cost, classes_, classes_);
    check_size("y has", length(y), "the design's number of samples is", n_);
    check_size("mass has", length(mass), "the design's number of samples is", n_);
    if (margin_scale) {
      check_size("margin_scale has", length(*margin_scale), "the design's number of samples is",
                 n_);
    }
    check_size("groups has", length(groups), "the design's number of features is", d_);
    check_size("omega has", length(omega), "the design's number of features is", d_);
    check_numbers("y", y, classes_);
    const FbpdProblem problem{&design,
                              y_.data(),
                              mass_.data(),
                              cost_.data(),
                              margin_scale_ ? margin_scale_->data() : nullptr,
                              classes_,
                              alpha,
                              intercept,
                              tilt_ ? tilt_->data() : nullptr};
    if (tilt) check_shape("tilt", *tilt, d_, problem.outputs());
    PenaltyProx prox(penalty_kind(kind), l1_ratio, d_, problem.outputs(), groups.data(), n_groups,
                     per_class, omega.data());
    method_ = std::make_unique<Fbpd>(problem, std::move(prox), tau, sigma);
  }

  void start(const Matrix& weights, const Vector& intercept, const Matrix& dual) {
    check_shape("weights", weights, d_, outputs());
    check_size("intercept has", length(intercept), "the number of outputs is", outputs());
    check_shape("dual", dual, n_, classes_);
    method_->start(weights.data(), intercept.data(), dual.data());
  }

  int64_t run(int64_t iterations, double tolerance) {
    load_blas();
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    return method_->run(iterations, tolerance, [&] { monitor.poll(); });
  }

  void products(int64_t iterations) {
    load_blas();
    nb::gil_scoped_release released;
    method_->products(iterations);
  }

  bool settled() const { return method_->settled(); }

  /// W, b and Y of the last iterate, or of the mean over the window.
  nb::tuple iterate(bool mean) const {
    Output W(d_ * outputs()), b(outputs()), Y(n_ * classes_);
    if (mean) {
      method_->mean_weights(W.data());
      method_->mean_intercept(b.data());
      method_->mean_dual(Y.data());
    } else {
      std::copy(method_->weights().begin(), method_->weights().end(), W.data());
      std::copy(method_->intercept().begin(), method_->intercept().end(), b.data());
      method_->dual(Y.data());
    }
    return nb::make_tuple(W.matrix(d_, outputs(), false), b.vector(),
                          Y.matrix(n_, classes_, false));
  }
  nb::tuple last() const { return iterate(false); }
  nb::tuple mean() const { return iterate(true); }
  void forget() { method_->forget(); }

 private:
  int64_t outputs() const { return classes_ == 2 ? 1 : classes_; }

  Integers y_;
  Vector mass_;
  Matrix cost_;
  std::optional<Vector> margin_scale_;
  std::optional<Matrix> tilt_;
  int64_t n_, d_, classes_;
  std::unique_ptr<Fbpd> method_;
};

double norm_of(const Design& design, bool intercept) {
  load_blas();
  Monitor monitor{nb::none()};
  nb::gil_scoped_release released;
  return operator_norm(design, intercept, [&] { monitor.poll(); });
}

}  // namespace

void bind_fbpd(nb::module_& m) {
  m.def("operator_norm", &norm_of, nb::arg("design"), nb::arg("intercept"),
        "An upper estimate of the spectral norm of X, with a column of ones if intercept.");
  nb::class_<FbpdRun>(m, "Fbpd", "The forward-backward primal-dual method; see solvers.FBPD.")
      .def(nb::init<const Design&, Integers, Vector, Matrix, std::optional<Vector>, double, bool,
                    std::optional<Matrix>, const std::string&, double, Integers, int64_t, bool,
                    Vector, double, double>(),
           nb::kw_only(), nb::arg("design"), nb::arg("y"), nb::arg("mass"), nb::arg("cost"),
           nb::arg("margin_scale") = nb::none(), nb::arg("alpha"), nb::arg("intercept"),
           nb::arg("tilt") = nb::none(), nb::arg("kind"), nb::arg("l1_ratio"), nb::arg("groups"),
           nb::arg("n_groups"), nb::arg("per_class"), nb::arg("omega"), nb::arg("tau"),
           nb::arg("sigma"), nb::keep_alive<1, 2>())
      .def("start", &FbpdRun::start, nb::arg("weights"), nb::arg("intercept"), nb::arg("dual"),
           "Set W (d, outputs), b and Y (n, K).")
      .def("run", &FbpdRun::run, nb::arg("iterations"), nb::arg("tolerance") = -1.0,
           "Iterate; stop early once the relative change is at most tolerance, if that is not "
           "negative. Returns the number of iterations done.")
      .def_prop_ro("settled", &FbpdRun::settled,
                   "Whether the last run ended because the iterates had stopped moving.")
      .def("products", &FbpdRun::products, nb::arg("iterations"),
           "Only the two products of so many iterations; the state stays (for benchmarks).")
      .def("last", &FbpdRun::last, "Copies of W (d, outputs), b (outputs,) and Y (n, K).")
      .def("mean", &FbpdRun::mean, "The same, meaned over the iterates since forget().")
      .def("forget", &FbpdRun::forget, "Begin a new window of means.");
}

}  // namespace sparsvm
