// The feature side of dual coordinate ascent: from the dual's pull on the features to the weights.
//
// With G = XᵀỸ, a linear term T and the centre C of the proximal step, the state is
//
//   V = aC + T − G,     W(V) = argmin_W  g(W) + ½ a‖W − C‖² − ⟨T − G, W⟩,
//
// g being the penalty. Measured in ω∘W the proximal term is 1/σ for every feature, a_j = ω_j²/σ,
// so that W_j = γ_j · (V shrunk at ω_j) with the gain γ_j = 1/(ω_j²(1/σ + q)), q being the curvature
// of the squared part of the penalty. Where there is one, 1/σ may be 0.
//
// Where nothing is shrunk (l2), W is linear in the dual: it takes the place of V, and what counts as
// the centre is its mean over several sweeps, whose objective is lower than that of the last W by a
// factor of 3 in the end: the dual errs by the square of what W does.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "design/design.hpp"
#include "design/row_reader.hpp"
#include "penalty/penalty.hpp"
#include "penalty/prox_map.hpp"
#include "prox/prox.hpp"
#include "solvers/sdca/entries.hpp"
#include "support/mmap_vector.hpp"

namespace sparsvm {

class SdcaFeatures {
 public:
  explicit SdcaFeatures(const Penalty& penalty)
      : penalty_(penalty.simplified()), K_(penalty.outputs), map_(penalty_) {}

  const SdcaMap& map() const { return map_; }
  bool linear() const { return map_ == SdcaMap::linear; }
  int64_t count() const { return m_; }
  int64_t outputs() const { return K_; }
  const std::vector<int32_t>& features() const { return features_; }
  const MmapVector<double>& center() const { return center_; }
  SdcaRow row(int64_t j) const {
    const double cut = cut_.empty() ? 0.0 : cut_[j];
    return {V_.data() + j * K_, gain_[j], level_[j], size_[j], cut};
  }

  // Take up the given features (ascending) with centre C (m x outputs), and V as at Ỹ = 0: the
  // pull of the dual is to be subtracted, and `refresh` called. The linear term is of all d features.
  void take(std::vector<int32_t> features, MmapVector<double> center, const double* linear_term,
            double inverse_sigma) {
    features_ = std::move(features);
    center_ = std::move(center);
    m_ = std::ssize(features_);
    gain_.resize(size(m_));
    // Only what shrinks has the others.
    for (auto* list : {&anchor_, &level_, &size_}) list->assign(linear() ? 0 : size(m_), 0.0);
    const double share = map_ == SdcaMap::entries ? penalty_.absolute : 1.0;
    for (int64_t j = 0; j < m_; ++j) {
      const double omega = penalty_.omega[features_[j]];
      gain_[j] = 1.0 / (omega * omega * (inverse_sigma + penalty_.square));
      if (linear()) continue;
      anchor_[j] = omega * omega * inverse_sigma;
      level_[j] = share * omega;
    }
    uniform_ = std::all_of(gain_.begin(), gain_.end(), [&](double g) { return g == gain_[0]; });
    if (linear() && uniform_ && m_ > 1) gain_ = std::vector<double>{gain_[0]};
    V_ = MmapVector<double>();  // one at a time
    V_.resize(size(m_ * K_));
    for (int64_t j = 0; j < m_; ++j) {
      for (int64_t k = 0; k < K_; ++k) {
        const double own = linear_term ? linear_term[features_[j] * K_ + k] : 0.0;
        V_[j * K_ + k] = linear() ? gain(j) * own : anchor_[j] * center_[j * K_ + k] + own;
      }
    }
    cut_.assign(map_.form() == RowForm::clipped ? size(m_) : 0, 0.0);
    scratch_.reserve(K_);
    row_.resize(size(K_));
    entries_.clear();
    if (map_ == SdcaMap::groups) groups_.take(features_, penalty_);
  }

  // The centre itself. In the linear case the next mean makes another, and until then W is V.
  MmapVector<double> give_center() { return std::exchange(center_, MmapVector<double>()); }
  const MmapVector<double>& present() const { return center_.empty() ? V_ : center_; }

  // Give V up: until others are taken up only the centre counts. Not in the linear case.
  void drop_state() {
    if (!linear()) V_ = MmapVector<double>();
  }
  // Hold no more than the centre of these features (ascending) until others are taken up.
  void hold(const std::vector<int32_t>& features) {
    center_ = rows_of(features, features_, center_, K_);
    features_ = features;
    m_ = std::ssize(features_);
    V_ = MmapVector<double>();
    entries_.clear();
  }

