// Python drives the method: it asks for a gap, certifies the iterate, asks again if need be.
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
#include "design/design_sparse.hpp"
#include "solvers/sdca/sdca_driver.hpp"
#include "support/mmap_vector.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

namespace {

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;
using Integers = Input<std::int32_t, 1>;

/// The method together with the arrays that it points into.
class SdcaRun {
 public:
  SdcaRun(const Design& design, Integers y, Vector lambda, Matrix cost,
          std::optional<Vector> margin_scale, bool intercept, std::optional<Matrix> tilt,
          const std::string& kind, double l1_ratio, Integers groups, int64_t n_groups,
          bool per_class, Vector omega, double relaxation, int sweeps, nb::object callback)
      : arrays_{y, lambda, cost, margin_scale, tilt, groups, omega}, n_(design.n()), d_(design.d()),
        classes_(rows(cost)), monitor_(callback) {
    arrays_.check(design, n_groups);
    for (int64_t j = 0; j < d_; ++j) {
      if (!(omega.data()[j] > 0.0)) {
        throw std::invalid_argument("omega[" + std::to_string(j) + "] is " +
                                    std::to_string(omega.data()[j]) + ", but must be positive.");
      }
    }
    if (!(relaxation > 0.0 && relaxation < 2.0)) {
      throw std::invalid_argument("relaxation must lie between 0 and 2, but is " +
                                  std::to_string(relaxation) + ".");
    }
    const SdcaProblem problem{&design,
                              arrays_.y.data(),
                              arrays_.lam.data(),
                              arrays_.cost.data(),
                              arrays_.margin_factors(),
                              classes_,
                              intercept,
                              arrays_.tilts(),
                              {penalty_kind(kind), l1_ratio, arrays_.groups.data(), n_groups,
                               per_class, arrays_.omega.data(), d_, outputs()}};
    load_blas();
    method_ = std::make_unique<Sdca>(problem, SdcaOptions{relaxation, sweeps});
  }

  void start(std::optional<Matrix> weights, const Vector& intercept, std::optional<Matrix> dual) {
    if (weights) check_shape("weights", *weights, d_, outputs());
    check_size("intercept has", length(intercept), "the number of outputs is", outputs());
    if (dual) check_shape("dual", *dual, n_, classes_);
    nb::gil_scoped_release released;
    method_->start(weights ? weights->data() : nullptr, intercept.data(),
                   dual ? dual->data() : nullptr);
  }

  bool run(double target, int64_t sweeps) {
    nb::gil_scoped_release released;
    return method_->run(target, sweeps, monitor_);
  }

  nb::tuple point() {
    auto W = std::make_unique<Zeros>(static_cast<std::size_t>(d_ * outputs()));
    const Pages<double> rows = method_->used_weights();
    const double* next = rows.data();
    for (const int32_t j : method_->used()) {
      std::copy_n(next, outputs(), W->data() + j * outputs());
      next += outputs();
    }
    auto Y = std::make_unique<Pages<double>>(method_->dual());
    return nb::make_tuple(owned(std::move(W), d_, outputs()), intercept(),
                          owned(std::move(Y), n_, classes_));
  }

  nb::tuple give_point() {
    const std::vector<int32_t>& used = method_->used();
    auto features = std::make_unique<std::vector<int32_t>>(used);
    auto weights = std::make_unique<Pages<double>>(method_->give_weights());
    auto Y = std::make_unique<Pages<double>>(method_->give_dual());
    const int64_t m = std::ssize(used);
    const size_t shape[1] = {used.size()};
    int32_t* numbers = features->data();
    nb::ndarray<nb::numpy, int32_t, nb::ndim<1>> list(
        numbers, 1, shape, nb::capsule(features.release(), [](void* p) noexcept {
      delete static_cast<std::vector<int32_t>*>(p);
    }));
    return nb::make_tuple(list, owned(std::move(weights), m, outputs()), intercept(),
                          owned(std::move(Y), n_, classes_));
  }

  nb::object give_mean_dual() {
    auto mean = std::make_unique<Pages<double>>(method_->give_mean_dual());
    if (mean->empty()) return nb::none();
    return nb::cast(owned(std::move(mean), n_, classes_));
  }

  nb::dict values() const {
    const SdcaValues& v = method_->values();
    nb::dict out;
    out["objective"] = v.objective;
    out["dual"] = v.dual;
    out["samples"] = v.samples;
    out["scaling"] = v.scaling;
    out["features"] = v.features;
    out["intercept"] = v.intercept;
    out["norm"] = v.norm;
    out["sigma"] = method_->sigma();
    out["sigma_b"] = method_->sigma_b();
    out["sweeps"] = method_->sweeps();
    out["visits"] = method_->visits();
    out["inner"] = method_->inner();
    out["working_set"] = method_->working_set();
    out["entries"] = method_->entries();
    return out;
  }
  int64_t sweeps() const { return method_->sweeps(); }
  nb::object history() const { return monitor_.history(); }

 private:
  int64_t outputs() const { return arrays_.outputs(); }
  Output::Vector intercept() const {
    Output b(outputs());
    std::copy(method_->intercept().begin(), method_->intercept().end(), b.data());
    return b.vector();
  }

  HingeArrays arrays_;
  int64_t n_, d_, classes_;
  Monitor monitor_;
  std::unique_ptr<Sdca> method_;
};

}  // namespace

void bind_sdca(nb::module_& m) {
  nb::class_<SdcaRun>(m, "Sdca", "Dual coordinate ascent; see solvers.SDCA.")
      .def(nb::init<const Design&, Integers, Vector, Matrix, std::optional<Vector>, bool,
                    std::optional<Matrix>, const std::string&, double, Integers, int64_t, bool,
                    Vector, double, int, nb::object>(),
           nb::kw_only(), nb::arg("design"), nb::arg("y"), nb::arg("lam"), nb::arg("cost"),
           nb::arg("margin_scale") = nb::none(), nb::arg("intercept"), nb::arg("tilt") = nb::none(),
           nb::arg("kind"), nb::arg("l1_ratio"), nb::arg("groups"), nb::arg("n_groups"),
           nb::arg("per_class"), nb::arg("omega"), nb::arg("relaxation"), nb::arg("sweeps"),
           nb::arg("callback").none(), nb::keep_alive<1, 2>())
      .def("start", &SdcaRun::start, nb::arg("weights").none(), nb::arg("intercept"),
           nb::arg("dual").none(),
           "Set W (d, outputs), b and Y (n, K); None for W is 0, for Y a guess.")
      .def("run", &SdcaRun::run, nb::arg("target"), nb::arg("sweeps"),
           "Sweep until the estimated relative gap is at most target; false if it is not after "
           "so many sweeps.")
      .def("give_point", &SdcaRun::give_point,
           "The features in use, their rows of W, b and Y; what is given is not held twice.")
      .def("give_mean_dual", &SdcaRun::give_mean_dual,
           "With l2 and sparse data the mean Y (n, K) whose W the point has; None otherwise.")
      .def("point", &SdcaRun::point, "Copies of W (d, outputs), b (outputs,) and Y (n, K).")
      .def("values", &SdcaRun::values, "What the last look at the whole problem found.")
      .def_prop_ro("sweeps", &SdcaRun::sweeps, "Sweeps over the samples so far.")
      .def("history", &SdcaRun::history, "One entry per look.");
}

}  // namespace sparsvm
