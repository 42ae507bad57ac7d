// The losses of one sample as functions of its outputs: value, derivative, diagonal curvature.
//
// An output is the score of a class; two classes have one output, the score of class 1, that of
// class 0 being zero. With margins m and Δ_k = s_k − s_y:
//
//   hinge              max(0, max_{k≠y} m_k + Δ_k)
//   squared_hinge      Σ_{k≠y} max(0, m_k + Δ_k)²
//   logistic           log(1 + Σ_{k≠y} exp(m_k + Δ_k))
//   ovr_squared_hinge  Σ_k max(0, m_k − t_k s_k)², t = ±1; one term for two classes
//
// Each is defined once, on a row of T: scores plus margins (for one-vs-rest minus the margin on the
// true class), padded to a multiple of four entries that are so negative that they never count. Two
// classes have the bare score and its margin apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/simd.hpp"

namespace sparsvm {

enum class LossKind : int { hinge = 0, squared_hinge = 1, logistic = 2, ovr_squared_hinge = 3 };

inline LossKind loss_kind(const std::string& name) {
  const char* names[] = {"hinge", "squared_hinge", "logistic", "ovr_squared_hinge"};
  for (int i = 0; i < 4; ++i) {
    if (name == names[i]) return static_cast<LossKind>(i);
  }
  throw std::invalid_argument(
      "The loss must be one of hinge, squared_hinge, logistic and ovr_squared_hinge, but is '" +
      name + "'.");
}

namespace row_loss {

// What pads a row of T.
constexpr double kPadding = -1e300;

// Entries of a padded row.
inline int padded(int64_t outputs) {
  return static_cast<int>(outputs == 1 ? 1 : (outputs + 3) / 4 * 4);
}

// What the margin of a class is multiplied with before its score is added, to give T.
inline double margin_sign(LossKind loss, bool own) {
  return own && loss == LossKind::ovr_squared_hinge ? -1.0 : 1.0;
}

// D: mass times the derivative of the loss in the scores, from T; the two may be the same array.
template <LossKind loss, int P>
SPARSVM_INLINE void slopes(double* T, double* D, int width, int y, double mass) {
  const int vectors = (P > 0 ? P : width) / 4;
  if constexpr (loss == LossKind::squared_hinge) {
    const double own = T[y], twice = 2.0 * mass;
    Simd sum = {};
    for (int k = 0; k < vectors; ++k) {
      Simd h = SPARSVM_LOAD(T + 4 * k) - own;
      keep_positive(h);
      h *= twice;
      SPARSVM_STORE(D + 4 * k, h);
      sum += h;
    }
    D[y] = -sum_of(sum);
  } else if constexpr (loss == LossKind::ovr_squared_hinge) {
    const double twice = 2.0 * mass, own = -T[y];
    for (int k = 0; k < vectors; ++k) {
      Simd h = SPARSVM_LOAD(T + 4 * k);
      keep_positive(h);
      SPARSVM_STORE(D + 4 * k, h * twice);
    }
    D[y] = own > 0.0 ? -twice * own : 0.0;
  } else {
    Simd top = SPARSVM_LOAD(T);
    for (int k = 1; k < vectors; ++k) keep_larger(top, SPARSVM_LOAD(T + 4 * k));
    const double largest = largest_of(top);
    Simd sum = {};
    for (int k = 0; k < vectors; ++k) {
      Simd e = SPARSVM_LOAD(T + 4 * k) - largest;
      exponentiate(e);
      SPARSVM_STORE(D + 4 * k, e);
      sum += e;
    }
    const double scale = mass / sum_of(sum);
    D[y] = 0.0;
    Simd off = {};
    for (int k = 0; k < vectors; ++k) {
      const Simd q = SPARSVM_LOAD(D + 4 * k) * scale;
      SPARSVM_STORE(D + 4 * k, q);
      off += q;
    }
    D[y] = -sum_of(off);
  }
}

// D, and the loss without its mass, from T, which may be the same array.
template <LossKind loss, int P>
SPARSVM_INLINE double slopes_and_value(const double* T, double* D, int width, int y, double mass) {
  static_assert(loss != LossKind::logistic);
  const int vectors = (P > 0 ? P : width) / 4;
  const double own = T[y];
  if constexpr (loss == LossKind::squared_hinge) {
    const double twice = 2.0 * mass;
    Simd sum = {}, squares = {};
    for (int k = 0; k < vectors; ++k) {
      Simd h = SPARSVM_LOAD(T + 4 * k) - own;
      keep_positive(h);
      squares += h * h;
      h *= twice;
      SPARSVM_STORE(D + 4 * k, h);
      sum += h;
    }
    D[y] = -sum_of(sum);
    return sum_of(squares);
  } else {
    const double twice = 2.0 * mass, mine = own < 0.0 ? -own : 0.0;
    Simd squares = {};
    for (int k = 0; k < vectors; ++k) {
      Simd h = SPARSVM_LOAD(T + 4 * k);
      keep_positive(h);
      squares += h * h;
      SPARSVM_STORE(D + 4 * k, h * twice);
    }
    D[y] = -twice * mine;
    if (own <= 0.0) return sum_of(squares) + mine * mine;
    // Beyond its margin the true class has no term, but is in the sum; taken off, it leaves rounding.
    double total = 0.0;
    for (int k = 0; k < (P > 0 ? P : width); ++k) {
      const double h = k == y ? 0.0 : D[k] / twice;
      total += h * h;
    }
    return total;
  }
}

// The logistic loss of up to 64 rows: D in the place of T, one exponential for it and the loss, whose logarithm is
// left to finish_values: loss = log(1 + values) + rest. One pass after the other over all rows: row by row each
// waits for the last one's long chain of exponential, sum and quotient, which took three times as long.
template <int P>
SPARSVM_INLINE void logistic_rows(double* T, int width, const int32_t* y, const double* mass,
                                  int count, double* values, double* rest) {
  if constexpr (P > 0) width = P;
  double mine[64];
  for (int i = 0; i < count; ++i) {
    double* row = T + i * width;
    const double own = row[y[i]];
    Simd top = SPARSVM_LOAD(row);
    for (int k = 4; k < width; k += 4) keep_larger(top, SPARSVM_LOAD(row + k));
    const double largest = largest_of(top);
    for (int k = 0; k < width; k += 4) {
      const Simd below = SPARSVM_LOAD(row + k) - largest;
      SPARSVM_STORE(row + k, below);
    }
    rest[i] = largest - own;
  }
  for (int e = 0; e < count * width; e += 4) {
    Simd v = SPARSVM_LOAD(T + e);
    exponentiate(v);
    SPARSVM_STORE(T + e, v);
  }
  for (int i = 0; i < count; ++i) {
    double& own = T[i * width + y[i]];
    mine[i] = own;
    own = 0.0;
  }
  for (int i = 0; i < count; ++i) {
    double* row = T + i * width;
    Simd others = {};
    for (int k = 0; k < width; k += 4) others += SPARSVM_LOAD(row + k);
    const double sum = sum_of(others), scale = mass[i] / (mine[i] + sum);
    for (int k = 0; k < width; k += 4) {
      const Simd q = SPARSVM_LOAD(row + k) * scale;
      SPARSVM_STORE(row + k, q);
    }
    row[y[i]] = -scale * sum;
    // The largest of the terms, which is one, is that of the true class or in the sum.
    values[i] = rest[i] == 0.0 ? sum : mine[i] + (sum - 1.0);
  }
}

// L <- log(1 + L) + rest, for blocks of four.
SPARSVM_INLINE void finish_values(double* L, const double* rest, int count) {
  for (int i = 0; i < count; i += 4) {
    Simd v = SPARSVM_LOAD(L + i);
    log_one_plus(v);
    SPARSVM_STORE(L + i, v + SPARSVM_LOAD(rest + i));
  }
}

// One output: the loss of z = margin - t s with t = +1 for class 1 and -1 for class 0.
template <LossKind loss>
SPARSVM_INLINE double slope(double s, int y, double mass, double margin) {
  const double t = y == 1 ? 1.0 : -1.0, z = margin - t * s;
  if constexpr (loss == LossKind::logistic) return -t * mass / (1.0 + std::exp(-z));
  return z > 0.0 ? -2.0 * t * mass * z : 0.0;
}

// c: mass times the diagonal of the Hessian, and for the logistic loss of several outputs q, the
// probabilities, if asked for; from the slopes d. Returns the sum of c.
template <typename T>
double curvatures(LossKind loss, const double* d, int outputs, int y, double mass, T* c, T* q) {
  double total = 0.0;
  if (loss == LossKind::logistic) {
    const double each = 1.0 / mass;
    for (int k = 0; k < outputs; ++k) {
      const double share = std::abs(d[k]) * each;
      if (q) q[k] = static_cast<T>(share);
      c[k] = static_cast<T>(mass * share * (1.0 - share));
      total += c[k];
    }
    // Of the true class, the slope is the share of the others, and the curvature the same.
    if (outputs > 1 && q) q[y] = static_cast<T>(1.0 + d[y] * each);
    return total;
  }
  for (int k = 0; k < outputs; ++k) {
    c[k] = static_cast<T>(d[k] != 0.0 ? 2.0 * mass : 0.0);
    total += c[k];
  }
  // The true class takes part in every active pair.
  if (outputs > 1 && loss == LossKind::squared_hinge && total > 0.0)
    c[y] = static_cast<T>(total - static_cast<double>(c[y]));
  return total;
}

// Σ_k max(0, v_k − least)².
SPARSVM_INLINE double squares_above(const double* v, double least, int width) {
  Simd sum = {};
  for (int k = 0; k < width; k += 4) {
    Simd h = SPARSVM_LOAD(v + k) - least;
    keep_positive(h);
    sum += h * h;
  }
  return sum_of(sum);
}

// The loss of one row at T + t U (U may be null), without its mass.
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
      Simd e = SPARSVM_LOAD(work + k) - largest;
      exponentiate(e);
      SPARSVM_STORE(work + k, e);
    }
    const double mine = work[y];
    work[y] = 0.0;
    for (int k = 0; k < width; ++k) sum += work[k];
    if (largest == own) return std::log1p(sum);
    return std::log(mine + sum) + (largest - own);
  } else if constexpr (loss == LossKind::squared_hinge) {
    return squares_above(work, own, width);
  } else {
    work[y] = -own;
    return squares_above(work, 0.0, width);
  }
}