  // Whether single entries of a feature can be left out.
  bool separates() const { return map_ == SdcaMap::entries && K_ > 1; }
  // After `take`: of the features taken only these entries take part.
  void take_entries(EntryList list) {
    entries_.take(std::move(list), gain_.data(), anchor_.data(), level_.data(), V_.data(),
                  center_.data());
  }
  bool by_entries() const { return !entries_.empty(); }
  const EntryList& entries() const { return entries_.list(); }
  // Of single entries: γ where W is not zero, and the sum of their Φ(V).
  double slope(int64_t entry) const { return entries_.slope(entry); }
  double entry_potential() const { return entries_.potential(); }

  // V −= x yᵀ with all outputs, before `refresh`.
  template <typename T>
  void subtract(const SampleRow<T>& row, const double* y) {
    for (int64_t e = 0; e < row.count; ++e) {
      const int64_t j = row.index[e];
      double* v = V_.data() + j * K_;
      const double weight = static_cast<double>(row.x[e]) * (linear() ? gain(j) : 1.0);
      for (int64_t k = 0; k < K_; ++k) v[k] -= weight * y[k];
    }
  }
  template <typename T>
  void subtract(const EntryRow<T>& row, const double* y) {
    entries_.subtract(row, y);
  }

  // Σ γ_j x_j² over all features of the sample, or the largest of a class over its entries.
  template <typename T>
  double curvature(const SampleRow<T>& row) const {
    double sum = 0.0;
    for (int64_t e = 0; e < row.count; ++e) {
      const double x = static_cast<double>(row.x[e]);
      sum += gain(row.index[e]) * x * x;
    }
    return sum;
  }
  template <typename T>
  double curvature(const EntryRow<T>& row) const {
    return entries_.curvature(row);
  }

  // s += Cᵀ x.
  template <typename T>
  void add_center(const SampleRow<T>& row, const std::vector<unsigned char>& used,
                  double* s) const {
    if (linear())
      return kernels::add_scaled_rows(center_.data(), K_, row.index, row.x, row.count, s);
    for (int64_t e = 0; e < row.count; ++e) {
      if (!used[row.index[e]]) continue;
      const double x = static_cast<double>(row.x[e]);
      const double* w = center_.data() + row.index[e] * K_;
      for (int64_t k = 0; k < K_; ++k) s[k] += x * w[k];
    }
  }
  template <typename T>
  void add_center(const EntryRow<T>& row, const std::vector<unsigned char>&, double* s) const {
    entries_.add_center(row, s);
  }

  // Recompute what updates maintain only up to rounding or as bounds.
  void refresh() {
    if (linear()) return;
    if (by_entries()) return entries_.refresh();
    const RowForm form = map_.form();
    for (int64_t j = 0; j < m_; ++j) {
      const double* v = V_.data() + j * K_;
      double most = 0.0, sum = 0.0, squares = 0.0;
      for (int64_t k = 0; k < K_; ++k) {
        const double a = std::abs(v[k]);
        most = a > most ? a : most;
        sum += a;
        squares += a * a;
      }
      size_[j] = form == RowForm::scaled ? squares : form == RowForm::clipped ? sum : most;
      if (form == RowForm::clipped && sum > level_[j]) find_cut(j);
    }
    groups_.touch();
  }

  // Bring the rows of the linear case near.
  void fetch(const int32_t* index, int64_t count) const {
    for (int64_t e = 0; e < count; ++e) {
      const double* row = V_.data() + index[e] * K_;
      for (int64_t k = 0; k < K_; k += 8) SPARSVM_PREFETCH(row + k);
      SPARSVM_PREFETCH(row + K_ - 1);
    }
  }

  // s += W(V)ᵀ x. Returns Σ γ_j x_j² over the features that are not zero (the largest of a class
  // over its entries): how s answers to a change of the sample's dual if no feature comes or goes.
  // Not found out in the linear case.
  template <typename T>
  double gather(const SampleRow<T>& row, double* s) {
    switch (map_.kind) {
      case SdcaMap::linear:
        kernels::add_scaled_rows(V_.data(), K_, row.index, row.x, row.count, s);
        return 0.0;
      case SdcaMap::entries: return gather_entries(row.x, row.index, row.count, s);
      case SdcaMap::rows:
        return map_.with_rows(
            [&](auto rows) { return gather_norm(rows, row.x, row.index, row.count, s); });
      case SdcaMap::groups: return gather_groups(row.x, row.index, row.count, s);
      default: return gather_rows(row.x, row.index, row.count, s);
    }
  }
  template <typename T>
  double gather(const EntryRow<T>& row, double* s) {
    return entries_.gather(row, s);
  }

