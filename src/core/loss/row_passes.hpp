// Passes over all rows of a smooth loss: sums, losses and slopes, entropies, shifts of all scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "loss/smooth_loss.hpp"
#include "support/simd.hpp"

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

// Sums of the entries of D and of their sizes over the rows, in blocks: one sum after the other over thousands of rows
// would round a hundred times as much as the entries do.
SPARSVM_DISPATCH static void sums_of_rows(const double* D, int64_t n, int width, double* sum,
                                          double* size) {
  constexpr int64_t kBlock = 64;
  if (width == 1) {  // as rows of four
    double sums[4] = {}, sizes[4] = {};
    const int64_t rest = n % 4;
    if (n > rest) sums_of_rows(D, n / 4, 4, sums, sizes);
    for (int64_t i = n - rest; i < n; ++i) sums[i % 4] += D[i], sizes[i % 4] += std::abs(D[i]);
    *sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    *size = (sizes[0] + sizes[1]) + (sizes[2] + sizes[3]);
    return;
  }
  for (int k = 0; k < width; k += 4) {
    Simd total = {}, large = {};
    for (int64_t from = 0; from < n; from += kBlock) {
      Simd s = {}, a = {};
      for (int64_t i = from; i < std::min(from + kBlock, n); ++i) {
        const Simd v = SPARSVM_LOAD(D + i * width + k);
        Simd positive = v;
        keep_larger(positive, Simd{} - v);
        s += v, a += positive;
      }
      total += s, large += a;
    }
    SPARSVM_STORE(sum + k, total);
    SPARSVM_STORE(size + k, large);
  }
}

// D and the losses L of all rows at T + t U, or at T where U is null; returns the mean loss. Rows are taken in
// blocks: the logarithms of the logistic loss, and with one output its exponentials, are found four at a time.
template <LossKind loss, int P>
SPARSVM_INLINE double evaluate_rows(const RowData& data, int64_t n, const double* T,
                                    const double* U, double t, double* D, double* L) {
  constexpr int kBlock = 64;
  const int width = P > 0 ? P : data.width;
  double total = 0.0, values[kBlock], rest[kBlock];
  for (int64_t from = 0; from < n; from += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, n - from));
    std::fill(values, values + kBlock, 0.0), std::fill(rest, rest + kBlock, 0.0);
    if constexpr (P == 1) {
      for (int e = 0; e < count; ++e) D[from + e] = T[from + e] + (U ? t * U[from + e] : 0.0);
      row_loss::slopes_and_values_of_one<loss>(D + from, data.y + from, data.mass + from,
                                               data.margin + from, count, values, rest);
    } else {
      for (int e = 0; e < count; ++e) {
        const int64_t i = from + e;
        const double* row = T + i * width;
        double* d = D + i * width;
        if (U) {
          for (int k = 0; k < width; k += 4) {
            const Simd moved = SPARSVM_LOAD(row + k) + t * SPARSVM_LOAD(U + i * width + k);
            SPARSVM_STORE(d + k, moved);
          }
          row = d;
        } else if (loss == LossKind::logistic) {
          std::copy_n(row, width, d);
        }
        if constexpr (loss != LossKind::logistic)
          values[e] = row_loss::slopes_and_value<loss, P>(row, d, width, data.y[i], data.mass[i]);
      }
      if constexpr (loss == LossKind::logistic)
        row_loss::logistic_rows<P>(D + from * width, width, data.y + from, data.mass + from, count,
                                   values, rest);
    }
    if constexpr (loss == LossKind::logistic) row_loss::finish_values(values, rest, count);
    for (int e = 0; e < count; ++e) {
      L[from + e] = values[e];
      total += data.mass[from + e] * values[e];
    }
  }
  return total;
}

