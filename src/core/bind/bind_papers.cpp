// The papers' reference solvers. Python drives each in chunks: it asks for some iterations, certifies
// the iterate, asks again.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "bind/problems.hpp"
#include "linalg/blas.hpp"
#include "solvers/papers/bcd.hpp"
#include "solvers/papers/fbpd.hpp"
#include "solvers/papers/forward_backward.hpp"
#include "solvers/papers/hsdm.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

namespace {

FirstOrderMethod first_order_method(const std::string& name) {
  if (name == "forward_backward") return FirstOrderMethod::forward_backward;
  if (name == "fista") return FirstOrderMethod::fista;
  if (name == "sparsa") return FirstOrderMethod::sparsa;
  throw std::invalid_argument(
      "The method must be one of forward_backward, fista and sparsa, but is '" + name + "'.");
}

// Throws unless the penalty is a sum over features.
template <typename Bound>
void require_features_alone(const Bound& problem, const char* option) {
  if (PenaltyProx(problem.problem().penalty).by_feature()) return;
  throw std::invalid_argument(std::string(option) +
                              " needs a penalty that is a sum over features, not over groups.");
}

// What the methods share towards Python: the problem they keep alive, the start, the last point.
template <typename Method, typename Bound = BoundSmoothProblem>
class SmoothRun {
 public:
  void start(const Matrix& weights, const Vector& intercept) {
    const Exclusive::Turn turn = exclusive_.take();
    problem_.check_start(weights, intercept);
    method_.start(weights.data(), intercept.data());
  }

  int64_t run(int64_t iterations, double tolerance) {
    const Exclusive::Turn turn = exclusive_.take();
    load_blas();
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    return method_.run(iterations, tolerance, [&] { monitor.poll(); });
  }

  bool settled() const { return method_.settled(); }
  // Copies of W (d, outputs) and b.
  nb::tuple last() {
    const Exclusive::Turn turn = exclusive_.take();
    return point();
  }

 protected:
  nb::tuple point() const {
    const int64_t d = problem_.d(), outputs = problem_.outputs();
    Output W(d * outputs), b(outputs);
    std::copy(method_.weights().begin(), method_.weights().end(), W.data());
    const std::vector<double> intercept = method_.intercept();
    std::copy(intercept.begin(), intercept.end(), b.data());
    return nb::make_tuple(W.matrix(d, outputs, false), b.vector());
  }

  template <typename... Options>
  SmoothRun(const char* name, const Bound& problem, Options&&... options)
      : problem_(problem), exclusive_(name),
        method_(problem.problem(), std::forward<Options>(options)...) {}

  const Bound& problem_;
  Exclusive exclusive_;
  Method method_;
};

template <typename Bound>
class FirstOrderRun : public SmoothRun<FirstOrder<typename Bound::Problem>, Bound> {
 public:
  FirstOrderRun(const Bound& problem, const std::string& method, bool line_search, double L,
                double eta, int64_t memory, double sigma, double smallest, double largest,
                const nb::object& penalty)
      : FirstOrderRun::SmoothRun("FirstOrder", problem,
                                 prox_term(problem.problem().penalty, penalty),
                                 checked({first_order_method(method), line_search, L, eta, memory,
                                          sigma, smallest, largest})) {}

 private:
  // Throws unless every search for a step ends.
  static FirstOrderOptions checked(const FirstOrderOptions& options) {
    check_value("L", options.L, kPositive);
    check_value("eta", options.eta, {"above 1 and finite", 1.0, true});
    check_value("sigma", options.sigma, kNotNegative);
    check_value("smallest", options.smallest, kNotNegative);
    check_value("largest", options.largest, {"finite and at least smallest", options.smallest});
    check_value("memory", static_cast<double>(options.memory), {"at least 0", 0.0});
    return options;
  }
};

template <typename Bound>
class BcdRun : public SmoothRun<Bcd<typename Bound::Problem>, Bound> {
 public:
  BcdRun(const Bound& problem, bool line_search, bool randomised, double sigma, double omega,
         double epsilon, bool largest_violation, bool row_norms, bool shrinking, uint64_t seed)
      : BcdRun::SmoothRun("Bcd", problem, PenaltyProx(problem.problem().penalty),
                          checked(problem, {line_search, randomised, sigma, omega, epsilon,
                                            largest_violation, row_norms, shrinking, seed})) {}