  // V_k −= x Δ_c for the listed outputs k = moved[c]; Δ is not kept.
  template <typename T>
  void scatter(const SampleRow<T>& row, double* delta, const int32_t* moved, int64_t n_moved) {
    using kernels::RowSize;
    if (linear()) {
      if (uniform_)
        for (int64_t c = 0; c < n_moved; ++c) delta[c] *= gain_[0];
      return kernels::subtract_scaled_rows(V_.data(), K_, uniform_ ? nullptr : gain_.data(), row.x,
                                           row.index, row.count, delta, moved, n_moved);
    }
    double* V = V_.data();
    double* bound = size_.data();
    switch (map_.form()) {
      case RowForm::scaled:
        return kernels::subtract_rows<RowSize::squares>(V, K_, bound, row.x, row.index, row.count,
                                                        delta, moved, n_moved);
      case RowForm::clipped:
        return kernels::subtract_rows<RowSize::sum>(V, K_, bound, row.x, row.index, row.count,
                                                    delta, moved, n_moved);
      default:
        kernels::subtract_rows<RowSize::most>(V, K_, bound, row.x, row.index, row.count, delta,
                                              moved, n_moved);
    }
    if (map_ == SdcaMap::groups)
      for (int64_t e = 0; e < row.count; ++e) groups_.touch(row.index[e]);
  }
  template <typename T>
  void scatter(const EntryRow<T>& row, const double* delta, const int32_t* moved, int64_t n_moved) {
    entries_.scatter(row, delta, moved, n_moved);
  }

  // ½ Σ_j a_j‖W_j − C_j‖².
  double moved() {
    if (linear()) return 0.0;
    if (by_entries()) return entries_.moved();
    double sum = 0.0;
    for (int64_t j = 0; j < m_; ++j) {
      const double *w = weights_of(j), *center = center_.data() + j * K_;
      for (int64_t k = 0; k < K_; ++k)
        sum += 0.5 * anchor_[j] * (w[k] - center[k]) * (w[k] - center[k]);
    }
    return sum;
  }

  // The proximal step: the centre becomes the present W. Returns ⟨a(W − C), W⟩.
  double advance() {
    if (linear()) return 0.0;
    if (by_entries()) return entries_.advance(center_.data());
    // The weights of a group belong to the V before any of it moves.
    if (map_ == SdcaMap::groups) groups_.evaluate(state());
    double change = 0.0;
    for (int64_t j = 0; j < m_; ++j) {
      const double* w = weights_of(j);
      for (int64_t k = 0; k < K_; ++k) {
        const double move = anchor_[j] * (w[k] - center_[j * K_ + k]);
        change += move * w[k];
        V_[j * K_ + k] += move;
        center_[j * K_ + k] = w[k];
      }
    }
    refresh();
    return change;
  }

  // The mean of the linear case begins anew, or takes the present W in.
  void forget() { averaged_ = 0; }
  void average() {
    if (!linear()) return;
    if (center_.empty()) center_.resize(V_.size());
    const double share = 1.0 / static_cast<double>(++averaged_);
    for (std::size_t e = 0; e < V_.size(); ++e) center_[e] += share * (V_[e] - center_[e]);
  }

  // g*(V) of the squared penalty, the only one without levels to shrink at.
  double conjugate() const {
    double sum = 0.0;
    for (int64_t j = 0; j < m_; ++j) {
      double squares = 0.0;
      for (int64_t k = j * K_; k < (j + 1) * K_; ++k) squares += V_[k] * V_[k];
      sum += 0.5 * squares / gain(j);
    }
    return sum;
  }

  // g at the centre.
  double penalty() const { return penalty_sum(penalty_, features_, center_.data()); }

 private:
  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }
  double gain(int64_t j) const { return gain_[gain_.size() > 1 ? j : 0]; }
  SdcaState state() const { return {V_.data(), gain_.data(), level_.data()}; }

  double largest(const double* v) const {
    double most = 0.0;
    for (int64_t k = 0; k < K_; ++k) most = std::abs(v[k]) > most ? std::abs(v[k]) : most;
    return most;
  }

  // Lists the rows that do not vanish, with their factors, for the kernels.
  void list(int64_t j, double weight, int64_t& listed) {
    rows_[listed] = static_cast<int32_t>(j);
    SPARSVM_PREFETCH(V_.data() + j * K_);
    SPARSVM_PREFETCH(V_.data() + j * K_ + 8);
    weights_[listed++] = weight;
  }

  void make_room(int64_t count) {
    if (count <= std::ssize(rows_)) return;
    rows_.resize(size(count));
    weights_.resize(size(count));
    levels_.resize(size(count));
  }

