// The Newton system of the interior point for the multiclass hinge.
//
// Unknowns: dY_k (n, one per class), dxi (n), db_k (q free columns F per class, the intercept and
// unpenalised features):
//
//     M_k dY_k + sum_r N_kr (sum_l N_lr' dY_l) + dxi - F db_k = f_k
//     sum_k dY_k = e_row,        F' dY_k = e_col_k,        M_k = X D_k X' + diag(U_k / Y_k)
//
// N couples the classes and exists only for groups that span them (one column per group), and for
// the open coordinates of open_coordinates.hpp, whose z_r = sum_l N_lr' dY_l / weight_r are unknowns
// too: dividing what all but cancels by a tiny weight would leave no digits. Two
// eliminations give a preconditioner: from the side of the samples, with K factorisations of size n
// and one Schur complement, or from the side of the features, with one factorisation of the size of
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
#include "linalg/column_sums.hpp"
#include "linalg/gram.hpp"
#include "linalg/polled_factor.hpp"
#include "linalg/spd_inverse.hpp"
#include "linalg/symmetric_product.hpp"
#include "penalty/cone_blocks.hpp"
#include "solvers/interior_point/class_coupling.hpp"
#include "solvers/interior_point/feature_elimination.hpp"

namespace sparsvm {

struct NewtonVector {
  std::vector<double> y, xi, b;  // K*n class-major, n, (classes with free columns)*q
  std::vector<double> z;         // one per open coordinate
  void resize(std::size_t ny, std::size_t nxi, std::size_t nb) {
    y.assign(ny, 0.0);
    xi.assign(nxi, 0.0);
    b.assign(nb, 0.0);
  }
};

class NewtonSystem {
 public:
  // free_columns: n x q column-major. Of a quadratic penalty, gram: X X' (upper triangle) or
  // quadratic_columns: X (n x m column-major); otherwise both are empty.
  NewtonSystem(int n, int n_classes, std::vector<double> free_columns, int q,
               std::vector<double> gram, std::vector<double> quadratic_columns)
      : n_(n), K_(n_classes), q_(q), F_(std::move(free_columns)), gram_(std::move(gram)),
        quadratic_columns_(std::move(quadratic_columns)) {
    diag_.resize(static_cast<std::size_t>(K_) * n_);
    factored_.assign(K_, false);
  }

  // Shifting all classes alike changes nothing, so one class carries no free coefficients; with two
  // classes it is the one pinned to zero.
  bool has_free(int k) const { return q_ > 0 && (K_ == 2 ? k == 1 : k < K_ - 1); }
  int free_offset(int k) const { return q_ * (K_ == 2 ? 0 : k); }
  int n_free() const { return q_ * (K_ == 2 ? 1 : K_ - 1); }
  const double* free_columns() const { return F_.data(); }
  int q() const { return q_; }

  // Decides which coordinates are unknowns of their own, before assemble(): those with D |x|^2 above
  // the limit, or `free` times that where others of the group are as large; column_size has |x| of
  // each gathered column.
  void open_coordinates(const ConeBlocks& blocks, const double* column_size, double limit,
                        double free) {
    open_.choose(blocks, column_size, limit, free);
  }
  void close_coordinates() { open_.clear(); }
  bool is_open(std::int64_t c) const { return open_.is_open(c); }
  int n_open() const { return open_.count(); }
  bool by_features() const { return feature_side_; }  // which elimination the last assembly chose

  // The right-hand side z of a step after which G of the open coordinates is again what their blocks
  // take it to be, for given differences of the two.
  void remove_drift(const double* drift, std::vector<double>& z) const {
    z.assign(open_.count(), 0.0);
    for (int o = 0; o < open_.count(); ++o) {
      for (const auto* t = open_.begin(o); t < open_.end(o); ++t)
        if (open_.is_open(t->coordinate)) z[o] -= t->factor * drift[t->coordinate];
      z[o] *= coupling_.unknown_scale(o);
    }
  }

  // dG of the open coordinates from the unknowns of a solution and from dG of the others.
  void complete(const NewtonVector& v, double* dg) const {
    if (open_.count() == 0) return;
    std::vector<double> z(v.z);
    for (int o = 0; o < open_.count(); ++o) z[o] *= coupling_.unknown_scale(o);
    open_.complete(z.data(), dg);
  }