  nb::tuple searches() {
    const Exclusive::Turn turn = this->exclusive_.take();
    const auto [all, first] = this->method_.searches();
    return nb::make_tuple(all, first);
  }
  nb::tuple violation() {
    const Exclusive::Turn turn = this->exclusive_.take();
    const auto [sum, largest] = this->method_.violation();
    return nb::make_tuple(sum, largest);
  }

 private:
  static BcdOptions checked(const Bound& problem, const BcdOptions& options) {
    check_value("sigma", options.sigma, kNotNegative);
    check_value("omega", options.omega, {"between 0 and 1", 0.0, true, 1.0});
    check_value("epsilon", options.epsilon, kPositive);
    if (options.row_norms) require_features_alone(problem, "row_norms");
    return options;
  }
};

class FobosRun : public SmoothRun<Fobos> {
 public:
  FobosRun(const BoundSmoothProblem& problem, Input<int64_t, 1> samples, double eta0, bool lazy,
           uint64_t seed)
      : SmoothRun("Fobos", problem, PenaltyProx(problem.problem().penalty),
                  checked(problem, {eta0, lazy, seed}), checked(problem, samples)) {}

  int64_t run(int64_t passes, double) {
    const Exclusive::Turn turn = exclusive_.take();
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    method_.run(passes, [&] { monitor.poll(); });
    return passes;
  }

  bool settled() const { return false; }
  nb::tuple last() {
    const Exclusive::Turn turn = exclusive_.take();
    const nb::tuple point = SmoothRun::point();
    if (!method_.hinge()) return point;
    const std::vector<double> mean = method_.dual();
    const int64_t n = problem_.n(), K = problem_.classes();
    Output dual(n * K);
    std::copy(mean.begin(), mean.end(), dual.data());
    return nb::make_tuple(point[0], point[1], dual.matrix(n, K, false));
  }

 private:
  static FobosOptions checked(const BoundSmoothProblem& problem, const FobosOptions& options) {
    check_value("eta0", options.eta0, kPositive);
    if (options.lazy) require_features_alone(problem, "lazy");
    return options;
  }

  static std::vector<int64_t> checked(const BoundSmoothProblem& problem,
                                      const Input<int64_t, 1>& samples) {
    const int64_t n = problem.n();
    std::vector<int64_t> list = copied(samples);
    if (list.empty()) throw std::invalid_argument("samples must not be empty.");
    for (const int64_t i : list) {
      if (i >= 0 && i < n) continue;
      throw std::invalid_argument("samples holds " + std::to_string(i) + ", outside the " +
                                  std::to_string(n) + " samples of the design.");
    }
    return list;
  }
};

class HsdmRun {
 public:
  HsdmRun(Input<double, 2> x, Input<int32_t, 1> y, Input<double, 1> weight, int64_t classes,
          double gamma, double relaxation, double step, double decay, double radius)
      : n_(rows(x)), width_(columns(x) + 1), classes_(classes) {
    if (classes < 2) throw std::invalid_argument("There must be two classes at least.");
    if (n_ < 1) throw std::invalid_argument("There must be one sample at least.");
    check_countable(classes, "classes");
    check_countable(width_, "features");
    check_countable(entries_of(n_, classes), "class scores");
    const std::vector<int32_t> numbers = copied(y);
    check_size("y has", std::ssize(numbers), "the number of samples is", n_);
    check_size("weight has", length(weight), "the number of samples is", n_);
    check_numbers("y", numbers, classes);
    check_values("x", x, kFinite);
    check_values("weight", weight, kPositive);
    check_value("gamma", gamma, kPositive);
    check_value("relaxation", relaxation, kPositive);
    check_value("step", step, kPositive);
    check_value("decay", decay, kPositive);
    check_value("radius", radius, kPositive);
    const HsdmOptions options{gamma, relaxation, step, decay, radius};
    load_blas();
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    method_ = std::make_unique<Hsdm>(x.data(), n_, width_ - 1, numbers.data(), weight.data(),
                                     classes, options, [&] { monitor.poll(); });
  }

  void run(int64_t iterations) {
    const Exclusive::Turn turn = exclusive_.take();
    load_blas();
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    method_->run(iterations, [&] { monitor.poll(); });
  }

