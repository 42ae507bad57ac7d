// The arguments that all reference solvers of smooth losses share, checked and kept alive.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.hpp"
#include "loss/smooth_objective.hpp"
#include "penalty/penalty_prox.hpp"

namespace sparsvm {

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;
using Integers = Input<std::int32_t, 1>;

/// A problem of sparsvm.problem.Problem with the arrays it points into.
class SmoothArguments {
 public:
  SmoothArguments(const Design& design, const std::string& loss, Integers y, Vector mass,
                  Matrix cost, std::optional<Vector> margin_scale, double alpha, bool intercept,
                  std::optional<Matrix> tilt, const std::string& kind, double l1_ratio,
                  Integers groups, int64_t n_groups, bool per_class, Vector omega)
      : y_(y), mass_(mass), cost_(cost), margin_scale_(margin_scale), tilt_(tilt), groups_(groups),
        omega_(omega), kind_(penalty_kind(kind)), l1_ratio_(l1_ratio), n_groups_(n_groups),
        per_class_(per_class) {
    const int64_t n = design.n(), d = design.d(), K = rows(cost);
    if (K < 2) throw std::invalid_argument("cost must have two rows at least.");
    check_shape("cost", cost, K, K);
    check_size("y has", length(y), "the design's number of samples is", n);
    check_size("mass has", length(mass), "the design's number of samples is", n);
    if (margin_scale) {
      check_size("margin_scale has", length(*margin_scale), "the design's number of samples is", n);
    }
    check_size("groups has", length(groups), "the design's number of features is", d);
    check_size("omega has", length(omega), "the design's number of features is", d);
    for (int64_t i = 0; i < n; ++i) {
      if (y.data()[i] < 0 || y.data()[i] >= K) {
        throw std::invalid_argument("y[" + std::to_string(i) + "] is " +
                                    std::to_string(y.data()[i]) + ", outside the " +
                                    std::to_string(K) + " classes.");
      }
    }
    const double* scale = margin_scale_ ? margin_scale_->data() : nullptr;
    problem_ = {&design,
                {loss_kind(loss), y_.data(), mass_.data(), cost_.data(), scale, K},
                alpha,
                intercept,
                tilt_ ? tilt_->data() : nullptr};
    if (tilt) check_shape("tilt", *tilt, d, problem_.outputs());
  }

  const SmoothProblem& problem() const { return problem_; }
  PenaltyProx prox() const {
    return {kind_,          l1_ratio_, problem_.d(), problem_.outputs(),
            groups_.data(), n_groups_, per_class_,   omega_.data()};
  }

  void check_start(const Matrix& weights, const Vector& intercept) const {
    check_shape("weights", weights, problem_.d(), problem_.outputs());
    check_size("intercept has", length(intercept), "the number of outputs is", problem_.outputs());
  }

  /// Copies of W (d, outputs) and b for Python.
  nb::tuple point(const std::vector<double>& weights, const std::vector<double>& intercept) const {
    Output W(problem_.d() * problem_.outputs()), b(problem_.outputs());
    std::copy(weights.begin(), weights.end(), W.data());
    std::copy(intercept.begin(), intercept.end(), b.data());
    return nb::make_tuple(W.matrix(problem_.d(), problem_.outputs(), false), b.vector());
  }

 private:
  Integers y_;
  Vector mass_;
  Matrix cost_;
  std::optional<Vector> margin_scale_;
  std::optional<Matrix> tilt_;
  Integers groups_;
  Vector omega_;
  PenaltyKind kind_;
  double l1_ratio_;
  int64_t n_groups_;
  bool per_class_;
  SmoothProblem problem_{};
};

}  // namespace sparsvm
