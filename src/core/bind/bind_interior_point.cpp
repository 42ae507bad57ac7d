// Binding of the interior point: sizes are checked here, nothing Python-like goes further.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "solvers/interior_point/interior_point.hpp"

namespace sparsvm {

namespace {

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;
using Integers = Input<std::int32_t, 1>;

void expect(const char* what, std::int64_t found, std::int64_t wanted) {
  if (found != wanted)
    throw std::invalid_argument(std::string("interior_point: ") + what + " has size " +
                                std::to_string(found) + " where " + std::to_string(wanted) +
                                " was expected.");
}

void expect_shape(const char* what, const Matrix& a, std::int64_t rows, std::int64_t columns) {
  if (static_cast<std::int64_t>(a.shape(0)) != rows ||
      static_cast<std::int64_t>(a.shape(1)) != columns)
    throw std::invalid_argument(std::string("interior_point: ") + what + " has shape (" +
                                std::to_string(a.shape(0)) + ", " + std::to_string(a.shape(1)) +
                                ") where (" + std::to_string(rows) + ", " +
                                std::to_string(columns) + ") was expected.");
}

void check_range(const char* what, const Integers& a, std::int64_t limit) {
  for (std::size_t i = 0; i < a.shape(0); ++i)
    if (a.data()[i] < 0 || a.data()[i] >= limit)
      throw std::invalid_argument(std::string("interior_point: ") + what + "[" + std::to_string(i) +
                                  "] is " + std::to_string(a.data()[i]) + ", outside 0.." +
                                  std::to_string(limit - 1) + ".");
}

template <typename Array, typename Accept>
void check_values(const char* what, const Array& a, Accept accept, const char* must) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!std::isfinite(a.data()[i]) || !accept(a.data()[i]))
      throw std::invalid_argument(std::string("interior_point: ") + what + "[" + std::to_string(i) +
                                  "] is " + std::to_string(a.data()[i]) + ", but must be " + must +
                                  ".");
}

void check_scalar(const char* what, double value, bool fine, const char* must) {
  if (!fine)
    throw std::invalid_argument(std::string("interior_point: ") + what + " is " +
                                std::to_string(value) + ", but must be " + must + ".");
}

nb::object matrix_to_numpy(std::vector<double>&& values, std::size_t rows, std::size_t columns) {
  auto* kept = new std::vector<double>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return nb::ndarray<nb::numpy, double, nb::ndim<2>>(kept->data(), {rows, columns}, owner).cast();
}

nb::dict interior_point(const Design& design, Integers y, Vector lambda, Matrix margins,
                        const std::string& kind, double l1_ratio, Integers groups,
                        std::int64_t n_groups, bool per_class, Vector omega, Vector column_norms,
                        bool intercept, std::optional<Matrix> tilt,
                        std::optional<Matrix> start_dual, std::optional<Matrix> start_weights,
                        std::optional<Vector> start_intercept, double objective_unit, double offset,
                        double tol, int max_iter, bool open, bool across_features, bool inside,
                        double residual, nb::object callback) {
  const std::int64_t n = design.n(), d = design.d(),
                     K = static_cast<std::int64_t>(margins.shape(1));
  if (n < 1 || K < 2)
    throw std::invalid_argument(
        "interior_point: needs at least one sample and two classes, found " + std::to_string(n) +
        " samples and " + std::to_string(K) + " classes.");
  const std::int64_t outputs = K == 2 ? 1 : K;
  expect("y", static_cast<std::int64_t>(y.shape(0)), n);
  expect("lambda", static_cast<std::int64_t>(lambda.shape(0)), n);
  expect_shape("margins", margins, n, K);
  expect("omega", static_cast<std::int64_t>(omega.shape(0)), d);
  expect("column_norms", static_cast<std::int64_t>(column_norms.shape(0)), d);
  expect("groups", static_cast<std::int64_t>(groups.shape(0)), d);
  if (n_groups < 0 || n_groups > d)
    throw std::invalid_argument("interior_point: n_groups is " + std::to_string(n_groups) +
                                " for " + std::to_string(d) + " features.");
  check_range("y", y, K);
  check_range("groups", groups, n_groups);
  if (tilt) expect_shape("tilt", *tilt, d, outputs);
  if (start_dual) expect_shape("start_dual", *start_dual, n, K);
  if (start_weights) expect_shape("start_weights", *start_weights, d, outputs);
  if (start_intercept)
    expect("start_intercept", static_cast<std::int64_t>(start_intercept->shape(0)), outputs);
  if (start_dual && (!start_weights || !start_intercept))
    throw std::invalid_argument("interior_point: a start needs dual, weights and intercept.");

  const auto any = [](double) { return true; };
  const auto nonnegative = [](double v) { return v >= 0.0; };
  check_values("lambda", lambda, [](double v) { return v > 0.0; }, "positive and finite");
  check_values("margins", margins, any, "finite");
  check_values("omega", omega, nonnegative, "finite and not negative");
  if (tilt) check_values("tilt", *tilt, any, "finite");
  if (start_dual) check_values("start_dual", *start_dual, nonnegative, "finite and not negative");
  if (start_weights) check_values("start_weights", *start_weights, any, "finite");
  if (start_intercept) check_values("start_intercept", *start_intercept, any, "finite");
  check_scalar("l1_ratio", l1_ratio, l1_ratio >= 0.0 && l1_ratio <= 1.0, "between 0 and 1");
  check_scalar("tol", tol, tol > 0.0, "positive");
  check_scalar("residual", residual, residual >= 0.0, "at least 0");
  check_scalar("max_iter", max_iter, max_iter >= 0, "at least 0");

  const PenaltyKind parsed = penalty_kind(kind);
  Monitor monitor(callback);
  load_blas();
  InteriorPointResult result;
  {
    nb::gil_scoped_release unlocked;
    const PenaltyLayout layout(parsed, l1_ratio, groups.data(), n_groups, per_class, omega.data(),
                               d, outputs);
    const HingeTask task{design,
                         y.data(),
                         lambda.data(),
                         margins.data(),
                         static_cast<int>(K),
                         parsed,
                         omega.data(),
                         intercept,
                         tilt ? tilt->data() : nullptr,
                         start_dual ? start_dual->data() : nullptr,
                         start_weights ? start_weights->data() : nullptr,
                         start_intercept ? start_intercept->data() : nullptr,
                         column_norms.data(),
                         offset};
    InteriorPoint solver(task, layout, monitor, objective_unit);
    result = solver.solve({tol, max_iter, open, across_features, inside, residual});
  }
  nb::dict out;
  out["used"] = to_numpy(result.used);
  out["weights"] = matrix_to_numpy(std::move(result.weights), result.used.size(), outputs);
  out["intercept"] = to_numpy(result.intercept);
  out["dual"] = matrix_to_numpy(std::move(result.dual), n, K);
  out["bound"] = result.bound;
  out["converged"] = result.converged;
  out["iterations"] = result.iterations;
  out["stalled"] = result.stalled;
  out["history"] = monitor.history();
  return out;
}

