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

#include "design.hpp"
#include "packs.hpp"

namespace sparsvm {

enum class RowLoss : int { squared, logistic, one_vs_rest };

/// What one row of a loss is made of; for one output sign and margin, else the true class.
struct RowData {
  RowLoss loss;
  int width;
  const std::int32_t* y;
  const double* mass;
  const double* margin;  // one output only
};

namespace row_kernels {

/// The row's D from its T.
template <RowLoss loss, int P>
SPARSVM_INLINE void slopes(double* T, double* D, int width, int y, double mass) {
  const int packs = (P > 0 ? P : width) / 4;
  if constexpr (loss == RowLoss::squared) {
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
  } else if constexpr (loss == RowLoss::one_vs_rest) {
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
template <RowLoss loss>
SPARSVM_INLINE double slope(double s, int y, double mass, double margin) {
  const double t = y == 1 ? 1.0 : -1.0, z = margin - t * s;
  if constexpr (loss == RowLoss::logistic) return -t * mass / (1.0 + std::exp(-z));
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
  const int size = P > 0 ? P : width;
  std::fill(out, out + size, 0.0);
  for (std::int64_t e = 0; e < count; ++e) {
    const double square = static_cast<double>(x[e]) * static_cast<double>(x[e]);
    const float* row = C + static_cast<std::int64_t>(at[e]) * stride;
    for (int k = 0; k < size; ++k) out[k] += square * static_cast<double>(row[k]);
  }
}

/// T += x_e step on the rows of a feature, D with it, and the partial gradient that results.
template <RowLoss loss, int P, typename X>
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

/// The loss of one row at T + t U (U may be null), without its mass.
template <RowLoss loss>
SPARSVM_INLINE double value(const double* T, const double* U, double t, int width, int y,
                            double* work) {
  for (int k = 0; k < width; ++k) work[k] = U ? T[k] + t * U[k] : T[k];
  const double own = work[y];
  double sum = 0.0;
  if constexpr (loss == RowLoss::logistic) {
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
  } else if constexpr (loss == RowLoss::squared) {
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

inline double value_of_one(RowLoss loss, double s, int y, double margin) {
  const double z = y == 1 ? margin - s : margin + s;
  if (loss != RowLoss::logistic) return z > 0.0 ? z * z : 0.0;
  return z > 0.0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z));
}

}  // namespace row_kernels

// ---------------------------------------------------------------- dispatch on width and scalar

#define SPARSVM_WIDTHS(width, call) \
  switch (width) {                  \
    case 1: call(1); break;         \
    case 4: call(4); break;         \
    case 8: call(8); break;         \
    case 12: call(12); break;       \
    case 16: call(16); break;       \
    case 20: call(20); break;       \
    default: call(0); break;        \
  }

SPARSVM_CLONED static void column_gradient(const ColumnView& c, int width, const double* D,
                                           double* out) {
  const auto* f = static_cast<const float*>(c.values);
  const auto* d = static_cast<const double*>(c.values);
#define SPARSVM_CALL(P)                                          \
  if (c.single)                                                  \
    row_kernels::gradient<P>(f, c.rows, c.count, width, D, out); \
  else                                                           \
    row_kernels::gradient<P>(d, c.rows, c.count, width, D, out)
  SPARSVM_WIDTHS(width, SPARSVM_CALL)
#undef SPARSVM_CALL
}

SPARSVM_CLONED static void column_curvature(const ColumnView& c, int width, const float* C,
                                            int stride, double* out) {
  const auto* f = static_cast<const float*>(c.values);
  const auto* d = static_cast<const double*>(c.values);
#define SPARSVM_CALL(P)                                                   \
  if (c.single)                                                           \
    row_kernels::curvature<P>(f, c.rows, c.count, width, C, stride, out); \
  else                                                                    \
    row_kernels::curvature<P>(d, c.rows, c.count, width, C, stride, out)
  SPARSVM_WIDTHS(width, SPARSVM_CALL)
#undef SPARSVM_CALL
}

/// sum of mass x^2.
inline double column_moment(const ColumnView& c, const double* mass) {
  double sum = 0.0;
  for (std::int64_t e = 0; e < c.count; ++e) {
    const double x = c.single ? static_cast<double>(static_cast<const float*>(c.values)[e])
                              : static_cast<const double*>(c.values)[e];
    sum += mass[c.rows[e]] * x * x;
  }
  return sum;
}

/// T[row e] += x_e step.
SPARSVM_CLONED static void add_column(const ColumnView& c, int width, const double* step,
                                      double* T) {
  for (std::int64_t e = 0; e < c.count; ++e) {
    const double x = c.single ? static_cast<double>(static_cast<const float*>(c.values)[e])
                              : static_cast<const double*>(c.values)[e];
    double* row = T + static_cast<std::int64_t>(c.rows[e]) * width;
    if (width == 1) {
      row[0] += x * step[0];
      continue;
    }
    for (int k = 0; k < width; k += 4) {
      const Pack moved = SPARSVM_LOAD(row + k) + x * SPARSVM_LOAD(step + k);
      SPARSVM_STORE(row + k, moved);
    }
  }
}

#define SPARSVM_MOVE(name, loss)                                                                \
  SPARSVM_CLONED static void name(const RowData& data, const ColumnView& c, const double* step, \
                                  double* T, double* D, double* out) {                          \
    const auto* f = static_cast<const float*>(c.values);                                        \
    const auto* d = static_cast<const double*>(c.values);                                       \
    SPARSVM_WIDTHS(data.width, SPARSVM_CALL)                                                    \
  }
#define SPARSVM_CALL(P)                                                                \
  if (c.single)                                                                        \
    row_kernels::move<RowLoss::squared, P>(data, f, c.rows, c.count, step, T, D, out); \
  else                                                                                 \
    row_kernels::move<RowLoss::squared, P>(data, d, c.rows, c.count, step, T, D, out)
SPARSVM_MOVE(move_squared, squared)
#undef SPARSVM_CALL
#define SPARSVM_CALL(P)                                                                 \
  if (c.single)                                                                         \
    row_kernels::move<RowLoss::logistic, P>(data, f, c.rows, c.count, step, T, D, out); \
  else                                                                                  \
    row_kernels::move<RowLoss::logistic, P>(data, d, c.rows, c.count, step, T, D, out)
SPARSVM_MOVE(move_logistic, logistic)
#undef SPARSVM_CALL
#define SPARSVM_CALL(P)                                                                    \
  if (c.single)                                                                            \
    row_kernels::move<RowLoss::one_vs_rest, P>(data, f, c.rows, c.count, step, T, D, out); \
  else                                                                                     \
    row_kernels::move<RowLoss::one_vs_rest, P>(data, d, c.rows, c.count, step, T, D, out)
SPARSVM_MOVE(move_one_vs_rest, one_vs_rest)
#undef SPARSVM_CALL
#undef SPARSVM_MOVE

/// D of the rows [from, to) from T.
SPARSVM_CLONED static void all_slopes(const RowData& data, std::int64_t n, double* T, double* D) {
  const int width = data.width;
  for (std::int64_t i = 0; i < n; ++i) {
    double *t = T + i * width, *d = D + i * width;
    const int y = data.y[i];
    const double p = data.mass[i];
    if (width == 1) {
      *d = data.loss == RowLoss::logistic
               ? row_kernels::slope<RowLoss::logistic>(*t, y, p, data.margin[i])
               : row_kernels::slope<RowLoss::squared>(*t, y, p, data.margin[i]);
    } else if (data.loss == RowLoss::logistic) {
      row_kernels::slopes<RowLoss::logistic, 0>(t, d, width, y, p);
    } else if (data.loss == RowLoss::squared) {
      row_kernels::slopes<RowLoss::squared, 0>(t, d, width, y, p);
    } else {
      row_kernels::slopes<RowLoss::one_vs_rest, 0>(t, d, width, y, p);
    }
  }
}

/// The mean loss at T + t U; U may be null, `work` holds one row.
SPARSVM_CLONED static double mean_loss(const RowData& data, std::int64_t n, const double* T,
                                       const double* U, double t, double* work) {
  const int width = data.width;
  double total = 0.0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double *a = T + i * width, *u = U ? U + i * width : nullptr;
    const int y = data.y[i];
    double loss = 0.0;
    if (width == 1) {
      loss = row_kernels::value_of_one(data.loss, u ? *a + t * *u : *a, y, data.margin[i]);
    } else if (data.loss == RowLoss::logistic) {
      loss = row_kernels::value<RowLoss::logistic>(a, u, t, width, y, work);
    } else if (data.loss == RowLoss::squared) {
      loss = row_kernels::value<RowLoss::squared>(a, u, t, width, y, work);
    } else {
      loss = row_kernels::value<RowLoss::one_vs_rest>(a, u, t, width, y, work);
    }
    total += data.mass[i] * loss;
  }
  return total;
}

}  // namespace sparsvm
