// Loops over flat arrays between the products of a first-order method.
#pragma once

#include <cstdint>

namespace sparsvm::flat {

/// to += from.
void add(const double* from, double* to, std::int64_t count);

/// out = a − step·b; out may be a.
void step(const double* a, const double* b, double step, double* out, std::int64_t count);

/// values <- sign(v)·max(|v| − shrink, 0)/below.
void soften(double* values, double shrink, double below, std::int64_t count);

/// ahead <- 2·ahead − now and now <- what ahead was.
void extrapolate(double* ahead, double* now, std::int64_t count);

/// The same, adding ‖ahead − now‖² to `moved` and ‖ahead‖² to `length`.
void extrapolate(double* ahead, double* now, std::int64_t count, double& moved, double& length);

}  // namespace sparsvm::flat
