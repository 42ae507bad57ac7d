// Elimination of the Newton system from the side of the samples: K factorisations of size n and one
// Schur complement on (dxi, db, the coupling coefficients). Member functions of NewtonSystem,
// declared in newton_system.hpp.
#pragma once

#include "solvers/interior_point/newton_system.hpp"

namespace sparsvm {

inline void NewtonSystem::form_gram(const ConeBlocks& blocks, const double* Xw, int k, double* M) {
  scaled_columns(blocks, Xw, k, scaled_);
  const std::size_t columns = scaled_.size() / n_;
  if (gram_.empty())
    return gram_by_halves(n_, static_cast<int>(columns), scaled_.data(), M, n_, poll);
  for (int c = 0; c < n_; ++c)
    std::copy(gram_.data() + idx(0, c), gram_.data() + idx(c, c) + 1, M + idx(0, c));
  if (columns > 0)
    syrk('U', 'N', n_, static_cast<int>(columns), 1.0, scaled_.data(), n_, 1.0, M, n_);
}

inline bool NewtonSystem::factor_samples() {
  const int nb = n_free(), R = coupling_.count(), m = n_ + nb + R;
  schur_size_ = m;
  C_.assign(static_cast<std::size_t>(m) * m, 0.0);
  inverse_.resize(static_cast<std::size_t>(n_) * n_);
  inverse_sum_.assign(inverse_.size(), 0.0);
  inverse_diagonal_.resize(diag_.size());
  coupled_.assign(static_cast<std::size_t>(n_) * R, 0.0);
  for (int k = 0; k < K_; ++k) {
    poll();
    if (!factored_[k]) {
      const double* dg = diag_.data() + static_cast<std::size_t>(k) * n_;
      for (int i = 0; i < n_; ++i) C_[at(i, i)] += 1.0 / dg[i];
      if (has_free(k)) add_free_terms_diagonal(k);
      continue;
    }
    if (!factor_class(k)) return false;
    if (means_ == Means::inverse) store_inverse(k);
    if (means_ == Means::factor) add_inverse(k);
    if (has_free(k)) add_free_terms(k);
    if (R > 0) add_coupling_terms(k);
  }
  for (int c = 0; c < n_; ++c)
    for (int r = 0; r <= c; ++r) C_[at(c, r)] += inverse_sum_[idx(r, c)];
  for (int r = 0; r < R; ++r) {
    C_[at(n_ + nb + r, n_ + nb + r)] += 1.0;
    for (int i = 0; i < n_; ++i)
      C_[at(n_ + nb + r, i)] = coupled_[static_cast<std::size_t>(r) * n_ + i];
  }
  return factor_schur();
}

// The inverse of M_k in inverse_, or its Cholesky factor in the lower triangle of M_k, with a
// growing relative regularisation when needed.
inline bool NewtonSystem::factor_class(int k) {
  if (means_ == Means::single) return invert_single(k);
  const bool inverted = means_ == Means::inverse;
  double* M = block(k);
  const double* dg = diag_.data() + static_cast<std::size_t>(k) * n_;
  const double extra = regularisation * curvature_scale_;
  for (double reg = 0.0; reg < 1e-6; reg = reg == 0.0 ? 1e-15 : reg * 30.0) {
    for (int c = 0; c < n_; ++c) {
      const double diagonal = dg[c] * (1.0 + reg) + extra;
      if (inverted) {
        std::copy(M + idx(0, c), M + idx(c, c), inverse_.data() + idx(0, c));
        inverse_[idx(c, c)] = diagonal;
      } else {
        M[idx(c, c)] = diagonal;
        for (int r = c + 1; r < n_; ++r) M[idx(r, c)] = M[idx(c, r)];
      }
    }
    if (inverted ? spd_inverse_.invert(inverse_.data(), n_, n_, poll)
                 : polled_potrf(n_, M, n_, poll) == 0)
      return true;
  }
  return false;
}

// Adds the inverse to the Schur complement and keeps it below the diagonal of M_k; the diagonals of
// both are elsewhere. Solving with it takes a third of the time of the factor's two triangular
// solves, and the conjugate residuals of solve() take out what it loses.
inline void NewtonSystem::store_inverse(int k) {
  double* M = block(k);
  constexpr int kTile = 8;  // of columns read and rows written at once
  for (int first = 0; first < n_; first += kTile) {
    const int last = std::min(n_, first + kTile);
    for (int r = 0; r < last; ++r)
      for (int c = std::max(first, r + 1); c < last; ++c) M[idx(c, r)] = inverse_[idx(r, c)];
  }
  double* diagonal = inverse_diagonal_.data() + static_cast<std::size_t>(k) * n_;
  for (int c = 0; c < n_; ++c) {
    diagonal[c] = inverse_[idx(c, c)];
    M[idx(c, c)] = 0.0;
    for (int r = 0; r <= c; ++r) inverse_sum_[idx(r, c)] += inverse_[idx(r, c)];
  }
  if (coupling_.count() > 0)
    for (int c = 0; c < n_; ++c)
      std::copy(M + idx(c + 1, c), M + idx(n_, c), inverse_.data() + idx(c + 1, c));
}

// C += M_k^-1 = T'T with T = L^-1. (potri inverts a factor of such a size column by column, which
// took a third of a solve with 100 samples; halves of halves leave almost all of it to gemm.)
inline void NewtonSystem::add_inverse(int k) {
  factor_inverse_.resize(inverse_.size());
  double* T = factor_inverse_.data();
  invert_factor(block(k), 0, n_, T);
  constexpr int kPanel = 48;
  std::fill(inverse_.begin(), inverse_.end(), 0.0);
  for (int first = 0; first < n_; first += kPanel) {
    const int height = std::min(kPanel, n_ - first);
    syrk('L', 'T', first + height, height, 1.0, T + first, n_, 1.0, inverse_.data(), n_);
    poll();
  }
  for (int c = 0; c < n_; ++c)
    for (int r = c; r < n_; ++r) C_[at(r, c)] += inverse_[idx(r, c)];
  if (coupling_.count() > 0 && coupling_.sparse())
    for (int c = 0; c < n_; ++c)
      for (int r = c + 1; r < n_; ++r) inverse_[idx(c, r)] = inverse_[idx(r, c)];
}

// T = L^-1 on the diagonal block [first, last) of a lower triangle; above the diagonal T is zero.
//
//     [A    ]^-1   [ A^-1                ]
//     [B   C]    = [-C^-1 B A^-1    C^-1 ]
inline void NewtonSystem::invert_factor(const double* L, int first, int last, double* T) {
  constexpr int kLeast = 16;
  if (last - first <= kLeast) {
    for (int c = first; c < last; ++c) {
      std::fill(T + idx(first, c), T + idx(c, c), 0.0);
      T[idx(c, c)] = 1.0 / L[idx(c, c)];
      for (int r = c + 1; r < last; ++r) T[idx(r, c)] = 0.0;
      for (int m = c; m < last - 1; ++m) {
        const double t = T[idx(m, c)];
        for (int r = m + 1; r < last; ++r) T[idx(r, c)] -= L[idx(r, m)] * t;
        T[idx(m + 1, c)] /= L[idx(m + 1, m + 1)];
      }
    }
    return;
  }
  const int middle = first + (last - first) / 2, a = middle - first, c = last - middle;
  invert_factor(L, first, middle, T);
  invert_factor(L, middle, last, T);
  for (int j = middle; j < last; ++j) std::fill(T + idx(first, j), T + idx(middle, j), 0.0);
  half_.resize(static_cast<std::size_t>(a) * c);
  if (a > 256) poll();
  gemm('N', 'N', c, a, a, 1.0, L + idx(middle, first), n_, T + idx(first, first), n_, 0.0,
       half_.data(), c);
  gemm('N', 'N', c, a, c, -1.0, T + idx(middle, middle), n_, half_.data(), c, 0.0,
       T + idx(middle, first), n_);
}

inline void NewtonSystem::add_free_terms(int k) {
  solved_free_ = F_;
  if (means_ != Means::factor)
    for (int f = 0; f < q_; ++f)
      solve_class(k, solved_free_.data() + static_cast<std::size_t>(f) * n_);
  else
    potrs('L', n_, q_, block(k), n_, solved_free_.data(), n_);
  store_free_terms(k);
}

inline void NewtonSystem::add_free_terms_diagonal(int k) {
  solved_free_ = F_;
  const double* dg = diag_.data() + static_cast<std::size_t>(k) * n_;
  for (int f = 0; f < q_; ++f)
    for (int i = 0; i < n_; ++i) solved_free_[static_cast<std::size_t>(f) * n_ + i] /= dg[i];
  store_free_terms(k);
}

inline void NewtonSystem::store_free_terms(int k) {
  const int row = n_ + free_offset(k);
  for (int f = 0; f < q_; ++f) {
    const double* s = solved_free_.data() + static_cast<std::size_t>(f) * n_;
    for (int i = 0; i < n_; ++i) C_[at(row + f, i)] = -s[i];
    for (int g = 0; g <= f; ++g) {
      double sum = 0.0;
      for (int i = 0; i < n_; ++i) sum += s[i] * F_[static_cast<std::size_t>(g) * n_ + i];
      C_[at(row + f, row + g)] = sum + (f == g ? proximal : 0.0);
    }
  }
}

inline void NewtonSystem::add_coupling_terms(int k) {
  const int R = coupling_.count(), nb = n_free();
  coupling_.eliminate(k, block(k),
                      means_ == Means::inverse || coupling_.sparse() ? inverse_.data() : nullptr,
                      scaled_, C_.data() + at(n_ + nb, n_ + nb), schur_size_);
  for (std::size_t i = 0; i < scaled_.size(); ++i) coupled_[i] += scaled_[i];
  if (has_free(k))
    gemm('T', 'N', R, q_, n_, -1.0, scaled_.data(), n_, F_.data(), n_, 0.0,
         C_.data() + at(n_ + nb, n_ + free_offset(k)), schur_size_);
}

inline void NewtonSystem::solve_class(int k, double* x) {
  if (factored_[k] && means_ != Means::factor) {
    const double* diagonal = inverse_diagonal_.data() + static_cast<std::size_t>(k) * n_;
    product_.resize(n_);
    for (int i = 0; i < n_; ++i) product_[i] = diagonal[i] * x[i];
    if (means_ == Means::single)
      add_symmetric_product(single_inverse_.data() + static_cast<std::size_t>(k) * n_ * n_, n_, 1.0,
                            x, product_.data());
    else
      symv('L', n_, 1.0, block(k), n_, x, 1, 1.0, product_.data(), 1);
    std::copy(product_.begin(), product_.end(), x);
  } else if (factored_[k]) {
    solve_factored(n_, block(k), x);
  } else {
    const double* dg = diag_.data() + static_cast<std::size_t>(k) * n_;
    for (int i = 0; i < n_; ++i) x[i] /= dg[i];
  }
}

inline void NewtonSystem::solve_samples(NewtonVector& v) {
  const int nb = n_free(), R = coupling_.count();
  z_.assign(schur_size_, 0.0);
  for (int i = 0; i < n_; ++i) z_[i] = -v.xi[i];
  for (int j = 0; j < nb; ++j) z_[n_ + j] = v.b[j];
  for (int k = 0; k < K_; ++k) {
    double* g = v.y.data() + static_cast<std::size_t>(k) * n_;
    solve_class(k, g);
    for (int i = 0; i < n_; ++i) z_[i] += g[i];
    if (has_free(k))
      gemv('T', n_, q_, -1.0, F_.data(), n_, g, 1, 1.0, z_.data() + n_ + free_offset(k), 1);
    if (R > 0 && factored_[k]) coupling_.gather(k, g, z_.data() + n_ + nb);
  }
  solve_factored(schur_size_, C_.data(), z_.data());
  g_.resize(n_);
  for (int k = 0; k < K_; ++k) {
    std::copy(z_.begin(), z_.begin() + n_, g_.begin());
    if (has_free(k))
      gemv('N', n_, q_, -1.0, F_.data(), n_, z_.data() + n_ + free_offset(k), 1, 1.0, g_.data(), 1);
    if (R > 0 && factored_[k]) coupling_.scatter(k, 1.0, z_.data() + n_ + nb, g_.data());
    solve_class(k, g_.data());
    double* y = v.y.data() + static_cast<std::size_t>(k) * n_;
    for (int i = 0; i < n_; ++i) y[i] -= g_[i];
  }
  std::copy(z_.begin(), z_.begin() + n_, v.xi.begin());
  std::copy(z_.begin() + n_, z_.begin() + n_ + nb, v.b.begin());
}

}  // namespace sparsvm
