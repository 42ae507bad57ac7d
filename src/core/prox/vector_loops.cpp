#include "prox/vector_loops.hpp"

#include "prox/prox.hpp"
#include "support/cpu_dispatch.hpp"

namespace sparsvm::flat {

SPARSVM_CLONED void soften(double* values, double shrink, double below, std::int64_t count) {
  if (below == 1.0) {
    for (std::int64_t e = 0; e < count; ++e) values[e] = soft(values[e], shrink);
  } else {
    for (std::int64_t e = 0; e < count; ++e) values[e] = soft(values[e], shrink) / below;
  }
}

}  // namespace sparsvm::flat
