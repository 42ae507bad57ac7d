// What all features say about the dual: their prices, the working set chosen by them, and what it
// costs to make the dual feasible.
//
// XᵀỸ has d x outputs entries, often far more than the working set of features; it is computed a
// block of features at a time, and only a few numbers per group are kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "penalty/penalty_layout.hpp"
#include "problem/problem.hpp"
#include "prox/prox.hpp"
#include "solvers/sdca/features.hpp"
#include "solvers/sdca/samples.hpp"
#include "solvers/sdca/settings.hpp"
#include "support/mmap_vector.hpp"

namespace sparsvm {

// What the dual says about every group of the penalty; single features where it has none.
class SdcaPrices {
 public:
  explicit SdcaPrices(const HingeProblem& problem)
      : problem_(problem), d_(problem.design->d()), outputs_(problem.outputs()),
        shape_(problem.penalty.shape()), joint_(problem.penalty.joint()),
        single_(problem.penalty.single_features()) {
    if (!single_) layout_.emplace(problem.penalty);
    values_.resize(static_cast<std::size_t>(single_ ? outputs_ : layout_->largest_block()));
  }

  // A penalty whose dual says which features are zero.
  bool selects() const { return problem_.penalty.selects(); }
  int64_t group_of(int64_t j) const {
    return problem_.penalty.grouped() ? problem_.penalty.groups[j] : j;
  }
  int64_t groups() const { return problem_.penalty.grouped() ? problem_.penalty.n_groups : d_; }

  // Find the prices from the pull T − XᵀỸ of all features, Ỹ being n x outputs.
  void find(const double* signed_dual) {
    norms_.assign(selects() ? static_cast<std::size_t>(groups()) : 0, 0.0);
    largest_ = squares_ = conjugate_ = 0.0;
    const int64_t wide =
        single_ ? std::max<int64_t>(1, SdcaSettings::kBlockEntries / outputs_) : d_;
    pull_.resize(static_cast<std::size_t>(std::min(wide, d_) * outputs_));
    std::vector<int32_t> places(static_cast<std::size_t>(problem_.design->n()), 0);
    for (int64_t first = 0; first < d_; first += wide) {
      const int64_t last = std::min(first + wide, d_);
      problem_.design->transposed_range(first, last, signed_dual, outputs_, pull_.data(),
                                        places.data());
      turn_around(first, last);
      add_squares(first, last);
      if (selects()) measure(first, last);
    }
    for (const double norm : norms_) largest_ = std::max(largest_, norm);
    if (!only_block()) pull_ = MmapVector<double>();
  }

  // The dual norm of every group over its bound; empty where the penalty selects nothing.
  const MmapVector<double>& norms() const { return norms_; }
  // T − XᵀỸ of the listed features, m x outputs.
  void pull_of(const std::vector<int32_t>& features, const double* signed_dual,
               MmapVector<double>& out) const {
    out.resize(features.size() * static_cast<std::size_t>(outputs_));
    if (only_block()) {  // it is still there
      for (std::size_t a = 0; a < features.size(); ++a)
        std::copy_n(pull_.data() + features[a] * outputs_, outputs_,
                    out.data() + static_cast<int64_t>(a) * outputs_);
      return;
    }
    problem_.design->transposed_subset(features.data(), std::ssize(features), signed_dual, outputs_,
                                       out.data());
    for (std::size_t a = 0; a < features.size(); ++a) {
      for (int64_t o = 0; o < outputs_; ++o) {
        double& pull = out[a * static_cast<std::size_t>(outputs_) + static_cast<std::size_t>(o)];
        pull =
            (problem_.linear_term ? problem_.linear_term[features[a] * outputs_ + o] : 0.0) - pull;
      }
    }
  }
  double largest() const { return largest_; }
  // Σ (pull/ω)².
  double squares() const { return squares_; }
  // g*(pull) of the penalties with a squared part.
  double conjugate() const { return conjugate_; }

 private:
  bool only_block() const { return single_ && d_ * outputs_ <= SdcaSettings::kBlockEntries; }

