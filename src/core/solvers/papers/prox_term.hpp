// A penalty as the first-order methods see it: a built-in one or a user's own.
#pragma once

#include <functional>
#include <memory>

#include "penalty/penalty.hpp"
#include "penalty/penalty_prox.hpp"

namespace sparsvm {

/// Weights W are d x outputs, row-major.
struct ProxTerm {
  std::function<void(double* W, double step)> prox;  ///< W <- prox of step·penalty at W
  std::function<double(const double* W)> value;      ///< penalty(W)
};

inline ProxTerm built_in_term(const Penalty& p) {
  const auto prox = std::make_shared<PenaltyProx>(p);
  return {[prox](double* W, double step) { prox->apply(W, step); },
          [prox](const double* W) { return prox->value(W, 0, prox->parts()); }};
}

}  // namespace sparsvm
