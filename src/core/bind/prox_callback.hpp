// A user's own penalty, called from native loops.
#pragma once

#include <nanobind/nanobind.h>

#include "bind/arrays.hpp"
#include "solvers/papers/prox_term.hpp"

namespace sparsvm {

/// The penalty of `own`, or the built-in one where `own` is None.
///
/// `own` has prox(W, step) and value(W) with W of shape (d, outputs). Each call takes the GIL for
/// itself, so the loop around it may run without; an exception ends the loop and reaches the caller.
/// The term itself must be made, copied and destroyed with the GIL held.
ProxTerm prox_term(const Penalty& built_in, const nb::object& own);

}  // namespace sparsvm
