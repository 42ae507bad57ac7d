// A RankingProblem as it crosses the border.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/problems.hpp"
#include "problem/ranking_problem.hpp"

namespace sparsvm {

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
