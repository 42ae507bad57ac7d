#include "fused_listed.hpp"

#include <algorithm>

#if defined(SPARSVM_WIDE)
#include <immintrin.h>
#endif

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

#if defined(SPARSVM_WIDE)

namespace {

SPARSVM_WIDE inline unsigned not_zero(const double* eight) {
  return _mm512_cmp_pd_mask(_mm512_loadu_pd(eight), _mm512_setzero_pd(), _CMP_NEQ_UQ);
}

/// places = 32·block + lane of the entries of a class that are not zero; returns their number.
SPARSVM_WIDE inline std::int64_t list_class(const Listed& to, const double* dual,
                                            std::int64_t outputs, std::int64_t units) {
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

/// sums = Σ over the list of entry · row, of `packs` times eight columns from `rows` on.
template <int packs>
SPARSVM_WIDE void sum_rows(const Listed& to, const double* rows, const double* dual,
                           std::int64_t block, std::int64_t count, double* sums) {
  constexpr int turns = packs < 4 ? 4 / packs : 1;  // a sum waits four cycles for its last addition
  __m512d sum[turns][packs];
  for (auto& turn : sum) {
    for (__m512d& part : turn) part = _mm512_setzero_pd();
  }
  const auto add = [&](std::int64_t e, __m512d(&into)[packs]) SPARSVM_WIDE {
    const std::int64_t b = to.places[e] >> 5, l = to.places[e] & 31;
    const double* x = rows + (b * Listed::lanes + l) * to.length;
    const __m512d value = _mm512_set1_pd(dual[b * block + l]);
    for (int p = 0; p < packs; ++p) {
      into[p] = _mm512_fmadd_pd(value, _mm512_loadu_pd(x + 8 * p), into[p]);
    }
  };
  std::int64_t e = 0;
  for (; e + turns <= count; e += turns) {
    for (int t = 0; t < turns; ++t) add(e + t, sum[t]);
  }
  for (; e < count; ++e) add(e, sum[0]);
  for (int p = 0; p < packs; ++p) {
    for (int t = 1; t < turns; ++t) sum[0][p] = _mm512_add_pd(sum[0][p], sum[t][p]);
    _mm512_storeu_pd(sums + 8 * p, sum[0][p]);
  }
}

}  // namespace

SPARSVM_WIDE void sum_listed(const Listed& to, const double* dual, std::int64_t outputs,
                             std::int64_t units, double* along) {
  const std::int64_t block = outputs * Listed::lanes;
  for (std::int64_t k = 0; k < outputs; ++k, dual += Listed::lanes) {
    const std::int64_t count = list_class(to, dual, outputs, units);
    if (along) {
      for (std::int64_t e = 0; e < count; ++e) {
        const std::int64_t at = (to.places[e] >> 5) * block + (to.places[e] & 31);
        along[k * Listed::lanes + at] += dual[at];
      }
    }
    for (std::int64_t j = 0; j < to.length; j += 64) {
      const double* rows = to.rows + j;
      double* sums = to.sums + k * to.length + j;
      switch (std::min<std::int64_t>(8, (to.length - j) / 8)) {
        case 1: sum_rows<1>(to, rows, dual, block, count, sums); break;
        case 2: sum_rows<2>(to, rows, dual, block, count, sums); break;
        case 3: sum_rows<3>(to, rows, dual, block, count, sums); break;
        case 4: sum_rows<4>(to, rows, dual, block, count, sums); break;
        case 5: sum_rows<5>(to, rows, dual, block, count, sums); break;
        case 6: sum_rows<6>(to, rows, dual, block, count, sums); break;
        case 7: sum_rows<7>(to, rows, dual, block, count, sums); break;
        default: sum_rows<8>(to, rows, dual, block, count, sums); break;
      }
    }
  }
}

#endif

}  // namespace sparsvm::fused
