#include "support/cpu_dispatch.hpp"

#if defined(SPARSVM_FOUR)

#define SPARSVM_TARGET SPARSVM_FOUR
#include "solvers/papers/fbpd_kernels/rows_of_four.hpp"
#include "solvers/papers/fbpd_kernels/sum_listed.hpp"

namespace sparsvm::registers {

namespace {

constexpr auto make_order() {
  std::array<std::array<std::int8_t, 16>, 16> order{};
  for (std::size_t lanes = 0; lanes < 16; ++lanes) {
    std::size_t to = 0;
    for (std::size_t lane = 0; lane < 4; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      for (std::size_t byte = 0; byte < 4; ++byte) {
        order[lanes][to++] = static_cast<std::int8_t>(4 * lane + byte);
      }
    }
  }
  return order;
}

constexpr auto order = make_order();  // of the bytes that put some of four lanes first

SPARSVM_FOUR std::int64_t list_class(const Listed& to, const double* dual, std::int64_t outputs,
                                     std::int64_t units) {
  std::int64_t count = 0;
  for (std::int64_t first = 0; first < 8 * units; first += Listed::lanes) {
    const std::int64_t here = std::min<std::int64_t>(8 * units - first, Listed::lanes);
    const auto block = static_cast<int>(first / Listed::lanes);
    __m128i place = _mm_add_epi32(_mm_set1_epi32(32 * block), _mm_setr_epi32(0, 1, 2, 3));
    for (std::int64_t lane = 0; lane < here; lane += 4) {
      const auto lanes = static_cast<unsigned>(
          _mm256_movemask_pd(_mm256_cmp_pd(load(dual + lane), Four{}, _CMP_NEQ_UQ)));
      const auto* by = reinterpret_cast<const __m128i*>(order[lanes].data());
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to.places + count),
                       _mm_shuffle_epi8(place, _mm_loadu_si128(by)));
      count += __builtin_popcount(lanes);
      place = _mm_add_epi32(place, _mm_set1_epi32(4));
    }
    dual += outputs * Listed::lanes;
  }
  return count;
}

}  // namespace

}  // namespace sparsvm::registers

namespace sparsvm::fused {

SPARSVM_FOUR void sum_in_four(const Listed& to, const double* dual, std::int64_t outputs,
                              std::int64_t units, double* along) {
  registers::sum_listed<registers::Four, registers::list_class>(to, dual, outputs, units, along);
}

}  // namespace sparsvm::fused

#endif
