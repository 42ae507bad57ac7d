#include "solvers/interior_point/feature_elimination.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "linalg/blas.hpp"
#include "linalg/gram.hpp"

namespace sparsvm {

void FeatureElimination::set_columns(int n, std::vector<std::vector<double>> columns,
                                     const ClassCoupling& coupling) {
  n_ = n;
  K_ = static_cast<int>(columns.size());
  columns_ = std::move(columns);
  coupling_ = &coupling;
  offset_.assign(1, 0);
  for (const auto& c : columns_)
    offset_.push_back(offset_.back() + static_cast<int>(c.size() / n_));
  size_ = offset_.back() + coupling.count();
}

void FeatureElimination::form(const std::vector<double>& delta, double* C,
                              const std::function<void()>& poll) {
  pair_ = K_ == 2 && coupling_->count() == 0;
  if (pair_)
    invert_pairs(delta);
  else
    invert(delta);
  std::fill(C, C + static_cast<std::size_t>(size_) * size_, 0.0);
  for (int l = 0; l < K_; ++l) {
    if (width(l) == 0) continue;
    poll();
    for (int k = l; k < K_; ++k)
      if (width(k) > 0) add_block(k, l, C);
  }
  if (coupling_->count() > 0) add_coupling(C);
}

void FeatureElimination::start(const std::vector<double>& f, const std::vector<double>& row,
                               std::vector<double>& y0) {
  y0.resize(f.size());
  apply(f, row, y0, nullptr);
}

void FeatureElimination::gather(const std::vector<double>& y, double* z) const {
  for (int k = 0; k < K_; ++k) {
    if (width(k) > 0)
      gemv('T', n_, width(k), 1.0, columns_[k].data(), n_, y.data() + at(k, 0), 1, 0.0,
           z + offset_[k], 1);
  }
  const int R = coupling_->count();
  std::fill(z + offset_[K_], z + offset_[K_] + R, 0.0);
  for (int k = 0; k < K_ && R > 0; ++k) coupling_->gather(k, y.data() + at(k, 0), z + offset_[K_]);
}

void FeatureElimination::finish(std::vector<double>& f, const std::vector<double>& row,
                                const double* z, std::vector<double>& dY,
                                std::vector<double>& dxi) {
  for (int k = 0; k < K_; ++k) {
    if (width(k) > 0)
      gemv('N', n_, width(k), -1.0, columns_[k].data(), n_, z + offset_[k], 1, 1.0,
           f.data() + at(k, 0), 1);
    if (coupling_->count() > 0) coupling_->scatter(k, -1.0, z + offset_[K_], f.data() + at(k, 0));
  }
  dY.resize(f.size());
  apply(f, row, dY, &dxi);
}

void FeatureElimination::invert_pairs(const std::vector<double>& delta) {
  delta_ = delta;
  h_.resize(n_);
  for (int i = 0; i < n_; ++i) h_[i] = 1.0 / (delta_[at(0, i)] + delta_[at(1, i)]);
}

void FeatureElimination::invert(const std::vector<double>& delta) {
  e_.resize(delta.size());
  sum_.assign(n_, 0.0);
  pivot_.assign(n_, 0);
  for (int k = 0; k < K_; ++k)
    for (int i = 0; i < n_; ++i) {
      e_[at(k, i)] = 1.0 / delta[at(k, i)];
      sum_[i] += e_[at(k, i)];
      if (e_[at(k, i)] > e_[at(pivot_[i], i)]) pivot_[i] = k;
    }
}

double FeatureElimination::hessian(int k, int l, int i) const {
  if (pair_) return k == l ? h_[i] : -h_[i];
  if (k != l) return -e_[at(k, i)] * e_[at(l, i)] / sum_[i];
  double others = 0.0;
  for (int m = 0; m < K_; ++m)
    if (m != k) others += e_[at(m, i)];
  return e_[at(k, i)] * (others / sum_[i]);
}

void FeatureElimination::add_block(int k, int l, double* C) {
  const int wl = width(l);
  weighted_.resize(static_cast<std::size_t>(n_) * wl);
  std::vector<double> h(n_);
  for (int i = 0; i < n_; ++i) h[i] = k == l ? std::sqrt(hessian(k, k, i)) : hessian(k, l, i);
  for (int c = 0; c < wl; ++c)
    for (int i = 0; i < n_; ++i)
      weighted_[static_cast<std::size_t>(c) * n_ + i] =
          h[i] * columns_[l][static_cast<std::size_t>(c) * n_ + i];
  double* block = C + static_cast<std::size_t>(offset_[l]) * size_ + offset_[k];
  if (k == l)
    syrk('L', 'T', wl, n_, 1.0, weighted_.data(), n_, 0.0, block, size_);
  else
    gemm('T', 'N', width(k), wl, n_, 1.0, columns_[k].data(), n_, weighted_.data(), n_, 0.0, block,
         size_);
}

void FeatureElimination::add_coupling(double* C) {
  const int R = coupling_->count(), first = offset_[K_];
  const std::size_t part = static_cast<std::size_t>(n_) * R;
  std::vector<double> D(part * K_), Z(part * K_);
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < n_; ++i) {
      const std::size_t a = static_cast<std::size_t>(r) * n_ + i;
      const int p = pivot_[i];
      const double base = coupling_->dense(p)[a];
      double mean = 0.0, others = 0.0;
      for (int k = 0; k < K_; ++k) {
        D[k * part + a] = k == p ? 0.0 : coupling_->dense(k)[a] - base;
        mean += e_[at(k, i)] * D[k * part + a];
      }
      mean /= sum_[i];
      for (int k = 0; k < K_; ++k) {
        if (k == p) continue;
        Z[k * part + a] = e_[at(k, i)] * (D[k * part + a] - mean);
        others += Z[k * part + a];
      }
      Z[p * part + a] = -others;
    }
  for (int k = 0; k < K_; ++k) {
    if (width(k) > 0)
      gemm('T', 'N', R, width(k), n_, 1.0, Z.data() + k * part, n_, columns_[k].data(), n_, 0.0,
           C + static_cast<std::size_t>(offset_[k]) * size_ + first, size_);
    add_lower_product(R, n_, D.data() + k * part, Z.data() + k * part,
                      C + static_cast<std::size_t>(first) * size_ + first, size_);
  }
}

