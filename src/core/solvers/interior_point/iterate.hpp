// The points of the interior point: the iterate, and the best ones met.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "solvers/interior_point/working_set.hpp"

namespace sparsvm {

/// The iterate, but for the weights, which are those of the working set.
struct Iterate {
  std::vector<double> Y, U;   ///< n*K: dual variables and slacks xi - margin - S
  std::vector<double> xi, b;  ///< n; free coefficients
  std::vector<double> S;      ///< n*K: scores
  double mu = 0.0;            ///< average complementarity
};

/// What the last affine direction takes to a value other than zero: pairs (sample, class), blocks.
struct ActiveGuess {
  std::vector<char> pairs, blocks;
};

/// A primal point worth keeping.
struct Candidate {
  double primal = std::numeric_limits<double>::infinity();
  std::vector<int64_t> at;           ///< of d x outputs, where the values belong
  std::vector<double> values, b, Y;  ///< Y defines the weights of a quadratic penalty
  double scale = 1.0;                ///< of all weights and free coefficients

  /// Takes this point if it is better; Y of a quadratic penalty only, or null.
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

/// The best points met: primal ones as they are and with inactive coordinates at exact zero, and the
/// dual one.
struct Incumbent {
  Candidate dense, sparse;
  double dual_value = -std::numeric_limits<double>::infinity();
  std::vector<double> Y;

  /// A sparse point within the tolerance is the answer even where a dense one is a little better.
  const Candidate& best() const { return sparse.primal <= dense.primal ? sparse : dense; }
};

}  // namespace sparsvm
