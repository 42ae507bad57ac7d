// The samples' state of a smooth problem: scores, slopes and curvatures, one row a sample.
//
// Rows are padded to a multiple of four outputs ("width"; one output stays one). Per sample:
//   T   scores plus margins, so that the losses of differences read max(0, T_k - T_y) and
//       exp(T_k - T_y), and one-vs-rest, with the margin taken off its own class, max(0, T_k) and
//       max(0, -T_y); the bare score for one output
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

namespace row_kernels {

// Ask for a row of `width` numbers that will be needed a few entries later: the rows of a column
// lie too far apart for the processor to guess, which cost a sixth of an epoch.
template <typename T>
SPARSVM_INLINE void expect(const T* rows, const int32_t* at, int64_t e, int64_t count, int width) {
  constexpr int64_t kAhead = 8;
  if (e + kAhead >= count) return;
  const T* row = rows + static_cast<int64_t>(at[e + kAhead]) * width;
  for (int k = 0; k < width; k += static_cast<int>(64 / sizeof(T))) SPARSVM_PREFETCH(row + k);
}

// Whether a column has no zeros between its first and its last entry.
inline bool whole(const int32_t* at, int64_t count) {
  return count > 0 && at[count - 1] - at[0] + 1 == count;
}

SPARSVM_INLINE void load_wide(Simd& v, const double* from) { v = SPARSVM_LOAD(from); }
SPARSVM_INLINE void load_wide(Simd& v, const float* from) { load_widened(v, from); }

// sum of x_e D[e].
template <typename X>
SPARSVM_INLINE double dot(const X* x, const double* D, int64_t count) {
  Simd sum[4] = {}, v;
  int64_t e = 0;
  for (; e + 16 <= count; e += 16)
    for (int u = 0; u < 4; ++u) {
      load_wide(v, x + e + 4 * u);
      sum[u] += v * SPARSVM_LOAD(D + e + 4 * u);
    }
  double total = sum_of((sum[0] + sum[1]) + (sum[2] + sum[3]));
  for (; e < count; ++e) total += static_cast<double>(x[e]) * D[e];
  return total;
}

// sum of x_e D[row e]: the partial gradient of one feature.
template <int P, typename X>
SPARSVM_INLINE void gradient(const X* x, const int32_t* at, int64_t count, int width,
                             const double* D, double* out) {
  if constexpr (P == 1) {
    if (whole(at, count)) {
      out[0] = dot(x, D + at[0], count);
      return;
    }
    double sum[4] = {};
    int64_t e = 0;
    for (; e + 4 <= count; e += 4) {
      for (int u = 0; u < 4; ++u) sum[u] += static_cast<double>(x[e + u]) * D[at[e + u]];
    }
    for (; e < count; ++e) sum[0] += static_cast<double>(x[e]) * D[at[e]];
    out[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  } else if constexpr (P > 1) {
    Simd sum[P / 4] = {};
    for (int64_t e = 0; e < count; ++e) {
      expect(D, at, e, count, P);
      const double value = static_cast<double>(x[e]);
      const double* row = D + static_cast<int64_t>(at[e]) * P;
      for (int k = 0; k < P / 4; ++k) sum[k] += value * SPARSVM_LOAD(row + 4 * k);
    }
    for (int k = 0; k < P / 4; ++k) SPARSVM_STORE(out + 4 * k, sum[k]);
  } else {
    std::fill(out, out + width, 0.0);
    for (int64_t e = 0; e < count; ++e) {
      const double value = static_cast<double>(x[e]);
      const double* row = D + static_cast<int64_t>(at[e]) * width;
      for (int k = 0; k < width; k += 4) {
        const Simd sum = SPARSVM_LOAD(out + k) + value * SPARSVM_LOAD(row + k);
        SPARSVM_STORE(out + k, sum);
      }
    }
  }
}

// sum of x_e^2 C[row e].
template <int P, typename X>
SPARSVM_INLINE void curvature(const X* x, const int32_t* at, int64_t count, int width,
                              const float* C, int stride, double* out) {
  std::fill(out, out + width, 0.0);
  if constexpr (P > 1) {
    Simd sum[P / 4] = {}, c = {};
    for (int64_t e = 0; e < count; ++e) {
      expect(C, at, e, count, stride);
      const double square = static_cast<double>(x[e]) * static_cast<double>(x[e]);
      const float* row = C + static_cast<int64_t>(at[e]) * stride;
      for (int k = 0; k < P / 4; ++k) {
        load_widened(c, row + 4 * k);
        sum[k] += square * c;
      }
    }
    for (int k = 0; k < P / 4; ++k) SPARSVM_STORE(out + 4 * k, sum[k]);
  } else {
    for (int64_t e = 0; e < count; ++e) {
      const double square = static_cast<double>(x[e]) * static_cast<double>(x[e]);
      const float* row = C + static_cast<int64_t>(at[e]) * stride;
      for (int k = 0; k < width; ++k) out[k] += square * static_cast<double>(row[k]);
    }
  }
}

// T += x_e step on the rows of a feature, D with it, and the partial gradient that results.
template <LossKind loss, int P, typename X>
SPARSVM_INLINE void move(const RowData& data, const X* x, const int32_t* at, int64_t count,
                         const double* step, double* T, double* D, double* out) {
  if constexpr (P == 1) {
    double sum = 0.0;
    for (int64_t e = 0; e < count; ++e) {
      const int32_t i = at[e];
      T[i] += static_cast<double>(x[e]) * step[0];
      D[i] = row_loss::slope<loss>(T[i], data.y[i], data.mass[i], data.margin[i]);
      sum += static_cast<double>(x[e]) * D[i];
    }
    out[0] = sum;
  } else {
    const int width = P > 0 ? P : data.width;
    for (int64_t e = 0; e < count; ++e) {
      const int64_t i = at[e];
      const double value = static_cast<double>(x[e]);
      double* row = T + i * width;
      for (int k = 0; k < width; k += 4) {
        const Simd moved = SPARSVM_LOAD(row + k) + value * SPARSVM_LOAD(step + k);
        SPARSVM_STORE(row + k, moved);
      }
      row_loss::slopes<loss, P>(row, D + i * width, width, data.y[i], data.mass[i]);
    }
    gradient<P>(x, at, count, width, D, out);
  }
}

// The same for the squared losses in one pass. The entry of the true class differs from what the
// vectors hold there; its share of the gradient is summed apart.
template <LossKind loss, int P, typename X>
SPARSVM_INLINE void move_at_once(const RowData& data, const X* x, const int32_t* at, int64_t count,
                                 const double* step, double* T, double* D, double* out) {
  static_assert(loss != LossKind::logistic && P > 1);
  Simd sum[P / 4] = {};
  double apart[P] = {};
  for (int64_t e = 0; e < count; ++e) {
    expect(T, at, e, count, P);
    expect(D, at, e, count, P);
    const int64_t i = at[e];
    const int y = data.y[i];
    const double value = static_cast<double>(x[e]), twice = 2.0 * data.mass[i];
    double *row = T + i * P, *slope = D + i * P;
    const double own = row[y] + value * step[y];
    Simd total = {};
    for (int k = 0; k < P / 4; ++k) {
      Simd h = SPARSVM_LOAD(row + 4 * k) + value * SPARSVM_LOAD(step + 4 * k);
      SPARSVM_STORE(row + 4 * k, h);
      if constexpr (loss == LossKind::squared_hinge) h = h - own;
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
      slope[y] = own < 0.0 ? twice * own : 0.0;
      apart[y] -= value * twice * std::abs(own);
    }
  }
  for (int k = 0; k < P / 4; ++k) SPARSVM_STORE(out + 4 * k, sum[k]);
  for (int k = 0; k < P; ++k) out[k] += apart[k];
}

}  // namespace row_kernels

// ---------------------------------------------------------------- for the width, the scalar and the
// processor at hand

// Rows of up to twenty outputs have loops of fixed length: with one loop for all widths block_newton
// took 1.5 to 1.8 times as long on digits (10 classes), 1.2 to 1.4 times on 3000 x 8000 sparse data of
// 4 and 20 classes, 1.4 to 2.0 times on 80 x 5000 dense data of 5.
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

SPARSVM_DISPATCH static void column_gradient(const ColumnView& c, int width, const double* D,
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

SPARSVM_DISPATCH static void column_curvature(const ColumnView& c, int width, const float* C,
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

// sum of mass x^2.
inline double column_moment(const ColumnView& c, const double* mass) {
  double sum = 0.0;
  for (int64_t e = 0; e < c.count; ++e) {
    const double x = c.single ? static_cast<double>(static_cast<const float*>(c.values)[e])
                              : static_cast<const double*>(c.values)[e];
    sum += mass[c.rows[e]] * x * x;
  }
  return sum;
}

// T[row e] += x_e step.
SPARSVM_DISPATCH static void add_column(const ColumnView& c, int width, const double* step,
                                        double* T) {
  if (width == 1 && row_kernels::whole(c.rows, c.count)) {
    double* to = T + c.rows[0];
    const double s = step[0];
    if (c.single)
      for (int64_t e = 0; e < c.count; ++e)
        to[e] += static_cast<double>(static_cast<const float*>(c.values)[e]) * s;
    else
      for (int64_t e = 0; e < c.count; ++e) to[e] += static_cast<const double*>(c.values)[e] * s;
    return;
  }
  for (int64_t e = 0; e < c.count; ++e) {
    const double x = c.single ? static_cast<double>(static_cast<const float*>(c.values)[e])
                              : static_cast<const double*>(c.values)[e];
    double* row = T + static_cast<int64_t>(c.rows[e]) * width;
    if (width == 1) {
      row[0] += x * step[0];
      continue;
    }
    for (int k = 0; k < width; k += 4) {
      const Simd moved = SPARSVM_LOAD(row + k) + x * SPARSVM_LOAD(step + k);
      SPARSVM_STORE(row + k, moved);
    }
  }
}

// move() for any width, at once where that is possible.
template <LossKind loss, int P, typename X>
SPARSVM_INLINE void move_column(const RowData& data, const X* x, const ColumnView& c,
                                const double* step, double* T, double* D, double* out) {
  if constexpr (loss != LossKind::logistic && P > 1) {
    row_kernels::move_at_once<loss, P>(data, x, c.rows, c.count, step, T, D, out);
  } else {
    row_kernels::move<loss, P>(data, x, c.rows, c.count, step, T, D, out);
  }
}

#define SPARSVM_MOVE(name, loss)                                                                  \
  SPARSVM_DISPATCH static void name(const RowData& data, const ColumnView& c, const double* step, \
                                    double* T, double* D, double* out) {                          \
    const auto* f = static_cast<const float*>(c.values);                                          \
    const auto* d = static_cast<const double*>(c.values);                                         \
    SPARSVM_WIDTHS(data.width, SPARSVM_CALL)                                                      \
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

// ---------------------------------------------------------------- the state

class SmoothRows {
 public:
  SmoothRows(const LossRows& loss, int64_t samples)
      : n(samples), K(static_cast<int>(loss.classes)), outputs(static_cast<int>(loss.outputs())),
        width(row_loss::padded(outputs)), stride(outputs == 1 ? 1 : (outputs + 7) / 8 * 8),
        loss_(loss.kind), y_(loss.y), mass_(loss.mass), cost_(loss.cost),
        margin_scale_(loss.margin_scale), L_(static_cast<std::size_t>(n)), tried_L_(L_.size()) {
    const auto cells = static_cast<std::size_t>(n) * static_cast<std::size_t>(width);
    T.resize(cells);
    D.assign(cells, 0.0);
    U.resize(cells);
    tried_D_.resize(cells);
    C.assign(static_cast<std::size_t>(n) * static_cast<std::size_t>(stride), 0.0F);
    if (loss_ == LossKind::logistic && outputs > 1) Q.assign(C.size(), 0.0F);
    if (outputs == 1) {
      margin_.resize(static_cast<std::size_t>(n));
      for (int64_t i = 0; i < n; ++i) margin_[at(i)] = margin(i, 1 - y_[i]);
    }
    data_ = {loss_, width, y_, mass_, margin_.data()};
  }
  SmoothRows(const SmoothRows&) = delete;
  SmoothRows& operator=(const SmoothRows&) = delete;

  const int64_t n;
  const int K, outputs, width, stride;
  std::vector<double> T, D, U;  // U: a direction of the scores
  std::vector<float> C, Q;
  std::vector<int32_t> active;  // samples with curvature, as of refresh_curvature

  LossKind loss() const { return loss_; }
  const RowData& data() const { return data_; }

  // T at weights zero and intercept b.
  void set_intercept(const double* b) {
    for (int64_t i = 0; i < n; ++i) {
      double* t = T.data() + i * width;
      std::fill(t, t + width, row_loss::kPadding);
      for (int k = 0; k < outputs; ++k) {
        t[k] = b[k];
        if (outputs > 1) t[k] += row_loss::margin_sign(loss_, k == y_[i]) * margin(i, k);
      }
    }
  }

  // To be called whenever T was changed from outside.
  void refresh_slopes() {
    known_ = evaluate_rows(data_, n, T.data(), nullptr, 0.0, D.data(), L_.data());
    tried_ = std::nan("");
  }

  void move(const ColumnView& column, const double* step, double* gradient) {
    known_ = tried_ = std::nan("");
    switch (loss_) {
      case LossKind::squared_hinge:
        return move_squared(data_, column, step, T.data(), D.data(), gradient);
      case LossKind::logistic:
        return move_logistic(data_, column, step, T.data(), D.data(), gradient);
      default: return move_one_vs_rest(data_, column, step, T.data(), D.data(), gradient);
    }
  }

  // The mean loss at T + t U, or at T.
  double value(double t) {
    tried_at_ = t;
    return tried_ =
               evaluate_rows(data_, n, T.data(), U.data(), t, tried_D_.data(), tried_L_.data());
  }
  double value() {
    if (std::isnan(known_)) refresh_slopes();
    return known_;
  }

  void take_step(double t) {
    if (std::isnan(tried_) || t != tried_at_) value(t);
    // The padding of U is zero, so that of T stays.
    for (std::size_t e = 0; e < T.size(); ++e) T[e] += t * U[e];
    D.swap(tried_D_), L_.swap(tried_L_);
    known_ = tried_;
    tried_ = std::nan("");
  }

  void refresh_curvature() {
    active.clear();
    for (int64_t i = 0; i < n; ++i) {
      const double* d = D.data() + i * width;
      float* c = C.data() + i * stride;
      float* q = Q.empty() ? nullptr : Q.data() + i * stride;
      const double total =
          row_loss::curvatures(loss_, d, outputs, static_cast<int>(y_[i]), mass_[i], c, q);
      if (total > 0.0) active.push_back(static_cast<int32_t>(i));
    }
  }

  // The loss part of the dual value at c times the slopes is c * gain - c^2 * square for the
  // squared losses; for the logistic one it is c * gain + entropy(c).
  double dual_gain() const {
    double gain = 0.0;
    for_each_dual([&](int64_t i, int k, double size) { gain += size * margin(i, k); });
    return gain;
  }
  double dual_square() const {
    double square = 0.0;
    for_each_dual([&](int64_t i, int, double size) { square += size * size / (4.0 * mass_[i]); });
    return square;
  }
  double dual_entropy(double c) {
    if (!(c > 0.0)) return 0.0;
    value();
    return entropy_of_rows(data_, n, T.data(), D.data(), L_.data(), c);
  }

 private:
  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

  double margin(int64_t i, int k) const {
    return cost_[y_[i] * K + k] * (margin_scale_ ? margin_scale_[i] : 1.0);
  }

  // visit(sample, class, size) of the dual variables: the slopes off the true class, for the
  // one-vs-rest loss on all classes.
  template <typename Visit>
  void for_each_dual(Visit visit) const {
    for (int64_t i = 0; i < n; ++i) {
      const double* d = D.data() + i * width;
      for (int k = 0; k < outputs; ++k) {
        if (outputs > 1 && loss_ != LossKind::ovr_squared_hinge && k == y_[i]) continue;
        visit(i, outputs == 1 ? 1 - y_[i] : k, std::abs(d[k]));
      }
    }
  }

  LossKind loss_;
  const int32_t* y_;
  const double* mass_;
  const double* cost_;
  const double* margin_scale_;
  std::vector<double> margin_, L_, tried_L_, tried_D_;  // losses, and slopes at the step tried last
  double known_ = std::nan(""), tried_ = std::nan(""), tried_at_ = 0.0;
  RowData data_{};
};

}  // namespace sparsvm