void FeatureElimination::apply(const std::vector<double>& g, const std::vector<double>& row,
                               std::vector<double>& out, std::vector<double>* dxi) const {
  if (pair_) return apply_pairs(g.data(), row.data(), out.data(), dxi ? dxi->data() : nullptr);
  for (int i = 0; i < n_; ++i) {
    const int p = pivot_[i];
    const double base = g[at(p, i)];
    double mean = 0.0, others = 0.0;
    for (int k = 0; k < K_; ++k)
      if (k != p) mean += e_[at(k, i)] * (g[at(k, i)] - base);
    mean /= sum_[i];
    for (int k = 0; k < K_; ++k) {
      if (k == p) continue;
      out[at(k, i)] = e_[at(k, i)] * (g[at(k, i)] - base - mean + row[i] / sum_[i]);
      others += out[at(k, i)];
    }
    out[at(p, i)] = row[i] - others;
    if (dxi) (*dxi)[i] = base + mean - row[i] / sum_[i];
  }
}

void FeatureElimination::apply_pairs(const double* g, const double* row, double* out,
                                     double* dxi) const {
  const double *g0 = g, *g1 = g + n_, *d0 = delta_.data(), *d1 = d0 + n_, *h = h_.data();
  double *out0 = out, *out1 = out + n_;
  for (int i = 0; i < n_; ++i) {
    const double difference = g1[i] - g0[i];
    out0[i] = h[i] * (d1[i] * row[i] - difference);
    out1[i] = h[i] * (d0[i] * row[i] + difference);
  }
  if (!dxi) return;
  for (int i = 0; i < n_; ++i) dxi[i] = h[i] * (d1[i] * g0[i] + d0[i] * (g1[i] - d1[i] * row[i]));
}

}  // namespace sparsvm
