// What proves a point of the hinge with a norm, in double precision and on all the data.
//
// The dual value Σ Y_ik m_ik of any Y >= 0 off the true classes, with row sums of at most p_i, balanced
// between the classes and with X'Y~ / alpha inside the dual ball, is a lower bound. It is linear, and
// one factor brings any Y into the ball.
#pragma once

#include <cstdint>
#include <vector>

#include "penalty/penalty_layout.hpp"
#include "problem/problem.hpp"

namespace sparsvm {

class HingeCertificate {
 public:
  // The problem is kept by the caller; its alpha is of no account. column_dual_norm: the dual norm of
  // |x_j| of all features in every output.
  HingeCertificate(const HingeProblem& problem, double column_dual_norm);

  // Σ p_i hinge_i at the scores S (n x outputs) without the intercept.
  double loss(const std::vector<double>& S, const double* intercept) const;
  // Makes Y (n x K) feasible, as repaired_dual and best_repair of certificate/gap.py do, with 0 at the
  // true classes; returns its value, a lower bound of the objective at alpha, -inf where that fails.
  // strengths: the largest dual norm of the blocks of each group at the repaired X'Y~ / alpha, before
  // one factor brings all of them to 1. `thinning`: samples may be scaled one by one for that, after
  // which the strengths do not tell what to add to a working set.
  double prove(std::vector<double>& Y, double alpha, std::vector<double>& strengths,
               bool thinning = false);
  // Σ Y_ik m_ik
  double value(const std::vector<double>& Y) const;
  // The largest dual norm of the blocks of each group at X'Y~ / alpha.
  void strengths(const std::vector<double>& Y, double alpha, std::vector<double>& out);

 private:
  const HingeProblem& p_;
  PenaltyLayout layout_;
  double column_dual_norm_;
  int64_t n_, K_, outputs_, first_;  // first class with an output
  std::vector<double> free_;         // unpenalised columns, over their mean absolute values
  std::vector<double> G_;

  std::vector<double> class_sums(const std::vector<double>& Y) const;
  std::vector<int> components(const std::vector<double>& sums, double least) const;
  bool repair(std::vector<double>& Y) const;
  // What to divide Y by: the largest strength with a bound of its rounding, or 1.
  double excess(const std::vector<double>& Y, double alpha,
                const std::vector<double>& strengths) const;
  bool thin(std::vector<double>& Y, const std::vector<double>& strengths) const;
  double fit(const std::vector<double>& Y, int64_t i) const;
  bool balance(std::vector<double>& Y) const;
  bool balance_within_masses(std::vector<double>& Y) const;
  bool balanced_on_free_features(const std::vector<double>& Y) const;
  std::vector<double> signed_outputs(const std::vector<double>& Y) const;
};

}  // namespace sparsvm