// The same of one output.
inline double value_of_one(LossKind loss, double s, int y, double margin) {
  const double z = y == 1 ? margin - s : margin + s;
  if (loss != LossKind::logistic) return z > 0.0 ? z * z : 0.0;
  return z > 0.0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z));
}

// Slopes in the place of the scores S, and losses of one output, for up to 64 samples; the arrays of values are
// read and written in blocks of four. Logarithms are left to finish_values.
template <LossKind loss>
SPARSVM_INLINE void slopes_and_values_of_one(double* S, const int32_t* y, const double* mass,
                                             const double* margin, int count, double* values,
                                             double* rest) {
  for (int i = 0; i < count; ++i) {
    const double t = y[i] == 1 ? 1.0 : -1.0, z = margin[i] - t * S[i], h = z > 0.0 ? z : 0.0;
    if constexpr (loss == LossKind::logistic) {
      values[i] = -std::abs(z), rest[i] = h;
    } else {
      S[i] = -2.0 * t * mass[i] * h;
      values[i] = h * h;
    }
  }
  if constexpr (loss == LossKind::logistic) {
    for (int i = 0; i < count; i += 4) {
      Simd e = SPARSVM_LOAD(values + i);
      exponentiate(e);
      SPARSVM_STORE(values + i, e);
    }
    for (int i = 0; i < count; ++i) {
      const double e = values[i], t = y[i] == 1 ? -mass[i] : mass[i];
      S[i] = t * (rest[i] > 0.0 ? 1.0 : e) / (1.0 + e);
    }
  }
}

}  // namespace row_loss

