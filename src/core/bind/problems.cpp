#include "bind/problems.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "bind/arrays.hpp"

namespace sparsvm {

namespace {

// Masses below this part of the largest are taken for that much: no certificate sees the
// difference, while interior_point, which squares ratios of them, stalls with parts of 1e-160.
constexpr double kLeastPart = 1e-100;

constexpr auto any = [](double) { return true; };

// Throws unless what every problem has of its samples fits the design.
void check_samples(const Design& design, const std::vector<int32_t>& y, const Vector& mass,
                   const Matrix& cost, const std::optional<Vector>& margin_scale,
                   const std::optional<Matrix>& linear_term, double alpha) {
  const int64_t n = design.n(), K = rows(cost);
  if (n < 1 || K < 2) {
    throw std::invalid_argument("A problem needs at least one sample and two classes; found " +
                                std::to_string(n) + " samples and " + std::to_string(K) +
                                " classes.");
  }
  check_shape("cost", cost, K, K);
  check_size("y has", std::ssize(y), "the design's number of samples is", n);
  check_size("mass has", length(mass), "the design's number of samples is", n);
  if (margin_scale) {
    check_size("margin_scale has", length(*margin_scale), "the design's number of samples is", n);
    check_values("margin_scale", *margin_scale, kNotNegative);
  }
  if (linear_term) {
    check_shape("linear_term", *linear_term, design.d(), K == 2 ? 1 : K);
    check_values("linear_term", *linear_term, kFinite);
  }
  check_numbers("y", y, K);
  check_values("mass", mass, kPositive);
  if (!(alpha > 0.0) || !std::isfinite(alpha)) {
    throw std::invalid_argument("alpha = " + shown(alpha) + " must be positive and finite.");
  }
}

}  // namespace

void PenaltyArrays::check(int64_t d) const {
  check_size("groups has", std::ssize(groups), "the design's number of features is", d);
  check_size("omega has", length(omega), "the design's number of features is", d);
  if (n_groups < 0 || n_groups > d) {
    throw std::invalid_argument("n_groups is " + std::to_string(n_groups) + " for " +
                                std::to_string(d) + " features.");
  }
  check_numbers("groups", groups, n_groups);
  check_values("omega", omega, kNotNegative);
  if (!(l1_ratio >= 0.0 && l1_ratio <= 1.0)) {
    throw std::invalid_argument("l1_ratio is " + shown(l1_ratio) +
                                ", but must lie between 0 and 1.");
  }
}

Penalty PenaltyArrays::view(int64_t d, int64_t outputs) const {
  return {
      penalty_term(kind, l1_ratio), groups.data(), n_groups, per_class, omega.data(), d, outputs};
}

BoundHingeProblem::BoundHingeProblem(const Design& design, Integers y, Vector mass, Matrix cost,
                                     std::optional<Vector> margin_scale,
                                     std::optional<Matrix> margins, double alpha, bool intercept,
                                     std::optional<Matrix> linear_term, double offset,
                                     const std::string& kind, double l1_ratio, Integers groups,
                                     int64_t n_groups, bool per_class, Vector omega)
    : y_(copied(y)), mass_(mass), cost_(cost), margin_scale_(margin_scale), margins_(margins),
      linear_term_(linear_term),
      penalty_{kind, l1_ratio, copied(groups), n_groups, per_class, omega} {
  check_samples(design, y_, mass_, cost_, margin_scale_, linear_term_, alpha);
  const int64_t n = design.n(), d = design.d(), K = rows(cost), outputs = K == 2 ? 1 : K;
  check_values("cost", cost, kFinite);
  if (margins) {
    check_shape("margins", *margins, n, K);
    check_values("margins", *margins, kFinite);
  }
  if (!std::isfinite(offset)) {
    throw std::invalid_argument("offset = " + shown(offset) + " must be finite.");
  }
  penalty_.check(d);
  lambda_.resize(static_cast<std::size_t>(n));
  double largest = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    lambda_[i] = mass.data()[i] / alpha;
    largest = std::max(largest, lambda_[i]);
  }
  for (double& l : lambda_) l = std::max(l, kLeastPart * largest);
  problem_ = {&design,
              y_.data(),
              mass_.data(),
              lambda_.data(),
              cost_.data(),
              margin_scale_ ? margin_scale_->data() : nullptr,
              margins_ ? margins_->data() : nullptr,
              K,
              alpha,
              intercept,
              linear_term_ ? linear_term_->data() : nullptr,
              offset,
              penalty_.view(d, outputs)};
}

void BoundHingeProblem::check_start(const Matrix& weights, const Vector& intercept,
                                    const Matrix& dual) const {
  check_shape("weights", weights, d(), outputs());
  check_size("intercept has", length(intercept), "the number of outputs is", outputs());
  check_shape("dual", dual, n(), classes());
}

