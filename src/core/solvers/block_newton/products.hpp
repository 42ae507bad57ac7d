// Products with some features: with their columns, and with the Hessian of the loss on the active samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "design/column_reader.hpp"
#include "linalg/blas.hpp"
#include "loss/smooth_rows.hpp"
#include "support/simd.hpp"

namespace sparsvm {

// -----------------------------------------------------------------
// X_A' D and U += X_A S.
//
// Thin columns are walked entry by entry. Others are gathered in panels, and multiplied by BLAS: for twenty
// outputs that takes a third of the time.

class ColumnPanels {
 public:
  ColumnPanels(const ColumnSource& columns, int64_t n, int width)
      : columns_(columns), n_(n), width_(width) {}

  // The rows of X_A' D (width numbers a feature) into `out`.
  void gradients(const int32_t* features, std::size_t count, const double* D, double* out) {
    if (!dense()) {
      for (std::size_t f = 0; f < count; ++f)
        column_gradient(columns_[features[f]], width_, D, out + f * wide());
      return;
    }
    for (std::size_t from = 0; from < count; from += panel()) {
      const std::size_t size = std::min(panel(), count - from);
      gemm('N', 'N', width_, static_cast<int>(size), static_cast<int>(n_), 1.0, D, width_,
           gathered(features + from, size), static_cast<int>(n_), 0.0, out + from * wide(), width_);
    }
  }

  // U += X_A S; features whose steps (width numbers each) are zero cost nothing.
  void add(const std::vector<int32_t>& features, const double* steps, double* U) {
    const auto moves = [&](std::size_t f) {
      const double* s = steps + f * wide();
      return std::any_of(s, s + width_, [](double x) { return x != 0.0; });
    };
    if (!dense()) {
      for (std::size_t f = 0; f < features.size(); ++f)
        if (moves(f)) add_column(columns_[features[f]], width_, steps + f * wide(), U);
      return;
    }
    moving_.clear(), moves_.clear();
    for (std::size_t f = 0; f < features.size(); ++f) {
      if (!moves(f)) continue;
      moving_.push_back(features[f]);
      moves_.insert(moves_.end(), steps + f * wide(), steps + (f + 1) * wide());
    }
    for (std::size_t from = 0; from < moving_.size(); from += panel()) {
      const std::size_t size = std::min(panel(), moving_.size() - from);
      gemm('N', 'T', width_, static_cast<int>(n_), static_cast<int>(size), 1.0,
           moves_.data() + from * wide(), width_, gathered(moving_.data() + from, size),
           static_cast<int>(n_), 1.0, U, width_);
    }
  }

 private:
  // Numbers in a panel, which should stay in the second cache; its columns at least.
  static constexpr int64_t kNumbers = int64_t{1} << 16, kLeast = 8;

  std::size_t wide() const { return static_cast<std::size_t>(width_); }
  std::size_t panel() const {
    return static_cast<std::size_t>(std::max(kLeast, kNumbers / std::max<int64_t>(n_, 1)));
  }
  bool dense() const { return width_ > 1 && !columns_.thin(); }

  // The columns one after the other: where they lie like that in memory, themselves.
  const double* gathered(const int32_t* features, std::size_t count) {
    const auto n = static_cast<std::size_t>(n_);
    const auto* first = static_cast<const double*>(columns_[features[0]].values);
    std::size_t run = 0;
    for (; run < count; ++run) {
      const ColumnView c = columns_[features[run]];
      if (c.single || c.count != n_ || c.values != first + run * n) break;
    }
    if (run == count) return first;
    values_.resize(std::max(values_.size(), count * n));
    for (std::size_t f = 0; f < count; ++f) {
      double* to = values_.data() + f * n;
      const ColumnView c = columns_[features[f]];
      const bool whole = c.count == n_;
      if (!whole) std::fill_n(to, n, 0.0);
      if (c.single)
        scatter(static_cast<const float*>(c.values), c, whole, to);
      else
        scatter(static_cast<const double*>(c.values), c, whole, to);
    }
    return values_.data();
  }

  template <typename X>
  static void scatter(const X* x, const ColumnView& c, bool whole, double* to) {
    if (whole)
      std::copy_n(x, c.count, to);
    else
      for (int64_t e = 0; e < c.count; ++e) to[c.rows[e]] = static_cast<double>(x[e]);
  }

  const ColumnSource& columns_;
  int64_t n_;
  int width_;
  std::vector<double> values_, moves_;
  std::vector<int32_t> moving_;
};

// -----------------------------------------------------------------
// The Hessian of the loss.

// Rows of the active features, local numbers 0 .. m-1, in single precision.
struct ActiveRows {
  std::vector<int64_t> starts;
  std::vector<int32_t> features;
  std::vector<float> values;

