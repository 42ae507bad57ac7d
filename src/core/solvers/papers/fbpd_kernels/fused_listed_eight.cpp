#include "support/cpu_dispatch.hpp"

#if defined(SPARSVM_EIGHT)

#define SPARSVM_TARGET SPARSVM_EIGHT
#include "solvers/papers/fbpd_kernels/rows_of_eight.hpp"
#include "solvers/papers/fbpd_kernels/sum_listed.hpp"

namespace sparsvm::registers {

namespace {

SPARSVM_EIGHT inline unsigned not_zero(const double* eight) {
  return _mm512_cmp_pd_mask(_mm512_loadu_pd(eight), _mm512_setzero_pd(), _CMP_NEQ_UQ);
}

/// places = 32·block + lane of the entries of a class that are not zero; returns their number.
SPARSVM_EIGHT std::int64_t list_class(const Listed& to, const double* dual, std::int64_t outputs,
                                      std::int64_t units) {
  std::int64_t count = 0, unit = 0;
  __m512i here = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m256i there = _mm256_setr_epi32(16, 17, 18, 19, 20, 21, 22, 23);
  for (; unit < units; unit += 3, dual += outputs * Listed::lanes) {
    const unsigned both = not_zero(dual) | (unit + 1 < units ? not_zero(dual + 8) << 8 : 0);
    _mm512_storeu_si512(to.places + count,
                        _mm512_maskz_compress_epi32(static_cast<__mmask16>(both), here));
    count += __builtin_popcount(both);
    const unsigned last = unit + 2 < units ? not_zero(dual + 16) : 0;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.places + count),
                        _mm256_maskz_compress_epi32(static_cast<__mmask8>(last), there));
    count += __builtin_popcount(last);
    here = _mm512_add_epi32(here, _mm512_set1_epi32(32));
    there = _mm256_add_epi32(there, _mm256_set1_epi32(32));
  }
  return count;
}

}  // namespace

}  // namespace sparsvm::registers

namespace sparsvm::fused {

SPARSVM_EIGHT void sum_in_eight(const Listed& to, const double* dual, std::int64_t outputs,
                                std::int64_t units, double* along) {
  registers::sum_listed<registers::Eight, registers::list_class>(to, dual, outputs, units, along);
}

}  // namespace sparsvm::fused

#endif
