// Smooth losses with sparse penalties: block coordinate descent finds the support, Newton's method
// on the active manifold does the rest.
//
//     minimise  sum_i p_i loss_i(X W + b)  +  alpha (penalty(W) - <V, W>)
//
// * Every outer iteration prices all groups with one transposed product, which also gives the
//   duality gap: c times the slopes is dual feasible where c is at most one over the dual norm.
// * A working set holds the support and the worst violators. On it epochs of coordinate descent
//   alternate with Newton steps on the coordinates that are not zero.
// * Where that does not end soon, a falling sequence of larger alphas is solved roughly first.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "problem/problem.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

struct BlockNewtonOptions {
  double tol = 1e-4;
  int max_iter = 200;
  double max_work = std::numeric_limits<double>::infinity();  // multiplications
  bool continuation = true;  // from larger alphas where a cold start does not end soon
  bool warm = false;         // the point holds a start
  const double* start_intercept = nullptr;  // outputs, or null
};

struct BlockNewtonReport {
  int iterations;
  bool stalled;
  int64_t products;  // with the Hessian
  double work;       // in multiplications of a matrix product
};

// The point; both arrays belong to the caller.
struct SmoothPoint {
  double* W;  // d x outputs
  double* b;  // outputs
};

// The solution is left in `point`.
BlockNewtonReport block_newton(const SmoothProblem& problem, const SmoothPoint& point,
                               const BlockNewtonOptions& options, Monitor& monitor);

// One solution of a path: the features in use, and their weights (features x outputs).
struct SmoothPathPoint {
  double objective, loss, bound, seconds;
  int iterations;
  bool converged;  // the gap on all the data met the tolerance
  bool balanced;   // intercepts and unpenalised weights are optimal to rounding: the gap is proven
  std::vector<double> intercept;
  std::vector<int32_t> features;
  std::vector<double> weights;
};

// Solutions at one alpha after the other, each from the one before; falling alphas are quick.
class SmoothPath {
 public:
  // Needs a problem without a linear term, whose alpha is of no account; `column_norms` are the Euclidean norms of
  // the columns. All must outlive it.
  SmoothPath(const SmoothProblem& problem, const double* column_norms, double tol, int max_iter,
             Monitor& monitor);
  ~SmoothPath();

  // Go on from these weights (d x outputs) and intercepts.
  void start(const double* weights, const double* intercept);
  SmoothPathPoint solve(double alpha);

 private:
  class Solver;
  std::unique_ptr<Solver> solver_;
};

}  // namespace sparsvm
