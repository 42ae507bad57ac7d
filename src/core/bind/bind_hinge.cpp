// The solvers of the hinge. The interior point runs to its end in one call; of the other two Python drives
// the method: it asks for a gap or a subproblem, certifies the iterate, and asks again if need be.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/problems.hpp"
#include "solvers/interior_point/interior_point.hpp"
#include "solvers/multiplier_newton/multiplier_newton.hpp"
#include "solvers/sdca/sdca.hpp"
#include "support/mmap_vector.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

namespace {

// ---- interior point ----

// What a callback is given: coefficients, outputs x d, of those of the used features, and intercepts.
nb::object point_of(int64_t d, int64_t outputs, const std::vector<int32_t>& used,
                    const double* rows, const std::vector<double>& intercept) {
  auto W = std::make_unique<Zeros>(static_cast<std::size_t>(d * outputs));
  for (const int32_t j : used) {
    std::copy_n(rows, outputs, W->data() + j * outputs);
    rows += outputs;
  }
  return nb::make_tuple(nb::cast(owned(std::move(W), d, outputs)).attr("T"), to_numpy(intercept));
}

InteriorPointStart checked_start(const BoundHingeProblem& problem,
                                 const std::optional<Matrix>& dual,
                                 const std::optional<Matrix>& weights,
                                 const std::optional<Vector>& intercept) {
  if (!dual && !weights && !intercept) return {};
  if (!dual || !weights || !intercept)
    throw std::invalid_argument("A start needs dual, weights and intercept.");
  problem.check_start(*weights, *intercept, *dual);
  check_values("dual", *dual, kNotNegative);
  check_values("weights", *weights, kFinite);
  check_values("intercept", *intercept, kFinite);
  return {dual->data(), weights->data(), intercept->data()};
}

nb::dict interior_point(const BoundHingeProblem& problem, std::optional<Matrix> dual,
                        std::optional<Matrix> weights, std::optional<Vector> intercept, double tol,
                        int max_iter, bool across_features, bool inside, double residual,
                        nb::object callback) {
  const InteriorPointStart start = checked_start(problem, dual, weights, intercept);
  check_value("tol", tol, kPositive);
  check_value("residual", residual, kNotNegative);
  check_value("max_iter", max_iter, {"at least 0", 0.0});
  const InteriorPointOptions options{tol, max_iter, across_features, inside, residual};
  load_blas();
  Monitor monitor(std::move(callback));
  InteriorPointResult result;
  {
    nb::gil_scoped_release released;
    InteriorPoint solver(problem.problem(), start, options, {[&monitor] {
      monitor.poll();
    }, [&monitor](int iteration, double objective, double gap, int64_t nonzeros) {
      monitor.record(iteration, objective, gap, nonzeros);
    }, &Monitor::stopping});
    monitor.offer([&]() -> nb::object {
      InteriorPointResult now;
      if (!solver.best_point(now)) return nb::none();
      return point_of(problem.d(), problem.outputs(), now.used, now.weights.data(), now.intercept);
    });
    result = solver.solve();
  }
  const auto matrix = [](std::vector<double>& values, int64_t n, int64_t m) {
    return owned(std::make_unique<std::vector<double>>(std::move(values)), n, m);
  };
  nb::dict out;
  out["used"] = to_numpy(result.used);
  out["weights"] =
      matrix(result.weights, static_cast<int64_t>(result.used.size()), problem.outputs());
  out["intercept"] = to_numpy(result.intercept);
  out["dual"] = matrix(result.dual, problem.n(), problem.classes());
  out["bound"] = result.bound;
  out["converged"] = result.converged;
  out["iterations"] = result.iterations;
  out["stalled"] = result.stalled;
  out["history"] = monitor.history();
  return out;
}

// ---- proximal method of multipliers ----

// The method; the problem it points into is kept alive by Python.
class MultiplierNewtonRun {
 public:
  MultiplierNewtonRun(const BoundHingeProblem& problem, Vector rms) : problem_(problem), rms_(rms) {
    check_size("rms has", length(rms), "the design's number of features is", problem.d());
    check_values("rms", rms, kNotNegative);
    if (problem.problem().margins) {
      throw std::invalid_argument(
          "MultiplierNewton takes margins from cost and margin_scale only.");
    }
    method_ = std::make_unique<MultiplierNewton>(problem.problem(), rms_.data());
  }

