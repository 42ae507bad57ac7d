// W(V) of sdca/features.hpp, a prox map: the shapes it takes with the different penalties, its derivative where rows
// are easily differentiated, and its values where the penalty joins several features.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "penalty/penalty.hpp"
#include "prox/prox.hpp"
#include "support/mmap_vector.hpp"

namespace sparsvm {

inline bool all_zero_row(const double* row, int64_t K) {
  return std::all_of(row, row + K, [](double v) { return v == 0.0; });
}

// How W(V) separates: by entries, which may be scaled only, by rows of one feature and all outputs (of
// a norm, or of one with absolute values), or by wider groups.
struct SdcaMap {
  enum Kind { linear, entries, rows, mixed_rows, groups };

  // Of a simplified penalty.
  explicit SdcaMap(const Penalty& penalty) : norm(penalty.group_norm) {
    if (!penalty.grouped())
      kind = penalty.absolute == 0.0 ? linear : entries;
    else if (!penalty.joint() || !penalty.single_features())
      kind = groups;
    else
      kind = penalty.absolute == 0.0 ? rows : mixed_rows;
  }

  Kind kind;
  GroupNorm norm;

  bool operator==(Kind other) const { return kind == other; }
  // use(the norm's way with rows).
  template <typename Use>
  decltype(auto) with_rows(Use use) const {
    return with_group_norm(norm, [&](auto of) { return use(typename decltype(of)::Rows()); });
  }
  // What is made of rows; RowForm::other where W is not made by rows of a norm.
  RowForm form() const {
    return kind == rows ? with_rows([](auto norm_rows) { return norm_rows.kForm; })
                        : RowForm::other;
  }
  bool differentiable() const { return kind == entries || form() != RowForm::other; }
};

// u shrunk by absolute values and a norm.
inline void sdca_shrink(GroupNorm norm, double absolute, double radius, const double* v, int64_t n,
                        double* out, ProxScratch& scratch) {
  if (absolute > 0.0) {
    for (int64_t k = 0; k < n; ++k) out[k] = soft(v[k], absolute);
    v = out;
  }
  if (norm != GroupNorm::none)
    with_group_norm(norm, [&](auto of) { of.prox(v, n, radius, out, scratch); });
}

// The rows (outputs each) of the listed features among those of others, zero where there is none;
// both lists ascend.
inline MmapVector<double> rows_of(const std::vector<int32_t>& list,
                                  const std::vector<int32_t>& others,
                                  const MmapVector<double>& rows, int64_t outputs) {
  MmapVector<double> out(list.size() * static_cast<std::size_t>(outputs), 0.0);
  std::size_t at = 0;
  for (std::size_t a = 0; a < list.size(); ++a) {
    while (at < others.size() && others[at] < list[a]) ++at;
    if (at == others.size()) break;
    if (others[at] == list[a])
      std::copy_n(rows.data() + static_cast<int64_t>(at) * outputs, outputs,
                  out.data() + static_cast<int64_t>(a) * outputs);
  }
  return out;
}

// ---------------------------------------------------------------- the derivative

// Whether W is not zero there.
inline bool sdca_in_use(const SdcaMap& map, const SdcaRow& row) {
  if (map == SdcaMap::entries) return row.size > row.level;
  return map.with_rows([&](auto rows) { return rows.in_use(row.size, row.level); });
}

// u <- W'(V) u for a feature in use.
inline void sdca_slope(const SdcaMap& map, const SdcaRow& row, int64_t K, double* u) {
  if (map != SdcaMap::entries) return map.with_rows([&](auto rows) { rows.slope(row, K, u); });
  for (int64_t k = 0; k < K; ++k) u[k] = std::abs(row.v[k]) > row.level ? row.gain * u[k] : 0.0;
}

// The mean of the diagonal of W'(V), or a bound of it.
inline double sdca_mean_slope(const SdcaMap& map, const SdcaRow& row, int64_t K) {
  if (map == SdcaMap::entries) return row.gain;
  return map.with_rows([&](auto rows) { return rows.mean_slope(row, K); });
}

// Φ(V), whose gradient is W.
inline double sdca_potential(const SdcaMap& map, const SdcaRow& row, int64_t K) {
  if (!sdca_in_use(map, row)) return 0.0;
  if (map != SdcaMap::entries)
    return 0.5 * row.gain * map.with_rows([&](auto rows) { return rows.squares(row, K); });
  double squares = 0.0;
  for (int64_t k = 0; k < K; ++k) {
    const double over = soft(row.v[k], row.level);
    squares += over * over;
  }
  return 0.5 * row.gain * squares;
}

// ---------------------------------------------------------------- groups of features

// V (m x outputs) and per feature the gain and the level of shrinking.
struct SdcaState {
  const double *V, *gain, *level;
};

// W(V) group by group, found when it is asked for and kept until a row of the group changes.
class SdcaGroups {
 public:
  // Number the groups among the features.
  void take(const std::vector<int32_t>& features, const Penalty& penalty) {
    penalty_ = &penalty;
    std::vector<int32_t> number(static_cast<std::size_t>(penalty.n_groups), -1);
    int32_t count = 0;
    group_.resize(features.size());
    for (std::size_t j = 0; j < features.size(); ++j) {
      int32_t& known = number[penalty.groups[features[j]]];
      if (known < 0) known = count++;
      group_[j] = known;
    }
    list_by_group(std::ssize(features), count, [&](int64_t j) { return group_[j]; }, first_,
                  members_);
    int64_t widest = 0;
    for (int32_t g = 0; g < count; ++g) widest = std::max(widest, first_[g + 1] - first_[g]);
    stale_.assign(static_cast<std::size_t>(count), 1);
    alive_.assign(static_cast<std::size_t>(count), 0);
    cached_.assign(features.size() * static_cast<std::size_t>(penalty.outputs), 0.0);
    gathered_.resize(static_cast<std::size_t>(widest * penalty.outputs));
    scratch_.reserve(widest * penalty.outputs);
  }

  int64_t of(int64_t j) const { return group_[j]; }
  // A row of the feature's group has changed; every row has.
  void touch(int64_t j) { stale_[group_[j]] = 1; }
  void touch() { std::fill(stale_.begin(), stale_.end(), static_cast<unsigned char>(1)); }

  // Bring W up to date: of the group of feature j, of all groups.
  void evaluate(int64_t j, const SdcaState& state) {
    if (stale_[group_[j]]) evaluate_group(group_[j], state);
  }
  void evaluate(const SdcaState& state) {
    for (int64_t g = 0; g + 1 < std::ssize(first_); ++g)
      if (stale_[g]) evaluate_group(g, state);
  }
  // Whether anything of the feature's group is not zero, and the feature's weights, as evaluated.
  bool alive(int64_t j) const { return alive_[group_[j]] != 0; }
  const double* weights(int64_t j) const { return cached_.data() + j * penalty_->outputs; }

 private:
  // cached = W on one group: unweighted shrinking of V/ω, times gain · ω.
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
      sdca_shrink(penalty_->group_norm, penalty_->absolute, penalty_->norm, gathered_.data(),
                  (to - from) * width, gathered_.data(), scratch_);
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

  const Penalty* penalty_ = nullptr;
  std::vector<int32_t> group_, members_;  // of each feature; by group
  std::vector<int64_t> first_;
  std::vector<unsigned char> stale_, alive_;
  MmapVector<double> cached_, gathered_;
  ProxScratch scratch_;
};

}  // namespace sparsvm
