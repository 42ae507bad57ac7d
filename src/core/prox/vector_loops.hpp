// Loops over flat arrays, compiled for the instruction sets of cpu_dispatch.hpp.
#pragma once

#include <cstdint>

namespace sparsvm::flat {

/// values <- sign(v)·max(|v| − shrink, 0)/below.
void soften(double* values, double shrink, double below, std::int64_t count);

}  // namespace sparsvm::flat
