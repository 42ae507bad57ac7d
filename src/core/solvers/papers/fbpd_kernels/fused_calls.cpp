#include "solvers/papers/fbpd_kernels/fused_calls.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "solvers/papers/fbpd_kernels/resting_units.hpp"

namespace sparsvm {

namespace fused {

namespace {

template <typename P, bool project>
SPARSVM_INLINE void blocks(const Pass& all, std::int64_t samples) {
  const std::int64_t whole = samples / lanes;
  for (std::int64_t at = 0; at < whole; ++at) block<P, 3, project>(at_block(all, at));
  const std::int64_t left = samples - whole * lanes;
  if (left > 2 * width) {
    block<P, 3, project>(at_block(all, whole));
  } else if (left > width) {
    block<P, 2, project>(at_block(all, whole));
  } else if (left > 0) {
    block<P, 1, project>(at_block(all, whole));
  }
}

SPARSVM_PACKED void narrow_blocks(const Pass& all, std::int64_t samples, bool project) {
  project ? blocks<Pack, true>(all, samples) : blocks<Pack, false>(all, samples);
}

SPARSVM_PACKED bool narrow_unit(const Pass& a, const Unit& unit, bool asleep, double* slack) {
  return step_unit<Pack>(a, unit, asleep, slack);
}

SPARSVM_PACKED void narrow_slack(const Pass& a, const Unit& unit, double* slack) {
  look_at_unit<Pack>(a, unit, slack);
}

#if defined(SPARSVM_EIGHT)

SPARSVM_EIGHT void wide_blocks(const Pass& all, std::int64_t samples, bool project) {
  project ? blocks<WidePack, true>(all, samples) : blocks<WidePack, false>(all, samples);
}

SPARSVM_EIGHT bool wide_unit(const Pass& a, const Unit& unit, bool asleep, double* slack) {
  return step_unit<WidePack>(a, unit, asleep, slack);
}

SPARSVM_EIGHT void wide_slack(const Pass& a, const Unit& unit, double* slack) {
  look_at_unit<WidePack>(a, unit, slack);
}

#endif

/// max_k of Σ_j (now_jk − then_jk)² + (b_k − c_k)².
SPARSVM_CLONED double farthest_square(const double* now, const double* b, const double* then,
                                      Shape shape) {
  const std::int64_t K = shape.columns;
  const double* c = then + shape.rows * K;
  Pack most = {};
  double left = 0.0;
  std::int64_t k = 0;
  for (; k + 4 <= K; k += 4) {
    Pack apart = SPARSVM_LOAD(b + k) - SPARSVM_LOAD(c + k), sum = apart * apart;
    for (std::int64_t j = 0; j < shape.rows; ++j) {
      apart = SPARSVM_LOAD(now + j * K + k) - SPARSVM_LOAD(then + j * K + k);
      sum += apart * apart;
    }
    keep_larger(most, sum);
  }
  for (; k < K; ++k) {
    double sum = (b[k] - c[k]) * (b[k] - c[k]);
    for (std::int64_t j = 0; j < shape.rows; ++j) {
      const double apart = now[j * K + k] - then[j * K + k];
      sum += apart * apart;
    }
    left = std::max(left, sum);
  }
  return std::max(left, largest_of(most));
}

}  // namespace

bool wide_registers() {
#if defined(SPARSVM_EIGHT)
  static const bool wide = has_eight();
  return wide;
#else
  return false;
#endif
}

void some_blocks(const Pass& all, std::int64_t samples, bool project) {
#if defined(SPARSVM_EIGHT)
  if (wide_registers()) return wide_blocks(all, samples, project);
#endif
  narrow_blocks(all, samples, project);
}

Pass at_unit(const Pass& all, std::int64_t unit, const double* X) {
  constexpr std::int64_t units = lanes / width;
  Pass a = at_block(all, unit / units);
  const std::int64_t lane = unit % units * width;
  a.X = X;
  move_margins(a, lane);
  a.dual += lane, a.mass += lane, a.threshold += lane, a.share += lane;
  return a;
}

bool one_unit(const Pass& a, const Unit& unit, bool asleep, double* slack) {
#if defined(SPARSVM_EIGHT)
  if (wide_registers()) return wide_unit(a, unit, asleep, slack);
#endif
  return narrow_unit(a, unit, asleep, slack);
}

void look_at(const Pass& a, const Unit& unit, double* slack) {
#if defined(SPARSVM_EIGHT)
  if (wide_registers()) return wide_slack(a, unit, slack);
#endif
  narrow_slack(a, unit, slack);
}

SPARSVM_CLONED void add_up(const double* lane, const double* base, std::int64_t count,
                           double* out) {
  add_up_lanes(lane, base, count, out);
}

SPARSVM_CLONED void turn(const double* by_column, std::int64_t stride, const double* base,
                         Shape shape, double* out) {
  const std::int64_t K = shape.columns;
  std::int64_t j = 0;
  for (; j + 4 <= shape.rows; j += 4) {
    std::int64_t k = 0;
    for (; k + 4 <= K; k += 4) {
      Pack v[4];
      for (int c = 0; c < 4; ++c) v[c] = SPARSVM_LOAD(by_column + (k + c) * stride + j);
      transpose(v);
      for (int r = 0; r < 4; ++r) {
        const std::int64_t at = (j + r) * K + k;
        SPARSVM_STORE(out + at, v[r] - SPARSVM_LOAD(base + at));
      }
    }
    for (; k < K; ++k) {
      for (int r = 0; r < 4; ++r) {
        out[(j + r) * K + k] = by_column[k * stride + j + r] - base[(j + r) * K + k];
      }
    }
  }
  for (; j < shape.rows; ++j) {
    for (std::int64_t k = 0; k < K; ++k) {
      out[j * K + k] = by_column[k * stride + j] - base[j * K + k];
    }
  }
}

SPARSVM_CLONED std::int64_t load_rows(const double* __restrict from, Shape shape, double factor,
                                      double* __restrict to, std::int64_t* __restrict where) {
  const std::int64_t K = shape.columns;
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < shape.rows; ++j, from += K) {
    double* __restrict row = to + count * K;
    std::uint64_t bits = 0;  // unlike a sum of doubles its order does not matter to the compiler
    for (std::int64_t k = 0; k < K; ++k) {
      row[k] = factor * from[k];
      bits |= std::bit_cast<std::uint64_t>(from[k]);
    }
    where[count] = j * lanes;
    count += bits << 1 != 0;
  }
  return count;
}

}  // namespace fused

double farthest_class(const Affine& now, const double* reference) {
  return std::sqrt(
      fused::farthest_square(now.weights, now.intercept, reference, {now.features, now.outputs}));
}

}  // namespace sparsvm
