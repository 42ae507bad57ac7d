// A problem of the hinge with a norm on many samples, from a point that is near: sweeps of dual
// coordinate ascent, then Newton steps of the method of multipliers, each point proven.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "paths/hinge_certificate.hpp"
#include "paths/hinge_part.hpp"
#include "problem/problem.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

// A point of a part of the features, as its solver leaves it.
struct PartSolution {
  std::vector<int32_t> used;      // features of the part with weights, increasing
  std::vector<double> weights;    // used x outputs
  std::vector<double> intercept;  // outputs
  std::vector<double> dual;       // n x K, divided by alpha
  int64_t iterations = 0;
};

// Which solver is to begin and when the next one goes on; see path_plan of solvers/registry.py. The step
// is the multiplications of one of interior_point's from the side of the features.
struct PartPlan {
  double exact_step;              // up to this interior_point solves
  double affordable_step;         // up to this newton takes over as told first, else as told next
  double until[2];                // the gaps from which newton goes on
  double sweeps_per_coefficient;  // before the first, at least and at most:
  int64_t fewest_sweeps, most_sweeps;

  int which(double step) const { return step <= affordable_step ? 0 : 1; }
};

// Solves from the point until the certificate of the part proves the relative gap; false if that became
// hopeless. The point becomes the best one either way.
bool solve_by_sweeps(const HingeProblem& problem, const HingePart& part,
                     HingeCertificate& certificate, const PartPlan& plan, double step, double tol,
                     Monitor& monitor, PartSolution& point);

}  // namespace sparsvm