BoundSmoothProblem::BoundSmoothProblem(const Design& design, const std::string& loss, Integers y,
                                       Vector mass, Matrix cost, std::optional<Vector> margin_scale,
                                       double alpha, bool intercept,
                                       std::optional<Matrix> linear_term, const std::string& kind,
                                       double l1_ratio, Integers groups, int64_t n_groups,
                                       bool per_class, Vector omega)
    : y_(copied(y)), mass_(mass), cost_(cost), margin_scale_(margin_scale),
      linear_term_(linear_term),
      penalty_{kind, l1_ratio, copied(groups), n_groups, per_class, omega} {
  check_samples(design, y_, mass_, cost_, margin_scale_, linear_term_, alpha);
  check_values("cost", cost_, kNotNegative);
  penalty_.check(design.d());
  problem_.design = &design;
  problem_.loss = {loss_kind(loss),
                   y_.data(),
                   mass_.data(),
                   cost_.data(),
                   margin_scale_ ? margin_scale_->data() : nullptr,
                   rows(cost)};
  problem_.alpha = alpha;
  problem_.intercept = intercept;
  problem_.linear_term = linear_term_ ? linear_term_->data() : nullptr;
  problem_.penalty = penalty_.view(design.d(), problem_.outputs());
}

void BoundSmoothProblem::check_start(const Matrix& weights, const Vector& intercept) const {
  check_shape("weights", weights, d(), outputs());
  check_size("intercept has", length(intercept), "the number of outputs is", outputs());
}

void bind_problems(nb::module_& m) {
  nb::class_<BoundHingeProblem>(m, "HingeProblem",
                                "A hinge problem with its arrays, checked; see "
                                "sparsvm.problem.problem.Problem for their meaning. Weights and "
                                "linear term are feature-major: (d, outputs).")
      .def(nb::init<const Design&, Integers, Vector, Matrix, std::optional<Vector>,
                    std::optional<Matrix>, double, bool, std::optional<Matrix>, double,
                    const std::string&, double, Integers, int64_t, bool, Vector>(),
           nb::kw_only(), nb::arg("design"), nb::arg("y"), nb::arg("mass"), nb::arg("cost"),
           nb::arg("margin_scale").none(), nb::arg("margins").none(), nb::arg("alpha"),
           nb::arg("intercept"), nb::arg("linear_term").none(), nb::arg("offset"), nb::arg("kind"),
           nb::arg("l1_ratio"), nb::arg("groups"), nb::arg("n_groups"), nb::arg("per_class"),
           nb::arg("omega"), nb::keep_alive<1, 2>());
  nb::class_<BoundSmoothProblem>(m, "SmoothProblem",
                                 "A problem of a smooth loss (or the hinge, for subgradients) with "
                                 "its arrays, checked; weights and linear term are feature-major.")
      .def(nb::init<const Design&, const std::string&, Integers, Vector, Matrix,
                    std::optional<Vector>, double, bool, std::optional<Matrix>, const std::string&,
                    double, Integers, int64_t, bool, Vector>(),
           nb::kw_only(), nb::arg("design"), nb::arg("loss"), nb::arg("y"), nb::arg("mass"),
           nb::arg("cost"), nb::arg("margin_scale").none(), nb::arg("alpha"), nb::arg("intercept"),
           nb::arg("linear_term").none(), nb::arg("kind"), nb::arg("l1_ratio"), nb::arg("groups"),
           nb::arg("n_groups"), nb::arg("per_class"), nb::arg("omega"), nb::keep_alive<1, 2>())
      .def_prop_ro("curvature_bound",
                   [](const BoundSmoothProblem& b) { return b.problem().loss.curvature_bound(); },
                   "The factor of sum_i p_i |x_i|^2 in the Lipschitz constants of the paper.")
      .def_prop_ro("largest_curvature", [](const BoundSmoothProblem& b) {
    return b.problem().loss.largest_curvature();
  }, "The largest curvature of a sample's loss in its outputs.");
}

namespace {

// A copy, since a user's function may keep or change what it is given.
Output::Matrix copied(const double* W, int64_t d, int64_t outputs) {
  Output out(d * outputs);
  std::copy_n(W, d * outputs, out.data());
  return out.matrix(d, outputs, false);
}

}  // namespace

ProxTerm prox_term(const Penalty& built_in, const nb::object& own) {
  if (own.is_none()) return built_in_term(built_in);
  const int64_t d = built_in.d, outputs = built_in.outputs;
  const nb::object prox = own.attr("prox"), value = own.attr("value");
  return {[=](double* W, double step) {
    const nb::gil_scoped_acquire gil;
    const auto result = nb::cast<Input<double, 2>>(prox(copied(W, d, outputs), step));
    check_shape("The result of prox", result, d, outputs);
    std::copy_n(result.data(), d * outputs, W);
  }, [=](const double* W) {
    const nb::gil_scoped_acquire gil;
    return nb::cast<double>(value(copied(W, d, outputs)));
  }};
}

}  // namespace sparsvm
