#include "wide_rows.hpp"

#if defined(SPARSVM_WIDE)

#include <immintrin.h>

#include <array>

namespace sparsvm {

namespace {

// Everything stays in registers only if nothing of it is passed to a function that is called.
#define SPARSVM_WIDE_INLINE inline SPARSVM_WIDE __attribute__((always_inline))

/// Which lanes of a row's packs.
template <int P>
using Lanes = __mmask8[P];

template <int P>
SPARSVM_WIDE_INLINE int count_of(const Lanes<P>& lanes) {
  int count = 0;
  for (int p = 0; p < P; ++p) count += __builtin_popcount(lanes[p]);
  return count;
}

constexpr auto make_shares() {
  std::array<double, most_wide_outputs + 1> shares{};
  for (std::size_t count = 1; count < shares.size(); ++count) {
    shares[count] = 1.0 / static_cast<double>(count);
  }
  return shares;
}

constexpr auto shares = make_shares();  // one over a number of entries

// Halves by shuffles, since the compiler's own reductions warn about lanes they do not use.
SPARSVM_WIDE_INLINE __m256d low_half(__m512d v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3);
}

SPARSVM_WIDE_INLINE __m256d high_half(__m512d v) {
  return __builtin_shufflevector(v, v, 4, 5, 6, 7);
}

SPARSVM_WIDE_INLINE double sum_of_eight(__m512d v) {
  const __m256d four = low_half(v) + high_half(v);
  const __m256d two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1);
  return two[0] + two[1];
}

SPARSVM_WIDE_INLINE double largest_of_eight(__m512d v) {
  const __m256d four = _mm256_max_pd(low_half(v), high_half(v));
  const __m256d two = _mm256_max_pd(four, __builtin_shufflevector(four, four, 2, 3, 0, 1));
  return two[0] > two[1] ? two[0] : two[1];
}

/// Rows of K entries in P packs. Those of the weights and of the gradient are filled up to whole packs,
/// since a store of a part keeps the loads that follow it waiting.
template <int P>
struct WideRow {
  static constexpr std::int64_t stride = 8 * P;
  __mmask8 tail;
  __m512i end;  // where the last lanes of a row are in its last two packs

  SPARSVM_WIDE explicit WideRow(std::int64_t K)
      : tail(static_cast<__mmask8>(0xFF >> (stride - K))),
        end(_mm512_add_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
                             _mm512_set1_epi64(P > 1 ? K - stride + 8 : K - 4))) {}

  SPARSVM_WIDE_INLINE __mmask8 lanes(int p) const { return p + 1 < P ? __mmask8{0xFF} : tail; }

  SPARSVM_WIDE_INLINE __m512d load(const double* row, int p) const {
    return p + 1 < P ? _mm512_loadu_pd(row + 8 * p) : _mm512_maskz_loadu_pd(tail, row + 8 * p);
  }

  /// The last pack ends where the row ends, and repeats what the one before it has.
  SPARSVM_WIDE_INLINE void store(double* row, std::int64_t K, const __m512d (&v)[P]) const {
    if constexpr (P == 1) {
      _mm256_storeu_pd(row, low_half(v[0]));
      _mm256_storeu_pd(row + K - 4, low_half(_mm512_maskz_permutexvar_pd(0xFF, end, v[0])));
    } else {
      for (int p = 0; p + 1 < P; ++p) _mm512_storeu_pd(row + 8 * p, v[p]);
      _mm512_storeu_pd(row + K - 8, _mm512_permutex2var_pd(v[P - 2], end, v[P - 1]));
    }
  }
};

/// v += σ times the scores of a sample.
template <int P, typename T>
SPARSVM_WIDE_INLINE void add_scores(const SweptRows& s, const T* values, std::int64_t from,
                                    std::int64_t end, __m512d (&v)[P]) {
  const double* weights = s.room;
  const auto add = [&](std::int64_t e, std::int64_t at, __m512d(&sum)[P]) SPARSVM_WIDE {
    const double* w = weights + at * WideRow<P>::stride;
    const __m512d x = _mm512_set1_pd(static_cast<double>(values[e]));
    for (int p = 0; p < P; ++p) sum[p] = _mm512_fmadd_pd(x, _mm512_load_pd(w + 8 * p), sum[p]);
  };
  if (s.place) {
    for (std::int64_t e = from; e < end; ++e) {
      const std::int64_t at = s.place[s.X.indices[e]];
      if (at >= 0) add(e, at, v);
    }
    return;
  }
  constexpr int turns = P < 4 ? 4 / P : 1;  // a sum waits four cycles for its last addition
  if constexpr (turns > 1) {
    if (end - from >= 2 * turns) {
      __m512d sum[turns][P];
      for (auto& turn : sum) {
        for (__m512d& part : turn) part = _mm512_setzero_pd();
      }
      for (; from + turns <= end; from += turns) {
        for (int t = 0; t < turns; ++t) add(from + t, s.X.indices[from + t], sum[t]);
      }
      for (int t = 0; t < turns; ++t) {
        for (int p = 0; p < P; ++p) v[p] = _mm512_add_pd(v[p], sum[t][p]);
      }
    }
  }
  for (; from < end; ++from) add(from, s.X.indices[from], v);
}

