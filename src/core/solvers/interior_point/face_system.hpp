// The Newton system of the multiclass hinge where most dual variables are known to be zero:
//
//     M_k dY_k + xi - F db_k = f_k,    sum_k dY_k = e_row,    F'dY_k = e_col_k,
//
// over pairs (sample, class) of samples that have at least two; the only Y of the others is known.
// As in newton_system.cpp, with matrices of the size of a class's pairs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "linalg/blas.hpp"
#include "linalg/dense.hpp"
#include "solvers/interior_point/newton_system.hpp"
#include "support/simd.hpp"

namespace sparsvm {

// The columns of a class's matrix on the face of the optimum: the root of
//
//     X D X',   D = bend (I - uu') + stiff uu'   of every block of weights,
//
// is X times the root of D, block by block, on the rows that the class has unknowns of.
//
// One block: columns col[0 .. width) of X (n rows, column-major) with the unit vector u; across and along
// are the roots of bend and stiff. out (size x width, column-major) gets the rows listed.
struct FaceBlock {
  const int32_t* col;
  const double* u;
  int64_t width;
  double across, along;
};

// Blocks of four are common, and their entries stay in registers.
template <typename T>
SPARSVM_INLINE void four_face_columns(const FaceBlock& b, const double* X, int64_t n,
                                      const int32_t* rows, int64_t size, T* out) {
  const double *x0 = X + b.col[0] * n, *x1 = X + b.col[1] * n, *x2 = X + b.col[2] * n,
               *x3 = X + b.col[3] * n;
  const double u0 = b.u[0], u1 = b.u[1], u2 = b.u[2], u3 = b.u[3], extra = b.along - b.across;
  for (int64_t r = 0; r < size; ++r) {
    const int32_t i = rows[r];
    const double v0 = x0[i], v1 = x1[i], v2 = x2[i], v3 = x3[i];
    const double more = extra * (u0 * v0 + u1 * v1 + u2 * v2 + u3 * v3);
    out[r] = static_cast<T>(b.across * v0 + u0 * more);
    out[r + size] = static_cast<T>(b.across * v1 + u1 * more);
    out[r + 2 * size] = static_cast<T>(b.across * v2 + u2 * more);
    out[r + 3 * size] = static_cast<T>(b.across * v3 + u3 * more);
  }
}

template <typename T>
SPARSVM_INLINE void any_face_columns(const FaceBlock& b, const double* X, int64_t n,
                                     const int32_t* rows, int64_t size, double* more, T* out) {
  if (b.width == 4) return four_face_columns(b, X, n, rows, size, out);
  for (int64_t r = 0; r < size; ++r) more[r] = 0.0;
  for (int64_t c = 0; c < b.width; ++c) {
    const double *x = X + b.col[c] * n, u = b.u[c];
    for (int64_t r = 0; r < size; ++r) more[r] += u * x[rows[r]];
  }
  for (int64_t c = 0; c < b.width; ++c, out += size) {
    const double *x = X + b.col[c] * n, f = (b.along - b.across) * b.u[c];
    for (int64_t r = 0; r < size; ++r) out[r] = static_cast<T>(b.across * x[rows[r]] + f * more[r]);
  }
}

// more: room for size entries.
SPARSVM_DISPATCH static void face_columns(const FaceBlock& b, const double* X, int64_t n,
                                          const int32_t* rows, int64_t size, double* more,
                                          double* out) {
  any_face_columns(b, X, n, rows, size, more, out);
}
SPARSVM_DISPATCH static void face_columns(const FaceBlock& b, const double* X, int64_t n,
                                          const int32_t* rows, int64_t size, double* more,
                                          float* out) {
  any_face_columns(b, X, n, rows, size, more, out);
}

class FaceSystem {
 public:
  explicit FaceSystem(const FreeColumns& free)
      : free_(free), n_(free.n), rows_(free.classes), inverse_(free.classes),
        solved_(free.classes) {}

  // The samples of class k's pairs, of which the system consists.
  const std::vector<int>& rows(int k) const { return rows_[k]; }

  // pair: n*K class-major, which dual variables may differ from zero.
  void begin(const std::vector<char>& pair) {
    const int K = static_cast<int>(rows_.size());
    slot_.assign(n_, -1);
    tied_ = 0;
    for (auto& rows : rows_) rows.clear();
    for (int i = 0; i < n_; ++i) {
      int count = 0;
      for (int k = 0; k < K; ++k) count += pair[at(k, i)];
      if (count < 2) continue;
      slot_[i] = tied_++;
      for (int k = 0; k < K; ++k)
        if (pair[at(k, i)]) rows_[k].push_back(i);
    }
    size_ = tied_ + free_.count();
    C_.assign(static_cast<std::size_t>(size_) * size_, 0.0);
    z_.assign(size_, 0.0);
  }

  // The right-hand sides of the equalities: e_row per sample, e_col per free coefficient.
  void set_equalities(const std::vector<double>& e_row, const std::vector<double>& e_col,
                      double proximal) {
    for (int i = 0; i < n_; ++i)
      if (slot_[i] >= 0) z_[slot_[i]] = -e_row[i];
    for (int j = 0; j < free_.count(); ++j) {
      z_[tied_ + j] = e_col[j];
      C_[entry(tied_ + j, tied_ + j)] = proximal;
    }
  }