  template <typename T>
  double gather_entries(const T* x, const int32_t* index, int64_t count, double* s) {
    make_room(count);
    int64_t listed = 0;
    double curvature = 0.0;
    for (int64_t e = 0; e < count; ++e) {
      const int64_t j = index[e];
      if (size_[j] <= level_[j]) continue;
      if ((size_[j] = largest(V_.data() + j * K_)) <= level_[j]) continue;
      levels_[listed] = level_[j];
      const double value = static_cast<double>(x[e]), weight = value * gain_[j];
      curvature += value * weight;
      list(j, weight, listed);
    }
    kernels::add_shrunk_rows(V_.data(), K_, rows_.data(), weights_.data(), levels_.data(), listed,
                             s);
    return curvature;
  }

  template <typename Rows, typename T>
  double gather_norm(Rows rows, const T* x, const int32_t* index, int64_t count, double* s) {
    if constexpr (Rows::kForm == RowForm::other) return gather_rows(x, index, count, s);
    make_room(count);
    int64_t listed = 0;
    double curvature = 0.0;
    for (int64_t e = 0; e < count; ++e) {
      const int64_t j = index[e];
      if (!rows.in_use(size_[j], level_[j])) continue;
      if constexpr (Rows::kForm == RowForm::clipped) levels_[listed] = find_cut(j);
      const double value = static_cast<double>(x[e]), weight = value * gain_[j];
      curvature += value * weight;
      list(j, weight * rows.factor(size_[j], level_[j]), listed);
    }
    if constexpr (Rows::kForm == RowForm::clipped)
      kernels::add_clipped_rows(V_.data(), K_, rows_.data(), weights_.data(), levels_.data(),
                                listed, s);
    else
      kernels::add_scaled_rows(V_.data(), K_, rows_.data(), weights_.data(), listed, s);
    return curvature;
  }

  // Where a row in use is clipped: near where it was before.
  double find_cut(int64_t j) {
    return cut_[j] = kernels::clipping_level(V_.data() + j * K_, K_, level_[j], cut_[j]);
  }

  template <typename T>
  double gather_rows(const T* x, const int32_t* index, int64_t count, double* s) {
    double curvature = 0.0;
    for (int64_t e = 0; e < count; ++e) {
      const int64_t j = index[e];
      if (size_[j] <= penalty_.absolute * level_[j]) continue;
      shrink_row(j, row_.data());
      if (all_zero_row(row_.data(), K_)) continue;
      const double value = static_cast<double>(x[e]), weight = value * gain_[j];
      curvature += value * weight;
      for (int64_t k = 0; k < K_; ++k) s[k] += weight * row_[k];
    }
    return curvature;
  }

  template <typename T>
  double gather_groups(const T* x, const int32_t* index, int64_t count, double* s) {
    double curvature = 0.0;
    for (int64_t e = 0; e < count; ++e) {
      const int64_t j = index[e];
      groups_.evaluate(j, state());
      if (!groups_.alive(j)) continue;
      const double weight = static_cast<double>(x[e]);
      curvature += weight * weight * gain_[j];
      const double* w = groups_.weights(j);
      for (int64_t k = 0; k < K_; ++k) s[k] += weight * w[k];
    }
    return curvature;
  }

  // W_j at the present V; valid until the next call.
  const double* weights_of(int64_t j) {
    if (map_ == SdcaMap::groups) {
      groups_.evaluate(j, state());
      return groups_.weights(j);
    }
    shrink_row(j, row_.data());
    for (int64_t k = 0; k < K_; ++k) row_[k] = gain_[j] * row_[k] + 0.0;
    return row_.data();
  }

  // V_j shrunk at its level, without the gain.
  void shrink_row(int64_t j, double* out) {
    const double absolute = map_ == SdcaMap::entries ? 1.0 : penalty_.absolute;
    sdca_shrink(map_.norm, absolute * level_[j], penalty_.norm * level_[j], V_.data() + j * K_, K_,
                out, scratch_);
  }

  Penalty penalty_;
  int64_t K_, m_ = 0;
  SdcaMap map_;
  bool uniform_ = false;  // all gains are the same
  int64_t averaged_ = 0;  // steps in the mean of the linear case
  std::vector<int32_t> features_;
  MmapVector<double> V_, center_;              // m x outputs
  std::vector<double> gain_, anchor_, level_;  // m; one gain where all are the same and linear
  std::vector<double> size_;                   // m: what tells that a row is zero
  std::vector<double> cut_;                    // m: where rows are clipped
  std::vector<double> row_;
  std::vector<int32_t> rows_;  // of one sample: the rows that do not vanish, their factors, levels
  std::vector<double> weights_, levels_;
  ProxScratch scratch_;
  SdcaGroups groups_;    // empty where features are on their own
  SdcaEntries entries_;  // empty where whole features take part
};

}  // namespace sparsvm
