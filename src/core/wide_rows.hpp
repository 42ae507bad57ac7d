// swept_rows() in registers of eight doubles: a row of up to 128 classes stays in them.
//
// The threshold of a projection comes from the entries above the last one: if those above it are the
// same, it is right, which masks tell exactly; if not, they are the next set, until one is its own.
#pragma once

#include <cstdint>

#include "clones.hpp"
#include "dual_rows.hpp"

namespace sparsvm {

inline constexpr std::int64_t least_wide_outputs = 3, most_wide_outputs = 128;

#if defined(SPARSVM_WIDE)

/// For least_wide_outputs to most_wide_outputs classes, if has_wide().
void wide_rows(const DualRows& rows, const SweptRows& swept);

#endif

}  // namespace sparsvm