  void build(const ColumnSource& columns, const std::vector<int32_t>& active, int64_t n) {
    starts.assign(static_cast<std::size_t>(n) + 2, 0);
    for (const int32_t j : active) {
      const ColumnView c = columns[j];
      for (int64_t e = 0; e < c.count; ++e) ++starts[static_cast<std::size_t>(c.rows[e]) + 2];
    }
    for (std::size_t i = 2; i < starts.size(); ++i) starts[i] += starts[i - 1];
    // Growing would hold old and new entries at a time.
    features.clear(), features.shrink_to_fit();
    values.clear(), values.shrink_to_fit();
    features.resize(static_cast<std::size_t>(starts.back()));
    values.resize(features.size());
    for (std::size_t a = 0; a < active.size(); ++a) {
      const ColumnView c = columns[active[a]];
      for (int64_t e = 0; e < c.count; ++e) {
        const auto place =
            static_cast<std::size_t>(starts[static_cast<std::size_t>(c.rows[e]) + 1]++);
        features[place] = static_cast<int32_t>(a);
        values[place] = c.single ? static_cast<const float*>(c.values)[e]
                                 : static_cast<float>(static_cast<const double*>(c.values)[e]);
      }
    }
    starts.pop_back();
  }
};

// What a product reads: the curvature of the listed samples.
struct HessianRows {
  LossKind loss;
  int stride;
  const int32_t* y;
  const double* mass;
  const float* C;
  const float* Q;
  const int32_t* samples;
  std::size_t count;
};

namespace row_kernels {

// u <- H_i u for one sample.
template <LossKind loss, int P>
SPARSVM_INLINE void apply(const HessianRows& rows, int64_t i, float* u) {
  const int vectors = (P > 0 ? P : rows.stride) / 8;
  const int y = rows.y[i];
  const float* c = (loss == LossKind::logistic ? rows.Q : rows.C) + i * rows.stride;
  if constexpr (loss == LossKind::ovr_squared_hinge) {
    for (int k = 0; k < vectors; ++k) {
      const SimdF v = SPARSVM_LOADF(u + 8 * k) * SPARSVM_LOADF(c + 8 * k);
      SPARSVM_STOREF(u + 8 * k, v);
    }
  } else if constexpr (loss == LossKind::squared_hinge) {
    const float own = u[y];
    SimdF sum = {};
    for (int k = 0; k < vectors; ++k) {
      const SimdF v = (SPARSVM_LOADF(u + 8 * k) - own) * SPARSVM_LOADF(c + 8 * k);
      SPARSVM_STOREF(u + 8 * k, v);
      sum += v;
    }
    u[y] = -sum_of(sum);
  } else {
    SimdF sum = {};
    for (int k = 0; k < vectors; ++k) sum += SPARSVM_LOADF(u + 8 * k) * SPARSVM_LOADF(c + 8 * k);
    const float mean = sum_of(sum), p = static_cast<float>(rows.mass[i]);
    for (int k = 0; k < vectors; ++k) {
      const SimdF v = (SPARSVM_LOADF(u + 8 * k) - mean) * SPARSVM_LOADF(c + 8 * k) * p;
      SPARSVM_STOREF(u + 8 * k, v);
    }
  }
}

// out += X'HX d over the listed samples; the last row of d and out is the intercept's.
template <LossKind loss, int P>
SPARSVM_INLINE void product(const HessianRows& rows, const ActiveRows& X, const float* d,
                            int64_t intercept, float* out, float* u) {
  const int width = P > 0 ? P : rows.stride;
  for (std::size_t s = 0; s < rows.count; ++s) {
    const int64_t i = rows.samples[s];
    const int64_t from = X.starts[static_cast<std::size_t>(i)];
    const int64_t to = X.starts[static_cast<std::size_t>(i) + 1];
    if constexpr (P == 1) {
      float sum = intercept >= 0 ? d[intercept] : 0.0F;
      for (int64_t e = from; e < to; ++e) {
        sum += X.values[static_cast<std::size_t>(e)] * d[X.features[static_cast<std::size_t>(e)]];
      }
      sum *= rows.C[i];
      for (int64_t e = from; e < to; ++e) {
        out[X.features[static_cast<std::size_t>(e)]] += sum * X.values[static_cast<std::size_t>(e)];
      }
      if (intercept >= 0) out[intercept] += sum;
      continue;
    } else if constexpr (P > 1) {
      SimdF sum[P / 8] = {};
      if (intercept >= 0) {
        for (int k = 0; k < P / 8; ++k) sum[k] = SPARSVM_LOADF(d + intercept * P + 8 * k);
      }
      for (int64_t e = from; e < to; ++e) {
        const float x = X.values[static_cast<std::size_t>(e)];
        const float* row = d + static_cast<int64_t>(X.features[static_cast<std::size_t>(e)]) * P;
        for (int k = 0; k < P / 8; ++k) sum[k] += x * SPARSVM_LOADF(row + 8 * k);
      }
      for (int k = 0; k < P / 8; ++k) SPARSVM_STOREF(u + 8 * k, sum[k]);
    } else {
      for (int k = 0; k < width; ++k) u[k] = intercept >= 0 ? d[intercept * width + k] : 0.0F;
      for (int64_t e = from; e < to; ++e) {
        const float x = X.values[static_cast<std::size_t>(e)];
        const float* row =
            d + static_cast<int64_t>(X.features[static_cast<std::size_t>(e)]) * width;
        for (int k = 0; k < width; k += 8) {
          const SimdF sum = SPARSVM_LOADF(u + k) + x * SPARSVM_LOADF(row + k);
          SPARSVM_STOREF(u + k, sum);
        }
      }
    }
    if constexpr (P != 1) {
      apply<loss, P>(rows, i, u);
      for (int64_t e = from; e < to; ++e) {
        const float x = X.values[static_cast<std::size_t>(e)];
        float* row = out + static_cast<int64_t>(X.features[static_cast<std::size_t>(e)]) * width;
        for (int k = 0; k < width; k += 8) {
          const SimdF sum = SPARSVM_LOADF(row + k) + x * SPARSVM_LOADF(u + k);
          SPARSVM_STOREF(row + k, sum);
        }
      }
      if (intercept >= 0) {
        for (int k = 0; k < width; ++k) out[intercept * width + k] += u[k];
      }
    }
  }
}

template <LossKind loss>
SPARSVM_INLINE void product_of_width(const HessianRows& rows, const ActiveRows& X, const float* d,
                                     int64_t intercept, float* out, float* u) {
  switch (rows.stride) {
    case 1: return product<loss, 1>(rows, X, d, intercept, out, u);
    case 8: return product<loss, 8>(rows, X, d, intercept, out, u);
    case 16: return product<loss, 16>(rows, X, d, intercept, out, u);
    case 24: return product<loss, 24>(rows, X, d, intercept, out, u);
    default: return product<loss, 0>(rows, X, d, intercept, out, u);
  }
}

}  // namespace row_kernels

SPARSVM_DISPATCH static void hessian_product(const HessianRows& rows, const ActiveRows& X,
                                             const float* d, int64_t intercept, float* out,
                                             float* u) {
  switch (rows.loss) {
    case LossKind::squared_hinge:
      return row_kernels::product_of_width<LossKind::squared_hinge>(rows, X, d, intercept, out, u);
    case LossKind::logistic:
      return row_kernels::product_of_width<LossKind::logistic>(rows, X, d, intercept, out, u);
    default:
      return row_kernels::product_of_width<LossKind::ovr_squared_hinge>(rows, X, d, intercept, out,
                                                                        u);
  }
}

// V_i <- H_i V_i for all samples i < n.
SPARSVM_DISPATCH static void apply_hessians(const HessianRows& rows, int64_t n, float* V) {
  for (int64_t i = 0; i < n; ++i) {
    float* v = V + i * rows.stride;
    if (rows.loss == LossKind::squared_hinge)
      row_kernels::apply<LossKind::squared_hinge, 0>(rows, i, v);
    else if (rows.loss == LossKind::logistic)
      row_kernels::apply<LossKind::logistic, 0>(rows, i, v);
    else
      row_kernels::apply<LossKind::ovr_squared_hinge, 0>(rows, i, v);
  }
}

// The same product by BLAS, for columns that are not thin: on 1440 x 100 in 20 classes it takes a fifth of the
// time.
class DenseActive {
 public:
  void build(const ColumnSource& columns, const std::vector<int32_t>& active, bool intercept,
             int64_t n) {
    n_ = static_cast<int>(n), m_ = static_cast<int>(active.size()) + (intercept ? 1 : 0);
    X_.assign(static_cast<std::size_t>(n) * static_cast<std::size_t>(m_), 0.0F);
    for (std::size_t a = 0; a < active.size(); ++a) {
      const ColumnView c = columns[active[a]];
      float* to = X_.data() + a * static_cast<std::size_t>(n);
      for (int64_t e = 0; e < c.count; ++e)
        to[c.rows[e]] = c.single ? static_cast<const float*>(c.values)[e]
                                 : static_cast<float>(static_cast<const double*>(c.values)[e]);
    }
    if (intercept) std::fill(X_.end() - n, X_.end(), 1.0F);
  }
  void clear() { X_.clear(); }
  bool empty() const { return X_.empty(); }

  void product(const HessianRows& rows, const float* d, float* out) {
    V_.resize(static_cast<std::size_t>(n_) * static_cast<std::size_t>(rows.stride));
    gemm('N', 'T', rows.stride, n_, m_, 1.0F, d, rows.stride, X_.data(), n_, 0.0F, V_.data(),
         rows.stride);
    apply_hessians(rows, n_, V_.data());
    gemm('N', 'N', rows.stride, m_, n_, 1.0F, V_.data(), rows.stride, X_.data(), n_, 0.0F, out,
         rows.stride);
  }

 private:
  int n_ = 0, m_ = 0;
  std::vector<float> X_, V_;
};

}  // namespace sparsvm
