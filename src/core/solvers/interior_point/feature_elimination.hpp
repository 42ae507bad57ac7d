// The Newton system of the interior point, eliminated from the side of the features.
//
// With M_k = Delta_k + B_k B_k' (Delta_k diagonal, one column of B_k per active coordinate) the
// unknowns phi_k = B_k' dY_k turn the system into a diagonal one in dY and dxi. What is left is of
// the size Q of the active features,
//
//     C = J' H J + I,      J_k = [B_k, -F, N_k],     H_i = diag(e_i) - e_i e_i' / sum(e_i),
//
// with e_ik = 1 / Delta_k,ii and H_i a K x K matrix per sample. It costs n Q^2 instead of K n^3:
// the right side for many samples and few active features. The entries of H are formed without
// cancellation, H_kk = e_k (sum of the others) / sum: at a sample that is not tied, one e_k exceeds
// the others by 1e18, and e_k - e_k^2 / sum has no correct digit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "linalg/blas.hpp"
#include "linalg/gram.hpp"
#include "solvers/interior_point/class_coupling.hpp"

namespace sparsvm {

class FeatureElimination {
 public:
  int size() const { return size_; }

  // columns[k]: B_k followed by -F where class k has free coefficients (n x width, column-major).
  void set_columns(int n, std::vector<std::vector<double>> columns, const ClassCoupling& coupling) {
    n_ = n;
    K_ = static_cast<int>(columns.size());
    columns_ = std::move(columns);
    coupling_ = &coupling;
    offset_.assign(1, 0);
    for (const auto& c : columns_)
      offset_.push_back(offset_.back() + static_cast<int>(c.size() / n_));
    size_ = offset_.back() + coupling.count();
  }

  int width(int k) const { return offset_[k + 1] - offset_[k]; }
  int offset(int k) const { return offset_[k]; }
  const double* columns(int k) const { return columns_[k].data(); }

  // C without its unit diagonal into the lower triangle (size x size), for Delta (K x n); poll is
  // called between blocks.
  void form(const std::vector<double>& delta, double* C, const std::function<void()>& poll) {
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

  // y0 = H f + e * e_row / sum, for f (K x n).
  void start(const std::vector<double>& f, const std::vector<double>& row,
             std::vector<double>& y0) {
    y0.resize(f.size());
    apply(f, row, y0, nullptr);
  }

  // z = J' y
  void gather(const std::vector<double>& y, double* z) const {
    for (int k = 0; k < K_; ++k) {
      if (width(k) > 0)
        gemv('T', n_, width(k), 1.0, columns_[k].data(), n_, y.data() + at(k, 0), 1, 0.0,
             z + offset_[k], 1);
    }
    const int R = coupling_->count();
    std::fill(z + offset_[K_], z + offset_[K_] + R, 0.0);
    for (int k = 0; k < K_ && R > 0; ++k)
      coupling_->gather(k, y.data() + at(k, 0), z + offset_[K_]);
  }

  // With g = f - J z:  dY = H g + e * e_row / sum,  dxi = (sum_k e_k g_k - e_row) / sum.
  void finish(std::vector<double>& f, const std::vector<double>& row, const double* z,
              std::vector<double>& dY, std::vector<double>& dxi) {
    for (int k = 0; k < K_; ++k) {
      if (width(k) > 0)
        gemv('N', n_, width(k), -1.0, columns_[k].data(), n_, z + offset_[k], 1, 1.0,
             f.data() + at(k, 0), 1);
      if (coupling_->count() > 0) coupling_->scatter(k, -1.0, z + offset_[K_], f.data() + at(k, 0));
    }
    dY.resize(f.size());
    apply(f, row, dY, &dxi);
  }

 private:
  int n_ = 0, K_ = 0, size_ = 0;
  std::vector<std::vector<double>> columns_;
  const ClassCoupling* coupling_ = nullptr;
  std::vector<int> offset_, pivot_;
  std::vector<double> e_, sum_, weighted_;
  // Two classes without coupling: H_i = h_i (1, -1)(1, -1)' with h = 1 / (Delta_0 + Delta_1), one
  // division per sample and no cancellation; the systems are solved five times per Newton step.
  bool pair_ = false;
  std::vector<double> delta_, h_;

  std::size_t at(int k, int i) const { return static_cast<std::size_t>(k) * n_ + i; }

  void invert_pairs(const std::vector<double>& delta) {
    delta_ = delta;
    h_.resize(n_);
    for (int i = 0; i < n_; ++i) h_[i] = 1.0 / (delta_[at(0, i)] + delta_[at(1, i)]);
  }

  void invert(const std::vector<double>& delta) {
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

  double hessian(int k, int l, int i) const {
    if (pair_) return k == l ? h_[i] : -h_[i];
    if (k != l) return -e_[at(k, i)] * e_[at(l, i)] / sum_[i];
    double others = 0.0;
    for (int m = 0; m < K_; ++m)
      if (m != k) others += e_[at(m, i)];
    return e_[at(k, i)] * (others / sum_[i]);
  }

  // C_kl = P_k' diag(h_kl) P_l
  void add_block(int k, int l, double* C) {
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
      gemm('T', 'N', width(k), wl, n_, 1.0, columns_[k].data(), n_, weighted_.data(), n_, 0.0,
           block, size_);
  }

  // The rows of the coupling: with D_k = N_k - N_p relative to the class p of the largest e and Z =
  // H N, they are Z_k' P_k against class k and sum_k D_k' Z_k among themselves (Z sums to zero over
  // k).
  void add_coupling(double* C) {
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

  // out = H g + e * row / sum; relative to the class with the largest e, so that nothing cancels.
  void apply(const std::vector<double>& g, const std::vector<double>& row, std::vector<double>& out,
             std::vector<double>* dxi) const {
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

  void apply_pairs(const double* g, const double* row, double* out, double* dxi) const {
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
};

}  // namespace sparsvm