  // From XᵀỸ to T − XᵀỸ.
  void turn_around(int64_t first, int64_t last) {
    const int64_t entries = (last - first) * outputs_;
    double* pull = pull_.data();
    if (problem_.linear_term) {
      const double* linear_term = problem_.linear_term + first * outputs_;
      for (int64_t e = 0; e < entries; ++e) pull[e] = linear_term[e] - pull[e];
    } else {
      for (int64_t e = 0; e < entries; ++e) pull[e] = -pull[e];
    }
  }

  void add_squares(int64_t first, int64_t last) {
    const double ratio = problem_.penalty.absolute, quad = problem_.penalty.square;
    if (quad == 0.0) return;
    double excess = 0.0;
    for (int64_t j = first; j < last; ++j) {
      for (int64_t o = 0; o < outputs_; ++o) {
        const double u = std::abs(pull_[(j - first) * outputs_ + o]) / problem_.penalty.omega[j];
        const double over = std::max(u - ratio, 0.0);
        squares_ += u * u;
        excess += over * over;
      }
    }
    conjugate_ += excess / (2.0 * quad);
  }

  // The dual norms of the groups: single features from first on, or all groups.
  void measure(int64_t first, int64_t last) {
    if (single_) {
      for (int64_t j = first; j < last; ++j)
        norms_[group_of(j)] =
            norm_of_feature(pull_.data() + (j - first) * outputs_, 1.0 / problem_.penalty.omega[j]);
      return;
    }
    const int64_t copies = joint_ ? 1 : outputs_;
    for (int64_t b = 0; b < groups() * copies; ++b) {
      const int64_t size = layout_->values(b, pull_.data(), nullptr, 0.0, values_.data());
      double& norm = norms_[b / copies];
      if (size > 0) norm = std::max(norm, shape_.dual_norm(values_.data(), size));
    }
  }

  double norm_of_feature(const double* pull, double factor) {
    double most = 0.0;
    for (int64_t o = 0; o < outputs_; ++o) {
      values_[o] = pull[o] * factor;
      if (!joint_) most = std::max(most, shape_.dual_norm(values_.data() + o, 1));
    }
    return joint_ ? shape_.dual_norm(values_.data(), outputs_) : most;
  }

  HingeProblem problem_;
  int64_t d_, outputs_;
  BlockShape shape_;
  bool joint_;                           // the outputs of a group have one norm
  bool single_;                          // every group is one feature,
  std::optional<PenaltyLayout> layout_;  // otherwise what belongs to which
  MmapVector<double> pull_, norms_, values_;
  double largest_ = 0.0, squares_ = 0.0, conjugate_ = 0.0;
};

// Choices by the prices of the present dual.
class SdcaWorkingSet {
 public:
  SdcaWorkingSet(const HingeProblem& problem, const SdcaFeatures& features,
                 const SdcaPrices& prices)
      : problem_(problem), features_(features), prices_(prices), n_(problem.design->n()),
        d_(problem.design->d()), outputs_(problem.outputs()) {}

  // Used ∪ tight ∪ the best of the rest: at least 200, n/20 and as many as are used.
  std::vector<int32_t> features(const std::vector<int32_t>& used) const {
    std::vector<int32_t> out;
    if (!prices_.selects()) {
      out.resize(static_cast<std::size_t>(d_));
      std::iota(out.begin(), out.end(), 0);
      return out;
    }
    const MmapVector<double>& norms = prices_.norms();
    std::vector<unsigned char> take(norms.size(), 0);
    std::vector<int64_t> width(norms.size(), 0);
    for (int64_t j = 0; j < d_; ++j) ++width[prices_.group_of(j)];
    for (const int32_t j : used) take[prices_.group_of(j)] = 1;
    for (std::size_t u = 0; u < take.size(); ++u)
      if (norms[u] >= SdcaSettings::kTightFrom && norms[u] <= SdcaSettings::kTightTo) take[u] = 1;
    std::vector<int32_t> rest;
    for (std::size_t u = 0; u < take.size(); ++u)
      if (!take[u] && width[u] > 0) rest.push_back(static_cast<int32_t>(u));
    int64_t room = std::max(
        {SdcaSettings::kLeastFeatures, n_ / SdcaSettings::kSamplesPerFeature, std::ssize(used)});
    // No more than that many groups fit in.
    const auto end = rest.begin() + std::min(room, std::ssize(rest));
    const auto better = [&](int32_t a, int32_t b) {
      return norms[a] > norms[b] || (norms[a] == norms[b] && a < b);
    };
    std::nth_element(rest.begin(), end, rest.end(), better);
    std::sort(rest.begin(), end, better);
    for (auto group = rest.begin(); group != end && room > 0; ++group) {
      take[*group] = 1;
      room -= width[*group];
    }
    for (int64_t j = 0; j < d_; ++j)
      if (take[prices_.group_of(j)]) out.push_back(static_cast<int32_t>(j));
    return out;
  }

