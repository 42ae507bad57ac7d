// The reference solvers of smooth losses. Python drives each in chunks: it asks for some
// iterations, looks at the iterate, asks again.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "bind/smooth_arguments.hpp"
#include "solvers/papers/bcd.hpp"
#include "solvers/papers/fobos.hpp"
#include "solvers/papers/smooth_first_order.hpp"
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

/// What the methods share towards Python: the problem they keep alive, the start, the last point.
template <typename Method>
class SmoothRun {
 public:
  void start(const Matrix& weights, const Vector& intercept) {
    arguments_.check_start(weights, intercept);
    method_.start(weights.data(), intercept.data());
  }

  int64_t run(int64_t iterations, double tolerance) {
    load_blas();
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    return method_.run(iterations, tolerance, [&] { monitor.poll(); });
  }

  bool settled() const { return method_.settled(); }
  nb::tuple last() const { return arguments_.point(method_.weights(), method_.intercept()); }

 protected:
  template <typename... Options>
  SmoothRun(const SmoothArguments& arguments, Options&&... options)
      : arguments_(arguments),
        method_(arguments.problem(), arguments.prox(), std::forward<Options>(options)...) {}

  SmoothArguments arguments_;
  Method method_;
};

class FirstOrderRun : public SmoothRun<FirstOrder> {
 public:
  FirstOrderRun(const SmoothArguments& arguments, const std::string& method, bool line_search,
                double L, double eta, int64_t memory, double sigma, double smallest, double largest)
      : SmoothRun(arguments, FirstOrderOptions{first_order_method(method), line_search, L, eta,
                                               memory, sigma, smallest, largest}) {}

  double lipschitz() const { return method_.lipschitz(); }
};

class BcdRun : public SmoothRun<Bcd> {
 public:
  BcdRun(const SmoothArguments& arguments, bool line_search, bool randomised, double sigma,
         double omega, double epsilon, bool largest_violation, bool row_norms, bool shrinking,
         std::uint64_t seed)
      : SmoothRun(arguments, BcdOptions{line_search, randomised, sigma, omega, epsilon,
                                        largest_violation, row_norms, shrinking, seed}) {}

  nb::object constants() const { return to_numpy(method_.constants()); }
  int64_t active_blocks() const { return method_.active_blocks(); }
  nb::tuple violation() const {
    const auto [sum, largest] = method_.violation();
    return nb::make_tuple(sum, largest);
  }
  nb::tuple partial(int64_t part) {
    if (part < 0 || part >= std::ssize(method_.constants()) - 1) {
      throw std::invalid_argument("There is no block " + std::to_string(part) + " among " +
                                  std::to_string(method_.constants().size() - 1) + ".");
    }
    load_blas();
    const auto [G, h] = method_.partial(part);
    return nb::make_tuple(to_numpy(G), to_numpy(h));
  }
};

class FobosRun : public SmoothRun<Fobos> {
 public:
  FobosRun(const SmoothArguments& arguments, Input<int64_t, 1> samples, double eta0, bool lazy,
           std::uint64_t seed)
      : SmoothRun(arguments, FobosOptions{eta0, lazy, seed}, checked(arguments, samples)) {}

  int64_t run(int64_t passes, double) {
    Monitor monitor{nb::none()};
    nb::gil_scoped_release released;
    method_.run(passes, [&] { monitor.poll(); });
    return passes;
  }

  bool settled() const { return false; }
  nb::tuple last() const {
    const nb::tuple point = SmoothRun::last();
    if (!method_.hinge()) return point;
    const std::vector<double> mean = method_.dual();
    const int64_t n = arguments_.problem().n(), K = arguments_.problem().loss.classes;
    Output dual(n * K);
    std::copy(mean.begin(), mean.end(), dual.data());
    return nb::make_tuple(point[0], point[1], dual.matrix(n, K, false));
  }

 private:
  static std::vector<int64_t> checked(const SmoothArguments& arguments,
                                      const Input<int64_t, 1>& samples) {
    const int64_t n = arguments.problem().n();
    std::vector<int64_t> list(samples.data(), samples.data() + length(samples));
    if (list.empty()) throw std::invalid_argument("samples must not be empty.");
    for (const int64_t i : list) {
      if (i >= 0 && i < n) continue;
      throw std::invalid_argument("samples holds " + std::to_string(i) + ", outside the " +
                                  std::to_string(n) + " samples of the design.");
    }
    return list;
  }
};

/// Loss, derivative and curvature of every sample at the outputs S (n, outputs).
nb::tuple loss_rows(const SmoothArguments& arguments, const Matrix& S) {
  const SmoothProblem& problem = arguments.problem();
  const int64_t n = problem.n(), K = problem.outputs();
  check_shape("S", S, n, K);
  Output value(n), slopes(n * K), curvatures(n * K);
  {
    nb::gil_scoped_release released;
    for (int64_t i = 0; i < n; ++i) {
      value.data()[i] = problem.loss.curvatures(i, S.data() + i * K, slopes.data() + i * K,
                                                curvatures.data() + i * K);
    }
  }
  return nb::make_tuple(value.vector(), slopes.matrix(n, K, false), curvatures.matrix(n, K, false));
}

double penalty_value(const SmoothArguments& arguments, const Matrix& W) {
  check_shape("W", W, arguments.problem().d(), arguments.problem().outputs());
  const PenaltyProx prox = arguments.prox();
  return prox.value(W.data(), 0, prox.parts());
}

double curvature_bound(const SmoothArguments& arguments) {
  return arguments.problem().loss.curvature_bound();
}

