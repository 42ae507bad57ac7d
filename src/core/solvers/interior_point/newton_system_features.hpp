// Elimination of the Newton system from the side of the features, see feature_elimination.hpp.
// Member functions of NewtonSystem, declared in newton_system.hpp.
#pragma once

#include "solvers/interior_point/newton_system.hpp"

namespace sparsvm {

// Compares the flops of the two eliminations. A quadratic penalty has no working set: what was
// formed of its features decides.
inline bool NewtonSystem::prefer_features(const ConeBlocks& blocks, bool joint) const {
  if (!gram_.empty()) return false;
  if (!quadratic_columns_.empty()) return true;
  double columns = n_free(), samples = 0.0, groups = 0.0;
  for (std::int64_t b = 0; b < blocks.size() && joint; ++b) groups += blocks.kappa(b) > 0.0;
  const double n = n_;
  for (int k = 0; k < K_; ++k) {
    const double width =
        static_cast<double>(class_coords_[k].size() + (joint ? 0 : class_blocks_[k].size()));
    columns += width;
    if (width > 0.0)
      samples += n * n * n + n * n * width + 2.0 * n * n * groups + n * groups * groups;
  }
  columns += groups;
  const double schur = n + n_free() + groups;
  samples += schur * schur * schur / 3.0;
  columns += open_.count();
  // Open coordinates need this side: eliminating the samples first would cancel the digits that
  // opening saves.
  if (open_.count() > 0 && at_any_price_ && columns <= kMostColumns) return true;
  const double dearer = open_.count() > 0 ? 0.1 : 1.5;
  return dearer * (n * columns * columns + columns * columns * columns / 3.0) < samples;
}

inline void NewtonSystem::assemble_features(const ConeBlocks& blocks, const double* Xw,
                                            const double* U, const double* Y) {
  std::vector<std::vector<double>> columns(K_);
  for (int k = 0; k < K_; ++k) {
    factored_[k] = true;
    if (quadratic_columns_.empty())
      scaled_columns(blocks, Xw, k, columns[k]);
    else if (K_ > 2 || k == 1)
      columns[k] = quadratic_columns_;
    double sum = 0.0;
    for (double v : columns[k]) sum += v * v;
    curvature_scale_ = std::max(curvature_scale_, sum / n_);
    if (has_free(k)) {
      columns[k].resize(columns[k].size() + F_.size());
      std::transform(F_.begin(), F_.end(),
                     columns[k].end() - static_cast<std::ptrdiff_t>(F_.size()), std::negate<>());
    }
  }
  for (std::size_t a = 0; a < diag_.size(); ++a) diag_[a] = U[a] / Y[a];
  features_.set_columns(n_, std::move(columns), coupling_);
}

inline bool NewtonSystem::factor_features() {
  const int m = schur_size_ = features_.size();
  C_.resize(static_cast<std::size_t>(m) * m);
  std::vector<double> delta(diag_);
  for (double& v : delta) v += regularisation * curvature_scale_;
  features_.form(delta, C_.data(), poll);
  for (int k = 0; k < K_; ++k) {
    const int own = own_columns(k);
    for (int c = 0; c < features_.width(k); ++c)
      C_[at(features_.offset(k) + c, features_.offset(k) + c)] += c < own ? 1.0 : proximal;
  }
  for (int r = 0, first = m - coupling_.count(); r < coupling_.count(); ++r)
    C_[at(first + r, first + r)] += coupling_.weight(r);
  return factor_schur();
}

inline void NewtonSystem::solve_features(NewtonVector& v) {
  z_.resize(schur_size_);
  features_.start(v.y, v.xi, g_);
  features_.gather(g_, z_.data());
  for (int k = 0; k < K_; ++k)
    for (int f = 0; has_free(k) && f < q_; ++f) z_[free_slot(k) + f] += v.b[free_offset(k) + f];
  double* open = z_.data() + schur_size_ - coupling_.n_open();
  for (std::size_t o = 0; o < v.z.size(); ++o) open[o] -= v.z[o];
  solve_factored(schur_size_, C_.data(), z_.data());
  std::copy(open, open + coupling_.n_open(), v.z.begin());
  const std::vector<double> row = v.xi;
  features_.finish(v.y, row, z_.data(), g_, v.xi);
  std::swap(v.y, g_);
  for (int k = 0; k < K_; ++k)
    for (int f = 0; has_free(k) && f < q_; ++f) v.b[free_offset(k) + f] = z_[free_slot(k) + f];
}

}  // namespace sparsvm
