// What sdca knows about its gap: estimates of the parts that certificates find.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "solvers/sdca/sdca.hpp"
#include "solvers/sdca/sdca_features.hpp"
#include "solvers/sdca/sdca_prices.hpp"
#include "solvers/sdca/sdca_problem.hpp"
#include "support/mmap_vector.hpp"

namespace sparsvm {

/// What a look at the whole problem found, in units of alpha.
struct SdcaValues {
  double objective = INFINITY, dual = -INFINITY;
  double samples = 0.0;    // λ max(S + r) − ⟨Y, S + r⟩: what the sweeps have left
  double scaling = 0.0;    // what making the dual feasible costs, within the working set
  double features = 0.0;   // ⟨centre's last move, W⟩: what the proximal steps have left
  double intercept = 0.0;  // the same of the intercept
  double norm = 0.0;       // the largest dual norm of all groups
  double gap() const { return objective - dual; }
};

/// What making the present dual feasible costs.
class SdcaCosts {
 public:
  SdcaCosts(const HingeProblem& problem, const SdcaFeatures& features, const SdcaSamples& samples,
            const SdcaPrices& prices)
      : problem_(problem), features_(features), samples_(samples), prices_(prices),
        n_(problem.design->n()), d_(problem.design->d()), K_(problem.classes),
        outputs_(problem.outputs()) {}

  /// Σ_k Y_ik r_ik of every sample, to be written before the rest is asked for.
  Pages<double>& gain() {
    gain_.resize(static_cast<std::size_t>(n_));
    return gain_;
  }
  /// Sweeps need the memory more.
  void release() { gain_ = excess_ = Pages<double>(); }
  const Pages<double>& excess() const { return excess_; }

  /// By how much the dual norm of each feature exceeds 1.
  void find_excess() {
    excess_.resize(static_cast<std::size_t>(d_));
    for (int64_t j = 0; j < d_; ++j)
      excess_[j] = std::max(prices_.norms()[prices_.unit_of(j)] - 1.0, 0.0);
  }

  /// The same within the working set; `pull_of` gives T − XᵀỸ of listed features.
  template <typename PullOf>
  Pages<double> excess_inside(PullOf pull_of) const {
    Pages<double> inside(excess_.size(), 0.0);
    const std::vector<int32_t>& features = features_.features();
    if (!features_.by_entries()) {
      for (const int32_t j : features) inside[j] = excess_[j];
      return inside;
    }
    const Pages<double> pull = pull_of(features);
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

  /// What the dual loses when every sample is scaled by the worst of its features, as certificates
  /// do it: of sparse samples a rare feature concerns few.
  double scaled_away(const Pages<double>& excess) const {
    std::vector<double> beyond(static_cast<std::size_t>(n_));
    problem_.design->largest_weights(excess.data(), beyond.data());
    double lost = 0.0;
    for (int64_t i = 0; i < n_; ++i) lost += gain_[i] * beyond[i] / (1.0 + beyond[i]);
    return lost;
  }

  /// The largest relative difference between what flows into a class and out of it: balancing the
  /// two scales the dual down by about as much.
  double imbalance() const {
    std::vector<double> into(static_cast<std::size_t>(K_), 0.0), out(into);
    double total = 0.0, worst = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t k = 0; k < K_; ++k) {
        if (k == problem_.y[i]) continue;
        const double flow = samples_.dual()[i * K_ + k];
        into[k] += flow;
        out[problem_.y[i]] += flow;
        total += flow;
      }
    }
    for (int64_t k = 0; k < K_; ++k) {
      const double flow = std::max(into[k] + out[k], 1e-3 * total);
      if (flow > 0.0) worst = std::max(worst, std::abs(into[k] - out[k]) / flow);
    }
    return worst;
  }

  /// How much the dual norm may answer to a relative change of the flows of one class. The parts of
  /// G that classes contribute cancel where a feature has a mean; balancing disturbs that.
  double leverage() const {
    if (problem_.penalty.quad() != 0.0) return 1.0;
    Pages<double> flow(static_cast<std::size_t>(n_)), G(static_cast<std::size_t>(d_));
    for (int64_t i = 0; i < n_; ++i)
      flow[i] = problem_.lambda[i] - samples_.dual()[i * K_ + problem_.y[i]];
    problem_.design->transposed(flow.data(), 1, G.data());
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
  Pages<double> gain_, excess_;
};

}  // namespace sparsvm