  // Of the listed features with centre C and pull T − XᵀỸ the entries that are used or tight (`needed`, numbered
  // among all) and the best of the rest; nothing where that would not save two thirds of them.
  EntryList entries(const std::vector<int32_t>& features, const MmapVector<double>& center,
                    const MmapVector<double>& pull, std::vector<int64_t>& needed) const {
    std::vector<std::pair<double, int32_t>> rest;
    std::vector<unsigned char> take(pull.size(), 0);
    int64_t used = 0,
            room = std::max(SdcaSettings::kLeastFeatures, n_ / SdcaSettings::kSamplesPerFeature);
    for (int64_t e = 0; e < std::ssize(pull); ++e) {
      const double price = std::abs(pull[e]) / problem_.penalty.omega[features[e / outputs_]];
      used += center[e] != 0.0;
      take[e] = center[e] != 0.0 || price >= SdcaSettings::kTightFrom * problem_.penalty.absolute;
      if (!take[e]) {
        rest.emplace_back(-price, static_cast<int32_t>(e));
      } else {
        needed.push_back(features[e / outputs_] * outputs_ + e % outputs_);
      }
    }
    room = std::min(std::max(room, used / 2), std::ssize(rest));
    std::nth_element(rest.begin(), rest.begin() + room, rest.end());
    for (int64_t r = 0; r < room; ++r) take[rest[r].second] = 1;
    const int64_t count = std::count(take.begin(), take.end(), 1);
    if (3 * count > std::ssize(take)) return {};
    return listed(take);
  }

  // Whether the present entries include the needed ones and are not far more than `wanted`: reading
  // the data for others takes as long as ten sweeps.
  bool covers(const std::vector<int64_t>& needed, int64_t wanted) const {
    const EntryList& list = features_.entries();
    if (!features_.by_entries() || list.size() > 2 * wanted) return false;
    std::vector<unsigned char> there(static_cast<std::size_t>(d_ * outputs_), 0);
    for (int64_t k = 0; k < outputs_; ++k)
      for (int64_t e = list.first[k]; e < list.first[k + 1]; ++e)
        there[features_.features()[list.feature[e]] * outputs_ + k] = 1;
    return std::all_of(needed.begin(), needed.end(), [&](int64_t e) { return there[e] != 0; });
  }

 private:
  // Flags of m x outputs entries as a list by outputs.
  EntryList listed(const std::vector<unsigned char>& take) const {
    EntryList list;
    list.first.assign(1, 0);
    for (int64_t k = 0; k < outputs_; ++k) {
      for (int64_t e = k; e < std::ssize(take); e += outputs_)
        if (take[e]) list.feature.push_back(static_cast<int32_t>(e / outputs_));
      list.first.push_back(list.size());
    }
    return list;
  }

  const HingeProblem& problem_;
  const SdcaFeatures& features_;  // those that take part now
  const SdcaPrices& prices_;
  int64_t n_, d_, outputs_;
};

// What making the present dual feasible costs.
class SdcaCosts {
 public:
  SdcaCosts(const HingeProblem& problem, const SdcaFeatures& features, const SdcaSamples& samples,
            const SdcaPrices& prices)
      : problem_(problem), features_(features), samples_(samples), prices_(prices),
        n_(problem.design->n()), d_(problem.design->d()), K_(problem.classes),
        outputs_(problem.outputs()) {}

