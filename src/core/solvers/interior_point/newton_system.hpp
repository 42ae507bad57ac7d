// The Newton system of the interior point for the multiclass hinge.
//
// Unknowns: dY_k (n, one per class), dxi (n), db_k (q free columns F per class, the intercept and
// unpenalised features):
//
//     M_k dY_k + sum_r N_kr (sum_l N_lr' dY_l) + dxi - F db_k = f_k
//     sum_k dY_k = e_row,        F' dY_k = e_col_k,        M_k = X D_k X' + diag(U_k / Y_k)
//
// N couples the classes and exists only for groups that span them (one column per group), and for
// the explicit coordinates of class_coupling.hpp, whose z_r = sum_l N_lr' dY_l / weight_r are unknowns
// too: dividing what all but cancels by a tiny weight would leave no digits. Two
// eliminations give a preconditioner: by samples, with K factorisations of size n
// and one Schur complement, or by features, with one factorisation of the size of
// the active features; the cheaper one is taken, never one of size n*K. Conjugate residuals of the
// unregularised operator do the rest: without them the last digits of the gap are lost.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "linalg/blas.hpp"
#include "linalg/dense.hpp"
#include "penalty/cone_blocks.hpp"
#include "solvers/interior_point/class_coupling.hpp"
#include "solvers/interior_point/settings.hpp"

namespace sparsvm {

struct NewtonVector {
  std::vector<double> y, xi, b;  // K*n class-major, n, (classes with free columns)*q
  std::vector<double> z;         // one per explicit coordinate
  void resize(std::size_t ny, std::size_t nxi, std::size_t nb) {
    y.assign(ny, 0.0);
    xi.assign(nxi, 0.0);
    b.assign(nb, 0.0);
  }
};

// The columns F of the coefficients that are not penalised: a constant one for the intercept, and
// those of unpenalised features.
struct FreeColumns {
  int n = 0, classes = 0, q = 0;
  std::vector<double> values;  // n x q, column-major

  // Shifting all classes alike changes nothing, so one class carries no free coefficients; with two
  // classes it is the one pinned to zero.
  bool has(int k) const { return q > 0 && (classes == 2 ? k == 1 : k < classes - 1); }
  int offset(int k) const { return q * (classes == 2 ? 0 : k); }
  int count() const { return q * (classes == 2 ? 1 : classes - 1); }
  const double* data() const { return values.data(); }
};

// Of a quadratic penalty X X' (n x n), or X itself (n x m) where that has few columns; otherwise both
// are empty.
struct QuadraticPart {
  std::vector<double> gram, columns;
};

class NewtonSystem {
 public:
  // Both are kept by the caller.
  NewtonSystem(const FreeColumns& free, const QuadraticPart& quadratic)
      : free_(free), quadratic_(quadratic), n_(free.n), K_(free.classes) {
    diag_.resize(static_cast<std::size_t>(K_) * n_);
    factored_.assign(K_, false);
  }

  // Decides which coordinates are unknowns of their own, before assemble(): those with D |x|^2 above
  // the limit, or `alike` times that where others of the group are as large; column_size has |x| of
  // each gathered column.
  void choose_explicit(const ConeBlocks& blocks, const double* column_size, double limit,
                       double alike) {
    explicit_.choose(blocks, column_size, limit, alike);
  }
  void clear_explicit() { explicit_.clear(); }
  bool is_explicit(int64_t c) const { return explicit_.is_explicit(c); }
  int n_explicit() const { return explicit_.count(); }
  bool by_features() const { return by_features_; }  // which elimination the last assembly chose

  // The right-hand side z of a step after which G of the explicit coordinates is again what their blocks
  // take it to be, for given differences of the two.
  void remove_drift(const double* drift, std::vector<double>& z) const;

  // dG of the explicit coordinates from the unknowns of a solution and from dG of the others.
  void complete(const NewtonVector& v, double* dg) const;

  // Forms M_k and N_k. `joint`: blocks span classes.
  void assemble(const ConeBlocks& blocks, const double* Xw, bool joint, bool shared_diagonal,
                const double* U, const double* Y);

  // The elimination regularises M_k by this fraction of the operator's size. Where the curvature
  // sits in the coupling, in the free columns or in other samples, M_k alone is close to singular
  // and eliminating it first would lose all digits; the conjugate residuals of solve() take the
  // regularisation out again, in a few steps as long as it is small against the whole operator.
  double regularisation = 0.0;

  // Weight of a proximal term on the free coefficients: F' dY_k + proximal * db_k = e_col_k. Where
  // the optimal face is unbounded in them, it keeps the iterates from running away along it.
  double proximal = 0.0;

  // Called between the parts of a factorisation, so that Ctrl-C need not wait for all of them.
  std::function<void()> poll = [] {};

  // Whether the next system may be assembled in single precision. Its solution is good to about
  // kSingle, enough for the direction of a step far from the end.
  bool coarse = false;

  // What a solve can be expected to attain.
  double attainable() const {
    return method_ == Method::single ? interior_point_settings::kSingle : 0.0;
  }

  // After a solve that failed: whether it was in single precision, which is not used from then on. The
  // system is to be assembled again.
  bool leave_single_precision() {
    const bool left = method_ == Method::single;
    if (left) single_suffices_ = false;
    return left;
  }

  // Whether the last assembly left coordinates eliminated because making them unknowns would cost too much.
  bool too_expensive() const { return too_expensive_; }
  // After a solve that failed for that: makes them unknowns at any cost from then on. The system is to be
  // assembled again.
  void choose_at_any_cost() { at_any_cost_ = true; }