  Output::Matrix point() {
    const Exclusive::Turn turn = exclusive_.take();
    Output out(classes_ * width_);
    std::copy(method_->point().begin(), method_->point().end(), out.data());
    return out.matrix(classes_, width_, false);
  }

  Output::Matrix dual() {
    const Exclusive::Turn turn = exclusive_.take();
    return computed(n_, classes_, false, [&](double* out) { method_->dual(out); });
  }

  int64_t iteration() const { return method_->iteration(); }
  double t() const { return method_->t(); }
  double change() const { return method_->change(); }
  bool ball_active() const { return method_->ball_active(); }

 private:
  int64_t n_, width_, classes_;
  Exclusive exclusive_{"Hsdm"};
  std::unique_ptr<Hsdm> method_;
};

FbpdForm fbpd_form(const std::string& name) {
  if (name == "regularised") return FbpdForm::regularised;
  if (name == "epigraph") return FbpdForm::epigraph;
  if (name == "linear") return FbpdForm::linear;
  throw std::invalid_argument("form is '" + name +
                              "' but must be 'regularised', 'epigraph' or 'linear'.");
}

FbpdOptions checked(const std::string& form, double tau, double sigma, double eta) {
  if (!kPositive.accepts(tau) || !kPositive.accepts(sigma)) {
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
    const Exclusive::Turn turn = exclusive_.take();
    problem_.check_start(weights, intercept, dual);
    load_blas();
    method_.start(weights.data(), intercept.data(), dual.data());
  }

  int64_t run(int64_t iterations, double tolerance) {
    const Exclusive::Turn turn = exclusive_.take();
    load_blas();
    Monitor monitor{nb::none()};
    const nb::gil_scoped_release released;
    return method_.run(iterations, tolerance, [&] { monitor.poll(); });
  }

  bool settled() const { return method_.settled(); }
  nb::tuple steps() const { return nb::make_tuple(options_.tau, options_.sigma); }
  nb::object slack() {
    const Exclusive::Turn turn = exclusive_.take();
    return to_numpy(method_.slack());
  }
  nb::tuple last() {
    const Exclusive::Turn turn = exclusive_.take();
    return point(method_.last());
  }
  nb::tuple mean() {
    const Exclusive::Turn turn = exclusive_.take();
    return point(method_.mean());
  }
  void forget() {
    const Exclusive::Turn turn = exclusive_.take();
    method_.forget();
  }

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
  Exclusive exclusive_{"Fbpd"};
  Fbpd method_;
};

double norm_of_design(const Design& design, bool intercept, bool centred) {
  if (intercept && centred)
    throw std::invalid_argument("Centred features have no ones beside them.");
  load_blas();
  Monitor monitor{nb::none()};
  const nb::gil_scoped_release released;
  return operator_norm(design, intercept, [&] { monitor.poll(); }, centred);
}

double norm_of_differences(const BoundHingeProblem& problem) {
  load_blas();
  Monitor monitor{nb::none()};
  const nb::gil_scoped_release released;
  return difference_norm(problem.problem(), [&] { monitor.poll(); });
}

template <typename Bound>
void bind_first_order(nb::module_& m, const char* name) {
  using Run = FirstOrderRun<Bound>;
  nb::class_<Run>(m, name, "Forward-backward, FISTA and SpaRSA; see solvers.FISTA.")
      .def(nb::init<const Bound&, const std::string&, bool, double, double, int64_t, double, double,
                    double, const nb::object&>(),
           nb::arg("problem"), nb::kw_only(), nb::arg("method"), nb::arg("line_search"),
           nb::arg("L"), nb::arg("eta") = 2.0, nb::arg("memory") = 0, nb::arg("sigma") = 0.0,
           nb::arg("smallest") = 0.0, nb::arg("largest"), nb::arg("penalty").none() = nb::none(),
           nb::keep_alive<1, 2>())
      .def("start", &Run::start, nb::arg("weights"), nb::arg("intercept"),
           "Set W (d, outputs) and b.")
      .def("run", &Run::run, nb::arg("iterations"), nb::arg("tolerance") = -1.0,
           "Iterate; stop early once the relative change is at most tolerance, if that is not "
           "negative. Returns the number of iterations done.")
      .def_prop_ro("settled", &Run::settled,
                   "Whether the last run ended because the iterates had stopped moving.")
      .def("last", &Run::last, "Copies of W (d, outputs) and b (outputs,).");
}

template <typename Bound>
void bind_bcd(nb::module_& m, const char* name) {
  using Run = BcdRun<Bound>;
  nb::class_<Run>(m, name, "Block coordinate descent; see solvers.BCD.")
      .def(nb::init<const Bound&, bool, bool, double, double, double, bool, bool, bool, uint64_t>(),
           nb::arg("problem"), nb::kw_only(), nb::arg("line_search"), nb::arg("randomised"),
           nb::arg("sigma"), nb::arg("omega"), nb::arg("epsilon"), nb::arg("largest_violation"),
           nb::arg("row_norms"), nb::arg("shrinking"), nb::arg("seed"), nb::keep_alive<1, 2>())
      .def("start", &Run::start, nb::arg("weights"), nb::arg("intercept"),
           "Set W (d, outputs) and b.")
      .def("run", &Run::run, nb::arg("iterations"), nb::arg("tolerance") = -1.0,
           "Outer iterations; stop early once the stopping rule holds for tolerance, if that is "
           "not negative. Returns the number of iterations done.")
      .def_prop_ro("settled", &Run::settled,
                   "Whether the last run ended because the stopping rule held.")
      .def_prop_ro("searches", &Run::searches,
                   "Line searches of blocks with a penalty, and those that took their first step.")
      .def_prop_ro("violation", &Run::violation,
                   "Sum and largest of the violations in the last outer iteration.")
      .def("last", &Run::last, "Copies of W (d, outputs) and b (outputs,).");
}

}  // namespace

