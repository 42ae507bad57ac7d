// Columns of the design as the interior point uses them: centred, divided by their penalty weights,
// priced. Member functions of InteriorPoint, declared in interior_point.hpp.
#pragma once

#include "solvers/interior_point/interior_point.hpp"

namespace sparsvm {

inline NewtonSystem InteriorPoint::make_system() {
  mean_.assign(d_, 0.0);
  std::vector<double> F;
  if (t_.intercept) F.assign(n_, 1.0);
  for (std::int64_t j = 0; j < d_; ++j)
    if (!(t_.omega[j] > 0.0)) add_free_feature(static_cast<std::int32_t>(j), F);
  const int q = n_ > 0 ? static_cast<int>(F.size() / n_) : 0;
  if (quadratic_) form_quadratic_part(q);
  return NewtonSystem(n_, K_, std::move(F), q, gram_, quadratic_columns_);
}

// A quadratic penalty has all its features active from the first iteration to the last: few of them
// are kept as columns, of many only X X'. The costs are those of the two eliminations.
inline void InteriorPoint::form_quadratic_part(int q) {
  std::vector<std::int32_t> list;
  for (std::int64_t j = 0; j < d_; ++j)
    if (t_.omega[j] > 0.0) list.push_back(static_cast<std::int32_t>(j));
  const double n = n_, columns = outputs_ * (static_cast<double>(list.size()) + q);
  const double features = n * columns * columns + columns * columns * columns / 3.0;
  if (1.5 * features >= outputs_ * n * n * n + n * n * n / 3.0) return form_quadratic_gram();
  quadratic_columns_.resize(list.size() * n_);
  gather(list, quadratic_columns_.data());
  if (t_.tilt) add_tilt_scores(list, quadratic_columns_);
}

// out = factor * X X' y + rest * out for a quadratic penalty.
inline void InteriorPoint::quadratic_product(double factor, const double* y, double rest,
                                             double* out) const {
  if (!gram_.empty()) {
    symv('U', n_, factor, gram_.data(), n_, y, 1, rest, out, 1);
    return;
  }
  if (quadratic_columns_.empty()) {  // nothing is penalised
    for (int i = 0; i < n_; ++i) out[i] *= rest;
    return;
  }
  const int m = static_cast<int>(quadratic_columns_.size() / n_);
  std::vector<double> along(m);
  gemv('T', n_, m, 1.0, quadratic_columns_.data(), n_, y, 1, 0.0, along.data(), 1);
  gemv('N', n_, m, factor, quadratic_columns_.data(), n_, along.data(), 1, rest, out, 1);
}

inline void InteriorPoint::add_free_feature(std::int32_t j, std::vector<double>& F) {
  std::vector<double> x(n_);
  t_.design.gather_columns(&j, 1, x.data());
  double sum = 0.0, raw = 0.0;
  for (double v : x) raw = std::max(raw, std::fabs(v));
  centre_column(j, x.data());
  for (double v : x) sum += v * v;
  const double scale = std::sqrt(sum / n_);
  if (!(scale > 1e-14 * raw)) return;  // constant: the intercept already has it
  for (double v : x) F.push_back(v / scale);
  free_features_.push_back(j);
  free_scale_.push_back(scale);
}

inline void InteriorPoint::form_quadratic_gram() {
  gram_.assign(static_cast<std::size_t>(n_) * n_, 0.0);
  const std::int64_t panel = 512;
  std::vector<std::int32_t> list;
  std::vector<double> X;
  for (std::int64_t j0 = 0; j0 < d_; j0 += panel) {
    list.clear();
    for (std::int64_t j = j0; j < std::min(d_, j0 + panel); ++j)
      if (t_.omega[j] > 0.0) list.push_back(static_cast<std::int32_t>(j));
    X.resize(list.size() * n_);
    gather(list, X.data());
    if (t_.tilt) add_tilt_scores(list, X);
    syrk('U', 'N', n_, static_cast<int>(list.size()), 1.0, X.data(), n_, 1.0, gram_.data(), n_);
    monitor_.poll();
  }
  for (int c = 0; c < n_; ++c)
    for (int r = c + 1; r < n_; ++r)
      gram_[static_cast<std::size_t>(c) * n_ + r] = gram_[static_cast<std::size_t>(r) * n_ + c];
}

inline void InteriorPoint::add_tilt_scores(const std::vector<std::int32_t>& list,
                                           const std::vector<double>& X) {
  tilt_scores_.resize(static_cast<std::size_t>(n_) * K_, 0.0);
  for (std::size_t c = 0; c < list.size(); ++c)
    for (int o = 0; o < outputs_; ++o) {
      const double v =
          t_.tilt[static_cast<std::size_t>(list[c]) * outputs_ + o] * layout_.inv_omega[list[c]];
      tilt_norm_ += v * v;
      for (int i = 0; i < n_; ++i) tilt_scores_[ck(o + shift_class_) + i] += v * X[c * n_ + i];
    }
}

inline void InteriorPoint::gather(const std::vector<std::int32_t>& list, double* out) {
  t_.design.gather_columns(list.data(), static_cast<std::int64_t>(list.size()), out);
  for (std::size_t c = 0; c < list.size(); ++c) {
    double* x = out + c * n_;
    centre_column(list[c], x);
    const double f = layout_.inv_omega[list[c]];
    for (int i = 0; i < n_; ++i) x[i] *= f;
  }
}

// The free intercept makes centring exact, and it keeps M_k well conditioned. A constant column
// becomes exactly zero. Sparse columns stay sparse, unless that takes most of them away: what is all
// but constant would compete with the intercept.
inline void InteriorPoint::centre_column(std::int32_t j, double* x) {
  if (!t_.intercept) return;
  double sum = 0.0, total = 0.0;
  for (int i = 0; i < n_; ++i) {
    sum += t_.lambda[i] * (x[i] - x[0]);
    total += t_.lambda[i];
  }
  const double mean = x[0] + sum / total;
  if (t_.design.sparse()) {
    double before = 0.0, after = 0.0;
    for (int i = 0; i < n_; ++i) {
      before += x[i] * x[i];
      after += (x[i] - mean) * (x[i] - mean);
    }
    if (!(after < kConstant * before)) return;
  }
  mean_[j] = mean;
  for (int i = 0; i < n_; ++i) x[i] -= mean;
}

// dG_ = X' (sample-major n x K array), outputs only.
inline void InteriorPoint::price(const double* sample_major) {
  if (outputs_ == K_) {
    t_.design.transposed(sample_major, K_, dG_.data());
    return;
  }
  std::vector<double> column(n_);
  for (int i = 0; i < n_; ++i) column[i] = sample_major[static_cast<std::size_t>(i) * K_ + 1];
  t_.design.transposed(column.data(), 1, dG_.data());
}

}  // namespace sparsvm
