// The problems that cross the border: built once from NumPy arrays, checked once, then read by any
// native solver.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bind/arrays.hpp"
#include "penalty/penalty.hpp"
#include "problem/problem.hpp"
#include "problem/ranking_problem.hpp"

namespace sparsvm {

// The arrays of a penalty, of its groups a copy.
struct PenaltyArrays {
  std::string kind;
  double l1_ratio;
  std::vector<int32_t> groups;
  int64_t n_groups;
  bool per_class;
  Vector omega;

  // Throws unless sizes and values fit d features.
  void check(int64_t d) const;
  Penalty view(int64_t d, int64_t outputs) const;
};

// A HingeProblem with the arrays it points into.
class BoundHingeProblem {
 public:
  BoundHingeProblem(const Design& design, Integers y, Vector mass, Matrix cost,
                    std::optional<Vector> margin_scale, std::optional<Matrix> margins, double alpha,
                    bool intercept, std::optional<Matrix> linear_term, double offset,
                    const std::string& kind, double l1_ratio, Integers groups, int64_t n_groups,
                    bool per_class, Vector omega);
  BoundHingeProblem(const BoundHingeProblem&) = delete;
  BoundHingeProblem& operator=(const BoundHingeProblem&) = delete;

  const HingeProblem& problem() const { return problem_; }
  int64_t n() const { return problem_.n(); }
  int64_t d() const { return problem_.d(); }
  int64_t classes() const { return problem_.classes; }
  int64_t outputs() const { return problem_.outputs(); }

  // Throws unless W (d, outputs), b (outputs,) and the dual (n, K) have the problem's shapes.
  void check_start(const Matrix& weights, const Vector& intercept, const Matrix& dual) const;

 private:
  std::vector<int32_t> y_;
  Vector mass_;
  Matrix cost_;
  std::optional<Vector> margin_scale_;
  std::optional<Matrix> margins_, linear_term_;
  PenaltyArrays penalty_;
  std::vector<double> lambda_;
  HingeProblem problem_{};
};

// A SmoothProblem with the arrays it points into.
class BoundSmoothProblem {
 public:
  using Problem = SmoothProblem;

  BoundSmoothProblem(const Design& design, const std::string& loss, Integers y, Vector mass,
                     Matrix cost, std::optional<Vector> margin_scale, double alpha, bool intercept,
                     std::optional<Matrix> linear_term, const std::string& kind, double l1_ratio,
                     Integers groups, int64_t n_groups, bool per_class, Vector omega);
  BoundSmoothProblem(const BoundSmoothProblem&) = delete;
  BoundSmoothProblem& operator=(const BoundSmoothProblem&) = delete;

  const SmoothProblem& problem() const { return problem_; }
  int64_t n() const { return problem_.n(); }
  int64_t d() const { return problem_.d(); }
  int64_t classes() const { return problem_.loss.classes; }
  int64_t outputs() const { return problem_.outputs(); }

  // Throws unless W (d, outputs) and b (outputs,) have the problem's shapes.
  void check_start(const Matrix& weights, const Vector& intercept) const;

 private:
  std::vector<int32_t> y_;
  Vector mass_;
  Matrix cost_;
  std::optional<Vector> margin_scale_;
  std::optional<Matrix> linear_term_;
  PenaltyArrays penalty_;
  SmoothProblem problem_{};
};

// The penalty of `own`, or the built-in one where `own` is None.
//
// `own` has prox(W, step) and value(W) with W of shape (d, outputs). Each call takes the GIL for
// itself, so the loop around it may run without; an exception ends the loop and reaches the caller.
// The term itself must be made, copied and destroyed with the GIL held.
ProxTerm prox_term(const Penalty& built_in, const nb::object& own);

using Flags = Input<uint8_t, 2>;

// A RankingProblem with the arrays it points into.
class BoundRankingProblem {
 public:
  using Problem = RankingProblem;

  BoundRankingProblem(const Design& design, Integers y, Flags sets, Vector factor, Vector mass,
                      double alpha, bool intercept, const std::string& kind, double l1_ratio,
                      Integers groups, int64_t n_groups, bool per_class, Vector omega);
  BoundRankingProblem(const BoundRankingProblem&) = delete;
  BoundRankingProblem& operator=(const BoundRankingProblem&) = delete;

  const RankingProblem& problem() const { return problem_; }
  int64_t n() const { return problem_.n(); }
  int64_t d() const { return problem_.d(); }
  int64_t outputs() const { return problem_.outputs(); }

  // Throws unless W (d, labels) and b (labels,) have the problem's shapes.
  void check_start(const Matrix& weights, const Vector& intercept) const;

 private:
  std::vector<int32_t> y_, members_, positives_;
  Vector factor_, mass_;
  PenaltyArrays penalty_;
  RankingProblem problem_{};
};

}  // namespace sparsvm
