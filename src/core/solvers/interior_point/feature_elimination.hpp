// The Newton system of the interior point, eliminated by features.
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

#include <cstdint>
#include <functional>
#include <vector>

#include "solvers/interior_point/class_coupling.hpp"

namespace sparsvm {

class FeatureElimination {
 public:
  int size() const { return size_; }

  /// columns[k]: B_k followed by -F where class k has free coefficients (n x width, column-major).
  void set_columns(int n, std::vector<std::vector<double>> columns, const ClassCoupling& coupling);

  int width(int k) const { return offset_[k + 1] - offset_[k]; }
  int offset(int k) const { return offset_[k]; }
  const double* columns(int k) const { return columns_[k].data(); }

  /// C without its unit diagonal into the lower triangle (size x size), for Delta (K x n); poll is
  /// called between blocks.
  void form(const std::vector<double>& delta, double* C, const std::function<void()>& poll);

  /// y0 = H f + e * e_row / sum, for f (K x n).
  void start(const std::vector<double>& f, const std::vector<double>& row, std::vector<double>& y0);

  /// z = J' y
  void gather(const std::vector<double>& y, double* z) const;

  /// With g = f - J z:  dY = H g + e * e_row / sum,  dxi = (sum_k e_k g_k - e_row) / sum.
  void finish(std::vector<double>& f, const std::vector<double>& row, const double* z,
              std::vector<double>& dY, std::vector<double>& dxi);

 private:
  int n_ = 0, K_ = 0, size_ = 0;
  std::vector<std::vector<double>> columns_;
  const ClassCoupling* coupling_ = nullptr;
  std::vector<int> offset_, pivot_;
  std::vector<double> e_, sum_, weighted_;
  /// Two classes without coupling: H_i = h_i (1, -1)(1, -1)' with h = 1 / (Delta_0 + Delta_1), one
  /// division per sample and no cancellation; the systems are solved five times per Newton step.
  bool pair_ = false;
  std::vector<double> delta_, h_;

  std::size_t at(int k, int i) const { return static_cast<std::size_t>(k) * n_ + i; }

  void invert_pairs(const std::vector<double>& delta);

  void invert(const std::vector<double>& delta);

  double hessian(int k, int l, int i) const;

  /// C_kl = P_k' diag(h_kl) P_l
  void add_block(int k, int l, double* C);

  /// The rows of the coupling: with D_k = N_k - N_p relative to the class p of the largest e and Z =
  /// H N, they are Z_k' P_k against class k and sum_k D_k' Z_k among themselves (Z sums to zero over
  /// k).
  void add_coupling(double* C);

  /// out = H g + e * row / sum; relative to the class with the largest e, so that nothing cancels.
  void apply(const std::vector<double>& g, const std::vector<double>& row, std::vector<double>& out,
             std::vector<double>* dxi) const;

  void apply_pairs(const double* g, const double* row, double* out, double* dxi) const;
};

}  // namespace sparsvm