  // Class k with M = B B' + diag, where B has rows(k).size() rows, and f for all samples; false if M
  // cannot be inverted. M has the precision of B.
  template <typename T>
  bool add_class(int k, const std::vector<T>& B, const std::vector<double>& diagonal,
                 const double* f) {
    const auto& rows = rows_[k];
    const int size = static_cast<int>(rows.size());
    if (size == 0) return true;
    auto& M = inverse_[k];
    M.resize(static_cast<std::size_t>(size) * size);
    if constexpr (std::is_same_v<T, double>) {
      if (!form_inverse(B, diagonal, M, spd_inverse_)) return false;
    } else {
      single_.resize(M.size());
      if (!form_inverse(B, diagonal, single_, single_inverse_)) return false;
      std::copy(single_.begin(), single_.end(), M.begin());
    }
    // Rows are in the order of the unknowns.
    slots_.resize(size);
    for (int r = 0; r < size; ++r) slots_[r] = slot_[rows[r]];
    for (int c = 0; c < size; ++c) {
      const double* column = M.data() + static_cast<std::size_t>(c) * size;
      double* out = C_.data() + slots_[c];
      for (int r = 0; r <= c; ++r) out[static_cast<std::size_t>(slots_[r]) * size_] += column[r];
    }
    own_.resize(size);
    for (int r = 0; r < size; ++r) own_[r] = f[rows[r]];
    auto& g = solved_[k];
    g.resize(size);
    symv('U', size, 1.0, M.data(), size, own_.data(), 1, 0.0, g.data(), 1);
    for (int r = 0; r < size; ++r) z_[slot_[rows[r]]] += g[r];
    if (free_.has(k)) add_free_terms(k);
    return true;
  }

  // Adds the steps to Y (n*K) and b; false if the system is singular.
  bool solve(std::vector<double>& dY, std::vector<double>& db) {
    if (potrf('L', size_, C_.data(), size_) != 0) return false;
    potrs_one(size_, C_.data(), z_.data());
    dY.assign(rows_.size() * static_cast<std::size_t>(n_), 0.0);
    for (int k = 0; k < static_cast<int>(rows_.size()); ++k) {
      const auto& rows = rows_[k];
      const int size = static_cast<int>(rows.size());
      if (size == 0) continue;
      own_.resize(size);
      for (int r = 0; r < size; ++r) {
        own_[r] = z_[slot_[rows[r]]];
        for (int f = 0; f < free_.q && free_.has(k); ++f)
          own_[r] -= free_value(f, rows[r]) * z_[tied_ + free_.offset(k) + f];
      }
      symv('U', size, -1.0, inverse_[k].data(), size, own_.data(), 1, 1.0, solved_[k].data(), 1);
      for (int r = 0; r < size; ++r) dY[at(k, rows[r])] = solved_[k][r];
    }
    db.assign(z_.begin() + tied_, z_.end());
    return true;
  }

 private:
  // Regularisation of a class's matrix.
  template <typename T>
  static constexpr double kDiagonal = std::is_same_v<T, double> ? 1e-12 : 1e-6;

  const FreeColumns& free_;
  int n_, tied_ = 0, size_ = 0;
  std::vector<int> slot_, slots_;  // per sample: its unknown xi, or -1; per row of a class
  std::vector<std::vector<int>> rows_;
  std::vector<std::vector<double>> inverse_, solved_;  // upper triangles; M^-1 f
  std::vector<double> C_, z_, own_, column_;           // Schur complement (lower triangle)
  std::vector<float> single_;
  SpdInverse<double> spd_inverse_;
  SpdInverse<float> single_inverse_;

  // M = (B B' + diag)^-1, its upper triangle.
  template <typename T>
  static bool form_inverse(const std::vector<T>& B, const std::vector<double>& diagonal,
                           std::vector<T>& M, SpdInverse<T>& inverse) {
    const std::size_t size = diagonal.size();
    const int rows = static_cast<int>(size);
    gram_by_halves(rows, static_cast<int>(B.size() / size), B.data(), M.data(), rows);
    T trace = T(0);
    for (std::size_t r = 0; r < size; ++r) trace += M[r * size + r];
    const T least = static_cast<T>(kDiagonal<T>) * trace / static_cast<T>(rows);
    for (std::size_t r = 0; r < size; ++r) {
      M[r * size + r] += static_cast<T>(diagonal[r]) + least;
      // Single precision may not reach so far.
      if (!std::isfinite(M[r * size + r])) return false;
    }
    return inverse.invert(M.data(), rows, rows);
  }

  std::size_t at(int k, int i) const { return static_cast<std::size_t>(k) * n_ + i; }
  // Of the lower triangle, in either order.
  std::size_t entry(int r, int c) const {
    return static_cast<std::size_t>(std::min(r, c)) * size_ + std::max(r, c);
  }
  double free_value(int f, int i) const {
    return free_.data()[static_cast<std::size_t>(f) * n_ + i];
  }

  void add_free_terms(int k) {
    const auto& rows = rows_[k];
    const int size = static_cast<int>(rows.size()), first = tied_ + free_.offset(k);
    own_.resize(size);
    column_.resize(size);
    for (int f = 0; f < free_.q; ++f) {
      for (int r = 0; r < size; ++r) own_[r] = free_value(f, rows[r]);
      symv('U', size, 1.0, inverse_[k].data(), size, own_.data(), 1, 0.0, column_.data(), 1);
      for (int r = 0; r < size; ++r) {
        C_[entry(first + f, slot_[rows[r]])] = -column_[r];
        z_[first + f] -= own_[r] * solved_[k][r];
        for (int e = 0; e <= f; ++e)
          C_[entry(first + f, first + e)] += column_[r] * free_value(e, rows[r]);
      }
    }
  }
};

}  // namespace sparsvm