  // Σ_k Y_ik r_ik of every sample, to be written before the rest is asked for.
  MmapVector<double>& gain() {
    gain_.resize(static_cast<std::size_t>(n_));
    return gain_;
  }
  // Sweeps need the memory more.
  void release() { gain_ = excess_ = MmapVector<double>(); }
  const MmapVector<double>& excess() const { return excess_; }

  // By how much the dual norm of each feature exceeds 1.
  void find_excess() {
    excess_.resize(static_cast<std::size_t>(d_));
    for (int64_t j = 0; j < d_; ++j)
      excess_[j] = std::max(prices_.norms()[prices_.group_of(j)] - 1.0, 0.0);
  }

  // The same within the working set; `pull_of` gives T − XᵀỸ of listed features.
  template <typename PullOf>
  MmapVector<double> excess_inside(PullOf pull_of) const {
    MmapVector<double> inside(excess_.size(), 0.0);
    const std::vector<int32_t>& features = features_.features();
    if (!features_.by_entries()) {
      for (const int32_t j : features) inside[j] = excess_[j];
      return inside;
    }
    const MmapVector<double> pull = pull_of(features);
    const EntryList& list = features_.entries();
    for (int64_t k = 0; k < outputs_; ++k) {
      for (int64_t e = list.first[k]; e < list.first[k + 1]; ++e) {
        const int32_t j = features[list.feature[e]];
        const double price =
            std::abs(pull[list.feature[e] * outputs_ + k]) / problem_.penalty.omega[j];
        inside[j] = std::max(inside[j], price - 1.0);
      }
    }
    return inside;
  }

  // What the dual loses when every sample is scaled by the worst of its features, as certificates
  // do it: of sparse samples a rare feature concerns few.
  double scaled_away(const MmapVector<double>& excess) const {
    std::vector<double> beyond(static_cast<std::size_t>(n_));
    problem_.design->largest_weights(excess.data(), beyond.data());
    double lost = 0.0;
    for (int64_t i = 0; i < n_; ++i) lost += gain_[i] * beyond[i] / (1.0 + beyond[i]);
    return lost;
  }

  // The largest relative difference between the dual variables that point to a class and those of
  // its own samples: balancing the two scales the dual down by about as much.
  double imbalance() const {
    std::vector<double> into(static_cast<std::size_t>(K_), 0.0), out(into);
    double total = 0.0, worst = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t k = 0; k < K_; ++k) {
        if (k == problem_.y[i]) continue;
        const double mass = samples_.dual()[i * K_ + k];
        into[k] += mass;
        out[problem_.y[i]] += mass;
        total += mass;
      }
    }
    for (int64_t k = 0; k < K_; ++k) {
      const double mass = std::max(into[k] + out[k], SdcaSettings::kSmallFlow * total);
      if (mass > 0.0) worst = std::max(worst, std::abs(into[k] - out[k]) / mass);
    }
    return worst;
  }

  // How much the dual norm may answer to a relative change of the dual variables of one class. The parts of
  // G that classes contribute cancel where a feature has a mean; balancing disturbs that.
  double leverage() const {
    if (problem_.penalty.square != 0.0) return 1.0;
    MmapVector<double> moved(static_cast<std::size_t>(n_)), G(static_cast<std::size_t>(d_));
    for (int64_t i = 0; i < n_; ++i)
      moved[i] = problem_.lambda[i] - samples_.dual()[i * K_ + problem_.y[i]];
    problem_.design->transposed(moved.data(), 1, G.data());
    double most = 0.0;
    for (int64_t j = 0; j < d_; ++j)
      most = std::max(most, std::abs(G[j]) / problem_.penalty.omega[j]);
    return std::max(1.0, 2.0 * most / static_cast<double>(K_));
  }

 private:
  const HingeProblem& problem_;
  const SdcaFeatures& features_;
  const SdcaSamples& samples_;
  const SdcaPrices& prices_;
  int64_t n_, d_, K_, outputs_;
  MmapVector<double> gain_, excess_;
};

}  // namespace sparsvm
