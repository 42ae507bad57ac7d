// Bindings of paths: nothing Python-like goes further.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/problems.hpp"
#include "paths/hinge_path.hpp"

namespace sparsvm {

namespace {

// The path; the problem it points into is kept alive by Python.
class BoundHingePath {
 public:
  BoundHingePath(const BoundHingeProblem& bound, Vector column_norms, double column_dual_norm,
                 double tol, double reach, int max_iter, const Vector& plan, bool single_precision,
                 bool keep_duals, nb::object callback)
      : problem_(bound), column_norms_(std::move(column_norms)), monitor_(std::move(callback)),
        keep_duals_(keep_duals) {
    const HingeProblem& problem = bound.problem();
    if (problem.linear_term || problem.offset != 0.0 || problem.penalty.square != 0.0) {
      throw std::invalid_argument(
          "HingePath: the penalty must be a norm, without a linear term or an offset.");
    }
    check_size("column_norms has", length(column_norms_), "the number of features is", problem.d());
    check_values("column_norms", column_norms_, kNotNegative);
    check_value("column_dual_norm", column_dual_norm, kNotNegative);
    check_value("tol", tol, kPositive);
    check_value("reach", reach, kNotNegative);
    check_value("max_iter", max_iter, {"at least 0", 0.0});
    check_size("plan has", length(plan), "the number of its entries is", 7);
    for (int64_t a = 0; a < 7; ++a)
      if (!(plan.data()[a] >= 0.0))
        throw std::invalid_argument("HingePath: the plan has a negative entry, or NaN.");
    const double* p = plan.data();
    const PartPlan numbers{p[0], p[1], {p[2], p[3]}, p[4], p[5], p[6]};
    const bool swept = std::isfinite(numbers.exact_step);
    const bool free = std::any_of(problem.penalty.omega, problem.penalty.omega + problem.d(),
                                  [](double omega) { return omega == 0.0; });
    if (swept && (problem.margins || free)) {
      throw std::invalid_argument(
          "HingePath: sweeps need every feature penalised, and margins from cost and margin_scale "
          "only.");
    }
    load_blas();
    path_ = std::make_unique<HingePath>(problem, column_norms_.data(),
                                        HingePathOptions{tol, reach, column_dual_norm, max_iter,
                                                         numbers, single_precision, keep_duals},
                                        monitor_);
  }

  void start(double alpha, const Matrix& weights, const Vector& intercept, const Matrix& dual,
             double loss, double penalty, double bound, bool zero) {
    const HingeProblem& problem = problem_.problem();
    problem_.check_start(weights, intercept, dual);
    check_value("alpha", alpha, kPositive);
    for (const double value : {loss, penalty, bound})
      check_value("loss, penalty or bound", value, kFinite);
    check_values("weights", weights, kFinite);
    check_values("intercept", intercept, kFinite);
    check_values("dual", dual, kNotNegative);
    auto model = std::make_shared<HingeModel>();
    const int64_t outputs = problem.outputs();
    for (int64_t j = 0; j < problem.d(); ++j) {
      const double* w = weights.data() + j * outputs;
      if (std::all_of(w, w + outputs, [](double v) { return v == 0.0; })) continue;
      model->features.push_back(static_cast<int32_t>(j));
      model->weights.insert(model->weights.end(), w, w + outputs);
    }
    model->intercept.assign(intercept.data(), intercept.data() + outputs);
    model->loss = loss;
    model->penalty = penalty;
    std::vector<double> Y(dual.data(), dual.data() + dual.size());
    for (int64_t i = 0; i < problem.n(); ++i) Y[i * problem.classes + problem.y[i]] = 0.0;
    const Exclusive::Turn turn = exclusive_.take();
    nb::gil_scoped_release released;
    path_->start({alpha, bound, 0.0, 0, std::move(model), std::move(Y)}, zero);
  }

  nb::list follow(const Vector& grid, int64_t enough) {
    for (std::size_t t = 0; t < grid.size(); ++t) {
      if (grid.data()[t] > 0.0 && std::isfinite(grid.data()[t])) continue;
      throw std::invalid_argument("HingePath: alphas must be positive and finite, but one is " +
                                  shown(grid.data()[t]) + ".");
    }
    const Exclusive::Turn turn = exclusive_.take();
    std::vector<HingePathPoint> points;
    {
      nb::gil_scoped_release released;
      points = path_->follow(grid.data(), static_cast<int64_t>(grid.size()), enough);
    }
    nb::list out;
    for (const HingePathPoint& point : points) out.append(shown_point(point, keep_duals_));
    return out;
  }

  nb::dict last() {
    const Exclusive::Turn turn = exclusive_.take();
    if (!path_->last().model) throw std::runtime_error("Call start() on this HingePath first.");
    return shown_point(path_->last(), true);
  }

 private:

  nb::dict shown_point(const HingePathPoint& point, bool with_dual) {
    // Points of the same model share its arrays.
    if (point.model != model_) {
      model_ = point.model;
      shown_ = nb::make_tuple(to_numpy(model_->features), to_numpy(model_->weights),
                              to_numpy(model_->intercept));
    }
    nb::dict out;
    out["alpha"] = point.alpha;
    out["objective"] = point.objective();
    out["loss"] = model_->loss;
    out["bound"] = point.bound;
    out["seconds"] = point.seconds;
    out["iterations"] = point.iterations;
    out["model"] = shown_;
    if (!with_dual)
      out["dual"] = nb::none();
    else
      out["dual"] = owned(std::make_unique<std::vector<double>>(point.dual), problem_.n(),
                          problem_.classes());
    return out;
  }

  const BoundHingeProblem& problem_;
  Vector column_norms_;
  Monitor monitor_;
  bool keep_duals_;
  std::unique_ptr<HingePath> path_;
  std::shared_ptr<const HingeModel> model_;
  nb::object shown_;
  Exclusive exclusive_{"HingePath"};
};

}  // namespace

void bind_paths(nb::module_& m) {
  nb::class_<BoundHingePath>(
      m, "HingePath",
      "Proven solutions of the hinge with a norm at one alpha after the other; see "
      "path/hinge_path.py and paths/hinge_path.hpp.")
      .def(nb::init<const BoundHingeProblem&, Vector, double, double, double, int, const Vector&,
                    bool, bool, nb::object>(),
           nb::arg("problem"), nb::kw_only(), nb::arg("column_norms"), nb::arg("column_dual_norm"),
           nb::arg("tol"), nb::arg("reach"), nb::arg("max_iter"), nb::arg("plan"),
           nb::arg("single_precision"), nb::arg("keep_duals"), nb::arg("callback").none(),
           nb::keep_alive<1, 2>())
      .def("start", &BoundHingePath::start, nb::arg("alpha"), nb::kw_only(), nb::arg("weights"),
           nb::arg("intercept"), nb::arg("dual"), nb::arg("loss"), nb::arg("penalty"),
           nb::arg("bound"), nb::arg("zero"),
           "Go on from a proven point: weights (d, outputs), intercepts, a feasible dual point (n, "
           "K), what they are worth; `zero`: it is optimal from alpha on.")
      .def("follow", &BoundHingePath::follow, nb::arg("grid"), nb::arg("enough"),
           "The points at the first alphas of a decreasing grid, at least so many unless one is "
           "not proven: then those before it.")
      .def("last", &BoundHingePath::last, "The last point that was solved.");
}

}  // namespace sparsvm
