// The operator T of 000 and the norms that bound its steps.
#pragma once

#include <cstdint>
#include <functional>

#include "problem/hinge_problem.hpp"

namespace sparsvm {

/// Called after every product; throws if the user asked for an end.
using Poll = std::function<void()>;

/// T_i and its adjoint: from the scores of sample i to those of all classes less the score of the
/// true one, and back. Two classes have one output and the scores (0, S_i).
class ScoreDifferences {
 public:
  explicit ScoreDifferences(const HingeProblem& problem)
      : y_(problem.y), classes_(problem.classes), outputs_(problem.outputs()) {}

  /// The K differences of sample i from its `outputs` scores.
  void forward(int64_t i, const double* scores, double* out) const;
  /// The pull of K dual values of sample i on its `outputs` scores.
  void adjoint(int64_t i, const double* dual, double* out) const;

 private:
  const int32_t* y_;
  int64_t classes_, outputs_;
};

/// An upper estimate of the spectral norm of [X 1] (of X without intercept), by power iteration.
///
/// Power iteration approaches the norm from below: the last value is raised by one per cent, but
/// not beyond the Frobenius norm. Should it still fall short by little, no harm is done: the method
/// is known to converge while τσ‖T‖² < 4/3.
double operator_norm(const Design& X, bool intercept, const Poll& poll);

/// The same for the paper's T, intercept included if the problem has one.
double difference_norm(const HingeProblem& problem, const Poll& poll);

}  // namespace sparsvm