  void start(const Matrix& weights, const Vector& intercept, const Matrix& dual) {
    const Exclusive::Turn turn = exclusive_.take();
    problem_.check_start(weights, intercept, dual);
    check_values("weights", weights, kFinite);
    check_values("intercept", intercept, kFinite);
    check_values("dual", dual, kFinite);
    method_->start(weights.data(), intercept.data(), dual.data());
  }

  std::pair<int64_t, bool> solve(double gain, double sigma, double sigma_free, double accuracy,
                                 int64_t limit, double typical, int64_t direct) {
    const Exclusive::Turn turn = exclusive_.take();
    for (const double size : {gain, sigma, sigma_free, accuracy, typical}) {
      if (size > 0.0 && std::isfinite(size)) continue;
      throw std::invalid_argument(
          "gain, sigma, sigma_free, accuracy and typical must be positive and finite; one is " +
          std::to_string(size) + ".");
    }
    load_blas();
    method_->set_direct_limit(direct);
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    const NewtonReport report =
        method_->solve(gain, sigma, sigma_free, accuracy, limit, typical, monitor);
    return {report.steps, report.solved};
  }

  void begin(double relative_gap) {
    const Exclusive::Turn turn = exclusive_.take();
    check_value("relative_gap", relative_gap, kNotNegative);
    schedule_.emplace(problem_.problem(), rms_.data(), relative_gap);
  }

  nb::tuple advance(double relative_gap, double tol, int64_t left, int64_t direct,
                    double max_work) {
    const Exclusive::Turn turn = exclusive_.take();
    if (!schedule_) throw std::runtime_error("Call begin() on this MultiplierNewton first.");
    check_value("relative_gap", relative_gap, kNotNegative);
    check_value("tol", tol, kPositive);
    if (!(max_work >= 0.0)) throw std::invalid_argument("max_work must not be negative.");
    load_blas();
    method_->set_direct_limit(direct);
    method_->set_work_limit(max_work);
    Monitor monitor{nb::none()};
    {
      nb::gil_scoped_release released;
      last_ = schedule_->advance(*method_, relative_gap, tol, left, monitor);
    }
    return nb::make_tuple(last_.steps, monitor.spent());
  }

  bool settle(double before, double after) {
    const Exclusive::Turn turn = exclusive_.take();
    if (!schedule_) throw std::runtime_error("Call begin() on this MultiplierNewton first.");
    schedule_->settle(*method_, last_, before, after);
    return schedule_->stalled();
  }

  // W, b and Y of the last subproblem.
  nb::tuple point() {
    const Exclusive::Turn turn = exclusive_.take();
    const int64_t n = problem_.n(), d = problem_.d(), K = problem_.classes();
    const int64_t outputs = problem_.outputs();
    Output W(d * outputs), b(outputs), Y(n * K);
    method_->weights(W.data());
    std::copy(method_->intercept().begin(), method_->intercept().end(), b.data());
    std::copy(method_->dual().begin(), method_->dual().end(), Y.data());
    return nb::make_tuple(W.matrix(d, outputs, false), b.vector(), Y.matrix(n, K, false));
  }

 private:
  const BoundHingeProblem& problem_;
  Vector rms_;
  Exclusive exclusive_{"MultiplierNewton"};
  std::unique_ptr<MultiplierNewton> method_;
  std::optional<NewtonSchedule> schedule_;
  NewtonReport last_;
};

// ---- dual coordinate ascent ----

// The method with its history; the problem it points into is kept alive by Python.
class SdcaRun {
 public:
  SdcaRun(const BoundHingeProblem& problem, double relaxation, int sweeps, nb::object callback)
      : problem_(problem), monitor_(callback) {
    const HingeProblem& p = problem.problem();
    for (int64_t j = 0; j < p.d(); ++j) {
      if (p.penalty.omega[j] > 0.0) continue;
      throw std::invalid_argument("omega[" + std::to_string(j) + "] is " +
                                  std::to_string(p.penalty.omega[j]) + ", but must be positive.");
    }
    if (p.margins) {
      throw std::invalid_argument("Sdca takes margins from cost and margin_scale only.");
    }
    if (!(relaxation > 0.0 && relaxation < 2.0)) {
      throw std::invalid_argument("relaxation must lie between 0 and 2, but is " +
                                  std::to_string(relaxation) + ".");
    }
    if (sweeps < 1) {
      throw std::invalid_argument("sweeps must be at least 1, but is " + std::to_string(sweeps) +
                                  ".");
    }
    load_blas();
    method_ = std::make_unique<Sdca>(p, SdcaOptions{relaxation, sweeps});
    monitor_.offer([this] {
      return point_of(d(), outputs(), method_->used(), method_->used_weights().data(),
                      method_->intercept());
    });
  }

