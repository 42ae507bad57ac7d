#include "flat_loops.hpp"

#include "clones.hpp"
#include "prox.hpp"

namespace sparsvm::flat {

SPARSVM_CLONED void add(const double* __restrict from, double* __restrict to, std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) to[e] += from[e];
}

SPARSVM_CLONED void step(const double* a, const double* b, double step, double* out,
                         std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) out[e] = a[e] - step * b[e];
}

SPARSVM_CLONED void soften(double* values, double shrink, double below, std::int64_t count) {
  if (below == 1.0) {
    for (std::int64_t e = 0; e < count; ++e) values[e] = soft(values[e], shrink);
  } else {
    for (std::int64_t e = 0; e < count; ++e) values[e] = soft(values[e], shrink) / below;
  }
}

SPARSVM_CLONED void extrapolate(double* __restrict ahead, double* __restrict now,
                                std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) {
    const double next = ahead[e], before = now[e];
    ahead[e] = 2.0 * next - before;
    now[e] = next;
  }
}

void extrapolate(double* ahead, double* now, std::int64_t count, double& moved, double& length) {
  double squares = 0.0, size = 0.0;
  for (std::int64_t e = 0; e < count; ++e) {
    squares += (ahead[e] - now[e]) * (ahead[e] - now[e]);
    size += ahead[e] * ahead[e];
  }
  moved += squares;
  length += size;
  extrapolate(ahead, now, count);
}

}  // namespace sparsvm::flat
