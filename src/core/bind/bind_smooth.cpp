// Smooth losses: block_newton and its paths, and label ranking, whose losses of all samples and products with
// their second derivatives the solvers in Python ask for.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "bind/arrays.hpp"
#include "bind/problems.hpp"
#include "solvers/block_newton/block_newton.hpp"

namespace sparsvm {

// -----------------------------------------------------------------
// Label ranking.

namespace {

// The mean loss and its derivative in the scores, R (n, labels).
nb::tuple slopes(const BoundRankingProblem& bound, const Matrix& S) {
  const RankingProblem& problem = bound.problem();
  const int64_t n = problem.n(), L = problem.outputs();
  check_shape("S", S, n, L);
  Output R(n * L);
  double value = 0.0;
  {
    nb::gil_scoped_release released;
    value = problem.slopes(nullptr, S.data(), R.data());
  }
  return nb::make_tuple(value, R.matrix(n, L, false));
}

double mean_loss(const BoundRankingProblem& bound, const Matrix& S) {
  check_shape("S", S, bound.n(), bound.outputs());
  nb::gil_scoped_release released;
  return bound.problem().value(nullptr, S.data());
}

// The second derivative at some scores; keeps the arrays of its problem alive.
class BoundPairHessian {
 public:
  BoundPairHessian(const BoundRankingProblem& bound, const Matrix& S)
      : bound_(bound), hessian_(made(bound, S)) {}

  Output::Matrix product(const Matrix& D) const {
    const int64_t n = bound_.n(), L = bound_.outputs();
    check_shape("D", D, n, L);
    return computed(n, L, false, [&](double* out) { hessian_.product(D.data(), out); });
  }
  Output::Matrix diagonal() const {
    const int64_t n = bound_.n(), L = bound_.outputs();
    return computed(n, L, false, [&](double* out) { hessian_.diagonal(out); });
  }