  void start(std::optional<Matrix> weights, const Vector& intercept, std::optional<Matrix> dual) {
    const Exclusive::Turn turn = exclusive_.take();
    if (weights) check_shape("weights", *weights, d(), outputs());
    if (weights) check_values("weights", *weights, kFinite);
    check_size("intercept has", length(intercept), "the number of outputs is", outputs());
    check_values("intercept", intercept, kFinite);
    if (dual) check_shape("dual", *dual, n(), classes());
    if (dual) check_values("dual", *dual, kFinite);
    nb::gil_scoped_release released;
    started_ = false;
    method_->start(weights ? weights->data() : nullptr, intercept.data(),
                   dual ? dual->data() : nullptr);
    started_ = true;
  }

  bool run(double target, int64_t sweeps, double rival_work) {
    const Exclusive::Turn turn = take();
    if (!(rival_work >= 0.0)) throw std::invalid_argument("rival_work must not be negative.");
    method_->set_rival_work(rival_work);
    nb::gil_scoped_release released;
    return method_->run(target, std::min(sweeps, kMostSweeps), monitor_);
  }

  nb::tuple point() {
    const Exclusive::Turn turn = take();
    auto W = std::make_unique<Zeros>(static_cast<std::size_t>(d() * outputs()));
    const MmapVector<double> rows = method_->used_weights();
    const double* next = rows.data();
    for (const int32_t j : method_->used()) {
      std::copy_n(next, outputs(), W->data() + j * outputs());
      next += outputs();
    }
    auto Y = std::make_unique<MmapVector<double>>(method_->dual());
    return nb::make_tuple(owned(std::move(W), d(), outputs()), intercept(),
                          owned(std::move(Y), n(), classes()));
  }

  nb::tuple give_point() {
    const Exclusive::Turn turn = take();
    const std::vector<int32_t>& used = method_->used();
    auto features = std::make_unique<std::vector<int32_t>>(used);
    auto weights = std::make_unique<MmapVector<double>>(method_->give_weights());
    auto Y = std::make_unique<MmapVector<double>>(method_->give_dual());
    const int64_t m = std::ssize(used);
    const size_t shape[1] = {used.size()};
    int32_t* numbers = features->data();
    nb::ndarray<nb::numpy, int32_t, nb::ndim<1>> list(
        numbers, 1, shape, nb::capsule(features.release(), [](void* p) noexcept {
      delete static_cast<std::vector<int32_t>*>(p);
    }));
    return nb::make_tuple(list, owned(std::move(weights), m, outputs()), intercept(),
                          owned(std::move(Y), n(), classes()));
  }

  nb::object give_mean_dual() {
    const Exclusive::Turn turn = take();
    auto mean = std::make_unique<MmapVector<double>>(method_->give_mean_dual());
    if (mean->empty()) return nb::none();
    return nb::cast(owned(std::move(mean), n(), classes()));
  }

