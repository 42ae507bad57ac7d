// The problem in the units of the interior point, and its columns as they are used there.
//
// The penalty has radius one: lambda_i = p_i / alpha, and columns are divided by omega. With a free
// intercept columns are also centred, which changes nothing but keeps the matrices well conditioned.
// Arrays of pairs (sample, class) are class-major. Y~ = Y - lambda Z, with Z the true classes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "penalty/penalty_layout.hpp"
#include "problem/problem.hpp"
#include "solvers/interior_point/newton_system.hpp"

namespace sparsvm {

class ScaledProblem {
 public:
  // The problem is kept by the caller; poll is called between the parts of X X'.
  ScaledProblem(const HingeProblem& problem, const std::function<void()>& poll);

  const HingeProblem& given;
  const Design& design;
  const int n, classes, outputs;
  const int first_class;  // the first one with weights
  const int64_t d;
  const Penalty penalty;
  const bool quadratic;
  const PenaltyLayout layout;
  const int32_t* y;
  const double* lambda;
  const double* linear_term;  // d x outputs or null: the objective gets -<V, W>
  const double offset;        // constant of the objective, which tolerances are relative to

  std::vector<double> margins;  // n*K, of either sign, zero at the true class
  std::vector<double> shares;   // of the classes in the mass, positive
  bool empty_class = false;     // some class has no samples
  double total_lambda = 0.0;
  double margin_unit = 1.0;  // mean size of a sample's margins
  double zero_value = 0.0;   // the objective of the zero model

  std::vector<double> mean;            // per feature, what centring took away
  std::vector<int32_t> free_features;  // unpenalised, in the order of their columns
  std::vector<double> free_scale;      // what these were divided by
  FreeColumns free;
  QuadraticPart quadratic_part;
  double linear_norm = 0.0;  // |V|^2 of a linear term V under a quadratic penalty

  std::size_t at(int k) const { return static_cast<std::size_t>(k) * n; }
  double magnitude(double primal) const { return std::abs(primal + offset); }

  // Columns of the listed features, centred and divided by omega.
  void gather(const std::vector<int32_t>& list, double* out);
  void centre(int32_t j, double* x);
  // out (d x outputs) = X'A for A (n x K, sample-major).
  void transposed(const double* sample_major, double* out) const;
  // Column k of Y~.
  void signed_column(const std::vector<double>& Y, int k, std::vector<double>& out) const;
  // Y~, sample-major.
  std::vector<double> signed_rows(const std::vector<double>& Y) const;
  // out = -C'Y~, for the columns C of every class that has free ones.
  void residuals(const FreeColumns& columns, const std::vector<double>& Y,
                 std::vector<double>& out) const;
  // S += F b
  void add_free_scores(const std::vector<double>& b, std::vector<double>& S) const;

  double hinge(const std::vector<double>& S) const;

  // Quadratic penalty: S += X W for the weights that Y stands for.
  void add_quadratic_scores(const std::vector<double>& Y, std::vector<double>& S) const;
  // sum_k Y~_k' (X X') Y~_k / 2 and Y~ . (X V); zero for other penalties.
  std::pair<double, double> quadratic_terms(const std::vector<double>& Y) const;
  // W = (V - X'Y~) / omega^2, the weights that a dual point stands for.
  void quadratic_weights(const std::vector<double>& Y, std::vector<double>& W) const;
  // The scores of these weights and of b; returns their penalty. X X'Y~ cancels where the features
  // are large against alpha, so that its scores are not those of X'Y~ to the last digits.
  double exact_quadratic_scores(const std::vector<double>& Y, const std::vector<double>& b,
                                std::vector<double>& S) const;

 private:
  // Quadratic penalty with a linear term V: W = V - X'Y~ (in scaled columns), so the scores and both
  // values get constant terms from V.
  std::vector<double> linear_scores_;

  void set_margins();
  void add_free_feature(int32_t j);
  void form_quadratic_part(const std::function<void()>& poll);
  void form_gram(const std::function<void()>& poll);
  void add_linear_scores(const std::vector<int32_t>& list, const std::vector<double>& X);
  void quadratic_product(double factor, const double* v, double rest, double* out) const;
};

// -----------------------------------------------------------------
// The equalities of the dual point: row sums, and columns orthogonal to Y~.

// The largest step, at most a, along which x > 0 stays positive.
inline double largest_step(const std::vector<double>& x, const std::vector<double>& dx, double a) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] + a * dx[i] <= 0.0) a = std::min(a, -x[i] / dx[i]);
  return a;
}

// Makes the row sums of a step exact: what the solve left of them would add up in Y~ over the
// iterations.
inline void exact_row_sums(const ScaledProblem& p, const NewtonVector& rhs, NewtonVector& step) {
  for (int i = 0; i < p.n; ++i) {
    double others = 0.0;
    for (int k = 0; k < p.classes; ++k) others += k == p.y[i] ? 0.0 : step.y[p.at(k) + i];
    step.y[p.at(p.y[i]) + i] = rhs.xi[i] - others;
  }
}

// lambda minus the row sums of Y
inline void row_residuals(const ScaledProblem& p, const std::vector<double>& Y,
                          std::vector<double>& out) {
  for (int i = 0; i < p.n; ++i) {
    double sum = 0.0;
    for (int k = 0; k < p.classes; ++k) sum += Y[p.at(k) + i];
    out[i] = p.lambda[i] - sum;
  }
}

// Newton steps of Y towards row sums lambda and C'Y~_k = 0 for given columns C, small relative to Y.
class Equalities {
 public:
  Equalities(const ScaledProblem& problem, std::vector<double> columns,
             const std::function<void()>& poll)
      : p_(problem),
        columns_{p_.n, p_.classes, static_cast<int>(columns.size() / p_.n), std::move(columns)},
        system_(columns_, none_), ones_(static_cast<std::size_t>(p_.n) * p_.classes, 1.0) {
    system_.poll = poll;
  }

  // One damped step that keeps Y positive; returns its length, 0 when the system cannot be solved.
  // The equalities are linear: a step of length 1 satisfies them up to rounding.
  double approach(std::vector<double>& Y) {
    NewtonVector rhs, step;
    rhs.resize(Y.size(), p_.n, columns_.count());
    row_residuals(p_, Y, rhs.xi);
    p_.residuals(columns_, Y, rhs.b);
    system_.assemble(ConeBlocks(), nullptr, false, false, ones_.data(), Y.data());
    if (!system_.factor()) return 0.0;
    system_.solve(rhs, step);
    exact_row_sums(p_, rhs, step);
    const double length =
        std::min(1.0, interior_point_settings::kEqualityStep * largest_step(Y, step.y, 2.0));
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