 private:
  static PairHessian made(const BoundRankingProblem& bound, const Matrix& S) {
    check_shape("S", S, bound.n(), bound.outputs());
    nb::gil_scoped_release released;
    return PairHessian(bound.problem().loss, bound.n(), S.data());
  }
  const BoundRankingProblem& bound_;
  PairHessian hessian_;
};

}  // namespace

BoundRankingProblem::BoundRankingProblem(const Design& design, Integers y, Flags sets,
                                         Vector factor, Vector mass, double alpha, bool intercept,
                                         const std::string& kind, double l1_ratio, Integers groups,
                                         int64_t n_groups, bool per_class, Vector omega)
    : y_(copied(y)), factor_(factor), mass_(mass),
      penalty_{kind, l1_ratio, copied(groups), n_groups, per_class, omega} {
  const int64_t n_sets = rows(sets), L = columns(sets);
  if (design.n() < 1 || L < 2 || n_sets < 1) {
    throw std::invalid_argument(
        "A ranking problem needs at least one sample, two labels and one label set; found " +
        std::to_string(design.n()) + " samples, " + std::to_string(L) + " labels and " +
        std::to_string(n_sets) + " sets.");
  }
  check_countable(L, "labels");
  check_size("y has", length(y), "the design's number of samples is", design.n());
  check_size("mass has", length(mass), "the design's number of samples is", design.n());
  check_size("factor has", length(factor), "the number of label sets is", n_sets);
  check_numbers("y", y_, n_sets);
  check_values("mass", mass, kPositive);
  check_values("factor", factor, kPositive);
  check_value("alpha", alpha, kPositive);
  penalty_.check(design.d());
  members_.resize(static_cast<std::size_t>(entries_of(n_sets, L)));
  positives_.resize(static_cast<std::size_t>(n_sets));
  double largest = 0.0;
  for (int64_t s = 0; s < n_sets; ++s) {
    int32_t* list = members_.data() + s * L;
    const uint8_t* has = sets.data() + s * L;
    int64_t at = 0;
    for (const bool wanted : {true, false}) {
      for (int64_t k = 0; k < L; ++k) {
        if ((has[k] != 0) == wanted) list[at++] = static_cast<int32_t>(k);
      }
      if (wanted) positives_[s] = static_cast<int32_t>(at);
    }
    largest = std::max(largest, factor.data()[s]);
  }
  problem_.design = &design;
  problem_.loss = {y_.data(), mass_.data(), members_.data(), positives_.data(), factor_.data(),
                   L,         largest};
  problem_.alpha = alpha;
  problem_.intercept = intercept;
  problem_.linear_term = nullptr;
  problem_.penalty = penalty_.view(design.d(), L);
}

void BoundRankingProblem::check_start(const Matrix& weights, const Vector& intercept) const {
  check_shape("weights", weights, d(), outputs());
  check_size("intercept has", length(intercept), "the number of labels is", outputs());
}

// -----------------------------------------------------------------
// block_newton.

namespace {

using InPlace = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::dict run_block_newton(const BoundSmoothProblem& bound, InPlace weights, bool warm,
                          std::optional<Vector> start_intercept, double tol, int max_iter,
                          double max_work, bool continuation, nb::object callback) {
  const SmoothProblem& problem = bound.problem();
  const int64_t outputs = problem.outputs();
  if (problem.loss.kind == LossKind::hinge) {
    throw std::invalid_argument(
        "block_newton: the loss must be one of squared_hinge, logistic and ovr_squared_hinge.");
  }
  check_shape("weights", Matrix(weights), problem.d(), outputs);
  if (warm) check_values("weights", weights, kFinite);
  if (start_intercept) {
    check_size("start_intercept has", length(*start_intercept), "the number of outputs is",
               outputs);
    check_values("start_intercept", *start_intercept, kFinite);
  }
  if (!(tol > 0.0) || max_iter < 0 || !(max_work >= 0.0)) {
    throw std::invalid_argument("block_newton: tol = " + std::to_string(tol) +
                                " must be positive, max_iter = " + std::to_string(max_iter) +
                                " and max_work = " + std::to_string(max_work) + " not negative.");
  }
  Monitor monitor(callback);
  load_blas();
  Output b(outputs);
  monitor.offer([&] {
    Output W(problem.d() * outputs), intercept(outputs);
    std::copy_n(weights.data(), problem.d() * outputs, W.data());
    std::copy_n(b.data(), outputs, intercept.data());
    return nb::make_tuple(nb::cast(W.matrix(problem.d(), outputs, false)).attr("T"),
                          intercept.vector());
  });
  BlockNewtonReport report;
  {
    nb::gil_scoped_release released;
    report = block_newton(problem, {weights.data(), b.data()},
                          {tol, max_iter, max_work, continuation, warm,
                           start_intercept ? start_intercept->data() : nullptr},
                          monitor);
  }
  nb::dict out;
  out["intercept"] = b.vector();
  out["iterations"] = report.iterations;
  out["stalled"] = report.stalled;
  out["products"] = report.products;
  out["work"] = report.work;
  out["history"] = monitor.history();
  return out;
}

class BoundSmoothPath {
 public:
  BoundSmoothPath(const BoundSmoothProblem& bound, Vector column_norms, double tol, int max_iter,
                  nb::object callback)
      : problem_(bound.problem()), column_norms_(std::move(column_norms)),
        monitor_(std::move(callback)) {
    if (problem_.loss.kind == LossKind::hinge || problem_.linear_term) {
      throw std::invalid_argument(
          "SmoothPath: the loss must be one of squared_hinge, logistic and ovr_squared_hinge, "
          "without a linear term.");
    }
    check_size("column_norms has", length(column_norms_), "the number of features is",
               problem_.d());
    check_values("column_norms", column_norms_, kNotNegative);
    if (!(tol > 0.0) || max_iter < 0) {
      throw std::invalid_argument("SmoothPath: tol = " + std::to_string(tol) +
                                  " must be positive and max_iter = " + std::to_string(max_iter) +
                                  " not negative.");
    }
    load_blas();
    path_.emplace(problem_, column_norms_.data(), tol, max_iter, monitor_);
  }

  void start(const Matrix& weights, const Vector& intercept) {
    check_shape("weights", weights, problem_.d(), problem_.outputs());
    check_size("intercept has", length(intercept), "the number of outputs is", problem_.outputs());
    check_values("weights", weights, kFinite);
    check_values("intercept", intercept, kFinite);
    const Exclusive::Turn turn = exclusive_.take();
    path_->start(weights.data(), intercept.data());
  }

