// The samples' side of the smooth losses: scores, slopes and curvatures, one row a sample.
//
// Rows are padded to a multiple of four outputs ("width"; one output stays one). Per sample:
//   T   scores plus margins, so that the losses of differences read max(0, T_k - T_y) and
//       exp(T_k - T_y); the bare score for the one-vs-rest loss and for one output
//   D   slopes: mass times the derivative of the loss with respect to the scores
//   C   mass times the diagonal of the Hessian of the loss (single precision)
//   Q   logistic: the probabilities (single precision)
// D is kept up to date whenever T changes, so a partial gradient is one weighted sum of rows of D,
// whatever the loss.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "design/design.hpp"
#include "loss/smooth_loss.hpp"
#include "support/simd.hpp"

namespace sparsvm {

/// What one row of a loss is made of; for one output sign and margin, else the true class.
struct RowData {
  LossKind loss;
  int width;
  const std::int32_t* y;
  const double* mass;
  const double* margin;  // one output only
};

namespace row_kernels {

/// Ask for a row of `width` numbers that will be needed a few entries later: the rows of a column
/// lie too far apart for the processor to guess, which cost a sixth of an epoch.
template <typename T>
SPARSVM_INLINE void expect(const T* rows, const std::int32_t* at, std::int64_t e,
                           std::int64_t count, int width) {
  constexpr std::int64_t ahead = 8;
  if (e + ahead >= count) return;
  const T* row = rows + static_cast<std::int64_t>(at[e + ahead]) * width;
  for (int k = 0; k < width; k += static_cast<int>(64 / sizeof(T))) SPARSVM_PREFETCH(row + k);
}

/// The row's D from its T.
template <LossKind loss, int P>
SPARSVM_INLINE void slopes(double* T, double* D, int width, int y, double mass) {
  const int packs = (P > 0 ? P : width) / 4;
  if constexpr (loss == LossKind::squared_hinge) {
    const double own = T[y], twice = 2.0 * mass;
    Pack sum = {};
    for (int k = 0; k < packs; ++k) {
      Pack h = SPARSVM_LOAD(T + 4 * k) - own;
      keep_positive(h);
      h *= twice;
      SPARSVM_STORE(D + 4 * k, h);
      sum += h;
    }
    D[y] = -sum_of(sum);
  } else if constexpr (loss == LossKind::ovr_squared_hinge) {
    const double twice = 2.0 * mass, own = 1.0 - T[y];
    for (int k = 0; k < packs; ++k) {
      Pack h = SPARSVM_LOAD(T + 4 * k) + 1.0;
      keep_positive(h);
      SPARSVM_STORE(D + 4 * k, h * twice);
    }
    D[y] = own > 0.0 ? -twice * own : 0.0;
  } else {
    Pack top = SPARSVM_LOAD(T);
    for (int k = 1; k < packs; ++k) keep_larger(top, SPARSVM_LOAD(T + 4 * k));
    const double largest = largest_of(top);
    Pack sum = {};
    for (int k = 0; k < packs; ++k) {
      Pack e = SPARSVM_LOAD(T + 4 * k) - largest;
      exponentiate(e);
      SPARSVM_STORE(D + 4 * k, e);
      sum += e;
    }
    const double scale = mass / sum_of(sum);
    D[y] = 0.0;
    Pack off = {};
    for (int k = 0; k < packs; ++k) {
      const Pack q = SPARSVM_LOAD(D + 4 * k) * scale;
      SPARSVM_STORE(D + 4 * k, q);
      off += q;
    }
    D[y] = -sum_of(off);
  }
}

/// One output: the loss of z = margin - t s with t = +1 for class 1 and -1 for class 0.
template <LossKind loss>
SPARSVM_INLINE double slope(double s, int y, double mass, double margin) {
  const double t = y == 1 ? 1.0 : -1.0, z = margin - t * s;
  if constexpr (loss == LossKind::logistic) return -t * mass / (1.0 + std::exp(-z));
  return z > 0.0 ? -2.0 * t * mass * z : 0.0;
}

/// sum of x_e D[row e]: the partial gradient of one feature.
template <int P, typename X>
SPARSVM_INLINE void gradient(const X* x, const std::int32_t* at, std::int64_t count, int width,
                             const double* D, double* out) {
  if constexpr (P == 1) {
    double sum[4] = {};
    std::int64_t e = 0;
    for (; e + 4 <= count; e += 4) {
      for (int u = 0; u < 4; ++u) sum[u] += static_cast<double>(x[e + u]) * D[at[e + u]];
    }
    for (; e < count; ++e) sum[0] += static_cast<double>(x[e]) * D[at[e]];
    out[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  } else if constexpr (P > 1) {
    Pack sum[P / 4] = {};
    for (std::int64_t e = 0; e < count; ++e) {
      expect(D, at, e, count, P);
      const double value = static_cast<double>(x[e]);
      const double* row = D + static_cast<std::int64_t>(at[e]) * P;
      for (int k = 0; k < P / 4; ++k) sum[k] += value * SPARSVM_LOAD(row + 4 * k);
    }
    for (int k = 0; k < P / 4; ++k) SPARSVM_STORE(out + 4 * k, sum[k]);
  } else {
    std::fill(out, out + width, 0.0);
    for (std::int64_t e = 0; e < count; ++e) {
      const double value = static_cast<double>(x[e]);
      const double* row = D + static_cast<std::int64_t>(at[e]) * width;
      for (int k = 0; k < width; k += 4) {
        const Pack sum = SPARSVM_LOAD(out + k) + value * SPARSVM_LOAD(row + k);
        SPARSVM_STORE(out + k, sum);
      }
    }
  }
}

/// sum of x_e^2 C[row e].
template <int P, typename X>
SPARSVM_INLINE void curvature(const X* x, const std::int32_t* at, std::int64_t count, int width,
                              const float* C, int stride, double* out) {
  std::fill(out, out + width, 0.0);
  if constexpr (P > 1) {
    Pack sum[P / 4] = {}, c = {};
    for (std::int64_t e = 0; e < count; ++e) {
      expect(C, at, e, count, stride);
      const double square = static_cast<double>(x[e]) * static_cast<double>(x[e]);
      const float* row = C + static_cast<std::int64_t>(at[e]) * stride;
      for (int k = 0; k < P / 4; ++k) {
        load_widened(c, row + 4 * k);
        sum[k] += square * c;
      }
    }
    for (int k = 0; k < P / 4; ++k) SPARSVM_STORE(out + 4 * k, sum[k]);
  } else {
    for (std::int64_t e = 0; e < count; ++e) {
      const double square = static_cast<double>(x[e]) * static_cast<double>(x[e]);
      const float* row = C + static_cast<std::int64_t>(at[e]) * stride;
      for (int k = 0; k < width; ++k) out[k] += square * static_cast<double>(row[k]);
    }
  }
}

/// T += x_e step on the rows of a feature, D with it, and the partial gradient that results.
template <LossKind loss, int P, typename X>
SPARSVM_INLINE void move(const RowData& data, const X* x, const std::int32_t* at,
                         std::int64_t count, const double* step, double* T, double* D,
                         double* out) {
  if constexpr (P == 1) {
    double sum = 0.0;
    for (std::int64_t e = 0; e < count; ++e) {
      const std::int32_t i = at[e];
      T[i] += static_cast<double>(x[e]) * step[0];
      D[i] = slope<loss>(T[i], data.y[i], data.mass[i], data.margin[i]);
      sum += static_cast<double>(x[e]) * D[i];
    }
    out[0] = sum;
  } else {
    const int width = P > 0 ? P : data.width;
    for (std::int64_t e = 0; e < count; ++e) {
      const std::int64_t i = at[e];
      const double value = static_cast<double>(x[e]);
      double* row = T + i * width;
      for (int k = 0; k < width; k += 4) {
        const Pack moved = SPARSVM_LOAD(row + k) + value * SPARSVM_LOAD(step + k);
        SPARSVM_STORE(row + k, moved);
      }
      slopes<loss, P>(row, D + i * width, width, data.y[i], data.mass[i]);
    }
    gradient<P>(x, at, count, width, D, out);
  }
}

/// The same for the squared losses in one pass. The entry of the true class differs from what the
/// packs hold there; its share of the gradient is summed apart.
template <LossKind loss, int P, typename X>
SPARSVM_INLINE void move_at_once(const RowData& data, const X* x, const std::int32_t* at,
                                 std::int64_t count, const double* step, double* T, double* D,
                                 double* out) {
  static_assert(loss != LossKind::logistic && P > 1);
  Pack sum[P / 4] = {};
  double apart[P] = {};
  for (std::int64_t e = 0; e < count; ++e) {
    expect(T, at, e, count, P);
    expect(D, at, e, count, P);
    const std::int64_t i = at[e];
    const int y = data.y[i];
    const double value = static_cast<double>(x[e]), twice = 2.0 * data.mass[i];
    double *row = T + i * P, *slope = D + i * P;
    const double own = row[y] + value * step[y];
    const double shift = loss == LossKind::squared_hinge ? -own : 1.0;
    Pack total = {};
    for (int k = 0; k < P / 4; ++k) {
      Pack h = SPARSVM_LOAD(row + 4 * k) + value * SPARSVM_LOAD(step + 4 * k);
      SPARSVM_STORE(row + 4 * k, h);
      h = h + shift;
      keep_positive(h);
      h *= twice;
      SPARSVM_STORE(slope + 4 * k, h);
      sum[k] += value * h;
      if constexpr (loss == LossKind::squared_hinge) total += h;
    }
    if constexpr (loss == LossKind::squared_hinge) {
      slope[y] = -sum_of(total);
      apart[y] += value * slope[y];
    } else {
      const double packed = own + 1.0 > 0.0 ? twice * (own + 1.0) : 0.0;
      slope[y] = own < 1.0 ? -twice * (1.0 - own) : 0.0;
      apart[y] += value * (slope[y] - packed);
    }
  }
  for (int k = 0; k < P / 4; ++k) SPARSVM_STORE(out + 4 * k, sum[k]);
  for (int k = 0; k < P; ++k) out[k] += apart[k];
}

/// The loss of one row at T + t U (U may be null), without its mass.
template <LossKind loss>
SPARSVM_INLINE double value(const double* T, const double* U, double t, int width, int y,
                            double* work) {
  for (int k = 0; k < width; ++k) work[k] = U ? T[k] + t * U[k] : T[k];
  const double own = work[y];
  double sum = 0.0;
  if constexpr (loss == LossKind::logistic) {
    double largest = own;
    for (int k = 0; k < width; ++k) largest = work[k] > largest ? work[k] : largest;
    for (int k = 0; k < width; k += 4) {
      Pack e = SPARSVM_LOAD(work + k) - largest;
      exponentiate(e);
      SPARSVM_STORE(work + k, e);
    }
    const double mine = work[y];
    work[y] = 0.0;
    for (int k = 0; k < width; ++k) sum += work[k];
    if (largest == own) return std::log1p(sum);
    return std::log(mine + sum) + (largest - own);
  } else if constexpr (loss == LossKind::squared_hinge) {
    for (int k = 0; k < width; ++k) {
      const double h = work[k] > own ? work[k] - own : 0.0;
      sum += h * h;
    }
    return sum;
  } else {
    work[y] = -own;
    for (int k = 0; k < width; ++k) {
      const double h = work[k] > -1.0 ? work[k] + 1.0 : 0.0;
      sum += h * h;
    }
    return sum;
  }
}

inline double value_of_one(LossKind loss, double s, int y, double margin) {
  const double z = y == 1 ? margin - s : margin + s;
  if (loss != LossKind::logistic) return z > 0.0 ? z * z : 0.0;
  return z > 0.0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z));
}

}  // namespace row_kernels

}  // namespace sparsvm
