// W(V) of sdca_features.hpp where the penalty joins several features: found group by group when it
// is asked for, and kept until a row of the group changes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "penalty/penalty.hpp"
#include "prox/prox.hpp"
#include "support/mmap_vector.hpp"

namespace sparsvm {

/// V (m x outputs) and per feature the gain and the level of shrinking.
struct SdcaState {
  const double *V, *gain, *level;
};

class SdcaGroups {
 public:
  /// Number the groups among the features.
  void take(const std::vector<int32_t>& features, const Penalty& penalty) {
    penalty_ = &penalty;
    std::vector<int32_t> number(static_cast<std::size_t>(penalty.n_groups), -1);
    std::vector<int64_t> sizes;
    group_.resize(features.size());
    for (std::size_t j = 0; j < features.size(); ++j) {
      int32_t& known = number[penalty.groups[features[j]]];
      if (known < 0) {
        group_[j] = known = static_cast<int32_t>(sizes.size());
        sizes.push_back(1);
      } else {
        ++sizes[group_[j] = known];
      }
    }
    first_.assign(sizes.size() + 1, 0);
    int64_t widest = 0;
    for (std::size_t g = 0; g < sizes.size(); ++g) {
      first_[g + 1] = first_[g] + sizes[g];
      widest = std::max(widest, sizes[g]);
    }
    members_.resize(features.size());
    std::vector<int64_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t j = 0; j < features.size(); ++j)
      members_[next[group_[j]]++] = static_cast<int32_t>(j);
    stale_.assign(sizes.size(), 1);
    alive_.assign(sizes.size(), 0);
    cached_.assign(features.size() * static_cast<std::size_t>(penalty.outputs), 0.0);
    gathered_.resize(static_cast<std::size_t>(widest * penalty.outputs));
    scratch_.reserve(widest * penalty.outputs);
  }

  int64_t of(int64_t j) const { return group_[j]; }
  /// A row of the feature's group has changed; every row has.
  void touch(int64_t j) { stale_[group_[j]] = 1; }
  void touch() { std::fill(stale_.begin(), stale_.end(), static_cast<unsigned char>(1)); }

  /// Bring W up to date: of the group of feature j, of all groups.
  void evaluate(int64_t j, const SdcaState& state) {
    if (stale_[group_[j]]) evaluate_group(group_[j], state);
  }
  void evaluate(const SdcaState& state) {
    for (int64_t g = 0; g + 1 < std::ssize(first_); ++g)
      if (stale_[g]) evaluate_group(g, state);
  }
  /// Whether anything of the feature's group is not zero, and the feature's weights, as evaluated.
  bool alive(int64_t j) const { return alive_[group_[j]] != 0; }
  const double* weights(int64_t j) const { return cached_.data() + j * penalty_->outputs; }

 private:
  /// cached = W on one group: unweighted shrinking of V/ω, times gain · ω.
  void evaluate_group(int64_t g, const SdcaState& state) {
    stale_[g] = 0;
    alive_[g] = 0;
    const int64_t K = penalty_->outputs, from = first_[g], to = first_[g + 1];
    const int64_t width = penalty_->per_class ? 1 : K, copies = penalty_->per_class ? K : 1;
    for (int64_t c = 0; c < copies; ++c) {
      double* at = gathered_.data();
      for (int64_t i = from; i < to; ++i) {
        const int64_t j = members_[i];
        const double scale = 1.0 / state.level[j];
        for (int64_t k = 0; k < width; ++k) *at++ = scale * state.V[j * K + c + k];
      }
      shrink(gathered_.data(), (to - from) * width);
      at = gathered_.data();
      for (int64_t i = from; i < to; ++i) {
        const int64_t j = members_[i];
        const double scale = state.gain[j] * state.level[j];
        for (int64_t k = 0; k < width; ++k, ++at) {
          cached_[j * K + c + k] = scale * *at + 0.0;
          if (*at != 0.0) alive_[g] = 1;
        }
      }
    }
  }

  void shrink(double* u, int64_t n) {
    switch (penalty_->kind) {
      case PenaltyKind::group_linf: return prox_group_linf(u, n, 1.0, u, scratch_);
      case PenaltyKind::sparse_group:
        for (int64_t k = 0; k < n; ++k) u[k] = soft(u[k], penalty_->l1_ratio);
        return prox_group_l2(u, n, 1.0 - penalty_->l1_ratio, u);
      default: return prox_group_l2(u, n, 1.0, u);
    }
  }

  const Penalty* penalty_ = nullptr;
  std::vector<int32_t> group_, members_;  // of each feature; by group
  std::vector<int64_t> first_;
  std::vector<unsigned char> stale_, alive_;
  Pages<double> cached_, gathered_;
  ProxScratch scratch_;
};

}  // namespace sparsvm
