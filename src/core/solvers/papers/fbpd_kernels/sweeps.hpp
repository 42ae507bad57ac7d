// dual_rows() and swept_rows() in registers of four or eight doubles, see sweep.hpp.
#pragma once

#include <cstdint>

#include "solvers/papers/fbpd_kernels/dual_rows.hpp"
#include "support/cpu_dispatch.hpp"

namespace sparsvm {

inline constexpr std::int64_t least_swept_outputs = 3, most_swept_outputs = 128;

// For least_swept_outputs to most_swept_outputs classes.

#if defined(SPARSVM_FOUR)
void sweep_in_four(const DualRows& rows, const SweptRows& swept);
void project_in_four(const DualRows& rows, const double* scores);
#endif

#if defined(SPARSVM_EIGHT)
void sweep_in_eight(const DualRows& rows, const SweptRows& swept);
#endif

}  // namespace sparsvm
