// Binding of block_newton: sizes are checked here, nothing Python-like goes further.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "solvers/block_newton/block_newton.hpp"

namespace sparsvm {

namespace {

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;
using Integers = Input<std::int32_t, 1>;
using InPlace = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

RowLoss row_loss(const std::string& name) {
  if (name == "squared_hinge") return RowLoss::squared;
  if (name == "logistic") return RowLoss::logistic;
  if (name == "ovr_squared_hinge") return RowLoss::one_vs_rest;
  throw std::invalid_argument(
      "The loss must be one of squared_hinge, logistic and ovr_squared_hinge, but is '" + name +
      "'.");
}

void check_shape(const char* what, const Matrix& array, int64_t n, int64_t m) {
  if (rows(array) == n && columns(array) == m) return;
  throw std::invalid_argument(std::string("block_newton: ") + what + " has shape (" +
                              std::to_string(rows(array)) + ", " + std::to_string(columns(array)) +
                              ") but must have shape (" + std::to_string(n) + ", " +
                              std::to_string(m) + ").");
}

void check_range(const char* what, const Integers& a, int64_t limit) {
  for (int64_t i = 0; i < length(a); ++i) {
    if (a.data()[i] >= 0 && a.data()[i] < limit) continue;
    throw std::invalid_argument(std::string("block_newton: ") + what + "[" + std::to_string(i) +
                                "] is " + std::to_string(a.data()[i]) + ", outside 0.." +
                                std::to_string(limit - 1) + ".");
  }
}

template <typename Array, typename Accept>
void check_values(const char* what, const Array& a, Accept accept, const char* must) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a.data()[i]) && accept(a.data()[i])) continue;
    throw std::invalid_argument(std::string("block_newton: ") + what + "[" + std::to_string(i) +
                                "] is " + std::to_string(a.data()[i]) + ", but must be " + must +
                                ".");
  }
}

nb::dict block_newton(const Design& design, const std::string& loss, Integers y, Vector mass,
                      Matrix cost, std::optional<Vector> margin_scale, double alpha, bool intercept,
                      std::optional<Matrix> tilt, const std::string& kind, double l1_ratio,
                      Integers groups, int64_t n_groups, bool per_class, Vector omega,
                      InPlace weights, bool warm, std::optional<Vector> start_intercept, double tol,
                      int max_iter, bool continuation, bool insist, nb::object callback) {
  const int64_t n = design.n(), d = design.d(), K = rows(cost), outputs = K == 2 ? 1 : K;
  if (n < 1 || K < 2) {
    throw std::invalid_argument("block_newton: needs at least one sample and two classes, found " +
                                std::to_string(n) + " samples and " + std::to_string(K) +
                                " classes.");
  }
  check_shape("cost", cost, K, K);
  check_size("y has", length(y), "the design's number of samples is", n);
  check_size("mass has", length(mass), "the design's number of samples is", n);
  if (margin_scale) {
    check_size("margin_scale has", length(*margin_scale), "the design's number of samples is", n);
  }
  check_size("groups has", length(groups), "the design's number of features is", d);
  check_size("omega has", length(omega), "the design's number of features is", d);
  if (tilt) check_shape("tilt", *tilt, d, outputs);
  check_shape("weights", Matrix(weights), d, outputs);
  if (start_intercept) {
    check_size("start_intercept has", length(*start_intercept), "the number of outputs is",
               outputs);
  }
  check_range("y", y, K);
  check_range("groups", groups, n_groups);
  const auto any = [](double) { return true; };
  const auto nonnegative = [](double v) { return v >= 0.0; };
  check_values("mass", mass, [](double v) { return v > 0.0; }, "positive and finite");
  check_values("cost", cost, nonnegative, "finite and not negative");
  if (margin_scale)
    check_values("margin_scale", *margin_scale, nonnegative, "finite and not negative");
  check_values("omega", omega, nonnegative, "finite and not negative");
  if (tilt) check_values("tilt", *tilt, any, "finite");
  if (warm) check_values("weights", weights, any, "finite");
  if (start_intercept) check_values("start_intercept", *start_intercept, any, "finite");
  if (!(alpha > 0.0) || !std::isfinite(alpha) || !(tol > 0.0) || max_iter < 0 ||
      !(l1_ratio >= 0.0) || !(l1_ratio <= 1.0)) {
    throw std::invalid_argument(
        "block_newton: alpha = " + std::to_string(alpha) + " and tol = " + std::to_string(tol) +
        " must be positive, max_iter = " + std::to_string(max_iter) +
        " not negative and l1_ratio = " + std::to_string(l1_ratio) + " between 0 and 1.");
  }

  const RowLoss parsed_loss = row_loss(loss);
  const PenaltyKind parsed_kind = penalty_kind(kind);
  Monitor monitor(callback);
  load_blas();
  Output b(outputs);
  int iterations = 0;
  bool stalled = false;
  std::int64_t products = 0;
  {
    nb::gil_scoped_release released;
    SmoothRows state(parsed_loss, n, static_cast<int>(K), y.data(), mass.data(), cost.data(),
                     margin_scale ? margin_scale->data() : nullptr);
    UnitPenalty penalty(parsed_kind, l1_ratio, groups.data(), n_groups, per_class, omega.data(), d,
                        state.outputs, state.width);
    const SmoothTask task{design,
                          parsed_loss,
                          static_cast<int>(K),
                          y.data(),
                          mass.data(),
                          cost.data(),
                          margin_scale ? margin_scale->data() : nullptr,
                          alpha,
                          intercept,
                          tilt ? tilt->data() : nullptr,
                          warm,
                          start_intercept ? start_intercept->data() : nullptr};
    BlockNewton solver(task, {weights.data(), b.data()}, penalty, state, monitor);
    solver.solve({tol, max_iter, continuation, insist});
    iterations = solver.iterations();
    stalled = solver.stalled();
    products = solver.products();
  }
  nb::dict out;
  out["intercept"] = b.vector();
  out["iterations"] = iterations;
  out["stalled"] = stalled;
  out["products"] = products;
  out["history"] = monitor.history();
  return out;
}

}  // namespace

void bind_block_newton(nb::module_& m) {
  m.def("block_newton", &block_newton, nb::arg("design"), nb::arg("loss"), nb::arg("y"),
        nb::arg("mass"), nb::arg("cost"), nb::arg("margin_scale").none(), nb::arg("alpha"),
        nb::arg("intercept"), nb::arg("tilt").none(), nb::arg("kind"), nb::arg("l1_ratio"),
        nb::arg("groups"), nb::arg("n_groups"), nb::arg("per_class"), nb::arg("omega"),
        nb::arg("weights").noconvert(), nb::arg("warm"), nb::arg("start_intercept").none(),
        nb::arg("tol"), nb::arg("max_iter"), nb::arg("continuation"), nb::arg("insist"),
        nb::arg("callback").none(),
        "Solve a smooth loss with a sparse penalty; see solvers/block_newton.py for the meaning of "
        "the arguments. The solution is left in `weights`, which hold the start if `warm`.");
}

}  // namespace sparsvm
