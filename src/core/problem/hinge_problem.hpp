// The hinge problem, as every native solver of the hinge is given it.
#pragma once

#include <cstdint>

#include "design/design.hpp"
#include "penalty/penalty.hpp"

namespace sparsvm {

// Minimise over W (d x outputs) and b (outputs)
//
//   Σ_i p_i max_k (m_ik + S_ik - S_iy_i) + α (penalty(W) - <tilt, W>) + offset,   S = X W + b,
//
// with two classes having one output and the scores (0, S_i). Solvers that divide by α work with
// λ_i = p_i / α. The pointers must outlive the solver.
struct HingeProblem {
  const Design* design;
  const int32_t* y;            // n class numbers
  const double* mass;          // n, p_i > 0
  const double* lambda;        // n, λ_i > 0
  const double* cost;          // K x K margins, row = true class
  const double* margin_scale;  // n factors of the rows of cost, or null
  const double* margins;       // n x K in place of cost and margin_scale, of either sign, or null
  int64_t classes;
  double alpha;
  bool intercept;
  const double* tilt;  // d x outputs, or null
  double offset;
  Penalty penalty;

  int64_t n() const { return design->n(); }
  int64_t d() const { return design->d(); }
  int64_t outputs() const { return classes == 2 ? 1 : classes; }
  double margin(int64_t i, int64_t k) const {
    if (margins) return margins[i * classes + k];
    const double m = cost[y[i] * classes + k];
    return margin_scale ? margin_scale[i] * m : m;
  }
};

}  // namespace sparsvm
