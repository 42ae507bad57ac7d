// The row kernels of block_newton_rows.hpp for the width, the scalar and the processor at hand.
#pragma once

#include <cstdint>

#include "design/design.hpp"
#include "loss/smooth_rows.hpp"

namespace sparsvm {

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

/// move() for any width, at once where that is possible.
template <LossKind loss, int P, typename X>
SPARSVM_INLINE void move_column(const RowData& data, const X* x, const ColumnView& c,
                                const double* step, double* T, double* D, double* out) {
  if constexpr (loss != LossKind::logistic && P > 1) {
    row_kernels::move_at_once<loss, P>(data, x, c.rows, c.count, step, T, D, out);
  } else {
    row_kernels::move<loss, P>(data, x, c.rows, c.count, step, T, D, out);
  }
}

#define SPARSVM_MOVE(name, loss)                                                                \
  SPARSVM_CLONED static void name(const RowData& data, const ColumnView& c, const double* step, \
                                  double* T, double* D, double* out) {                          \
    const auto* f = static_cast<const float*>(c.values);                                        \
    const auto* d = static_cast<const double*>(c.values);                                       \
    SPARSVM_WIDTHS(data.width, SPARSVM_CALL)                                                    \
  }
#define SPARSVM_CALL(P)                                                   \
  if (c.single)                                                           \
    move_column<LossKind::squared_hinge, P>(data, f, c, step, T, D, out); \
  else                                                                    \
    move_column<LossKind::squared_hinge, P>(data, d, c, step, T, D, out)
SPARSVM_MOVE(move_squared, squared)
#undef SPARSVM_CALL
#define SPARSVM_CALL(P)                                              \
  if (c.single)                                                      \
    move_column<LossKind::logistic, P>(data, f, c, step, T, D, out); \
  else                                                               \
    move_column<LossKind::logistic, P>(data, d, c, step, T, D, out)
SPARSVM_MOVE(move_logistic, logistic)
#undef SPARSVM_CALL
#define SPARSVM_CALL(P)                                                       \
  if (c.single)                                                               \
    move_column<LossKind::ovr_squared_hinge, P>(data, f, c, step, T, D, out); \
  else                                                                        \
    move_column<LossKind::ovr_squared_hinge, P>(data, d, c, step, T, D, out)
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
      *d = data.loss == LossKind::logistic
               ? row_kernels::slope<LossKind::logistic>(*t, y, p, data.margin[i])
               : row_kernels::slope<LossKind::squared_hinge>(*t, y, p, data.margin[i]);
    } else if (data.loss == LossKind::logistic) {
      row_kernels::slopes<LossKind::logistic, 0>(t, d, width, y, p);
    } else if (data.loss == LossKind::squared_hinge) {
      row_kernels::slopes<LossKind::squared_hinge, 0>(t, d, width, y, p);
    } else {
      row_kernels::slopes<LossKind::ovr_squared_hinge, 0>(t, d, width, y, p);
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
    } else if (data.loss == LossKind::logistic) {
      loss = row_kernels::value<LossKind::logistic>(a, u, t, width, y, work);
    } else if (data.loss == LossKind::squared_hinge) {
      loss = row_kernels::value<LossKind::squared_hinge>(a, u, t, width, y, work);
    } else {
      loss = row_kernels::value<LossKind::ovr_squared_hinge>(a, u, t, width, y, work);
    }
    total += data.mass[i] * loss;
  }
  return total;
}

}  // namespace sparsvm
