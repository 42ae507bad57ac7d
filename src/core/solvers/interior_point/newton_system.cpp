// Assembly of the Newton system, and its elimination by samples.
#include "solvers/interior_point/newton_system.hpp"

#include "solvers/interior_point/settings.hpp"

namespace sparsvm {

using namespace interior_point_settings;

void NewtonSystem::assemble(const ConeBlocks& blocks, const double* Xw, bool joint,
                            bool shared_diagonal, const double* U, const double* Y) {
  build_class_lists(blocks, joint);
  curvature_scale_ = 0.0;
  coupling_.clear();
  by_features_ = prefer_features(blocks, joint);
  too_expensive_ = !by_features_ && explicit_.count() > 0;
  if (too_expensive_) {
    explicit_.clear();
    build_class_lists(blocks, joint);
  }
  if (joint || explicit_.count() > 0)
    coupling_.build(blocks, explicit_, Xw, n_, K_, joint, !by_features_);
  choose_method(shared_diagonal);
  if (by_features_) {
    assemble_features(blocks, Xw, U, Y);
    return;
  }
  for (int k = 0; k < K_; ++k) {
    const bool dense =
        !class_coords_[k].empty() || (!quadratic_.gram.empty() && !(K_ == 2 && k == 0));
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
      for (int c = 0; c < n_; ++c) std::copy(base + idx(0, c), base + idx(c, c) + 1, M + idx(0, c));
      for (int i = 0; i < n_; ++i) dg[i] = shared_diag_[i] + u[i] / yk[i];
      continue;
    }
    if (method_ == Method::single)
      form_single(blocks, Xw, k);
    else
      form_gram(blocks, Xw, k, M);
    shared_diag_.resize(n_);
    double sum = 0.0;
    for (int i = 0; i < n_; ++i) {
      shared_diag_[i] = method_ == Method::single ? single_block(k)[idx(i, i)] : M[idx(i, i)];
      sum += shared_diag_[i];
      dg[i] = shared_diag_[i] + u[i] / yk[i];
    }
    curvature_scale_ = std::max(curvature_scale_, sum / n_);
  }
  for (int k = 0; k < K_ && coupling_.count() > 0; ++k)
    curvature_scale_ = std::max(curvature_scale_, coupling_.mean_diagonal(k));
}