SPARSVM_DISPATCH static double evaluate_rows(const RowData& data, int64_t n, const double* T,
                                             const double* U, double t, double* D, double* L) {
#define SPARSVM_CALL(P)                                                                           \
  switch (data.loss) {                                                                            \
    case LossKind::logistic: return evaluate_rows<LossKind::logistic, P>(data, n, T, U, t, D, L); \
    case LossKind::squared_hinge:                                                                 \
      return evaluate_rows<LossKind::squared_hinge, P>(data, n, T, U, t, D, L);                   \
    default: return evaluate_rows<LossKind::ovr_squared_hinge, P>(data, n, T, U, t, D, L);        \
  }
  SPARSVM_WIDTHS(data.width, SPARSVM_CALL)
#undef SPARSVM_CALL
  return 0.0;
}

// The mean entropy of c times the slopes of the logistic loss. The logarithms of the probabilities q are what the
// losses were computed from: with L the loss of a sample, -log q_y = L and -log q_k = L + T_y - T_k.
SPARSVM_DISPATCH static double entropy_of_rows(const RowData& data, int64_t n, const double* T,
                                               const double* D, const double* L, double c) {
  constexpr int kBlock = 64;
  constexpr double kLeastScore = 1e3;  // below the true class's, where exponentials are zero
  const double lowered = std::log(c);
  double total = 0.0, logs[kBlock], zeros[kBlock] = {}, off[kBlock], sums[kBlock];
  for (int64_t from = 0; from < n; from += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, n - from));
    std::fill(logs, logs + kBlock, 0.0);
    for (int e = 0; e < count; ++e) {
      const int64_t i = from + e;
      const double *d = D + i * data.width, *t = T + i * data.width;
      if (data.width == 1) {
        off[e] = std::abs(*d);
        sums[e] = off[e] * (L[i] - (data.margin[i] - (data.y[i] == 1 ? *t : -*t)));
      } else {
        // The true class, whose slope is less the sum of the others, is in the sum, and taken off. Padding has the
        // slope of the least exponential, not zero, and must not be multiplied with its score.
        const int y = data.y[i];
        const double own = L[i] + t[y];
        Simd sum = {};
        for (int k = 0; k < data.width; k += 4) {
          Simd score = SPARSVM_LOAD(t + k);
          keep_larger(score, SPARSVM_SPREAD(own - kLeastScore));
          sum += SPARSVM_LOAD(d + k) * (SPARSVM_SPREAD(own) - score);
        }
        off[e] = -d[y];
        sums[e] = sum_of(sum) - d[y] * (own - t[y]);
      }
      off[e] /= data.mass[i];
      const double rest = 1.0 - c * off[e];
      if (c != 1.0 && rest > 0.0) logs[e] = c * off[e] / rest;
    }
    // -log(1 - x) = log(1 + x / (1 - x))
    if (c != 1.0) row_loss::finish_values(logs, zeros, count);
    for (int e = 0; e < count; ++e) {
      const double mass = data.mass[from + e], rest = std::max(1.0 - c * off[e], 0.0);
      total += c * (sums[e] - mass * off[e] * lowered) +
               mass * rest * (c == 1.0 ? L[from + e] : logs[e]);
    }
  }
  return total;
}

// The largest shift of scores, whose factors are near one.
constexpr double kMostShift = 0.5;