  nb::dict values() {
    const Exclusive::Turn turn = exclusive_.take();
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
  bool outlasted() const { return method_->outlasted(); }
  nb::object history() {
    const Exclusive::Turn turn = exclusive_.take();
    return monitor_.history();
  }

 private:
  // More than anybody waits for, and far from what a count of sweeps can hold.
  static constexpr int64_t kMostSweeps = int64_t{1} << 40;

  // For calls that need a point to work on.
  Exclusive::Turn take() {
    if (!started_) throw std::runtime_error("Call start() on this Sdca first.");
    return exclusive_.take();
  }

  int64_t n() const { return problem_.n(); }
  int64_t d() const { return problem_.d(); }
  int64_t classes() const { return problem_.classes(); }
  int64_t outputs() const { return problem_.outputs(); }
  Output::Vector intercept() const {
    Output b(outputs());
    std::copy(method_->intercept().begin(), method_->intercept().end(), b.data());
    return b.vector();
  }

  const BoundHingeProblem& problem_;
  Monitor monitor_;
  Exclusive exclusive_{"Sdca"};
  bool started_ = false;
  std::unique_ptr<Sdca> method_;
};

}  // namespace

void bind_hinge(nb::module_& m) {
  m.def(
      "interior_point", &interior_point, nb::arg("problem"), nb::kw_only(), nb::arg("dual").none(),
      nb::arg("weights").none(), nb::arg("intercept").none(), nb::arg("tol"), nb::arg("max_iter"),
      nb::arg("across_features"), nb::arg("inside"), nb::arg("residual"),
      nb::arg("callback").none(),
      "Solve the multiclass hinge with a convex penalty. A start is a dual point divided by alpha, "
      "weights and intercept, all three or none; see solvers/interior_point/interior_point.hpp "
      "for the options.");
  nb::class_<MultiplierNewtonRun>(
      m, "MultiplierNewton",
      "Proximal method of multipliers with semismooth Newton steps; see solvers.Newton.")
      .def(nb::init<const BoundHingeProblem&, Vector>(), nb::arg("problem"), nb::kw_only(),
           nb::arg("rms"), nb::keep_alive<1, 2>())
      .def("start", &MultiplierNewtonRun::start, nb::arg("weights"), nb::arg("intercept"),
           nb::arg("dual"), "Set W (d, outputs), b and Y (n, K), Y divided by alpha.")
      .def("solve", &MultiplierNewtonRun::solve, nb::arg("gain"), nb::arg("sigma"),
           nb::arg("sigma_free"), nb::arg("accuracy"), nb::arg("limit"), nb::arg("typical"),
           nb::arg("direct"),
           "Minimise the subproblem around the centre; returns the steps and whether it is solved.")
      .def("begin", &MultiplierNewtonRun::begin, nb::arg("relative_gap"),
           "Choose the terms of the first subproblem from the gap of the start.")
      .def("advance", &MultiplierNewtonRun::advance, nb::arg("relative_gap"), nb::kw_only(),
           nb::arg("tol"), nb::arg("left"), nb::arg("direct"), nb::arg("max_work"),
           "Minimise the next subproblem, given the gap of the best points and the steps and "
           "multiplications that are left; returns those taken.")
      .def("settle", &MultiplierNewtonRun::settle, nb::arg("before"), nb::arg("after"),
           "Take or leave the last point, which brought the gap from one to the other, and set the "
           "terms of the next subproblem; whether many brought nothing.")
      .def("point", &MultiplierNewtonRun::point,
           "Copies of W (d, outputs), b (outputs,) and Y (n, K).");
  nb::class_<SdcaRun>(m, "Sdca", "Dual coordinate ascent; see solvers.SDCA.")
      .def(nb::init<const BoundHingeProblem&, double, int, nb::object>(), nb::arg("problem"),
           nb::kw_only(), nb::arg("relaxation"), nb::arg("sweeps"), nb::arg("callback").none(),
           nb::keep_alive<1, 2>())
      .def("start", &SdcaRun::start, nb::arg("weights").none(), nb::arg("intercept"),
           nb::arg("dual").none(),
           "Set W (d, outputs), b and Y (n, K); None for W is 0, for Y a guess.")
      .def("run", &SdcaRun::run, nb::arg("target"), nb::arg("sweeps"),
           nb::arg("rival_work") = std::numeric_limits<double>::infinity(),
           "Sweep until the estimated relative gap is at most target; false if it is not after so "
           "many sweeps, or where a solver that takes rival_work multiplications, or newton, is "
           "predicted to be quicker.")
      .def_prop_ro("outlasted", &SdcaRun::outlasted,
                   "Whether the last run ended as another solver is predicted to be quicker.")
      .def("give_point", &SdcaRun::give_point,
           "The features in use, their rows of W, b and Y; what is given is not held twice.")
      .def("give_mean_dual", &SdcaRun::give_mean_dual,
           "With l2 and sparse data the mean Y (n, K) whose W the point has; None otherwise.")
      .def("point", &SdcaRun::point, "Copies of W (d, outputs), b (outputs,) and Y (n, K).")
      .def("values", &SdcaRun::values, "What the last evaluation of the whole problem found.")
      .def_prop_ro("sweeps", &SdcaRun::sweeps, "Sweeps over the samples so far.")
      .def("history", &SdcaRun::history, "One entry per evaluation of the whole problem.");
}

}  // namespace sparsvm
