// The equalities of the dual point: row sums, and columns orthogonal to Y~.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "solvers/interior_point/scaled_problem.hpp"

namespace sparsvm {

/// The largest step, at most a, along which x > 0 stays positive.
inline double largest_step(const std::vector<double>& x, const std::vector<double>& dx, double a) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] + a * dx[i] <= 0.0) a = std::min(a, -x[i] / dx[i]);
  return a;
}

/// Makes the row sums of a step exact: what the solve left of them would add up in Y~ over the
/// iterations.
inline void exact_row_sums(const ScaledProblem& p, const NewtonVector& rhs, NewtonVector& step) {
  for (int i = 0; i < p.n; ++i) {
    double others = 0.0;
    for (int k = 0; k < p.classes; ++k) others += k == p.y[i] ? 0.0 : step.y[p.at(k) + i];
    step.y[p.at(p.y[i]) + i] = rhs.xi[i] - others;
  }
}

/// lambda minus the row sums of Y
inline void row_residuals(const ScaledProblem& p, const std::vector<double>& Y,
                          std::vector<double>& out) {
  for (int i = 0; i < p.n; ++i) {
    double sum = 0.0;
    for (int k = 0; k < p.classes; ++k) sum += Y[p.at(k) + i];
    out[i] = p.lambda[i] - sum;
  }
}

/// Newton steps of Y towards row sums lambda and C'Y~_k = 0 for given columns C, small relative to Y.
class Equalities {
 public:
  Equalities(const ScaledProblem& problem, std::vector<double> columns,
             const std::function<void()>& poll)
      : p_(problem),
        columns_{p_.n, p_.classes, static_cast<int>(columns.size() / p_.n), std::move(columns)},
        system_(columns_, none_), ones_(static_cast<std::size_t>(p_.n) * p_.classes, 1.0) {
    system_.regularisation = 0.0;
    system_.poll = poll;
  }

  /// One damped step that keeps Y positive; returns its length, 0 when the system cannot be solved.
  /// The equalities are linear: a step of length 1 satisfies them up to rounding.
  double approach(std::vector<double>& Y) {
    NewtonVector rhs, step;
    rhs.resize(Y.size(), p_.n, columns_.count());
    row_residuals(p_, Y, rhs.xi);
    p_.residuals(columns_, Y, rhs.b);
    system_.assemble(ConeBlocks(), nullptr, false, false, ones_.data(), Y.data());
    if (!system_.factor()) return 0.0;
    system_.solve(rhs, step);
    exact_row_sums(p_, rhs, step);
    const double length = std::min(1.0, 0.9 * largest_step(Y, step.y, 2.0));
    for (std::size_t a = 0; a < Y.size(); ++a) Y[a] += length * step.y[a];
    return length;
  }

 private:
  const ScaledProblem& p_;
  const FreeColumns columns_;
  const QuadraticPart none_{};
  NewtonSystem system_;
  std::vector<double> ones_;
};

}  // namespace sparsvm
