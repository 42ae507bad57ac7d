// The part of the Newton system that couples the classes: one column per penalty group that spans
// them. N_k (n x R) is the class-k part of those columns, scaled so that the coupling is sum_k N_k
// N_k' with unit weights. After them come the columns of explicit coordinates, normalised, with weights
// of their own: N' dY = weight * z.
//
// On sparse data the columns are sparse too, and then working with the explicit inverse of M_k costs
// nnz(N_k) * (n + R) instead of the n^2 R + n R^2 of dense triangular solves (News20, 200
// documents, 20 classes: 5 x less time for an iteration).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "penalty/cone_blocks.hpp"

namespace sparsvm {

// Penalised coordinates that are unknowns of the interior point's Newton system in their own right.
//
// Where a group holds columns of very different sizes, the weight of the largest is far below the
// group's bound and all but free: D gives it a curvature 1e12 times that of the others. With a tiny
// alpha all weights are all but free. Eliminated like the rest, X D X' would have no digits of them
// left. Such coordinates are taken out of their blocks one by one, largest first: with
// D = diag(delta) + kappa v v' and coordinate o,
//
//     D = (1/rho) l l' + D_rest,     1/rho = delta_o + kappa v_o^2,     l_o = 1,
//     l_r = rho kappa v_o v_r,       D_rest = diag(delta_rest) + kappa rho delta_o v_r v_r'
//
// so that what is left of a block has the same form and nothing cancels. The unknown of o is z =
// l' dG / rho, its column in the system P = sum_c l_c x_c.
class ExplicitCoordinates {
 public:
  struct Term {
    int64_t coordinate;
    double factor;
  };

  // Chooses the coordinates with D |x|^2 above `alike` times the limit, and in groups of very different
  // columns above the limit if that is less; column_size has |x| of each column. Those that were
  // explicit stay so.
  void choose(const ConeBlocks& blocks, const double* column_size, double limit, double alike);

  void clear();

  int count() const { return static_cast<int>(rho_.size()); }
  bool is_explicit(int64_t c) const {
    return count() > 0 && c < static_cast<int64_t>(is_explicit_.size()) && is_explicit_[c];
  }
  // Weight of the rank-one part of what is left of a block.
  double kappa(const ConeBlocks& blocks, int64_t b) const {
    return count() > 0 ? kappa_[b] : blocks.kappa(b);
  }
  double rho(int o) const { return rho_[o]; }
  // The terms l_c of an explicit coordinate, its own first.
  const Term* begin(int o) const { return terms_.data() + first_[o]; }
  const Term* end(int o) const { return terms_.data() + first_[o + 1]; }

  // Completes dG with the explicit coordinates, given l' dG = rho z. (x' dY itself, which all but
  // cancels, has no digits that delta could multiply.)
  void complete(const double* z, double* dg) const;

 private:
  std::vector<char> is_explicit_, done_;
  std::vector<double> kappa_, rho_;
  std::vector<Term> terms_;
  std::vector<std::size_t> first_;

  // Takes the explicit coordinates out of their blocks, largest first.
  void eliminate(const ConeBlocks& blocks, const double* column_size, bool any);

  void take_out(const ConeBlocks& blocks, int64_t b, int64_t o);
};

class ClassCoupling {
 public:
  int count() const { return count_; }
  bool sparse() const { return sparse_; }

  int n_explicit() const { return static_cast<int>(weight_.size()); }  // the last of the columns
  int n_groups() const { return count_ - n_explicit(); }
  double weight(int r) const { return r < n_groups() ? 1.0 : weight_[r - n_groups()]; }

  void clear();

  // Xw: gathered columns, n x m. Blocks without a rank-one part do not couple. `joint`: blocks span
  // classes.
  void build(const ConeBlocks& blocks, const ExplicitCoordinates& explicits, const double* Xw,
             int n, int n_classes, bool joint, bool allow_sparse);