  nb::dict solve(double alpha) {
    if (!(alpha > 0.0) || !std::isfinite(alpha)) {
      throw std::invalid_argument("SmoothPath: alpha must be positive and finite, but is " +
                                  std::to_string(alpha) + ".");
    }
    const Exclusive::Turn turn = exclusive_.take();
    SmoothPathPoint point;
    {
      nb::gil_scoped_release released;
      point = path_->solve(alpha);
    }
    nb::dict out;
    out["objective"] = point.objective;
    out["loss"] = point.loss;
    out["bound"] = point.bound;
    out["seconds"] = point.seconds;
    out["iterations"] = point.iterations;
    out["converged"] = point.converged;
    out["balanced"] = point.balanced;
    out["intercept"] = to_numpy(point.intercept);
    out["features"] = to_numpy(point.features);
    out["weights"] = to_numpy(point.weights);
    return out;
  }

 private:
  const SmoothProblem& problem_;
  Vector column_norms_;
  Monitor monitor_;
  std::optional<SmoothPath> path_;
  Exclusive exclusive_{"SmoothPath"};
};

}  // namespace

void bind_smooth(nb::module_& m) {
  nb::class_<BoundRankingProblem>(m, "RankingProblem",
                                  "A label ranking problem with its arrays, checked; see "
                                  "sparsvm.problem.ranking. Weights are feature-major.")
      .def(nb::init<const Design&, Integers, Flags, Vector, Vector, double, bool,
                    const std::string&, double, Integers, int64_t, bool, Vector>(),
           nb::kw_only(), nb::arg("design"), nb::arg("y"), nb::arg("sets"), nb::arg("factor"),
           nb::arg("mass"), nb::arg("alpha"), nb::arg("intercept"), nb::arg("kind"),
           nb::arg("l1_ratio"), nb::arg("groups"), nb::arg("n_groups"), nb::arg("per_class"),
           nb::arg("omega"), nb::keep_alive<1, 2>())
      .def("slopes", &slopes, nb::arg("S"),
           "The mean loss and its derivative in the scores (n, labels).")
      .def("mean_loss", &mean_loss, nb::arg("S"), "The mean loss at the scores (n, labels).")
      .def_prop_ro("curvature_bound",
                   [](const BoundRankingProblem& b) { return b.problem().loss.curvature_bound(); },
                   "The factor of sum_i p_i |x_i|^2 in a Lipschitz constant.")
      .def_prop_ro("largest_curvature", [](const BoundRankingProblem& b) {
    return b.problem().loss.largest_curvature();
  }, "The largest curvature of a sample's loss in its scores.");
  nb::class_<BoundPairHessian>(m, "PairHessian",
                               "The second derivative of the mean ranking loss at some scores.")
      .def(nb::init<const BoundRankingProblem&, const Matrix&>(), nb::arg("problem"), nb::arg("S"),
           nb::keep_alive<1, 2>())
      .def("product", &BoundPairHessian::product, nb::arg("D"),
           "The product with directions of the scores (n, labels).")
      .def("diagonal", &BoundPairHessian::diagonal, "Its diagonal (n, labels).");
  m.def("block_newton", &run_block_newton, nb::arg("problem"), nb::kw_only(),
        nb::arg("weights").noconvert(), nb::arg("warm"), nb::arg("start_intercept").none(),
        nb::arg("tol"), nb::arg("max_iter"),
        nb::arg("max_work") = std::numeric_limits<double>::infinity(), nb::arg("continuation"),
        nb::arg("callback").none(),
        "Solve a smooth loss with a sparse penalty; see solvers/block_newton.py for the meaning of "
        "the arguments. The solution is left in `weights`, which hold the start if `warm`.");
  nb::class_<BoundSmoothPath>(
      m, "SmoothPath",
      "Solutions of a smooth loss with a sparse penalty at one alpha after the "
      "other; see path/smooth_path.py.")
      .def(nb::init<const BoundSmoothProblem&, Vector, double, int, nb::object>(),
           nb::arg("problem"), nb::kw_only(), nb::arg("column_norms"), nb::arg("tol"),
           nb::arg("max_iter"), nb::arg("callback").none(), nb::keep_alive<1, 2>())
      .def("start", &BoundSmoothPath::start, nb::arg("weights"), nb::arg("intercept"),
           "Go on from these weights (d, outputs) and intercepts.")
      .def("solve", &BoundSmoothPath::solve, nb::arg("alpha"),
           "The solution at alpha, from the last one: objective, bound, the features in use and "
           "their "
           "weights (features x outputs), whether the gap met the tolerance, and whether the "
           "intercept is optimal to rounding, so that the gap needs no further proof.");
}

}  // namespace sparsvm