/// The lane of the true class.
template <int P>
SPARSVM_WIDE_INLINE void find_own(std::int64_t y, Lanes<P>& own) {
  const __m512i its = _mm512_set1_epi64(y), first = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  for (int p = 0; p < P; ++p) {
    own[p] = _mm512_cmpeq_epi64_mask(its, _mm512_add_epi64(first, _mm512_set1_epi64(8 * p)));
  }
}

/// The step of the true class less the largest of the others.
template <int P>
SPARSVM_WIDE_INLINE double slack_of(const WideRow<P>& tile, const Lanes<P>& own,
                                    const __m512d (&v)[P]) {
  const __m512d lowest = _mm512_set1_pd(-1e300);
  __m512d others = lowest, its = lowest;
  for (int p = 0; p < P; ++p) {
    const auto rest = static_cast<__mmask8>(tile.lanes(p) & ~own[p]);
    others = _mm512_mask_max_pd(others, rest, others, v[p]);
    its = _mm512_mask_max_pd(its, own[p], its, v[p]);
  }
  return largest_of_eight(its) - largest_of_eight(others);
}

/// above = the lanes of v above theta; whether they are not what they were.
template <int P>
SPARSVM_WIDE_INLINE bool compare(const WideRow<P>& tile, const __m512d (&v)[P], double theta,
                                 Lanes<P>& above) {
  const __m512d bound = _mm512_set1_pd(theta);
  unsigned changed = 0;
  for (int p = 0; p < P; ++p) {
    const __mmask8 now = _mm512_mask_cmp_pd_mask(tile.lanes(p), v[p], bound, _CMP_GT_OQ);
    changed |= static_cast<unsigned>(now ^ above[p]);
    above[p] = now;
  }
  return changed != 0;
}

/// theta with Σ_k (v_k − theta)₊ = mass and the lanes above it, from those above zero; returns their
/// number, which is 0 if that leads nowhere.
template <int P>
SPARSVM_WIDE_INLINE int find_root(const WideRow<P>& tile, const __m512d (&v)[P], double mass,
                                  Lanes<P>& above, double& theta) {
  theta = 0.0;
  for (int p = 0; p < P; ++p) above[p] = 0;
  compare<P>(tile, v, theta, above);
  for (int round = 0; round <= 8 * P; ++round) {
    const int count = count_of<P>(above);
    __m512d sum = _mm512_setzero_pd();
    for (int p = 0; p < P; ++p) sum = _mm512_mask_add_pd(sum, above[p], sum, v[p]);
    theta = (sum_of_eight(sum) - mass) * shares[static_cast<std::size_t>(count)];
    if (!compare<P>(tile, v, theta, above)) return count;
  }
  return 0;
}

/// row += x·v.
SPARSVM_WIDE_INLINE void add_multiple(double* row, __m512d x, __m512d v) {
  _mm512_store_pd(row, _mm512_fmadd_pd(x, v, _mm512_load_pd(row)));
}

/// G[index_e] += x_e·tilde and sums += tilde; of long rows only the packs that are not zero.
template <int P, typename T>
SPARSVM_WIDE_INLINE void add_gradient(double* G, __m512d (&sums)[P], const SweptRows& s,
                                      const T* values, std::int64_t from, std::int64_t end,
                                      const Lanes<P>& above, const Lanes<P>& own,
                                      const __m512d (&y)[P]) {
  constexpr std::int64_t stride = WideRow<P>::stride;
  for (int p = 0; p < P; ++p) sums[p] = _mm512_add_pd(sums[p], y[p]);
  if constexpr (P > 4) {
    for (int p = 0; p < P; ++p) {
      if ((above[p] | own[p]) == 0) continue;
      for (std::int64_t e = from; e < end; ++e) {
        const __m512d x = _mm512_set1_pd(static_cast<double>(values[e]));
        add_multiple(G + s.X.indices[e] * stride + 8 * p, x, y[p]);
      }
    }
  } else {
    for (std::int64_t e = from; e < end; ++e) {
      const __m512d x = _mm512_set1_pd(static_cast<double>(values[e]));
      double* g = G + s.X.indices[e] * stride;
      for (int p = 0; p < P; ++p) add_multiple(g + 8 * p, x, y[p]);
    }
  }
}

/// The weights times σ into rows of whole packs, and a gradient of zero behind them.
template <int P>
SPARSVM_WIDE double* lay_out(const WideRow<P>& tile, const DualRows& a, const SweptRows& s) {
  const std::int64_t K = a.outputs;
  const __m512d sigma = _mm512_set1_pd(a.sigma);
  for (std::int64_t j = 0; j < s.rows; ++j) {
    for (int p = 0; p < P; ++p) {
      _mm512_store_pd(s.room + j * tile.stride + 8 * p, sigma * tile.load(s.weights + j * K, p));
    }
  }
  double* G = s.room + s.features * tile.stride;
  for (std::int64_t e = 0; e < s.features * tile.stride; ++e) G[e] = 0.0;
  return G;
}

