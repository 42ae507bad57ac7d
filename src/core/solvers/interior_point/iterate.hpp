// The points of the interior point: the iterate, and the best ones met.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "solvers/interior_point/working_set.hpp"

namespace sparsvm {

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
  double scale = 1.0;                // of all weights and free coefficients

  // Takes this point if it is better; Y of a quadratic penalty only, or null.
  void offer(const WorkingSet& set, const std::vector<double>& point,
             const std::vector<double>& free, const std::vector<double>* dual, double factor,
             double value) {
    if (!(value < primal)) return;
    primal = value;
    values = point;
    at.resize(values.size());
    for (std::size_t c = 0; c < values.size(); ++c) at[c] = set.position(static_cast<int64_t>(c));
    b = free;
    scale = factor;
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

}  // namespace sparsvm