void NewtonSystem::build_class_lists(const ConeBlocks& blocks, bool joint) {
  class_coords_.resize(K_);
  class_blocks_.resize(K_);
  for (auto& list : class_coords_) list.clear();
  for (auto& list : class_blocks_) list.clear();
  for (int64_t b = 0; b < blocks.size(); ++b) {
    for (int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
      if (!explicit_.is_explicit(c)) class_coords_[blocks.cls[c]].push_back(c);
    if (!joint && blocks.kappa(b) > 0.0) class_blocks_[blocks.cls[blocks.begin(b)]].push_back(b);
  }
}

void NewtonSystem::scaled_columns(const ConeBlocks& blocks, const double* Xw, int k,
                                  std::vector<double>& B) {
  list_scaled_columns(blocks, k);
  B.resize(static_cast<std::size_t>(sums_.count()) * n_);
  form_column_sums(sums_, Xw, n_, B.data());
}

void NewtonSystem::list_scaled_columns(const ConeBlocks& blocks, int k) {
  sums_.clear();
  for (int64_t c : class_coords_[k]) {
    sums_.add(blocks.col[c], std::sqrt(blocks.delta[c]));
    sums_.close();
  }
  for (int64_t b : class_blocks_[k]) {
    const double root = std::sqrt(explicit_.kappa(blocks, b));
    for (int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
      if (!explicit_.is_explicit(c)) sums_.add(blocks.col[c], root * blocks.vec[c]);
    sums_.close();
  }
}

void NewtonSystem::choose_method(bool shared_diagonal) {
  if (by_features_)
    method_ = Method::factor;
  else if (coarse && single_suffices_ && !shared_diagonal && coupling_.count() == 0 &&
           n_ >= kLeastSingle)
    method_ = Method::single;
  else
    method_ = inverse_suffices_ ? Method::inverse : Method::factor;
}

// Room for what the means need; what they no longer need is given back.
void NewtonSystem::reserve_matrices() {
  const std::size_t size = static_cast<std::size_t>(K_) * n_ * n_;
  if (method_ == Method::single) {
    single_.resize(size);
    single_inverse_.resize(size);
  } else if (M_.size() != size) {
    std::vector<float>().swap(single_);
    std::vector<float>().swap(single_inverse_);
    M_.resize(size);
  }
}

void NewtonSystem::form_gram(const ConeBlocks& blocks, const double* Xw, int k, double* M) {
  scaled_columns(blocks, Xw, k, scaled_);
  const std::size_t columns = scaled_.size() / n_;
  if (quadratic_.gram.empty())
    return gram_by_halves(n_, static_cast<int>(columns), scaled_.data(), M, n_, poll);
  for (int c = 0; c < n_; ++c)
    std::copy(quadratic_.gram.data() + idx(0, c), quadratic_.gram.data() + idx(c, c) + 1,
              M + idx(0, c));
  if (columns > 0)
    syrk('U', 'N', n_, static_cast<int>(columns), 1.0, scaled_.data(), n_, 1.0, M, n_);
}

void NewtonSystem::form_single(const ConeBlocks& blocks, const double* Xw, int k) {
  list_scaled_columns(blocks, k);
  const int columns = static_cast<int>(sums_.count());
  single_columns_.resize(static_cast<std::size_t>(columns) * n_);
  form_column_sums(sums_, Xw, n_, single_columns_.data());
  gram_by_halves(n_, columns, single_columns_.data(), single_block(k), n_, poll);
}

bool NewtonSystem::factor_samples() {
  const int nb = free_.count(), R = coupling_.count(), m = n_ + nb + R;
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
      if (free_.has(k)) add_free_terms_diagonal(k);
      continue;
    }
    if (!factor_class(k)) return false;
    if (method_ == Method::inverse) store_inverse(k);
    if (method_ == Method::factor) add_inverse(k);
    if (free_.has(k)) add_free_terms(k);
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
bool NewtonSystem::factor_class(int k) {
  if (method_ == Method::single) return invert_single(k);
  const bool inverted = method_ == Method::inverse;
  double* M = block(k);
  const double* dg = diag_.data() + static_cast<std::size_t>(k) * n_;
  const double extra = regularisation * curvature_scale_;
  for (double reg = 0.0; reg < kLargestShift; reg = reg == 0.0 ? kFirstShift : reg * kShiftGrowth) {
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

bool NewtonSystem::invert_single(int k) {
  const float* M = single_block(k);
  const double* dg = diag_.data() + static_cast<std::size_t>(k) * n_;
  float* inverse = single_inverse_.data() + static_cast<std::size_t>(k) * n_ * n_;
  for (int c = 0; c < n_; ++c) {
    std::copy(M + idx(0, c), M + idx(c, c), inverse + idx(0, c));
    inverse[idx(c, c)] = static_cast<float>(dg[c]);
  }
  if (!single_spd_inverse_.invert(inverse, n_, n_, poll)) return false;
  double* diagonal = inverse_diagonal_.data() + static_cast<std::size_t>(k) * n_;
  for (int c = 0; c < n_; ++c) {
    diagonal[c] = inverse[idx(c, c)];
    for (int r = 0; r <= c; ++r) inverse_sum_[idx(r, c)] += inverse[idx(r, c)];
  }
  return true;
}

// Adds the inverse to the Schur complement and keeps it below the diagonal of M_k; the diagonals of
// both are elsewhere. Solving with it takes a third of the time of the factor's two triangular
// solves, and the conjugate residuals of solve() take out what it loses.
void NewtonSystem::store_inverse(int k) {
  double* M = block(k);
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
void NewtonSystem::add_inverse(int k) {
  factor_inverse_.resize(inverse_.size());
  double* T = factor_inverse_.data();
  invert_factor(block(k), 0, n_, T);
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
void NewtonSystem::invert_factor(const double* L, int first, int last, double* T) {
  if (last - first <= kSmallTriangle) {
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
  if (a > kPolledTriangle) poll();
  gemm('N', 'N', c, a, a, 1.0, L + idx(middle, first), n_, T + idx(first, first), n_, 0.0,
       half_.data(), c);
  gemm('N', 'N', c, a, c, -1.0, T + idx(middle, middle), n_, half_.data(), c, 0.0,
       T + idx(middle, first), n_);
}

void NewtonSystem::add_free_terms(int k) {
  solved_free_ = free_.values;
  if (method_ != Method::factor)
    for (int f = 0; f < free_.q; ++f)
      solve_class(k, solved_free_.data() + static_cast<std::size_t>(f) * n_);
  else
    potrs('L', n_, free_.q, block(k), n_, solved_free_.data(), n_);
  store_free_terms(k);
}

void NewtonSystem::add_free_terms_diagonal(int k) {
  solved_free_ = free_.values;
  const double* dg = diag_.data() + static_cast<std::size_t>(k) * n_;
  for (int f = 0; f < free_.q; ++f)
    for (int i = 0; i < n_; ++i) solved_free_[static_cast<std::size_t>(f) * n_ + i] /= dg[i];
  store_free_terms(k);
}

void NewtonSystem::store_free_terms(int k) {
  const int row = n_ + free_.offset(k);
  for (int f = 0; f < free_.q; ++f) {
    const double* s = solved_free_.data() + static_cast<std::size_t>(f) * n_;
    for (int i = 0; i < n_; ++i) C_[at(row + f, i)] = -s[i];
    for (int g = 0; g <= f; ++g) {
      double sum = 0.0;
      for (int i = 0; i < n_; ++i) sum += s[i] * free_.values[static_cast<std::size_t>(g) * n_ + i];
      C_[at(row + f, row + g)] = sum + (f == g ? proximal : 0.0);
    }
  }
}

void NewtonSystem::add_coupling_terms(int k) {
  const int R = coupling_.count(), nb = free_.count();
  coupling_.eliminate(k, block(k),
                      method_ == Method::inverse || coupling_.sparse() ? inverse_.data() : nullptr,
                      scaled_, C_.data() + at(n_ + nb, n_ + nb), schur_size_);
  for (std::size_t i = 0; i < scaled_.size(); ++i) coupled_[i] += scaled_[i];
  if (free_.has(k))
    gemm('T', 'N', R, free_.q, n_, -1.0, scaled_.data(), n_, free_.data(), n_, 0.0,
         C_.data() + at(n_ + nb, n_ + free_.offset(k)), schur_size_);
}

bool NewtonSystem::factor_schur() {
  const int m = schur_size_;
  std::vector<double> diag(m);
  for (int i = 0; i < m; ++i) diag[i] = C_[at(i, i)];
  // The upper triangle keeps a copy in case regularisation is needed.
  for (int c = 0; c < m; ++c)
    for (int r = c + 1; r < m; ++r) C_[at(c, r)] = C_[at(r, c)];
  for (double reg = 0.0; reg < kLargestShift; reg = reg == 0.0 ? kFirstShift : reg * kShiftGrowth) {
    for (int c = 0; c < m; ++c) {
      C_[at(c, c)] = diag[c] * (1.0 + reg);
      if (reg > 0.0)
        for (int r = c + 1; r < m; ++r) C_[at(r, c)] = C_[at(c, r)];
    }
    if (polled_potrf(m, C_.data(), m, poll) == 0) return true;
  }
  return false;
}

void NewtonSystem::solve_class(int k, double* x) {
  if (factored_[k] && method_ != Method::factor) {
    const double* diagonal = inverse_diagonal_.data() + static_cast<std::size_t>(k) * n_;
    product_.resize(n_);
    for (int i = 0; i < n_; ++i) product_[i] = diagonal[i] * x[i];
    if (method_ == Method::single)
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

void NewtonSystem::solve_samples(NewtonVector& v) {
  const int nb = free_.count(), R = coupling_.count();
  z_.assign(schur_size_, 0.0);
  for (int i = 0; i < n_; ++i) z_[i] = -v.xi[i];
  for (int j = 0; j < nb; ++j) z_[n_ + j] = v.b[j];
  for (int k = 0; k < K_; ++k) {
    double* g = v.y.data() + static_cast<std::size_t>(k) * n_;
    solve_class(k, g);
    for (int i = 0; i < n_; ++i) z_[i] += g[i];
    if (free_.has(k))
      gemv('T', n_, free_.q, -1.0, free_.data(), n_, g, 1, 1.0, z_.data() + n_ + free_.offset(k),
           1);
    if (R > 0 && factored_[k]) coupling_.gather(k, g, z_.data() + n_ + nb);
  }
  solve_factored(schur_size_, C_.data(), z_.data());
  g_.resize(n_);
  for (int k = 0; k < K_; ++k) {
    std::copy(z_.begin(), z_.begin() + n_, g_.begin());
    if (free_.has(k))
      gemv('N', n_, free_.q, -1.0, free_.data(), n_, z_.data() + n_ + free_.offset(k), 1, 1.0,
           g_.data(), 1);
    if (R > 0 && factored_[k]) coupling_.scatter(k, 1.0, z_.data() + n_ + nb, g_.data());
    solve_class(k, g_.data());
    double* y = v.y.data() + static_cast<std::size_t>(k) * n_;
    for (int i = 0; i < n_; ++i) y[i] -= g_[i];
  }
  std::copy(z_.begin(), z_.begin() + n_, v.xi.begin());
  std::copy(z_.begin() + n_, z_.begin() + n_ + nb, v.b.begin());
}

}  // namespace sparsvm
