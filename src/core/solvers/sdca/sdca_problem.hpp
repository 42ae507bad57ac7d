// What dual coordinate ascent is given.
#pragma once

#include <cstdint>

#include "design/design.hpp"
#include "penalty/penalty.hpp"

namespace sparsvm {

/// What is to be solved; the pointers must outlive the solver.
struct SdcaProblem {
  const Design* design;
  const int32_t* y;            // n class numbers
  const double* lambda;        // n positive masses, in units of alpha
  const double* cost;          // K x K margins, row = true class
  const double* margin_scale;  // n factors of the margins, or null
  int64_t classes;
  bool intercept;
  const double* tilt;  // d x outputs, or null
  Penalty penalty;

  int64_t outputs() const { return classes == 2 ? 1 : classes; }
  double margin(int64_t i, int64_t k) const {
    const double m = cost[y[i] * classes + k];
    return margin_scale ? margin_scale[i] * m : m;
  }
};

struct SdcaOptions {
  double relaxation = 1.7;  // ρ: up to 2 every update still ascends
  int sweeps = 2;           // per proximal step
};

}  // namespace sparsvm