// What one row of a loss is made of; for one output sign and margin, else the true class.
struct RowData {
  LossKind loss;
  int width;
  const int32_t* y;
  const double* mass;
  const double* margin;  // one output only
};

// The losses of all samples; the pointers must outlive it.
struct LossRows {
  LossKind kind;
  const int32_t* y;            // n class numbers
  const double* mass;          // n positive weights
  const double* cost;          // K x K margins, row = true class; its diagonal is one-vs-rest's own
  const double* margin_scale;  // n factors of the margins, or null
  int64_t classes;

  int64_t outputs() const { return classes == 2 ? 1 : classes; }

  // The loss of sample i at its outputs s.
  double value(int64_t i, const double* s) const { return row<0>(i, s, nullptr, nullptr); }
  // The loss, and g = its derivative in the outputs.
  double slopes(int64_t i, const double* s, double* g) const { return row<1>(i, s, g, nullptr); }
  // The loss, g, and h = the (generalised) second derivatives in each output alone.
  double curvatures(int64_t i, const double* s, double* g, double* h) const {
    return row<2>(i, s, g, h);
  }

  // The factor κ of the constants of 001, κ Σ p_i ‖x_i‖²: 4(K − 1) for the squared hinge (twice
  // the sum of ‖e_k − e_y‖²), ½ for the logistic loss, 2 for one-vs-rest; with one output, whose
  // e_k − e_y has length 1, half of the first two.
  double curvature_bound() const {
    if (kind == LossKind::squared_hinge && classes > 2)
      return 4.0 * static_cast<double>(classes - 1);
    return largest_curvature();
  }