  // What z has to be multiplied by for the explicit coordinates as they are, before normalisation.
  double unknown_scale(int o) const { return 1.0 / size_[o]; }

  // Mean over samples of the diagonal of N_k N_k', without the explicit coordinates.
  double mean_diagonal(int k) const;

  // N_k as an n x R matrix, when built without sparsity.
  const double* dense(int k) const { return values_.data() + k * per_class(); }

  // z += N_k' y
  void gather(int k, const double* y, double* z) const;

  // out += f N_k z
  void scatter(int k, double f, const double* z, double* out) const;

  // P (n x R) = M_k^-1 N_k and the lower triangle of T += N_k' P, from the full inverse of M_k if it
  // is given, which sparse columns need, or from its Cholesky factor. (With 38 samples and 40 to 110
  // columns the triangular solves take three times as long as products with the inverse.)
  void eliminate(int k, const double* factor, const double* inverse, std::vector<double>& P,
                 double* T, int ldt);

 private:
  int n_ = 0, count_ = 0;
  bool sparse_ = false;
  std::vector<ExplicitCoordinates::Term> terms_;  // of column r: [first_[r], first_[r + 1])
  std::vector<std::size_t> first_;
  std::vector<double> weight_, size_;  // per explicit coordinate
  std::vector<int64_t> start_;
  std::vector<int32_t> row_;
  std::vector<double> values_;  // per class: the pattern's values, or n x R dense
  std::vector<double> rows_of_P_, row_sum_;

  std::size_t per_class() const {
    return sparse_ ? row_.size() : static_cast<std::size_t>(n_) * count_;
  }

  void list_terms(const ConeBlocks& blocks, const ExplicitCoordinates& explicits, bool joint);

  // Brings the column of an explicit coordinate to a mean square of one.
  void normalise(int o, double rho, int n_classes);

  // The rows that any feature of a group touches, as long as they are few.
  void find_pattern(const ConeBlocks& blocks, const double* Xw);
};

// -----------------------------------------------------------------
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

class FeatureElimination {
 public:
  int size() const { return size_; }

  // columns[k]: B_k followed by -F where class k has free coefficients (n x width, column-major).
  void set_columns(int n, std::vector<std::vector<double>> columns, const ClassCoupling& coupling);

  int width(int k) const { return offset_[k + 1] - offset_[k]; }
  int offset(int k) const { return offset_[k]; }
  const double* columns(int k) const { return columns_[k].data(); }

  // C without its unit diagonal into the lower triangle (size x size), for Delta (K x n); poll is
  // called between blocks.
  void form(const std::vector<double>& delta, double* C, const std::function<void()>& poll);

  // y0 = H f + e * e_row / sum, for f (K x n).
  void start(const std::vector<double>& f, const std::vector<double>& row, std::vector<double>& y0);

  // z = J' y
  void gather(const std::vector<double>& y, double* z) const;

  // With g = f - J z:  dY = H g + e * e_row / sum,  dxi = (sum_k e_k g_k - e_row) / sum.
  void finish(std::vector<double>& f, const std::vector<double>& row, const double* z,
              std::vector<double>& dY, std::vector<double>& dxi);

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

  void invert_pairs(const std::vector<double>& delta);

  void invert(const std::vector<double>& delta);

  double hessian(int k, int l, int i) const;

  // C_kl = P_k' diag(h_kl) P_l
  void add_block(int k, int l, double* C);

  // The rows of the coupling: with D_k = N_k - N_p relative to the class p of the largest e and Z =
  // H N, they are Z_k' P_k against class k and sum_k D_k' Z_k among themselves (Z sums to zero over
  // k).
  void add_coupling(double* C);

  // out = H g + e * row / sum; relative to the class with the largest e, so that nothing cancels.
  void apply(const std::vector<double>& g, const std::vector<double>& row, std::vector<double>& out,
             std::vector<double>* dxi) const;

  void apply_pairs(const double* g, const double* row, double* out, double* dxi) const;
};

}  // namespace sparsvm
