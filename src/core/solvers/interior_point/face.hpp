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
#pragma once

#include <functional>

#include "solvers/interior_point/iterate.hpp"

namespace sparsvm {

/// True if a point within the tolerance was found; it is then the incumbent. relative_gap: of the
/// interior point; the smaller it is, the less is held back. proximal: on the free coefficients.
bool find_face(const ScaledProblem& problem, WorkingSet& set, const Iterate& iterate,
               const ActiveGuess& guess, double proximal, double relative_gap, double tol,
               Incumbent& incumbent, const std::function<void()>& poll);

}  // namespace sparsvm
