// Primal-dual interior point for the exact multiclass hinge with a sparse penalty.
//
// In units where the penalty has radius one (lambda_i = p_i / alpha, columns divided by omega):
//
//     minimise   sum_i lambda_i xi_i + phi(W) - <V, W>
//     subject to xi_i >= r_ik + S_ik - S_iy,   S = X W + F b
//
// with dual Y_i in lambda_i * simplex, Y~ = Y - lambda Z, G = X'Y~ - V inside the dual ball and
// F'Y~ = 0. Slacks U = xi 1' - r - S (xi absorbing the true class's score) pair with Y.
//
// * The Newton system is never of size n*K, see newton_system.hpp.
// * Only a working set of penalty blocks enters it, see working_set.hpp.
// * Every iterate is tried with the coordinates that complementarity calls inactive set to exact
//   zeros; the solver stops when such a sparse point is within the tolerance of the dual value, and
//   solves for the active coordinates alone where thresholding does not suffice.
// * Euclidean groups of single classes are left as soon as Newton steps on the face of the optimum,
//   see find_face, finish the solve.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "problem/problem.hpp"
#include "solvers/interior_point/newton_system.hpp"
#include "solvers/interior_point/scaled_problem.hpp"
#include "solvers/interior_point/settings.hpp"
#include "solvers/interior_point/working_set.hpp"

namespace sparsvm {

// -----------------------------------------------------------------
// The points of the interior point: the iterate, and the best ones met.

// The iterate, but for the weights, which are those of the working set.
struct Iterate {
  std::vector<double> Y, U;   // n*K: dual variables and slacks xi - margin - S
  std::vector<double> xi, b;  // n; free coefficients
  std::vector<double> S;      // n*K: scores
  double mu = 0.0;            // average complementarity
};

// What the last affine direction takes to a value other than zero: pairs (sample, class), blocks.
struct ActiveGuess {
  std::vector<char> pairs, blocks;
};

// A primal point worth keeping.
struct Candidate {
  double primal = std::numeric_limits<double>::infinity();
  std::vector<int64_t> at;           // of d x outputs, where the values belong
  std::vector<double> values, b, Y;  // Y defines the weights of a quadratic penalty
  double scale = 1.0;                // of all weights and free coefficients; 0 is the zero model

  // Takes this point if it is better; Y of a quadratic penalty only, or null.
  void offer(const WorkingSet& set, const std::vector<double>& point,
             const std::vector<double>& free, const std::vector<double>* dual, double value) {
    if (!(value < primal)) return;
    primal = value;
    values = point;
    at.resize(values.size());
    for (std::size_t c = 0; c < values.size(); ++c) at[c] = set.position(static_cast<int64_t>(c));
    b = free;
    scale = 1.0;
    if (dual) Y = *dual;
  }
};

// The best points met: primal ones as they are and with inactive coordinates at exact zero, and the
// dual one.
struct Incumbent {
  Candidate dense, sparse;
  double dual_value = -std::numeric_limits<double>::infinity();
  std::vector<double> Y;

  // A sparse point within the tolerance is the answer even where a dense one is a little better.
  const Candidate& best() const { return sparse.primal <= dense.primal ? sparse : dense; }
};

// -----------------------------------------------------------------
// Newton's method on the face of the optimum.
//
// The interior point knows which pairs (sample, class) and which blocks of weights are zero, all but
// a few, long before its gap is small. With a guess of these the optimality conditions are equations,
//
//     G_b + radius * W_b / |W_b| = 0    (blocks in the support),    xi_i = r_ik + S_ik    (pairs),
//     sum_k Y_ik = lambda_i,            F'Y~_k = 0,
//
// and a step on them costs a tenth of one of the interior point (face_system.hpp). Every step also
// corrects the guess, as semismooth Newton methods do: dual variables that turn negative leave,
// violated margins enter, and a block is in the support where W - sigma G is outside its ball. Weights
// along their blocks and dual variables are held back by proximal terms, which fall as fast as the
// violations of what enters do. The result counts only if its primal and dual values prove it; the
// iterate of the interior point does not change, except that blocks found outside the ball join its
// working set.

// True if a point within the tolerance was found; it is then the incumbent. relative_gap: of the
// interior point; the smaller it is, the less is held back. proximal: on the free coefficients.
bool find_face(const ScaledProblem& problem, WorkingSet& set, const Iterate& iterate,
               const ActiveGuess& guess, double proximal, double relative_gap, double tol,
               Incumbent& incumbent, const std::function<void()>& poll);

// A point to start from, all of it or nothing.
struct InteriorPointStart {
  const double* dual = nullptr;       // n x K in units of lambda, balanced
  const double* weights = nullptr;    // d x outputs
  const double* intercept = nullptr;  // outputs
};

struct InteriorPointOptions {
  double tol = 1e-6;
  int max_iter = 100;
  bool across_features = true;  // may start from dual variables with X'Y~ near zero
  bool inside = true;           // starts with what the dual ball, or a squared penalty, allows
  // Dual residuals that may be left where a linear term starts outside the dual ball. They fall by a
  // constant factor a step, so that waiting until they are nothing takes four steps more.
  double residual = 0.0;
};

// Whom the solver tells how far it is; both may throw.
struct InteriorPointMonitor {
  std::function<void()> poll;  // called often
  // After every iteration: its number, the objective, the gap and the nonzero weights.
  std::function<void(int, double, double, int64_t)> record;
  std::function<bool()> stopping;  // whether to end with what there is
};

struct InteriorPointResult {
  std::vector<int32_t> used;      // features with weights, increasing
  std::vector<double> weights;    // used x outputs, feature-major
  std::vector<double> intercept;  // outputs
  std::vector<double> dual;       // n x K sample-major, in units of lambda
  double bound = 0.0;             // lower bound of the objective, in its units
  int iterations = 0;
  bool converged = false, stalled = false;
};

class InteriorPoint {
 public:
  // The problem and the start are kept by the caller.
  InteriorPoint(const HingeProblem& problem, const InteriorPointStart& start,
                const InteriorPointOptions& options, InteriorPointMonitor monitor);