template <int P, typename T>
SPARSVM_WIDE void each_row(const DualRows& a, const SweptRows& s, const T* values) {
  const std::int64_t K = a.outputs;
  const WideRow<P> tile(K);
  double *shift = a.work + K + 4, *G = lay_out<P>(tile, a, s);
  for (std::int64_t k = 0; k < K; ++k) shift[k] = a.sigma * a.intercept[k];
  std::int64_t looked = 0;
  __m512d sums[P] = {};
  for (std::int64_t i = 0; i < a.n; ++i) {
    if (a.rest.distance <= a.rest.allowed[i]) continue;
    const std::int64_t y = a.y[i], r = s.X.rows(i);
    const std::int64_t from = s.X.indptr[r], end = s.X.indptr[r + 1];
    const double mass = a.mass[i], last = a.threshold[i];
    double* row = a.tilde + i * K;
    const __m512d scale = _mm512_set1_pd(a.margin_scale ? a.sigma * a.margin_scale[i] : a.sigma);
    Lanes<P> own, above;
    find_own<P>(y, own);
    __m512d v[P];
    for (int p = 0; p < P; ++p) {
      v[p] = _mm512_fmadd_pd(scale, tile.load(a.cost + y * K, p), tile.load(shift, p));
    }
    add_scores<P>(s, values, from, end, v);
    if (row[y] == 0.0) {
      const double slack = slack_of<P>(tile, own, v);
      if (slack >= 0.0) {
        a.rest.allowed[i] = slack * a.rest.tolerance[i] - a.rest.distance;
        ++looked;
        continue;
      }
      a.rest.allowed[i] = -1.0;
    }
    for (int p = 0; p < P; ++p) {
      v[p] = _mm512_add_pd(v[p], _mm512_sub_pd(tile.load(row, p), _mm512_set1_pd(last)));
      v[p] = _mm512_mask_add_pd(v[p], own[p], v[p], _mm512_set1_pd(mass));
    }
    double theta;
    int count = find_root<P>(tile, v, mass, above, theta);
    a.threshold[i] = last + theta;
    if (count == 0 || theta > 16.0 * mass || theta < -16.0 * mass) {
      // So far from the last threshold the root lacks digits: it is found from nothing.
      tile.store(a.work, K, v);
      for (int k = 0; k < 4; ++k) a.work[K + k] = -1e300;
      theta = find_move(a, a.work, last, i);
      for (int p = 0; p < P; ++p) v[p] = tile.load(a.work, p);
      compare<P>(tile, v, theta, above);
      count = count_of<P>(above);
    }
    unsigned mine = 0;
    for (int p = 0; p < P; ++p) {
      mine |= static_cast<unsigned>(above[p] & own[p]);
      v[p] = _mm512_maskz_sub_pd(above[p], v[p], _mm512_set1_pd(theta));
      v[p] = _mm512_mask_sub_pd(v[p], own[p], v[p], _mm512_set1_pd(mass));
    }
    if (count == 1 && mine != 0) {  // its class has all the mass but for rounding
      for (__m512d& part : v) part = _mm512_setzero_pd();
      tile.store(row, K, v);
      continue;
    }
    tile.store(row, K, v);
    add_gradient<P>(G, sums, s, values, from, end, above, own, v);
  }
  for (std::int64_t j = 0; j < s.features; ++j) {
    for (std::int64_t k = 0; k < K; ++k) s.gradient[j * K + k] = G[j * tile.stride + k];
  }
  tile.store(a.sums, K, sums);
  *a.rest.looked = looked;
}

template <typename T>
SPARSVM_WIDE void all_rows(const DualRows& a, const SweptRows& s, const T* values) {
  switch ((a.outputs + 7) / 8) {
    case 1: return each_row<1>(a, s, values);
    case 2: return each_row<2>(a, s, values);
    case 3: return each_row<3>(a, s, values);
    case 4: return each_row<4>(a, s, values);
    case 5: return each_row<5>(a, s, values);
    case 6: return each_row<6>(a, s, values);
    case 7: return each_row<7>(a, s, values);
    case 8: return each_row<8>(a, s, values);
    case 9: return each_row<9>(a, s, values);
    case 10: return each_row<10>(a, s, values);
    case 11: return each_row<11>(a, s, values);
    case 12: return each_row<12>(a, s, values);
    case 13: return each_row<13>(a, s, values);
    case 14: return each_row<14>(a, s, values);
    case 15: return each_row<15>(a, s, values);
    default: return each_row<16>(a, s, values);
  }
}

}  // namespace

SPARSVM_WIDE void wide_rows(const DualRows& rows, const SweptRows& swept) {
  swept.X.singles ? all_rows(rows, swept, swept.X.singles) : all_rows(rows, swept, swept.X.doubles);
}

}  // namespace sparsvm

#endif