  // Forms M_k and N_k. `joint`: blocks span classes.
  void assemble(const ConeBlocks& blocks, const double* Xw, bool joint, bool shared_diagonal,
                const double* U, const double* Y) {
    build_class_lists(blocks, joint);
    curvature_scale_ = 0.0;
    coupling_.clear();
    feature_side_ = prefer_features(blocks, joint);
    too_dear_ = !feature_side_ && open_.count() > 0;
    if (too_dear_) {
      open_.clear();
      build_class_lists(blocks, joint);
    }
    if (joint || open_.count() > 0)
      coupling_.build(blocks, open_, Xw, n_, K_, joint, !feature_side_);
    choose_means(shared_diagonal);
    if (feature_side_) {
      assemble_features(blocks, Xw, U, Y);
      return;
    }
    for (int k = 0; k < K_; ++k) {
      const bool dense = !class_coords_[k].empty() || (!gram_.empty() && !(K_ == 2 && k == 0));
      factored_[k] = dense;
      if (dense) reserve_matrices();
      double* M = block(k);
      double* dg = diag_.data() + static_cast<std::size_t>(k) * n_;
      const double *u = U + static_cast<std::size_t>(k) * n_,
                   *yk = Y + static_cast<std::size_t>(k) * n_;
      if (!dense) {
        for (int i = 0; i < n_; ++i) dg[i] = u[i] / yk[i];
        continue;
      }
      const int first = K_ == 2 ? 1 : 0;
      if (shared_diagonal && k > first) {
        const double* base = block(first);
        for (int c = 0; c < n_; ++c)
          std::copy(base + idx(0, c), base + idx(c, c) + 1, M + idx(0, c));
        for (int i = 0; i < n_; ++i) dg[i] = shared_diag_[i] + u[i] / yk[i];
        continue;
      }
      if (means_ == Means::single)
        form_single(blocks, Xw, k);
      else
        form_gram(blocks, Xw, k, M);
      shared_diag_.resize(n_);
      double sum = 0.0;
      for (int i = 0; i < n_; ++i) {
        shared_diag_[i] = means_ == Means::single ? single_block(k)[idx(i, i)] : M[idx(i, i)];
        sum += shared_diag_[i];
        dg[i] = shared_diag_[i] + u[i] / yk[i];
      }
      curvature_scale_ = std::max(curvature_scale_, sum / n_);
    }
    for (int k = 0; k < K_ && coupling_.count() > 0; ++k)
      curvature_scale_ = std::max(curvature_scale_, coupling_.mean_diagonal(k));
  }

  // The elimination regularises M_k by this fraction of the operator's size. Where the curvature
  // sits in the coupling, in the free columns or in other samples, M_k alone is close to singular
  // and eliminating it first would lose all digits; the conjugate residuals of solve() take the
  // regularisation out again, in a few steps as long as it is small against the whole operator.
  double regularisation = 1e-13;

  // Weight of a proximal term on the free coefficients: F' dY_k + proximal * db_k = e_col_k. Where
  // the optimal face is unbounded in them, it keeps the iterates from running away along it.
  double proximal = 0.0;

  // Called between the parts of a factorisation, so that Ctrl-C need not wait for all of them.
  std::function<void()> poll = [] {};

  // Whether the next system may be assembled in single precision. Its solution is good to about
  // kSingle, enough for the direction of a step far from the end.
  bool coarse = false;

  // What a solve can be expected to attain.
  double attainable() const { return means_ == Means::single ? kSingle : 0.0; }

  // After a solve that failed: whether more accurate means are left, which are used from then on.
  // The system is to be assembled again.
  bool be_more_accurate() {
    if (feature_side_ || means_ == Means::factor) return false;
    (means_ == Means::single ? single_suffices_ : inverse_suffices_) = false;
    return true;
  }

  // Whether the last assembly left coordinates eliminated because opening them would cost too much.
  bool too_dear() const { return too_dear_; }
  // After a solve that failed for that: opens them at any price from then on. The system is to be
  // assembled again.
  void open_at_any_price() { at_any_price_ = true; }

  static constexpr double kRefined = 1e-11;  // relative residual that more steps do not improve

  // Returns false when the matrices cannot be factored even with regularisation.
  bool factor() { return feature_side_ ? factor_features() : factor_samples(); }

  // Solves by conjugate residuals of the operator itself, preconditioned by the (regularised)
  // factorisation; usually one or two steps, until the relative residual is at most `target`. Returns
  // that residual.
  double solve(const NewtonVector& rhs, NewtonVector& out, double target = kRefined);

 private:
  // From the side of the samples M_k is inverted in single precision, inverted, or factored.
  enum class Means : char { single, inverse, factor };
  static constexpr double kSingle = 1e-4;
  static constexpr double kMostColumns = 3000;  // of the side of the features, whatever the price
  static constexpr int kLeastSingle = 64;       // samples; with fewer the time is elsewhere
  // Steps of a solve, which cost little beside a factorisation; after so many the residual must have
  // halved again.
  static constexpr int kMaxRefinements = 48, kPatience = 6;
  static constexpr int kFewRefinements = 2;  // more cost what the inverses save

  int n_, K_, q_, schur_size_ = 0;
  std::vector<double> F_, gram_, quadratic_columns_;
  // M_k: above the diagonal M (its diagonal is diag_), below it the inverse, or from the diagonal on
  // the Cholesky factor where columns couple the classes.
  std::vector<double> M_, diag_, inverse_diagonal_;
  std::vector<char> factored_;  // false: M_k is diagonal
  // In single precision: above the diagonal M_k, and in another array its inverse.
  std::vector<float> single_, single_inverse_, single_columns_;
  Means means_ = Means::factor;
  bool single_suffices_ = true, inverse_suffices_ = true, too_dear_ = false, at_any_price_ = false;
  SpdInverse<double> spd_inverse_;
  SpdInverse<float> single_spd_inverse_;
  OpenCoordinates open_;
  ClassCoupling coupling_;
  ColumnSums sums_;
  FeatureElimination features_;
  bool feature_side_ = false;
  std::vector<double> C_;  // Schur complement, lower triangle
  std::vector<double> inverse_, inverse_sum_, factor_inverse_, half_, coupled_, scaled_,
      solved_free_, shared_diag_;
  double curvature_scale_ = 0.0;  // largest mean diagonal of the penalty's part over classes
  std::vector<std::vector<std::int64_t>> class_coords_;
  std::vector<std::vector<std::int64_t>> class_blocks_;  // per-class groups with a rank-one part
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

