// Which features take part in dual coordinate ascent, and which of their entries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "solvers/sdca/sdca_features.hpp"
#include "solvers/sdca/sdca_prices.hpp"
#include "solvers/sdca/sdca_problem.hpp"
#include "support/mmap_vector.hpp"

namespace sparsvm {

/// Choices by the prices of the present dual.
class SdcaWorkingSet {
 public:
  SdcaWorkingSet(const HingeProblem& problem, const SdcaFeatures& features,
                 const SdcaPrices& prices)
      : problem_(problem), features_(features), prices_(prices), n_(problem.design->n()),
        d_(problem.design->d()), outputs_(problem.outputs()) {}

  /// Used ∪ tight ∪ the best of the rest: at least 200, n/20 and as many as are used.
  std::vector<int32_t> features(const std::vector<int32_t>& used) const {
    std::vector<int32_t> out;
    if (!prices_.selects()) {
      out.resize(static_cast<std::size_t>(d_));
      std::iota(out.begin(), out.end(), 0);
      return out;
    }
    const Pages<double>& norms = prices_.norms();
    std::vector<unsigned char> take(norms.size(), 0);
    std::vector<int64_t> width(norms.size(), 0);
    for (int64_t j = 0; j < d_; ++j) ++width[prices_.unit_of(j)];
    for (const int32_t j : used) take[prices_.unit_of(j)] = 1;
    for (std::size_t u = 0; u < take.size(); ++u)
      if (norms[u] >= 0.999 && norms[u] <= 1.001) take[u] = 1;
    std::vector<int32_t> rest;
    for (std::size_t u = 0; u < take.size(); ++u)
      if (!take[u] && width[u] > 0) rest.push_back(static_cast<int32_t>(u));
    int64_t room = std::max({int64_t{200}, n_ / 20, std::ssize(used)});
    // No more than that many units fit in.
    const auto end = rest.begin() + std::min(room, std::ssize(rest));
    const auto better = [&](int32_t a, int32_t b) {
      return norms[a] > norms[b] || (norms[a] == norms[b] && a < b);
    };
    std::nth_element(rest.begin(), end, rest.end(), better);
    std::sort(rest.begin(), end, better);
    for (auto unit = rest.begin(); unit != end && room > 0; ++unit) {
      take[*unit] = 1;
      room -= width[*unit];
    }
    for (int64_t j = 0; j < d_; ++j)
      if (take[prices_.unit_of(j)]) out.push_back(static_cast<int32_t>(j));
    return out;
  }

  /// Of the listed features with centre C and pull T − XᵀỸ the entries that are used or tight (`needed`, numbered
  /// among all) and the best of the rest; nothing where that would not save two thirds of them.
  EntryList entries(const std::vector<int32_t>& features, const Pages<double>& center,
                    const Pages<double>& pull, std::vector<int64_t>& needed) const {
    std::vector<std::pair<double, int32_t>> rest;
    std::vector<unsigned char> take(pull.size(), 0);
    int64_t used = 0, room = std::max<int64_t>(200, n_ / 20);
    for (int64_t e = 0; e < std::ssize(pull); ++e) {
      const double price = std::abs(pull[e]) / problem_.penalty.omega[features[e / outputs_]];
      used += center[e] != 0.0;
      take[e] = center[e] != 0.0 || price >= 0.999 * problem_.penalty.ratio();
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

  /// Whether the present entries include the needed ones and are not far more than `wanted`: reading
  /// the data for others takes as long as ten sweeps.
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
  /// Flags of m x outputs entries as a list by outputs.
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

}  // namespace sparsvm
