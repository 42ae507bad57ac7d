#include "solvers/papers/fbpd_kernels/fused_listed.hpp"

namespace sparsvm::fused {

void add_unit(const Listed& to, const double* dual, const double* rows, std::int64_t outputs) {
  for (std::int64_t k = 0; k < outputs; ++k) {
    double* sum = to.sums + k * to.length;
    for (std::int64_t l = 0; l < 8; ++l) {
      const double y = dual[k * Listed::lanes + l];
      if (y == 0.0) continue;
      for (std::int64_t j = 0; j < to.length; ++j) sum[j] += y * rows[l * to.length + j];
    }
  }
}

bool lists() {
#if defined(SPARSVM_FOUR)
  return has_four();
#else
  return false;
#endif
}

void sum_listed([[maybe_unused]] const Listed& to, [[maybe_unused]] const double* dual,
                [[maybe_unused]] std::int64_t outputs, [[maybe_unused]] std::int64_t units,
                [[maybe_unused]] double* along) {
#if defined(SPARSVM_EIGHT)
  if (has_eight()) return sum_in_eight(to, dual, outputs, units, along);
#endif
#if defined(SPARSVM_FOUR)
  sum_in_four(to, dual, outputs, units, along);
#endif
}

}  // namespace sparsvm::fused
