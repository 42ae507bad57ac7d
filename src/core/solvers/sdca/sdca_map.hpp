// The shapes that W(V) of sdca_features.hpp takes with the different penalties.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "penalty/penalty.hpp"
#include "prox/prox.hpp"
#include "support/mmap_vector.hpp"

namespace sparsvm {

/// How W(V) separates: by entries, which may be scaled only, by rows of one feature and all outputs,
/// or by wider groups.
enum class SdcaMap { linear, entries, rows_l2, rows_sparse, rows_linf, groups };

/// Groups of one entry are entries: every norm is the absolute value.
inline SdcaMap sdca_map(const Penalty& penalty) {
  if (!penalty.grouped()) return penalty.ratio() == 0.0 ? SdcaMap::linear : SdcaMap::entries;
  std::vector<int32_t> count(static_cast<std::size_t>(penalty.n_groups), 0);
  for (int64_t j = 0; j < penalty.d; ++j)
    if (++count[penalty.groups[j]] > 1) return SdcaMap::groups;
  if (penalty.per_class || penalty.outputs == 1) return SdcaMap::entries;
  return penalty.kind == PenaltyKind::group_l2     ? SdcaMap::rows_l2
         : penalty.kind == PenaltyKind::group_linf ? SdcaMap::rows_linf
                                                   : SdcaMap::rows_sparse;
}

/// A row v of V shrunk at its level, without the gain; not for groups.
inline void sdca_shrink(SdcaMap map, double ratio, const double* v, int64_t K, double level,
                        double* out, ProxScratch& scratch) {
  switch (map) {
    case SdcaMap::rows_linf: prox_group_linf(v, K, level, out, scratch); return;
    case SdcaMap::rows_sparse:
      for (int64_t k = 0; k < K; ++k) out[k] = soft(v[k], ratio * level);
      prox_group_l2(out, K, (1.0 - ratio) * level, out);
      return;
    case SdcaMap::rows_l2: prox_group_l2(v, K, level, out); return;
    default:
      for (int64_t k = 0; k < K; ++k) out[k] = soft(v[k], level);
  }
}

/// The rows (outputs each) of the listed features among those of others, zero where there is none;
/// both lists ascend.
inline Pages<double> rows_of(const std::vector<int32_t>& list, const std::vector<int32_t>& others,
                             const Pages<double>& rows, int64_t outputs) {
  Pages<double> out(list.size() * static_cast<std::size_t>(outputs), 0.0);
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

}  // namespace sparsvm