  InteriorPointResult solve();

  // The best point so far: used, weights and intercept; false where there is none yet.
  bool best_point(InteriorPointResult& out) const {
    if (!(incumbent_.best().primal < std::numeric_limits<double>::infinity())) return false;
    export_point(incumbent_.best(), out);
    return true;
  }

 private:
  // A direction of the iterate; that of the weights is the working set's.
  struct Direction {
    NewtonVector v;
    std::vector<double> U;
  };
  // What tells whether the solve gets anywhere.
  struct Progress {
    double gap = std::numeric_limits<double>::infinity();
    double residual = std::numeric_limits<double>::infinity();  // of the primal
    int idle = 0, settled = 0, short_steps = 0;
  };

  const InteriorPointOptions options_;
  const InteriorPointStart start_;
  const InteriorPointMonitor monitor_;
  ScaledProblem p_;
  WorkingSet set_;
  NewtonSystem system_;
  Iterate x_;
  Direction dir_;
  Incumbent incumbent_;
  ActiveGuess guess_;
  Progress progress_;
  std::vector<double> first_Y_;
  bool polishing_ = false, blocked_ = false;
  bool factored_ = false;  // the system, at the last iterate
  double next_face_gap_ = std::numeric_limits<double>::infinity();
  double solve_residual_ = 0.0, alike_ = interior_point_settings::kAlikeFactor;

  NewtonVector rhs_, refit_rhs_, refit_;
  std::vector<double> rho_;  // residual of the primal
  // Per pair: target of complementarity, terms of the right-hand side besides it.
  std::vector<double> target_, terms_;
  std::vector<double> response_, trial_, trial_scores_;

  bool prices_change() const { return !p_.quadratic && !polishing_; }
  double relative_gap(const Candidate& point) const {
    return (point.primal - incumbent_.dual_value) / p_.magnitude(point.primal);
  }
  bool gap_below(const Candidate& point, double relative) const {
    return point.primal - incumbent_.dual_value < relative * p_.magnitude(point.primal);
  }

  // start.cpp
  void start();
  void start_slacks(double above);
  void warm_free_coefficients();

  // interior_point.cpp
  void record(int it);
  bool converged() const;
  bool settled();
  bool no_progress();
  void residuals();
  double infeasibility();
  double conjugate();
  void evaluate();
  void consider_sparse();
  void refit();
  double explicit_drift();
  void consider(Candidate& best, const std::vector<double>& values, const std::vector<double>& b,
                const std::vector<double>& S, double square);
  bool on_face();
  int polish(int it, InteriorPointResult& result);
  void restart_on_active();
  void project_dual();
  void export_dual(InteriorPointResult& out) const;
  void export_point(const Candidate& point, InteriorPointResult& out) const;
  void list_used(const Candidate& point, std::vector<int32_t>& used) const;

  // step.cpp
  bool iterate(int it);
  double average_complementarity() const;
  void damp_free_coefficients();
  void assemble();
  void restore_explicit(int explicit_before);
  bool predict();
  double find_regularisation();
  bool more_explicit(double least);
  bool expensive_explicit();
  void plain_direction(double tau, double accuracy);
  void direction(double tau, double accuracy);
  void correct(double tau);
  std::pair<double, double> step_lengths() const;
  void advance(double primal, double dual);
  void remove_idle();
};

}  // namespace sparsvm
