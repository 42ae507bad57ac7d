#include "prox/vector_loops.hpp"

#include "prox/prox.hpp"
#include "support/cpu_dispatch.hpp"

namespace sparsvm::flat {

SPARSVM_CLONED void add(const double* __restrict from, double* __restrict to, std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) to[e] += from[e];
}

SPARSVM_CLONED void descend(double* __restrict now, const double* __restrict by, double step,
                            double* __restrict minus, std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) {
    minus[e] = -now[e];
    now[e] -= step * by[e];
  }
}

SPARSVM_CLONED void subtract(const double* __restrict from, double step, double* __restrict to,
                             std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) to[e] -= step * from[e];
}

SPARSVM_CLONED void soften(double* values, double shrink, double below, std::int64_t count) {
  if (below == 1.0) {
    for (std::int64_t e = 0; e < count; ++e) values[e] = soft(values[e], shrink);
  } else {
    for (std::int64_t e = 0; e < count; ++e) values[e] = soft(values[e], shrink) / below;
  }
}

SPARSVM_CLONED void extrapolate(const double* __restrict now, double* __restrict minus,
                                std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) minus[e] += 2.0 * now[e];
}

void compare(const double* now, const double* minus, std::int64_t count, double& moved,
             double& length) {
  double squares = 0.0, size = 0.0;
  for (std::int64_t e = 0; e < count; ++e) {
    squares += (now[e] + minus[e]) * (now[e] + minus[e]);
    size += now[e] * now[e];
  }
  moved += squares;
  length += size;
}

}  // namespace sparsvm::flat