  // Returns false when the matrices cannot be factored even with regularisation.
  bool factor() { return by_features_ ? factor_features() : factor_samples(); }

  // Solves by conjugate residuals of the operator itself, preconditioned by the (regularised)
  // factorisation; usually one or two steps, until the relative residual is at most `target`. Returns
  // that residual.
  double solve(const NewtonVector& rhs, NewtonVector& out,
               double target = interior_point_settings::kRefined);

 private:
  // By samples M_k is inverted in single precision, inverted, or factored.
  enum class Method : char { single, inverse, factor };

  const FreeColumns& free_;
  const QuadraticPart& quadratic_;
  int n_, K_, schur_size_ = 0;
  // M_k: above the diagonal M (its diagonal is diag_), below it the inverse, or from the diagonal on
  // the Cholesky factor where columns couple the classes.
  std::vector<double> M_, diag_, inverse_diagonal_;
  std::vector<char> factored_;  // false: M_k is diagonal
  // In single precision: above the diagonal M_k, and in another array its inverse.
  std::vector<float> single_, single_inverse_, single_columns_;
  Method method_ = Method::factor;
  bool single_suffices_ = true, inverse_suffices_ = true, too_expensive_ = false,
       at_any_cost_ = false;
  SpdInverse<double> spd_inverse_;
  SpdInverse<float> single_spd_inverse_;
  ExplicitCoordinates explicit_;
  ClassCoupling coupling_;
  ColumnSums sums_;
  FeatureElimination features_;
  bool by_features_ = false;
  std::vector<double> C_;  // Schur complement, lower triangle
  std::vector<double> inverse_, inverse_sum_, factor_inverse_, half_, coupled_, scaled_,
      solved_free_, shared_diag_;
  double curvature_scale_ = 0.0;  // largest mean diagonal of the penalty's part over classes
  std::vector<std::vector<int64_t>> class_coords_;
  std::vector<std::vector<int64_t>> class_blocks_;  // per-class groups with a rank-one part
  // Directions of the refinements, what the operator makes of them (up to sign), its square.
  struct Tried {
    NewtonVector direction, image;
    double square = 0.0;
  };
  std::vector<Tried> tried_;
  NewtonVector res_, best_;
  std::vector<double> z_, g_, product_;

  double* block(int k) { return M_.data() + static_cast<std::size_t>(k) * n_ * n_; }
  const double* block(int k) const { return M_.data() + static_cast<std::size_t>(k) * n_ * n_; }
  float* single_block(int k) { return single_.data() + static_cast<std::size_t>(k) * n_ * n_; }
  std::size_t idx(int r, int c) const { return static_cast<std::size_t>(c) * n_ + r; }
  std::size_t at(int r, int c) const { return static_cast<std::size_t>(c) * schur_size_ + r; }

  void build_class_lists(const ConeBlocks& blocks, bool joint);

  // B_k with X D_k X' = B_k B_k': the coordinates of class k times the roots of the diagonal, then
  // the rank-one parts of its own groups.
  void scaled_columns(const ConeBlocks& blocks, const double* Xw, int k, std::vector<double>& B);
  void list_scaled_columns(const ConeBlocks& blocks, int k);

  int free_slot(int k) const { return features_.offset(k) + features_.width(k) - free_.q; }

  bool factor_schur();

  // One right-hand side: triangular vector solves, where potrs would first pack the whole factor.
  static void solve_factored(int size, const double* factor, double* x);

  // In place: v holds (f, e_row, e_col) and leaves with (dY, dxi, db).
  void solve_once(NewtonVector& v) {
    if (by_features_)
      solve_features(v);
    else
      solve_samples(v);
  }

  // Columns of class k that are not free ones.
  int own_columns(int k) const { return features_.width(k) - (free_.has(k) ? free_.q : 0); }

  // newton_solve.cpp
  double residual(const NewtonVector& rhs, const NewtonVector& v, NewtonVector& res);
  void subtract_product(int k, const double* y, double* out);
  bool refine(int it, double scale, double scale_dual, NewtonVector& out);
  void subtract_operator(const NewtonVector& v, NewtonVector& res);
  static double largest(const std::vector<double>& a);
  static double dot(const std::vector<double>& a, const std::vector<double>& b);
  static void combine(NewtonVector& a, double f, const NewtonVector& b);

  // newton_system.cpp
  void form_gram(const ConeBlocks& blocks, const double* Xw, int k, double* M);
  void choose_method(bool shared_diagonal);
  void reserve_matrices();
  void form_single(const ConeBlocks& blocks, const double* Xw, int k);
  bool invert_single(int k);
  bool factor_samples();
  bool factor_class(int k);
  void add_inverse(int k);
  void invert_factor(const double* L, int first, int last, double* T);
  void add_free_terms(int k);
  void add_free_terms_diagonal(int k);
  void store_free_terms(int k);
  void add_coupling_terms(int k);
  void store_inverse(int k);
  void solve_class(int k, double* x);
  void solve_samples(NewtonVector& v);

  // newton_solve.cpp
  bool prefer_features(const ConeBlocks& blocks, bool joint) const;
  void assemble_features(const ConeBlocks& blocks, const double* Xw, const double* U,
                         const double* Y);
  bool factor_features();
  void solve_features(NewtonVector& v);
};

}  // namespace sparsvm
