// Loops over flat arrays between the products of a first-order method.
#pragma once

#include <cstdint>

namespace sparsvm::flat {

/// to += from.
void add(const double* from, double* to, std::int64_t count);

/// minus <- −now and now <- now − step·by. (A plain copy would be made a call of memcpy and a second
/// pass by the compiler.)
void descend(double* now, const double* by, double step, double* minus, std::int64_t count);

/// to <- to − step·from.
void subtract(const double* from, double step, double* to, std::int64_t count);

/// values <- sign(v)·max(|v| − shrink, 0)/below.
void soften(double* values, double shrink, double below, std::int64_t count);

/// minus <- 2·now + minus.
void extrapolate(const double* now, double* minus, std::int64_t count);

/// Adds ‖now + minus‖² to `moved` and ‖now‖² to `length`.
void compare(const double* now, const double* minus, std::int64_t count, double& moved,
             double& length);

}  // namespace sparsvm::flat