double largest_curvature(const SmoothArguments& arguments) {
  return arguments.problem().loss.largest_curvature();
}

}  // namespace

void bind_smooth(nb::module_& m) {
  nb::class_<SmoothArguments>(m, "SmoothProblem",
                              "What the reference solvers of smooth losses are to solve.")
      .def(nb::init<const Design&, const std::string&, Integers, Vector, Matrix,
                    std::optional<Vector>, double, bool, std::optional<Matrix>, const std::string&,
                    double, Integers, int64_t, bool, Vector>(),
           nb::kw_only(), nb::arg("design"), nb::arg("loss"), nb::arg("y"), nb::arg("mass"),
           nb::arg("cost"), nb::arg("margin_scale") = nb::none(), nb::arg("alpha"),
           nb::arg("intercept"), nb::arg("tilt") = nb::none(), nb::arg("kind"), nb::arg("l1_ratio"),
           nb::arg("groups"), nb::arg("n_groups"), nb::arg("per_class"), nb::arg("omega"),
           nb::keep_alive<1, 2>())
      .def("loss_rows", &loss_rows, nb::arg("S"),
           "Loss (n,), derivative and diagonal curvature (n, outputs) at the outputs S.")
      .def("penalty", &penalty_value, nb::arg("W"), "The penalty at W (d, outputs).")
      .def_prop_ro("curvature_bound", &curvature_bound,
                   "The factor of sum_i p_i |x_i|^2 in the Lipschitz constants of the paper.")
      .def_prop_ro("largest_curvature", &largest_curvature,
                   "The largest curvature of a sample's loss in its outputs.");
  nb::class_<FirstOrderRun>(m, "FirstOrder",
                            "Forward-backward, FISTA and SpaRSA; see solvers.FISTA.")
      .def(nb::init<const SmoothArguments&, const std::string&, bool, double, double, int64_t,
                    double, double, double>(),
           nb::arg("problem"), nb::kw_only(), nb::arg("method"), nb::arg("line_search"),
           nb::arg("L"), nb::arg("eta") = 2.0, nb::arg("memory") = 0, nb::arg("sigma") = 0.0,
           nb::arg("smallest") = 0.0, nb::arg("largest"), nb::keep_alive<1, 2>())
      .def("start", &FirstOrderRun::start, nb::arg("weights"), nb::arg("intercept"),
           "Set W (d, outputs) and b.")
      .def("run", &FirstOrderRun::run, nb::arg("iterations"), nb::arg("tolerance") = -1.0,
           "Iterate; stop early once the relative change is at most tolerance, if that is not "
           "negative. Returns the number of iterations done.")
      .def_prop_ro("settled", &FirstOrderRun::settled,
                   "Whether the last run ended because the iterates had stopped moving.")
      .def_prop_ro("lipschitz", &FirstOrderRun::lipschitz, "The reciprocal of the present step.")
      .def("last", &FirstOrderRun::last, "Copies of W (d, outputs) and b (outputs,).");
  nb::class_<BcdRun>(m, "Bcd", "Block coordinate descent; see solvers.BCD.")
      .def(nb::init<const SmoothArguments&, bool, bool, double, double, double, bool, bool, bool,
                    std::uint64_t>(),
           nb::arg("problem"), nb::kw_only(), nb::arg("line_search"), nb::arg("randomised"),
           nb::arg("sigma"), nb::arg("omega"), nb::arg("epsilon"), nb::arg("largest_violation"),
           nb::arg("row_norms"), nb::arg("shrinking"), nb::arg("seed"), nb::keep_alive<1, 2>())
      .def("start", &BcdRun::start, nb::arg("weights"), nb::arg("intercept"),
           "Set W (d, outputs) and b.")
      .def("run", &BcdRun::run, nb::arg("iterations"), nb::arg("tolerance") = -1.0,
           "Outer iterations; stop early once the stopping rule holds for tolerance, if that is "
           "not negative. Returns the number of iterations done.")
      .def_prop_ro("settled", &BcdRun::settled,
                   "Whether the last run ended because the stopping rule held.")
      .def_prop_ro("constants", &BcdRun::constants,
                   "The Lipschitz constant of every block, the intercept's last.")
      .def_prop_ro("active_blocks", &BcdRun::active_blocks, "Blocks that are not shrunken away.")
      .def_prop_ro("violation", &BcdRun::violation,
                   "Sum and largest of the violations in the last outer iteration.")
      .def("partial", &BcdRun::partial, nb::arg("block"),
           "Partial gradient and generalised second derivatives of a block, flat.")
      .def("last", &BcdRun::last, "Copies of W (d, outputs) and b (outputs,).");
  nb::class_<FobosRun>(m, "Fobos", "Stochastic forward-backward splitting; see solvers.FOBOS.")
      .def(nb::init<const SmoothArguments&, Input<int64_t, 1>, double, bool, std::uint64_t>(),
           nb::arg("problem"), nb::kw_only(), nb::arg("samples"), nb::arg("eta0"), nb::arg("lazy"),
           nb::arg("seed"), nb::keep_alive<1, 2>())
      .def("start", &FobosRun::start, nb::arg("weights"), nb::arg("intercept"),
           "Set W (d, outputs) and b.")
      .def("run", &FobosRun::run, nb::arg("passes"), nb::arg("tolerance") = -1.0,
           "So many passes over the samples; the tolerance is for other methods.")
      .def_prop_ro("settled", &FobosRun::settled, "Never: the method has no rule of its own.")
      .def("last", &FobosRun::last,
           "Copies of W (d, outputs), b (outputs,) and, for the hinge, the mean subgradients.");
}

}  // namespace sparsvm
