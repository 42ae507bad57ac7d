// The matrices of the Newton system in single precision, from the side of the samples.
//
// Far from the end a direction needs few digits. Forming and inverting M_k in single precision takes
// half the time; both are applied to vectors of doubles, so that the constraints of the system are
// kept as exactly as ever. Member functions of NewtonSystem, declared in newton_system.hpp.
#pragma once

#include "solvers/interior_point/newton_system.hpp"

namespace sparsvm {

inline void NewtonSystem::choose_means(bool shared_diagonal) {
  if (feature_side_)
    means_ = Means::factor;
  else if (coarse && single_suffices_ && !shared_diagonal && coupling_.count() == 0 &&
           n_ >= kLeastSingle)
    means_ = Means::single;
  else
    means_ = inverse_suffices_ ? Means::inverse : Means::factor;
}

// Room for what the means need; what they no longer need is given back.
inline void NewtonSystem::reserve_matrices() {
  const std::size_t size = static_cast<std::size_t>(K_) * n_ * n_;
  if (means_ == Means::single) {
    single_.resize(size);
    single_inverse_.resize(size);
  } else if (M_.size() != size) {
    std::vector<float>().swap(single_);
    std::vector<float>().swap(single_inverse_);
    M_.resize(size);
  }
}

inline void NewtonSystem::form_single(const ConeBlocks& blocks, const double* Xw, int k) {
  list_scaled_columns(blocks, k);
  const int columns = static_cast<int>(sums_.count());
  single_columns_.resize(static_cast<std::size_t>(columns) * n_);
  form_column_sums(sums_, Xw, n_, single_columns_.data());
  gram_by_halves(n_, columns, single_columns_.data(), single_block(k), n_, poll);
}

inline bool NewtonSystem::invert_single(int k) {
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

}  // namespace sparsvm
