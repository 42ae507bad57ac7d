// What dual coordinate ascent is given.
#pragma once

#include "problem/hinge_problem.hpp"

namespace sparsvm {

struct SdcaOptions {
  double relaxation = 1.7;  // ρ: up to 2 every update still ascends
  int sweeps = 2;           // per proximal step
};

}  // namespace sparsvm
