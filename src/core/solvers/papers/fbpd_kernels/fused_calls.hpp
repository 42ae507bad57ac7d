// The kernels of fused rows, compiled for several instruction sets; the one that suits is chosen here.
#pragma once

#include <cstdint>

#include "solvers/papers/fbpd_kernels/fused_rest.hpp"

namespace sparsvm::fused {

/// Whether registers of eight doubles are used.
bool wide_registers();

/// The pass at the block `at`.
SPARSVM_INLINE Pass at_block(const Pass& all, std::int64_t at) {
  Pass a = all;
  const std::int64_t row = at * lanes;
  a.X += row * all.features;
  a.dual += row * all.outputs;
  move_margins(a, a.lift ? row * all.outputs : row);
  a.mass += row, a.threshold += row, a.share += row;
  return a;
}

/// The pass at eight samples; X is that of the first of them.
Pass at_unit(const Pass& all, std::int64_t unit, const double* X);

/// block() for all of the samples.
void some_blocks(const Pass& all, std::int64_t samples, bool project);

/// step_unit().
bool one_unit(const Pass& a, const Unit& unit, bool asleep, double* slack);

/// look_at_unit().
void look_at(const Pass& a, const Unit& unit, double* slack);

/// add_up_lanes().
void add_up(const double* lane, const double* base, std::int64_t count, double* out);

struct Shape {
  std::int64_t rows, columns;
};

/// out (rows x columns) = the transpose of `by_column`, whose rows are `stride` apart, less `base`.
void turn(const double* by_column, std::int64_t stride, const double* base, Shape shape,
          double* out);

/// to = factor·from without the rows of zeros; where[e] is 24 times the number of row e that is left.
/// Returns how many are.
std::int64_t load_rows(const double* from, Shape shape, double factor, double* to,
                       std::int64_t* where);

}  // namespace sparsvm::fused