  // The largest curvature of a sample's loss in any direction of its outputs: as above, but for
  // the squared hinge twice the largest eigenvalue K of the Laplacian of a star.
  double largest_curvature() const {
    const bool one = classes == 2;
    switch (kind) {
      case LossKind::squared_hinge: return one ? 2.0 : 2.0 * static_cast<double>(classes);
      case LossKind::logistic: return one ? 0.25 : 0.5;
      case LossKind::ovr_squared_hinge: return 2.0;
      default: return std::numeric_limits<double>::infinity();
    }
  }

 private:
  template <int order>
  double row(int64_t i, const double* s, double* g, double* h) const {
    const int own = y[i], K = static_cast<int>(classes);
    const double scale = margin_scale ? margin_scale[i] : 1.0;
    const double* m = cost + static_cast<int64_t>(own) * classes;
    if (kind == LossKind::hinge) return hinge<order>(own, scale, m, s, g, h);
    double total = 0.0;
    if (classes == 2) {
      const double margin = scale * m[1 - own];
      total = row_loss::value_of_one(kind, *s, own, margin);
      if constexpr (order >= 1) {
        *g = kind == LossKind::logistic
                 ? row_loss::slope<LossKind::logistic>(*s, own, 1.0, margin)
                 : row_loss::slope<LossKind::squared_hinge>(*s, own, 1.0, margin);
      }
    } else {
      const int width = row_loss::padded(K);
      thread_local std::vector<double> buffer;
      if (buffer.size() < 2 * static_cast<std::size_t>(width))
        buffer.resize(2 * static_cast<std::size_t>(width));
      double *T = buffer.data(), *work = T + width;
      for (int k = 0; k < K; ++k) T[k] = s[k] + scale * m[k];
      T[own] = s[own] + row_loss::margin_sign(kind, true) * scale * m[own];
      std::fill(T + K, T + width, row_loss::kPadding);
      switch (kind) {
        case LossKind::squared_hinge:
          total = evaluate<LossKind::squared_hinge, order>(T, work, width, own);
          break;
        case LossKind::logistic:
          total = evaluate<LossKind::logistic, order>(T, work, width, own);
          break;
        default: total = evaluate<LossKind::ovr_squared_hinge, order>(T, work, width, own);
      }
      if constexpr (order >= 1) std::copy_n(T, K, g);
    }
    if constexpr (order >= 2)
      row_loss::curvatures<double>(kind, g, static_cast<int>(outputs()), own, 1.0, h, nullptr);
    return total;
  }

  // The loss; its slopes take the place of T.
  template <LossKind loss, int order>
  static double evaluate(double* T, double* work, int width, int own) {
    if constexpr (order == 0) return row_loss::value<loss>(T, nullptr, 0.0, width, own, work);
    if constexpr (loss == LossKind::logistic) {
      const double mass = 1.0;
      double value, rest;
      row_loss::logistic_rows<0>(T, width, &own, &mass, 1, &value, &rest);
      return std::log1p(value) + rest;
    } else {
      return row_loss::slopes_and_value<loss, 0>(T, T, width, own, 1.0);
    }
  }

  template <int order>
  double hinge(int own, double scale, const double* m, const double* s, double* g,
               double* h) const {
    if (classes == 2) {
      const double sign = own == 1 ? 1.0 : -1.0, z = scale * m[1 - own] - sign * s[0];
      if constexpr (order >= 1) g[0] = z > 0.0 ? -sign : 0.0;
      if constexpr (order >= 2) h[0] = 0.0;
      return std::max(z, 0.0);
    }
    double worst = 0.0;
    int64_t at = own;
    for (int64_t k = 0; k < classes; ++k) {
      const double value = scale * m[k] + s[k] - s[own];
      if (k != own && value > worst) worst = value, at = k;
    }
    if constexpr (order >= 1) {
      std::fill(g, g + classes, 0.0);
      if (at != own) g[at] = 1.0, g[own] = -1.0;
    }
    if constexpr (order >= 2) std::fill(h, h + classes, 0.0);
    return worst;
  }
};

}  // namespace sparsvm