// D and L from E and M, those before all samples' scores were shifted by s. With r_k = exp(s_k - s_y) the
// probabilities q_k of the other classes become q_k r_k / (1 + z), where z = sum q_k (r_k - 1), and the
// loss grows by log(1 + z). `growth` has r_k - 1, a row for each true class. Returns the mean loss.
template <int P>
SPARSVM_INLINE double shift_rows(const RowData& data, int64_t n, const double* growth,
                                 const double* E, const double* M, double* D, double* L) {
  constexpr int kBlock = 64;
  const int width = P > 0 ? P : data.width;
  double total = 0.0, values[kBlock], rest[kBlock];
  for (int64_t from = 0; from < n; from += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, n - from));
    std::fill(values, values + kBlock, 0.0), std::fill(rest, rest + kBlock, 0.0);
    for (int e = 0; e < count; ++e) {
      const int64_t i = from + e;
      rest[e] = M[i];
      if constexpr (P == 1) {
        const double g = data.y[i] == 1 ? growth[1] : growth[0];
        values[e] = std::abs(E[i]) / data.mass[i] * g;
        D[i] = E[i] * (1.0 + g) / (1.0 + values[e]);
      } else {
        const int y = data.y[i];
        const double *before = E + i * width, *g = growth + y * width;
        double* d = D + i * width;
        Simd sum = {}, all = {};
        for (int k = 0; k < width; k += 4) sum += SPARSVM_LOAD(before + k) * SPARSVM_LOAD(g + k);
        values[e] = sum_of(sum) / data.mass[i];
        const double scale = 1.0 / (1.0 + values[e]);
        for (int k = 0; k < width; k += 4) {
          const Simd b = SPARSVM_LOAD(before + k);
          const Simd moved = (b + b * SPARSVM_LOAD(g + k)) * scale;
          SPARSVM_STORE(d + k, moved);
          all += moved;
        }
        // The slope of the true class, not its own before, is less the sum of the others.
        d[y] = before[y] * scale - sum_of(all);
      }
    }
    row_loss::finish_values(values, rest, count);
    for (int e = 0; e < count; ++e) {
      L[from + e] = values[e];
      total += data.mass[from + e] * values[e];
    }
  }
  return total;
}

SPARSVM_DISPATCH static double shift_rows(const RowData& data, int64_t n, const double* growth,
                                          const double* E, const double* M, double* D, double* L) {
#define SPARSVM_CALL(P) return shift_rows<P>(data, n, growth, E, M, D, L)
  SPARSVM_WIDTHS(data.width, SPARSVM_CALL)
#undef SPARSVM_CALL
  return 0.0;
}

// The Hessian H of the logistic loss in a shift (outputs x outputs): sums of terms of one sign.
SPARSVM_DISPATCH static void curvature_of_shift(const RowData& data, int64_t n, int outputs,
                                                const double* D, double* H) {
  constexpr int kBlock = 64;
  const int width = data.width;
  std::fill(H, H + outputs * outputs, 0.0);
  if (width == 1) {
    for (int64_t i = 0; i < n; ++i) {
      const double d = std::abs(D[i]);
      H[0] += d * (1.0 - d / data.mass[i]);
    }
    return;
  }
  // The probabilities of a block of rows, and the sums of their products.
  std::vector<double> q(static_cast<std::size_t>(kBlock * width));
  std::vector<double> products(static_cast<std::size_t>(width * width)), own(q.size());
  for (int64_t from = 0; from < n; from += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, n - from));
    for (int e = 0; e < count; ++e) {
      const double each = 1.0 / data.mass[from + e];
      for (int k = 0; k < width; k += 4) {
        const Simd share = SPARSVM_LOAD(D + (from + e) * width + k) * each;
        SPARSVM_STORE(q.data() + e * width + k, share);
      }
    }
    for (int e = 0; e < count; ++e) {
      const int y = data.y[from + e];
      double* row = q.data() + e * width;
      row[y] += 1.0;
      // Padding has the slope of the least exponential, and products with it are slow.
      std::fill(row + outputs, row + width, 0.0);
    }
    for (int e = 0; e < count; ++e) {
      const double *row = q.data() + e * width, *d = D + (from + e) * width;
      const int y = data.y[from + e];
      for (int k = 0; k < outputs; ++k) {
        const double weight = data.mass[from + e] * row[k];
        double* to = products.data() + k * width;
        for (int l = k / 4 * 4; l < width; l += 4) {
          const Simd sum = SPARSVM_LOAD(to + l) + weight * SPARSVM_LOAD(row + l);
          SPARSVM_STORE(to + l, sum);
        }
        own[static_cast<std::size_t>(k)] += k == y ? -d[k] * row[k] : d[k] * (1.0 - row[k]);
      }
    }
  }
  for (int k = 0; k < outputs; ++k) {
    H[k * outputs + k] = own[static_cast<std::size_t>(k)];
    for (int l = k + 1; l < outputs; ++l)
      H[k * outputs + l] = H[l * outputs + k] = -products[static_cast<std::size_t>(k * width + l)];
  }
}

}  // namespace sparsvm
