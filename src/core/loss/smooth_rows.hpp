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
#include "loss/row_passes.hpp"
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

  // U = 0, to be filled: what was found along another step says nothing of this one.
  void begin_step() {
    std::fill(U.begin(), U.end(), 0.0);
    tried_ = std::nan("");
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

  // The same at scores shifted by s for all samples, |s| <= kMostShift: the logistic loss and its slopes
  // change by factors that are the same for all samples of a class, without exponentials.
  bool shifts() const { return loss_ == LossKind::logistic; }
  double shifted(const double* s) {
    value();
    std::vector<double> growth(outputs == 1 ? 2 : at(int64_t{K} * width), 0.0);
    if (outputs == 1) growth = {std::expm1(*s), std::expm1(-*s)};
    for (int y = 0; y < K && outputs > 1; ++y)
      for (int k = 0; k < K; ++k) growth[at(y * width + k)] = std::expm1(s[k] - s[y]);
    tried_at_ = std::nan("");
    return tried_ = shift_rows(data_, n, growth.data(), D.data(), L_.data(), tried_D_.data(),
                               tried_L_.data());
  }
  void take_shift(const double* s) {
    for (int64_t i = 0; i < n; ++i)
      for (int k = 0; k < outputs; ++k) T[at(i * width + k)] += s[k];
    take_tried();
  }

  // The Hessian of the logistic loss in a shift: outputs x outputs.
  void shift_curvature(double* H) const { curvature_of_shift(data_, n, outputs, D.data(), H); }

  void take_step(double t) {
    if (std::isnan(tried_) || t != tried_at_) value(t);
    // The padding of U is zero, so that of T stays.
    for (std::size_t e = 0; e < T.size(); ++e) T[e] += t * U[e];
    take_tried();
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

  void take_tried() {
    D.swap(tried_D_), L_.swap(tried_L_);
    known_ = tried_;
    tried_ = std::nan("");
  }

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