// What WatchedBlocks finds along a walk of the dual point from zero; for tests.
nb::list near_blocks(
    const Design& design,
    const nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>& moves,
    const std::string& kind, double l1_ratio, Integers groups, std::int64_t n_groups,
    bool per_class, Vector omega, Vector column_norms, double theta) {
  const std::int64_t d = design.d(), n = design.n();
  const auto steps = static_cast<std::int64_t>(moves.shape(0)),
             outputs = static_cast<std::int64_t>(moves.shape(1));
  expect("moves", static_cast<std::int64_t>(moves.shape(2)), n);
  expect("omega", static_cast<std::int64_t>(omega.shape(0)), d);
  expect("groups", static_cast<std::int64_t>(groups.shape(0)), d);
  expect("column_norms", static_cast<std::int64_t>(column_norms.shape(0)), d);
  check_range("groups", groups, n_groups);
  check_scalar("theta", theta, theta >= WatchedBlocks::kNear, "at least 0.9");
  load_blas();
  const PenaltyLayout layout(penalty_kind(kind), l1_ratio, groups.data(), n_groups, per_class,
                             omega.data(), d, outputs);
  WatchedBlocks watched(design, layout, static_cast<int>(outputs), column_norms.data());
  std::vector<double> Y(static_cast<std::size_t>(n * outputs)),
      G(static_cast<std::size_t>(d * outputs)), dG(G);
  nb::list out;
  for (std::int64_t t = 0; t < steps; ++t) {
    const double* move = moves.data() + t * n * outputs;
    watched.price(Y.data(), move, 1.0, G.data(), dG.data());
    std::vector<std::int64_t> near;
    watched.scan(G.data(), dG.data(), 1.0, theta, [&](std::int64_t b) { near.push_back(b); });
    out.append(nb::make_tuple(nb::cast(near), watched.n_priced()));
    for (std::size_t a = 0; a < Y.size(); ++a) Y[a] += move[a];
    watched.advance(1.0, dG.data(), G.data());
  }
  return out;
}

}  // namespace

void bind_interior_point(nb::module_& m) {
  m.def("interior_point", &interior_point, nb::arg("design"), nb::arg("y"), nb::arg("lam"),
        nb::arg("margins"), nb::arg("kind"), nb::arg("l1_ratio"), nb::arg("groups"),
        nb::arg("n_groups"), nb::arg("per_class"), nb::arg("omega"), nb::arg("column_norms"),
        nb::arg("intercept"), nb::arg("tilt").none(), nb::arg("start_dual").none(),
        nb::arg("start_weights").none(), nb::arg("start_intercept").none(),
        nb::arg("objective_unit"), nb::arg("offset"), nb::arg("tol"), nb::arg("max_iter"),
        nb::arg("open"), nb::arg("across_features"), nb::arg("inside"), nb::arg("residual"),
        nb::arg("callback").none(),
        "Solve the multiclass hinge with a sparse penalty; see solvers/interior_point.py for the "
        "meaning of the arguments.");
  m.def("near_blocks", &near_blocks, nb::arg("design"), nb::arg("moves"), nb::arg("kind"),
        nb::arg("l1_ratio"), nb::arg("groups"), nb::arg("n_groups"), nb::arg("per_class"),
        nb::arg("omega"), nb::arg("column_norms"), nb::arg("theta"),
        "For every move (outputs x n) of a dual point that starts at zero, the blocks of the "
        "penalty whose dual norm is beyond theta after it, and how many features were priced.");
}

}  // namespace sparsvm