  void build_class_lists(const ConeBlocks& blocks, bool joint) {
    class_coords_.resize(K_);
    class_blocks_.resize(K_);
    for (auto& list : class_coords_) list.clear();
    for (auto& list : class_blocks_) list.clear();
    for (std::int64_t b = 0; b < blocks.size(); ++b) {
      for (std::int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
        if (!open_.is_open(c)) class_coords_[blocks.cls[c]].push_back(c);
      if (!joint && blocks.kappa(b) > 0.0) class_blocks_[blocks.cls[blocks.begin(b)]].push_back(b);
    }
  }

  // B_k with X D_k X' = B_k B_k': the coordinates of class k times the roots of the diagonal, then
  // the rank-one parts of its own groups.
  void scaled_columns(const ConeBlocks& blocks, const double* Xw, int k, std::vector<double>& B) {
    list_scaled_columns(blocks, k);
    B.resize(static_cast<std::size_t>(sums_.count()) * n_);
    form_column_sums(sums_, Xw, n_, B.data());
  }
  void list_scaled_columns(const ConeBlocks& blocks, int k) {
    sums_.clear();
    for (std::int64_t c : class_coords_[k]) {
      sums_.add(blocks.col[c], std::sqrt(blocks.delta[c]));
      sums_.close();
    }
    for (std::int64_t b : class_blocks_[k]) {
      const double root = std::sqrt(open_.kappa(blocks, b));
      for (std::int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
        if (!open_.is_open(c)) sums_.add(blocks.col[c], root * blocks.vec[c]);
      sums_.close();
    }
  }

  int free_slot(int k) const { return features_.offset(k) + features_.width(k) - q_; }

  bool factor_schur() {
    const int m = schur_size_;
    std::vector<double> diag(m);
    for (int i = 0; i < m; ++i) diag[i] = C_[at(i, i)];
    // The upper triangle keeps a copy in case regularisation is needed.
    for (int c = 0; c < m; ++c)
      for (int r = c + 1; r < m; ++r) C_[at(c, r)] = C_[at(r, c)];
    for (double reg = 0.0; reg < 1e-6; reg = reg == 0.0 ? 1e-15 : reg * 30.0) {
      for (int c = 0; c < m; ++c) {
        C_[at(c, c)] = diag[c] * (1.0 + reg);
        if (reg > 0.0)
          for (int r = c + 1; r < m; ++r) C_[at(r, c)] = C_[at(c, r)];
      }
      if (polled_potrf(m, C_.data(), m, poll) == 0) return true;
    }
    return false;
  }

  // One right-hand side: triangular vector solves, where potrs would first pack the whole factor.
  static void solve_factored(int size, const double* factor, double* x) {
    trsv('L', 'N', 'N', size, factor, size, x, 1);
    trsv('L', 'T', 'N', size, factor, size, x, 1);
  }

  // In place: v holds (f, e_row, e_col) and leaves with (dY, dxi, db).
  void solve_once(NewtonVector& v) {
    if (feature_side_)
      solve_features(v);
    else
      solve_samples(v);
  }

  // Columns of class k that are not free ones.
  int own_columns(int k) const { return features_.width(k) - (has_free(k) ? q_ : 0); }

  // newton_system_refine.hpp
  double residual(const NewtonVector& rhs, const NewtonVector& v, NewtonVector& res);
  void subtract_product(int k, const double* y, double* out);
  bool refine(int it, double scale, double scale_dual, NewtonVector& out);
  void subtract_operator(const NewtonVector& v, NewtonVector& res);
  static double largest(const std::vector<double>& a);
  static double dot(const std::vector<double>& a, const std::vector<double>& b);
  static void combine(NewtonVector& a, double f, const NewtonVector& b);

  // newton_system_samples.hpp
  void form_gram(const ConeBlocks& blocks, const double* Xw, int k, double* M);
  void choose_means(bool shared_diagonal);
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

  // newton_system_features.hpp
  bool prefer_features(const ConeBlocks& blocks, bool joint) const;
  void assemble_features(const ConeBlocks& blocks, const double* Xw, const double* U,
                         const double* Y);
  bool factor_features();
  void solve_features(NewtonVector& v);
};

}  // namespace sparsvm

#include "solvers/interior_point/newton_system_features.hpp"
#include "solvers/interior_point/newton_system_refine.hpp"
#include "solvers/interior_point/newton_system_samples.hpp"
#include "solvers/interior_point/newton_system_single.hpp"
