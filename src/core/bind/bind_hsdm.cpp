// Python drives the method in chunks: it asks for some iterations, reads the iterate, asks again.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "solvers/papers/hsdm.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

namespace {

class HsdmRun {
 public:
  HsdmRun(Input<double, 2> x, Input<std::int32_t, 1> y, Input<double, 1> weight, int64_t classes,
          double gamma, double relaxation, double step, double decay, double radius)
      : n_(rows(x)), width_(columns(x) + 1), classes_(classes) {
    if (classes < 2) throw std::invalid_argument("There must be two classes at least.");
    check_countable(n_ * classes, "class scores");
    check_size("y has", length(y), "the number of samples is", n_);
    check_size("weight has", length(weight), "the number of samples is", n_);
    check_numbers("y", y, classes);
    const HsdmOptions options{gamma, relaxation, step, decay, radius};
    load_blas();
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    method_ = std::make_unique<Hsdm>(x.data(), n_, width_ - 1, y.data(), weight.data(), classes,
                                     options, [&] { monitor.poll(); });
  }

  void run(int64_t iterations) {
    load_blas();
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    method_->run(iterations, [&] { monitor.poll(); });
  }

  Output::Matrix point() const {
    Output out(classes_ * width_);
    std::copy(method_->point().begin(), method_->point().end(), out.data());
    return out.matrix(classes_, width_, false);
  }

  Output::Matrix dual() {
    return computed(n_, classes_, false, [&](double* out) { method_->dual(out); });
  }

  int64_t iteration() const { return method_->iteration(); }
  double t() const { return method_->t(); }
  double change() const { return method_->change(); }
  bool ball_active() const { return method_->ball_active(); }

 private:
  int64_t n_, width_, classes_;
  std::unique_ptr<Hsdm> method_;
};

}  // namespace

void bind_hsdm(nb::module_& m) {
  nb::class_<HsdmRun>(m, "Hsdm", "Hybrid steepest descent for the hierarchical problem.")
      .def(nb::init<Input<double, 2>, Input<std::int32_t, 1>, Input<double, 1>, int64_t, double,
                    double, double, double, double>(),
           nb::arg("x"), nb::arg("y"), nb::arg("weight"), nb::arg("classes"), nb::arg("gamma"),
           nb::arg("relaxation"), nb::arg("step"), nb::arg("decay"), nb::arg("radius"))
      .def("run", &HsdmRun::run, nb::arg("iterations"), "Iterate.")
      .def("point", &HsdmRun::point, "Weights and intercept of each class, (K, r + 1).")
      .def("dual", &HsdmRun::dual, "Multipliers of the hinge, (n, K).")
      .def_prop_ro("iteration", &HsdmRun::iteration)
      .def_prop_ro("t", &HsdmRun::t)
      .def_prop_ro("change", &HsdmRun::change)
      .def_prop_ro("ball_active", &HsdmRun::ball_active);
}

}  // namespace sparsvm