void bind_papers(nb::module_& m) {
  bind_first_order<BoundSmoothProblem>(m, "FirstOrder");
  bind_first_order<BoundRankingProblem>(m, "RankingFirstOrder");
  bind_bcd<BoundSmoothProblem>(m, "Bcd");
  bind_bcd<BoundRankingProblem>(m, "RankingBcd");
  nb::class_<FobosRun>(m, "Fobos", "Stochastic forward-backward splitting; see solvers.FOBOS.")
      .def(nb::init<const BoundSmoothProblem&, Input<int64_t, 1>, double, bool, uint64_t>(),
           nb::arg("problem"), nb::kw_only(), nb::arg("samples"), nb::arg("eta0"), nb::arg("lazy"),
           nb::arg("seed"), nb::keep_alive<1, 2>())
      .def("start", &FobosRun::start, nb::arg("weights"), nb::arg("intercept"),
           "Set W (d, outputs) and b.")
      .def("run", &FobosRun::run, nb::arg("passes"), nb::arg("tolerance") = -1.0,
           "So many passes over the samples; the tolerance is for other methods.")
      .def_prop_ro("settled", &FobosRun::settled, "Never: the method has no rule of its own.")
      .def("last", &FobosRun::last,
           "Copies of W (d, outputs), b (outputs,) and, for the hinge, the mean subgradients.");
  nb::class_<HsdmRun>(m, "Hsdm", "Hybrid steepest descent for the hierarchical problem.")
      .def(nb::init<Input<double, 2>, Input<int32_t, 1>, Input<double, 1>, int64_t, double, double,
                    double, double, double>(),
           nb::arg("x"), nb::arg("y"), nb::arg("weight"), nb::arg("classes"), nb::arg("gamma"),
           nb::arg("relaxation"), nb::arg("step"), nb::arg("decay"), nb::arg("radius"))
      .def("run", &HsdmRun::run, nb::arg("iterations"), "Iterate.")
      .def("point", &HsdmRun::point, "Weights and intercept of each class, (K, r + 1).")
      .def("dual", &HsdmRun::dual, "Multipliers of the hinge, (n, K).")
      .def_prop_ro("iteration", &HsdmRun::iteration)
      .def_prop_ro("t", &HsdmRun::t)
      .def_prop_ro("change", &HsdmRun::change)
      .def_prop_ro("ball_active", &HsdmRun::ball_active);
  m.def("operator_norm", &norm_of_design, nb::arg("design"), nb::arg("intercept"),
        nb::arg("centred") = false,
        "An upper estimate of the spectral norm of X, with a column of ones if intercept, or less "
        "the means of its columns if centred.");
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
